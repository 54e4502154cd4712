"""Verdicts on planted benchmarks: clean, repairable, removable, structural, unsolvable; and the cue that is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from creperie.auditing.battery import AttackerModels
from creperie.auditing.cues import telling_cues
from creperie.auditing.pairs import pairs_of
from creperie.auditing.run import Audit, audit, repaired
from creperie.bench import PAIRED, Benchmark, Item, choice, concatenate, from_items
from creperie.core.errors import CreperieError

Planted = Callable[..., Benchmark]
QUICK = ("length-words", "surface", "negation", "similarity")


def longer(text: str, words: str = " over there") -> str:
    return text[:-1] + words + "."


def clean(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return true, false


def untidy(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return (true.lower().rstrip(".") + " " if rng.random() < 0.5 else true), false


def often_longer(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return (true, longer(false)) if rng.random() < 0.75 else (longer(true), false)


def always_longer(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return true, longer(false)


@pytest.mark.parametrize(
    ("plant", "verdict", "fix", "cue"),
    [
        (clean, "clean", "", ""),
        (untidy, "leaks", "repairable", "surface"),
        (often_longer, "leaks", "removable", "length-words"),
        (always_longer, "leaks", "structural", "length-words"),
    ],
)
def test_verdicts(planted: Planted, plant: object, verdict: str, fix: str, cue: str) -> None:
    found = audit(planted(plant), QUICK)
    (judgement,) = found.judgements
    assert (found.verdict, judgement.verdict, judgement.fix) == (verdict, verdict, fix)
    assert [row.attacker for row in judgement.through] == ([cue] if cue else [])
    assert judgement.text.startswith(f"leaks through {cue} (" if cue else "clean: no attacker is told from chance")


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "verdict", "fix"), [(clean, "clean", ""), (untidy, "leaks", "repairable")])
def test_verdicts_of_the_whole_battery(planted: Planted, plant: object, verdict: str, fix: str) -> None:
    found = audit(planted(plant))
    assert (found.verdict, found.whole.fix) == (verdict, fix)
    assert {a.name for a in found.attackers} >= {"learned", "learned-linear", "learned-boosted", "frequency"}


def test_hidden_words_are_named_as_cues(planted: Planted) -> None:
    bench = planted(lambda true, false, rng: (true, false.replace("A ", "One ", 1)))
    found = audit(bench, ("length-words",))
    named = {cue.text: (cue.positives, cue.negatives) for cue, _ in found.cues["planted"]}
    assert named["one"] == (0, 240)
    assert found.cues["planted"][0][1].negative.startswith("One ")


def test_no_cue_is_named_where_there_is_none(planted: Planted) -> None:
    assert telling_cues(pairs_of(planted(clean))) == []


def test_unsolvable_items_are_named(planted: Planted) -> None:
    same = [Item("twin", "planted", ("t.jpg",), ("A dog.", "A dog."), choice(1, 1))]
    found = audit(concatenate("with twins", [planted(clean), from_items("t", same)]), QUICK)
    assert found.verdict == "unsolvable"
    assert found.whole.unsolvable == ("twin",)
    assert "1 unsolvable (a true caption is also a false one: twin)" in found.whole.text


def test_two_image_items_are_balanced_by_design() -> None:
    items = [Item(str(i), "w", (f"{i}a", f"{i}b"), (f"a dog {i}", f"A big dog {i}."), PAIRED) for i in range(40)]
    found = audit(from_items("two", items), QUICK)
    assert (found.verdict, found.whole.balanced) == ("clean", 40)
    assert "balanced by design" in found.whole.text
    assert {row.measure.accuracy for row in found.rows} == {0.5}


def test_a_leaking_subset_makes_the_whole_leak(planted: Planted) -> None:
    parts = [planted(clean, 200, subset="fair"), planted(always_longer, 60, subset="long")]
    found = audit(concatenate("both", parts), QUICK)
    assert [(j.subset, j.verdict) for j in found.judgements] == [("fair", "clean"), ("long", "leaks")]
    assert (found.verdict, found.whole.fix, found.whole.leaking) == ("leaks", "structural", (1, 2))
    assert found.whole.text == "leaks in 1 of 2 subsets: length in 1 (up to 100.0 % on long)"


def test_each_positive_is_also_attacked_alone(planted: Planted) -> None:
    """The second positive is long, the first is fair: only the view P2-N shows how it leaks."""
    bench = planted(lambda true, false, rng: (true, longer(true), false), positives=2)
    found = audit(bench, ("length-words",))
    reached = {row.view: row.measure.accuracy for row in found.views if row.subset == "planted"}
    assert reached == {"P1-N": 0.5, "P2-N": 1.0}
    assert ("P2-N", "structural") in {(row.view, row.fix) for row in found.judgements[0].through}


def test_the_threshold_tolerates(planted: Planted) -> None:
    bench = planted(often_longer)
    assert audit(bench, QUICK).verdict == "leaks"
    tolerant = audit(bench, QUICK, threshold=0.9)
    assert tolerant.verdict == "clean"
    assert "nothing above the threshold (strongest: length-words" in tolerant.whole.text


def test_few_items_are_not_enough_for_a_verdict_of_leaking(planted: Planted) -> None:
    found = audit(planted(always_longer, 4), QUICK)
    assert found.verdict == "clean"
    assert "one above 100 % would be" in found.whole.text


def test_correction_counts_every_attacker_and_subset(planted: Planted) -> None:
    found = audit(planted(untidy, 60), QUICK)
    for row in found.rows:
        assert row.p_holm >= row.measure.p


def test_repair_changes_captions_only(planted: Planted) -> None:
    bench = planted(untidy, 30)
    mended = repaired(bench)
    assert [item.id for item in mended] == [item.id for item in bench]
    assert all(caption.endswith(".") and caption[0] == "A" for item in mended for caption in item.captions)
    assert mended.provenance[-1].op == "repair"


def found_of(planted: Planted) -> Audit:
    return audit(planted(untidy, 60), QUICK, AttackerModels(seed=5))


def test_the_same_seed_gives_the_same_audit(planted: Planted) -> None:
    first, second = found_of(planted), found_of(planted)
    assert first.rows == second.rows
    assert first.examples == second.examples


def test_a_benchmark_without_pairs_is_refused() -> None:
    items = [Item("1", "s", (), ("a", "b"), ((True, True),))]
    with pytest.raises(CreperieError, match="no item has both a true and a false caption"):
        audit(from_items("none", items), QUICK)


def test_the_short_name_works_again_and_again(planted: Planted) -> None:
    """`creperie.audit` is a function and a package: importing the one must not hide the other."""
    import creperie

    bench = planted(clean, 20)
    assert [creperie.audit(bench, ("length-words",)).verdict for _ in range(2)] == ["clean", "clean"]
