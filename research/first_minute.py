"""What every extra takes to install, and how soon commands answer, for docs/install.md and docs/performance.md.

    python research/first_minute.py [--check] [--turns 5] [--only WORDS]
    python research/first_minute.py [--check] --install FOLDER

Commands are started five times on a warm disk, after once that does not count; the middle one counts, in processor
seconds (user and system), so that other work on the machine does not. Python's compiled files are at hand, as after an
install.
--install puts every extra into a virtual environment of its own below FOLDER, from wheels that are fetched (and built)
there first and not timed; an extra that cannot be installed is left out and named. --check prints only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    "",
    "models",
    "open-clip",
    "onnx",
    "lang",
    "stats",
    "llm",
    "people",
    "train",
    "report",
    "ray",
    "topics",
    "demo",
    "all",
)
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


def spent(command: list[str], place: Path, *, check: bool = False) -> float:
    """Processor seconds of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:120])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def installs(folder: Path) -> str:
    """Every extra in a virtual environment of its own, from wheels that lie in a folder."""
    lines = ["| extra | packages | MB on disk | processor s |", "|---|---:|---:|---:|"]
    left: list[str] = []
    wheels, base = folder / "wheels", 0.0
    how = ["--no-compile", "-c", str(ROOT / "requirements" / "constraints.txt")]
    for extra in EXTRAS:
        wanted = f"creperie[{extra}]" if extra else "creperie"
        with tempfile.TemporaryDirectory(dir=folder) as made:
            try:
                fetch = ["-m", "pip", "wheel", "-q", "-w", str(wheels), "--find-links", str(wheels), *how[1:]]
                spent([sys.executable, *fetch, f"{ROOT}[{extra}]" if extra else str(ROOT)], folder, check=True)
                spent([sys.executable, "-m", "venv", "--without-pip", made], folder, check=True)
                pip = [sys.executable, "-m", "pip", "--python", f"{made}/bin/python"]
                offline = ["install", "-q", "--no-index", "--find-links", str(wheels), *how, wanted]
                seconds = spent([*pip, *offline], folder, check=True)
            except RuntimeError as e:
                left.append(f"`{extra}` ({e})")
                continue
            listed = subprocess.run([*pip, "list", "--format", "json"], capture_output=True, text=True, check=True)
            files = (path for path in Path(made).glob("lib/*/site-packages/**/*") if path.is_file())
            size = sum(path.stat().st_size for path in files) / 1e6
        base = base or size
        more = f"+ {size - base:,.0f}" if extra else f"{size:,.0f}"
        count = len(json.loads(listed.stdout)) - 1  # without creperie itself
        lines.append(f"| {f'`{extra}`' if extra else 'none'} | {count} | {more} | {seconds:.0f} |")
        print(lines[-1], flush=True)
    note = f"Not installed: {'; '.join(left)}." if left else ""
    return "\n".join([*lines, "", note]).strip()


def cpu_seconds(command: list[str], place: Path, turns: int) -> float:
    """Processor seconds of a command: the middle of several, after one that does not count."""
    return statistics.median([spent(command, place) for _ in range(turns + 1)][1:])


def start_up(turns: int, only: str = "") -> str:
    lines = ["| command | processor seconds |", "|---|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ |= {"CREPERIE_CACHE": str(place / "cache"), "PYTHONPYCACHEPREFIX": str(place / "compiled")}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        rows = "".join(f"a red cup number {n} on a table,a table number {n} on a red cup\n" for n in range(200))
        (place / "bench.csv").write_text("caption,foil\n" + rows)
        run = [sys.executable, "-m", "creperie"]
        score = ["score", "csv:bench.csv", "--model", "blind:length-words", "--out", "runs/first"]
        subprocess.run([*run, *score], cwd=place, capture_output=True, check=True)
        bare = cpu_seconds([sys.executable, "-c", "import creperie"], place, turns)
        lines.append(f"| `python -c 'import creperie'` | {bare:.2f} |")
        for needed in () if only else FLOORS:
            lines.append(
                f"| `python -c '{needed}'` | {cpu_seconds([sys.executable, '-c', needed], place, turns):.2f} |"
            )
        lines += [
            f"| `creperie {c}` | {cpu_seconds([*run, *c.split()], place, turns):.2f} |" for c in COMMANDS if only in c
        ]
    return "\n".join(lines)


def write(page: Path, mark: str, text: str) -> None:
    """Put a text between its marks."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    head, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="print only")
    arguments.add_argument("--install", type=Path, metavar="FOLDER", help="install the extras instead")
    arguments.add_argument("--turns", type=int, default=TURNS, help="how often a command is started")
    arguments.add_argument("--only", default="", help="commands with these words; for the page, all are needed")
    chosen = arguments.parse_args()
    where = f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}, {os.cpu_count()} cores:"
    text = installs(chosen.install.absolute()) if chosen.install else start_up(chosen.turns, chosen.only)
    print(where, text, sep="\n\n")
    if not chosen.check:
        page, mark = ("install.md", "sizes") if chosen.install else ("performance.md", "start-up")
        write(ROOT / "docs" / page, mark, f"{where}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
