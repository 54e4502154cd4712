"""Recipes as text: safe YAML, every mistake answered with its line, the cookbook in order."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cookbook import recipe_of, stages_of
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import CreperieError, DataError
from creperie.models import KINDS, parse_uri
from creperie.recipes import check_plan, list_recipes, plan_recipe, read_recipe
from creperie.recipes.recipe import BY_SCRIPTS, PROFILES, RecipeStage, parse_changes
from creperie.recipes.steps import STEPS, work_of
from creperie.recipes.yaml_lines import read_marked
from creperie.reporting import published_table
from creperie.statistics import find_analysis_preset

PAPERS = ("sugarcrepe", "sugarcrepe-pp", "visla", "sade", "hit-or-be-hit")
HEAD = "recipe: r\nstages:\n"
#: what is wrong → the line that the message names, and what it says
WRONG = {
    "": (1, "is not a recipe"),
    "- a\n- b\n": (1, "is not a recipe"),
    "recipe: r\n": (1, "has no stages"),
    "recipe: r\nstages: []\n": (2, "has no stages"),
    "recipe: r\nstage: []\n": (2, "did you mean 'stages'"),
    "recipe: r\nrecipe: s\n": (2, "has 'recipe' twice"),
    "recipe: r\nstages: [\n": (3, "is not YAML"),
    "recipe: ../r\nstages: [{name: a, does: check}]\n": (1, "not a name"),
    HEAD + "  - 3\n": (3, "is not a stage"),
    HEAD + "  - does: check\n": (3, "'name' is missing"),
    HEAD + "  - name: a\n    does: mak\n": (4, "did you mean 'make'"),
    HEAD + "  - name: a\n    does: world\n    wiht: {}\n": (5, "did you mean 'with'"),
    HEAD + "  - name: a\n    does: world\n    with:\n      kinds: [swap_obj]\n      itmes: 3\n": (
        7,
        "did you mean 'items'",
    ),
    HEAD + "  - name: a\n    does: world\n    with:\n      kinds: [swap_obj]\n      items: many\n": (
        7,
        "a whole number",
    ),
    HEAD + "  - name: a\n    does: world\n    with:\n      items: 3\n": (3, "option 'kinds' is missing"),
    HEAD + "  - name: a\n    does: world\n    with: 3\n": (5, "not a mapping"),
    HEAD + "  - name: a\n    does: world\n    with: {kinds: [1]}\n": (5, "a list of names"),
    HEAD + "  - name: a\n    does: make\n    with: {makers: [1]}\n": (5, "expected a list of names"),
    HEAD + "  - {name: a, does: world, with: {kinds: x}}\n  - {name: a, does: check}\n": (4, "two stages are called"),
    HEAD + "  - {name: a, does: world, with: {kinds: x}}\n  - name: b\n    does: check\n    from: c\n": (
        6,
        "unknown earlier stage 'c'",
    ),
    HEAD + "  - {name: a, does: world, with: {kinds: x}}\n  - {name: b, does: world, with: {kinds: x}}\n"
    "  - name: c\n    does: check\n    from: [a, b]\n": (7, "takes only one input"),
    HEAD + "  - name: a\n    does: !!python/object/apply:os.system ['true']\n": (4, "unknown step"),
    "recipe: !!python/name:os.system\nstages: []\n": (1, "could not determine a constructor"),
    "recipe: r\nstages: &a [*a]\n": (2, "an alias refers to a value that contains it"),
    "recipe: 2001-99-99\nstages: []\n": (1, "cannot be read"),
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_mistakes_are_answered_with_their_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text, encoding="utf-8")
    line, says = WRONG[text]
    with pytest.raises(CreperieError) as caught:
        read_recipe(file)
    message = str(caught.value)
    assert says in message
    assert f"r.yaml:{line}:" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (("captions.limt=3",), "did you mean 'limit'"),
        (("caption.limit=3",), "unknown stage 'caption'"),
        (("limit=3",), "names no option"),
        (("captions.limit",), "has no value"),
        (("captions.limit=few",), "expected a whole number"),
    ],
)
def test_changes_are_checked_like_the_file(changes: tuple[str, ...], says: str) -> None:
    with pytest.raises(CreperieError) as caught:
        recipe_of("visla", "small", parse_changes(changes))
    assert says in str(caught.value)


def test_changes_overrule_the_file() -> None:
    changes = parse_changes(
        ("refine.bins=7", "score.models=blind:length, blind:surface", "people.skip=", "captions.seed=3")
    )
    recipe = recipe_of("sugarcrepe", "small", changes)
    options = {s.name: s.options for s in recipe.stages}
    assert options["refine"]["bins"] == 7
    assert options["score"]["models"] == ["blind:length", "blind:surface"]
    assert next(s for s in recipe.stages if s.name == "people").skip == ""


scalars = st.one_of(
    st.integers(-1000, 1000), st.booleans(), st.text(st.characters(codec="ascii", categories=("L", "N")))
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abcdef", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(documents)
def test_values_are_what_safe_yaml_says_and_all_have_a_line(value: Any) -> None:
    text = yaml.safe_dump(value, default_flow_style=False)
    found = read_marked(text, "x.yaml")
    assert found.value == value
    assert all(1 <= line <= text.count("\n") + 1 for line in found.lines.values())
    if isinstance(value, dict):
        for key in value:
            own = text.split("\n")[found.lines[(key,)] - 1]
            assert own.startswith((key, f"'{key}'", f'"{key}"', "{", "? "))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    message = ""
    try:
        read_marked(text, "x.yaml")
    except DataError as e:
        message = str(e)
    assert "\n" not in message


# -- the cookbook ----------------------------------------------------------------------------------------------------


def models_of(stage: RecipeStage) -> list[str]:
    named = [stage.options.get(name, "") for name in ("model", "lm", "encoder", "plausibility", "grammar")]
    return [uri for uri in (*named, *stage.options.get("models", ())) if uri and not uri.endswith(".json")]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", sorted(list_recipes()))
def test_every_recipe_reads_in_every_profile(name: str, profile: str) -> None:
    if name == "twins" and profile == "local":
        with pytest.raises(CreperieError, match="no profile `local`"):
            recipe_of(name, profile)
        return
    recipe = recipe_of(name, profile, data="released")
    assert recipe.name == name
    done = {word for s in recipe.stages for word in (s.name, s.does)}
    for wanted in ("captions", "make", "validate", "people", "audit", *(() if name == "twins" else ("score", "table"))):
        assert wanted in done
    for stage in recipe.stages:
        work_of(stage.does)
        for key in stage.options.get("tables", ()):
            published_table(key)
        for text in models_of(stage):
            uri = parse_uri(text)
            assert uri.kind in ("blind", "small", *KINDS)
            assert set(uri.options) <= {o.name for o in KINDS[uri.kind].options} if uri.kind in KINDS else True
    if profile != "paper":  # nobody waits: people are a script, and said to be one
        assert all(s.skip or s.options["scripted"] for s in recipe.stages if s.does == "people")


def test_the_local_profile_reads_released_files_and_trains_on_photographs() -> None:
    """Nothing of the built-in world, no random weights; without a folder the recipe says what it needs."""
    for name in PAPERS:
        with pytest.raises(CreperieError, match="--data DIR"):
            recipe_of(name, "local")
        cooked = [s for s in recipe_of(name, "local", data="/released").stages if not s.skip]
        assert not {"world", "tiny"} & {s.does for s in cooked}
        assert [s for s in cooked if str(s.options.get("source", "")).partition(":")[2].startswith("/released/")]


def test_table_5_and_19_have_the_stages_that_their_columns_need() -> None:
    """SugarCrepe's Table 5: people and the released NegCLIP on ARO+CREPE; SugarCrepe++'s Table 19: SugarCrepe."""

    def stages(name: str, profile: str) -> dict[str, RecipeStage]:
        return stages_of(name, profile, data="/d")

    paper, small = stages("sugarcrepe", "paper"), stages("sugarcrepe", "small")
    assert any("negclip.pth" in uri for uri in paper["score-rebuild"].options["models"])
    for own in (paper, small):
        assert {"score-rebuild", "human-rebuild"} <= set(own["table"].sources)
        assert own["score-rebuild"].sources[0] == own["human-rebuild"].sources[0] == "rebuild"
    assert small["human-rebuild"].options["scripted"]
    assert not paper["human-rebuild"].options["scripted"]
    plus = stages("sugarcrepe++", "paper")
    assert plus["score-sugarcrepe"].sources == ("captions",)
    assert plus["captions"].options["source"] == "sugarcrepe"
    assert {"score-sugarcrepe", "score-sugarcrepe-gaussian"} <= set(plus["table"].sources)


def test_stages_take_their_options_from_where_these_are_declared() -> None:
    """The keys of train, tune, trainings, world, refine and figure are those of the commands of these names."""
    from creperie.core import options_in
    from creperie.training import StudyOptions, TrainingSettings, TrainOptions, TuneOptions
    from creperie.world import World

    for step, kinds in {
        "train": (TrainingSettings, TrainOptions),
        "tune": (TrainingSettings, TuneOptions),
        "trainings": (StudyOptions,),
        "world": (World,),
    }.items():
        assert {option for kind in kinds for option in options_in(kind)} <= set(STEPS[step].options)


def test_released_checkpoints_fill_the_rows_that_no_hub_has() -> None:
    """SugarCrepe++'s Tables 4, 6 and 15 had CLIP alone."""
    models = stages_of("sugarcrepe++", "paper")["score"].options["models"]
    for number, named in (("4", {"CLIP", "NegCLIP", "CyCLIP"}), ("6", {"CLIP", "NegCLIP"}), ("15", {"NegCLIP"})):
        rows = {row.model for row in published_table(f"sugarcrepe++/{number}").rows if set(row.uris) & set(models)}
        assert named <= rows


def test_the_procedures_of_the_papers_are_in_their_profiles() -> None:
    """What each of the profiles lacked or did in another way, one line each."""

    def stages(name: str, profile: str = "paper", **changes: str) -> dict[str, RecipeStage]:
        given = {key.replace("__", "."): value for key, value in changes.items()}
        return stages_of(name, profile, given, "/d")

    plus = stages("sugarcrepe++", tune__objective="negclip")  # it was an unknown option
    assert plus["tune"].options["objective"] == "negclip"
    assert stages("sugarcrepe++")["tune"].options["objective"] == "triple"  # it sees P2
    for task, seen in (("human-itt", True), ("human-tot", False)):  # four people, 5 × 30 = 150 items
        asked = plus[task].options
        assert [asked[name] for name in ("per_subset", "overlap", "with_image", "apply")] == [30, 4, seen, False]
    for profile in (
        "small",
        "paper",
    ):  # training foils are refined by the paper's attackers, and tested on what was cooked
        own = stages("sugarcrepe", profile)
        assert "human" in own
        assert own["trainings-scratch"].options["attackers"][1] == "grammar"
        for name in ("trainings", "trainings-scratch"):
            assert (own[name].sources[:3], own["classes"].sources) == (("lessons", "rebuild", "classes"), ("refine",))
    visla = stages("visla")
    assert (visla["validate-generic"].does, visla["generic"].options["model"]) == (
        "validate",
        visla["validate-generic"].options["model"],
    )
    named = " ".join(visla["score"].options["models"] + visla["score-text"].options["models"])
    assert all(word in named for word in ("instructor-large", "e5-mistral", "vilt-b32", "clip-ViT-B-32-multilingual"))
    assert "Llama" in visla["generic"].options["model"]
    assert stages("sade")["sensible"].does == "people"  # the people's filter of enriched references
    hit = stages("hit-or-be-hit")["stats"].options
    assert hit["random"] == ["image"]
    second = find_analysis_preset("argument-order").analyses["alike or different"]
    assert set(second.where["type"]) == {"active", "passive", "ditransitive", "dative"}  # nothing of with and against


PUBLISHED = r"\b(COCO|Flickr30k|ARO|CREPE|VL-CheckList|Winoground|SWiG|Conceptual|NegCLIP|people|experts)\b"


@pytest.mark.parametrize("name", PAPERS)
def test_progress_of_a_small_run_names_no_set_and_nobody_it_does_not_have(name: str) -> None:
    """Lines such as "Winoground, kept whole" and "experts choose" stood for 40 drawn items and for one script."""
    stages = {s.name: s for s in recipe_of(name, "small").stages if not s.skip}
    for stage in stages.values():
        said = re.sub(r"as in [^;(]*|\(?[^(]* in the paper\)?|in the manner of ARO and CREPE", "", stage.about)
        assert not re.search(PUBLISHED, said.replace(BY_SCRIPTS, "")), stage.about
        assert stage.about.endswith(BY_SCRIPTS) == bool(stage.options.get("scripted"))
        own = stage.options.get("name", "")  # "sade-cooked", "aro+crepe-rebuilt": nobody takes it for the paper's own
        assert "world-" in own or not own or own == "templates-as-vsr", own
        assert stage.does in ("train", "trainings") or stage.sources[:1] != ("lessons",)  # none is tested on these


def test_the_parts_of_visla_and_of_hit_or_be_hit_are_what_their_columns_say() -> None:
    """VISLA, section 3.2: the spatial negative is a contradictory arrangement of the same things; exchanged agents were
    in that column. The two sources of Hit or Be Hit were one world with two seeds."""
    options = {name: s.options for name, s in stages_of("visla").items()}
    assert options["pictured"]["kinds"] == ["replace_obj", "replace_att", "spatial"]
    assert options["pictured"]["rename"] == {"replace_*": "generic", "spatial*": "spatial"}
    assert options["generic"]["kinds"] == ["replace_obj", "replace_att"]
    stages = {name: s.options for name, s in stages_of("hit-or-be-hit").items()}
    assert stages["captions"]["split"] != stages["captions-swig"]["split"]  # other things and combinations


def test_captions_are_compared_with_a_second_one_where_no_real_model_describes_images() -> None:
    """SADE's small BERTScore took text from random weights as its reference."""
    for profile in ("small", "local"):
        stages = stages_of("sade", profile, data="/d")
        assert stages["shuffles"].options["references"]
        assert stages["shuffles"].sources[0] == "twice"


def test_published_parameters_are_in_the_paper_profile() -> None:
    options = {name: s.options for name, s in stages_of("sugarcrepe", "paper").items()}
    assert options["captions"]["expect"] == 25_000
    assert len(options["make"]["makers"]) == 7
    assert (options["refine"]["method"], options["refine"]["bins"]) == ("grid", 50)
    assert sum(uri.startswith("open_clip:") for uri in options["score"]["models"]) == 18  # 17 CLIPs and NegCLIP
    assert all("-quickgelu/" in uri for uri in options["score"]["models"] if uri.endswith("/openai"))
    for stage, model in (("trainings", "ViT-B-32-quickgelu/openai"), ("trainings-scratch", "RN50/random")):
        names = ("model", "epochs", "batch", "warmup", "lr")
        assert [options[stage][name] for name in names] == [f"open_clip:{model}", 30, 256, 1000, 1e-4]
    sade = {name: s.options for name, s in stages_of("sade", "paper").items()}
    assert (sade["captions"]["limit"], sade["captions-flickr"]["limit"]) == (2500, 500)
    hit = {name: s.options for name, s in stages_of("hit-or-be-hit", "paper").items()}
    assert hit["captions"]["limit"] == 2_000_000


def test_models_inside_a_models_name_are_checked_too(tmp_path: Path) -> None:
    """GRUEN is two models."""
    lines = plan_recipe(recipe_of("hit-or-be-hit", "paper"), tmp_path)
    lacks = [short.message for short in check_plan(lines, tmp_path) if short.stage == "stats"]
    for name in ("lm:google-bert/bert-base-cased", "hf:textattack/bert-base-uncased-CoLA"):
        assert any(message.startswith(name) for message in lacks), lacks


@pytest.mark.parametrize("way", ["tune", "tune-xlm", "tune-flava"])
def test_tuning_is_done_in_all_three_ways_and_comes_into_the_table(way: str) -> None:
    stages = stages_of("sugarcrepe++", "paper")
    assert stages[way].options["ways"] == ["frozen", "full", "lora"]
    assert way in stages["table-tuned"].sources


@pytest.mark.parametrize("short", [True, False])
def test_a_cook_that_does_not_fit_on_the_disk_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    lines = plan_recipe(recipe_of("sugarcrepe", "paper"), tmp_path / "out")
    free = 10**10 if short else 10**13
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    told = [s.message for s in check_plan(lines, tmp_path / "out") if s.kind == "disk"]
    assert [str(tmp_path) in m and "9,536 MB are free" in m for m in told] == [True] * short


def test_recipes_are_found_by_path_too() -> None:
    root = Path(__file__).resolve().parents[2]
    file = root / "recipes" / "sugarcrepe.yaml"
    if not file.exists():
        pytest.skip("not in a checkout")
    assert [s.name for s in read_recipe(file).stages] == [s.name for s in recipe_of("sugarcrepe").stages]


def test_every_step_has_a_function_and_says_what_it_is() -> None:
    for name, step in STEPS.items():
        assert callable(work_of(name))
        assert step.what
        assert set(step.required) | set(step.files) <= set(step.options)
