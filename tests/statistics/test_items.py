"""Item response theory and studies of items, on simulated models whose abilities and items are known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from research.items import area, seed_answers

import creperie as cr
from creperie.cli.items import items as items_command
from creperie.metrics import HIT
from creperie.scoring import Run
from creperie.statistics import fit_responses, picture_gain, robustness
from creperie.statistics.items import item_rest, short_form

MODELS, ITEMS = 40, 500


def simulated(
    seed: int, spread: float, wrong: float = 0.0, mean: float = 0.2, chance: float = 0
) -> dict[str, np.ndarray]:
    """Answers by a two-parameter model: abilities N(0, 1), difficulties N(0, spread), discriminations log-normal. Those
    who do not know the answer guess, right by `chance`."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=MODELS), rng.normal(0, spread, ITEMS)
    a = np.exp(rng.normal(mean, 0.2, ITEMS))
    known = 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    right = (rng.random(known.shape) < chance + (1 - chance) * known).astype(float)
    flipped = rng.permutation(ITEMS) < wrong * ITEMS
    right[flipped] = 1 - right[flipped]
    return {"right": right, "theta": theta, "a": a, "b": b, "flipped": flipped}


def known_abilities(data: dict[str, np.ndarray], spread: float) -> np.ndarray:
    """Difficulties by Bayes' rule where abilities and the true distributions of items are known: the best there is."""
    z = np.linspace(-4, 4, 61)
    slopes, places = np.exp(0.2 + 0.2 * z[::4]), spread * z
    logit = slopes[:, None, None] * (data["theta"] - places[:, None])
    fit = np.einsum("abj,ij->iab", logit, data["right"]) - np.logaddexp(0, logit).sum(axis=-1)
    log = fit - np.add.outer(z[::4] ** 2, z**2) / 2
    weight = np.exp(log - log.max(axis=(1, 2), keepdims=True))
    return np.asarray((weight * places).sum(axis=(1, 2)) / weight.sum(axis=(1, 2)))


def r(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(x, y)[0, 1])


@pytest.mark.parametrize(("spread", "least"), [(1.5, 0.95), (1.0, 0.92)])
@pytest.mark.parametrize("seed", [1, 2])
def test_difficulties_are_recovered(spread: float, least: float, seed: int) -> None:
    data = simulated(seed, spread)
    fit = fit_responses(data["right"])
    assert fit.converged
    assert r(fit.difficulty, data["b"]) >= least
    assert r(fit.difficulty, data["b"]) >= r(known_abilities(data, spread), data["b"]) - 0.005
    assert r(fit.ability, data["theta"]) > 0.98
    inside = np.abs(fit.difficulty - data["b"]) < 1.96 * fit.difficulty_se
    assert 0.88 < inside.mean() < 0.99


def test_discriminations_are_recovered_and_one_for_all_is_theirs() -> None:
    data = simulated(3, 1.0, mean=0.0)
    data["a"][:250] = 0.4
    data["a"][250:] = 2.0
    rng = np.random.default_rng(3)
    logit = data["a"][:, None] * (data["theta"] - data["b"][:, None])
    right = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    two = fit_responses(right)
    assert r(np.log(np.maximum(two.discrimination, 0.05)), np.log(data["a"])) > 0.8
    one = fit_responses(right, "1pl")
    sizes = np.abs(one.discrimination)  # negative where a label looks wrong
    assert np.ptp(sizes) < 1e-9
    assert 0.4 < sizes[0] < 2


@pytest.mark.parametrize("chance", [0.5, 0.25])
def test_guessing_biases_neither_difficulty_nor_discrimination(chance: float) -> None:
    """Without a floor, difficulties of two-choice items are 2 too low and covered in 10 to 22 % of the cases, and
    discriminations are half of the truth."""
    data = simulated(11, 1.0, chance=chance)
    fit = fit_responses(data["right"], floor=chance)
    theta = data["theta"]
    b = (data["b"] - theta.mean()) / theta.std()  # on the scale of the models at hand
    assert 0.91 < (np.abs(fit.difficulty - b) < 1.96 * fit.difficulty_se).mean() < 0.98
    assert abs((fit.difficulty - b).mean()) < 0.1
    assert fit.discrimination.mean() == pytest.approx((data["a"] * theta.std()).mean(), rel=0.1)


def test_at_the_difficulty_half_of_the_models_know_the_answer() -> None:
    data = simulated(4, 1.0, chance=0.5)
    fit = fit_responses(data["right"], floor=0.5)
    near = np.abs(fit.ability - fit.difficulty[:, None]) < 0.15
    known = 1 / (1 + np.exp(-data["a"][:, None] * (data["theta"] - data["b"][:, None])))
    assert known[near].mean() == pytest.approx(0.5, abs=0.03)
    assert (0.5 + 0.5 * known)[near].mean() == pytest.approx(0.75, abs=0.015)


def test_floors_differ_between_items_and_unanswered_cells_are_expected() -> None:
    one, other = (simulated(6, 1.0, chance=c)["right"][:250] for c in (0.5, 0.25))
    right = np.concatenate([one, other])
    right[3, 4] = np.nan
    fit = fit_responses(right, floor=np.repeat([0.5, 0.25], 250)[:, None])
    assert fit.expected[:250].min() > 0.35
    assert fit.expected[250:].min() < 0.3
    assert 0.3 < fit.expected[3, 4] < 1


def test_the_flag_does_not_tell_a_wrong_label_from_a_misleading_item() -> None:
    """Every model is right on 10 % of the misleading items: their labels are right, and they are flagged as well."""
    data = simulated(8, 1.0, chance=0.5)
    rng = np.random.default_rng(0)
    data["right"][:20] = rng.random((20, MODELS)) < 0.1
    fit = fit_responses(data["right"], floor=0.5)
    assert (fit.flipped[:20] > 3).mean() > 0.9
    assert (fit.flipped[20:] > 3).mean() < 0.02
    assert (fit.discrimination[:20] < 0).mean() > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_mislabelled_items_are_among_the_worst(seed: int) -> None:
    data = simulated(seed, 1.5, wrong=0.05)
    worst = np.argsort(-fit_responses(data["right"]).flipped)[: ITEMS // 10]
    assert data["flipped"][worst].sum() / data["flipped"].sum() >= 0.8


def test_unanswered_items_change_little() -> None:
    data = simulated(5, 1.0)
    some = data["right"].copy()
    some[np.random.default_rng(0).random(some.shape) < 0.2] = np.nan
    assert r(fit_responses(some).difficulty, fit_responses(data["right"]).difficulty) > 0.95


def test_item_rest_is_a_correlation() -> None:
    right = simulated(1, 1.0)["right"][:30]
    rest = np.delete(right, 4, axis=0).mean(axis=0)
    assert item_rest(right)[4] == pytest.approx(r(right[4], rest))
    right[4] = 1
    assert np.isnan(item_rest(right)[4])


def test_a_short_form_beats_random_items_on_models_it_has_not_seen() -> None:
    short = short_form(simulated(1, 1.5)["right"], 50)
    assert len(set(short.items.tolist())) == 50
    assert short.pairs > short.random_pairs
    assert short.error < 0.1


def test_a_study_of_runs(make_run: Callable[..., Run], tmp_path: Path) -> None:
    runs = [make_run(f"fake:{k}", lead=0.4 * k, seed=k) for k in range(9)]
    wrong = 7
    for run in runs:  # its label is turned round: the better the model, the surer it is wrong
        cells = run.table.column("image_text").to_pylist()
        cells[wrong] = [-3 * cell for cell in cells[wrong]]
        column = pa.array(cells, pa.list_(pa.float32()))
        place = run.table.column_names.index("image_text")
        object.__setattr__(run, "table", run.table.set_column(place, "image_text", column))
    study = cr.difficulty(runs, task="itt", response="2pl", short=0.1)
    assert int(study.suspicion.argmax()) == wrong
    assert study.frame().column("id")[0].as_py() == runs[0].table.column("id")[wrong].as_py()
    assert study.document()["short_form"]["n"] == 12
    best = study.document()["models"][0]
    place = list(study.answers.models).index(best["model"])
    assert (best["ability"], best["se"]) == (study.fit.ability[place], study.fit.ability_se[place])
    assert (study.answers.chance == 1 / 6).all()  # two captions above two foils
    assert study.fit.difficulty == pytest.approx(fit_responses(study.answers.right, floor=1 / 6).difficulty)
    assert any("answers alone cannot tell which" in note for note in study.document()["notes"])
    assert {pair.a for pair in study.agreement} <= {run.model for run in runs}
    few = cr.difficulty(runs[:4])
    assert few.fit is None
    assert "difficulty" not in few.frame().column_names
    alike = [make_run(f"fake:{k}", lead=0.6, seed=k) for k in range(6)]
    text = CliRunner().invoke(items_command, [str(run.save(tmp_path / "few").path) for run in alike]).output
    assert "suspicious" in set(
        cr.difficulty(alike).kinds
    )  # of four models nothing is known about guesses, and nothing about log odds
    assert ("than guesses would" in text, "log odds" in text) == (False, False)
    assert "−z of its correlation with the other items" in text
    assert "without a response model" in text
    assert "of 6 models, one below -0.74 makes an item suspicious" in text  # tanh(1.645 / sqrt(3))
    doubts = [v for v in sorted(cr.difficulty(alike).suspicion, reverse=True) if v > 1.645]
    top = next(k for k in range(1, len(doubts)) if math.isclose(doubts[k - 1], doubts[k]))
    folders = [str(run.save(tmp_path / "few").path) for run in alike]
    text = CliRunner().invoke(items_command, [*folders, "--top", str(top)]).output
    assert f"{doubts.count(doubts[top - 1]) - 1} more are as suspicious as the last one shown" in text
    with pytest.raises(cr.CreperieError, match="at least 3 models"):
        cr.difficulty(runs[:2])
    with pytest.raises(cr.CreperieError, match="at least 8 models"):
        cr.difficulty(runs[:4], response="2pl")
    folders = [str(run.save(tmp_path).path) for run in runs]
    answer = CliRunner().invoke(items_command, [*folders, "--json", "--table", str(tmp_path / "items.csv")])
    document = json.loads(answer.output)
    assert sum(document["kinds"].values()) == len(document["items"]) == 120
    assert (tmp_path / "items.csv").read_text().count("\n") == 121


# -- what the picture adds ---------------------------------------------------------------------------------------------


def seen_and_blind(seed: int, models: int = 16, items: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers with and without the picture, and what each item is solved by: text, picture, or neither."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(["text", "picture", "neither"], items // 3)
    theta = rng.normal(size=models)
    text = np.where(kind == "text", 0.95, 0.5)[:, None] + np.zeros(models)
    seen = np.where(kind == "picture", 2.0, -4.0)[:, None] + 0.5 * theta
    share = text + (1 - text) / (1 + np.exp(-seen))
    right, blind = ((rng.random(p.shape) < p).astype(float) for p in (share, text))
    return right, blind, kind


def test_items_are_separated_into_those_of_text_and_those_that_need_the_picture() -> None:
    right, blind, kind = seen_and_blind(1)
    gain = picture_gain(right, blind, np.full(len(right), 0.5))
    assert (gain.solved_by == kind).mean() > 0.85
    assert gain.text[kind == "text"].mean() == pytest.approx(0.95, abs=0.06)  # shrunk to the mean of all items
    assert gain.picture[kind == "picture"].mean() == pytest.approx(0.38, abs=0.06)
    assert abs(gain.picture[kind != "picture"].mean()) < 0.05
    few = picture_gain(right[:, :4], blind[:, :4], np.full(len(right), 0.5))
    assert few.fit is None
    assert few.picture.mean() == pytest.approx((right - blind)[:, :4].mean())


def test_blind_twins_among_the_runs_are_found(
    make_run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(f"fake:{k}", lead=0.5 * k, seed=k) for k in range(9)]
    twins = [make_run(f"fake:{k}", lead=0.2 if k else 2, seed=50 + k) for k in range(9)]  # misled by pictures: fake:0
    for run in twins:
        run.document["benchmark"]["name"] += "~noise"
        run.document["name"] += "~noise"
    study = cr.difficulty([*runs, *twins])
    assert study.answers.models == [run.model for run in runs]
    assert study.gain.picture[:, 8].mean() > 0.3 > study.gain.picture[:, 0].mean()
    assert {"text", "picture", "solved_by"} <= set(study.frame().column_names)
    shares = {run: [np.mean(one.outcomes("itt") == HIT) for one in pair] for run, *pair in zip(range(9), runs, twins)}
    for row in study.abilities():  # as counted, not as a model in which pictures never mislead expects
        seen, unseen = shares[int(row["model"][-1])]
        assert (row["right"], row["text"], row["picture"]) == pytest.approx((seen, unseen, seen - unseen))
        assert row["picture_low"] < row["picture"] < row["picture_high"]
    assert "does not fit what the picture adds to fake:0" in study.notes[-1]
    ranked = robustness([*runs, *twins])
    assert ({r.name for r in ranked.ranks}, ranked.notes) == ({r.model for r in runs}, ("9 blind twins not ranked",))
    plain = cr.difficulty(runs)
    assert plain.gain is None
    with pytest.raises(cr.CreperieError, match="none of the model fake:8"):
        cr.difficulty([*runs, *twins[:8]])
    folders = [str(run.save(tmp_path).path) for run in [*runs, *twins]]
    answer = CliRunner().invoke(items_command, folders)
    assert "known to at least half of the models" in answer.output
    assert "the picture adds" in answer.output
    monkeypatch.setattr("creperie.statistics.response.MOST_STEPS", 1)
    assert "did not converge" in CliRunner().invoke(items_command, folders[:9]).output


RESPONSES = Path(__file__).resolve().parents[3] / "shared" / "data" / "outside" / "responses"


@pytest.mark.skipif(not RESPONSES.is_dir(), reason="../shared/data/outside/responses is not here")
def test_real_answers_of_21_models_with_and_without_the_picture() -> None:
    """M3IRT's SEED-Bench answers (arXiv 2603.02663), 250 items and 125 whose picture was exchanged: what text alone
    gives is recovered for models that had no part in it, and exchanged pictures are found at least as well as without
    the blind answers."""
    answers = seed_answers(RESPONSES)
    rng = np.random.default_rng(0)
    sound = rng.permutation(np.flatnonzero(answers.kind == "sound"))[:250]
    exchanged = rng.permutation(np.flatnonzero(answers.kind == "image"))[:125]
    own = np.concatenate([sound, exchanged])
    full, blind = answers.full[own], answers.blind[own]
    spoiled = np.arange(len(own)) >= 250
    first = picture_gain(full[:, ::2], blind[:, ::2], np.full(len(own), 0.25))
    no_picture_needed = blind[:, 1::2].mean(axis=1) >= 0.625
    assert area(first.text.mean(axis=1), no_picture_needed) > 0.85
    gain = picture_gain(full, blind, np.full(len(own), 0.25))
    plain = fit_responses(full, floor=0.25)
    assert area(gain.fit.flipped, spoiled) > area(plain.flipped, spoiled) - 0.01
    assert area(gain.fit.flipped, spoiled) > 0.75
