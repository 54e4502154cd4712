"""`creperie validate` against the chat server: verdicts, findings, corrections, exit codes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import invoked
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from creperie.bench import Item, from_items, save
from creperie.cli.app import cli
from creperie.core import CreperieError
from creperie.making.llm.validate import pairs_of

TRIPLE = ((True, True, False),)
#: pairs that say the same, as the scripted validator sees it
SAME = {("a dog bites a cat", "a cat is bitten by a dog"), ("two boats", "a pair of boats"), ("a hen", "one hen")}
ITEMS = [
    Item("1", "good", (), ("a dog bites a cat", "a cat is bitten by a dog", "a cat bites a dog"), TRIPLE),
    Item("2", "bad", (), ("a dog bites a cat", "a cat bites a dog", "a dog bites a hen"), TRIPLE),
    Item("3", "bad", (), ("a hen", "A hen ", "one hen"), TRIPLE),
    Item("4", "bad", (), ("two boats", "two boats"), ((True, False),)),
    Item("5", "odd", (), ("alone",), ((True,),)),
    Item("6", "odd", (), ("a dog", "MUMBLE"), ((True, False),)),
]


def validator(q: Any) -> str:
    pair = (q.given["first"], q.given["second"])
    if "MUMBLE" in pair:
        return "I am not sure about this one."
    if pair in SAME:
        return json.dumps({"reason": "alike", "verdict": "Yes", "correction": "NA"})
    return json.dumps({"reason": "who bites whom", "verdict": "no", "correction": "a cat is bitten by a dog"})


run = partial(invoked.run, "validate")


@pytest.fixture
def bench(tmp_path: Path) -> str:
    save(from_items("b", ITEMS), tmp_path / "b")
    return str(tmp_path / "b")


def test_findings(chat: Any, bench: str, tmp_path: Path) -> None:
    chat.script = validator
    out = tmp_path / "out"
    code, document = run(bench, "--model", chat.uri, "--out", str(out))
    assert code == 1
    assert [(f["item"], f["code"], f["correction"]) for f in document["findings"]] == [
        ("2", "not-equivalent", "a cat is bitten by a dog"),
        ("3", "identical-positives", None),
        ("3", "negative-equivalent", None),
        ("4", "positive-equals-negative", None),
        ("6", "unreadable-verdict", None),
    ]
    assert document["subsets"]["bad"] == {"items": 3, "failed": 3}
    assert (document["items"], document["skipped"], document["failed"], document["pairs"]) == (5, 1, 4, 8)
    # six pairs are asked about, the unreadable one three times; one pair comes twice and is paid for once; identical
    # captions cost nothing
    assert document["calls"] == 8
    assert document["ledger"]["calls"] == len(chat.bodies) == 7
    rows = pq.read_table(out / "verdicts.parquet").to_pylist()
    assert [r["valid"] for r in rows].count(False) == 5
    assert rows[-1]["answer"] == "I am not sure about this one."
    assert json.loads((out / "validation.json").read_text())["failed"] == 4


def test_a_good_benchmark_passes_and_is_paid_for_once(chat: Any, bench: str) -> None:
    chat.script = validator
    for _ in range(2):
        code, document = run(bench, "--model", chat.uri, "--limit", "1")
        assert code == 0
        assert document["findings"] == []
    assert len(chat.bodies) == 2


def test_dry_run_and_bad_targets_cost_nothing(chat: Any, bench: str, tmp_path: Path) -> None:
    _, document = run(bench, "--model", chat.uri, "--dry-run")
    assert document["estimate"]["calls"] == 6
    assert document["estimate"]["worst"]["calls"] == 18
    with pytest.raises(CreperieError, match="exists"):
        run(bench, "--model", chat.uri, "--out", bench)
    assert not chat.bodies


def test_a_model_that_cannot_write_is_refused(bench: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.models.load_model", lambda uri, device: object())
    with pytest.raises(CreperieError, match="does not write text"):
        run(bench, "--model", "st:an-encoder")


def test_shown_for_people(chat: Any, bench: str) -> None:
    chat.script = validator
    result = CliRunner().invoke(cli, ["validate", bench, "--model", chat.uri], standalone_mode=False)
    assert result.return_value == 1
    assert "correction: a cat is bitten by a dog" in result.stdout
    assert "7 calls" in result.stdout


def test_two_images_are_asked_about_once() -> None:
    item = Item("1", "w", ("a", "b"), ("x y", "y x"), ((True, False), (False, True)))
    assert [(p.first, p.second, p.wanted) for p in pairs_of(item)] == [("x y", "y x", "crossed")]
