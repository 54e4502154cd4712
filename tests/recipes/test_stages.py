"""Stages by the papers' procedures: who is asked about what, which items are compared, what released answers say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cookbook import recipe_of, stages_of
from foils import foil_bench, foil_items
from PIL import Image

from creperie.bench import Item, from_items, load, open_store, save
from creperie.cli import main
from creperie.cli.cook import _numbers_of
from creperie.core import CreperieError, write_json
from creperie.making import MakerOptions, build_maker, captions_of, written_prompts
from creperie.models import find_prompt
from creperie.recipes import (
    CookOptions,
    chosen_recipe,
    directions,
    paper_status,
    plan_recipe,
    read_recipe,
    run_digest,
    runs_said,
    status_page,
    totals,
    verify_runs,
)
from creperie.recipes.judging import decided, runs_in
from creperie.recipes.kitchen import processor_seconds, run_stages
from creperie.recipes.making import one_image_folder, run_make
from creperie.recipes.people import PEOPLE, _fields, run_people
from creperie.recipes.status import AgreedCell, PaperPart
from creperie.recipes.steps import STEPS, StageJob, work_of
from creperie.recipes.tabling import write_results
from creperie.recipes.training import one_thread, run_train, run_trainings, run_tune
from creperie.reporting import RecipeFindings, fact_rows, fill_table, published_table
from creperie.world import World, make_world


def test_a_validator_is_planned_with_every_pair_that_it_is_asked_about(tmp_path: Path) -> None:
    """SugarCrepe++: 4,757 triples, two questions each; a plan that counts items halves them."""
    recipe = recipe_of("sugarcrepe++", "paper")
    lines = {line.stage.name: line for line in plan_recipe(recipe, tmp_path)}
    assert (lines["validate"].expected.items, lines["validate"].expected.calls) == (4757, 2 * 4757)


def question(
    texts: list[str], options: list[tuple[str, str]], kind: str = "choice", quote: bool = False
) -> dict[str, Any]:
    listed = [{"value": value, "label": label, "quote": quote} for value, label in options]
    field = {"name": "x", "kind": kind, "options": listed, "when": None, "low": -5, "high": 5, "value": ""}
    return {"texts": [["", text] for text in texts], "fields": [field]}


def test_scripted_annotators_answer_alike_in_whatever_order_they_are_asked() -> None:
    """The server shuffles captions and options by a secret; what is said about each of them must not depend on it."""
    ask = [("0", "the first"), ("1", "the second"), ("tie", "neither")]
    for n in range(40):
        who, a, b = f"0/{n}", f"a dog {n}", f"a cat {n}"
        one, two = (_fields(question(["caption", *pair], ask), "better-foil", who)["x"] for pair in ((a, b), (b, a)))
        assert {one: two} in ({"0": "1"}, {"1": "0"}, {"tie": "tie"})
        left, right = (_fields(question([*pair], [], "scale"), "bias-rating", who)["x"] for pair in ((a, b), (b, a)))
        assert left == -int(right)
        shown = [[("0", a), ("1", b)], [("0", b), ("1", a)]]
        picked = [_fields(question([], options, quote=True), "find-negative", who)["x"] for options in shown]
        assert dict(shown[0])[str(picked[0])] == dict(shown[1])[str(picked[1])]
        foils = [[("0", a), ("1", b)], [("1", b), ("0", a)]]  # candidates of a triplet, in the order of the page
        asked = [question([], options, quote=True) for options in foils]
        for one in asked:
            one["fields"][0]["name"] = "foil"
        assert len({_fields(one, "triplet-check", who)["foil"] for one in asked}) == 1


def test_scripted_experts_choose_a_foil_about_the_same_things() -> None:
    """VISLA, section 3.3: the negative contradicts the arrangement "of the objects considered in the positives"."""
    true = ["The cat is on the bed.", "The bed is under the cat."]
    near, far, other = "The cat is under the bed.", "The car is under the bed.", "A dog sleeps."
    said = []
    for n in range(40):
        asked = question([*true, far, near, other], [("0", far), ("1", near), ("2", other)], quote=True)
        asked["fields"][0]["name"] = "foil"
        verdicts = [{"value": v, "label": v} for v in ("edit", "invalid", "unsure", "valid")]
        asked["fields"].append({"name": "verdict", "kind": "choice", "options": verdicts, "when": None})
        said.append(_fields(asked, "triplet-check", f"0/{n}"))
    assert sum(answer["foil"] == "1" for answer in said) >= 34
    assert sum(answer["verdict"] == "valid" for answer in said) >= 34
    none = question([*true, far, other], [("0", far), ("2", other)], quote=True)
    none["fields"] = [{**none["fields"][0], "name": "foil"}, asked["fields"][1]]
    answers = [_fields(none, "triplet-check", f"0/{n}")["verdict"] for n in range(40)]
    assert answers.count("invalid") >= 34  # no foil about these things: the item is dropped


def test_training_in_a_recipe_does_not_depend_on_the_number_of_threads() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("it trains on the GPU")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for stage in (run_train, run_trainings, run_tune):
        assert stage.__wrapped__.__name__ == stage.__name__  # type: ignore[attr-defined]


def test_a_rating_is_drawn_branch_by_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SADE's Table 1: 50 of every branch before and 50 after, not 700 of the whole; by the seed alone."""
    from creperie.recipes import people

    assert stages_of("sade", "paper")["people"].options["per_subset"] == 50
    sizes = {"rare": 4, "common": 60}
    benches = []
    for name in ("before", "after"):
        items = [Item(str(i), s, (), ("a", "b"), ((True, False),)) for s, n in sizes.items() for i in range(n)]
        save(from_items(name, items), tmp_path / name)
        benches.append(str(tmp_path / name))
    asked: list[tuple[dict[str, int], dict[str, int], list[str]]] = []

    def note(bench: Any, other: Any, job: Any, database: Path) -> dict[str, Any]:
        assert [bench.name, other.name] == ["6-of-before", "6-of-after"]  # 352 and 28 items had one name
        asked.append((dict(bench.subsets), dict(other.subsets), bench.column("id").to_pylist()))
        return {}

    monkeypatch.setattr(people, "_prepare", note)
    monkeypatch.setattr(people, "_by_study", note)
    options = {**STEPS["people"].options, "task": "bias-rating", "per_subset": 3, "scripted": True, "apply": False}
    people.run_people(StageJob("people", "r", options, tuple(benches), tmp_path / "out", tmp_path / "work"))
    assert asked[0] == asked[1]
    assert asked[0][:2] == ({"rare": 3, "common": 3},) * 2


def test_granularity_is_compared_on_the_same_items(tmp_path: Path) -> None:
    """SADE's Table 3: the plain references of the items that survived enrichment and people, not of all."""
    items = foil_items([(f"a {i}", f"b {i}") for i in range(5)], subset="comprehensive")
    save(from_items("all", items), tmp_path / "all")
    save(from_items("enriched", items[1:3]), tmp_path / "some")
    work_of("paired")(
        StageJob("plain", "r", {"name": ""}, (str(tmp_path / "all"), str(tmp_path / "some")), tmp_path / "o", tmp_path)
    )
    assert [item.id for item in load(str(tmp_path / "o"))] == ["1", "2"]
    stages = stages_of("sade", "paper")
    assert stages["score-plain"].sources[0] == "plain"
    assert stages["plain"].sources == ("comprehensive", stages["score-granularity"].sources[0])


def test_released_answers_give_the_printed_cells_of_gpt_4v(tmp_path: Path) -> None:
    """SugarCrepe's Table 6: 96.31, 93.53, 90.26, 83.13, 90.09, 91.59, 91.76 and their mean 90.95, from both orders."""
    source = Path(__file__).parents[3] / "shared" / "data" / "sugarcrepe" / "gpt-4v-results"
    if not source.is_dir():
        pytest.skip("the released answers of GPT-4V are not here")
    work_of("answers")(StageJob("gpt-4v", "r", {"source": str(source), "row": "GPT-4V"}, (), tmp_path / "o", tmp_path))
    found = RecipeFindings(
        answers={"gpt-4v": json.loads((tmp_path / "o" / "answers.json").read_text(encoding="utf-8"))}
    )
    (row,) = fill_table(published_table("sugarcrepe/6"), rows=fact_rows("sugarcrepe/6", found)).ours
    assert row.row.model == "GPT-4V"
    printed = {name: float(cell) for name, cell in row.row.cells.items() if cell}
    assert len(printed) == 8
    assert {name: round(figure.value, 2) for name, figure in row.figures.items()} == printed
    assert all(row.equal(name) for name in printed)
    assert row.figures["average"].low < 90.95 < row.figures["average"].high
    assert row.figures["average"].n == 7512  # with the withdrawn record, which was asked


def test_items_whose_pictures_are_here_do_not_go_by_the_name_of_the_whole(tmp_path: Path) -> None:
    """Tables printed a student's 64 items of VISLA as a row of VISLA."""
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "photos" / "a.png")
    items = [Item(name, "s", (f"{name}.png",), ("A cat.", "A dog."), ((True, False),), {}) for name in "ab"]
    save(from_items("whole", items), tmp_path / "whole", copy_images=False)
    options = STEPS["load"].options | {"source": str(tmp_path / "whole"), "images": str(tmp_path / "photos")}
    job = StageJob("p", "r", options | {"pictured": True}, (), tmp_path / "out", tmp_path / "work")
    assert work_of("load")(job)["items"] == 1
    assert load(tmp_path / "out").name == "1-pictured-of-whole"


def test_images_of_a_folder_and_of_an_archive_are_joined(tmp_path: Path) -> None:
    """SADE's branches bring their photographs in folders and archives; two that differ under one name are refused."""
    for name, keys in (("a", ("1.png", "both.png")), ("b", ("2.png", "both.png"))):
        (tmp_path / f"{name}-images").mkdir()
        for key in keys:
            Image.new("RGB", (4, 4), "red" if key == "both.png" else "blue").save(tmp_path / f"{name}-images" / key)
    shutil.make_archive(str(tmp_path / "b"), "zip", tmp_path / "b-images")
    parts = [
        from_items(name, [Item(k, name, (k,), ("x", "y"), ((True, False),)) for k in keys], images=open_store(place))
        for name, keys, place in (
            ("a", ("1.png", "both.png"), tmp_path / "a-images"),
            ("b", ("2.png", "both.png"), tmp_path / "b.zip"),
        )
    ]
    joined = one_image_folder(parts, tmp_path / "all")
    assert [part.images.location for part in joined] == [str(tmp_path / "all")] * 2
    assert {p.name for p in (tmp_path / "all").iterdir()} == {"1.png", "2.png", "both.png"}
    (tmp_path / "a-images" / "both.png").write_bytes((tmp_path / "a-images" / "1.png").read_bytes())
    with pytest.raises(CreperieError, match=r"different images are named 'both.png'"):
        one_image_folder(parts, tmp_path / "other")


def test_a_stage_of_tables_without_runs_writes_no_empty_file(tmp_path: Path) -> None:
    save(from_items("b", [Item("1", "swap_obj", (), ("a", "b"), ((True, False),))]), tmp_path / "01-make")
    shutil.copytree(tmp_path / "01-make", tmp_path / "02-human")  # people chose the captions of some items
    (tmp_path / "02-human" / "runs").mkdir()
    options, places = {"tables": ["sugarcrepe/2"], "same": {}}, (str(tmp_path / "01-make"), str(tmp_path / "02-human"))
    job = StageJob("table", "r", options, places, tmp_path / "o", tmp_path, sources=("make", "human"))
    work_of("table")(job)
    assert not (tmp_path / "o" / "results.csv").exists()
    text = (tmp_path / "o" / "sugarcrepe-2.txt").read_text(encoding="utf-8")
    assert "▶ items after stage make" in text
    assert "human" not in text  # a sample for people is no size of the benchmark


def test_a_table_names_the_stage_that_made_the_items(tmp_path: Path) -> None:
    """SugarCrepe++'s Table 1 said "refine" of items that nobody refined; a stage without runs hands on no items."""
    (tmp_path / "r.yaml").write_text(
        """
recipe: r
stages:
  - {name: people, does: world, with: {kinds: [swap_obj], items: 2, size: 32}}
  - {name: refine, does: refine, with: {skip: refined before}}
  - {name: score, does: score, with: {skip: no model is here}}
  - {name: table, does: table, from: [refine, score], with: {tables: [sugarcrepe/2]}}
""",
        encoding="utf-8",
    )
    served = {s.name: s for s in run_stages(read_recipe(tmp_path / "r.yaml"), tmp_path / "out")}
    assert served["refine"].place == served["people"].place
    assert served["score"].place == ""
    rows = [r["model"] for r in json.loads((tmp_path / "out/04-table/sugarcrepe-2.json").read_text())["rows"]]
    assert rows == ["negative captions", "items after stage people on world-test"]


def test_items_that_text_can_decide_are_counted_beside_text_only_scores() -> None:
    near, below = ("The cat is near the bed.", "The cat is under the bed.")
    true = ("The cat is on the bed.", "The bed is below the cat.")
    items = [Item(str(k), "s", (), (*true, n), ((True, True, False),)) for k, n in enumerate((near, below))]
    walks = ("A man walks.", "A man walks slowly.", "A man sings.")  # people chose others than the maker judged
    items.append(Item("tagged", "s", (), walks, ((True, True, False),), {"decidable": "decidable"}))

    class TextRun:
        inputs = ("text_text",)

    assert decided(from_items("b", items), [TextRun()]) == {  # type: ignore[list-item]
        "decidable": {"not decidable": 1, "decidable": 1, "unknown": 1}
    }


def test_a_subset_that_loses_fewer_items_does_not_make_an_attacker_better(tmp_path: Path) -> None:
    """SADE's filter spares negated captions, whose style gives them away: on the whole the style tells more than
    before, in no subset it does."""
    styled = [Item(f"s{i}", "negate", (), (f"a dog {i}", f"a cat {i}."), ((True, False),)) for i in range(10)]
    longer = [Item(f"l{i}", "atomic", (), (f"a dog {i}", f"a very big cat {i}"), ((True, False),)) for i in range(30)]
    shorter = [Item(f"r{i}", "atomic", (), (f"a very big dog {i}", f"a cat {i}"), ((True, False),)) for i in range(5)]
    save(from_items("b", [*styled, *longer, *shorter]), tmp_path / "b")
    changes = {"method": "grid", "attackers": ["length-words"], "held_out": ["surface"], "bins": 2, "audit": False}
    options = {**STEPS["refine"].options, **changes}
    done = work_of("refine")(StageJob("refine", "r", options, (str(tmp_path / "b"),), tmp_path / "o", tmp_path / "w"))
    assert done["subsets"] == {"negate": 10, "atomic": 10}
    surface = done["attackers"]["surface"]
    assert surface["after"] > surface["before"] + 0.05
    assert surface["mean_after"] == surface["mean_before"] == 0.75


VSR, VISLA = (Path(__file__).parents[3] / "shared" / "data" / name for name in ("vsr", "visla"))


@pytest.mark.skipif(not VSR.is_dir() or not VISLA.is_dir(), reason="VSR and VISLA are not here")
@pytest.mark.slow
def test_spatial_foils_are_ranked_among_all_captions() -> None:
    """69 of VISLA's released foils are among the first three places of that ranking; 53 with the same things alone."""
    captions = captions_of(load(f"vsr:{VSR}"))
    sources = {s.text.strip().lower(): s for s in reversed(captions.sources)}
    miner = build_maker("mine:spatial", MakerOptions(as_published=True), captions)
    again = 0
    for item in load(f"visla-spatial:{VISLA}"):
        known = [sources[p.strip().lower()] for p in item.positives if p.strip().lower() in sources]
        offered = {c.text.strip().lower() for p in miner.propose(known) for c in p.candidates if c.role == "negative"}
        again += item.negatives[0].strip().lower() in offered
    assert again >= 60


def run_row(column: str, ours: float, printed: float, **more: Any) -> dict[str, Any]:
    return {
        **{"source": "run", "model": "m", "published": "All-MiniLM-L6-v2", "group": "", "released": True},
        **{"equal": {column: ours == printed}, column: ours},
        **more,
    }


def test_the_ledger_counts_the_whole_table_and_one_cell_does_not_make_it_exact(tmp_path: Path) -> None:
    """VISLA's Table 2 prints 40 results beside the sizes of its 20 models; of two that were computed one agrees."""
    folder = tmp_path / "run"
    (folder / "01-table").mkdir(parents=True)
    write_json(folder / "recipe.json", {"recipe": "visla", "profile": "small", "stages": ["01-table"]})
    write_json(folder / "01-table" / "stage.json", {"stage": "table", "summary": {"tables": {"visla/2": {}}}})
    printed = {"source": "published", "model": "All-MiniLM-L6-v2", "group": "", "generic": 58.89, "spatial": 43.75}
    both = {**run_row("generic", 58.89, 58.89), "spatial": 44.06, "equal": {"generic": True, "spatial": False}}
    scripted = run_row("generic", 58.89, 58.89, stands_in=True, published="Bge-small-en-v1.5")
    write_json(folder / "01-table" / "visla-2.json", {"rows": [printed, both, scripted]})
    parts = paper_status([folder])
    two = next(p for p in parts if (p.paper, p.kind, p.number) == ("visla", "table", "2"))
    assert two.printed == 40
    assert (two.status, len(two.agreed), sum(c.equal for c in two.agreed)) == (
        "whose computed results agree in part",
        2,
        1,
    )
    assert two.missing == ("Angle-Llama-7b-nli-v2",)
    missing = {(p.paper, p.number): p.missing for p in parts if p.kind == "table"}
    assert missing["sugarcrepe", "6"] == missing["sugarcrepe", "5"] == missing["sugarcrepe++", "17"] == ()
    assert missing["sade", "2"] == ("MiniGPT-7B", "mPLUG-Owl", "LLaMA Adapter V2", "Emu")  # none of the others' weights
    assert totals(parts)["computed"] == 2
    page = status_page(parts, [], "creperie cook status")
    assert "|2|40|2|1|1|1|0|" in page  # results, computed, agree, stand-ins, missing, our prompts
    assert "- Differs: table 2, All-MiniLM-L6-v2, spatial: 44.06, printed 43.75." in page
    assert len(page.split()) < 2200


def test_the_ledger_says_which_figures_are_of_published_numbers(tmp_path: Path) -> None:
    """SugarCrepe's Figure 5 held printed numbers alone, and was called "of these runs' items and models"."""
    (tmp_path / "01-figures").mkdir()
    write_json(tmp_path / "recipe.json", {"recipe": "sugarcrepe", "profile": "small", "stages": ["01-figures"]})
    drawn = {"1": "gaps", "2": "accuracy", "5": "imagenet"}
    write_json(tmp_path / "01-figures" / "stage.json", {"stage": "figures", "summary": {"figures": drawn}})
    page = status_page(paper_status([tmp_path]), [], "creperie cook status")
    assert "- Drawn, of these runs' items and models: figures 1, 2.\n" in page
    added = "with runs of the same models added where there are any"
    averages = "printed averages, where the paper plots each kind of foil"
    assert f"- Drawn, of {averages}, {added}: figure 5.\n" in page


def test_a_result_of_two_tables_counts_once_whether_it_agrees_or_not() -> None:
    """The page said so of those that agree; VISLA's Table 5 repeats eight results of which four differ."""
    cells = [AgreedCell("m", str(k), 1.0, 1.0, equal=k < 4) for k in range(8)]
    about = ("visla", "table", "9", "what", "status", "command", tuple(cells))
    parts = [PaperPart(*about), PaperPart(*about, repeats="9")]
    assert (totals(parts)["computed"], totals(parts)["agree"]) == (8, 4)
    assert "a result in two tables counts once, agreeing or not." in status_page(parts, [], "creperie cook status")


def test_the_ledger_says_what_was_computed_by_what(tmp_path: Path) -> None:
    """A model on published items, counts of released files (SugarCrepe's Table 2) and released answers (Table 6)."""
    folder = tmp_path / "run"
    (folder / "01-table").mkdir(parents=True)
    write_json(folder / "recipe.json", {"recipe": "sugarcrepe", "profile": "local", "stages": ["01-table"]})
    answers = {"model": "GPT-4V", "values": {"swap_obj": 83.13, "add_obj": 91.0}}
    found = RecipeFindings(
        benches={"released": foil_bench([("a", "b")] * 245, "sugarcrepe", subset="swap_obj")},
        answers={"gpt-4v": {**answers, "n": {"swap_obj": 246, "add_obj": 2062}}},
    )
    keys = ("sugarcrepe/2", "sugarcrepe/6")
    for key in keys:
        done = fill_table(published_table(key), rows=fact_rows(key, found))
        write_json(folder / "01-table" / f"{key.replace('/', '-')}.json", done.document())
    write_json(folder / "01-table" / "stage.json", {"stage": "table", "summary": {"tables": {k: {} for k in keys}}})
    parts = paper_status([folder])
    whole = totals(parts)
    assert whole["printed"] == 2469  # as counted in the papers, table by table
    assert (whole["computed"], whole["computed_model"]) == (3, 0)
    said = "3 of these were computed from what the authors released: 1 counted from released files (0 agree), 2 from"
    assert f"{said} released answers (1 agree)." in status_page(parts, [], "creperie cook status")


def test_a_run_says_whether_it_points_the_way_the_papers_do(tmp_path: Path) -> None:
    """Shuffles below captions, one column below another: from the run's own numbers, on the papers' items. That its
    attackers come nearer to chance is what refinement does: SADE's 56.7 → 53.2 within [51.9, 61.4] was a yes."""
    stages = ["01-refine", "02-shuffles", "03-table"]
    write_json(tmp_path / "recipe.json", {"recipe": "visla", "profile": "local", "stages": [*stages, "04-skipped"]})
    attackers = {"grammar": (0.7, 0.52, False), "length": (0.5, 0.6, False), "surface": (0.5, 0.9, True)}
    told: dict[str, Any] = {
        k: {"before": b, "after": a, "mean_before": b, "mean_after": a, "held_out": h}
        for k, (b, a, h) in attackers.items()
    }
    # as SADE's small profile gives it: the mean of subsets falls, but on all items the attacker rises
    told["lm-mean"] = {"before": 0.549, "after": 0.578, "mean_before": 0.606, "mean_after": 0.551, "held_out": False}
    for name, does in zip(stages, ("refine", "probe", "table"), strict=True):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "stage.json", {"does": does, "summary": {"attackers": told}})
    kinds = {"caption": 0, "shuffle-trigrams": 49, "shuffle-nouns": 41}
    spreads = [{"model": "lm:x", "kind": kind, "n": 50, "above": n} for kind, n in kinds.items()]
    spreads += [{"model": "small:/t/08-toy/model", "kind": "shuffle-nouns", "n": 50, "above": 27}]
    write_json(tmp_path / "02-shuffles" / "order.json", {"spreads": spreads})
    row = {"source": "run", "model": "m", "generic": 60.0, "spatial": 40.0, "low": {}, "high": {}}
    row |= {"low": {"generic": 55.0, "spatial": 35.0}, "high": {"generic": 65.0, "spatial": 45.0}, "released": True}
    wide = {**row, "model": "wide", "high": {"generic": 65.0, "spatial": 56.0}}
    none = {**row, "model": "none", "low": {"generic": None, "spatial": None}}
    empty = {**row, "model": "empty", "spatial": None}
    rows = [
        row,
        wide,
        none,
        empty,
        {**row, "model": "drawn", "released": False},
        {"source": "published", "spatial": 1.0, "generic": 2.0},
    ]
    columns = [{"name": name, "title": name.title()} for name in ("generic", "spatial")]
    write_json(tmp_path / "03-table" / "visla-2.json", {"rows": rows, "columns": columns})
    claims = directions(tmp_path)
    assert len(claims) == 7  # VISLA says nothing of shuffles
    write_json(tmp_path / "recipe.json", {"recipe": "sade", "profile": "local", "stages": [*stages, "04-skipped"]})
    claims[3:3] = [c for c in directions(tmp_path) if c.stage == "shuffles"]
    assert [(c.stage, c.who, c.holds) for c in claims] == [
        ("refine", "grammar", "by construction"),
        ("refine", "length", "no"),
        ("refine", "lm-mean", "not shown"),
        ("shuffles", "lm:x", "yes"),  # of encoders the paper says the opposite
        ("table", "m", "yes"),
        ("table", "wide", "not shown"),
        ("table", "none", "not shown"),
        ("table", "drawn", "stand-in: agrees"),
    ]
    # Wilson's interval of 41 of 50, of the kind of shuffle that is noticed least
    assert claims[3].numbers == "82.0 [69.2, 90.2] % of 50 true captions above shuffle-nouns, the hardest of 2"
    write_json(tmp_path / "02-shuffles" / "order.json", {"spreads": [{**one, "above": 41} for one in spreads[:3]]})
    assert "above shuffle-trigrams, one of the hardest of 2" in directions(tmp_path)[3].numbers
    assert claims[4].numbers == "Spatial 40.0 [35.0, 45.0], Generic 60.0 [55.0, 65.0]"
    page = status_page(paper_status([]), claims, "creperie cook status", runs_said([tmp_path]))
    assert f"From runs of sade, local (3 of 4 stages, {run_digest(tmp_path)})." in page  # numbers move with the makers
    assert "No run was given of: sugarcrepe, small; sugarcrepe-pp, small; visla" in page
    spans = "all items 70.0 % → 52.0 %, mean of subsets 70.0 % → 52.0 %"
    assert f"|refinement lowers what its attackers get|grammar|{spans}|by construction|" in page


FIGURES = """
["sugarcrepe++ figure 2".paraphrase]
role = "You are a poet."
["sugarcrepe++ figure 3".paraphrase]
rules = ["It must rhyme."]
["sugarcrepe++ figure 7".odd-which]
text = "Which is odd: {options}?"
["sugarcrepe++ table 17".match-1]
text = "True: {caption}?"
[odd-few-shot]
text = "And now: {options}?"
"""


def test_prompts_of_a_paper_are_given_by_name_figure_or_table(
    tmp_path: Path, own_cache: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts that a figure gives replace those of the shipped prompt; the ledger no longer calls them ours.

    The wordings of SugarCrepe++'s Table 17 and Prompts 1 to 3 of its Table 8 are in no figure and could not be given.
    """
    file = tmp_path / "figures.toml"
    file.write_text(FIGURES, encoding="utf-8")
    recipe = chosen_recipe("sugarcrepe++", CookOptions(prompts=str(file), profile="paper"))
    stages = {s.name: s.options for s in recipe.stages}
    folder = stages["make"]["prompts"]
    assert folder == stages["score-asked"]["prompts"]
    (question,) = written_prompts("paraphrase", "A dog.", folder)
    assert question["text"].startswith("You are a poet.")
    assert "1. It must rhyme." in question["text"]
    assert "A barber trims" in question["text"]  # what no figure gives is as it was
    assert find_prompt(f"{folder}/#odd-which", "").text == "Which is odd: {options}?"
    assert find_prompt(f"{folder}/#match-1", "").text == "True: {caption}?"
    given = ("paraphrase", "odd-which", "match-1", "odd-few-shot")
    assert recipe.prompts == given
    write_json(tmp_path / "run" / "recipe.json", {"recipe": recipe.name, "prompts": recipe.prompts, "stages": []})
    parts = {(p.kind, p.number): p for p in paper_status([tmp_path / "run"]) if p.paper == "sugarcrepe++"}
    assert parts["figure", "2"].prompts == parts["table", "18"].prompts == parts["figure", "7"].prompts == ()
    assert parts["figure", "4"].prompts == ("validate",)
    assert parts["table", "8"].prompts == ("odd-or-none", "odd-or-none-reworded", "odd-forced")
    assert parts["table", "14"].prompts == ("odd-forced",)
    assert parts["table", "17"].prompts == ("match-2", "match-3", "describe-1", "describe-2")
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    item = Item("1", "s", ("a.png",), ("a", "b"), ((True, False),))
    save(from_items("b", [item], images=open_store(tmp_path)), tmp_path / "b")
    asked = ["score", str(tmp_path / "b"), "--model", "api:x?score=yesno&prompt=match-1", "--dry-run", "--json"]
    assert called([*asked, "--prompts", str(file)]) == 0  # `score --prompts` took folders only
    assert f"{quote(str(Path(folder).resolve()), safe='')}%2F%23match-1" in capsys.readouterr().out
    assert called(["prompts", "show", "match-1", "--caption", "A dog", "--prompts", str(file)]) == 0
    assert "True: A dog?" in capsys.readouterr().out
    for text, says in (
        ("[x]", "unknown figure, table or prompt 'x'"),
        ('odd-which = "a"', "is not a prompt"),
        ('["visla figure 5".swap]', "unknown prompt"),
        ("a", "not TOML"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(CreperieError, match=says):
            chosen_recipe("visla", CookOptions(prompts=str(file)))


def called(words: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


@pytest.mark.parametrize("command", sorted({p.command for p in paper_status([]) if "prompts show" in p.command}))
def test_every_command_that_shows_something_runs_as_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for one in command.split(" && "):
        assert called(one.split()[1:]) == 0
        assert capsys.readouterr().out.strip()


def test_a_run_made_in_a_relative_folder_is_verified_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs name models of the recipe by the folder as the cook was given it, whatever it is called later."""
    text = """
recipe: r
stages:
  - {name: items, does: world, with: {kinds: [swap_obj], items: 3, size: 32}}
  - {name: random, does: tiny, with: {build: "creperie.testing.tiny:tiny_clip", kind: hf}}
  - {name: score, does: score, from: [items, random], with: {tasks: [itt]}}
"""
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        run_stages(read_recipe(Path("r.yaml")), Path("runs") / name)
    Path("runs").rename("moved")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert called(["cook", "verify", "../moved/a", "../moved/b"]) == 0


def test_two_runs_are_compared_stage_by_stage(tmp_path: Path) -> None:
    for name in ("a", "b"):
        stage = tmp_path / name / "01-make"
        stage.mkdir(parents=True)
        write_json(tmp_path / name / "recipe.json", {"recipe": "r", "profile": "small", "stages": ["01-make", "02-no"]})
        write_json(stage / "stage.json", {"stage": "make", "summary": {"items": 3}})
        write_json(stage / "time.json", {"seconds": 1.0 if name == "a" else 2.0})
        (stage / "items.txt").write_text("the same", encoding="utf-8")
        (stage / "results.csv").write_text(f"small:{tmp_path / name}/01-make/model,1", encoding="utf-8")
    places = [str(tmp_path / name) for name in ("a", "b")]
    assert called(["cook", "verify", *places]) == 0
    (tmp_path / "b" / "01-make" / "items.txt").write_text("another", encoding="utf-8")
    assert called(["cook", "verify", *places, "--json"]) == 1
    assert [m.same for m in verify_runs(*map(Path, places))] == [False, True]
    with pytest.raises(CreperieError, match="not the folder of a recipe run"):
        verify_runs(tmp_path / "a", tmp_path / "none")


def test_a_tiny_language_model_walks_the_stages_that_write_foils(tmp_path: Path) -> None:
    """SugarCrepe, section 4.1, in the profile `local`, without a key: what a model writes that knows no words is
    rejected, with its calls counted, and the stages after it say that there is nothing to do."""
    transformers = pytest.importorskip("transformers")
    from creperie.testing.tokenizers import wordpiece_tokenizer

    tokenizer = wordpiece_tokenizer(8192)
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_positions=8192, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "lm")
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    tokenizer.save_pretrained(tmp_path / "lm")
    save(from_items("few", [Item("1", "s", (), ("A dog chases a cat.",), ((True,),))]), tmp_path / "few")
    own = ("few-captions", "written", "audit-written", "score-written")
    stages = recipe_of("sugarcrepe", "local", data=tmp_path).stages
    (written,) = [s.options for s in stages if s.name == "written"]
    assert {maker.partition("-")[0] for maker in written["makers"]} == {"llm:replace", "llm:swap", "llm:add"}
    assert written["model"].startswith("lm:pkg:")
    changes: dict[str, Any] = {f"{s.name}.skip": True for s in stages if s.name not in own}
    changes |= {"written.model": f"lm:{tmp_path / 'lm'}", "written.makers": ["llm:swap-object"]}
    recipe = recipe_of("sugarcrepe", "local", changes, tmp_path)
    served = {s.name: s for s in run_stages(recipe, tmp_path / "out", use={"few-captions": str(tmp_path / "few")})}
    assert (served["written"].state, served["written"].why) == ("cooked", "it made no items; left out")
    assert served["written"].summary["calls"] > 0
    assert "; ".join(_numbers_of(served["written"])).endswith(" candidates accepted, 1 rejected (no JSON object: 1)")
    assert [served[name].why for name in own[2:]] == ["written is skipped"] * 2


def test_scripted_annotators_have_runs_under_lasting_names(tmp_path: Path) -> None:
    """The Human row is the mean over annotators; the runs of scripts were left out, because their names are drawn."""
    save(make_world(World(kinds=("swap_obj",), items=5, size=32)), tmp_path / "world", copy_images=True)
    options = {**STEPS["people"].options, "task": "choose-caption", "per_subset": 5, "scripted": True, "apply": False}
    found = []
    for again in ("one", "two"):
        job = StageJob("human", "r", options, (str(tmp_path / "world"),), tmp_path / again, tmp_path / f"{again}-work")
        run_people(job)
        runs = runs_in(tmp_path / again)
        found.append({run.model: (run.name, run.document["model"]["fingerprint"]["weights"]) for run in runs})
        told = json.loads((tmp_path / again / PEOPLE).read_text(encoding="utf-8"))
        assert set(told["runs"]) == {run.name for run in runs}
    assert set(found[0]) == {"human:study/everybody", "human:study/script-1", "human:study/script-2"}
    assert found[0] == found[1]
    for name, run in zip("cab", runs, strict=True):  # folders are named after the folder of the recipe's run
        (tmp_path / "two" / "runs" / run.name).rename(tmp_path / "two" / "runs" / name)
    assert [run.model for run in runs_in(tmp_path / "two")] == sorted(found[0])
    write_results(runs, tmp_path / "results.csv")
    lines = (tmp_path / "results.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert {line.split(",")[1].split("/")[0] for line in lines} == {"script:study"}


def test_a_datasheet_says_which_kinds_a_stage_dropped(tmp_path: Path) -> None:
    """It said that nothing was left out beside "222 made" and 136 items, or named the rejected candidates alone."""
    texts = ("A red cup stands beside a blue box.", "A dog chases a cat.")
    sources = [Item(str(n), "x", (), (text,), ((True,),)) for n, text in enumerate(texts)]
    save(from_items("captions", sources), tmp_path / "in")
    options = {**STEPS["make"].options, "makers": ["rules:swap"], "rename": {"swap-attribute": "kept", "*": ""}}
    run_make(StageJob("make", "r", options, (str(tmp_path / "in"),), tmp_path / "out", tmp_path / "work"))
    assert load(tmp_path / "out").subsets == {"kept": 1}
    sheet = (tmp_path / "out" / "DATASHEET.md").read_text(encoding="utf-8")
    assert "- all but 1 of 2 items: not wanted here: swap-object 1" in sheet, sheet[sheet.index("What was left") :]


def test_a_stages_time_counts_the_processes_that_it_started() -> None:
    """The stage that parsed 11,697 captions in other processes was told to have taken 1.3 s of the processor."""
    before = processor_seconds()
    work = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", work], check=True, timeout=60)
    assert processor_seconds() - before > 0.25
