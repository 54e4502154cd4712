"""Mutation testing: break the code on purpose, one line at a time, and see whether the tests notice.

    python research/mutants.py                         # every target, 40 random mutants each
    python research/mutants.py scoring/store.py -n 20
    python research/mutants.py --named [WORD …]        # the mistakes that research/mutants.toml lists
    python research/mutants.py TARGET --keep           # also keep what was found in research/mutants_found.json
    python research/mutants.py TARGET --journal FILE   # write each outcome down; what is there is not run again
    python research/mutants.py --table                 # write what was kept into research/mutants.md

A target may be a pattern (`refining/*.py`): mutants are drawn from all of its files. `--table` also takes the reasons
that research/mutants_alive.toml gives for mutants that are left alive.

A mutant flips a comparison, an operator, a constant or a condition. It is *killed* when a test fails or when the tests
do not end within `--timeout` seconds (these are counted apart), *alive* when all pass. Mutants run in copies of the
sources, one per `--workers`, so the checkout is never changed. The list of living mutants is for reading:
some are equivalent (the program does the same), the others want a test.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LISTED, REASONS = ROOT / "research" / "mutants.toml", ROOT / "research" / "mutants_alive.toml"
FOUND = ROOT / "research" / "mutants_found.json"
PAGE, BEGIN, END = ROOT / "research" / "mutants.md", "<!-- mutants -->\n", "<!-- /mutants -->\n"
#: Imported once: a mutant's tests run in a fork, which has them already.
PRELOADED = ("pytest", "numpy", "pyarrow.compute", "pyarrow.parquet", "PIL.Image", "scipy.optimize", "scipy.stats")
PRELOADED += ("sklearn.linear_model", "sqlalchemy.orm", "fastapi", "httpx", "click", "rich", "yaml", "jinja2")
#: source → the tests that answer for it
TARGETS = {
    "metrics/comparison.py": ["tests/metrics/test_compare.py"],
    "metrics/rules.py": ["tests/metrics/test_rules.py", "tests/metrics/test_results.py"],
    "metrics/intervals.py": ["tests/metrics/test_intervals.py"],
    "metrics/special.py": ["tests/metrics/test_compare.py", "tests/metrics/test_intervals.py"],
    "refining/*.py": ["tests/refining", "tests/auditing/test_symmetry.py"],
    "scoring/store.py": ["tests/scoring/test_store.py"],
    "scoring/segments.py": ["tests/scoring/test_store.py"],
    "models/api/ledger.py": ["tests/models/test_ledger.py", "tests/models/test_api.py"],
}
COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in"}
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}


@dataclass(frozen=True)
class Mutant:
    line: int
    before: str
    after: str
    start: int
    end: int


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module: (part of) one expression written differently."""
    tree = ast.parse(source)
    docs = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, DOCUMENTED) and n.body and is_text(n.body[0])}
    offsets = [0]
    for text in source.encode().split(b"\n"):
        offsets.append(offsets[-1] + len(text) + 1)
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in docs:
            continue
        after = changed(node)
        before = ast.get_source_segment(source, node) or ""
        if after and after != before and node.end_lineno and node.end_col_offset is not None:
            start = offsets[node.lineno - 1] + node.col_offset
            yield Mutant(node.lineno, before, after, start, offsets[node.end_lineno - 1] + node.end_col_offset)


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def changed(node: ast.expr) -> str:
    """The expression written differently; empty where there is no such mutant."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return f"({left} {COMPARED[type(node.ops[0])]} {right})"
    if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        return f"({ast.unparse(node.left)} {COMPUTED[type(node.op)]} {ast.unparse(node.right)})"
    if isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        return "(" + word.join(f"({ast.unparse(v)})" for v in node.values) + ")"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"bool({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return repr(node.value + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return repr(not node.value)
    return ""


def outcome(copy: Path, target: str, mutant: Mutant, source: str, tests: list[str], timeout: int) -> str:
    """Whether a test or doctest fails in a fork of this process that imports the mutant: killed, timed out or alive."""
    data = source.encode()
    file = copy / "creperie" / target
    file.write_bytes(data[: mutant.start] + mutant.after.encode() + data[mutant.end :])
    sys.stderr.flush()
    child = os.fork()
    if not child:
        run_tests(copy, tests if b">>>" not in data else [*tests, str(file)])
    try:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return "killed" if os.waitstatus_to_exitcode(status) else "alive"
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timed out"
    finally:
        file.write_text(source, encoding="utf-8")


def run_tests(copy: Path, tests: list[str]) -> None:
    """In the fork: run the tests with the copy's sources, and end with pytest's exit code."""
    import pytest

    os.setpgrp()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests])))


def run_named(copy: Path, timeout: int, words: list[str]) -> dict[str, Any]:
    """The mutants that were made by hand (or those whose name holds one of the words): which of them live."""
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))["mutant"]
    listed = [record for record in listed if not words or any(word in record["what"] for word in words)]
    alive = []
    for record in listed:
        source = (ROOT / "src" / "creperie" / record["file"]).read_text(encoding="utf-8")
        if source.count(record["before"]) != 1:
            raise SystemExit(f"{record['what']}: {record['file']} does not hold this text once: {record['before']}")
        start = source.encode().index(record["before"].encode())
        line = source[: source.index(record["before"])].count("\n") + 1
        end = start + len(record["before"].encode())
        mutant = Mutant(line, record["before"], record["after"], start, end)
        found = outcome(copy, record["file"], mutant, source, record["tests"], timeout)
        print(f"{found:9}  {record['what']}", file=sys.stderr, flush=True)
        if found == "alive":
            alive.append(record["what"])
    return {"mutants": len(listed), "killed": len(listed) - len(alive), "alive": alive}


@dataclass(frozen=True)
class Trial:
    """One random mutant: its file, that file's text, and what its tests are run with."""

    file: str
    mutant: Mutant
    source: str
    tests: list[str]
    timeout: int

    @property
    def name(self) -> str:
        return f"{self.file}:{self.mutant.line} ({self.mutant.start})  {self.mutant.before} → {self.mutant.after}"


_own: dict[str, Path] = {}


def _try(trial: Trial) -> tuple[str, str]:
    """In a worker: the trial's name and outcome, in this process's own copy of the sources."""
    if "copy" not in _own:
        _own["copy"] = Path(tempfile.mkdtemp(dir=_own["all"]))
        shutil.copytree(ROOT / "src" / "creperie", _own["copy"] / "creperie")
    return trial.name, outcome(_own["copy"], trial.file, trial.mutant, trial.source, trial.tests, trial.timeout)


def run_random(copies: Path, target: str, options: argparse.Namespace) -> dict[str, Any]:
    """Random mutants of one target: which of them live."""
    root = ROOT / "src" / "creperie"
    sources = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.glob(target))
    }
    drawn = [(file, mutant) for file, source in sources.items() for mutant in mutants(source)]
    random.Random(options.seed).shuffle(drawn)
    trials = [Trial(f, m, sources[f], TARGETS[target], options.timeout) for f, m in drawn[: options.n]]
    seen: dict[str, str] = {}
    if options.journal and options.journal.exists():
        seen = dict(json.loads(line) for line in options.journal.read_text(encoding="utf-8").splitlines())
    left = [t for t in trials if t.name not in seen]
    _own["all"] = copies
    untouched = Trial(next(iter(sources)), Mutant(0, "", "", 0, 0), next(iter(sources.values())), TARGETS[target], 900)
    if left and _try(untouched)[1] != "alive":
        raise SystemExit(f"{target}: its tests fail before anything is changed")
    _own.pop("copy", None)  # each worker makes its own
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for name, found in pool.imap_unordered(_try, left):
            print(f"{found:9}  {name}", file=sys.stderr, flush=True)
            seen[name] = found
            if options.journal:
                with options.journal.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, found], ensure_ascii=False) + "\n")
    shown = {t.name: f"{Path(t.file).name}: " * (len(sources) > 1) + t.name.split("  ", 1)[1] for t in trials}
    alive = [shown[t.name] for t in trials if seen[t.name] == "alive"]
    slow = sum(seen[t.name] == "timed out" for t in trials)
    print(f"{target}: {len(trials) - len(alive)} of {len(trials)} killed, {slow} by the time limit", file=sys.stderr)
    return {"mutants": len(trials), "killed": len(trials) - len(alive), "timed out": slow, "alive": alive}


def table(found: dict[str, dict[str, Any]]) -> str:
    """What was found as Markdown, with the reasons why mutants are left alive."""
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    lines = ["| file | killed | alive, and why |", "|---|---|---|"]
    for target, record in sorted(found.items()):
        why = reasons.get(target, {})
        alive = dict.fromkeys(record["alive"])
        told = "; ".join(f"`{m}`: {why.get(m, 'wants a test')}".replace("|", "\\|") for m in alive)
        slow = f" ({record['timed out']} by the time limit)" if record.get("timed out") else ""
        lines.append(f"| {target} | {record['killed']} of {record['mutants']}{slow} | {told or '–'} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("-n", type=int, default=40, help="mutants per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=300, help="seconds per mutant")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    parser.add_argument("--journal", type=Path, help="a file of outcomes, to go on from")
    parser.add_argument("--named", action="store_true", help="the mutants of research/mutants.toml")
    parser.add_argument("--keep", action="store_true", help=f"keep what is found in {FOUND.name}")
    parser.add_argument("--table", action="store_true", help=f"write what was kept into {PAGE.name}")
    options = parser.parse_args()
    kept = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    if options.table:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{table(kept)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
        return
    for module in PRELOADED:
        with suppress(ImportError):
            import_module(module)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        if options.named:
            shutil.copytree(ROOT / "src" / "creperie", copy / "creperie")
            found["made by hand"] = run_named(copy, options.timeout, options.targets)
        for target in () if options.named else options.targets or TARGETS:
            found[target] = run_random(copy, target, options)
    print(json.dumps(found, indent=2, ensure_ascii=False))
    if options.keep:
        FOUND.write_text(json.dumps(kept | found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
