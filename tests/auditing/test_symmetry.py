"""Symmetry: what captions alone or images alone could give, and the largest part where that is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from zlib import crc32

import numpy as np
import pytest
from foils import foil_items

from creperie.auditing import (
    AttackerModels,
    EmbeddingLearner,
    LearnedAttacker,
    audit,
    audit_document,
    audit_page,
    symmetry_of,
)
from creperie.bench import PAIRED, Item, from_items
from creperie.core import CreperieError
from creperie.refining import RefinePlan, refine
from creperie.refining.pair import ItemSurplus, surplus_of_item, symmetric_part

TWIN = Item("t", "twins", ("1.jpg", "2.jpg"), ("a dog on grass", "a dog on snow"), PAIRED)


def rows(*asks, subset="halves"):
    """One image per item: a true and a false caption."""
    return foil_items(asks, subset=subset, images="{}.jpg")


def test_a_two_image_item_is_balanced_in_itself():
    found = symmetry_of(from_items("b", [TWIN]))
    assert found.balanced
    assert (found.text.pairs, found.images.pairs) == (2, 2)
    assert found.text.bound == found.images.bound == 0.5
    assert "balanced by design" in found.words


def test_a_foil_is_not_balanced_and_its_bound_is_one():
    found = symmetry_of(from_items("b", rows(("a", "b"), ("c", "d"))))
    assert not found.balanced
    assert found.text.bound == 1.0
    assert found.images.pairs == 0
    assert found.broken == ("0", "1")


def test_the_bound_is_what_the_best_memory_reaches():
    """Against brute force: all preferences between the captions, the best of them."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        asks = [tuple(map(str, rng.choice(list("abc"), 2, replace=False))) for _ in range(7)]
        keys = sorted({tuple(sorted(a)) for a in asks})
        best = max(
            np.mean([prefers[keys.index(tuple(sorted(a)))] == (a[0] < a[1]) for a in asks])
            for prefers in product([True, False], repeat=len(keys))
        )
        assert symmetry_of(from_items("b", rows(*asks))).text.bound == pytest.approx(best)


def test_a_dropped_item_breaks_what_it_mirrored():
    mirrored = [*rows(("a", "b"), ("b", "a")), TWIN]
    assert symmetry_of(from_items("b", mirrored)).balanced
    one_image = symmetry_of(from_items("b", mirrored[:2]))  # images alone reveal nothing, but nothing says so by design
    assert (one_image.text.balanced, one_image.images.pairs, one_image.balanced) == (True, 0, False)
    assert "% of the pairs of captions cancel out with reversed ones" in one_image.words  # not as in `power`
    assert one_image.words.endswith("; one image per item: images alone reveal nothing")
    broken = symmetry_of(from_items("b", mirrored[1:]))
    assert broken.broken == ("1",)
    assert broken.text.bound == pytest.approx(0.5 + 0.5 / 3)


def test_one_way_pairs_are_seen() -> None:
    """In a circle every caption is once true and once false; of one image both captions are true."""
    assert symmetry_of(from_items("b", rows(("a", "b"), ("b", "c"), ("c", "a")))).text.mirrored == 0
    item = Item("1", "s", ("1.jpg", "2.jpg"), ("x", "y"), ((True, True), (False, False)))
    assert symmetry_of(from_items("b", [item])).images.bound == 1.0


def test_the_audit_says_it():
    items = [Item(str(k), "twins", (f"{k}a", f"{k}b"), (f"a {k} dog", f"one {k} cat"), PAIRED) for k in range(60)]
    found = audit(from_items("b", items), ["length-words", "surface", "learned", "learned-linear", "learned-boosted"])
    assert (found.whole.verdict, found.whole.measured.balanced) == ("clean", 60)
    assert "balanced by design" in found.whole.text
    assert {r.measure.accuracy for r in found.rows} == {0.5}
    told = audit_document(found)["symmetry"]
    assert (told[0]["subset"], told[-1]["balanced"]) == ("twins", True)
    assert found.whole.power == "captions alone are right exactly half of the time, so nothing is left for an attacker"
    shown = audit_page(audit_document(found))
    assert "Symmetry" in shown
    assert "Balanced by design: captions alone, or images alone, are right exactly half of the time." in shown
    assert "would be found" not in shown
    assert "<small>1 item</small>" in audit_page(audit_document(audit(from_items("b", [TWIN]), ["length-words"])))


def test_refine_pair_keeps_the_largest_symmetric_part():
    items = [TWIN, *rows(("a", "b"), ("b", "a"), ("a", "b"), ("a", "c"), subset="twins")]
    found = refine(from_items("b", items), plan=RefinePlan(method="pair", held_out=("length-chars",)))
    assert [i.id for i in found.bench] == ["t", "0", "1"]
    assert symmetry_of(found.bench).text.balanced
    assert {r.reason for r in found.removed} == {"mirror"}
    assert "'a' and 'c'" in found.removed[-1].detail


def test_the_symmetric_part_is_as_large_as_brute_force_says():
    rng = np.random.default_rng(5)
    for _ in range(15):
        ways = [
            ItemSurplus(tuple((("text", "a", str(k)), int(rng.choice([-1, 1, 2]))) for k in keys))
            for keys in (rng.choice(3, rng.integers(0, 3), replace=False) for _ in range(8))
        ]
        best = max(sum(mask) for mask in product([0, 1], repeat=8) if _even(ways, mask))
        kept = symmetric_part(ways)
        assert _even(ways, kept)
        assert kept.sum() == best


def _even(ways, mask):
    total: dict[tuple[str, str, str], int] = {}
    for item, kept in zip(ways, mask):
        for key, n in item.pairs if kept else ():
            total[key] = total.get(key, 0) + n
    return not any(total.values())


def test_a_twin_adds_nothing_to_any_balance():
    assert surplus_of_item(TWIN).pairs == ()


def test_trees_see_a_twin_and_its_mirror_image_alike():
    """Sums are rounded differently: in the last bits, trees would find what is not there."""
    from creperie.auditing import pair_features, pairs_of
    from creperie.auditing.boosted import _directions, _table

    rng = np.random.default_rng(3)
    words = [f"{a}{b}" for a in "bdfgklmn" for b in ("ale", "ime", "oat", "ust", "ench", "arrow")]
    items = []
    for k in range(120):
        drawn = [str(w) for w in rng.choice(words, 9, replace=False)]
        texts = (" ".join(["the", *drawn[:8]]), " ".join(["the", *drawn[:4], drawn[8], *drawn[5:8]]))
        items.append(Item(str(k), "twins", (f"{k}a", f"{k}b"), texts, PAIRED))
    pairs = pairs_of(from_items("twins", items))
    features, all_rows = pair_features(pairs), np.arange(len(pairs))
    table = _table(features, all_rows, np.zeros(len(pairs)), _directions(features, all_rows, 0))
    assert np.abs(table).max(axis=0).min() == 0 < np.abs(table[:, -1]).max()
    np.testing.assert_array_equal(table[::2], -table[1::2])


def _encode(names: Sequence[str]) -> np.ndarray:
    """Vectors of image names: noise, and where the name says "bright" more of the first number."""
    noise = np.array([np.random.default_rng(crc32(name.encode())).normal(size=8) for name in names])
    noise[:, 0] += [3.0 * ("bright" in name) for name in names]
    return noise.astype(np.float32)


@pytest.mark.parametrize(("share", "leaks"), [(0.9, True), (0.5, False)])
def test_images_alone_may_tell_which_one_is_meant(monkeypatch: pytest.MonkeyPatch, share: float, leaks: bool) -> None:
    """One caption, two images: where the true one is bright nine times in ten, an attacker without captions knows."""
    attacker = LearnedAttacker("image-embedding", EmbeddingLearner(_encode), "the image like the true ones")
    monkeypatch.setattr(AttackerModels, "image_attacker", lambda self, images: attacker)
    rng = np.random.default_rng(0)
    items = []
    for k in range(240):
        bright = rng.random() < share
        images = f"{k}-{'bright' if bright else 'dark'}", f"{k}-{'dark' if bright else 'bright'}"
        items.append(Item(str(k), "s", images, (f"a dog in place {k}",), ((True,), (False,))))
    found = audit(from_items("two images", items), ["length-words"])
    (row,) = (r for r in found.views if r.subset == "s")
    assert (row.view, row.attacker, row.leaks, row.measure.n) == ("images", "image-embedding", leaks, 240)
    assert (found.verdict == "leaks") == leaks
    assert not found.rows  # captions are never asked about


def test_items_without_pairs_of_captions_need_an_image_encoder() -> None:
    bench = from_items("b", [Item("1", "s", ("a", "b"), ("a dog",), ((True,), (False,)))])
    with pytest.raises(CreperieError, match="pass `image_encoder=` for an attacker"):
        audit(bench, ["length-words"])
