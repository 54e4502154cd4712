"""The atlas: what many audits found, benchmark by benchmark and family by family, as one page.

It is made from the documents that `creperie audit --json` writes, so that no figure is typed by hand and every table
names the command that made it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from creperie.auditing.page import heat
from creperie.auditing.verdict import EXIT_ORDER, FAMILIES, LEARNED_FAMILIES, family_of
from creperie.core import percent, render

Document = Mapping[str, Any]
HEAD = ("subset", "n", "verdict", "fix", "simplest cue", "bits")
OVERVIEW = ("benchmark", "items", "subsets that leak", "headline, all items", "bits", "what can be done")


def atlas_markdown(audits: Sequence[Document]) -> str:
    """The page in Markdown: an overview, and one table per benchmark."""
    audits = _merged(audits)
    lines = ["# The atlas: what released benchmarks give away without their images", "", _intro(audits), ""]
    lines += _markdown(OVERVIEW, [_summary(audit) for audit in audits])
    for audit in audits:
        families, chosen = _chosen(audit)
        rows = [_row(subset, families, mine, audit) for subset, mine in chosen.items()]
        lines += ["", f"## {audit['benchmark']}", "", _sentence(audit), ""]
        lines += [*(f"    {command_of(one)}" for one in (audit, *audit["more"])), ""]
        lines += _markdown((*HEAD[:2], *families, *HEAD[2:]), rows)
    return "\n".join(lines) + "\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row).replace("\n", " ") + " |" for row in rows)]


def atlas_page(audits: Sequence[Document]) -> str:
    """The same as one HTML page: no script, nothing fetched. Every figure's title is the command that makes it."""
    audits, tables = _merged(audits), []
    for audit in audits:
        families, chosen = _chosen(audit)
        rows = [(_row(s, families, mine, audit), [mine.get(f) for f in families]) for s, mine in chosen.items()]
        tables.append({"audit": audit, "sentence": _sentence(audit), "families": families, "rows": rows})
    intro = _intro(audits).replace("`", "")  # its marks are Markdown's
    values = {"intro": intro, "tables": tables, "heads": HEAD, "heat": heat, "command": command_of}
    summaries = [_summary(audit) for audit in audits]
    title = "Atlas of blind audits"
    return render("auditing", "atlas.html", title=title, overview=OVERVIEW, summaries=summaries, **values)


def _merged(audits: Sequence[Document]) -> list[dict[str, Any]]:
    """Audits of one benchmark as one: the first, with the families that only later ones ran (on fewer items, say)."""
    found: dict[str, dict[str, Any]] = {}
    for audit in audits:
        spec = (audit.get("command") or ["", "", audit["benchmark"]])[2]
        if spec not in found:
            found[spec] = {**audit, "more": []}
            continue
        first = found[spec]
        ran = {family_of(row["attacker"]) for row in first["results"]}
        new = [{**r, "command": audit["command"]} for r in audit["results"] if family_of(r["attacker"]) not in ran]
        if "--subset" in audit["command"]:  # its "all" is not the benchmark's
            new = [row for row in new if row["subset"] != "all"]
        there = {j["subset"]: j for j in audit["subsets"]}
        both = [(j, there.get(j["subset"], j)) for j in first["subsets"]]
        first["subsets"] = [min(pair, key=lambda j: EXIT_ORDER.index(j["verdict"])) for pair in both]
        first["results"], first["more"] = [*first["results"], *new], [*first["more"], audit]
    return list(found.values())


def command_of(audit: Document, cell: Document | None = None) -> str:
    """The command that makes an audit again, or one cell of it."""
    words = list((cell or {}).get("command") or audit.get("command") or ["creperie", "audit", str(audit["benchmark"])])
    narrower = {"attackers": str(cell["attacker"])} if cell else {}
    if cell and cell["subset"] != "all":
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
        "fold probabilities reveal. Where an item has several true captions, all count. Items of a subset beyond the "
        "command's limit were not read; a figure with its own n comes from a second, smaller audit. Written by "
        "`creperie atlas`."
    )


def _summary(audit: Document) -> list[str]:
    """A benchmark in one line: all attackers together on all items, or the strongest where they were not stacked."""
    whole = [row for row in audit["results"] if row["subset"] == "all"] or list(audit["results"])
    best = max(whole, key=lambda row: (row["attacker"] == "ensemble", row["accuracy"] or 0))
    leaking = sum(j["verdict"] == "leaks" for j in audit["subsets"])
    fixes = ", ".join(dict.fromkeys(str(j["fix"]) for j in audit["subsets"] if j["fix"]))
    bits = max(float(row["bits"] or 0) for row in whole)
    counts = f"{int(audit['items']):,}", f"{leaking} of {len(audit['subsets'])}"
    return [str(audit["benchmark"]), *counts, f"{_figure(best)} {best['attacker']}", f"{bits:.2f}", fixes]


def _sentence(audit: Document) -> str:
    more = [f" Another audit ({int(one['items']):,} items): {one['text']}." for one in audit["more"]]
    return "".join([f"{int(audit['items']):,} items: {audit['text']}.", *more])


def _chosen(audit: Document) -> tuple[list[str], dict[str, dict[str, Document]]]:
    """The families that were run, plain cues first, and by subset and family the strongest attacker's row."""
    by_subset: dict[str, dict[str, Document]] = {}
    for row in audit["results"]:
        mine = by_subset.setdefault(row["subset"], {})
        family = family_of(row["attacker"])
        if family not in mine or (row["accuracy"] or 0) > (mine[family]["accuracy"] or 0):
            mine[family] = row
    if len(by_subset) == 2:
        by_subset.pop("all", None)
    order = list(dict.fromkeys(FAMILIES.values()))
    found = {family for rows in by_subset.values() for family in rows}
    families = sorted(found, key=lambda f: (f in LEARNED_FAMILIES, order.index(f) if f in order else len(order)))
    return families, by_subset


def _row(subset: str, families: Sequence[str], mine: Mapping[str, Document], audit: Document) -> list[str]:
    judged = next((j for j in audit["subsets"] if j["subset"] == subset), None)
    n = max(int(row["n"]) for row in mine.values())
    cells = [_figure(mine[f], n) if f in mine else "–" for f in families]
    bits = max(float(row["bits"] or 0) for row in mine.values())
    leaking = [row for f, row in mine.items() if row["leaks"]]
    plain = [row for row in leaking if family_of(row["attacker"]) not in LEARNED_FAMILIES]
    cue = max(plain or leaking, key=lambda row: row["accuracy"], default=None)
    verdict, fix = (str(judged["verdict"]), str(judged["fix"])) if judged else ("", "")
    return [subset, f"{n:,}", *cells, verdict, fix, str(cue["choice"]) if cue else "", f"{bits:.2f}"]


def _figure(row: Document, of: int = 0) -> str:
    fewer = f" n = {row['n']:,}" if row["n"] < of else ""
    reached, low, high = map(percent, (row["accuracy"], row["low"], row["high"]))
    return f"{reached}{'*' if row['leaks'] else ''} [{low}, {high}]{fewer}"
