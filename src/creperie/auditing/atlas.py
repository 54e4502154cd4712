"""The atlas: what many audits found, benchmark by benchmark and family by family, as one page.

It is made from the documents that `creperie audit --json` writes, so that no figure is typed by hand and every table
names the command that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from creperie.auditing.page import heat
from creperie.auditing.verdict import FAMILIES, LEARNED_FAMILIES, family_of
from creperie.core import percent, render

Document = Mapping[str, Any]
HEAD = ("subset", "n", "verdict", "fix", "plainest cue", "bits")


def atlas_markdown(audits: Sequence[Document]) -> str:
    """The page in Markdown: one table per benchmark."""
    lines = ["# The atlas: what released benchmarks give away without their images", "", _intro(audits)]
    for audit in audits:
        families, rows = _table(audit)
        head = (*HEAD[:2], *families, *HEAD[2:])
        lines += ["", f"## {audit['benchmark']}", "", f"{_sentence(audit)}", "", f"    {command_of(audit)}", ""]
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(row).replace("\n", " ") + " |" for row in rows]
    return "\n".join(lines) + "\n"


def atlas_page(audits: Sequence[Document]) -> str:
    """The same as one HTML page: no script, nothing fetched."""
    tables = [
        {"audit": audit, "sentence": _sentence(audit), "command": command_of(audit), "rows": _table(audit)}
        for audit in audits
    ]
    values = {"intro": _intro(audits), "tables": tables, "heads": HEAD, "heat": heat}
    return render("auditing", "atlas.html", title="Atlas of blind audits", **values)


def command_of(audit: Document) -> str:
    """The command that makes an audit's document again."""
    names = ",".join(a["name"] for a in audit["attackers"] if a["name"] != "ensemble")
    return (
        f"creperie audit BENCH --attackers {names} --seed {audit['seed']} --json   # content {str(audit['hash'])[:12]}"
    )


def _intro(audits: Sequence[Document]) -> str:
    items = sum(int(a["items"]) for a in audits)
    leaking = sum(a["verdict"] == "leaks" for a in audits)
    return (
        f"{len(audits)} benchmarks, {items:,} items; {leaking} leak. Blind accuracy in % by family of attackers: the "
        "strongest attacker of the family, ties half, chance 50, with its 95 % interval; * leaks (better than chance "
        "after correction for all attackers and subsets, and above the threshold). Bits: what calibrated out-of-fold "
        "probabilities give away of the one bit of an item. Where an item has several true captions, all count. "
        "Written by `creperie atlas`."
    )


def _sentence(audit: Document) -> str:
    text = str(audit["text"])
    return f"{int(audit['items']):,} items: {text}."


def _table(audit: Document) -> tuple[list[str], list[list[str]]]:
    """The families that were run, plain cues first, and one row of cells per subset."""
    by_subset: dict[str, dict[str, Document]] = {}
    for row in audit["results"]:
        mine = by_subset.setdefault(row["subset"], {})
        family = family_of(row["attacker"])
        if family not in mine or (row["accuracy"] or 0) > (mine[family]["accuracy"] or 0):
            mine[family] = row
    order = list(dict.fromkeys(FAMILIES.values()))
    found = {family for rows in by_subset.values() for family in rows}
    families = sorted(found, key=lambda f: (f in LEARNED_FAMILIES, order.index(f) if f in order else len(order)))
    judged = {j["subset"]: j for j in audit["subsets"]}
    rows = [_row(subset, families, mine, judged.get(subset)) for subset, mine in by_subset.items()]
    return families, rows


def _row(subset: str, families: Sequence[str], mine: Mapping[str, Document], judged: Document | None) -> list[str]:
    cells = [_figure(mine[f]) if f in mine else "–" for f in families]
    n = max(int(row["n"]) for row in mine.values())
    bits = max(float(row["bits"] or 0) for row in mine.values())
    leaking = [row for f, row in mine.items() if row["leaks"]]
    plain = [row for row in leaking if family_of(row["attacker"]) not in LEARNED_FAMILIES]
    cue = max(plain or leaking, key=lambda row: row["accuracy"], default=None)
    verdict, fix = (str(judged["verdict"]), str(judged["fix"])) if judged else ("", "")
    return [subset, f"{n:,}", *cells, verdict, fix, str(cue["choice"]) if cue else "", f"{bits:.2f}"]


def _figure(row: Document) -> str:
    return f"{percent(row['accuracy'])}{'*' if row['leaks'] else ''} [{percent(row['low'])}, {percent(row['high'])}]"
