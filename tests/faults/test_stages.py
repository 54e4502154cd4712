"""Every stage through every fault that can hit it: stopped half-way, no room, a damaged cache, a clock that jumps.

A stage is a command with a slow model or maker. After the fault the same command ends with what an undisturbed one
writes, and the batches that were finished before are not computed again. docs/reliability.md has the whole matrix.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fault_makers as makers
import fault_scorers as scorers
import pytest
from foils import foil_bench

from creperie.bench import save
from creperie.cli import main
from creperie.core.checksums import CHECKSUMS
from creperie.recipes.kitchen import PASSING, TIME
from creperie.scoring import segments

Start = Callable[..., "subprocess.Popen[str]"]
Wait = Callable[[Callable[[], bool]], None]
Remount = Callable[[Path, str], None]

RECIPE = """
recipe: slow
stages:
  - {name: items, does: load, with: {source: BENCH}}
  - {name: audit, does: audit, with: {attackers: [lm-mean], lm: 'MODEL'}}
  - {name: score, does: score, from: items, with: {models: ['MODEL'], tasks: [blind]}}
"""


@dataclass(frozen=True)
class Stage:
    """A command that works with a model on a benchmark and writes to a place; all that it says or writes."""

    command: Callable[[Path, str, Path], list[str]]
    model: str = scorers.KIND  #: one whose answers are kept, or not

    def result(self, out: Path, told: str, marks: Path) -> dict[str, Any]:
        """What came of it, without the hour, the machine and the folders it was done in.

        A model's name holds the folder of its marks and its speed, a verdict's next command the folder written.
        """
        places = f"({re.escape(str(marks))}|{re.escape(marks.name)})([?]seconds=1)?|{re.escape(str(out))}"
        places += f'|"{re.escape(str(out.parent))}"'  # where the recipe lies
        told = re.sub(places, "PLACE", told)
        if out.is_file():
            return {"page": out.read_bytes()}
        found: dict[str, Any] = {}
        for path in sorted(p for p in out.rglob("*") if p.is_file() and p.name != TIME):
            name = path.relative_to(out).as_posix()
            if path.name in ("run.json", "validation.json"):
                document = json.loads(path.read_text(encoding="utf-8"))
                found[name] = {k: v for k, v in document.items() if k not in (*PASSING, "model", CHECKSUMS)}
            elif path.name != "stage.json":  # names the model with its speed
                found[name] = re.sub(f'{places}|"this document": "[0-9a-f]+"'.encode(), b"PLACE", path.read_bytes())
        if not found and told.startswith("{"):  # what was called names places of its own
            return {"told": {k: v for k, v in json.loads(told).items() if k != "command"}}
        return found or {"told": told}


def _cook(bench: Path, model: str, out: Path) -> list[str]:
    recipe = out.parent / "slow.yaml"
    recipe.write_text(RECIPE.replace("BENCH", str(bench)).replace("MODEL", model), encoding="utf-8")
    return ["cook", str(recipe), "--out", str(out)]


STAGES = {
    "score": Stage(lambda b, m, o: ["score", str(b), "-m", m, "--batch-size", "200", "--out", str(o)]),
    "audit": Stage(lambda b, m, o: ["audit", str(b), "--attackers", "lm-mean", "--lm", m, "--json"]),
    "refine": Stage(
        lambda b, m, o: (
            ["refine", str(b), "--attackers", "lm-mean", "--lm", m, "--held-out", "length-words"] + ["--out", str(o)]
        ),
    ),
    "cook": Stage(_cook),
}
#: The same for what is written once, at the end.
WRITING = {name: STAGES[name] for name in ("score", "refine", "cook")} | {
    "audit page": Stage(lambda b, m, o: [*STAGES["audit"].command(b, m, o), "--html", str(o)]),
    "validate": Stage(
        lambda b, m, o: ["validate", str(b), "--model", m, "--limit", "40", "--out", str(o)], scorers.SPEAKER
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,200 different captions: several batches for every stage."""
    folder = tmp_path_factory.mktemp("bench") / "small"
    save(foil_bench([(f"{i:04d} dogs", f"{i:04d} cats") for i in range(600)], "small"), folder)
    return folder


@pytest.fixture(autouse=True)
def known() -> None:
    makers.register()
    scorers.register()


@pytest.fixture(scope="module")
def calm(bench: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What every stage writes undisturbed; computed once, with a store of its own."""
    kept: dict[str, dict[str, Any]] = {}
    patch = pytest.MonkeyPatch()

    def result(name: str) -> dict[str, Any]:
        if name not in kept:
            place = tmp_path_factory.mktemp(f"calm-{name}")
            (place / "marks").mkdir()
            patch.setenv("CREPERIE_CACHE", str(place / "cache"))
            stage = (STAGES | WRITING)[name]
            model = f"{stage.model}:{place / 'marks'}"
            code, told, problems = called(stage.command(bench, model, place / "out"))
            assert code in (0, 1), problems
            kept[name] = stage.result(place / "out", told, place / "marks")
            patch.undo()
        return kept[name]

    yield result
    patch.undo()


def called(command: list[str]) -> tuple[int, str, str]:
    """A command in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(command)
    finally:
        signal.signal(signal.SIGTERM, handler)
    return int(str(ended.value.code)), out.getvalue(), err.getvalue()


def batches(marks: Path) -> Counter[str]:
    """How often every batch was begun."""
    return Counter(p.name.split("-")[0] for p in marks.iterdir() if not p.name.startswith("."))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "marks").mkdir()
    return tmp_path


#: `score` is killed at ten moments in tests/scoring/test_resume.py, `make` and `validate` in files of their own here
STOPS = [(name, stop) for name in STAGES for stop in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)]
#: What is run by default: each stage, each signal; the other pairs when they are asked for by name.
USUAL = {("score", signal.SIGINT), ("audit", signal.SIGKILL), ("refine", signal.SIGKILL), ("cook", signal.SIGTERM)}
MORE = pytest.mark.skipif("CREPERIE_ALL_FAULTS" not in os.environ, reason="long; set CREPERIE_ALL_FAULTS=1 to run it")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stop"),
    [pytest.param(*pair, marks=() if pair in USUAL else MORE, id=f"{pair[0]}-{pair[1].name}") for pair in STOPS],
)
def test_a_stopped_stage_goes_on(
    creperie: Start,
    wait_for: Wait,
    bench: Path,
    calm: Callable[[str], dict[str, Any]],
    place: Path,
    name: str,
    stop: signal.Signals,
) -> None:
    stage, marks, out = STAGES[name], place / "marks", place / "out"
    expected = calm(name)
    first = creperie(*stage.command(bench, f"slow:{marks}?seconds=1", out))
    wait_for(lambda: sum(batches(marks).values()) >= 3)
    before = batches(marks)
    first.send_signal(stop)
    _, told = first.communicate(timeout=280)
    if stop != signal.SIGKILL:
        assert first.returncode == 130, told
        assert told.splitlines()[-1] == "creperie: interrupted; run the same command to continue"
        assert "Traceback" not in told
    assert name == "cook" or not out.exists(), "there is nothing before it is whole"
    if name == "cook":
        assert not (out / "03-score").exists()
    code, told, problems = called(stage.command(bench, f"slow:{marks}", out))
    assert code in (0, 1), problems
    assert stage.result(out, told, marks) == expected
    again = batches(marks)
    assert sum(again[batch] > 1 for batch in before) <= 1, "only the batch that was at work is done again"


@pytest.mark.parametrize("name", WRITING)
def test_no_room_and_no_right_to_write_are_told_and_mended(
    small_disk: Path,
    remount: Remount,
    bench: Path,
    calm: Callable[[str], dict[str, Any]],
    place: Path,
    name: str,
) -> None:
    stage, marks, out = WRITING[name], place / "marks", small_disk / "deep" / "out"
    out.parent.mkdir()
    command = stage.command(bench, f"{stage.model}:{marks}", out)
    fill_up(small_disk / "filler")
    code, _, told = called(command)
    assert code == 2
    assert "No space left on device; make room, then run the same command to continue" in told
    assert "Traceback" not in told
    assert name == "cook" or stage.result(out, "", marks) == {"told": ""}, "nothing half-written"
    (small_disk / "filler").unlink()
    remount(small_disk, "size=96k,ro")
    code, _, told = called(command)
    assert code == 2
    assert "Read-only file system; choose a place that can be written" in told
    remount(small_disk, "size=16m,rw")
    code, told, problems = called(command)
    assert code in (0, 1), problems
    assert stage.result(out, told, marks) == calm(name)
    assert not list(out.parent.glob(".*")), "no draft is left behind"
    if stage.model == scorers.KIND:
        assert max(batches(marks).values()) == 1, "nothing is computed twice"


def fill_up(path: Path) -> None:
    """Write until nothing fits any more."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 512):
            continue


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", "refine"])
def test_two_processes_that_write_one_folder_leave_it_whole(
    creperie: Start, wait_for: Wait, bench: Path, calm: Callable[[str], dict[str, Any]], place: Path, name: str
) -> None:
    """These stages hold no lock: each fills a folder of its own, and the last one gives it the name. `refine`, which
    replaces nothing unasked, may find the other's work and say so."""
    stage, marks, out = STAGES[name], place / "marks", place / "out"
    both = [creperie(*stage.command(bench, f"slow:{marks}?seconds=1", out)) for _ in range(2)]
    wait_for(lambda: len({p.name.rsplit("-", 1)[1] for p in marks.iterdir()}) == 2)
    told = [process.communicate(timeout=280)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    done = codes[0]  # of `refine`: the verdict on what stays
    assert done in (0, 1) if name == "refine" else done == 0, told
    assert codes[1] in ((done, 2) if name == "refine" else (done,)), told
    assert codes[1] == done or "this folder is not empty; choose another" in "".join(told)
    assert stage.result(out, "", marks) == calm(name)
    assert not list(place.glob(".out*")), "no draft is left behind"


@pytest.mark.parametrize("name", STAGES)
def test_damaged_pages_of_the_cache_are_computed_again(
    bench: Path, calm: Callable[[str], dict[str, Any]], place: Path, name: str
) -> None:
    stage, marks = STAGES[name], place / "marks"
    called(stage.command(bench, f"slow:{marks}", place / "first"))
    computed = sum(batches(marks).values())
    pages = list((place / "cache").rglob("blind/*.seg"))
    assert pages
    for page in pages:
        data = bytearray(page.read_bytes())
        data[len(data) // 2] ^= 0x10
        page.write_bytes(bytes(data))
    code, told, problems = called(stage.command(bench, f"slow:{marks}", place / "out"))
    assert code in (0, 1), problems
    assert stage.result(place / "out", told, marks) == calm(name)
    assert sum(batches(marks).values()) > computed


@pytest.mark.parametrize("years", [-40, 40])
@pytest.mark.parametrize("name", STAGES)
def test_a_clock_that_jumps_changes_nothing(
    bench: Path,
    calm: Callable[[str], dict[str, Any]],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    years: int,
) -> None:
    stage, marks = STAGES[name], place / "marks"
    called(stage.command(bench, f"slow:{marks}", place / "first"))
    computed = batches(marks)
    jump = years * 365 * 86_400
    monkeypatch.setattr(segments.time, "time", lambda real=time.time: real() + jump)
    monkeypatch.setattr(segments.time, "time_ns", lambda real=time.time_ns: real() + jump * 10**9)
    code, told, problems = called(stage.command(bench, f"slow:{marks}", place / "out"))
    assert code in (0, 1), problems
    assert stage.result(place / "out", told, marks) == calm(name)
    assert batches(marks) == computed, "what was stored is found"
