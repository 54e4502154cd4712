"""What the start page and the audit page show: a card for each benchmark, the latest runs, and the leaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from creperie.auditing import (
    blind_rows,
    cell_name,
    leaking_cells,
    strongest_cell,
)
from creperie.bench import Benchmark
from creperie.core import Document, Json
from creperie.reporting.gather import best_result
from creperie.reporting.html_tables import count_cell, result_cell
from creperie.reporting.leaderboard import Board
from creperie.reporting.studio.browse import Browser
from creperie.reporting.studio.items import QUICK, ItemFilter, ItemIndex
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring import unblinded

LAST = 6  #: runs on the start page


def benchmark_card(shelf: Shelf, board: Board, name: str, bench: Benchmark) -> Json:
    """Return what a benchmark's card shows: three pictures or captions, size, verdict, and best model."""
    audit = shelf.audit(name)
    top = audit and strongest_cell(audit)
    step = max(1, len(bench) // 3)
    items = [bench[row] for row in range(0, len(bench), step)][:3]
    browser = Browser(shelf, ItemIndex(bench), ItemFilter(name))
    seen = bool(bench.images.location) and not browser.hidden
    return {
        "name": name,
        "items": len(bench),
        "subsets": len(bench.subsets),
        "thumbs": [((browser.pictures(item) if seen else []) or [""])[0] for item in items],
        "texts": [item.captions[0] for item in items],
        "hidden": "" if seen or not items or not items[0].images else "pictures are not shown",
        "verdict": audit["verdict"] if audit else "not audited",
        "about": f"{top['attacker']} {100 * top['accuracy']:.1f} % on {cell_name(top)}" if top else "",
        "best": best_result((e, board.label_of[e.name]) for e in unblinded(board.entries) if e.hash == bench.hash),
    }


def last_runs(board: Board) -> list[Json]:
    """Return the latest runs, each with its first result over all items. Runs without such a result are left out."""
    latest = sorted(board.entries, key=lambda entry: str(entry.document["created"]), reverse=True)[:LAST]
    return [
        {
            "label": board.label_of[entry.name],
            "href": f"/report?run={quote(entry.name)}",
            "benchmark": board.bench_name(entry),
            "task": result["task"],
            "n": count_cell(result["n"], result["void"]).html,
            "result": result_cell(result).html,
            "when": entry.written,
        }
        for entry in latest
        for result in [r for r in entry.document["results"] if r["subset"] == "all"][:1]
    ]


def audit_rows(name: str, document: Document) -> list[list[Any]]:
    """Return the rows of an audit's heat map (subsets × attackers). The cells of a quick attacker link to the items
    that it gets right.
    """
    return [
        [
            {**cell, "href": ItemFilter(name, subset=_subset(cell), attacker=cell["attacker"]).address()}
            if isinstance(cell, dict) and cell.get("attacker") in QUICK and not cell.get("view")
            else cell
            for cell in row
        ]
        for row in blind_rows(document)
    ]


def _subset(cell: Document) -> str:
    return "" if cell["subset"] in ("all", "macro") else str(cell["subset"])


def choices(name: str, document: Document) -> dict[str, list[tuple[str, float, str]]]:
    """Return the leaks of an audit, grouped by what the attacker chooses, such as "the shorter caption". For each
    choice, there is a list of (subset, accuracy, address of the items).
    """
    found: dict[str, list[tuple[str, float, str]]] = {}
    for leak in leaking_cells(document):
        quick = leak["attacker"] if leak["attacker"] in QUICK and not leak.get("view") else ""
        href = ItemFilter(name, subset=_subset(leak), attacker=quick).address()
        found.setdefault(leak["choice"], []).append((cell_name(leak), leak["accuracy"], href))
    return found


def cues(name: str, document: Document) -> Iterator[Json]:
    """Yield words that only true captions or only false captions have. There are at most three per subset, each with
    an example.
    """
    for judged in document["subsets"]:
        subset = judged["subset"]
        for cue in document["cues"].get(subset, ())[:3]:
            words = f'"{cue["cue"]}"' if cue["kind"] == "words" else ""
            sides = ("positive", "negative") if cue["positives"] >= cue["negatives"] else ("negative", "positive")
            yield {
                "cue": f"“{cue['cue']}”" if words else cue["cue"],
                "subset": subset,
                "href": ItemFilter(name, subset=subset, words=words).address(),
                "holds": sides[0] == "positive",
                "texts": [cue["example"][side] for side in sides],
                "counts": (cue["positives"], cue["negatives"]),
                "alone": cue["accuracy"],
            }
