"""Trees and the tree kernel, against numbers computed elsewhere and by hand."""

from __future__ import annotations

import math

import pytest

from creperie.core import CreperieError
from creperie.lang import Tree, published_similarity, read_linkage, read_tree, tree_similarity
from creperie.lang.trees import kernel

ACTIVE = "(ROOT (S (NP (DT A) (NN player)) (VP (VBZ hits) (NP (DT a) (NN ball))) (. .)))"
PASSIVE = "(ROOT (S (NP (DT A) (NN ball)) (VP (VBZ is) (VP (VBN hit) (PP (IN by) (NP (DT a) (NN player))))) (. .)))"
DITRANSITIVE = "(ROOT (S (NP (DT A) (NN woman)) (VP (VBZ gives) (NP (DT the) (NN girl)) (NP (DT a) (NN book))) (. .)))"
DATIVE = (
    "(ROOT (S (NP (DT A) (NN woman)) (VP (VBZ gives) (NP (DT a) (NN book)) (PP (TO to) (NP (DT the) (NN girl))))"
    " (. .)))"
)


@pytest.mark.parametrize(
    ("left", "right", "ahead", "back"),
    [
        # FastKASSIM's label tree kernel on the Stanford parser's trees of these sentences (measured once elsewhere)
        (ACTIVE, DITRANSITIVE, 0.911129, 0.959499),
        (DATIVE, DITRANSITIVE, 0.834121, 0.868039),
        (ACTIVE, PASSIVE, 0.805720, 0.805720),
    ],
)
def test_the_published_values(left: str, right: str, ahead: float, back: float) -> None:
    x, y = read_tree(left), read_tree(right)
    assert published_similarity(x, y) == pytest.approx(ahead, abs=5e-7)
    assert published_similarity(y, x) == pytest.approx(back, abs=5e-7)
    assert tree_similarity(x, y) == tree_similarity(y, x) == pytest.approx((ahead + back) / 2, abs=5e-7)


def test_the_kernel_by_hand() -> None:
    """(A (B b) (C c)) against (A (B x)), λ = 0.4, σ = 1.

    Pre-terminals: B–B gives 0.4. Roots, children of the first: B finds B (1 + 0.4), C finds nothing (1 + 0), so
    0.4 · 1.4 · 1 = 0.56; the other way round only B is a child: 0.4 · 1.4 = 0.56. Each tree with itself: the first
    0.4 + 0.4 + 0.4 · 1.4 · 1.4 = 1.584, the second 0.4 + 0.56 = 0.96.
    """
    x, y = read_tree("(A (B b) (C c))"), read_tree("(A (B x))")
    assert kernel(x, y) == pytest.approx(0.96)
    assert kernel(y, x) == pytest.approx(0.96)
    assert kernel(x, x) == pytest.approx(1.584)
    assert tree_similarity(x, y) == pytest.approx(0.96 / math.sqrt(1.584 * 0.96))


def slow_kernel(x: Tree, y: Tree) -> float:
    """The definition, word by word, without any memory."""

    def delta(a: Tree, b: Tree) -> float:
        if a.label != b.label:
            return 0.0
        product = 0.4
        for c in a.children:
            product *= 1.0 + sum(delta(c, d) for d in b.children)
        return product

    return sum(delta(a, b) for a in x.nodes() for b in y.nodes())


@pytest.mark.parametrize("left", [ACTIVE, PASSIVE, DITRANSITIVE])
@pytest.mark.parametrize("right", [ACTIVE, DATIVE])
def test_the_kernel_against_its_definition(left: str, right: str) -> None:
    x, y = read_tree(left), read_tree(right)
    assert kernel(x, y) == pytest.approx(slow_kernel(x, y))


def test_words_do_not_matter() -> None:
    x, y = read_tree("(S (NP (NN dogs)) (VP (VBP run)))"), read_tree("(S (NP (NN cats)) (VP (VBP sleep)))")
    assert published_similarity(x, y) == pytest.approx(1.0)


@pytest.mark.parametrize("broken", ["", "dog", "(S (NP a)", "(S a))", "(S a) (S b)", ")("])
def test_broken_brackets_are_refused(broken: str) -> None:
    with pytest.raises(CreperieError, match=r"here:7: .* is not a tree in brackets"):
        read_tree(broken, where="here:7")


def test_a_linkage_gets_word_classes() -> None:
    tree = read_linkage("(S (NP a gleeb{?}.n [big]) (VP runs.v) ,)")
    assert str(tree) == "(S (NP (det a) (n gleeb) (left-out big)) (VP (v runs)) (, ,))"
