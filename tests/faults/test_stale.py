"""No stored result is taken for one that was computed from something else: one test per kind of cache.

Each changes one thing that a result depends on, between two calls with the same folder or cache.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foils import foil_items
from loopback import Request, serving
from PIL import Image

from creperie.bench import Benchmark, Item, choice, from_items, open_store, save
from creperie.core import CreperieError, digests
from creperie.engine import Local, Shard
from creperie.metrics import MetricSettings
from creperie.scoring import (
    Matrix,
    MatrixColumn,
    MatrixRow,
    ResultStore,
    Run,
    ScoreOptions,
    load_run,
    merged_run,
    score_all,
)

pytestmark = pytest.mark.usefixtures("own_cache")
OPTIONS = ScoreOptions(device="cpu", tasks=("itt",))


@pytest.fixture(autouse=True)
def _every_file_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long ago: otherwise nothing would be remembered, and nothing stale."""
    monkeypatch.setattr(digests, "RACY_SECONDS", 0)


def draw(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def pictures_at(folder: Path, first: int = 0) -> Path:
    for k in range(4):
        draw(folder / f"{k}.png", first + k)
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from creperie.testing.tiny import tiny_clip

    return tiny_clip(tmp_path_factory.mktemp("model") / "clip")


def bench_of(pictures: Path, captions: Sequence[str] = ("a dog", "a cat", "two birds", "a cup")) -> Benchmark:
    items = foil_items([(text, f"no {text}") for text in captions], subset="a", images="{}.png")
    return from_items("mine", items, images=open_store(str(pictures)))


def zoo(bench: Benchmark, model: str, out: Path, options: ScoreOptions = OPTIONS) -> tuple[Run, bool]:
    """The run of one cell of a zoo, and whether it was taken from the folder."""
    (cell,) = Matrix([MatrixRow(model, options)], [MatrixColumn(bench)], out, fail_fast=True).cells()
    assert cell.run is not None
    return cell.run, cell.resumed


# -- what a run is computed from: any change of it gives another run, whichever way it is scored ----------------------


def by_score(bench: Benchmark, model: str, options: ScoreOptions) -> Run:
    return score_all([bench], [model], options)[0]


def by_engine(bench: Benchmark, model: str, options: ScoreOptions) -> Run:
    return score_all([bench], [model], options, engine=Local(1))[0]


def by_shards(bench: Benchmark, model: str, options: ScoreOptions) -> Run:
    shards = [replace(options, shard=Shard(2, k)) for k in (1, 2)]
    return merged_run([run for part in shards for run in score_all([bench], [model], part)])


def one_pixel(place: Path) -> None:
    path = place / "pictures" / "2.png"
    with Image.open(path) as picture:
        changed = picture.copy()
    changed.putpixel((3, 4), (1, 2, 3))
    changed.save(path)


def one_weight(place: Path) -> None:
    one_weight_of(place / "clip")


def one_weight_of(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    (file,) = folder.glob("*.safetensors")
    weights = load_file(file)
    name = sorted(k for k, v in weights.items() if v.dtype == np.float32 and v.ndim == 2)[0]
    weights[name] = weights[name].copy()
    weights[name][0, 0] += 1e-3
    before = file.stat()
    save_file(weights, file, metadata={"format": "pt"})
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time: only the content differs


CHANGES: dict[str, tuple[Callable[[Path], None], dict[str, Any], ScoreOptions]] = {
    "one pixel": (one_pixel, {}, OPTIONS),
    "one weight": (one_weight, {}, OPTIONS),
    "one caption": (lambda _: None, {"captions": ("a dog", "a cat ", "two birds", "a cup")}, OPTIONS),
    "one item less": (lambda _: None, {"captions": ("a dog", "a cat", "two birds")}, OPTIONS),
    "the tie rule": (lambda _: None, {}, replace(OPTIONS, settings=MetricSettings(ties="half"))),
    "the level": (lambda _: None, {}, replace(OPTIONS, settings=MetricSettings(level=0.9))),
    "the tasks": (lambda _: None, {}, replace(OPTIONS, tasks=("itt", "group-match"))),
    "the precision": (lambda _: None, {}, replace(OPTIONS, dtype="bfloat16")),
}


@pytest.fixture
def place(tmp_path: Path, clip: Path) -> Path:
    pictures_at(tmp_path / "pictures")
    shutil.copytree(clip, tmp_path / "clip")
    return tmp_path


@pytest.mark.parametrize("changed", CHANGES)
def test_any_change_of_what_a_run_is_computed_from_gives_another_run(place: Path, changed: str) -> None:
    model = f"hf:{place / 'clip'}"
    first, _ = zoo(bench_of(place / "pictures"), model, place / "runs")
    assert zoo(bench_of(place / "pictures"), model, place / "runs")[1]  # nothing changed: taken from the folder
    change, items, options = CHANGES[changed]
    change(place)
    bench = bench_of(place / "pictures", **items)
    second, resumed = zoo(bench, model, place / "runs", options)
    assert not resumed
    assert second.name != first.name
    assert second.document["computed_from"]["digest"].startswith(second.name.rpartition(".")[2])
    for way in (by_score, by_engine, by_shards):
        run = way(bench, model, options)
        assert (run.name, run.document["computed_from"]) == (second.name, second.document["computed_from"])
        assert run.table.column_names == second.table.column_names


def test_zoo_takes_no_scores_of_other_images(place: Path, command: Any) -> None:
    """Twice the same zoo file, with `images: pictures`, then with `images: others`."""
    save(bench_of(place / "pictures"), place / "mine")
    pictures_at(place / "others", first=10)
    found = []
    for images in ("pictures", "others", "pictures"):
        listed = {
            "models": [f"hf:{place / 'clip'}"],
            "benchmarks": [{"bench": str(place / "mine"), "images": str(place / images)}],
        }
        (place / "zoo.yaml").write_text(json.dumps(listed), encoding="utf-8")
        code, out, _ = command("score", place / "zoo.yaml", "--out", place / "runs", "--task", "itt", "--json")
        document = json.loads(out)
        scores = load_run(document["runs"][0]["run"]).scores("image_text").tolist()
        found.append((code, document["cells"]["resumed"], scores))
    assert [(code, resumed) for code, resumed, _ in found] == [(0, 0), (0, 0), (0, 1)]
    assert found[0][2] == found[2][2] != found[1][2]


def test_zoo_completes_a_run_with_gaps(place: Path) -> None:
    whole = (place / "pictures" / "2.png").read_bytes()
    (place / "pictures" / "2.png").write_bytes(b"not a picture")
    model, out = f"hf:{place / 'clip'}", place / "runs"
    first, _ = zoo(bench_of(place / "pictures"), model, out)
    assert (first.scored, first.document["gaps"]["reasons"]) == (3, {"undecodable-image": 1})
    again, resumed = zoo(bench_of(place / "pictures"), model, out)
    assert (again.scored, resumed, again.name) == (3, False, first.name)  # tried again, in vain
    assert again.document["work"]["image"]["stored"] == 3  # only the missing one was tried
    (place / "pictures" / "2.png").write_bytes(whole)
    completed, resumed = zoo(bench_of(place / "pictures"), model, out)
    assert (completed.scored, resumed, completed.document["gaps"]) == (4, False, {})
    assert [p.name for p in out.iterdir()] == [completed.name]  # the run with the gap is not left beside it
    assert zoo(bench_of(place / "pictures"), model, out)[1]


def test_zoo_keeps_a_run_with_gaps_on_other_images(place: Path) -> None:
    (place / "pictures" / "2.png").unlink()
    model, out = f"hf:{place / 'clip'}", place / "runs"
    zoo(bench_of(place / "pictures"), model, out)
    zoo(bench_of(pictures_at(place / "others", first=10)), model, out)
    assert len(list(out.iterdir())) == 2


def test_zoo_takes_up_no_run_of_an_earlier_version(place: Path) -> None:
    model, out = f"hf:{place / 'clip'}", place / "runs"
    first, _ = zoo(bench_of(place / "pictures"), model, out)
    older = {k: v for k, v in first.document.items() if k not in ("computed_from", "gaps")}
    other = first.document | {"computed_from": first.document["computed_from"] | {"version": 0}}
    for document in (older, other):
        Run(document, first.table).save(out)
        assert load_run(out / first.name).results == first.results  # it is still read
        again, resumed = zoo(bench_of(place / "pictures"), model, out)
        assert not resumed
        assert again.document["computed_from"] == first.document["computed_from"]


def test_zoo_takes_up_no_run_of_a_model_that_its_fingerprint_does_not_identify(place: Path) -> None:
    options = replace(OPTIONS, tasks=("blind",), cache=False)
    bench = bench_of(place / "pictures")
    for _ in range(2):
        assert not zoo(bench, "blind:length", place / "runs", options)[1]


def test_shards_that_saw_different_images_are_not_merged(place: Path) -> None:
    bench = bench_of(place / "pictures", ("a dog", "a cat", "two birds", "a cup"))
    shared = bench.with_table(bench.table.set_column(2, "images", [[["0.png"]] * 4]), "same image")
    model, runs = f"hf:{place / 'clip'}", []
    for k in (1, 2):
        runs += score_all([shared], [model], replace(OPTIONS, shard=Shard(2, k)))
        draw(place / "pictures" / "0.png", 99)
    with pytest.raises(CreperieError, match=r"'0.png' changed between two shards"):
        merged_run(runs)


def test_store_takes_no_vectors_of_an_image_that_changed_while_it_was_scored(place: Path) -> None:
    """The image is replaced after its content was hashed and before it is decoded."""
    from creperie.scoring import plan as planning

    bench, store = bench_of(place / "pictures"), ResultStore()
    planned = planning.plan([bench], store=store)
    draw(place / "pictures" / "1.png", 50)
    assert planned.open(0).size == (24, 24)
    with pytest.raises(CreperieError, match="changed while it was scored"):
        planned.open(1)


def test_store_takes_no_vectors_of_a_file_with_the_same_size_and_time(place: Path) -> None:
    for name in "ab":
        draw(place / f"{name}.bmp", ord(name))
    (place / "pictures" / "0.bmp").write_bytes((place / "a.bmp").read_bytes())
    items = [Item("0", "a", ("0.bmp",), ("a dog", "a cat"), choice(1, 1))]
    bench = from_items("mine", items, images=open_store(str(place / "pictures")))
    model = f"hf:{place / 'clip'}"
    first = by_score(bench, model, OPTIONS)
    before = (place / "pictures" / "0.bmp").stat()
    (place / "pictures" / "0.bmp").write_bytes((place / "b.bmp").read_bytes())
    os.utime(place / "pictures" / "0.bmp", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (place / "pictures" / "0.bmp").stat().st_size == before.st_size
    second = by_score(bench, model, OPTIONS)
    assert second.scores("image_text").tolist() != first.scores("image_text").tolist()


def test_benchmark_folder_with_other_items_than_its_manifest_states_is_not_scored(place: Path) -> None:
    save(bench_of(place / "pictures"), place / "mine")
    save(bench_of(place / "pictures", ("a dog", "a hat", "two birds", "a cup")), place / "edited")
    shutil.rmtree(place / "mine" / "data")
    shutil.copytree(place / "edited" / "data", place / "mine" / "data")
    from creperie.bench import load

    with pytest.raises(CreperieError):
        by_score(load(place / "mine"), f"hf:{place / 'clip'}", OPTIONS)


# -- audits ----------------------------------------------------------------------------------------------------------


def atlas(command: Any, place: Path, *words: object) -> tuple[dict[str, Any], int]:
    """The audit that `atlas --keep` gives, and how many it has stored."""
    how = ("--attackers", "length-words,learned-embedding", "--encoder", f"st:{place / 'st'}", "--keep", place / "kept")
    code, *_ = command("atlas", place / "mine", *how, *words, "--out", place / "atlas.md", "--json")
    assert code == 0
    files = sorted((place / "kept").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    return json.loads(files[-1].read_text(encoding="utf-8")), len(files)


def test_audit_takes_no_results_of_other_captions_options_or_weights(tmp_path: Path, command: Any) -> None:
    from creperie.testing.tiny import tiny_sentence_encoder

    tiny_sentence_encoder(tmp_path / "st")
    items = foil_items([(f"a dog {k}", f"a dog {k} ran") for k in range(30)], subset="a")
    save(from_items("mine", items), tmp_path / "mine")
    first, stored = atlas(command, tmp_path)
    assert stored == 1
    assert atlas(command, tmp_path)[1] == 1  # the stored one
    assert atlas(command, tmp_path, "--threshold", "0.6")[1] == 2
    one_weight_of(tmp_path / "st")
    changed, stored = atlas(command, tmp_path)
    assert stored == 3
    assert changed["computed_from"]["attackers"] != first["computed_from"]["attackers"]
    items[3] = replace(items[3], captions=("a dog 3 ", "a dog 3 ran"))
    save(from_items("mine", items), tmp_path / "mine", force=True)
    assert atlas(command, tmp_path)[1] == 4


def test_audit_takes_no_results_of_a_battery_that_lacked_attackers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is installed later adds attackers: the stored audit, which lacks them, is not used."""
    from creperie.auditing import AttackerModels, AuditOptions, audit_origin, battery, keep_audit, kept_audit

    bench = from_items("mine", [Item("0", "a", (), ("a dog", "a cat"), choice(1, 1))])
    models = AttackerModels(lm="none", encoder="none")
    with monkeypatch.context() as missing:
        missing.setattr(battery, "find_spec", lambda name: None)
        poor = audit_origin(bench, AuditOptions(), models, {})
    keep_audit({"benchmark": "mine"}, poor)
    assert kept_audit("mine", poor) is not None
    assert kept_audit("mine", audit_origin(bench, AuditOptions(), models, {})) is None


# -- recipes ---------------------------------------------------------------------------------------------------------

RECIPE = """
recipe: stale
stages:
  - {name: load, does: load, with: {source: "PLACE/mine"}}
  - {name: score, does: score, with: {models: ["hf:PLACE/clip"], tasks: [itt], device: cpu}}
"""


@pytest.mark.parametrize("changed", ["one pixel", "one weight"])
def test_cook_takes_no_stage_of_other_images_or_weights(place: Path, changed: str) -> None:
    from creperie.recipes import read_recipe
    from creperie.recipes.kitchen import run_stages

    save(bench_of(place / "pictures"), place / "mine")
    (place / "stale.yaml").write_text(RECIPE.replace("PLACE", str(place)), encoding="utf-8")
    states = [{s.name: s.state for s in run_stages(read_recipe(place / "stale.yaml"), place / "out")} for _ in "ab"]
    assert [s["score"] for s in states] == ["cooked", "unchanged"]
    CHANGES[changed][0](place)
    third = {s.name: s.state for s in run_stages(read_recipe(place / "stale.yaml"), place / "out")}
    assert third["score"] == "cooked"


# -- generation, training, servers -----------------------------------------------------------------------------------


def test_make_takes_no_parts_of_other_captions_files_or_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job resumes only if everything that its outcomes depend on is the same."""
    from creperie.making import MakerOptions, build_maker, read_captions
    from creperie.making.run import job_of

    (tmp_path / "corpus.txt").write_text("A dog runs.\n", encoding="utf-8")
    (tmp_path / "captions.txt").write_text("A dog sleeps.\n", encoding="utf-8")
    options = MakerOptions(lm="none", corpus=str(tmp_path / "corpus.txt"))

    def job() -> str:
        captions = read_captions(str(tmp_path / "captions.txt"))
        return json.dumps(job_of(build_maker("rules:shuffle", options, captions), captions), default=str)

    seen = [job()]
    assert job() == seen[0]
    (tmp_path / "corpus.txt").write_text("A cat runs.\n", encoding="utf-8")
    seen.append(job())
    (tmp_path / "captions.txt").write_text("A dog sleeps. \n", encoding="utf-8")
    seen.append(job())
    monkeypatch.setattr("creperie.making.run.__version__", "0")
    seen.append(job())
    assert len(set(seen)) == 4


def test_train_takes_up_no_training_on_other_images(place: Path) -> None:
    """Not one that was interrupted, nor one that is finished: the folder is refused."""
    pytest.importorskip("accelerate")
    from creperie.training import SmallConfig, TrainingSettings, train

    config = SmallConfig(size=32, channels=(8, 8), text_width=16, heads=2, joint=16)
    how: dict[str, Any] = {"settings": TrainingSettings(steps=1, batch=2, warmup=0), "progress": None}
    train(bench_of(place / "pictures"), config, place / "trained", device="cpu", **how)
    train(bench_of(place / "pictures"), config, place / "trained", device="cpu", **how)  # nothing to do
    one_pixel(place)
    with pytest.raises(CreperieError, match="contains another training run: data differ"):
        train(bench_of(place / "pictures"), config, place / "trained", device="cpu", **how)


def test_train_takes_no_features_of_other_images(place: Path) -> None:
    """Features of frozen towers are kept in memory for the next training: other folders may have the same names."""
    from creperie.training import train_set

    one = train_set(bench_of(place / "pictures"))
    two = train_set(bench_of(pictures_at(place / "others", first=10)))
    assert [e.image for e in one.examples] == [e.image for e in two.examples]
    assert one.contents() != two.contents()
    assert one.digest != two.digest


def test_store_keeps_no_nan(own_cache: None) -> None:
    """A number that could not be computed is tried again, by audits too."""
    from creperie.auditing.cached_models import kept
    from creperie.models import Fingerprint

    mark = Fingerprint("x:y", "a", "w")
    answers = iter([np.array([1, np.nan], np.float32), np.array([2], np.float32)])
    assert np.isnan(kept(ResultStore(), mark, "blind", ["a", "b"], lambda texts: next(answers))).tolist() == [
        False,
        True,
    ]
    assert kept(ResultStore(), mark, "blind", ["a", "b"], lambda texts: next(answers)).tolist() == [1, 2]


def test_store_knows_a_model_by_all_of_an_array_in_its_options() -> None:
    """The text of an array of more than a thousand numbers leaves most of them out."""
    from creperie.models import Fingerprint

    one, two = np.zeros(5000), np.zeros(5000)
    two[2500] = 1
    assert str(one) == str(two)
    assert Fingerprint("x:y", "a", "w", options={"v": one}).key != Fingerprint("x:y", "a", "w", options={"v": two}).key


def test_weights_named_by_their_digest_are_read_all_the_same(tmp_path: Path) -> None:
    """The hub's cache names files by their SHA-256: a file that was changed there is not the one of that name."""
    import hashlib

    from creperie.models import hash_files

    blob = tmp_path / "blobs" / hashlib.sha256(b"weights").hexdigest()
    blob.parent.mkdir()
    blob.write_bytes(b"weights")
    (tmp_path / "model.safetensors").symlink_to(blob)
    before = hash_files([tmp_path / "model.safetensors"])
    blob.write_bytes(b"Weights")
    assert hash_files([tmp_path / "model.safetensors"]) != before


def test_server_answers_are_asked_for_again_if_a_byte_of_the_request_or_the_address_differs() -> None:
    from creperie.making import validate

    asked: list[str] = []

    def answer(request: Request) -> None:
        asked.append(json.dumps(request.read()))
        request.say(json.dumps({"reason": "other things", "verdict": "no", "correction": "NA"}))

    def calls(caption: str, options: str, url: str) -> int:
        before = len(asked)
        validate(
            from_items("b", [Item("0", "s", (), (caption, "a cat"), choice(1, 1))]), f"api:m?base_url={url}{options}"
        )
        return len(asked) - before

    with serving(answer) as one, serving(answer) as two:
        assert calls("a dog", "m", one) == 1
        assert calls("a dog", "m", one) == 0
        assert calls("a dog ", "m", one) == 1
        assert calls("a dog", "n", one) == 1
        assert calls("a dog", "m", two) == 1


def test_plugins_are_known_by_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages and audits that a plug-in took part in are not used after its file was edited."""
    from creperie.core import plugins, plugins_digest

    monkeypatch.syspath_prepend(str(tmp_path))
    nothing = plugins_digest()
    (tmp_path / "own_plugin.py").write_text("def judge(models): return 1\n", encoding="utf-8")
    plugins.register_attacker(importlib.import_module("own_plugin").judge, "own-judge")
    first = plugins_digest()
    assert plugins_digest() == first != nothing
    (tmp_path / "own_plugin.py").write_text("def judge(models): return 2\n", encoding="utf-8")
    assert plugins_digest() not in (nothing, first)
