"""How large every extra is on disk, and how soon commands answer: written into docs/install.md and docs/performance.md.

    python benchmarks/first_minute.py [--check] [--sizes] [--turns 5]

Sizes are those of the packages installed here that an extra brings, with all they need, as their own records list them;
an extra that is not wholly installed is left out and named. Commands are started five times on a warm disk; the middle
one counts, in processor seconds (user and system), so that other work on the machine does not. --check prints only,
--sizes leaves out the commands.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("", "models", "open-clip", "onnx", "lang", "stats", "llm", "people", "train", "report", "ray", "demo", "all")
TURNS = 5
#: What commands cannot do without: those that load a benchmark need all of it.
FLOORS = ("import click, rich.console, rich.table", "import click, rich.console, rich.table, numpy, pyarrow.compute")
COMMANDS = (
    "--help",
    "models list",
    "data list",
    "data check csv:bench.csv",
    "data show csv:bench.csv",
    "score csv:bench.csv --model blind:length-words --out runs",
    "table runs --rows model --columns subset",
    "audit csv:bench.csv --attackers length-words",
)


def closure(requirement: str, seen: dict[str, int], missing: set[str]) -> None:
    """Add a requirement and all it needs: package → bytes."""
    wanted = Requirement(requirement)
    name = re.sub(r"[-_.]+", "-", wanted.name).lower()
    key = f"{name}[{','.join(sorted(wanted.extras))}]"
    if key in seen:
        return
    if name == "creperie":  # as this checkout declares it
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        for line in [
            *project["dependencies"],
            *(e for x in wanted.extras for e in project["optional-dependencies"][x]),
        ]:
            if (marker := Requirement(line).marker) is None or marker.evaluate():
                closure(line.partition(";")[0], seen, missing)
        return
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        missing.add(name)
        return
    seen[key] = 0
    if f"{name}[]" not in seen or not wanted.extras:
        seen[f"{name}[]"] = size_of(found)
    for line in found.requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in wanted.extras or {""}):
            closure(f"{needed.name}[{','.join(needed.extras)}]" if needed.extras else needed.name, seen, missing)


def size_of(found: metadata.Distribution) -> int:
    """Bytes of a package's files; compiled Python that was written later counts too."""
    return sum(
        path.stat().st_size for file in found.files or () if (path := Path(str(found.locate_file(file)))).is_file()
    )


def sizes() -> str:
    lines = ["| extra | packages | MB on disk |", "|---|---:|---:|"]
    left: list[str] = []
    base = 0
    for extra in EXTRAS:
        seen: dict[str, int] = {}
        missing: set[str] = set()
        closure(f"creperie[{extra}]" if extra else "creperie", seen, missing)
        if missing:
            left.append(f"`{extra}` ({', '.join(sorted(missing))} not installed here)")
            continue
        total, count = sum(seen.values()), sum(key.endswith("[]") for key in seen)
        base = base or total
        more = f"+ {(total - base) / 1e6:,.0f}" if extra else f"{total / 1e6:,.0f}"
        lines.append(f"| {f'`{extra}`' if extra else 'none'} | {count} | {more} |")
    note = f"Not measured: {'; '.join(left)}." if left else ""
    return "\n".join([*lines, "", note]).strip()


def cpu_seconds(command: list[str], place: Path, turns: int) -> float:
    """Processor seconds of a command; the middle of several."""
    took = []
    for _ in range(turns):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=place, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(took)


def start_up(turns: int) -> str:
    lines = ["| command | processor seconds |", "|---|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ["CREPERIE_CACHE"] = str(place / "cache")
        rows = "".join(f"a red cup number {n} on a table,a table number {n} on a red cup\n" for n in range(200))
        (place / "bench.csv").write_text("caption,foil\n" + rows)
        run = [sys.executable, "-m", "creperie"]
        score = ["score", "csv:bench.csv", "--model", "blind:length-words", "--out", "runs/first"]
        subprocess.run([*run, *score], cwd=place, capture_output=True, check=True)
        bare = cpu_seconds([sys.executable, "-c", "import creperie"], place, turns)
        lines.append(f"| `python -c 'import creperie'` | {bare:.2f} |")
        for needed in FLOORS:
            lines.append(
                f"| `python -c '{needed}'` | {cpu_seconds([sys.executable, '-c', needed], place, turns):.2f} |"
            )
        lines += [f"| `creperie {c}` | {cpu_seconds([*run, *c.split()], place, turns):.2f} |" for c in COMMANDS]
    return "\n".join(lines)


def write(page: Path, mark: str, text: str) -> None:
    """Put a text between its marks."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    head, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="print only")
    arguments.add_argument("--sizes", action="store_true", help="only the sizes")
    arguments.add_argument("--turns", type=int, default=TURNS, help="how often a command is started")
    chosen = arguments.parse_args()
    where = f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}, {os.cpu_count()} cores:"
    parts = (("install.md", "sizes", sizes), ("performance.md", "start-up", lambda: start_up(chosen.turns)))
    for page, mark, measured in parts[: 1 if chosen.sizes else None]:
        text = measured()
        print(where, text, sep="\n\n")
        if not chosen.check:
            write(ROOT / "docs" / page, mark, f"{where}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
