"""Benchmarks that are not held: audited on a stated sample and counted in pieces, refined as if they were held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from foils import foil_bench

from creperie.auditing import AttackerModels, AuditOptions, audit, audit_document
from creperie.bench import Benchmark, Item, KeptRows, from_items, load, save
from creperie.cli.audit import _ceilings
from creperie.core import parquet
from creperie.engine import Local
from creperie.refining import refine

ATTACKERS = ("length-words", "surface")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """300 items on disk, in row groups of 64: every third foil is longer, one cannot be solved."""
    monkeypatch.setattr(parquet, "ROW_GROUP", 64)
    items = [
        Item(
            str(i),
            "ab"[i % 2],
            (f"{i // 3}.jpg",),
            (f"a dog runs to {i} cats", f"A cat runs to {i} dogs{', too' * (i % 3 == 0)}{' or not' * (i % 7 == 0)}"),
            ((True, False),),
            {"n": float(i)},
        )
        for i in range(299)
    ]
    items.append(Item("same", "a", (), ("a dog", "a dog"), ((True, False),)))
    return save(from_items("large", items), tmp_path / "large")


@pytest.fixture
def large(bench: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """The same, which from now on counts as large."""
    for place in ("bench.benchmark.HELD", "auditing.large.SAMPLE"):
        monkeypatch.setattr(f"creperie.{place}", 100)
    return load(bench.source.files[0].parent.parent)  # type: ignore[union-attr]


def test_a_part_that_stays_on_disk_is_the_part(bench: Benchmark, large: Benchmark, tmp_path: Path) -> None:
    mask = np.arange(300) % 3 > 0
    held = bench.with_table(bench.table, "held")
    for own, other in (
        (large.filter(mask), held.filter(mask)),
        (large.sample(150, 4), held.sample(150, 4)),
        (large.head(70), held.head(70)),
        (large.filter(mask).sample(120, 1), held.filter(mask).sample(120, 1)),
        (large.filter(mask).filter(pc.field("tag.n") > 9), held.filter(mask).filter(pc.field("tag.n") > 9)),
    ):
        assert own.table == other.table
        assert own.hash == other.hash
        assert own.subsets == other.subsets
    part = large.filter(mask)
    assert isinstance(part.sample(120).source, KeptRows)
    assert len(part) == 200
    one, two = (save(b, tmp_path / n).source for b, n in ((part, "one"), (held.filter(mask), "two")))
    assert [f.read_bytes() for f in one.files] == [f.read_bytes() for f in two.files]  # type: ignore[union-attr]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_audit_of_a_sample_says_so_and_counts_exactly(bench: Benchmark, large: Benchmark, workers: int) -> None:
    """The counts are those of an audit of all items, in the attackers' named direction."""
    found = audit(large, ATTACKERS, engine=Local(workers))
    assert "on a random sample of 100 of 300 items (--full takes all)" in found.text
    assert (found.items, found.attackable, found.hash) == (300, 300, bench.hash)
    assert found.whole.measured.unsolvable == ("same",), "wherever the sample fell"
    whole = audit(large, ATTACKERS, full=True)
    exact = {(r.subset, r.attacker): (r.measure.n, r.measure.raw, r.measure.ties) for r in whole.rows}
    assert whole.counts == ()
    assert len(found.counts) == 4
    for count in found.counts:
        assert (count.n, pytest.approx(count.accuracy), count.ties) == exact[count.subset, count.attacker]
    assert audit_document(found)["sample"] == 100
    limits = _ceilings(large, AuditOptions(), AttackerModels())["ceilings"]
    assert sum(limit["n"] for limit in limits if limit["subset"] != "all") == 100, "no other part holds them all"


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (("un homme regarde la voiture rouge", "la voiture rouge regarde un homme"), "fr"),
        (("一个男人看着一匹马", "一匹马看着一个男人"), "another script"),
        (("رجل يتبع القطة", "القطة تتبع رجل"), "another script"),
        (("a man looks at the red car", "the red car looks at a man"), ""),
        (("A dog", "A cat"), ""),
    ],
)
def test_attackers_that_know_english_leave_other_languages_alone(texts: tuple[str, str], language: str) -> None:
    found = audit(foil_bench([tuple(f"{t} {i}" for t in texts) for i in range(30)]), ("length-chars", "negation"))
    why = f"knows only English; most captions are in {language}"
    assert found.not_sent == ({"negation": why} if language else {})
    assert "incomplete" not in found.verdict, "nothing is missing that could be said"
    assert ("makers know only English" in found.next) == bool(language), "no maker would take these captions"


@pytest.mark.parametrize("method", ["grid", "optimal"])
def test_a_refinement_in_pieces_keeps_the_items_of_one_that_is_held(
    bench: Benchmark, tmp_path: Path, method: str, request: pytest.FixtureRequest
) -> None:
    files = []
    for name in ("held", "pieces"):
        if name == "pieces":
            bench = request.getfixturevalue("large")
        refined = refine(bench, method=method, attackers=ATTACKERS, held_out=("negation",))
        folder = tmp_path / name
        saved = refined.save(folder)
        files.append((saved.hash, (folder / "removed.parquet").read_bytes(), [o.kept for o in refined.outcomes]))
        assert len(refined.removed) + len(saved) == 300
        assert [r.reason for r in refined.removed].count("unsolvable") == 1
    assert files[0] == files[1]
