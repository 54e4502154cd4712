"""Generative models through the scorer and the commands; published answers as runs; α on held-out items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tiny_vlm import tiny_llava_onevision

from creperie.bench import Benchmark, Item, choice, from_items, open_store, save
from creperie.cli.app import cli
from creperie.core import CreperieError, ModelError
from creperie.models import load_model
from creperie.scoring import import_answers, load_run, score


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    folder = tmp_path / "images"
    folder.mkdir()
    rng = np.random.default_rng(0)
    items = []
    for n, size in enumerate([(40, 30), (30, 64), (40, 30)]):
        Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)).save(folder / f"{n}.png")
        captions = (f"a dog chases {n} cats", f"{n} cats chase a dog", "the lawn is green")
        items.append(Item(str(n), "s", (f"{n}.png",), captions, choice(2, 1), {}))
    (folder / "bad.png").write_bytes(b"broken")
    items.append(Item("bad", "s", ("bad.png",), ("a", "b", "c"), choice(2, 1), {}))
    return from_items("mine", items, images=open_store(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llava_onevision(tmp_path_factory.mktemp("vlm"))


def test_the_scorer_gives_what_the_model_gives(bench: Benchmark, folder: Path) -> None:
    uri = f"vlm:{folder}?score=visualgpt"
    run = score(bench, uri, tasks=["itt"])
    model: Any = load_model(uri, device="cpu")
    cells = run.scores("image_text").reshape(4, 3)
    for n, item in enumerate(list(bench)[:3]):
        with Image.open(Path(bench.images.location) / item.images[0]) as picture:
            expected = model.score_pairs(picture.convert("RGB"), item.captions)
        np.testing.assert_allclose(cells[n], expected, atol=1e-5)
    assert np.isnan(cells[3]).all()
    assert run.document["finding_counts"] == {"undecodable-image": 1}


def test_local_answers_without_an_end_token_are_void(bench: Benchmark, folder: Path) -> None:
    """A tiny model goes on and on: nothing that it wrote is an answer, however it begins."""
    uri = f"vlm:{folder}?score=choice&by=generate&max_tokens=2&order=given"
    with pytest.raises(ModelError, match=r"3 of 3 items .*cut-off answer.*max_tokens=8 \(now 2\)"):
        score(bench.head(3), uri, tasks=["itt"])


@pytest.mark.slow
def test_commands_end_to_end(bench: Benchmark, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "bench"
    save(bench.head(3), place)
    images = ["--images", str(tmp_path / "images"), "--out", str(tmp_path / "runs"), "--json"]
    documents = {}
    for way in ("visualgpt", "vqa", "choice"):
        documents[way] = call(["score", str(place), "--model", f"vlm:{folder}?score={way}", *images])
    documents["noise"] = call(
        ["score", str(place), "--model", f"vlm:{folder}?score=visualgpt", "--image", "noise", *images]
    )
    assert len({d["run"] for d in documents.values()}) == 4
    seeing, blind = load_run(documents["visualgpt"]["run"]), load_run(documents["noise"]["run"])
    assert not np.allclose(seeing.scores("image_text"), blind.scores("image_text"))
    table = call(["sensitivity", str(place), "--model", f"vlm:{folder}?score=choice", *images[:2], "--json"])
    assert {r["order"] for r in table["rows"]} == {"NPP", "PNP", "PPN"}
    assert set(table["spread"]) == {"s", "all"}


def call(arguments: list[str]) -> dict[str, Any]:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


# -- published answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "hits"),
    [("positive-first/gpt4v-swap_obj.json", 211), ("negative-first/gpt4v-swap_obj.json", 198)],
)
def test_published_answers_are_recounted(file: str, hits: int, shared_data: Path) -> None:
    """GPT-4V on swap_obj: 211 and 198 of 246, by the order of the options."""
    run = import_answers(shared_data / "sugarcrepe/gpt-4v-results" / file)
    (result,) = [r for r in run.results if r["subset"] == "swap_obj"]
    assert (result["hits"], result["n"]) == (hits, 246)
    assert run.document["notes"] == []


def answers_file(path: Path, **records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"accuracy": 0.5, **records}), encoding="utf-8")
    return path


def record(free: str, picked: str, correct: bool) -> dict[str, Any]:
    answer = {"free_form_answer": free, "multiple_choice_answer": picked}
    pair = {"caption": "a cat ", "negative_caption": "a dog", "filename": "1.jpg"}
    return {**pair, "answer": answer, "correct": correct}


def test_answers_are_read_and_strays_left_out(tmp_path: Path) -> None:
    file = answers_file(
        tmp_path / "negative-first" / "talker-swap_obj.json",
        a=record("(2)", "a cat ", True),
        b=record("(1)", "a dog", False),
        c=record("(2)", "", True),  # not picked by the publisher, but it can be read: second is the true one
        d=record("both are fine", "", False),
    )
    run = import_answers(file)
    assert run.model == "answers:talker?order=negative-first"
    assert run.scores("image_text").tolist() == [1, 0, 0, 1, 1, 0, 0, 0]
    assert run.document["finding_counts"] == {"unparsable-answer": 1}
    assert "'both are fine'" in run.findings[0]["message"]
    assert (run.document["coverage"], run.document["device"]) == ({"items": 4, "image_text": 4}, "")
    result = CliRunner().invoke(cli, ["runs", "import", str(file), "--out", str(tmp_path / "runs"), "--json"])
    saved = load_run(json.loads(result.stdout)["run"])
    assert saved.results[0]["hits"] == 2


def test_wrong_answer_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(CreperieError, match=r"list\.json: is not a JSON object"):
        import_answers(tmp_path / "list.json")
    with pytest.raises(CreperieError, match="which caption was offered first"):
        import_answers(answers_file(tmp_path / "talker-s.json", a=record("(1)", "a dog", True)))
    with pytest.raises(CreperieError, match="record 'a': 'answer' is missing"):
        import_answers(
            answers_file(tmp_path / "x-s.json", a={"caption": "", "negative_caption": "", "filename": ""}),
            order="positive-first",
        )
