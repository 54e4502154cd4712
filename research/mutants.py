"""Mutation testing with mutmut: break the code on purpose, one expression at a time, and see whether the tests notice.

    pip install "mutmut>=3.8"
    python research/mutants.py                    # 150 random mutants of every room; minutes on 16 cores, hours on 2
    python research/mutants.py metrics -n 20      # fewer, of one room
    python research/mutants.py metrics --again    # those that lived, with today's tests
    python research/mutants.py --table            # write what was found into research/mutants.md

mutmut makes the mutants, finds out which tests reach each function, and runs those in a fork for each mutant. This script
draws the mutants with a seed, leaves out what tests cannot judge, and keeps the outcomes. A mutant is *killed* when a
test fails or the tests do not end, *alive* when all tests that reach it pass, *unreached* when no test calls the function,
*not run* when the time was up before.

Not drawn: the wording of sentences (strings with a space). Not mutated by mutmut: decorated functions and code outside
functions. Before anything is mutated, the tests run once: those that fail, are skipped or take longer than `--slowest`
seconds on this machine are left out, and named in the outcome. research/mutants_alive.toml says which of the living
mutants are equivalent (the program does the same) and why.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REASONS, FOUND = ROOT / "research" / "mutants_alive.toml", ROOT / "research" / "results" / "mutants"
PAGE, BEGIN, END = ROOT / "research" / "mutants.md", "<!-- mutants -->\n", "<!-- /mutants -->\n"
#: room → the tests that answer for it, beside those of its own folder and its doctests
ROOMS = {
    "metrics": ["tests/reporting/test_run_tables.py", "tests/annotation/test_rules.py"],
    "auditing": ["tests/refining/test_selection.py", "tests/faults/test_stale.py", "tests/faults/test_checksums.py"],
    "refining": ["tests/auditing/test_symmetry.py", "tests/test_api.py"],
    "scoring": ["tests/faults/test_stale.py", "tests/faults/test_checksums.py", "tests/reporting/test_matrix_page.py"],
    "bench": ["tests/formats", "tests/catalog", "tests/faults/test_checksums.py", "tests/test_api.py"],
    "statistics": [],
    "annotation": [],
}
WEB = ["src/creperie/annotation/web/*", "src/creperie/annotation/server.py"]
#: For pytest: what all mutants need is imported once; each has a cache of its own, plain signals, and quick tests first.
PLUGIN = """
import json, os, signal, tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

for name in ("scipy.stats", "sklearn.linear_model", "pyarrow.parquet", "torch", "sqlalchemy.orm", "fastapi"):
    with suppress(ImportError):
        import_module(name)

def pytest_configure():
    os.environ["CREPERIE_CACHE"] = tempfile.mkdtemp(prefix="creperie-mutant-")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    known = Path("mutmut-stats.json")
    seconds = json.loads(known.read_text())["duration_by_test"] if known.exists() else {}
    items.sort(key=lambda item: seconds.get(item.nodeid, 0))
"""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
ENDLESS = (36, 24, -24, 152, 255, -9)  # mutmut's codes for tests that did not end
REPORTED = re.compile(r"^SKIPPED (?:\[\d+\] )?(\S+)|^(\d+\.\d+)s call +(.+)$", re.MULTILINE)


def measure(room: str, options: argparse.Namespace) -> dict[str, Any]:
    """Draw a room's mutants in a copy of the project, run their tests, and return the outcomes."""
    place = Path(options.work) / room
    shutil.rmtree(place, ignore_errors=True)
    ignored = shutil.ignore_patterns(".*", "__pycache__", "mutants", "out", "site")
    shutil.copytree(ROOT, place, ignore=ignored, symlinks=True)
    if (ROOT.parent / "shared").is_dir():
        (place / "shared").symlink_to(ROOT.parent / "shared")
    os.chdir(place)
    Path("src/mutants_plugin.py").write_text(PLUGIN, encoding="utf-8")
    tests = options.tests or [f"tests/{room}", f"src/creperie/{room}", *ROOMS[room]]
    lived = living(room) if options.again else {}
    files = sorted({file_of(name) for name in lived}) or [f"src/creperie/{room}/*"]
    # A doctest is found in the copy of the unmutated function alone.
    chosen = ["-m", "not slow", "-k", "not __mutmut_ or __mutmut_orig"]
    configure(files, tests, chosen, [])
    names = draw(room, lived, options)
    path = os.pathsep.join(filter(None, (str(place / "mutants" / "src"), os.environ.get("PYTHONPATH"))))
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": path}
    run = runner(environment, options)
    out = run("tests", [*PYTEST, f"-n{options.jobs}", "--no-fold-skipped", "-rs", "--durations=0", *chosen, *tests])
    reported = REPORTED.findall(out)
    skipped = {name for name, _, _ in reported if name}
    slow = {name.strip() for _, seconds, name in reported if seconds and float(seconds) > options.slowest}
    failed = failures()
    for _ in range(4):
        configure(files, tests, chosen, sorted(skipped | slow | failed))
        log = run("mutmut", [*MUTMUT, "run", "--max-children", str(options.jobs), *names])
        if "Running mutation testing" in log:
            break
        failed |= failures()
    return {
        "seed": options.seed,
        **({"names": names} if options.again else {}),
        "left out": {"failed": sorted(failed), "skipped": sorted(skipped), "slow": sorted(slow)},
        **outcomes(names),
    }


PYTEST = (sys.executable, "-m", "pytest", "-q", "--rootdir=.", "--timeout=120")
MUTMUT = (sys.executable, "-c", "from mutmut.__main__ import cli; cli()")


def configure(mutated: list[str], tests: list[str], chosen: list[str], left_out: list[str]) -> None:
    """Write mutmut's settings into the copy's pyproject.toml."""
    files = [n for n in left_out if "::" not in n]
    added = [*chosen, *(f"--ignore={n}" for n in files), *(f"--deselect={n}" for n in left_out if n not in files)]
    added += ["-pmutants_plugin"]
    settings = {
        "source_paths": ["src/"],
        "only_mutate": mutated,
        "do_not_mutate": WEB,
        "also_copy": sorted(p.name for p in Path().iterdir() if p.name not in ("src", "mutants", "shared")),
        "pytest_add_cli_args": added,
        "pytest_add_cli_args_test_selection": tests,
        "process_isolation": "forkserver",  # a fork of a process that ran tests would have their cached results
        "use_git_change_detection": False,
        "timeout_constant": 10.0,
        "timeout_multiplier": 3.0,
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    text = "\n".join([project, "[tool.mutmut]", *lines, ""])
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    if Path("mutants").is_dir():
        shutil.copy("pyproject.toml", "mutants")


def runner(environment: dict[str, str], options: argparse.Namespace) -> Callable[[str, list[str]], str]:
    """A function that runs a command until the deadline, and returns what it printed (also kept in a file)."""

    def run(name: str, command: list[str]) -> str:
        log = Path(f"{name}.log")
        folder = Path() if "mutmut" in name else Path("mutants")
        shutil.rmtree("mutants/.pytest_cache", ignore_errors=True)
        with log.open("w", encoding="utf-8") as file:
            started = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True
            )
            try:
                started.wait(max(1.0, options.until - time.time()))
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        print(f"{Path.cwd().name}: {name} ended {time.time() - options.began:.0f} s in", file=sys.stderr, flush=True)
        return log.read_text(encoding="utf-8", errors="replace")

    return run


def failures() -> set[str]:
    """The tests that failed in the last run, as pytest's cache names them."""
    path = Path("mutants/.pytest_cache/v/cache/lastfailed")
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()


def draw(room: str, lived: dict[str, str], options: argparse.Namespace) -> list[str]:
    """Let mutmut make all mutants of the files, and draw some: at random, or those that lived and are still the same."""
    from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants

    Path("mutants").mkdir()
    copy_src_dir()
    copy_also_copy_files()
    create_mutants(os.cpu_count() or 1)
    made = sorted(all_mutants())
    if lived:
        return [name for name in made if name in lived and change(name) == lived[name]]
    random.Random(f"{options.seed} {room}").shuffle(made)
    return list(islice((name for name in made if not is_wording(name)), options.n))


def living(room: str) -> dict[str, str]:
    """The mutants of the room that are not known to be killed, each with its change."""
    found = found_in(room)
    return found["alive"] | found["unreached"] | found["not run"]


def file_of(name: str) -> str:
    """The file of a mutant, as a pattern: the name does not tell a package from a module."""
    return f"src/{name.rpartition('.')[0].replace('.', '/')}*"


def all_mutants() -> dict[str, tuple[Path, int | None]]:
    """Every mutant's file and exit code, as mutmut keeps them."""
    found: dict[str, tuple[Path, int | None]] = {}
    for path in sorted(Path("mutants/src").rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        found |= {name: (path.relative_to("mutants").with_suffix(""), code) for name, code in codes.items()}
    return found


@cache
def places() -> dict[str, Path]:
    return {name: path for name, (path, _) in all_mutants().items()}


def change(name: str) -> str:
    """The lines that the mutant takes away and adds."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = get_diff_for_mutant(name, path=places()[name]).splitlines()[2:]
    return "\n".join(line[0] + line[1:].strip() for line in lines if line[:1] in "+-")


def is_wording(name: str) -> bool:
    """Whether the mutant only rewrites a sentence: a string with a space."""
    from libcst import Module
    from mutmut.mutation.diff_apply import read_functions_from_index

    found = read_functions_from_index(name, places()[name])
    assert found
    before, after = (
        [n.value for n in ast.walk(ast.parse(Module([f]).code.strip())) if isinstance(n, ast.Constant)] for f in found
    )
    changed = [old for old, new in zip(before, after) if old != new]
    return len(before) == len(after) and len(changed) == 1 and isinstance(changed[0], str) and " " in changed[0]


def outcomes(names: list[str]) -> dict[str, Any]:
    """How many mutants were killed, by a failing test or by time, and the others with their changes."""
    codes = {name: code for name, (_, code) in all_mutants().items()}
    kinds: dict[str, list[str]] = {"killed": [], "by time": [], "alive": [], "unreached": [], "not run": []}
    for name in names:
        code = codes[name]
        ended = "alive" if code == 0 else "unreached" if code in (5, 33) else "not run" if code is None else "killed"
        kinds["by time" if code in ENDLESS else ended].append(name)
    told = {kind: {name: change(name) for name in kinds[kind]} for kind in ("alive", "unreached", "not run")}
    return {"drawn": len(names), "killed": len(kinds["killed"]), "by time": len(kinds["by time"]), **told}


def table(found: dict[str, dict[str, Any]]) -> str:
    """What was found as Markdown: a row for each room, then what lives."""
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    heads = ("room", "drawn", "killed", "alive", "unreached", "not run", "equivalent", "killed of the others")
    lines, rest = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"], []
    for room, record in found.items():
        living = record["alive"] | record["unreached"]
        same = reasons.get(room, {}).keys() & living.keys()
        killed = record["killed"] + record["by time"]
        share = killed / max(1, killed + len(living) - len(same))
        counts = (len(record[kind]) for kind in ("alive", "unreached", "not run"))
        cells = (room, record["drawn"], killed, *counts, len(same), f"{share:.0%}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
        rest += [f"- `{name}`: {shown(text)}" for name, text in living.items() if name not in same]
    return "\n".join([*lines, "", "Alive or unreached, and not equivalent:", "", *rest])


def shown(text: str) -> str:
    before, after = (" ".join(x[1:] for x in text.splitlines() if x[0] == sign) for sign in "-+")
    return f"`{before}` → `{after}`"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}")
    parser.add_argument("-n", type=int, default=150, help="mutants per room")
    parser.add_argument("--seed", type=int, default=52)
    parser.add_argument("--tests", nargs="*", help="these tests instead of those that answer for the room")
    parser.add_argument("--jobs", type=int, default=2, help="mutants of a room at a time; rooms run side by side")
    parser.add_argument("--at-once", type=int, default=1, help="rooms at a time")
    parser.add_argument("--slowest", type=float, default=10.0, help="seconds of a test above which it is left out")
    parser.add_argument("--limit", type=float, default=86_400, help="seconds after which everything ends")
    parser.add_argument("--work", help="a folder to work in (else a temporary one)")
    parser.add_argument("--again", action="store_true", help="only the mutants that lived")
    parser.add_argument("--table", action="store_true", help=f"write what was found into {PAGE.name}")
    options = parser.parse_args()
    rooms = options.rooms or list(ROOMS)
    if options.table:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        written = table({room: found_in(room) for room in ROOMS})
        PAGE.write_text(f"{before}{BEGIN}{written}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    elif len(rooms) > 1:  # a process for each: mutmut keeps its settings in the process and works in the current folder
        flags = [word for word in sys.argv[1:] if word not in rooms]
        with ThreadPoolExecutor(options.at_once) as pool:
            list(pool.map(lambda room: subprocess.call([sys.executable, __file__, room, *flags]), rooms))
    else:
        options.began, options.until = time.time(), time.time() + options.limit
        with tempfile.TemporaryDirectory() as own:
            options.work = options.work or own
            record = measure(rooms[0], options)
            os.chdir(ROOT)
        if options.again:
            record = merged(found_in(rooms[0]), record)
        FOUND.mkdir(exist_ok=True)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (FOUND / f"{rooms[0]}.json").write_text(text + "\n", encoding="utf-8")


def found_in(room: str) -> dict[str, Any]:
    return json.loads((FOUND / f"{room}.json").read_text(encoding="utf-8"))


def merged(before: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """A room's outcomes with those of the mutants that were run again."""
    told = set(again.pop("names")) - again.pop("not run").keys()
    for kind in ("alive", "unreached", "not run"):
        before[kind] = {n: text for n, text in before[kind].items() if n not in told} | again.get(kind, {})
    return before | {kind: before[kind] + again[kind] for kind in ("killed", "by time")}


if __name__ == "__main__":
    main()
