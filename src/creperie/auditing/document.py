"""An audit as one JSON document, whose keys scripts rely on, and as one HTML page.

The page fetches nothing and is readable on a phone, light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from creperie.auditing.cues import Cue
from creperie.auditing.likeness import Likeness
from creperie.auditing.options import audit_command
from creperie.auditing.result import Audit, ExamplePair
from creperie.auditing.verdict import AuditRow, Judgement
from creperie.core import __version__, render, write_text

if TYPE_CHECKING:
    from markupsafe import Markup


def audit_document(
    found: Audit, spec: str | Path = "", options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Everything that the audit found. `spec` is how the user names the benchmark, `options` what was not default."""
    whole = replace(found.whole, spec=str(spec)) if spec else found.whole
    return {
        "benchmark": found.name,
        "hash": found.hash,
        "items": found.items,
        "attackable": found.attackable,
        **whole.document(),
        "version": __version__,
        "options": dict(options),
        "command": audit_command(whole.spec, options),
        "bound": found.whole.bound,
        "against": list(found.whole.against),
        "threshold": found.threshold,
        "seed": found.seed,
        "attackers": [{"name": a.name, "prefers": a.prefers, "otherwise": a.otherwise} for a in found.attackers],
        "not_sent": found.not_sent,
        "results": [row_document(row) for row in found.rows],
        "views": [row_document(row) for row in found.views],
        "subsets": [_judgement(j) for j in found.judgements],
        "cues": {subset: [_cue(cue, example) for cue, example in cues] for subset, cues in found.cues.items()},
        "examples": {subset: [asdict(e) for e in examples] for subset, examples in found.examples.items()},
        "gaps": {
            s: {name: asdict(g) | {"sparkline": g.sparkline} for name, g in shapes.items()}
            for s, shapes in found.shapes.items()
        },
        "likeness": [_likeness(alike) for alike in found.likeness],
        "symmetry": [s.document() for s in found.symmetry],
    }


def row_document(row: AuditRow) -> dict[str, Any]:
    """One attacker on one subset."""
    figures = asdict(row.measure)
    shown = {"subset": row.subset, "attacker": row.attacker, **figures, "chance": 0.5, "p_holm": row.p_holm}
    shown |= {"choice": row.choice, "leaks": row.leaks, "kept": row.kept}
    if row.leaks:
        shown |= {"fix": row.fix, "repaired": row.repaired}
    return {"view": row.view, **shown} if row.view else shown


def _judgement(judgement: Judgement) -> dict[str, Any]:
    strongest = judgement.strongest
    return {
        "subset": judgement.subset,
        "items": judgement.items,
        "verdict": judgement.verdict,
        "text": judgement.text,
        "power": judgement.power,
        "fix": judgement.fix,
        "through": [
            {
                "attacker": r.attacker,
                "view": r.view,
                "choice": r.choice,
                "accuracy": r.measure.accuracy,
                "fix": r.fix,
                "repaired": r.repaired,
                "kept": r.kept,
                "bits": r.measure.bits,
            }
            for r in judgement.through
        ],
        "strongest": strongest.attacker if strongest else None,
        "bits": max((r.measure.bits for r in (*judgement.through, *([strongest] if strongest else []))), default=0.0),
        "unsolvable": list(judgement.unsolvable),
        "balanced": judgement.balanced,
        "detectable": judgement.detectable,
        "bound": judgement.bound,
        "against": list(judgement.against),
        "missing": list(judgement.missing),
        "needed": judgement.needed,
        "headline": judgement.headline and judgement.headline.attacker,
        "abstained": list(judgement.abstained),
        "repeated": judgement.repeated,
        "reversed": judgement.reversed,
    }


def _cue(cue: Cue, example: ExamplePair) -> dict[str, Any]:
    return {
        "kind": cue.kind,
        "cue": cue.text,
        "positives": cue.positives,
        "negatives": cue.negatives,
        "accuracy": cue.accuracy,
        "z": cue.z,
        "example": {"id": example.id, "positive": example.positive, "negative": example.negative},
    }


def _likeness(alike: Likeness) -> dict[str, Any]:
    shown = asdict(alike)
    shown["couples"] = {couple.kind: {k: asdict(v) for k, v in couple.measures.items()} for couple in alike.couples}
    return shown


_BLANKS = re.compile(r"^[ \t]+|[ \t]+$|[ \t]{2,}")


def write_audit_page(document: Mapping[str, Any], path: Path) -> None:
    """Write the page of an audit's document; the file appears completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, audit_page(document))


def audit_page(document: Mapping[str, Any]) -> str:
    """Return an audit's document as one HTML page."""
    values = {"found": document, "rows": blind_rows(document), "marked": _marked, "visible": _visible}
    return render("auditing", "audit.html", title=f"Audit of {document['benchmark']}", **values)


def blind_rows(document: Mapping[str, Any]) -> list[list[Any]]:
    """Return the rows of an audit's table: subset, one heat cell per attacker, the bits that the strongest reveals."""
    cells: dict[str, dict[str, Any]] = {}
    for row in (*document["results"], *document.get("views", ())):
        cells.setdefault(f"{row['subset']} {row.get('view', '')}".rstrip(), {})[row["attacker"]] = row
    names = [attacker["name"] for attacker in document["attackers"]]
    bits = {subset: max(float(row.get("bits") or 0) for row in mine.values()) for subset, mine in cells.items()}
    return [[subset, *(mine.get(name) for name in names), f"{bits[subset]:.2f}"] for subset, mine in cells.items()]


def _visible(text: str) -> str:
    """Return a caption with stray blanks made visible."""
    return _BLANKS.sub(lambda blank: "␣" * len(blank[0]), text)


def _marked(text: str, cue: Mapping[str, Any]) -> Markup:
    """Return a caption with the words of a cue marked and stray blanks made visible."""
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
