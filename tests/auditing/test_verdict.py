"""Verdicts on planted benchmarks: clean, repairable, removable, structural, unsolvable; and the cue that is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from creperie.auditing import (
    EXIT_CODES,
    AttackerModels,
    AuditRow,
    Measurements,
    audit,
    calibrated,
    cell_name,
    judge,
    measure_attacker,
    next_command,
    pairs_of,
    repaired,
    unjudged,
)
from creperie.auditing.measure import smallest_detectable
from creperie.auditing.registry import several_learned
from creperie.bench import Benchmark, Item, choice, concatenate, from_items, save
from creperie.core import CreperieError, silent
from creperie.metrics import holm, wilson

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


def test_an_item_balanced_by_design_can_be_unsolvable_and_names_are_quoted() -> None:
    assert judge(Measurements("all", 1, balanced=1, unsolvable=("a",))).verdict == "unsolvable"
    assert next_command(unjudged("nothing left"), "data/my bench").endswith("--out 'my bench-foils'")


@pytest.mark.parametrize(
    ("plant", "verdict", "fix", "cues"),
    [
        (untidy, "leaks", "repairable", ["surface: lower-case start"]),
        (often_longer, "leaks", "removable", ["length-words", "cues: “over”"]),
        (always_longer, "leaks", "structural", ["length-words", "cues: “over”"]),
    ],
)
def test_verdicts(planted: Planted, plant: object, verdict: str, fix: str, cues: list[str]) -> None:
    found = audit(planted(plant), QUICK)
    (judgement,) = found.judgements
    assert (found.verdict, judgement.verdict, judgement.fix) == (verdict, verdict, fix)
    assert [row.title for row in judgement.through] == cues
    assert judgement.text.startswith(f"leaks through {cues[0]} (")


def test_clean_means_that_every_attacker_is_shown_to_stay_below_the_threshold(planted: Planted) -> None:
    """Not that none was seen to win: that is what a small set always says."""
    small = audit(planted(clean, 120), ["learned-linear"])
    assert (small.verdict, EXIT_CODES[small.verdict]) == ("not shown", 3)
    assert small.whole.needed > 120
    assert f"about {small.whole.needed:,} items would decide" in small.text or "only show a leak" in small.text
    assert " on " not in small.text
    assert not judge(replace(small.whole.measured, items=10**6)).full  # nothing was sampled: --full has nothing to take
    row = small.rows[0]
    unknown = replace(row, measure=replace(row.measure, low=float("nan")))
    assert judge(replace(small.whole.measured, rows=(unknown,))).bound == 1.0
    large = audit(planted(clean, 2000), QUICK)
    assert (large.verdict, EXIT_CODES[large.verdict]) == ("clean", 0)
    assert large.text.startswith("clean against length, style, negation, similarity, single cues: at most 5")
    assert max(r.measure.high for r in large.rows) == pytest.approx(large.whole.bound)
    assert large.whole.bound < 0.55
    assert large.cues["planted"] == []
    assert "would be found in 4 of 5 cases" in large.whole.power
    assert small.whole.measured.detectable > smallest_detectable(120, 1) + 0.01  # learned answers vary more than coins


@pytest.mark.slow
def test_what_all_attackers_reach_together_is_the_headline(planted: Planted) -> None:
    """And a model that a family stands for is named."""
    found = audit(planted(often_longer, 120), ["length-words", "learned-linear", "ensemble"])
    row = found.whole.headline
    assert row.measure.accuracy == max(r.measure.accuracy for r in found.rows if r.subset == "all")
    reached = " ".join(f"{100 * x:.1f}" for x in (row.measure.accuracy, row.measure.low, row.measure.high))
    who = "all attackers together" if row.attacker == "ensemble" else row.attacker
    shown = found.text.partition("(")[2].partition(f" by {who}) through ")[0]
    assert shown.translate(str.maketrans("", "", "%[],")).split() == reached.split()
    assert several_learned(["learned-linear", "lm-mean"])
    assert not several_learned(["learned-linear", "learned-boosted", "length-words", "ensemble"])
    measured = replace(found.whole.measured, models={"n-grams": "mine"})
    small = replace(found.whole, measured=measured, verdict="clean", headline=None, bound=0.5)
    assert small.text == "clean against length, single cues, n-grams (mine), ensemble: at most 50.0 %"


def test_missing_attackers_make_the_verdict_incomplete(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A false green: without its packages the strongest attackers were skipped and the audit said "clean"."""
    from creperie.auditing import battery

    there = battery.find_spec
    monkeypatch.setattr(battery, "find_spec", lambda name: None if name in ("sklearn", "torch") else there(name))
    found = audit(planted(clean, 120))
    assert (found.verdict, EXIT_CODES[found.verdict]) == ("incomplete", 3)
    assert {"learned", "lm-mean", "learned-embedding"} <= set(found.not_sent)
    assert found.text.startswith(
        f"incomplete: {len(found.not_sent)} attackers not run (install creperie[stats]); so far"
    )
    monkeypatch.setattr(battery, "find_spec", there)
    for name in ("learned", "learned-linear", "learned-boosted", "neural-lm", "ensemble"):  # which take their time
        monkeypatch.delitem(battery.REGISTRY, name)
    assert " not run (lm-mean, lm-sum, learned-embedding); so far" in audit(planted(clean, 60)).text
    leaky = audit(planted(always_longer, 60))
    assert (leaky.verdict, EXIT_CODES[leaky.verdict]) == ("leaks", 1)
    assert "; not run: " in leaky.text


@pytest.mark.parametrize(
    ("margins", "code", "says"),
    [
        (np.where(np.arange(400) % 10 < 4, 1.0, -1.0), 1, "anti-learned: learned is right on only 40.0 %, surely"),
        (np.where(np.arange(2000) % 100 == 0, -1.0, 0.0), 0, "clean"),  # 49.5 %, the other way round 50.5 %
    ],
    ids=["surely wrong", "a few among ties"],
)
def test_an_attacker_that_is_surely_wrong_is_anti_learned(
    planted: Planted, margins: np.ndarray, code: int, says: str
) -> None:
    figures = measure_attacker(calibrated(pairs_of(planted(clean, len(margins))), margins, directed=True))
    seen = replace(audit(planted(clean, 60), QUICK).judgements[0].measured, missing={})
    judged = judge(replace(seen, rows=(AuditRow("planted", "", "learned", "", figures, p_holm=figures.p),)))
    assert figures.p < 0.05
    assert figures.accuracy < 0.5
    assert EXIT_CODES[judged.verdict] == code
    assert judged.text.startswith(says)


def test_one_subset_is_not_counted_twice_by_the_correction(planted: Planted) -> None:
    found = audit(planted(untidy, 60), QUICK)
    tests = [row for row in found.rows if row.subset == "planted"]
    assert [row.p_holm for row in tests] == pytest.approx(holm([row.measure.p for row in tests]))
    assert [r.p_holm for r in found.rows if r.subset == "all"] == [r.p_holm for r in tests]
    named = audit(planted(untidy, 60, subset="all"), QUICK)  # its one subset has the name of the whole
    assert [(r.attacker, r.p_holm) for r in named.rows] == [(r.attacker, r.p_holm) for r in tests]


def pairs_bench(twice: bool) -> Benchmark:
    """100 pairs of captions with random roles, each under two images: with the same roles, or reversed."""
    rng = np.random.default_rng(0)
    items = []
    for i in range(100):
        words = rng.permutation([f"w{k}" for k in range(400)])[:6]
        one, two = " ".join(words), " ".join(words[::-1])
        for image, roles in ((f"{i}a", (one, two)), (f"{i}b", (one, two) if twice else (two, one))):
            items.append(Item(image, "s", (image,), roles, choice(1, 1)))
    return from_items("pairs", items)


@pytest.mark.parametrize("twice", [True, False])
def test_repeated_and_reversed_pairs_stay_in_one_fold(twice: bool) -> None:
    """Grouped by image alone the learned attacker reached 97 % on repeated random pairs ("structural") and 4.5 % on
    reversed ones ("clean")."""
    bench = pairs_bench(twice)
    pairs = pairs_of(bench)
    assert len(np.unique(pairs.group)) == len(np.unique(pairs.cluster)) == 100
    found = audit(bench, ["learned-linear"])
    row = next(r for r in found.rows if r.subset == "s")
    assert 0.35 < row.measure.accuracy < 0.65
    assert not row.leaks
    (judgement,) = found.judgements
    assert (judgement.measured.repeated, judgement.measured.reversed) == ((1.0, 0.0) if twice else (0.0, 1.0))
    assert judgement.power.endswith("100 % " + ("in the same roles" if twice else "with true and false exchanged"))


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "verdict", "fix"), [(clean, "incomplete", ""), (untidy, "leaks", "repairable")])
def test_verdicts_of_the_whole_battery(planted: Planted, plant: object, verdict: str, fix: str) -> None:
    found = audit(planted(plant))  # without a language model or an encoder: conftest.py
    assert (found.verdict, found.whole.fix) == (verdict, fix)
    assert {a.name for a in found.attackers} >= {"learned", "learned-linear", "learned-boosted", "frequency"}


def test_hidden_words_are_named_as_cues(planted: Planted) -> None:
    bench = planted(lambda true, false, rng: (true, false.replace("A ", "One ", 1)))
    found = audit(bench, ("length-words",))
    named = {cue.text: (cue.positives, cue.negatives) for cue, _ in found.cues["planted"]}
    assert named["one"] == (0, 240)
    assert len(found.examples["planted"]) > 1  # of the strongest attacker: all captions are of one length
    assert {e.margin > 0 and e.negative.startswith("One ") for e in found.examples["planted"]} == {True}
    assert found.cues["planted"][0][1].negative.startswith("One ")


def test_unsolvable_items_are_named(planted: Planted) -> None:
    same = [Item("twin", "planted", ("t.jpg",), ("A dog.", "A dog."), choice(1, 1))]
    found = audit(concatenate("with twins", [planted(clean, 2000), from_items("t", same)]), QUICK)
    assert found.verdict == "unsolvable"
    assert found.whole.measured.unsolvable == ("twin",)
    assert "1 unsolvable (a true caption is also a false one: twin)" in found.whole.text


def test_a_leaking_subset_makes_the_whole_leak(planted: Planted) -> None:
    parts = [planted(clean, 1200, subset="fair"), planted(always_longer, 60, subset="long")]
    found = audit(concatenate("both", parts), QUICK)
    assert [(j.subset, j.verdict) for j in found.judgements] == [("fair", "clean"), ("long", "leaks")]
    assert (found.verdict, found.whole.fix, found.whole.worst_subsets) == ("leaks", "structural", (1, 2))
    up = "in 1 (up to 100.0 % on long)"
    assert found.whole.text == f"leaks in 1 of 2 subsets: length {up}, single cues {up}"


def test_each_positive_is_also_attacked_alone(planted: Planted) -> None:
    """The second positive is long, the first is fair: only the view P2-N shows how it leaks."""
    bench = planted(lambda true, false, rng: (true, longer(true), false), positives=2)
    found = audit(bench, ("length-words",))
    mine = [row for row in found.views if (row.subset, row.attacker) == ("planted", "length-words")]
    reached = {row.view: row.measure.accuracy for row in mine}
    assert reached == {"P1-N": 0.5, "P2-N": 1.0}
    assert ("P2-N", "structural") in {(row.view, row.fix) for row in found.judgements[0].through}


def test_a_caption_with_a_foil_of_its_own_is_compared_with_that_alone() -> None:
    """Hit or Be Hit's comparisons 1 and 2: active with active, passive with passive, of equal length. Against the foil
    of the other construction, the shorter sentence was right in 75 %."""
    items = []
    for n in range(40):
        a, b = f"robot{n}", f"whale{n}"
        both = [f"a {x} hits a {y}" for x, y in ((a, b), (b, a))] + [
            f"a {y} is hit by a {x}" for x, y in ((a, b), (b, a))
        ]
        items.append(Item(str(n), "passive", (f"{n}.png",), (both[0], both[2], both[1], both[3]), choice(2, 2)))
    found = audit(from_items("both", items), ("length-words",))
    assert {row.view: row.measure.accuracy for row in found.views} == {"P1-N1": 0.5, "P2-N2": 0.5}
    assert {row.measure.pairs for row in found.views} == {40}
    assert (
        cell_name({"view": "P2-N2", "subset": "passive"}) == "second true captions against their own foils of passive"
    )


def test_the_threshold_tolerates(planted: Planted) -> None:
    bench = planted(often_longer)
    assert audit(bench, QUICK).verdict == "leaks"
    tolerant = audit(bench, QUICK, threshold=0.9)
    assert tolerant.verdict == "clean"


def test_few_items_are_not_enough_for_a_verdict_of_leaking(planted: Planted) -> None:
    found = audit(planted(always_longer, 4), QUICK)
    assert found.verdict == "not shown"
    assert "length-words may reach 100.0 %" in found.text


def test_repair_changes_captions_only(planted: Planted) -> None:
    bench = planted(untidy, 30)
    mended = repaired(bench)
    assert [item.id for item in mended] == [item.id for item in bench]
    assert all(caption.endswith(".") and caption[0] == "A" for item in mended for caption in item.captions)
    assert mended.provenance[-1].op == "repair"


def test_the_same_seed_gives_the_same_audit(planted: Planted) -> None:
    first, second = (audit(planted(untidy, 60), QUICK, models=AttackerModels(seed=5)) for _ in range(2))
    assert (first.rows, first.examples) == (second.rows, second.examples)


def test_a_benchmark_without_pairs_is_refused() -> None:
    items = [Item("1", "s", (), ("a", "b"), ((True, True),))]
    with pytest.raises(CreperieError, match="no item has both a true and a false caption"):
        audit(from_items("none", items), QUICK)


def test_the_python_api_takes_specs_and_plain_names(planted: Planted, tmp_path: Path) -> None:
    import creperie

    save(planted(always_longer, 60), tmp_path / "b")
    for bench in (str(tmp_path / "b"), tmp_path / "b"):
        found = creperie.audit(bench, attackers="length-words", seed=3, progress=silent)
        assert [a.name for a in found.attackers] == ["length-words", "cues"]  # every audit lists single cues
    assert repr(found).startswith("Audit('planted', 60 items, 2 attackers: leaks through length-words (100.0 %")
    assert "<td>length-words</td><td>60</td><td>100.0</td>" in found._repr_html_()
    frame = found.to_pandas()
    assert frame.loc[0, ["subset", "attacker", "accuracy"]].tolist() == ["planted", "length-words", 1.0]
    with pytest.raises(CreperieError, match="`lm='lm:MODEL'`"):
        creperie.audit(bench, attackers=["lm-mean"], lm="none")


def test_too_few_items_say_where_and_never_ask_for_fewer_than_there_are() -> None:
    """Four of five would be a leak, were they more; the upper limit alone says nothing about when that is sure."""
    items = [
        Item(f"{name}{i}", name, (f"{name}{i}.jpg",), (f"a dog {i}", f"a big dog {i}")[:: 1 - 2 * longer], choice(1, 1))
        for name, n in (("few", 5), ("more", 40))
        for i in range(n)
        for longer in [i == 0 if name == "few" else i % 2]
    ]
    found = audit(from_items("two", items), ["length-words"])
    few = next(j for j in found.judgements if j.subset == "few")
    assert (few.measured.items, few.strongest.measure.accuracy, few.verdict) == (5, 0.8, "not shown")
    assert few.needed == 11  # of 10.67 by Wilson: 1.96² × 0.25 / 0.3²
    assert "length-words may reach 96.4 % on few" in found.text
    assert "it reaches 80.0 % there, on 5 items: if that stays so, more items can only show a leak" in found.text
    assert "would decide" not in found.text  # no number of items excludes 55 % at an estimate of 80 %
    assert "on few P2-N); it reaches 80.0 %" in replace(found.whole, strongest=replace(few.strongest, view="P2-N")).text
    for n in (8, 104, 260, 380, 400):  # 8 items asked for 260, at which 130 right still reach 56.0 %
        low, high = wilson(n / 2, n)
        at_chance = replace(
            few.strongest, measure=replace(few.strongest.measure, n=n, accuracy=0.5, low=low, high=high)
        )
        assert (needed := judge(replace(few.measured, rows=(at_chance,))).needed) == max(n + 1, 381)
        assert wilson(needed / 2, needed)[1] < 0.55 <= wilson(190, 380)[1]
