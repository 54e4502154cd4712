"""An audit as a JSON document with keys that scripts can rely on, and as an HTML page.

The page loads no other files and can be read on a phone, in light or dark mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from creperie.auditing.cues import Cue
from creperie.auditing.options import audit_command
from creperie.auditing.result import Audit, ExamplePair
from creperie.auditing.verdict import THRESHOLD, AuditRow, Judgement, Measurements
from creperie.core import DataError, Document, Json, __version__, called, percent, read_json, render, write_text

if TYPE_CHECKING:
    from markupsafe import Markup


def read_audit(path: Path) -> Json:
    """Return an audit that was saved as JSON; raise a DataError if the file holds anything else."""
    audit = read_json(path)
    if not isinstance(audit, dict) or not {"verdict", "text", "hash", "subsets", "attackers", "results"} <= set(audit):
        raise DataError(
            "does not hold the result of an audit", where=path, hint="write one with `creperie audit BENCH --json`"
        )
    return audit


def audit_document(
    audit: Audit, spec: str | Path = "", options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return everything that an audit found, as a document for JSON. `spec` is the benchmark as the user named it, and
    `options` are the options that differ from their defaults.
    """
    audit = replace(audit, spec=str(spec)) if spec else audit
    return {
        "benchmark": audit.name,
        "hash": audit.hash,
        "items": audit.items,
        "attackable": audit.attackable,
        **audit.whole.document(audit.next),
        "version": __version__,
        "options": dict(options),
        "command": audit_command(audit.spec, options),
        "bound": audit.whole.bound,
        "strongest": audit.whole.strongest and row_document(audit.whole.strongest),
        "against": list(audit.whole.against),
        "threshold": audit.threshold,
        "seed": audit.seed,
        "attackers": [{"name": a.name, "prefers": a.prefers, "otherwise": a.otherwise} for a in audit.attackers],
        "not_sent": audit.not_sent,
        "results": [row_document(row) for row in audit.rows],
        "views": [row_document(row) for row in audit.views],
        "subsets": [_judgement(j) for j in audit.judgements],
        "cues": {subset: [_cue(cue, example) for cue, example in cues] for subset, cues in audit.cues.items()},
        "examples": {subset: [asdict(e) for e in examples] for subset, examples in audit.examples.items()},
        "gaps": {
            subset: {name: asdict(shape) for name, shape in shapes.items()} for subset, shapes in audit.shapes.items()
        },
        "likeness": [
            asdict(alike) | {"couples": {c.kind: {k: asdict(v) for k, v in c.measures.items()} for c in alike.couples}}
            for alike in audit.likeness
        ],
        "symmetry": [s.document() for s in audit.symmetry],
        **({"sample": audit.whole.measured.items, "counts": [asdict(c) for c in audit.counts]} if audit.counts else {}),
    }


def row_document(row: AuditRow) -> Json:
    """Return the results of one attacker on one subset as a document for JSON."""
    figures = asdict(row.measure)
    shown = {"subset": row.subset, "attacker": row.attacker, **figures, "chance": 0.5, "p_holm": row.p_holm}
    shown |= {"choice": row.choice, "leaks": row.leaks, "kept": row.kept}
    shown |= {"cue": row.cue} if row.cue else {}
    if row.leaks:
        shown |= {"fix": row.fix, "repaired": row.repaired}
    return {"view": row.view, **shown} if row.view else shown


#: The fields that a judgement's document copies unchanged: from what was measured, the judgement, every row that leaks.
_MEASURED = ("subset", "items", "unsolvable", "balanced", "detectable", "missing", "abstained", "repeated", "reversed")
_JUDGED = ("verdict", "text", "power", "fix", "bound", "against", "needed")
_OF_LEAKS = ("attacker", "view", "choice", "fix", "repaired", "kept")


def _judgement(judgement: Judgement) -> Json:
    strongest, through = judgement.strongest, judgement.through
    return {
        **_fields(judgement.measured, _MEASURED),
        **_fields(judgement, _JUDGED),
        "through": [
            {name: getattr(r, name) for name in _OF_LEAKS} | {"accuracy": r.measure.accuracy, "bits": r.measure.bits}
            for r in through
        ],
        "strongest": strongest.attacker if strongest else None,
        "bits": max((r.measure.bits for r in (*through, *([strongest] if strongest else []))), default=0.0),
        "headline": judgement.headline and judgement.headline.attacker,
    }


def _fields(found: Measurements | Judgement, names: Sequence[str]) -> Json:
    values = {name: getattr(found, name) for name in names}
    return {name: list(v) if isinstance(v, tuple | Mapping) else v for name, v in values.items()}


def _cue(cue: Cue, example: ExamplePair) -> Json:
    named = {name: getattr(cue, name) for name in ("kind", "positives", "negatives", "accuracy", "z")}
    shown = {name: getattr(example, name) for name in ("id", "positive", "negative")}
    return named | {"cue": cue.text, "example": shown}


_BLANKS = re.compile(r"^[ \t]+|[ \t]+$|[ \t]{2,}")


def write_audit_page(document: Document, path: Path, place: str = "") -> None:
    """Write an audit's document as an HTML page. The file is replaced only once the new one is complete. `place` is the
    benchmark as the user named it.
    """
    write_text(path, audit_page(document, place))


def audit_page(document: Document, place: str = "") -> str:
    """Return an audit's document as one HTML page. `place` is the benchmark as the user named it."""
    return render(
        "auditing",
        "audit.html",
        title=f"Audit of {called(place, document['benchmark'])}",
        found=document,
        answer=audit_answer(document),
        rows=blind_rows(document),
        marked=_marked,
        visible=_visible,
    )


def leaking_cells(document: Document) -> list[Json]:
    """Return the leaks of all subsets. If no subset leaks by itself, return the leaks over all items together."""
    own = [{**leak, "subset": judged["subset"]} for judged in document["subsets"] for leak in judged["through"]]
    return own or [row for row in _all_rows(document) if row["leaks"]]


def _all_rows(document: Document) -> list[Json]:
    return [*document["results"], *document.get("views", ())]


def cell_name(row: Document) -> str:
    """Return, in words, which part of the benchmark a row is about."""
    words = {}
    for k, which in ((1, "first"), (2, "second")):
        words[f"P{k}-N"] = f"{which} true captions against false ones"
        words[f"P{k}-N{k}"] = f"{which} true captions against their own foils"
    view, whole = str(row.get("view", "")), row["subset"] in ("all", "macro")
    if not view:
        return "all items" if whole else str(row["subset"])
    return words.get(view, view) + ("" if whole else f" of {row['subset']}")


def strongest_cell(document: Document) -> Json | None:
    """Return the leaking row with the highest accuracy. If no row leaks, return the row whose interval has the highest
    lower limit; if no row has an interval, return None.
    """
    # Not the highest accuracy, which an attacker can reach by chance on a few items.
    if document["verdict"] == "leaks" and (found := leaking_cells(document)):
        return max(found, key=lambda row: float(row["accuracy"]))
    rows = (row for row in _all_rows(document) if row["low"] is not None and not row.get("cue"))
    return max(rows, key=lambda row: float(row["low"]), default=None)


def audit_answer(document: Document) -> str:
    """Return an audit's result in one sentence: its strongest leak or, if there is none, the verdict."""
    top = strongest_cell(document)
    if document["verdict"] == "not shown" and top and top["high"] is not None:
        if top["low"] > 0.5:
            what = f"{_chooses(top)} is right in {percent(top['accuracy'])} % of {cell_name(top)} (n = {top['n']:,})"
            return f"with so few items it may be luck that {what}"
        # Of the cells that include the threshold, that of most items: the attacker that keeps the question open.
        limit = document.get("threshold", THRESHOLD)
        wide = [row for row in _all_rows(document) if row["high"] is not None and row["high"] >= limit]
        top = max(wide or [top], key=lambda row: (int(row["n"]), float(row["high"])))
        return (
            f"with so few items, {_chooses(top)} may be right in up to {percent(top['high'])} % of {cell_name(top)}"
            f" (n = {top['n']:,})"
        )
    if document["verdict"] != "leaks" or not top:
        return str(document["text"]).partition("; ")[0]
    leaking = sum(bool(judged["through"]) for judged in document["subsets"])
    where = f", in {leaking} of {len(document['subsets'])} subsets" if leaking and len(document["subsets"]) > 1 else ""
    return f"Yes{where}: choosing {top['choice']} is right in {100 * top['accuracy']:.1f} % of {cell_name(top)}"


def _chooses(row: Document) -> str:
    return f"choosing {row['choice']}" if row["choice"] else str(row["attacker"])


def blind_rows(document: Document) -> list[list[Any]]:
    """Return the table of an audit as rows: subset, number of items, the result of each attacker, and the bits of
    information that the strongest attacker reveals.

    Subsets with a leak come first. The row of a view (the pairs of one true caption) follows that of its subset. Views
    that would repeat the row of the subset are left out. A result that is not a leak is marked *unknown* if it is
    undecided (see `_undecided`).
    """
    limit = document.get("threshold", THRESHOLD)
    leaks = {(row["subset"], row["attacker"]) for row in document["results"] if row["leaks"]}
    views: dict[str, set[str]] = {}
    for row in document.get("views", ()):
        views.setdefault(row["subset"], set()).add(row["view"])
        if row["leaks"] and (row["subset"], row["attacker"]) not in leaks:
            views[row["subset"]].add("")
    shown = [row for row in document.get("views", ()) if len(views[row["subset"]]) > 1]
    every = [*document["results"], *shown]
    order = list(dict.fromkeys(row["subset"] for row in every))
    leaking = {row["subset"] for row in every if row["leaks"]}
    cells: dict[str, Json] = {}
    for row in sorted(every, key=lambda row: (row["subset"] not in leaking, order.index(row["subset"]))):
        mine = cells.setdefault(f"{row['subset']} {row.get('view', '')}".rstrip(), {})
        mine[row["attacker"]] = row | {"unknown": not row["leaks"] and _undecided(row, limit)}
    names = [attacker["name"] for attacker in document["attackers"]]
    table = []
    for place, mine in cells.items():
        most = max(row["n"] for row in mine.values())
        for row in mine.values():
            row |= {"fewer": f"n = {row['n']:,}"} if row["n"] < most else {}
        bits = max(float(row.get("bits") or 0) for row in mine.values())
        table.append([place, most, *(mine.get(name) for name in names), f"{bits:.2f}"])
    return table


def _undecided(row: Document, limit: float) -> bool:
    """Return True if the threshold `limit` lies in the interval of a row's accuracy, or in the interval for reversed
    answers. Rows without an interval are undecided, too.
    """
    low, high = row["low"], row["high"]
    return low is None or bool(low <= limit <= max(high, 1 - low))


def _visible(text: str) -> str:
    """Return a caption in which leading, trailing and repeated spaces are visible."""
    return _BLANKS.sub(lambda blank: "␣" * len(blank[0]), text)


def _marked(text: str, cue: Document) -> Markup:
    """Return a caption as HTML, with the words of the cue and stray spaces marked."""
    from markupsafe import Markup, escape

    pattern = _BLANKS
    if cue["kind"] == "words":
        words = r"\W+".join(re.escape(w) for w in cue["cue"].split())
        pattern = re.compile(f"{_BLANKS.pattern}|(?<!\\w){words}(?!\\w)", re.IGNORECASE)
    parts, last = [], 0
    for match in pattern.finditer(text):
        parts += [escape(text[last : match.start()]), Markup("<mark>{}</mark>").format(_visible(match.group()))]
        last = match.end()
    return Markup("").join([*parts, escape(text[last:])])
