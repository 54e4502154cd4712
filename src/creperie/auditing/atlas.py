"""The atlas: the results of many audits on one page, by benchmark and family of attackers.

The page is made from the documents that `creperie audit --json` writes. Every table names the command that produced it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from creperie.auditing.battery import ENSEMBLE
from creperie.auditing.registry import FAMILIES, LEARNED_FAMILIES, entry_of, family_of
from creperie.core import Document, percent, render

HEAD = ("subset", "n", "verdict", "fix", "simplest cue", "bits", "order-blind")
OVERVIEW = ("benchmark", "items", "subsets that leak", "what can be done", "simplest cue", "bits", "order-blind")


#: A table: its columns, the attacker families among them, and its rows. A row has its cells, the result of the
#: strongest attacker by family, and the audit.
Sheet = tuple[list[str], list[str], list[tuple[list[str], dict[str, Document], Document]]]


def atlas_markdown(audits: Sequence[Document]) -> str:
    """Return the atlas in Markdown: an overview, then one table per benchmark."""
    lines = ["# The atlas: what released benchmarks give away without their images", "", _intro(audits), ""]
    lines += _markdown(_overview(audits))
    for audit in audits:
        lines += ["", f"## {audit['benchmark']}", "", _sentence(audit), "", f"    {command_of(audit)}", ""]
        lines += _markdown(_subset_table(audit))
    return "\n".join(lines) + "\n"


def _markdown(sheet: Sheet) -> list[str]:
    head, _, rows = sheet
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row).replace("\n", " ") + " |" for row, *_ in rows)]


def atlas_page(audits: Sequence[Document]) -> str:
    """Return the atlas as one HTML page that loads no other files. The tooltip of a cell is the command that computes
    it.
    """
    return render(
        "auditing",
        "atlas.html",
        title="Atlas: what released benchmarks give away without their images",
        intro=_intro(audits).replace("`", ""),  # Markdown code marks
        overview=_heat_table(_overview(audits)),
        tables=[
            {"name": a["benchmark"], "sentence": _sentence(a), "commands": [command_of(a)]}
            | _heat_table(_subset_table(a))
            for a in audits
        ],
    )


def _heat_table(sheet: Sheet) -> dict[str, Any]:
    """Return the HTML table. It has the cells of the Markdown table, with results replaced by coloured cells."""
    columns, families, rows = sheet
    cells = []
    for row, mine, audit in rows:
        n = max(int(one["n"]) for one in mine.values())
        figures = [
            (one := mine.get(family))
            and {**one, "title": f"{one['choice']}: {command_of(audit, one)}"}
            | ({"fewer": f"n = {one['n']:,}"} if one["n"] < n else {})
            for family in families
        ]
        cells.append([*row[:2], *figures, *row[2 + len(families) :]])
    return {"columns": columns, "rows": cells, "text": (columns[0], *columns[-5:-2])}


def _subset_table(audit: Document) -> Sheet:
    """Return the table of one benchmark, with a row for each subset."""
    families, chosen = _strongest_rows(audit)
    rows = [(_row(subset, families, strongest, audit), strongest, audit) for subset, strongest in chosen.items()]
    return [*HEAD[:2], *families, *HEAD[2:]], families, rows


def command_of(audit: Document, cell: Document | None = None) -> str:
    """Return the command that reproduces an audit. With `cell`, return the command for that result alone, if possible:
    results of the ensemble, and of attackers that run on a sample, need the whole audit.
    """
    words = list(audit.get("command") or ["creperie", "audit", str(audit["benchmark"])])
    if cell is None or cell["attacker"] == ENSEMBLE or entry_of(cell["attacker"]).sampled:
        return shlex.join(words)
    narrower = {"attackers": str(cell["attacker"])}
    if cell["subset"] != "all":
        narrower["subset"] = str(cell["subset"])
    for name, value in narrower.items():
        at = words.index(f"--{name}") if f"--{name}" in words else len(words)
        words[at : at + 2] = [f"--{name}", value]
    return shlex.join(words)


def _intro(audits: Sequence[Document]) -> str:
    items = sum(int(a["items"]) for a in audits)
    leaking = sum(a["verdict"] == "leaks" for a in audits)
    return (
        f"{len(audits)} benchmarks, {items:,} items; {leaking} leak. Each figure is the accuracy, in %, of the "
        "strongest attacker of a family, which never sees an image; a tie counts as half, chance is 50, and the 95 % "
        "interval is in brackets. * marks a leak: better than chance after correction for all attackers and subsets, "
        "and above the threshold. Bits: how much of the one bit per item (which caption is true) calibrated out-of-"
        "fold probabilities reveal. Order-blind: the most that a model with the image reaches if it ignores the order "
        "of words, where a tie is wrong, and where it counts half. Where an item has several true captions, all count. "
        "Items of a subset beyond the command's limit were not read; a figure with its own n comes from a sample of "
        "the items. Written by `creperie atlas`."
    )


def _overview(audits: Sequence[Document]) -> Sheet:
    """Return the table of all benchmarks, with the accuracy of each family's strongest attacker on all items."""
    chosen = [_strongest_rows(audit)[1] for audit in audits]
    wholes = [by_subset.get("all") or next(iter(by_subset.values())) for by_subset in chosen]
    order, rows = _ordered({family for whole in wholes for family in whole}), []
    for audit, whole in zip(audits, wholes):
        row, judged = _row("all", order, whole, audit), audit["subsets"]
        row = [
            str(audit["benchmark"]),
            f"{int(audit['items']):,}",
            *(cell.partition(" ")[0] for cell in row[2:-5]),
            *row[-5:],
        ]
        row[-5] = f"{sum(j['verdict'] == 'leaks' for j in judged)} of {len(judged)}"
        row[-4] = ", ".join(dict.fromkeys(str(j["fix"]) for j in judged if j["fix"]))
        rows.append((row, whole, audit))
    return [*OVERVIEW[:2], *order, *OVERVIEW[2:]], order, rows


def _sentence(audit: Document) -> str:
    power = f" {audit['power'][:1].upper()}{audit['power'][1:]}." if audit.get("power") else ""
    return f"{int(audit['items']):,} items: {audit['text']}.{power}"


def _strongest_rows(audit: Document) -> tuple[list[str], dict[str, dict[str, Document]]]:
    """Return the families of attackers that were run, the ensemble first. Also return the result of each family's
    strongest attacker, by subset and family.
    """
    by_subset: dict[str, dict[str, Document]] = {}
    for row in audit["results"]:
        strongest = by_subset.setdefault(row["subset"], {})
        family = family_of(row["attacker"])
        if family not in strongest or (row["accuracy"] or 0) > (strongest[family]["accuracy"] or 0):
            strongest[family] = row
    if len(by_subset) == 2:
        by_subset.pop("all", None)
    return _ordered({family for rows in by_subset.values() for family in rows}), by_subset


def _ordered(families: set[str]) -> list[str]:
    return sorted(families, key=lambda f: (f != "ensemble", f in LEARNED_FAMILIES, [*FAMILIES, f].index(f)))


def _row(subset: str, families: Sequence[str], mine: Mapping[str, Document], audit: Document) -> list[str]:
    judged = next((j for j in audit["subsets"] if j["subset"] == subset), None)
    n = max(int(row["n"]) for row in mine.values())
    cells = [_figure(mine[f], n) if f in mine else "–" for f in families]
    bits = max(float(row["bits"] or 0) for row in mine.values())
    leaking = [row for f, row in mine.items() if row["leaks"]]
    plain = [row for row in leaking if family_of(row["attacker"]) not in LEARNED_FAMILIES]
    cue = max(plain or leaking, key=lambda row: row["accuracy"], default=None)
    verdict, fix = (str(judged["verdict"]), str(judged["fix"])) if judged else ("", "")
    named = str(cue["choice"]) if cue else ""
    return [subset, f"{n:,}", *cells, verdict, fix, named, f"{bits:.2f}", _order_blind(subset, audit)]


def _order_blind(subset: str, audit: Document) -> str:
    """Return, as a string, the highest accuracies on a subset that a model can reach if it ignores word order. If the
    subset has no such figures, use those for all items. If these are missing, too, return an empty string.
    """
    ceilings = {c["subset"]: c for c in audit.get("ceilings", ())}
    ceiling = ceilings.get(subset) or (ceilings.get("all") if len(ceilings) == 1 else None)
    return f"{percent(ceiling['order_blind'])} / {percent(ceiling['order_blind_half'])}" if ceiling else ""


def _figure(row: Document, of: int) -> str:
    fewer = f" n = {row['n']:,}" if row["n"] < of else ""
    reached, low, high = map(percent, (row["accuracy"], row["low"], row["high"]))
    return f"{reached}{'*' if row['leaks'] else ''} [{low}, {high}]{fewer}"
