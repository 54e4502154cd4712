"""Long tables from runs, and tables in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from creperie.bench import PAIRED, Benchmark, Item, choice, from_items
from creperie.core import CreperieError
from creperie.scoring import Run, layout_of_bench, score_table
from creperie.statistics import TableReading, long_table, read_table, write_table
from creperie.statistics.wording import WordingPreference, words_of

MakeRun = Callable[..., Run]


def run_on(bench: Benchmark, needs: str, scores: Sequence[float]) -> Run:
    flat = np.array(scores, dtype=np.float32)
    table = score_table(bench, layout_of_bench(bench), {needs: flat})  # type: ignore[dict-item]
    document = {"name": "run", "model": {"uri": "fake:m"}, "benchmark": {"name": bench.name, "hash": bench.hash}}
    return Run(document | {"tasks": ["itt"]}, table)


SMALL = from_items(
    "small",
    [
        Item("1", "swap", ("a.jpg#xywh=0,0,5,5",), ("a cat", "two  dogs here", "a dog"), choice(1, 2), {"n": 3.0}),
        Item("2", "swap", ("b.jpg", "c.jpg"), ("red cat", "blue cat"), PAIRED),
        Item("3", "swap", ("a.jpg",), ("one", "two"), choice(1, 1), {"n": 1.0}),
    ],
)
SCORES = [0.5, 0.2, 0.5, *(0.9, 0.1, 0.3, 0.2), np.nan, 0.1]


def test_a_row_for_every_caption_and_foil() -> None:
    table = long_table([run_on(SMALL, "image_text", SCORES)], [SMALL]).table
    assert table.column("item").to_pylist() == ["swap/1", "swap/1", "swap/2", "swap/2", "swap/3"]
    assert table.column("image").to_pylist() == ["a.jpg", "a.jpg", "b.jpg", "c.jpg", "a.jpg"]
    assert table.column("comparison").to_pylist() == ["1-1", "1-2", "1-1", "1-1", "1-1"]
    assert table.column("caption").to_pylist() == ["a cat", "a cat", "red cat", "blue cat", "one"]
    assert table.column("foil").to_pylist() == ["two  dogs here", "a dog", "blue cat", "red cat", "two"]
    assert table.column("chosen").to_pylist() == [1.0, 0.0, 1.0, 0.0, None]
    assert table.column("tie").to_pylist() == [False, True, False, False, False]
    assert table.column("gap").to_pylist()[:4] == pytest.approx([0.3, 0.0, 0.8, -0.1], abs=1e-6)
    assert table.column("longer").to_pylist() == ["foil", "equal", "equal", "equal", "equal"]
    assert table.column("tag.n").to_pylist() == [3.0, 3.0, None, None, 1.0]


@pytest.mark.parametrize(("ties", "worth"), [("wrong", 0.0), ("half", 0.5), ("right", 1.0)])
def test_ties_are_counted_and_said(ties: str, worth: float) -> None:
    long = long_table([run_on(SMALL, "image_text", SCORES)], [SMALL], TableReading(ties=ties))
    assert long.table.column("chosen").to_pylist()[1] == worth
    assert any("1 ties" in note for note in long.notes)
    assert any("1 comparisons without a score" in note for note in long.notes)


def test_a_task_gives_a_row_an_item() -> None:
    table = long_table([run_on(SMALL, "image_text", SCORES)], [SMALL], TableReading(task="itt")).table
    assert table.column("chosen").to_pylist() == [0.0, 0.0, None]
    assert table.column("tie").to_pylist() == [True, False, False]


def test_blind_runs_and_tables_without_benchmark() -> None:
    long = long_table([run_on(SMALL, "text", [2, 1, 3, 1, 0, 5, 4])])
    assert long.table.column("chosen").to_pylist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert "caption" not in long.table.column_names
    assert any("no benchmark was given" in note for note in long.notes)


def test_constructions_and_orders(events: Benchmark, make_run: MakeRun) -> None:
    table = long_table([make_run("fake:a", 1.0)], [events]).table
    rows = list(zip(*(table.column(n).to_pylist() for n in ("comparison", "type", "order"))))
    assert Counter(rows) == {
        ("1-1", "active", "different"): 120,
        ("1-2", "active", "alike"): 120,
        ("2-1", "passive", "alike"): 120,
        ("2-2", "passive", "different"): 120,
    }
    assert set(table.column("source").to_pylist()) == {"web", "film"}


def test_grammaticality_by_any_scorer(events: Benchmark, make_run: MakeRun) -> None:
    seen: list[str] = []

    def score(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([float("is" in t.split()) for t in texts])

    reading = TableReading(grammar=WordingPreference(score, "passives"))
    table = long_table([make_run("fake:a", 1.0), make_run("fake:b", 1.0)], [events], reading).table
    assert len(seen) == len(set(seen))
    found = Counter(zip(table.column("comparison").to_pylist(), table.column("grammaticality").to_pylist()))
    assert set(found) == {("1-1", "equal"), ("1-2", "foil"), ("2-1", "caption"), ("2-2", "equal")}


def test_near_scores_are_equal_if_wanted() -> None:
    bench = from_items("b", [Item("1", "s", ("i",), ("aaa", "a"), choice(1, 1))])
    run = run_on(bench, "image_text", [1.0, 0.0])
    for equal, said in ((0.0, "caption"), (2.0, "equal")):
        lengths = WordingPreference(lambda ts: np.array([len(t) for t in ts]), "length", equal)
        table = long_table([run], [bench], TableReading(grammar=lengths)).table
        assert table.column("grammaticality").to_pylist() == [said]


def test_a_part_of_the_benchmark_is_found_by_its_keys(events: Benchmark, make_run: MakeRun) -> None:
    part = events.filter(np.arange(len(events)) % 7 == 0)
    table = long_table([make_run("fake:a", 0.5, bench=part)], [events]).table
    wanted = {c for item in part for c in item.positives}
    assert set(table.column("caption").to_pylist()) == wanted


def test_sizes(events: Benchmark, make_run: MakeRun) -> None:
    runs = [make_run("fake:a", 0.5), make_run("fake:b", 0.5)]
    table = long_table(runs, [events], TableReading(sizes={"fake:a": 1e6})).table
    found = dict(zip(table.column("model").to_pylist(), table.column("size").to_pylist()))
    assert found == {"fake:a": 1e6, "fake:b": None}


def test_runs_that_cannot_be_read_together(events: Benchmark, make_run: MakeRun) -> None:
    with pytest.raises(CreperieError, match="same model on the same benchmark"):
        long_table([make_run("fake:a", 0.5), make_run("fake:a", 0.1)], [events])
    with pytest.raises(CreperieError, match="none of the benchmarks given"):
        long_table([make_run("fake:a", 0.5)], [SMALL])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])
def test_tables_survive_files(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"a": [1.5, None, 2.0], "b": ["NA", 'x, "y"', "tab\there\nline"], "c": [1, 2, 3]})
    file = write_table(table, tmp_path / "deep" / f"t{suffix}")
    assert read_table(file).to_pylist() == table.to_pylist()
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_a_table_from_r(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("y,g\n1.5,a\nNA,b\n2,NA\nnan,c\nNaN,\n", encoding="utf-8")
    found = {"y": [1.5, None, 2.0, None, None], "g": ["a", "b", None, "c", None]}
    assert read_table(tmp_path / "r.csv").to_pydict() == found


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.xls", "", "does not end in a suffix of a table file"),
        ("none.csv", None, "no such file"),
        ("bad.parquet", "x", "cannot be read"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CreperieError, match=said):
        read_table(tmp_path / name)


def test_words() -> None:
    assert words_of(pa.array(["a b", " a  b ", "", "   ", None])).tolist() == [2, 2, 0, 0, 0]
