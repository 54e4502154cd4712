"""Files that were damaged or edited after they were written: none is taken for what was written."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_makers import SlowMaker
from older import without_checksums
from PIL import Image

import creperie
from creperie.auditing import audit_document, keep_audit, kept_audit
from creperie.bench import Benchmark, Item, from_items, load, save
from creperie.core import CreperieError, DataError, json_value, read_json, write_json
from creperie.making import make, read_captions
from creperie.models.api.endpoint import AnswerCache, Endpoint
from creperie.models.api.ledger import SpendLedger
from creperie.recipes import read_recipe
from creperie.recipes.kitchen import run_stages
from creperie.scoring import Run, load_run

pytestmark = pytest.mark.usefixtures("own_cache")


def small(folder: Path) -> Benchmark:
    """Three items with a picture each, one of them with tags."""
    (folder / "pictures").mkdir()
    for i in range(3):
        Image.new("RGB", (4, 4), (i, 0, 0)).save(folder / "pictures" / f"{i}.png")
    tags: dict[str, Any] = {"n": 1.5, "sure": True, "who": "é"}
    items = [Item(f"{i}", "s", (f"{i}.png",), (f"a dog {i}", f"{i} cats"), ((True, False),), tags) for i in range(3)]
    return save(from_items("mine", items), folder / "bench")


def small_run(folder: Path) -> Path:
    run = creperie.score(small(folder), "blind:length")
    path = replace(run, document={**run.document, "command": "creperie score mine --model m"}).save(folder).path
    assert path is not None
    return path


def content_of_run(folder: Path) -> object:
    run = load_run(folder)
    return run.document, run.table.schema, run.table.to_pylist(), run.unchecked


def content_of_bench(folder: Path) -> object:
    bench = load(folder)
    about = (bench.name, bench.hash, bench.info, bench.provenance, bench.skipped, bench.images.location)
    return *about, bench.schema, bench.table.to_pylist(), bench.unchecked


FOLDERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "run": (small_run, content_of_run),
    "benchmark": (lambda folder: small(folder) and folder / "bench", content_of_bench),
}


def flipped(path: Path, bits: Iterable[int]) -> Iterator[int]:
    """Flip one bit of a file after the other, each until the next."""
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for bit in bits:
            at = bit // 8
            for byte in (whole[at] ^ (1 << bit % 8), whole[at]):
                file.seek(at)
                file.write(bytes([byte]))
                if byte != whole[at]:
                    yield bit


def loads_with_other_content(kind: str, folder: Path, bits_of: Callable[[Path], Iterable[int]]) -> list[str]:
    """Every flip of a bit with which the folder loads, but not with the content that was written."""
    make_it, content = FOLDERS[kind]
    place = make_it(folder)
    written, wrong = content(place), []
    read = (*place.glob("data/*"), place / "creperie.json", place / "run.json", place / "scores.parquet")
    for path in filter(Path.is_file, read):  # the cards of a benchmark are for people and other programs
        for bit in flipped(path, bits_of(path)):
            try:
                same = content(place) == written
            except CreperieError as e:
                same = path.name in str(e)
            if not same:
                wrong.append(f"bit {bit} of {path.name}")
        assert content(place) == written
    return wrong


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_flipped_bit_of_every_byte_is_noticed(kind: str, tmp_path: Path) -> None:
    draw = random.Random(0)

    def one_of_each(path: Path) -> list[int]:
        return [8 * i + draw.randrange(8) for i in range(path.stat().st_size)]

    assert loads_with_other_content(kind, tmp_path, one_of_each) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOLDERS)
def test_every_flipped_bit_of_a_document_is_noticed(kind: str, tmp_path: Path) -> None:
    """It is read before its checksum is known; tables are not, and one bit of a byte stands for the others."""

    def all_of_json(path: Path) -> range:
        return range(8 * path.stat().st_size if path.suffix == ".json" else 0)

    assert loads_with_other_content(kind, tmp_path, all_of_json) == []


def test_a_damaged_file_is_named_with_the_command_that_makes_it_again(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    scores = path / "scores.parquet"
    data = bytearray(scores.read_bytes())
    data[len(data) // 2] ^= 4
    scores.write_bytes(data)
    with pytest.raises(DataError) as e:
        load_run(path)
    assert str(e.value).startswith(f"{scores}: does not match its checksum")
    assert str(e.value).endswith("make it again: creperie score mine --model m")


def test_a_damaged_benchmark_says_how_it_is_made_again(tmp_path: Path) -> None:
    captions = tmp_path / "c.txt"
    captions.write_text("a dog chases a red cat over there\n")
    make(SlowMaker(), read_captions(captions), tmp_path / "it")
    items = next((tmp_path / "it" / "data").iterdir())
    items.write_bytes(items.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=r"make it again with `creperie make \S+`"):
        load(tmp_path / "it")


def test_a_run_that_was_edited_says_what_to_do(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    document = json.loads((path / "run.json").read_text())
    document["notes"] = ["a note of mine"]
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="edited it on purpose, remove 'creperie_checksums' from it"):
        load_run(path)
    del document["creperie_checksums"]
    (path / "run.json").write_text(json.dumps(document))
    edited = load_run(path)
    assert edited.document["notes"] == ["a note of mine"]
    assert edited.unchecked


def test_a_run_in_other_layout_is_the_same_run(tmp_path: Path) -> None:
    """The checksum is of the content: another indentation or order of keys, as editors make it, does not matter."""
    path = small_run(tmp_path)
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(dict(reversed(document.items()))))
    assert not load_run(path).unchecked


def test_runs_of_older_versions_load_and_are_marked(tmp_path: Path) -> None:
    first = small_run(tmp_path)
    checked = load_run(first)
    second = without_checksums(shutil.copytree(first, tmp_path / "old"))
    old = load_run(second)
    assert isinstance(old, Run)
    assert old.table == checked.table
    assert "unchecked" in repr(old)
    assert "unchecked" not in repr(checked)
    marked = f"unchecked (written by an older version, without checksums): {old.name}"
    assert marked in creperie.compare(first, second).notes
    assert not any(
        "unchecked" in note for note in creperie.compare(first, shutil.copytree(first, tmp_path / "new")).notes
    )
    assert marked in creperie.report([second], audits=[]).html
    assert marked not in creperie.report([first], audits=[]).html


def test_benchmarks_of_older_versions_load_and_are_marked(tmp_path: Path, command: Any) -> None:
    items = list(small(tmp_path))
    for old in (False, True):
        if old:
            without_checksums(tmp_path / "bench")
        assert list(load(tmp_path / "bench")) == items
        code, shown, _ = command("data", "show", tmp_path / "bench")
        assert (code, "unchecked" in shown) == (0, old)
        assert json.loads(command("data", "show", tmp_path / "bench", "--json")[1])["unchecked"] == old
        assert load(tmp_path / "bench").head(1).unchecked == old


def test_a_file_that_is_not_of_the_benchmark_is_refused(tmp_path: Path) -> None:
    small(tmp_path)
    items = next((tmp_path / "bench" / "data").iterdir())
    shutil.copy(items, items.with_name("more.parquet"))
    with pytest.raises(DataError, match=r"more\.parquet: is not a file of this benchmark"):
        load(tmp_path / "bench")


# -- everything else that is written and read again ------------------------------------------------------------------


def swap(path: Path, old: bytes, new: bytes) -> None:
    """Damage that leaves a file readable."""
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_candidates(tmp_path: Path) -> None:
    captions = tmp_path / "c.txt"
    captions.write_text("a dog chases a red cat over there\n")
    made = make(SlowMaker(), read_captions(captions), tmp_path / "it")
    assert len(list(made.outcomes)) == 1
    file = tmp_path / "it" / "candidates.parquet"
    data = bytearray(file.read_bytes())
    data[-20] ^= 1  # in the footer, which page checksums do not cover
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"candidates\.parquet: does not match its checksum.*creperie make"):
        list(made.outcomes)


def test_numbers_in_json(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"accuracy": np.float32(0.5), "by": {1: float("nan")}, "text": "\ud83e é"})
    assert read_json(tmp_path / "x.json") == {"accuracy": 0.5, "by": {"1": None}, "text": "\ud83e é"}
    swap(tmp_path / "x.json", b"0.5", b"0.7")
    with pytest.raises(DataError, match=r"x\.json: does not match its checksum"):
        read_json(tmp_path / "x.json")


def test_answers_of_servers_are_asked_for_again(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    likely = {"content": [{"token": "yes", "logprob": float("-inf")}]}
    answer = {"choices": [{"message": {"content": "yes"}, "logprobs": likely}]}
    cache.put("0" * 64, answer)
    assert cache.get("0" * 64) == answer
    swap(next(tmp_path.rglob("*.json")), b"yes", b"yer")
    assert cache.get("0" * 64) is None


def test_lines_of_a_ledger_are_booked_again(tmp_path: Path) -> None:
    endpoint = Endpoint("api:x", "x", price_in=1.0)
    answer = {"usage": {"prompt_tokens": 1000, "completion_tokens": 1}}
    first = SpendLedger(endpoint)
    first.keep_in(tmp_path / "ledger.jsonl")
    first.paid("a", answer)
    first.paid("b", answer)
    again = SpendLedger(endpoint)
    again.keep_in(tmp_path / "ledger.jsonl")
    assert (again.calls, again.tokens_in) == (2, 2000)
    swap(tmp_path / "ledger.jsonl", b'"key": "b", "calls": 1', b'"key": "b", "calls": 3')
    damaged = SpendLedger(endpoint)
    damaged.keep_in(tmp_path / "ledger.jsonl")
    assert (damaged.calls, damaged.tokens_in) == (1, 1000)
    damaged.found("b", answer | {"creperie_paid_by": damaged.making})
    assert (damaged.calls, damaged.tokens_in) == (2, 2000)


def test_kept_audits_are_computed_again(tmp_path: Path) -> None:
    bench = from_items("b", [Item("1", "s", (), ("a dog", "two cats"), ((True, False),))])
    document, origin = audit_document(creperie.audit(bench, attackers=["length-words"])), {"digest": "0" * 64}
    keep_audit(document, origin, tmp_path)
    assert kept_audit("b", origin, tmp_path) == json_value({**document, "computed_from": origin})
    swap(next(tmp_path.glob("*.json")), b'"items": 1', b'"items": 3')
    assert kept_audit("b", origin, tmp_path) is None


STAGES = """
recipe: two
title: A world and its scores
stages:
  - name: make
    does: world
    with: {kinds: [swap_obj], items: 4, size: 32}
  - name: score
    does: score
    with: {models: ["blind:length"], tasks: [blind]}
"""


def test_a_stage_with_damaged_output_is_cooked_again(tmp_path: Path) -> None:
    file, out = tmp_path / "two.yaml", tmp_path / "out"
    file.write_text(STAGES)
    recipe = read_recipe(file, "small")
    run_stages(recipe, out)
    assert [s.state for s in run_stages(recipe, out)] == ["unchanged", "unchanged"]
    (scores,) = (out / "02-score").rglob("scores.parquet")
    whole = scores.read_bytes()
    scores.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    assert [s.state for s in run_stages(recipe, out)] == ["unchanged", "cooked"]
    assert load_run(scores.parent)
    assert scores.read_bytes() == whole
