"""Conditions as users write them, and several changes in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.bench import Benchmark, Item, choice, from_items
from creperie.bench.editing import Edit, edit, read_tags, where
from creperie.core.errors import CreperieError, DataError, UnknownNameError, UsageError

KINDS = ("noun", "verb")


@pytest.fixture
def bench() -> Benchmark:
    rows = [
        Item(
            str(i),
            "swap" if i < 5 else "add",
            () if i == 9 else ("i.jpg",),
            ("p", "n") if i else ("p", "q", "n"),
            choice(1 if i else 2, 1),
            {"n": i, "odd name": "x", "ok": i % 2 == 0} | ({"kind": KINDS[i % 2]} if i < 8 else {}),
        )
        for i in range(10)
    ]
    return from_items("mine", rows)


Test = Callable[[int], bool]
CONDITIONS: dict[str, Test] = {
    "tag.n > 4": lambda i: i > 4,
    "n > 4": lambda i: i > 4,
    "4 < tag.n <= 7": lambda i: 4 < i <= 7,
    "tag.n == 3 or tag.n == 4": lambda i: i in (3, 4),
    "not tag.n > 4 and subset == 'swap'": lambda i: i <= 4,
    "not (tag.n > 4 or id == '0')": lambda i: 1 <= i <= 4,
    "subset in ('add', 'other')": lambda i: i >= 5,
    "id not in ['1', '2']": lambda i: i not in (1, 2),
    "tag.kind is None": lambda i: i >= 8,
    "tag.kind is not None": lambda i: i < 8,
    "tag.ok": lambda i: i % 2 == 0,
    "not tag.ok": lambda i: i % 2 == 1,
    "tag.ok == False": lambda i: i % 2 == 1,
    'tag["odd name"] == "x"': lambda i: True,
    "len(captions) == 3": lambda i: i == 0,
    "len(images) < 1": lambda i: i == 9,
    "contains(kind, 'ou')": lambda i: i < 8 and i % 2 == 0,
    "tag.n > -1.5": lambda i: True,
    " tag.n != 0 ": lambda i: i != 0,
    "3 <= tag.n": lambda i: i >= 3,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions(bench: Benchmark, text: str) -> None:
    kept = [int(item.id) for item in bench.filter(where(text, bench.columns))]
    assert kept == [i for i in range(10) if CONDITIONS[text](i)]


@pytest.mark.parametrize(
    "text",
    ["", "tag.n >", "1 +", "tag.n + 1 > 2", "__import__('os').system('x')", "tag.n if 1 else 2", "len(captions, 2) > 1"]
    + ["tag.n is 3", "id in subset", "lambda: 1", "contains(id, 3)", "'text'", "3", "tag.kind.x == 1", "(" * 500]
    + ["id == '\0'", "not " * 3000 + "tag.ok"],
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(UsageError, match="write for example") as caught:
        where(text, ["id", "subset", "tag.n", "tag.kind", "captions"])
    assert "\n" not in str(caught.value)


def test_wrong_columns_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'tag\.kind'"):
        where("tag.kinds == 'x'", ["id", "tag.kind"])


def test_a_condition_of_the_wrong_kind(bench: Benchmark) -> None:
    with pytest.raises(UsageError, match="does not fit"):
        edit(bench, Edit(where="tag.n > 'x'"))
    with pytest.raises(UsageError, match="does not fit"):
        edit(bench, Edit(where="len(id) > 1"))


@given(st.text())
def test_any_text_is_a_condition_or_an_error_of_ours(text: str) -> None:
    try:
        where(text, ["id", "tag.n", "captions"])
    except CreperieError:
        return


def test_all_changes_in_order(bench: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "tags.csv").write_text("subset,id,score\nadd,5,0.5\nadd,6,2\nadd,7,3\nswap,1,9\nadd,8,4\n")
    change = Edit(
        join=tmp_path / "tags.csv",
        subset=["add"],
        where="tag.score > 1",
        drop_duplicates=True,
        head=5,
        sample=1,
        seed=2,
    )
    changed = edit(bench, change)
    assert [step.op for step in changed.provenance] == ["join", "filter", "filter", "drop_duplicates", "head", "sample"]
    assert [item.id for item in changed] == ["6"]  # 7 and 8 repeat it, but for their tags
    assert changed[0].tags["score"] == 2.0


def test_nothing_to_change_is_no_step(bench: Benchmark) -> None:
    assert edit(bench, Edit()) is bench


def test_items_with_findings_can_be_dropped() -> None:
    rows = [Item(str(i), "s", (), ("a", "a" if i == 3 else f"b{i}"), choice(1, 1)) for i in range(5)]
    kept = edit(from_items("b", rows), Edit(without=["positive-equals-negative"]))
    assert [item.id for item in kept] == ["0", "1", "2", "4"]
    with pytest.raises(UnknownNameError, match="did you mean 'duplicate-item'"):
        edit(kept, Edit(without=["duplicate-items"]))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
def test_tables_of_tags(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(pa.table({"subset": ["s"], "id": ["01"], "tag.a": [1.5], "b": ["x, y"]}), path)
    else:
        text = {
            "t.csv": 'subset,id,tag.a,b\ns,01,1.5,"x, y"\n',
            "t.tsv": "subset\tid\ttag.a\tb\ns\t01\t1.5\tx, y\n",
            "t.jsonl": '{"subset": "s", "id": "01", "tag.a": 1.5, "b": "x, y"}\n',
        }[name]
        path.write_text(text)
    assert read_tags(path).to_pylist() == [{"subset": "s", "id": "01", "tag.a": 1.5, "tag.b": "x, y"}]


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", ""), ("t.jsonl", "{"), ("t.parquet", "x"), ("t.xls", "x"), ("t.csv", "a,b\n1\n")]
)
def test_tables_that_are_none(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((DataError, UsageError), match=name):
        read_tags(tmp_path / name)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match=r"none\.csv"):
        read_tags(tmp_path / "none.csv")
