"""The command line's frame: how commands end, what goes to which stream, how fast it starts."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from foils import foil_bench

from creperie.cli.app import COMMANDS, cli
from creperie.cli.output import CommandResult, answers
from creperie.core import CreperieError, unknown

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("command", ["models list", "data list", "data list --json"])
def test_lists_need_nothing_scientific(command: str, tmp_path: Path) -> None:
    """What only reads lists that come with creperie does without numpy and pyarrow, which take longer than the rest."""
    code = (
        f"import sys; sys.argv = ['creperie', *{command.split()!r}]\n"
        "from creperie.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "    heavy = {'numpy', 'pyarrow', 'PIL', 'scipy', 'pandas'} & set(sys.modules)\n"
        "    print('heavy:', *sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stderr.split() == ["heavy:"], done.stderr
    assert done.stdout
    assert done.returncode == 0


def test_scoring_by_word_counts_needs_neither_pandas_nor_torch(tmp_path: Path) -> None:
    """pyarrow would import pandas (0.4 s) for the first list it sees; `to_pandas` still can."""
    pytest.importorskip("pandas")
    (tmp_path / "b.csv").write_text("caption,foil\na red cup,a blue cup\n")
    code = (
        "import sys; sys.argv = ['creperie', 'score', 'csv:b.csv', '--model', 'blind:length-words', '--out', 'runs']\n"
        "from creperie.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "    print('pandas' in sys.modules, 'torch' in sys.modules, file=sys.stderr)\n"
        "    import pyarrow as pa; print(len(pa.table({'a': [1]}).to_pandas()), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stderr.split()[-3:] == ["False", "False", "1"], done.stderr
    assert done.returncode == 0


def test_audit_is_a_room_and_a_function() -> None:
    """Whether or not the room was imported before, `creperie.audit` can be called."""
    import creperie
    import creperie.auditing.pairs

    assert creperie.audit(foil_bench([(f"a {i}", f"not a {i}") for i in range(30)]), ["negation"]).verdict == "leaks"


def test_version_is_the_packages(command: Any) -> None:
    """The version is written once, in the package; the build reads it from there."""
    import creperie

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert creperie.__version__ in (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    code, said, _ = command("--version")
    assert (code, said.split()[0], creperie.__version__ in said) == (0, "creperie", True)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_json(name: str) -> None:
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command.help
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        options = {o for p in leaf.params for o in p.opts}
        assert leaf.help, f"{name} {leaf.name} has no help"
        assert "--json" in options, f"{name} {leaf.name} has no --json"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["dat"], "did you mean 'data'"),
        (["data", "chekc", "x"], "did you mean 'check'"),
        (["data", "show"], "Missing argument"),
        (["data", "show", "no-such-thing"], "no-such-thing"),
        (["data", "show", "sugarcreep:/tmp"], "did you mean 'sugarcrepe'"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(command: Any, args: list[str], says: str) -> None:
    code, out, err = command(*args)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("creperie: ")
    assert says in err


def test_json_goes_to_stdout_alone_and_has_no_nan(capsys: pytest.CaptureFixture[str], command: Any) -> None:
    @click.command()
    @answers
    def ask() -> CommandResult:
        if "--json" in asked:
            print("a model prints while it loads")
        return CommandResult({"x": float("nan"), "y": [1.5, float("inf")]}, lambda: print("text"), ok=False)

    asked = ["--json"]
    assert ask.main(asked, standalone_mode=False) == 1
    assert json.loads(capsys.readouterr().out) == {"x": None, "y": [1.5, None]}
    asked.clear()
    assert ask.main(asked, standalone_mode=False) == 1
    assert capsys.readouterr().out == "text\n"


def test_errors_are_one_line_whatever_they_quote() -> None:
    assert str(CreperieError("a\nb", where="f\n:3", hint="do\n this")) == "f :3: a b; do this"
    assert "Known: a, b" in str(unknown("thing", "zzz", ["b", "a"]))


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines of a table on a terminal of 80 columns, without colours."""
    from creperie.cli.output import print_table

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")

    def lines(*table: Any, **how: Any) -> list[str]:
        print_table(*table, **how)
        found = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
        assert all(len(line) <= 80 for line in found)
        return found

    return lines


def test_no_word_is_broken_in_80_columns(shown: Callable[..., list[str]]) -> None:
    """The audit's table broke "surface" into "surfac" and "e"."""
    names = [
        "length\nwords",
        "length\nchars",
        "surface",
        "negation",
        "frequency",
        "lm\nmean",
        "plausibility",
        "ensemble",
    ]
    row = ["replace_rel_triple", "60", *["100.0*"] * 8, "94.0–100.0"]
    plain = "\n".join(shown(["subset", "n", *names, "headline\n95 %"], [row]))
    words = set(plain.split())
    assert {"surface", "negation", "frequency", "plausibility", "ensemble", "headline", "94.0–100.0"} <= words
    assert plain.count("replace_rel_triple") > 1


def test_intervals_and_other_short_cells_have_one_line(shown: Callable[..., list[str]]) -> None:
    """`score` folded "26.7 [17.1, 39.0]" into three lines, and `data list` "25, 25, 16.7"."""
    example = "a caption that goes on and on until no terminal could show all of it in one line, however wide"
    row = ["replace_ungrammatical", "1,380", "26.7 [17.1, 39.0]", "100.0 [94.0, 100.0]", "60", example]
    lines = shown(["subset", "n", "one", "another", "ties", "for example"], [row], brief="for example")
    assert len(lines) == 4  # two parts of a head and a row
    assert "26.7 [17.1, 39.0]" in lines[1]
    assert lines[3].startswith("replace_ungrammatical")
    assert "a caption that goes" in lines[3]


def test_a_wide_matrix_is_printed_in_parts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty models on eight benchmarks were folded inside words; folders were given by their whole path."""
    from creperie.cli.score_text import show_matrix
    from creperie.scoring import Standings, StandingsColumn

    monkeypatch.setenv("COLUMNS", "80")
    models = ["hf:/a/long/way/to/first", "hf:/a/long/way/to/second", "st:/one/twin", "st:/other/twin"]
    columns = [StandingsColumn(f"benchmark-{k}", "itt", "", 0.5, ("s",), {}) for k in range(20)]
    show_matrix(Standings(columns, models, dict.fromkeys(models, 0.5), dict.fromkeys(models, 1.0)))
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line.startswith("model ")]
    assert len(heads) > 1
    assert all(sum(line.startswith(name) for line in lines) == len(heads) for name in ("hf:…/first ", "st:/one/twin "))
    assert sum(line.count("benchmark-") for line in lines) == 20


def test_a_log_tells_a_slow_rate_by_the_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A language model that wrote three foils in a minute and a half was reported as "0/s"."""
    from creperie.cli import output

    clock = itertools.count(0.0, 30.0)
    monkeypatch.setattr("creperie.cli.output.time.monotonic", lambda: next(clock))
    with output.bar("make", 3, "captions") as advance:
        for _ in range(3):
            advance(1)
    told = capsys.readouterr().err.splitlines()
    assert told[1:] == ["make: 2 of 3 captions, 2/min, 30 s left", "make: 3 of 3 captions, 2/min"]
