"""The functions of `creperie`: each is called twice, with every keyword it has, and answers the same."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stubs

import creperie as cr
from creperie import plugin
from creperie.core import options_in, silent
from creperie.scoring import ScoreOptions
from creperie.world import World, make_world

#: Keywords that take an object which only makes sense inside another call.
ALTERNATIVES = {
    "audit": {"models", "parser", "engine", "announce"},
    "refine": {"plan", "models"},
    "cook": {"workers", "tell"},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A benchmark folder: 120 items of three kinds with images."""
    folder = tmp_path_factory.mktemp("api") / "world"
    cr.save(
        make_world(World(items=40, kinds=("swap_obj", "negate_there", "replace_obj"), size=64)),
        folder,
        copy_images=True,
    )
    return str(folder)


def every_keyword(function: Callable[..., Any], given: dict[str, Any]) -> None:
    """No parameter is left out, so a keyword that is accepted and then breaks cannot hide."""
    parameters = inspect.signature(function).parameters.values()
    declared = getattr(function, "options", {})  # tested where they are declared: tests/cli/test_options.py
    options = {name for kind in declared.values() for name in options_in(kind)} | set(declared)
    known = {p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD} - options
    name = next(n for n in cr.__all__ if getattr(cr, n) is function)
    assert known - set(given) - ALTERNATIVES.get(name, set()) == set()


def twice(function: Callable[..., Any], **given: Any) -> Any:
    every_keyword(function, given)
    first, second = function(**given), function(**given)
    assert repr(first) == repr(second)
    assert repr(first).count("\n") == 0
    return second


def test_load_and_save(world: str, tmp_path: Path) -> None:
    columns = {"image": "", "positive": (), "negative": (), "subset": "", "id": "", "tag": ()}
    bench = twice(cr.load, spec=world, images=f"{world}/images", **columns)  # columns: tests/bench/test_frames.py
    assert "120 items" in repr(bench)
    saved = twice(cr.save, bench=bench, folder=tmp_path / "b", copy_images=True, force=True, progress=silent)
    assert saved.hash == bench.hash
    assert "swap_obj" in bench._repr_html_()
    assert len(bench.to_pandas()) == 120


def test_score_compare_and_report(world: str, tmp_path: Path) -> None:
    options = ScoreOptions()
    given: dict[str, Any] = {"bench": world, "device": "cpu", "options": options, "progress": silent, "out": tmp_path}
    given |= {"dtype": "float32", "cache": True}
    runs = [twice(cr.score, model=f"blind:{m}", tasks="blind", **given) for m in ("length-words", "length-chars")]
    assert [r.tasks for r in runs] == [("blind",)] * 2  # a bare string is one name, not its letters
    assert "blind" in runs[0]._repr_html_()
    assert len(runs[0].to_pandas()) == 120
    assert repr(twice(cr.load_run, path=runs[0].path)) == repr(runs[0])
    found = cr.compare(runs, tasks="blind", settings=options.settings, common=True, against=None)
    assert [row.task for row in found.rows][:1] == ["blind"]
    assert repr(found).startswith(f"Comparisons(2 models, {len(found.rows)} tests")
    assert found._repr_html_().count("<tr>") == len(found.rows) + 1 == len(found.to_pandas()) + 1
    assert found.to_polars()["mcnemar_only_a"].to_list() == [r.comparison.mcnemar.only_a for r in found.rows]
    assert not any(hasattr(kind, "fields") for kind in map(type, found.frame().to_pylist()[0].values()))
    assert str(cr.table(*runs)) == str(cr.table(runs))
    assert "length-words" in str(cr.table(runs))  # and cr.figure: tests/reporting/test_notebook.py
    given = {"bench": world, "out": tmp_path, "tasks": "blind", "progress": silent}
    runs += [cr.score(model="blind:negation", **given)]
    assert repr(cr.difficulty(runs=runs, task="blind")) == "ItemStudy(120 items, 3 models, blind: 0 suspicious)"
    page = cr.report(runs, tmp_path / "report.html", audits=[])
    assert "blind:length-words" in (tmp_path / "report.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert page.save(tmp_path / "again.html").read_text(encoding="utf-8") == page.html


def test_what_is_in_memory(world: str) -> None:
    rows = [{"id": "a", "kind": "k", "yes": "A dog.", "no": "A cat.", "pic": "1.png", "t": "x"}]
    columns = {"image": "pic", "positive": "yes", "negative": "no", "subset": "kind", "id": "id", "tag": "t"}
    bench = twice(cr.from_pandas, frame=rows, **columns, images=f"{world}/images", name="mine")
    assert bench[0].captions == ("A dog.", "A cat.")
    parts: dict[str, Any] = {"processor": None, "preprocess": None, "tokenizer": None, "options": None}
    model = twice(cr.wrap, model=len, name="length", **parts)
    assert model.uri == "memory:length"


def test_a_model(world: str) -> None:
    scorer = cr.load_model(uri="blind:length-words", device="cpu", dtype="float32")
    again = cr.load_model(uri="blind:length-words", device="cpu", dtype="float32")
    assert scorer.fingerprint == again.fingerprint
    assert cr.score(world, scorer, tasks=["blind"]).model == "blind:length-words"


def test_audit(world: str) -> None:
    names = ["length-words", "negation"]
    given: dict[str, Any] = {"threshold": 0.55, "progress": silent, "seed": 0, "lm": "none", "encoder": "none"}
    given |= {"full": True, "cache": False}
    found = twice(cr.audit, bench=world, attackers=names, **given)
    assert found.verdict == "leaks"
    assert {"length-words", "negation"} <= set(found.to_pandas()["attacker"]) == set(found.to_polars()["attacker"])
    assert not {dict, list} & {type(cell) for row in found.frame().to_pylist() for cell in row.values()}
    assert "negation" in found._repr_html_()
    assert cr.audit(Path(world), "negation").verdict == "leaks"
    with pytest.raises(cr.CreperieError, match="did you mean 'negation'"):
        cr.audit(world, "negatoin")
    with pytest.raises(cr.CreperieError, match="unknown keyword of audit 'sed'; did you mean 'seed'"):
        cr.audit(world, "negation", sed=1)


def test_refine(world: str) -> None:
    given: dict[str, Any] = {"held_out": [], "repair": False, "audit": False, "seed": 0, "cache": False}
    given |= {"attackers": ["length-words"], "lm": "none", "encoder": "none", "progress": silent, "engine": None}
    clean = twice(cr.refine, bench=world, method="optimal", **given)
    assert 0 < len(clean.bench) <= 120
    assert "length-words" in clean._repr_html_()
    (row,) = re.findall("<tr><td>length-words.*?</tr>", clean._repr_html_())
    assert "–" not in row  # it has its figures, before and after


def test_make(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    texts = ["A brown dog chases a white cat.", "A boy sees a girl."]
    given: dict[str, Any] = {"limit": 2, "force": True, "progress": silent, "engine": None, "seed": 1}
    made = twice(cr.make, maker="rules:swap", captions=texts, out=tmp_path / "made", **given)
    assert "brown" in made._repr_html_()
    assert set(cr.make("rules:swap", texts[:1]).to_pandas()["source"]) == set(texts[:1])


def test_make_by_a_function(tmp_path: Path) -> None:
    texts = ["A brown dog chases a cat.", "A boy sees a girl."]
    made = cr.make(lambda caption: caption.replace("dog", "cow") if "dog" in caption else None, texts)
    assert [item.captions for item in made.items] == [(texts[0], "A brown cow chases a cat.")]

    def twice_over(caption: str) -> list[str]:
        return [f"{caption[:-1]} {word}." for word in ("now", "here")]

    written = cr.make(twice_over, texts, tmp_path / "made")
    assert written.to_polars()["text"].to_list()[0] == "A brown dog chases a cat now."
    assert [len(item.captions) for item in written.items] == [3, 3]
    plugin.register_maker(lambda name, options, captions: lambda caption: "No one.", name="no-one")
    assert cr.make("no-one", texts[:1]).items[0].captions == (texts[0], "No one.")
    for wrong, line in (
        (7, "int is not a maker; pass a maker's name"),
        (lambda c: 7, "does not return a caption, a list"),
    ):
        with pytest.raises(cr.CreperieError, match=line):
            cr.make(wrong, texts)


def test_cook(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(
        "recipe: tiny\ntitle: A tiny recipe\nabout: one stage\nstages:\n"
        "  - name: world\n    does: world\n    small:\n      items: 4\n      kinds: [swap_obj]\n      size: 64\n",
        encoding="utf-8",
    )
    given: dict[str, Any] = {"profile": "small", "changes": {"world.items": 3}, "use": {}, "progress": silent}
    served = cr.cook(recipe, tmp_path / "out", **given)
    again = cr.cook(recipe, tmp_path / "out", **given)
    assert [s.state for s in served] == ["cooked"]
    assert [s.state for s in again] == ["unchanged"]


def test_train(world: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from creperie.testing.tiny import tiny_clip
    from creperie.training import TrainingSettings

    uri = f"hf:{tiny_clip(tmp_path / 'clip')}"
    settings = TrainingSettings(batch=8, warmup=0, seed=1)
    given: dict[str, Any] = {"negatives": "own", "tuning": "full", "steps": 2, "settings": settings, "device": "cpu"}
    given |= {"engine": None}
    trained = twice(cr.train, data=world, model=uri, out=tmp_path / "run", progress=silent, **given)
    assert cr.score(world, trained.uri, tasks="itt", device="cpu").model == trained.uri


def test_annotation(world: str, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    db, plan = cr.open_database(tmp_path / "people.db"), cr.StudyPlan("foil-check")
    assert cr.store_study(db, "pilot", cr.load(world), plan).name == "pilot"
    assert len(cr.invite(db, "pilot", 2)) == 2
    with pytest.raises(cr.CreperieError):
        cr.store_study(db, "pilot", cr.load(world), plan)


def test_what_a_program_registers_is_found(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same protocols as entry points, at run time."""
    from dataclasses import replace

    from creperie.auditing import make_attackers
    from creperie.bench import find_format
    from creperie.making import build_maker
    from creperie.models import model_plugins

    @cr.register_model("backwards")
    def load(uri: Any, options: Any, place: Any) -> Any:
        return cr.load_model(f"blind:{uri.name}")

    assert cr.score(world, "backwards:length", tasks="blind").results == cr.score(world, "blind:length").results
    assert model_plugins()["backwards"].value.endswith("load")

    @plugin.register_attacker
    def shouting(models: Any) -> Any:
        (length,) = make_attackers(["length-words"], models)
        return replace(length, name="shouting")

    assert set(cr.audit(world, attackers=["shouting"]).to_pandas()["attacker"]) == {"shouting", "cues"}

    @plugin.register_maker("mine:swap")
    def maker(name: str, options: Any, captions: Any) -> Any:
        return build_maker("rules:swap", options, captions)

    texts = ["A brown dog chases a white cat."]
    assert len(cr.make("mine:swap", texts).to_pandas()) == len(cr.make("rules:swap", texts).to_pandas())
    own = replace(find_format("sugarcrepe"), name="mine")
    assert plugin.register_format(own) is own
    assert find_format("mine") is own
    with pytest.raises(cr.CreperieError, match="did you mean 'backwards'"):
        cr.score(world, "backward:length")


def test_what_somebody_would_guess(world: str, tmp_path: Path) -> None:
    """Results are carried on to the next step by the names that come to mind."""
    bench = cr.load(world)
    assert bench["swap_obj"].subsets == bench.only("swap_obj").subsets == {"swap_obj": 40}
    assert (
        bench.only("swap_obj", "replace_obj").save(tmp_path / "two").subsets
        == bench.only(["swap_obj", "replace_obj"]).subsets
    )
    made = cr.make(lambda caption: caption.replace("dog", "cow"), ["A dog.", "A small dog."])
    assert [item.captions[1] for item in made] == ["A cow.", "A small cow."]
    assert len(made) == len(made.bench) == len(made.save(tmp_path / "made")) == len(cr.save(made, tmp_path / "again"))
    found = cr.audit(made, "length-words")
    assert found.save(tmp_path / "audit.json").read_text("utf-8").startswith("{")
    assert found.save(tmp_path / "audit.html").read_text("utf-8") == found.to_html()
    honest = cr.refine(world, method="optimal", attackers=["length-words"], audit=False)
    assert len(honest.save(tmp_path / "honest")) == len(honest.bench)
    run = cr.score(honest, "blind:length-words")
    assert run.accuracy == next(r["accuracy"] for r in run.results if r["subset"] == "all")
    assert ["blind", "all", f"{len(honest.bench)}"] in [line.split()[:3] for line in run.summary().splitlines()]
    assert cr.report(run, out=tmp_path / "r.html", audits=[]).html == (tmp_path / "r.html").read_text("utf-8")
    assert "sugarcrepe++" in cr.list_benchmarks()
    for call, line in (
        (lambda: bench["nothing"], "the subsets are "),
        (lambda: cr.save(world, tmp_path), "only a benchmark"),
    ):
        with pytest.raises(cr.CreperieError, match=line):
            call()


def test_tuples_data_sets_arrays_and_functions_of_one_pair() -> None:
    class Rows:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> tuple[Any, str, str]:
            return np.full((3, 8, 8), i / 4, np.float32), f"{i} dogs", f"{i} cats"

    assert cr.load(Rows()).open(3)[0].getpixel((0, 0)) == (191, 191, 191)
    rows = [(np.full((8, 8, 3), 9, np.uint8), "a dog", "a cat", "a cow"), (np.zeros((8, 8), np.uint8), "dogs", "cats")]
    bench = cr.load(rows)
    assert [len(item.captions) for item in bench] == [3, 2]
    run = cr.score(bench, lambda image, caption: image.getpixel((0, 0))[0] + ("dog" in caption), tasks="itt")
    assert run.accuracy == 1


def test_a_metric_of_ones_own(tmp_path: Path) -> None:
    """A function of match and scores is a task, with the intervals of the others."""

    def clearly(match: np.ndarray, scores: np.ndarray) -> bool | None:
        """the true caption leads by more than 1"""
        lead = scores[match].min() - scores[~match].max()
        return None if lead == 1 else bool(lead > 1)

    rows = [{"image": np.full((8, 8), i, np.uint8), "caption": "long " * i + "a", "foil": "b"} for i in range(5)]
    run = cr.score(cr.load(rows), lambda image, caption: len(caption) / 5, tasks=["itt", clearly], out=tmp_path)
    own = next(r for r in run.evaluate(clearly) if r.subset == "all")
    assert (own.n, own.hits, own.ties, own.interval) == (5, 3, 1, "wilson")  # leads are 0, 1, 2, 3, 4
    stored = next(r for r in cr.load_run(run.path or "").results if (r["task"], r["subset"]) == ("clearly", "all"))
    assert (stored["accuracy"], stored["low"]) == (own.accuracy, own.low)
    with pytest.raises(cr.CreperieError, match="needs a name"):
        run.evaluate(lambda match, scores: True)


def test_the_public_names() -> None:
    """What changes since the list was last written has a line in the changelog."""
    listed = (Path(__file__).parent / "public_names.txt").read_text("utf-8").split()
    now = {*(f"creperie.{n}" for n in cr.__all__), *(f"creperie.plugin.{n}" for n in plugin.__all__)}
    news = re.split("^## ", (Path(__file__).parents[1] / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1]
    assert [name for name in sorted({*listed} ^ now) if f"`{name}`" not in news] == []


def test_the_stubs_have_the_signatures_of_today() -> None:
    assert stubs.stubs() == {door: path.read_text("utf-8") for door, path in stubs.STUBS.items()}


def test_type_checkers_read_numpy_and_pillow_beside_the_public_packages() -> None:
    """So a user's file is checked in seconds: following one more import of a room reads torch, transformers and openai.
    Imports in functions are not followed.
    """
    public = re.compile(r"creperie(\.plugin|\.testing(\.\w+)?)?")
    for path in [*stubs.STUBS.values(), *(stubs.ROOT / "creperie" / "testing").glob("*.py")]:
        for node in ast.parse(path.read_text("utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in [str(node.module)] if isinstance(node, ast.ImportFrom) else names:
                library = name.partition(".")[0]
                known = library in sys.stdlib_module_names | {"numpy", "PIL"}
                assert known or public.fullmatch(name), f"{path}: {name}"


def test_type_checkers_see_the_keywords_and_read_no_large_library(tmp_path: Path) -> None:
    """`mypy --strict` accepts a user's calls and refuses nonsense, from the two stubs alone."""
    for door, path in stubs.STUBS.items():
        stub = tmp_path.joinpath(*door.split("."), "__init__.pyi")
        stub.parent.mkdir()
        stub.write_text(path.read_text("utf-8"), encoding="utf-8")
    (tmp_path / "own.py").write_text(
        "import creperie as cr\n"
        "from creperie import plugin\n"
        "bench = cr.load('b', images='p', positive='caption').only('swap')\n"
        "run = cr.score(bench, 'hf:a', tasks=['itt'], batch_size=3)\n"
        "cr.compare(run, run, ties='half', common=True)\n"
        "refined = cr.refine(cr.make('rules:swap', ['A dog.'], seed=1), method='optimal')\n"
        "class Mine(plugin.Maker):\n"
        "    whole = True\n"
        "cr.score(1, 2, 3, nonsense='x')\n"
        "cr.audit('b', thresold=0.6)\n"
        "cr.refine('b', method='gird')\n"
        "refined.bench.onyl('swap')\n"
        "run.acuracy\n",
        encoding="utf-8",
    )
    words = ["mypy", "--strict", "--config-file=", "--timing-stats=read.txt", "own.py"]
    said = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path).stdout
    assert {int(n) for n in re.findall(r"^own.py:(\d+): error", said, re.MULTILINE)} == {*range(9, 14)}, said
    read = {line.split(".")[0].split()[0] for line in (tmp_path / "read.txt").read_text("utf-8").splitlines()}
    assert read & stubs.LARGE == set()
    assert "numpy" in read, "a type of numpy is a type"


def test_every_function_is_called_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    elsewhere = {"tune", "robustness", "overlap", "power", "fit_study", "get_benchmark"}
    functions = {n for n in cr.__all__ if hasattr(getattr(cr, n), "options")} - elsewhere
    assert [n for n in functions if f"cr.{n}" not in source] == []
