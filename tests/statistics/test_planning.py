"""Power against closed forms and stored runs; rankings under every choice; wrong labels; captions found elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from foils import foil_bench

import creperie as cr
from creperie.auditing import entry_of
from creperie.bench import save
from creperie.cli.overlap import overlap as overlap_command
from creperie.cli.robust import robust as robust_command
from creperie.metrics import HIT, MISS, compare, equivalence
from creperie.reporting import item_map, power_curve, ranks_by_choice, save_figure
from creperie.scoring import ResponseOptions, Run, import_responses
from creperie.scoring.replies import answered_run
from creperie.statistics import (
    PowerEstimate,
    PowerOptions,
    overlap,
    power,
    response,
    robustness,
)
from creperie.statistics.planning import _Common, _smallest, _uniform
from creperie.statistics.rankings import wrong_labels

NORMAL = NormalDist()
RELEASED = Path(__file__).parents[3] / "shared" / "data" / "sugarcrepe_pp"
#: Models whose ranks depend on how subsets are weighed: number, lead, and lead on simplified items.
TURNED = ((0, 0.0, 3.0), (1, 1.0, 0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("items", "difference", "discordant"), [(500, 0.05, 0.3), (1000, 0.04, 0.2)])
def test_power_of_a_comparison_is_that_of_the_paired_normal_test(
    items: int, difference: float, discordant: float
) -> None:
    plan = {"items": items, "difference": difference, "discordant": discordant, "simulations": 600, "target": 0.0}
    error = math.sqrt((discordant - difference**2) / items)
    assert power("compare", **plan).power == pytest.approx(1 - NORMAL.cdf(1.96 - difference / error), abs=0.04)


def test_items_for_a_narrow_interval_and_for_clusters() -> None:
    closed = 0.75 * 0.25 * (1.96 / 0.03) ** 2
    alone = power("interval", width=0.03, simulations=60, target=0.5).needed
    assert alone == pytest.approx(closed, rel=0.06)
    plan = {"width": 0.03, "per_image": 4, "icc": 0.3, "simulations": 30, "target": 0.5}
    assert power("interval", **plan).needed == pytest.approx(closed * (1 + 3 * 0.3), rel=0.15)  # Kish's design effect


@pytest.mark.slow
def test_an_audit_at_chance_is_called_clean_when_its_interval_is_narrow_enough() -> None:
    # one attacker at 1/2 is clean when |accuracy − 1/2| + half-width stays below 5 points; two-sided
    spread = 0.5 / math.sqrt(2000)
    expected = 2 * NORMAL.cdf((0.05 - 1.96 * spread) / spread) - 1
    plan = {"items": 2000, "attackers": ("lm-mean",), "simulations": 200, "target": 0.0}
    assert power("clean", **plan).power == pytest.approx(expected, abs=0.04)
    assert power("leak", **{**plan, "accuracy": 0.7, "items": 400}).power == 1


def test_a_planned_audit_has_the_samples_looks_and_spread_of_a_real_one() -> None:
    """More than 2,000 items do not narrow a language model's interval: an audit would not show it more."""
    audit = _Common(PowerOptions(items=6000, accuracy=0.5), 6000, np.random.default_rng(0))
    counts = {name: audit.answers(entry_of(name)).pairs.n_items for name in ("length-chars", "lm-mean", "ensemble")}
    assert counts == {"length-chars": 6000, "lm-mean": 2000, "ensemble": 2500}
    assert [audit.p_factor(entry_of(name)) for name in counts] == [1, 1 / 0.96, 1 / 0.96]
    assert (audit.answers(entry_of("ensemble")).spreads > 1.2).all()
    told = audit.answers(entry_of("length-chars")).raw
    assert np.mean(told[told != 0] > 0) == pytest.approx(0.5, abs=0.03)
    twins = _uniform(PowerOptions(per_image=2, icc=0.5), 6000, np.random.default_rng(0)).reshape(-1, 2)
    assert np.corrcoef(twins.T)[0, 1] == pytest.approx(0.5, abs=0.05)
    named = _Common(PowerOptions(attackers=("lm-mean",), accuracy=0.5), 6000, np.random.default_rng(0))
    assert named.answers(entry_of("lm-mean")).pairs.n_items == 6000  # attackers chosen by name take all
    with pytest.raises(cr.CreperieError, match="did you mean 'surface'"):
        power("clean", attackers=("surfase",), simulations=20)
    with pytest.raises(cr.CreperieError, match="unknown attacker 'lm-mean'"):
        power("leak", attackers=("surface",), through="lm-mean", simulations=20)


@pytest.mark.slow
def test_more_raters_show_an_agreement_with_fewer_items() -> None:
    plan = {"items": 60, "kappa": 0.8, "simulations": 100, "target": 0.0}
    two, five = (power("kappa", raters=n, **plan).power for n in (2, 5))
    assert two + 0.1 < five


@pytest.mark.slow
@pytest.mark.skipif(not RELEASED.exists(), reason="the released files are not at hand")
def test_power_from_two_runs_is_that_of_subsamples_of_real_runs() -> None:
    """Within 4 points. With 200 simulations, the default before, chance alone made up to 7 of them."""
    bench, items = cr.load(f"sugarcrepe++:{RELEASED}"), 80
    runs = [cr.score(bench, f"blind:{name}") for name in ("length-chars", "frequency")]
    predicted = power("compare", runs, items=items, target=0.0, seed=3)
    right = np.stack([run.outcomes("blind") == HIT for run in runs], axis=1).astype(float)
    better, worse = right.T if right[:, 0].mean() > right[:, 1].mean() else right.T[::-1]
    clusters, rng, seen = runs[0].clusters, np.random.default_rng(5), []
    for _ in range(1000):
        images = rng.permutation(clusters.max() + 1)
        rank = np.argsort(images)[clusters]
        some = np.flatnonzero(rank <= np.sort(rank)[items])
        found = compare(np.where(better[some], HIT, MISS), np.where(worse[some], HIT, MISS), clusters=clusters[some])
        seen.append(found.low > 0)
    assert 0.1 < predicted.power < 0.95
    assert predicted.power == pytest.approx(np.mean(seen), abs=0.04)
    assert predicted.difference == pytest.approx(better.mean() - worse.mean())
    discordant = f"--discordant {np.mean(better != worse):.3g} "
    with pytest.raises(cr.CreperieError, match=discordant):  # it said 1 point and planned for the runs' own difference
        power("compare", runs, difference=0.01)


@pytest.mark.parametrize(("enough", "needed"), [(500, 500), (95_000, 95_000), (100_001, None)])
@pytest.mark.parametrize("begin", [400, 60_000])
def test_no_more_than_100_000_items_are_tried(begin: int, enough: int, needed: int | None) -> None:
    """Doubling 60,000 or 51,200 stops at 100,000, where a claim that needs 95,000 is still shown."""
    tried: list[int] = []

    def share(items: int) -> float:
        tried.append(items)
        return float(items >= enough)

    found = _smallest(share, begin, 0.8)
    assert found == (None if needed is None else pytest.approx(needed, rel=0.05))
    assert max(tried) <= 100_000


def test_plans_that_cannot_be() -> None:
    with pytest.raises(cr.CreperieError, match="no two models"):
        power("compare", difference=0.2, discordant=0.1)
    plan = {"items": 200, "accuracy": 0.7, "difference": 0.1, "simulations": 40, "target": 0.0}
    apart = power("compare", **plan, discordant=0.7 * 0.4 + 0.6 * 0.3).power  # as if they erred independently
    assert power("compare", **plan).power == apart < 1
    with pytest.raises(cr.CreperieError, match="did you mean 'kappa'"):
        power("kapa")


def test_commands_draw_their_figures(make_run: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = [make_run(f"fake:{k}", lead=0.4 * k, seed=k) for k in range(7)]  # more than there are kinds of lines
    curve = ((100, 0.2), (400, 0.7), (800, 0.9))
    files = [
        save_figure(item_map(cr.difficulty(runs)), tmp_path / "items.svg"),
        save_figure(ranks_by_choice(robustness(runs)), tmp_path / "ranks.svg"),
        save_figure(power_curve(PowerEstimate("compare", 100, 0.2, 0.01, 500, 0.8, curve)), tmp_path / "power.svg"),
    ]
    shown = [file.read_text(encoding="utf-8") for file in files]
    for words, page in zip(("item–rest correlation", ">6<", "studies that show it"), shown, strict=True):
        assert words in page


def test_exit_codes_of_the_measuring_commands(
    make_run: Callable[..., Run], tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0: the answer is yes; 1: it is no; 2: a mistake, in one line; 3: not shown."""
    pairs = [("A dog bites a man.", "A man bites a dog."), ("Two men ride.", "Two men sit.")]
    save(foil_bench(pairs, "mine"), tmp_path / "b")
    (tmp_path / "same.txt").write_text("two men ride .\n")
    (tmp_path / "other.txt").write_text("Nothing like it.\n")
    runs = [str(make_run(f"fake:{k}", lead=0.8 * k, seed=k).save(tmp_path / "runs").path) for k in range(9)]

    def ends(*args: object) -> int:
        code, out, err = command(*args, "--json")
        assert bool(out) == (code != 2)
        assert code != 2 or len(err.strip().splitlines()) <= 2
        return code

    quick, bench = ("--simulations", "20"), tmp_path / "b"
    assert ends("power", "interval", "--items", "2000", "--width", "0.05", *quick) == 0
    assert ends("power", "interval", "--items", "200", "--width", "0.02", *quick) == 1
    assert ends("power", "compare", "--difference", "0.2", "--discordant", "0.1", *quick) == 2
    assert (ends("ceiling", bench), ends("ceiling", tmp_path / "none")) == (0, 2)
    assert ends("overlap", bench, tmp_path / "other.txt", "--near", "1") == 0
    assert ends("overlap", bench, tmp_path / "same.txt", "--near", "1") == 1
    assert ends("overlap", bench, tmp_path / "none.txt") == 2
    assert (ends("robust", runs[0], runs[8]), ends("robust", *runs, "--wrong", "3/0")) == (0, 2)
    turned = [str(make_run(f"fake:{k}", lead, simple, k).save(tmp_path / "t").path) for k, lead, simple in TURNED]
    assert ends("robust", *turned, "--blind", turned[0]) == 1
    assert ends("stats", tmp_path / "runs", "--table", tmp_path / "t.csv") == 0
    assert (ends("items", *runs), ends("items", *runs[:2])) == (0, 2)
    monkeypatch.setattr(response, "MOST_STEPS", 1)
    assert ends("items", *runs) == 3


def test_equivalence_is_two_one_sided_tests() -> None:
    rng = np.random.default_rng(0)
    a = np.where(rng.random(5000) < 0.8, HIT, MISS)
    b = np.where(rng.random(5000) < 0.02, 1 - a, a)
    same = equivalence(a, b, 0.02)
    error = float((a - b).std()) / math.sqrt(5000)
    assert same.equivalent
    assert same.p == pytest.approx(1 - NORMAL.cdf((0.02 - abs(same.difference)) / error), abs=0.01)
    assert not equivalence(a, b, abs(same.difference) / 2).equivalent
    assert (same.low, same.high) == pytest.approx(
        (same.difference - 1.645 * error, same.difference + 1.645 * error), abs=1e-3
    )


def test_a_ranking_under_every_choice(make_run: Callable[..., Run], tmp_path: Path) -> None:
    runs = [make_run(f"fake:{k}", lead=lead, simple=simple, seed=k) for k, lead, simple in TURNED]
    found = robustness(runs, wrong="0/400")
    assert found.choices == ["itt", "subsets weighed alike"]
    assert found.frame().num_rows == 4
    (pair,) = found.pairs
    hits = [int((run.outcomes("itt") == HIT).sum()) for run in runs]
    assert pair.reversing == abs(hits[0] - hits[1]) // 2 + 1  # half of the lead only levels the two
    assert pair.survives == (pair.reversing > 120 * wrong_labels("0/400")[2])
    assert found.accuracies[0].corrected == found.accuracies[0].accuracy
    noisy = robustness(runs, wrong="10/100")
    assert noisy.ceiling[0] == 0.9
    row = noisy.accuracies[0]
    assert row.corrected * 0.9 + (1 - row.corrected) * 0.1 / 5 == pytest.approx(row.accuracy)  # 2 of 4 captions: 1/6
    assert row.corrected_low < row.corrected < row.corrected_high
    folders = [str(run.save(tmp_path).path) for run in runs]
    left_out = robustness(runs, blind=folders[:1])
    assert left_out.frame().column("choice").to_pylist()[-1] == "without items that blind runs get right"
    answer = CliRunner().invoke(robust_command, [*folders, "--wrong", "3/0", "--json"])
    assert "give the numbers of wrong and of checked items" in str(answer.exception)


def test_a_tie_gains_nothing_by_a_wrong_label_and_missing_items_are_said(tmp_path: Path) -> None:
    """12 wrong labels only level a model that is right on 40 items with one that ties on 12 of them: 7 were printed."""
    bench = foil_bench([("x", "y")] * 40, images="{}.png")
    right = np.tile(np.array([1, 0], np.float32), 40)
    tied, part = right.copy(), right.copy()
    tied[:24], part[:20] = 1, np.nan
    runs = [answered_run(bench, scores, f"m:{name}") for name, scores in (("a", right), ("b", tied))]
    (pair,) = robustness(runs, wrong="1/100").pairs
    assert (pair.reversing, pair.survives) == (None, True)
    notes = robustness([runs[0], answered_run(bench, part, "m:c")]).notes
    assert notes == ("m:c: 10 of 40 items have no score; its rank is over the others",)


@pytest.mark.parametrize("choices", [2, 4])
def test_accuracies_on_right_labels_are_those_of_simulated_answers(choices: int, tmp_path: Path) -> None:
    """Answers and wrong labels drawn one by one. By the formula for two candidates, 4 % of wrong labels moved the
    accuracy of a model with four by 2.2 points, instead of 2.6."""
    rng, items = np.random.default_rng(choices), 20_000
    truth, other = rng.integers(choices, size=items), rng.integers(1, choices, size=(3, items))
    picked = [np.where(rng.random(items) < a, truth, (truth + o) % choices) for a, o in zip((0.7, 0.3), other)]
    label = np.where(rng.random(items) < 0.04, (truth + other[2]) % choices, truth)
    head = ["model", *(f"x{k}" for k in range(items))]
    rows = [head, *([f"m{k}", *(p == label).astype(int).astype(str)] for k, p in enumerate(picked))]
    (tmp_path / "m.csv").write_text("\n".join(map(",".join, rows)))
    runs = import_responses(tmp_path / "m.csv", options=ResponseOptions(choices))
    found = {row.model: row for row in robustness(runs, wrong="4/100").accuracies}
    for model, p in enumerate(picked):
        assert found[f"table:m{model}"].corrected == pytest.approx((p == truth).mean(), abs=0.004)


def test_captions_found_in_a_file_and_in_a_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("rensa")
    texts = [("A brown dog runs over the green grass.", "A cat."), ("Two men ride bikes.", "Two men ride horses.")]
    bench = foil_bench(texts, "mine", images="{}.png")
    save(bench, tmp_path / "mine")
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("1\ta brown dog runs over the green grass !\n2\tA brown dog runs over green grass\n3\tNothing.\n")
    answer = CliRunner().invoke(
        overlap_command, [str(tmp_path / "mine"), str(corpus), str(tmp_path / "mine"), "--json"]
    )
    assert "exact" in answer.output
    found, same = json.loads(answer.output)["overlaps"]
    assert (found["texts"], found["captions"], found["exact"], found["near"], found["items"]) == (3, 4, 1, 0, 1)
    # 7 words and 5 pairs of neighbours of 16 in all are in both
    assert [(m["line"], m["similarity"]) for m in found["matches"]] == [(1, 1.0), (2, 12 / 16)]
    assert (same["exact"], same["items"], same["images"]) == (4, 2, 2)
    assert [m.line for m in overlap(bench, corpus, near=0.8).matches] == [1]
