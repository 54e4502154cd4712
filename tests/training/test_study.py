"""The study of hard negatives, its tables, and the command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from creperie.bench import load, save
from creperie.core import UnknownNameError
from creperie.training import (
    ExamResult,
    TrainingStudy,
    gains_table,
    read_study,
    run_study,
    table_5,
    table_10,
    write_study,
)
from creperie.training.architecture import split_words
from creperie.training.findings import arms_to_run
from creperie.training.lab import COLUMNS
from creperie.training.presets import PRESETS
from creperie.training.scenes import TYPES, biased_scenes, scene_pairs, with_drawn
from creperie.world import World, make_world

NAMES = tuple(f"{bench} {name}" for bench, names in COLUMNS.items() for name in names)


def made_study(arms: tuple[str, ...], values: dict[str, list[float]]) -> TrainingStudy:
    """A study with the same number in every column."""
    seeds = (0, 1)
    base = tuple(ExamResult("base", s, dict.fromkeys(NAMES, 50.0), {}, 0, 0.0, "") for s in seeds)
    sat = tuple(ExamResult(arm, s, dict.fromkeys(NAMES, values[arm][s]), {}, 7, 0.0, "") for s in seeds for arm in arms)
    return TrainingStudy("made", arms, seeds, sat, base, 0.0, NAMES, ("a note",))


def test_gains_are_taken_seed_by_seed_and_marked_above_ten() -> None:
    found = made_study(("none", "negate", "swap"), {"none": [50, 60], "negate": [70, 62], "swap": [60, 70]})
    assert found.gains("negate", "clean add") == [20, 2]
    rows = {row[0]: row[1] for row in table_5(found).texts}
    assert rows["negate"] == "66.0 [62.0, 70.0] ▲"  # 11 points on average
    assert rows["swap"] == "65.0 [60.0, 70.0]"  # 10 points are not more than 10
    assert {row[0]: row[1] for row in gains_table(found).texts}["swap"] == "+10.0 [+10.0, +10.0]"


def test_table_10_sets_refined_beside_template_foils() -> None:
    arms = ("none", "replace", "all", "refined", "replace-refined")
    table = table_10(made_study(arms, {arm: [50.0, 52.0] for arm in arms}))
    assert [row[:3] for row in table.rows] == [
        ("none", "without foils", 7),
        ("replace", "template foils", 7),
        ("replace", "refined foils", 7),
        ("replace + swap + negate", "template foils", 7),
        ("replace + swap + negate", "refined foils", 7),
    ]
    assert not table_10(made_study(("none", "swap"), {"none": [1, 2], "swap": [1, 2]})).rows


def test_a_study_that_is_not_finished_has_tables_of_what_there_is() -> None:
    whole = made_study(("none", "negate", "swap"), {"none": [50, 60], "negate": [70, 62], "swap": [60, 70]})
    cut = replace(whole, sat=whole.sat[:5])  # the second seed has no swap yet
    assert not cut.finished
    assert cut.gains("swap", "clean add") == [10]
    assert {row[0]: row[1] for row in table_5(cut).texts}["swap"] == "60.0"
    assert "5 of 6 trainings" in table_5(cut).note
    start = replace(whole, sat=whole.sat[:1])
    assert [row[0] for row in table_5(start).rows] == ["before", "none"]
    assert gains_table(start).rows == ()


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = made_study(("none", "negate"), {"none": [50, 60], "negate": [70, 62]})
    write_study(found, tmp_path / "new")
    assert read_study(json.loads((tmp_path / "new" / "study.json").read_text())) == found


def test_every_arm_has_a_refined_one() -> None:
    arms = arms_to_run(["every"])
    assert arms[0] == "none"
    table = table_10(made_study(arms, {arm: [50.0, 52.0] for arm in arms}))
    assert [row[1] for row in table.rows] == ["without foils", *["template foils", "refined foils"] * 4]
    assert len({row[:2] for row in table.rows}) == 9


def test_scenes_are_the_same_for_the_same_seed_and_their_foils_are_false() -> None:
    from creperie.world import Graph, is_false, scene_of

    biased, again, other = (biased_scenes(60, seed) for seed in (4, 4, 5))
    assert biased.data.examples == again.data.examples != other.data.examples
    assert biased.foils == again.foils
    for name in TYPES:
        assert sum(map(bool, biased.foils[name])) >= 5
        for example, foil in zip(biased.data.examples, biased.foils[name], strict=True):
            assert not foil or (foil != example.caption and is_false(foil, Graph(scene_of(example.image))))
    both = biased.with_types(("negate", "replace"))
    assert {len(e.foils) for e in both.examples} <= {1, 2}
    assert both.examples[0].foils[0] == biased.foils["negate"][0]
    with pytest.raises(UnknownNameError, match="did you mean 'negate'"):
        biased.with_types(("negte",))


def test_pictures_do_not_depend_on_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.training import scenes

    biased = biased_scenes(5, 4, 32).data
    drawn = [with_drawn(biased, 32, workers) for workers in (1, 2)]
    for example in biased.examples:
        one, two = (np.asarray(data.open(example.image)) for data in drawn)
        assert np.array_equal(one, two)
        assert np.array_equal(one, np.asarray(biased.open(example.image)))
    monkeypatch.setattr(scenes, "PART", 6)
    one, two = scene_pairs(10, 3, 32), scene_pairs(10, 3, 32, workers=2)
    assert one.examples == two.examples
    assert np.array_equal(np.asarray(one.open(one.examples[7].image)), np.asarray(two.open(one.examples[7].image)))
    first, second = one.examples[:2]
    assert first.foils == (second.caption,)
    assert (first.alternatives, second.alternatives) == ((second.image,), (first.image,))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingStudy, Path]:
    out = tmp_path_factory.mktemp("study")
    return run_study("tiny", out, seeds=(0,), arms=("negate", "refined"), device="cpu"), out


@pytest.mark.slow
def test_from_scratch_every_arm_begins_with_the_same_fresh_weights(tmp_path: Path) -> None:
    small = replace(PRESETS["tiny"].model, residual=True, vision_layers=0)
    found = run_study(
        replace(PRESETS["tiny"], model=small, scratch=True), tmp_path, seeds=(0,), arms=["negate"], device="cpu"
    )
    assert read_study(found.document).scratch
    documents = [json.loads((tmp_path / "seed-0" / n / "train.json").read_text()) for n in ("base", "none", "negate")]
    assert [d["steps"] for d in documents] == [0, 4, 4]  # the base is not trained, arms take its settings
    assert len({d["job"]["weights"] for d in documents}) == 1


@pytest.mark.slow
def test_a_whole_study(tiny: tuple[TrainingStudy, Path]) -> None:
    found, _ = tiny
    assert found.arms == ("none", "negate", "refined")
    assert [s.arm for s in found.sat] == ["none", "negate", "refined"]
    for sat in found.sat:
        swaps = [sat.kinds[k] for k in COLUMNS["clean"]["swap"]]
        assert sat.values["clean swap"] == pytest.approx(sum(swaps) / 2)
        assert sat.values.keys() == set(NAMES)
    none, negate, refined = found.sat
    assert none.foils == 0
    assert negate.foils == 64 > refined.foils > 0
    assert found.notes[0].startswith("foils left after refinement against ")
    assert len(table_5(found).rows) == 4


def test_a_study_called_again_trains_nothing_and_finds_the_same(
    tiny: tuple[TrainingStudy, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, out = tiny
    stamps = {p: p.stat().st_mtime_ns for p in out.rglob("model.safetensors")}
    monkeypatch.setattr("creperie.training.lab.keep_refined", None)  # nor are the foils refined once more
    told: list[TrainingStudy] = []
    again = run_study("tiny", out, seeds=(0,), arms=("negate", "refined"), device="cpu", tell=told.append)
    assert [len(part.sat) for part in told] == [1, 2, 3]
    assert again.notes == found.notes
    assert {p: p.stat().st_mtime_ns for p in out.rglob("model.safetensors")} == stamps
    assert (again.sat, again.seconds) == (found.sat, found.seconds)


def test_the_exam_agrees_with_scoring(tiny: tuple[TrainingStudy, Path], tmp_path: Path, monkeypatch: Any) -> None:
    """The same model and items through `creperie score`'s own way."""
    from creperie.scoring import score
    from creperie.world import World, make_world

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))
    found, _ = tiny
    bench = make_world(World(items=4, kinds=COLUMNS["clean"]["replace"], split="test", size=64))
    run = score(bench, found.sat[1].model, tasks=["itt"])
    expected = {r.subset: 100 * r.accuracy for r in run.evaluate() if r.subset in COLUMNS["clean"]["replace"]}
    assert {k: found.sat[1].kinds[k] for k in expected} == pytest.approx(expected)


def test_arms_and_presets_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'negate'"):
        run_study("tiny", tmp_path, arms=("negat",))
    with pytest.raises(UnknownNameError, match="did you mean 'small'"):
        run_study("smal", tmp_path)


# -- the command -----------------------------------------------------------------------------------------------------


def called(*args: str) -> Any:
    from creperie.cli.train import train

    return CliRunner().invoke(train, [*args, "--json"], standalone_mode=False)


def test_the_command_trains_from_a_json_file_and_goes_on_from_there(tmp_path: Path, scenes: Any) -> None:
    from creperie.bench import save

    save(scenes, tmp_path / "bench", copy_images=True)
    config = tmp_path / "model.json"
    config.write_text(json.dumps({"size": 32, "channels": [8, 8, 16], "text_width": 16, "heads": 2, "joint": 16}))
    common = ["--data", str(tmp_path / "bench"), "--batch", "8", "--warmup", "0", "--steps", "2", "--device", "cpu"]
    first = called("--model", str(config), *common, "--out", str(tmp_path / "a"))
    assert first.exception is None, first.exception
    found = json.loads(first.stdout)
    assert found["finished"]
    assert found["model"] == f"small:{tmp_path / 'a' / 'model'}"
    second = called(
        "fit", "--model", found["model"], *common, "--negatives", f"own,{tmp_path / 'bench'}", "--out",
        str(tmp_path / "b"),
    )  # fmt: skip
    assert second.exception is None, second.exception
    third = called("fit", "--model", found["model"], *common, "--negatives", "none", "--out", str(tmp_path / "c"))
    assert json.loads((tmp_path / "c" / "train.json").read_text())["job"]["settings"]["objective"] == "clip"
    assert third.exception is None, third.exception


@pytest.mark.slow
def test_negatives_come_from_makers_and_wrong_names_are_told(scenes: Any) -> None:
    from creperie.training import Negatives, training_data

    pytest.importorskip("spacy")
    made = training_data(scenes, Negatives(("rules:shuffle",)))
    assert made.with_foils >= 30
    for example in made.examples:
        assert example.caption not in example.foils
        for foil in example.foils:  # a shuffle keeps the words
            assert Counter(split_words(foil)) == Counter(split_words(example.caption))
    with pytest.raises(UnknownNameError, match="did you mean 'rules:swap'"):
        training_data(scenes, Negatives(("rules:swpa",)))


@pytest.mark.slow
def test_foils_do_not_depend_on_the_engine(scenes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.engine import Local
    from creperie.making import ParsedMaker
    from creperie.training import Negatives, training_data

    pytest.importorskip("spacy")
    monkeypatch.setattr(ParsedMaker, "chunk", 10)  # so that several processes have something to do
    wanted = Negatives(("rules:shuffle",), seed=4)
    alone, two = (training_data(scenes, wanted, engine=engine) for engine in (None, Local(2)))
    assert alone.with_foils >= 30
    assert alone.digest == two.digest
    assert alone.digest != training_data(scenes, Negatives(("rules:shuffle",), seed=5)).digest


@pytest.mark.slow
def test_a_study_on_data_of_ones_own(clip_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    for name, kinds, split in (
        ("data", ("swap_obj", "spatial"), "train"),
        ("biased", ("negate_there",), "test"),
        ("clean", ("swap_obj", "replace_obj"), "test"),
    ):
        save(make_world(World(8, kinds, split=split, size=32)), tmp_path / name, copy_images=True)
    result = called(
        "study", "--model", f"hf:{clip_folder}", "--data", str(tmp_path / "data"), "--biased", str(tmp_path / "biased"),
        "--clean", str(tmp_path / "clean"), "--arms", "negate", "--seeds", "1", "--epochs", "1", "--batch", "8",
        "--warmup", "0", "--device", "cpu", "--workers", "2", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert result.exception is None, result.exception
    found = json.loads(result.stdout)
    assert found["columns"] == ["biased negate_there", "clean swap_obj", "clean replace_obj"]
    assert [s["arm"] for s in found["sat"]] == ["none", "negate"]
    assert found["sat"][1]["foils"] >= 12 > found["sat"][0]["foils"] == 0
    assert json.loads((tmp_path / "out" / "study.json").read_text())["columns"] == found["columns"]


@pytest.mark.slow
def test_the_size_of_a_study_can_be_changed_and_its_page_made(tmp_path: Path) -> None:
    from creperie.cli.report import report

    common = ["study", "--world", "--preset", "tiny", "--seeds", "1", "--arms", "negate", "--device", "cpu"]
    result = called(*common, "--steps", "3", "--arm-steps", "3", "--items", "3", "--out", str(tmp_path / "out"))
    assert result.exception is None, result.exception
    found = json.loads(result.stdout)
    assert found["preset"] == "tiny, steps 3, arm steps 3, items 3"
    assert found["finished"]
    lines = (tmp_path / "out" / "seed-0" / "negate" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 3
    thirds = {round(3 * value / 100, 6) % 1 for value in found["sat"][0]["kinds"].values()}
    assert thirds == {0.0}  # of three items a kind
    page = tmp_path / "page.html"
    made = CliRunner().invoke(report, [str(tmp_path / "out"), "--html", str(page)])
    assert made.exit_code == 0, made.output
    assert "steps 3" in page.read_text()
    other = called(*common, "--steps", "4", "--out", str(tmp_path / "out"))
    assert "settings differ" in str(other.exception)


def test_a_study_must_say_on_what() -> None:
    for more in ((), ("--dry-run",)):
        result = called("study", "--out", "nowhere", *more)
        assert "pass --world" in str(result.exception)


def test_a_study_can_be_previewed(tmp_path: Path) -> None:
    """Two seeds of the base and of two arms (none goes along); of own data, two arms of 3 epochs."""
    out = tmp_path / "out"
    args = ("study", "--world", "--preset", "tiny", "--seeds", "2", "--arms", "negate", "--out", str(out), "--dry-run")
    plan = json.loads(called(*args).stdout)
    assert (plan["trainings"], plan["images"]) == (2 * 3, 2 * (4 * 16 + 2 * 2 * 16))
    save(make_world(World(8, ("swap_obj",), size=32)), tmp_path / "data")
    own = [option for name in ("data", "biased", "clean") for option in (f"--{name}", str(tmp_path / "data"))]
    result = called("study", "--model", "hf:x", *own, "--epochs", "3", "--arms", "negate", "--seeds", "1", "--dry-run")
    plan = json.loads(result.stdout)
    assert (plan["trainings"], plan["images"]) == (2, 2 * 3 * len(load(tmp_path / "data")))
    assert not out.exists()
