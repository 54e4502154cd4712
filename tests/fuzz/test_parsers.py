"""A fuzz target for every parser: damaged bytes and right JSON of the wrong shape are read or refused, never a crash.

Published formats have their own (tests/formats/test_fuzz.py), pictures theirs (tests/bench/test_decoding.py), sources
of captions theirs (tests/engine/test_sources.py). Each target begins with a sound file and is given damaged ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fault_makers import NAME, register
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from older import without_checksums

from creperie.annotation import read_export
from creperie.bench import Item, from_items, load, load_folder, save
from creperie.core import CreperieError, write_parquet
from creperie.engine import Shard, kind_of, parse_shard, split_spec
from creperie.lang import read_linkage, read_tree
from creperie.making import MakeRequest, MakerOptions, make_shard, merge_making
from creperie.making.llm.prompts import MalformedError, parse_template, read_answer
from creperie.making.parts import stored_outcomes
from creperie.models import parse_choice, parse_uri
from creperie.models.answers import parse_yes_no
from creperie.models.api.endpoint import AnswerCache
from creperie.models.choice import read_demonstrations
from creperie.models.prompts import read_prompts
from creperie.recipes import Recipe, list_recipes, read_recipe
from creperie.recipes.kitchen import check_claim, digest_of, kept_record, seconds_of
from creperie.recipes.recipe import parse_changes
from creperie.reporting import load_study, published_table
from creperie.reporting.leaderboard import read_entry
from creperie.reporting.page import read_audits
from creperie.scoring import import_answers, load_run, read_column, score
from creperie.scoring.segments import SegmentFolder
from creperie.scoring.store import parse_size
from creperie.statistics import read_table
from creperie.training import SmallConfig
from creperie.training.checkpoints import open_run, read_metrics
from creperie.training.small import read_config

QUICK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
REQUEST = "0" * 64
DEMONSTRATIONS = '[[demonstration]]\ncaptions = ["a dog", "a cat"]\nanswer = 1\nscene = "a dog"\n'
ANSWERED = {
    "caption": "a dog",
    "negative_caption": "a cat",
    "filename": "1.jpg",
    "answer": {"multiple_choice_answer": "A", "free_form_answer": "the first"},
}
STUDY = {
    **{"preset": "small", "arms": ["plain"], "seeds": [0], "seconds": 1.0, "columns": ["x all"], "notes": []},
    **{"sat": [], "base": []},
}
PROMPTS = '[[prompt]]\nid = "x"\nkind = "choice"\nasks = "match"\ntext = "Which? {options}"\n'


@dataclass(frozen=True)
class Target:
    """A file in a folder, and what reads it. `name` is the file that is damaged."""

    name: str
    read: Callable[[Path], object]
    raises: tuple[type[Exception], ...] = (CreperieError,)


def read_cache(folder: Path) -> object:
    return SegmentFolder(folder).find(np.zeros((3, 32), np.uint8))


def merge(folder: Path) -> object:
    return merge_making([folder], folder.parent / "merged", force=True)


def claim(folder: Path) -> object:
    return check_claim(folder, Recipe("r", "t", "small", "r.yaml", ()))


TARGETS = {
    "manifest": Target("creperie.json", lambda f: save(load_folder(f), f.parent / "again", force=True)),
    "items": Target("data/test-00000-of-00001.parquet", lambda f: (list(load_folder(f)), load_folder(f).checked_hash)),
    "run": Target("run.json", lambda f: load_run(f).evaluate(["blind"])),
    "scores": Target("scores.parquet", lambda f: load_run(f).evaluate(["blind"])),
    "making": Target("part-000000.parquet", lambda f: stored_outcomes(f, 0, ["1"])),
    "shard": Target("shard.json", merge),
    "outcomes": Target("outcomes.jsonl", merge),
    "cache": Target("1.seg", read_cache),
    "answers": Target("answer.json", lambda f: AnswerCache(f / "api").get(REQUEST)),
    "recipe": Target("recipe.yaml", lambda f: read_recipe(f / "recipe.yaml")),
    "prompts": Target("prompts.toml", lambda f: read_prompts(f / "prompts.toml")),
    "demonstrations": Target("shots.toml", lambda f: read_demonstrations(f / "shots.toml")),
    "stage": Target("stage.json", lambda f: (kept_record(f, "k"), digest_of(str(f)))),
    "time": Target("time.json", seconds_of),
    "cooking": Target("recipe.json", claim),
    "statistics": Target("table.csv", lambda f: read_table(f / "table.csv")),
    "published answers": Target("x-s.json", lambda f: import_answers(f / "x-s.json", order="first")),
    "external": Target("scores.csv", lambda f: read_column(f / "scores.csv", "score")),
    "people.json": Target("people.json", lambda f: read_export(f / "people.json")),
    "audit": Target("audit.json", lambda f: read_audits([f / "audit.json"], [])),
    "study": Target("study.json", lambda f: load_study(f / "study.json")),
    "header": Target("run.json", lambda f: read_entry(f / "run.json")),
    "small model": Target("config.json", lambda f: read_config(f / "config.json", SmallConfig)),
    "training": Target("train.json", lambda f: open_run(f, {"seed": 1}, force=False)),
    "metrics": Target("metrics.jsonl", read_metrics),
}


@cache
def sound(name: str, folder: Path) -> bytes:
    """A sound file for a target, with what must lie beside it, in `folder`."""
    items = [Item(str(i), "s", (), (f"{i} dogs", f"{i} cats"), ((True, False),), {"n": float(i)}) for i in range(4)]
    bench = from_items("small", items)
    target = folder / TARGETS[name].name
    if name in ("manifest", "items"):
        save(bench, folder)
    elif name in ("run", "scores"):
        path = score(bench, "blind:length", out=folder.parent / "runs").path
        path.rename(folder)
    elif name in ("shard", "outcomes"):
        register()
        source = folder.parent / "captions.txt"
        source.write_text("a dog chases a cat\n")
        request = MakeRequest(NAME, str(source), MakerOptions())
        make_shard(request, request.read(), Shard(1, 1), folder)
    else:
        folder.mkdir()
        _write_plain(name, target, folder)
    without_checksums(folder)  # which would stop all damage before a parser sees it
    return target.read_bytes()


def _write_plain(name: str, target: Path, folder: Path) -> None:
    verdict = {"source": "1", "text": "x", "role": "negative", "kind": "k", "maker": "m", "edit": "e", "reason": ""}
    plain = {
        "answers": json.dumps({"choices": [{"message": {"content": "yes"}}]}),
        "prompts": PROMPTS,
        "demonstrations": DEMONSTRATIONS,
        "stage": json.dumps({"key": "k", "summary": {"items": 3}}),
        "time": json.dumps({"seconds": 3.5}),
        "cooking": json.dumps({"recipe": "r", "profile": "small"}),
        "statistics": "model,score\nclip,0.5\nblip,NA\n",
        "published answers": json.dumps({"0": ANSWERED, "1": ANSWERED}),
        "external": "model,score\nclip,0.5\n",
        "people.json": json.dumps({"format": 2, "answers": [], "digest": "0"}) + "\n",
        "audit": json.dumps({"verdict": "clean", "text": "", "hash": "h", "attackers": [], "results": []}),
        "study": json.dumps(STUDY),
        "header": json.dumps({"model": {"uri": "m"}, "results": [], "created": "now", "finding_counts": {}}),
        "small model": json.dumps({"model_type": "small", "channels": [8, 8]}),
        "training": json.dumps({"job": {"seed": 1}, "finished": False}),
        "metrics": json.dumps({"step": 1, "loss": 0.5}) + "\n",
    }
    if name == "cache":
        with SegmentFolder(folder).writer() as writer:
            writer.append(np.zeros((3, 32), np.uint8), np.ones((3, 8), np.uint8), (2, 4))
        next(folder.glob("*.seg")).rename(target)
    elif name == "making":
        outcome = json.dumps({"source": "1", "verdicts": [{"candidate": verdict}]})
        write_parquet(pa.table({"outcome": [outcome]}), target)
    elif name == "recipe":
        target.write_bytes(next(iter(list_recipes().values())).read_bytes())
    else:
        target.write_text(plain[name])


def attempt(target: Target, folder: Path, data: bytes) -> None:
    path = folder / target.name
    if target.name == "answer.json":  # lies where the cache looks for it
        path = AnswerCache(folder / "api")._path(REQUEST)
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    try:
        target.read(folder)
    except target.raises as e:
        told = str(e)
    else:
        return
    if isinstance(told, str) and "\n" in told:
        pytest.fail(f"more than one line: {told!r}")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    root = tmp_path_factory.mktemp("fuzz")
    patch = pytest.MonkeyPatch()
    patch.setenv("CREPERIE_CACHE", str(root / "cache"))

    def place(name: str) -> Path:
        (root / name.replace(".", "-")).mkdir(exist_ok=True)
        return root / name.replace(".", "-") / "it"

    yield place
    patch.undo()


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
@QUICK
def test_damaged_bytes(places: Callable[[str], Path], name: str, data: st.DataObject) -> None:
    whole = bytearray(sound(name, places(name)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(whole) - 1)))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "repeat"]))
        if how == "flip" and whole:
            whole[at] ^= data.draw(st.integers(1, 255))
        elif how == "cut":
            del whole[at:]
        elif how == "insert":
            whole[at:at] = data.draw(st.binary(max_size=8))
        else:
            whole[at:at] = whole[at : at + 20] * 2
    attempt(TARGETS[name], places(name), bytes(whole))


JSON = [n for n, t in TARGETS.items() if t.name.endswith((".json", ".jsonl")) and n != "outcomes"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("1" * 5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, child in inner for spot in spots(child, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", JSON)
@given(data=st.data())
@QUICK
def test_right_json_of_the_wrong_shape(places: Callable[[str], Path], name: str, data: st.DataObject) -> None:
    document = json.loads(sound(name, places(name)))
    spot = data.draw(st.sampled_from(spots(document)))
    text = json.dumps(changed(document, spot, data.draw(ANYTHING)))
    attempt(TARGETS[name], places(name), text.encode() + b"\n")


# -- short texts -------------------------------------------------------------------------------------------------------

TEXTS: dict[str, tuple[Callable[[str], object], tuple[type[Exception], ...], str]] = {
    "answer of an LLM": (
        lambda t: read_answer(t, {"new": "text", "concepts": "list"}),
        (MalformedError,),
        '{"new": "owl", "concepts": ["a"]}',
    ),
    "choice": (lambda t: parse_choice(t, ["a dog", "a cat"]), (), "The answer is (A)."),
    "yes or no": (parse_yes_no, (), "Yes, it is."),
    "model URI": (parse_uri, (CreperieError,), "hf:a/b?x=1&y=2"),
    "shard": (parse_shard, (CreperieError,), "3/16"),
    "size": (parse_size, (CreperieError,), "1.5G"),
    "tree": (read_tree, (CreperieError,), "(S (NP (DT a) (NN dog)))"),
    "linkage": (read_linkage, (CreperieError,), "(S (NP a dog) (VP runs))"),
    "changes of a recipe": (lambda t: parse_changes((t,)), (CreperieError,), "make.seed=[3, {a: 1}]"),
    "captions": (lambda t: (split_spec(t), kind_of(t)), (), "cc3m.tsv?text=0&image=1"),
    "benchmark": (load, (CreperieError,), "sugarcrepe:no/such/place"),
    "published table": (published_table, (CreperieError,), "sugarcrepe++/16"),
    "prompt file": (lambda t: parse_template("x", t), (CreperieError,), ""),
}


def test_deep_toml_is_refused_in_one_line() -> None:
    with pytest.raises(CreperieError, match="recursion"):
        parse_template("x", f"a = {'[' * 3000}")


def prompt_file() -> str:
    return (resources.files("creperie.making.llm.prompts") / "swap-object.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@QUICK
def test_any_short_text(name: str, data: st.DataObject) -> None:
    read, raises, example = TEXTS[name]
    example = example or prompt_file()
    cut = data.draw(st.integers(0, len(example)))
    more = data.draw(st.integers(cut, len(example)))
    text = example[:cut] + data.draw(st.text(max_size=20) | st.just("(" * 3000) | st.just("[" * 3000)) + example[more:]
    try:
        read(text)
    except raises as e:
        assert str(e)  # noqa: PT017  whichever is raised, it says something
