"""Scores of other tools as runs, and benchmarks as other tools open them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from creperie.bench import Benchmark, save
from creperie.core import DataError, UsageError
from creperie.scoring import import_replies
from creperie.world import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Pairs, (P1, P2, N) and two images with two captions: one fits, one does not, and neither."""
    place = tmp_path_factory.mktemp("world")
    made = make_world(World(items=4, kinds=("swap_obj", "replace_att"), forms=("choice", "winoground"), size=32))
    return save(replace(made, name="My world!"), place / "world", copy_images=True)


def pick(options: Sequence[str]) -> int:
    """A rule that depends on what is offered, and on its order where two captions are equally long."""
    return max(range(len(options)), key=lambda k: len(options[k]))


def hits(results: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    own = [r for r in results if r["task"] in ("itt", "tot") and r["subset"] != "macro"]
    return {r["subset"]: (r["hits"], r["ties"]) for r in own}


def pairs_of(world: Benchmark) -> Benchmark:
    return world.filter([len(item.captions) == 2 and len(item.images) == 1 for item in world])


@pytest.mark.parametrize("form", ["wide", "list", "choice", "jsonl"])
def test_a_plain_table_becomes_a_run(world: Benchmark, tmp_path: Path, form: str) -> None:
    bench = pairs_of(world)
    rows = []
    for item in bench:
        best = pick(item.captions)
        scores = [float(k == best) for k in range(2)]
        rows.append({"id": item.id, "subset": item.subset, "scores": scores, "choice": best})
    file = tmp_path / ("mine.jsonl" if form == "jsonl" else "mine.csv")
    if form == "jsonl":
        file.write_text("\n".join(json.dumps({k: r[k] for k in ("id", "subset", "scores")}) for r in rows))
    else:
        heads = {"wide": "score_0,score_1", "list": "scores", "choice": "choice"}[form]
        cells = {
            "wide": lambda r: f"{r['scores'][0]},{r['scores'][1]}",
            "list": lambda r: f'"{r["scores"]}"',
            "choice": lambda r: str(r["choice"]),
        }[form]
        file.write_text("\n".join([f"id,subset,{heads}", *(f"{r['id']},{r['subset']},{cells(r)}" for r in rows)]))
    run = import_replies(file, bench, model="my/model")
    assert run.model == "table:my/model"
    won = sum(pick(item.captions) == 0 for item in bench)
    assert hits(run.results)["all"][0] == won
    assert run.save(tmp_path / "runs").path is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,choice\nnobody,0\n", "row 1 has no scores"),
        ("id,subset,choice\nFIRST,-1\n", "row 1 has no scores"),
        ('id,subset,scores\nFIRST,"[1, 2, 3]"\n', "3 scores for item"),
        ('id,subset,scores\nnobody,s,"[1, 2]"\n', "an answer to item s/nobody"),
        ("", "is empty; the first line must name the columns"),
    ],
)
def test_tables_that_do_not_fit_are_named(world: Benchmark, tmp_path: Path, text: str, says: str) -> None:
    bench = pairs_of(world)
    first = next(iter(bench))
    (tmp_path / "mine.csv").write_text(text.replace("FIRST", f"{first.id},{first.subset}"), encoding="utf-8")
    with pytest.raises(DataError, match=says) as e:
        import_replies(tmp_path / "mine.csv", bench)
    assert "mine.csv" in str(e.value)


def test_a_removed_format_says_what_to_use(tmp_path: Path) -> None:
    from creperie.cli.app import cli

    for name in ("mteb", "lmms-eval"):
        gone = CliRunner().invoke(cli, ["data", "export", "x", "--format", name, "--out", str(tmp_path / "gone")])
        assert isinstance(gone.exception, UsageError)
        assert "was removed; pass --format datasets" in str(gone.exception)


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
