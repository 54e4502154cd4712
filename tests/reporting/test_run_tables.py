"""Tables of one's own runs, in the formats of papers."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from creperie.cli.compare import compare
from creperie.cli.table import table
from creperie.core import UsageError
from creperie.reporting import TableChoice, render_run_table, run_table
from creperie.scoring import Run


def test_the_best_of_a_column_is_bold_and_equal_ones_are_too(runs: list[Run]) -> None:
    dual = [run for run in runs if "itt" in run.tasks]
    made = run_table(dual, TableChoice(task="itt"))
    assert made.columns[0] == ("swap",)
    for column in made.columns:
        values = {row: made.cells[row, column].text(1) for row in made.rows}
        top = max(map(float, values.values()))
        assert {row for row, c in made.best() if c == column} == {r for r, v in values.items() if float(v) == top}
    text = render_run_table(made, "markdown")
    assert text.count("**") == 2 * len(made.best())
    run = dual[0]
    whole = next(r for r in run.results if r["task"] == "itt" and r["subset"] == "all")
    assert f"{100 * whole['accuracy']:.1f}" in text
    assert f"[{100 * whole['low']:.1f}, {100 * whole['high']:.1f}]" in text


def test_a_run_over_fewer_items_is_not_the_best(runs: list[Run]) -> None:
    made = run_table([run for run in runs if "itt" in run.tasks], TableChoice(task="itt"))
    column = made.columns[0]
    best = next(row for row, c in made.best() if c == column)
    own = made.cells[best, column]
    fewer = {(best, column): replace(own, n=own.n - own.n // 50 - 1, void=own.n // 50 + 1)}
    assert (best, column) not in replace(made, cells={**made.cells, **fewer}).best()


def test_csv_holds_the_numbers_themselves(runs: list[Run]) -> None:
    made = run_table(runs[:1], TableChoice(columns=("task", "subset")))
    rows = list(csv.DictReader(io.StringIO(render_run_table(made, "csv"))))
    wanted = {(r["task"], r["subset"]): r for r in runs[0].results if r["n"]}
    assert {(r["task"], r["subset"]) for r in rows} == set(wanted)
    for r in rows:
        assert float(r["value"]) == wanted[r["task"], r["subset"]]["accuracy"]
        assert int(r["n"]) == wanted[r["task"], r["subset"]]["n"]


def test_what_is_neither_down_nor_across_must_be_one_thing(runs: list[Run]) -> None:
    with pytest.raises(UsageError, match="several values of task"):
        run_table(runs, TableChoice())
    with pytest.raises(UsageError, match="none in common"):
        TableChoice(("model",), ("model",))
    with pytest.raises(UsageError, match="did you mean 'subset'"):
        TableChoice(("model",), ("subst",))


@pytest.mark.parametrize("form", ["latex", "html", "text"])
def test_names_are_escaped(runs: list[Run], form: str) -> None:
    made = run_table([r for r in runs if "itt" in r.tasks], TableChoice(task="itt"))
    odd = made.rows[0]
    renamed = {(("a_b & <c>",) if row == odd else row, column): cell for (row, column), cell in made.cells.items()}
    text = render_run_table(type(made)(made.choice, [("a_b & <c>",)], made.columns, renamed, made.caption), form)
    expected = {"latex": r"a\_b \& $<$c$>$", "html": "a_b &amp; &lt;c&gt;", "text": "a_b & <c>"}[form]
    assert expected in text
    if form == "latex":
        assert re.search(r"\\begin\{tabular\}\{lr+\}", text)
        assert text.index("toprule") < text.index("midrule") < text.index("bottomrule")


def test_the_commands_take_a_folder_of_runs(room: Path, tmp_path: Path) -> None:
    args = [str(room / "runs"), "--task", "itt", "--format", "latex", "--out", str(tmp_path / "t.tex"), "--json"]
    done = CliRunner().invoke(table, args)
    assert done.exit_code == 0, done.output
    assert len({cell["model"] for cell in json.loads(done.stdout)["cells"]}) == 2
    assert "\\toprule" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    duals = [str(p) for p in (room / "runs").iterdir() if "fake" in p.name]
    folder = tmp_path / "two"
    for path in duals:
        shutil.copytree(path, folder / Path(path).name)
    done = CliRunner().invoke(compare, [str(folder), "--json"])
    assert done.exit_code == 0, done.output
    tested = {name for c in json.loads(done.stdout)["comparisons"] for name in (c["a"], c["b"])}
    assert tested == {"fake:alpha", "fake:beta"}


@pytest.mark.parametrize("form", ["latex", "markdown", "csv", "html"])
def test_compare_has_the_formats_of_table(runs: list[Run], form: str, tmp_path: Path) -> None:
    places = [str(run.path) for run in runs if "itt" in run.tasks][:2]
    out = tmp_path / "pairs"
    done = CliRunner().invoke(compare, [*places, "--task", "itt", "--format", form, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["comparisons"]
    assert rows
    text = out.read_text(encoding="utf-8")
    ends = {"latex": "\\\\", "markdown": " |", "csv": "", "html": "</tr>"}
    lines = [line for line in text.splitlines() if line.endswith(ends[form])]
    if form in ("latex", "csv"):
        assert len(lines) == len(rows) + 1
    for row in rows:
        assert f"{100 * row['accuracy_a']:.1f}" in text
    if form == "latex":
        table = text[: text.index("bottomrule")]
        assert "−" not in table  # a character that LaTeX has no letter for
