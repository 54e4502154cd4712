"""Which tables and figures of the papers were made, by which command, and which figures agree to the digit.

Read from the folders that recipe runs wrote; `creperie cook status` writes it as docs/papers.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from creperie.core import CreperieError, UsageError, __version__, packaged_toml, read_json
from creperie.recipes.kitchen import CARD, RECORD
from creperie.reporting import PublishedTable, published_tables

EXACT, FILLED, DRAWN, SHOWN, NOTHING, OPEN = "exact", "stand-ins", "drawn", "shown", "nothing to compute", "not made"


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

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _RunOutput:
    """What the runs of one recipe made: table documents and drawn figures, with the stage that made them."""

    tables: dict[str, list[tuple[str, Mapping[str, Any]]]] = field(default_factory=dict)
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  #: what the figures' axes show
    profile: str = ""


def paper_status(folders: Sequence[Path]) -> list[PaperPart]:
    """Every table and figure of the five papers, as far as these recipe runs made them."""
    made = _gather(folders)
    tables = {table.key.lower(): table for table in published_tables()}
    parts: list[PaperPart] = []
    for paper in packaged_toml("creperie.recipes", "cookbook", "papers.toml")["paper"]:
        own = made.get(paper["recipe"], _RunOutput())
        for entry in paper["tables"]:
            key = f"{paper['name']}/{entry['number']}"
            table = tables.get(key.lower())
            parts.append(_table(paper, entry, table, own) if table else _described(paper, "table", entry))
        for entry in paper["figures"]:
            parts.append(_figure(paper, entry, own) if "draw" in entry else _described(paper, "figure", entry))
    return parts


def _gather(folders: Sequence[Path]) -> dict[str, _RunOutput]:
    made: dict[str, _RunOutput] = {}
    for folder in folders:
        try:
            card = read_json(folder / CARD)
        except CreperieError:
            raise UsageError("is not the folder of a recipe run", where=str(folder)) from None
        own = made.setdefault(card["recipe"], _RunOutput())
        own.profile = card["profile"]
        for stage in sorted(folder.glob(f"*/{RECORD}")):
            if stage.parent.name not in card.get("stages", [stage.parent.name]):
                continue  # of an earlier form of the recipe
            record = read_json(stage)
            name = record["stage"]
            for key in record["summary"].get("tables", {}):
                document = read_json(stage.parent / f"{key.replace('/', '-')}.json")
                own.tables.setdefault(key.lower(), []).append((name, document))
            for number, drawing in record["summary"].get("figures", {}).items():
                own.figures.setdefault(number, (name, drawing))
            own.failed |= record["summary"].get("not_drawn", {})
            own.shown |= record["summary"].get("shown", {})
    return made


def _table(paper: Mapping[str, Any], entry: Mapping[str, Any], table: PublishedTable, own: _RunOutput) -> PaperPart:
    found = own.tables.get(table.key.lower(), [])
    by_stage = {stage: tuple(_agreed(table, document)) for stage, document in found}
    cells = tuple(cell for own_cells in by_stage.values() for cell in own_cells)
    rows = tuple(dict.fromkeys(row for stage, document in found for row in _rows(stage, document)))
    status = EXACT if any(cell.equal for cell in cells) else FILLED if rows else OPEN
    command = f"creperie cook {paper['recipe']}" + (f" (stage {found[-1][0]})" if found else "")
    if exact := [stage for stage, own_cells in by_stage.items() if any(cell.equal for cell in own_cells)]:
        command = f"creperie cook {paper['recipe']} --set released.source={paper['name']}:DIR (stage {exact[0]})"
    needs, told = entry.get("needs", ""), f"{sum(cell.equal for cell in cells)} of {len(cells)} figures"
    about = (paper["name"], "table", entry["number"], table.caption, status, command, cells, rows, needs)
    return PaperPart(*about, why=told if status == EXACT else "")


def _agreed(table: PublishedTable, document: Mapping[str, Any]) -> Iterator[AgreedCell]:
    """Figures of runs on the published benchmark beside the printed row of the same model."""
    columns = [c.name for c in table.columns]
    for row in document["rows"]:
        if row["source"] == "run" and row["published"] and row.get("released"):
            printed = next(
                r
                for r in document["rows"]
                if r["source"] == "published" and r["model"] == row["published"] and r["group"] == row["group"]
            )
            for name in columns:
                if row["equal"].get(name) is not None:
                    cell = AgreedCell(
                        row["published"], name, float(printed[name]), float(row[name]), row["equal"][name]
                    )
                    yield cell


def _rows(stage: str, document: Mapping[str, Any]) -> Iterator[str]:
    for row in document["rows"]:
        if row["source"] == "run":
            yield row["model"]


def _figure(paper: Mapping[str, Any], entry: Mapping[str, Any], own: _RunOutput) -> PaperPart:
    number = entry["number"]
    command = f"creperie figure {entry['draw']}" if entry["draw"] != "interaction" else "creperie stats … --plot"
    if number in own.figures:
        stage, _ = own.figures[number]
        command += f"; creperie cook {paper['recipe']} (stage {stage})"
    why = own.failed.get(number, "")
    status = DRAWN if number in own.figures else OPEN
    about = (paper["name"], "figure", number, entry["what"], status, command)
    return PaperPart(*about, rows=(own.shown.get(number, ""),), needs=entry.get("needs", ""), why=why)


def _described(paper: Mapping[str, Any], kind: str, entry: Mapping[str, Any]) -> PaperPart:
    status, command = (SHOWN, entry["shown_by"]) if "shown_by" in entry else (NOTHING, "")
    return PaperPart(paper["name"], kind, entry["number"], entry["what"], status, command, why=entry.get("none", ""))


# -- the page --------------------------------------------------------------------------------------------------------


def status_page(parts: Sequence[PaperPart], command: str) -> str:
    """The status as Markdown."""
    counts = {name: sum(p.status == name for p in parts) for name in (EXACT, FILLED, DRAWN, SHOWN, NOTHING, OPEN)}
    told = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    lines = [
        "# The papers, table by table",
        "",
        f"Written by `{command}` (creperie {__version__}); nothing here is typed by hand.",
        "",
        f"{len(parts)} tables and figures: {told}.",
        "",
        "- **exact**: run on the published items; the status says how many of the printed figures it reproduces to the",
        "  last digit. Both numbers are listed below the table, also where they differ.",
        '- **stand-ins**: filled by a small run on other items or models (column "rows of this run"); the last column',
        "  says what an exact repetition needs.",
        "- **drawn**: the figure was drawn from such a run. **shown**: the paper shows examples or text, and the",
        "  command shows what creperie has in their place.",
        "",
    ]
    for paper in dict.fromkeys(p.paper for p in parts):
        own = [p for p in parts if p.paper == paper]
        lines += [f"## {paper}", "", "| | what | status | command | rows of this run | needed to repeat it |"]
        lines += ["|---|---|---|---|---|---|", *map(_line, own), ""]
        agreed = [p for p in own if p.agreed]
        if agreed:
            lines += ["Figures of runs on the published items:", "", "| table | model | column | printed | ours | |"]
            lines += ["|---|---|---|---:|---:|---|", *(line for p in agreed for line in _agreed_lines(p)), ""]
    return "\n".join(lines)


def _line(part: PaperPart) -> str:
    rows = "; ".join(part.rows[:4]) + (f"; {len(part.rows) - 4} more" if len(part.rows) > 4 else "")
    status = f"{part.status} ({part.why})" if part.why else part.status
    command = f"`{part.command}`" if part.command else ""
    cells = (f"{part.kind.capitalize()} {part.number}", part.what, status, command, rows, part.needs)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _agreed_lines(part: PaperPart) -> list[str]:
    return [
        f"| {part.number} | {c.model} | {c.column} | {c.printed:g} | {round(c.ours, 2):g} | {'=' if c.equal else ''} |"
        for c in part.agreed
    ]
