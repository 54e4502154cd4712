"""What the small profiles put in the place of the papers' data: false foils, additions that add, students, names."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cookbook import recipe_of, stages_of
from foils import foil_bench, foil_items

from creperie.bench import Item, ProvenanceStep, choice, from_items, load, save
from creperie.cli.cook import _numbers_of
from creperie.core import read_json, write_json
from creperie.lang import CONTRADICTED, truth, words
from creperie.recipes import StageResult, directions, list_recipes, read_recipe, run_digest
from creperie.recipes.judging import run_audit
from creperie.recipes.kitchen import run_stages
from creperie.recipes.making import run_make, with_false_foils
from creperie.recipes.people import _same_parts, run_people
from creperie.recipes.steps import STEPS, StageJob
from creperie.recipes.tabling import run_table
from creperie.reporting import fill_table, published_table
from creperie.reporting.tables.filled import _said_of, _said_of_sets
from creperie.reporting.tables.measure import MeasuredCell
from creperie.world import Scene, Thing, image_key


def numbers_of(stage: StageResult) -> str:
    return "; ".join(_numbers_of(stage))


def scene(*things: tuple[str, str, int]) -> str:
    return image_key(Scene(tuple(Thing(kind, colour, "plain", "medium", x, 220) for kind, colour, x in things)))


FAR = scene(("boat", "pink", 20), ("hat", "white", 200))


@pytest.mark.parametrize(
    ("caption", "foil", "false"),
    [  # the first two were foils of the swap set of a recipe run
        ("The pink boat is far away from the white hat.", "the white hat is far away from The pink boat.", False),
        ("There is a pink boat and a white hat.", "There is a white hat and a pink boat.", False),
        ("The pink boat is left of the white hat.", "the white hat is left of The pink boat.", True),
        ("The pink boat is left of the white hat.", "left boat is The the of pink hat white.", True),  # no sentence
        ("A dog barks.", "An animal barks.", False),  # by the logic of captions
    ],
)
def test_a_rebuilt_foil_that_the_picture_makes_true_is_left_out(caption: str, foil: str, false: bool) -> None:
    item = Item("0", "swap", (FAR,), (caption, foil), choice(1, 1))
    assert with_false_foils([item]) == ([item] if false else [])


def test_of_several_foils_those_that_are_false_stay() -> None:
    caption, true = "The pink boat is far away from the white hat.", "The white hat is far away from the pink boat."
    false = "The pink boat is right of the white hat."
    (kept,) = with_false_foils([Item("0", "swap", (FAR,), (caption, true, false), choice(1, 2))])
    assert (kept.captions, kept.match) == ((caption, false), ((True, False),))
    # a foil of two constructions belongs to a caption of its own
    assert with_false_foils([Item("0", "passive", (FAR,), (caption, true, true, false), choice(2, 2))]) == []
    photographs = [Item("0", "swap", ("000000000139.jpg",), (caption, true), choice(1, 1))]
    assert with_false_foils(photographs) == photographs


ADDED = """
recipe: added
stages:
  - name: items
    does: world
    with: {kinds: [add_obj_longer, add_att, swap_obj], items: 12, seed: 11, size: 32, caption: base}
"""


def test_additions_of_the_small_profile_leave_the_caption_as_it_is(tmp_path: Path) -> None:
    """SugarCrepe, section 4: the foil adds an object or attribute; of 60 foils none had more words than its caption."""
    (tmp_path / "r.yaml").write_text(ADDED, encoding="utf-8")
    (stage,) = run_stages(read_recipe(tmp_path / "r.yaml"), tmp_path / "out")
    added = [item for item in load(stage.place) if item.subset.startswith("add")]
    assert len(added) == 24
    for item in added:
        bags = [[w for w in words(caption) if w not in ("a", "an", "and")] for caption in item.captions]
        assert len(bags[1]) > len(bags[0])
        assert all(bags[1].count(word) >= bags[0].count(word) for word in bags[0])
    recipe = recipe_of("sugarcrepe", "small")
    assert next(s for s in recipe.stages if s.name == "captions").options["caption"] == "base"


@pytest.mark.parametrize("name", ["sugarcrepe", "sade"])
def test_a_student_in_place_of_clip_is_trained_without_foils(name: str) -> None:
    """Table 5 measures what foils in training add; SADE's figures 1, 3 and 4 are about CLIP's blindness to order."""
    student = next(s for s in recipe_of(name, "small").stages if s.name == "student")
    assert (student.options["objective"], student.options["negatives"]) == ("clip", [])
    assert "trained without foils" in student.about


def test_what_stands_in_for_aro_is_of_other_scenes_and_unfiltered() -> None:
    """Its 82 items were the swap items of SugarCrepe's own stand-in, and foils that make no sense were left out."""
    for name, aro, make in (("sugarcrepe", "aro-relations", "rules"), ("sade", "aro", "content")):
        stages = stages_of(name, "small")
        assert "swap-absurd" in stages[aro].options["rename"]
        assert (stages[aro].options["plausible"], stages[aro].options["matched"]) == ("no", False)
        if name == "sugarcrepe":
            assert not {*stages[aro].sources} & {*stages[make].sources}


def test_only_the_foils_differ_between_the_two_trainings_of_hit_or_be_hit() -> None:
    """'The same without foils' had two thirds of the steps."""
    stages = stages_of("hit-or-be-hit", "small")
    foiled, plain = (stages[name].options for name in ("student", "plain"))
    different = {name for name in foiled if foiled[name] != plain[name]}
    assert different == {"objective", "negatives"}


def test_items_left_out_as_their_foils_were_true_are_in_the_provenance(tmp_path: Path) -> None:
    """Datasheets had 266 of 376 and 82 of 120 items, 347 together, or said that nothing was left out."""
    texts = ("The pink boat is far away from the white hat.", "The pink boat is left of the white hat.")
    items = [Item(str(n), "x", (FAR,), (text,), ((True,),)) for n, text in enumerate(texts)]
    save(from_items("captions", items), tmp_path / "in")
    options = {**STEPS["make"].options, "makers": ["rules:swap"], "as_published": True}
    job = StageJob("make", "r", options, (str(tmp_path / "in"),), tmp_path / "out", tmp_path / "work")
    assert run_make(job)["true_foils"] == 1
    assert load(tmp_path / "out").provenance[-1].args == {"removed": 0, "changed": 1}
    sheet = (tmp_path / "out" / "DATASHEET.md").read_text(encoding="utf-8")
    assert "- 1 item without some foils: foils were true of the drawn picture" in sheet


def test_an_audit_in_a_recipe_is_told_in_the_cards_of_what_it_audited(tmp_path: Path) -> None:
    save(foil_bench([(f"a cat {n}", f"no cat at all {n}") for n in range(40)], "short", subset="x"), tmp_path / "in")
    options = {**STEPS["audit"].options, "attackers": ["length-words"]}
    run_audit(StageJob("audit", "r", options, (str(tmp_path / "in"),), tmp_path / "out", tmp_path / "work"))
    for card in ("README.md", "DATASHEET.md"):
        told = (tmp_path / "in" / card).read_text(encoding="utf-8")
        assert "leaks through length-words" in told
        assert "Not audited yet" not in told


def test_small_sade_names_its_subsets_as_stand_ins() -> None:
    for stage in recipe_of("sade", "small").stages:
        new = [name for name in dict(stage.options.get("rename") or {}).values() if name]
        assert all(name.startswith("as-") or stage.name == "enriched" for name in new)


def test_pictures_of_the_same_things_are_in_opposite_relations() -> None:
    """VISLA, section 3.3: the negative contradicts the positives; 45 of 60 were about another axis."""
    path = list_recipes()["visla"].parent / "spatial" / "places.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    true = [row for row in rows if row["label"] == 1]
    for row in true:
        others = [o for o in true if {o["subj"], o["obj"]} == {row["subj"], row["obj"]} and o["image"] != row["image"]]
        assert any(truth(row["caption"], other["caption"]).word == CONTRADICTED for other in others), row["caption"]
    mined = next(s for s in recipe_of("visla", "small").stages if s.name == "mined")
    assert not mined.options["as_published"]  # which keeps foils that do not contradict, for experts to choose from


def test_a_summary_says_ties_chance_and_what_items_it_means() -> None:
    summary = {
        **{"name": "world-as-aro", "items": 300, "true_foils": 13},
        **{"results": {"blind:length": {"blind": 0.0}}, "ties": {"blind:length": {"blind": 300}}},
        "chance": {"blind:length": {"blind": 0.5}},
    }
    said = numbers_of(StageResult("score", "score", "cooked", "out/01-score", summary))
    assert said == (
        "300 items (world-as-aro); 13 items changed or left out, as foils were true of the drawn picture; "
        "blind:length: blind 0.0 % (chance 50.0 %; 300 of 300 are ties, counted as wrong)"
    )
    summary |= {"items": 492, "true_foils": 0, "void": {"blind:length": {"blind": 40}}}
    said = numbers_of(StageResult("score", "score", "cooked", "out/01-score", summary))  # 21.5 % of 452 stood with 492
    assert said.endswith(
        "blind:length: blind 0.0 % (of 452 items; chance 50.0 %; 300 of 452 are ties, counted as wrong)"
    )
    probed = {"items": 60, "shuffled": [["lm:x", "shuffle-nouns", 39, 60], ["lm:x", "shuffle-others", 60, 60]]}
    said = numbers_of(StageResult("probe", "probe", "cooked", "out/01-probe", probed))
    assert said == "60 items; lm:x has the caption above shuffle-nouns 39 of 60, shuffle-others 60 of 60"
    answered = {
        "model": "GPT-4V",
        "subsets": 1,
        "orders": {"swap_obj": 2},
    }  # `cook sugarcrepe --profile local` broke off
    assert numbers_of(StageResult("gpt-4v", "answers", "cooked", "out/01-gpt-4v", answered)) == "GPT-4V on 1 subset"
    drawn = {"figures": {"1": "gaps", "4": "gaps"}, "not_drawn": {"5": "no run has an image"}}
    said = numbers_of(StageResult("figures", "figure", "cooked", "out/01-figures", drawn))  # the line was empty
    assert said == "figures 1, 4; figure 5 not drawn: no run has an image"
    tuned = {"model": "model", "accuracy": {"frozen": {"swap_obj": 25.0, "all": 40.0}, "lora": {"all": 35.0}}}
    said = numbers_of(StageResult("tune", "tune", "cooked", "out/01-tune", tuned))
    assert said == "itt on items held out: frozen 40.0 %, lora 35.0 %"
    weights = {"model": "random weights, tiny_llava", "ways": 1}
    assert numbers_of(StageResult("vqa", "tiny", "cooked", "out/01-vqa", weights)) == "random weights, tiny_llava"


def test_a_table_says_by_which_scores_its_items_were_chosen() -> None:
    """The row of the language model by whose gaps the items were chosen stood beside the others without a word."""
    step = {"op": "refine", "args": {"method": "grid", "attackers": ["lm-mean", "grammar"]}}
    row = fill_table(published_table("sugarcrepe/6")).table
    ours = [type("Row", (), {"benchmarks": ("world-refined",)})()]
    joined = {"op": "concatenate", "args": {"history": [[step]]}}  # the same items by form of foil were not told
    for history in ([step], [joined]):
        (said,) = _said_of_sets(row, ours, {"world-refined": [{"provenance": history}]})
        assert said.endswith(
            "; items of it were chosen by the scores of lm-mean and grammar, which come nearer to chance by that."
        )


def test_a_set_of_which_parts_were_refined_is_not_told_as_refined(tmp_path: Path) -> None:
    """Of SADE's whole stand-in, on which lm-mean has up to 100 %, it said that its scores come near chance."""
    step = {"op": "refine", "args": {"method": "syntaxbias", "attackers": ["lm-mean"]}, "inputs": []}
    joined = {"op": "concatenate", "args": {"history": [[step], [{"op": "world", "args": {}, "inputs": []}]]}}
    ours = [type("Row", (), {"benchmarks": ("world-whole",)})()]
    table = fill_table(published_table("sade/1")).table
    (said,) = _said_of_sets(table, ours, {"world-whole": [{"provenance": [joined]}]})
    assert "only some parts of it came out of a refinement, by the scores of lm-mean: on the whole these need" in said
    joined["args"]["names"] = ["as-negate", "as-content"]  # which part it was, nobody was told
    (said,) = _said_of_sets(table, ours, {"world-whole": [{"provenance": [joined]}]})
    assert "only as-negate among its parts came out of a refinement, by the scores of lm-mean: on the" in said
    items = [Item("1", "x", (), ("a", "b"), choice(1, 1))]
    steps = (ProvenanceStep("concatenate", joined["args"]),)  # type: ignore[arg-type]
    save(from_items("whole", items, provenance=steps), tmp_path / "whole")
    for card in ("README.md", "DATASHEET.md"):
        told = (tmp_path / "whole" / card).read_text(encoding="utf-8")
        assert "parts of it were refined against lm-mean, whose scores need not come near chance on the whole:" in told


def test_a_set_that_was_only_compared_is_told_to_be_refined(tmp_path: Path) -> None:
    """SADE's Table 1: of the two halves that were rated, the note on the filtered one said no more than the other."""
    items = foil_items([(f"a {n}", f"b {n}") for n in range(5)], subset="negate")
    step = ProvenanceStep("refine", {"method": "syntaxbias", "attackers": ["lm-mean"]})
    save(from_items("world-as-sade", items), tmp_path / "01-biased")
    save(from_items("world-as-sade-filtered", items[1:], provenance=(step,)), tmp_path / "02-refine")
    given = {"task": "bias-rating", "per_subset": 3, "scripted": True, "apply": False}
    inputs = tuple(str(tmp_path / name) for name in ("01-biased", "02-refine"))
    place = tmp_path / "03-people"
    job = StageJob("people", "sade", {**STEPS["people"].options, **given}, inputs, place, tmp_path / "work")
    run_people(job)
    options = {**STEPS["table"].options, "tables": ["sade/1"]}
    job = StageJob(
        "table", "sade", options, (str(place),), tmp_path / "04-table", tmp_path / "work", sources=("people",)
    )
    run_table(job)
    notes = read_json(tmp_path / "04-table" / "sade-1.json")["notes"]
    (said,) = (note for note in notes if note.startswith("3-of-world-as-sade-filtered:"))
    assert "items of it were chosen by the scores of lm-mean" in said
    (said,) = (note for note in notes if note.startswith("3-of-world-as-sade:"))
    assert "chosen" not in said


def test_intervals_of_answers_that_are_all_wrong_do_not_claim_to_allow_for_shared_pictures() -> None:
    """VISLA's 0 of 58 items about 39 pictures had the interval of 58 independent items, against the note."""
    table = fill_table(published_table("visla/2")).table
    column = next(c for c in table.columns if c.unit == "%")
    said = {}
    for value in (0.0, 50.0):
        cell = MeasuredCell(value, 0.0, 60.0, 58, 0, "itt", "run", clusters=39)
        row = SimpleNamespace(model="st:x", label="x", figures={column.name: cell})
        said[value] = " ".join(_said_of(table, row))  # type: ignore[arg-type]
    assert f"intervals can be those of independent items: {column.title}" in said[0.0]
    assert "58 items about 39 pictures" in said[50.0]
    assert "independent" not in said[50.0]
    cell = replace(cell, low=math.nan, high=math.nan, n=4, clusters=2)  # SugarCrepe's Table 6: blank, without a reason
    row = SimpleNamespace(model="human:x", label="x", figures={column.name: cell})
    assert f"too few pictures for an interval: {column.title} (2 pictures)" in _said_of(table, row)  # type: ignore[arg-type]


def test_notes_of_sugarcrepe_do_not_guess_why_scores_tie_and_say_how_people_are_counted() -> None:
    """Most grammar ties were of different foils, and people's Add was pooled under a note about means."""
    notes = {number: " ".join(published_table(f"sugarcrepe/{number}").notes) for number in (4, 5)}
    assert "mostly" not in notes[4]
    assert "pairs with different foils of equal score" in notes[4]
    assert "printed ones of people are means of the subsets. All ours are pooled." in notes[5]


def test_parts_that_a_filter_left_alone_are_known() -> None:
    items = [Item(str(n), subset, (), (f"a {n}", f"b {n}"), choice(1, 1)) for n in range(3) for subset in "xy"]
    left = [item for item in items if (item.subset, item.id) != ("y", "2")]
    assert _same_parts(from_items("all", items), from_items("left", left)) == ["x"]


def test_a_direction_says_how_many_items_its_columns_share(tmp_path: Path) -> None:
    """The paper reports that 12 % of its simplified captions are the long ones; of the world's, 23 of 80 were."""
    long, other = ("a", "b", "c", "d"), ("e", "f", "g", "h")
    items = foil_items([(f"long {n}", *long[1:]) for n in range(4)], subset="passive", true=2)
    items += [Item("0", "passive-simplified", (), items[0].captions, choice(2, 2))]
    items += [Item(str(n), "passive-simplified", (), (f"short {n}", *other[1:]), choice(2, 2)) for n in range(1, 4)]
    save(from_items("world-as-cc", items), tmp_path / "01-make")
    cell: dict[str, Any] = {"passive_1": 40.0, "passive_simplified_1": 60.0}
    ends = {end: {key: value + step for key, value in cell.items()} for end, step in (("low", -5), ("high", 5))}
    row = {"source": "run", "model": "m", "uri": "x", "released": False, "benchmarks": ["b"], **cell, **ends}
    write_json(tmp_path / "recipe.json", {"recipe": "hit-or-be-hit", "profile": "small", "stages": ["02-table"]})
    inputs = [{"place": "01-make"}]
    columns = [{"name": "passive_1", "title": "Act/pass 1"}, {"name": "passive_simplified_1", "title": "Short 1"}]
    write_json(tmp_path / "02-table" / "stage.json", {"does": "table", "summary": {}, "inputs": inputs})
    write_json(tmp_path / "02-table" / "hit-or-be-hit-4.json", {"rows": [row], "columns": columns})
    (claim,) = directions(tmp_path)
    assert claim.numbers == (
        "Act/pass 1 40.0 [35.0, 45.0], Short 1 60.0 [55.0, 65.0]; 1 of 4 items have the same captions in both"
    )


def test_the_digest_of_a_run_changes_with_its_results(tmp_path: Path) -> None:
    digests = []
    for folder, numbers in itertools.product(("a", "b"), ((1, 2), (1, 3))):
        place = tmp_path / f"{folder}{numbers[1]}"
        write_json(place / "recipe.json", {"recipe": "x", "profile": "small", "stages": ["01-x", "02-y"]})
        for stage, number in zip(("01-x", "02-y"), numbers, strict=True):
            write_json(place / stage / "stage.json", {"does": "score", "summary": {"items": number}})
        digests.append(run_digest(place))
    assert digests[:2] == digests[2:]
    assert digests[0] != digests[1]
