"""link-grammar, where it is installed."""

from __future__ import annotations

import pytest

from creperie.lang import linkgrammar, read_linkage

pytestmark = pytest.mark.skipif(not linkgrammar.available(), reason="Debian's python3-link-grammar is not installed")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("A player hits a ball.", "A ball hits player a the."),
        ("Two men are walking on the beach.", "Two mans is walk the on beach."),
        ("The dog that chased the cat is brown.", "The dog that the cat chased the is brown."),
    ],
)
def test_good_sentences_score_higher(good: str, bad: str) -> None:
    assert linkgrammar.parse_linkage(good).nulls == 0
    scores = linkgrammar.grammaticalities([good, bad])
    assert scores[0] > scores[1]


@pytest.mark.parametrize("text", ["", "   ", "\x00", "\n", "☃", "a" * 3000, "x " * 400, "(", '"'])
def test_strange_texts_do_not_end_the_process(text: str) -> None:
    found = linkgrammar.parse_linkage(text)
    assert found.nulls is None or found.nulls >= 0


def test_a_tree() -> None:
    tree = read_linkage(linkgrammar.parse_linkage("A player hits a ball.").tree)
    assert [node.label for node in tree.nodes()][:4] == ["S", "NP", "det", "n"]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    linkgrammar._english.cache_clear()
    linkgrammar.parse_linkage("x " * 400)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_many_texts_beside_each_other() -> None:
    texts = [f"A dog and {n} cats sleep." for n in range(2, 30)]
    assert linkgrammar.parse_many(texts * 20, workers=2)[:28] == [linkgrammar.parse_linkage(t) for t in texts]
