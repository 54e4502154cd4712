"""Which tables and figures of the papers were made, by which command, and which figures agree to the digit.

Read from the folders that recipe runs wrote; `creperie cook status` writes it as docs/papers.md.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from creperie.core import DataError, __version__, read_json
from creperie.recipes.figure_prompts import papers, prompt_figures
from creperie.recipes.kitchen import RECORD, read_card
from creperie.reporting import PublishedTable, published_tables

EXACT, PARTLY, FILLED, OPEN = "agrees", "agrees in part", "stand-ins", "not made"
DRAWN, SHOWN, NOTHING = "drawn", "shown", "nothing to compute"
#: rows of people, of released answers, and of a model that is shown demonstrations: nothing is loaded for them
ANSWERED = ("Human", "GPT-4V")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
NAMED = 3  #: rows of a table that the page names before it counts the rest


@dataclass(frozen=True)
class AgreedCell:
    """A printed figure and ours, from a run on the published items."""

    model: str
    column: str
    printed: float
    ours: float
    equal: bool


@dataclass(frozen=True)
class PaperPart:
    """The status of one table or figure."""

    paper: str
    kind: str  #: table or figure
    number: str
    what: str
    status: str
    command: str
    agreed: tuple[AgreedCell, ...] = ()
    rows: tuple[str, ...] = ()  #: what this run put into it
    needs: str = ""  #: what repeating it to the digit takes
    why: str = ""
    printed: int = 0  #: numbers that the paper prints in it
    missing: tuple[str, ...] = ()  #: models of its rows that no URI of creperie loads
    prompts: tuple[str, ...] = ()  #: asked in creperie's own words, because the paper's were not given


@dataclass
class _RunOutput:
    """What the runs of one recipe made: documents of tables, and drawn figures."""

    tables: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    figures: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  #: what the figures' axes show
    worded: set[str] = field(default_factory=set)  #: figures whose prompts were given in the paper's own words


def paper_status(folders: Sequence[Path]) -> list[PaperPart]:
    """Return every table and figure of the five papers, as far as these recipe runs made them."""
    made = _gather(folders)
    tables = {table.key.lower(): table for table in published_tables()}
    parts: list[PaperPart] = []
    for paper in papers():
        own = made.get(paper["recipe"], _RunOutput())
        for entry in paper["tables"]:
            key = f"{paper['name']}/{entry['number']}"
            table = tables.get(key.lower())
            parts.append(_table(paper, entry, table, own) if table else _described(paper, "table", entry, own))
        for entry in paper["figures"]:
            parts.append(_figure(paper, entry, own) if "draw" in entry else _described(paper, "figure", entry, own))
    return parts


def _gather(folders: Sequence[Path]) -> dict[str, _RunOutput]:
    made: dict[str, _RunOutput] = {}
    for folder in folders:
        card = read_card(folder)
        own = made.setdefault(card["recipe"], _RunOutput())
        own.worded |= set(card.get("figures", ()))
        for stage in sorted(folder.glob(f"*/{RECORD}")):
            if stage.parent.name not in card.get("stages", [stage.parent.name]):
                continue  # of an earlier form of the recipe
            summary = read_json(stage)["summary"]
            for key in summary.get("tables", {}):
                document = read_json(stage.parent / f"{key.replace('/', '-')}.json")
                own.tables.setdefault(key.lower(), []).append(document)
            own.figures |= set(summary.get("figures", {}))
            own.failed |= summary.get("not_drawn", {})
            own.shown |= summary.get("shown", {})
    return made


def _table(paper: Mapping[str, Any], entry: Mapping[str, Any], table: PublishedTable, own: _RunOutput) -> PaperPart:
    """A table agrees only where cells were computed on the published items and every one of them does."""
    documents = own.tables.get(table.key.lower(), [])
    cells = tuple({(c.model, c.column): c for document in documents for c in _agreed(document)}.values())
    rows = tuple(dict.fromkeys(row for document in documents for row in _rows(document)))
    agree = sum(cell.equal for cell in cells)
    status = EXACT if cells and agree == len(cells) else PARTLY if agree else FILLED if rows else OPEN
    command = f"creperie cook {paper['recipe']}"
    if agree:
        command += f" --set released.source={paper['name']}:DIR"
    printed = sum(bool(NUMBER.fullmatch(cell)) for row in table.rows for cell in row.cells.values())
    loaded = table.rows_are == "models" and not entry.get("trained")
    absent = dict.fromkeys(row.model for row in table.rows if loaded and not row.uris)
    return PaperPart(
        *(paper["name"], "table", entry["number"], table.caption, status, command, cells, rows),
        needs=entry.get("needs", ""),
        printed=printed,
        missing=tuple(model for model in absent if model not in ANSWERED and not model.endswith("-shot")),
        prompts=_own_words(entry, own),
    )


def _own_words(entry: Mapping[str, Any], own: _RunOutput) -> tuple[str, ...]:
    """Return the prompts behind a table or figure that were asked in creperie's words."""
    given = {name for figure, names in prompt_figures().items() if figure in own.worded for name in names}
    return tuple(name for name in entry.get("prompts", ()) if name not in given)


def _agreed(document: Mapping[str, Any]) -> Iterator[AgreedCell]:
    """Yield the figures of runs on the published benchmark beside the printed row of the same model."""
    published = {(row["group"], row["model"]): row for row in document["rows"] if row["source"] == "published"}
    for row in filter(_is_repeated, document["rows"]):
        printed = published[row["group"], row["published"]]
        for name, equal in row["equal"].items():
            if equal is not None:
                yield AgreedCell(row["published"], name, float(printed[name]), float(row[name]), equal)


def _is_repeated(row: Mapping[str, Any]) -> bool:
    """Is this a row of a run with the paper's model on the paper's items?"""
    return bool(row["source"] == "run" and row["published"] and row.get("released") and not row.get("stands_in"))


def _rows(document: Mapping[str, Any]) -> Iterator[str]:
    """Return the rows that stand in for the paper's: of other models, or of the same on other items."""
    return (row["model"] for row in document["rows"] if row["source"] == "run" and not _is_repeated(row))


def _figure(paper: Mapping[str, Any], entry: Mapping[str, Any], own: _RunOutput) -> PaperPart:
    number, command = entry["number"], f"creperie cook {paper['recipe']}"
    why = own.failed.get(number, "")
    status = DRAWN if number in own.figures else OPEN
    about = (paper["name"], "figure", number, entry["what"], status, command)
    return PaperPart(*about, rows=(own.shown.get(number, ""),), needs=entry.get("needs", ""), why=why)


def _described(paper: Mapping[str, Any], kind: str, entry: Mapping[str, Any], own: _RunOutput) -> PaperPart:
    prompts = entry.get("prompts", ())
    command = f"creperie prompts show {prompts[0]}" if prompts else entry.get("shown_by", "")
    about = (paper["name"], kind, entry["number"], entry["what"], SHOWN if command else NOTHING, command)
    return PaperPart(*about, why=entry.get("none", ""), prompts=_own_words(entry, own))


def run_shown(parts: Sequence[PaperPart]) -> list[str]:
    """Run every command that shows something, and return them; an error names the first that fails."""
    commands = list(dict.fromkeys(part.command for part in parts if part.status == SHOWN))
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DataError(f"this command fails: {done.stderr.strip()[:200]}", where=command)
    return commands


# -- the page --------------------------------------------------------------------------------------------------------


def totals(parts: Sequence[PaperPart]) -> dict[str, int]:
    """Count the numbers that the papers' tables print, that were computed on the published items, and that agree."""
    cells = [cell for part in parts for cell in part.agreed]
    return {"printed": sum(p.printed for p in parts), "computed": len(cells), "agree": sum(c.equal for c in cells)}


def status_page(parts: Sequence[PaperPart], command: str) -> str:
    """Return the status as Markdown."""
    names = (EXACT, PARTLY, FILLED, DRAWN, SHOWN, NOTHING, OPEN)
    counts = {name: sum(p.status == name for p in parts) for name in names}
    listed = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    whole = totals(parts)
    counted = f"{whole['printed']:,} numbers; {whole['computed']:,} were computed on the published items"
    lines = [
        "# The papers, table by table",
        "",
        f"Written by `{command}` (creperie {__version__}) from recipe runs and the transcribed tables.",
        "What a repetition needs is written by hand; everything else is derived.",
        "",
        f"{len(parts)} tables and figures: {listed}.",
        f"The tables print {counted}, and {whole['agree']:,} of these agree to the last printed digit.",
        "",
        "- **agrees**: every number that was computed on the published items is the printed one. **agrees in part**:",
        "  some are not; both are listed below the table. The columns say how many the table prints.",
        "- **stand-ins**: filled by a run on other items or models, which every row names; not compared.",
        "- **drawn**: the figure was drawn from such a run. **shown**: the paper shows text, and the command shows",
        "  what creperie has in its place; every command of this page was run for it.",
        "- **our words**: prompts whose wording is creperie's; `cook --prompts FILE` takes the paper's, by figure.",
        "",
    ]
    heads = "| | what | status | printed | computed | agree | stands in | missing | our words | command | needed |"
    for paper in dict.fromkeys(p.paper for p in parts):
        own = [p for p in parts if p.paper == paper]
        lines += [f"## {paper}", "", heads]
        lines += ["|---|---|---|---:|---:|---:|---|---|---|---|---|", *map(_line, own), ""]
        agreed = [p for p in own if p.agreed]
        if agreed:
            lines += ["Figures of runs on the published items:", "", "| table | model | column | printed | ours | |"]
            lines += ["|---|---|---|---:|---:|---|", *(line for p in agreed for line in _agreed_lines(p)), ""]
    return "\n".join(lines)


def _line(part: PaperPart) -> str:
    status = f"{part.status} ({part.why})" if part.why else part.status
    command = f"`{part.command}`" if part.command else ""
    counted = (f"{part.printed:,}", str(len(part.agreed)), str(sum(c.equal for c in part.agreed)))
    counts = counted if part.printed else ("", "", "")
    about = (f"{part.kind.capitalize()} {part.number}", part.what, status)
    names = (_few(part.rows if part.kind == "table" else ()), ", ".join(part.missing), ", ".join(part.prompts))
    cells = (*about, *counts, *names, command, part.needs)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _agreed_lines(part: PaperPart) -> list[str]:
    return [
        f"| {part.number} | {c.model} | {c.column} | {c.printed:g} | {round(c.ours, 2):g} | {'=' if c.equal else ''} |"
        for c in part.agreed
    ]
