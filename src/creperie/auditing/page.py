"""An audit as one HTML page: no script, nothing fetched, readable on a phone, light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.auditing.cues import Cue
from creperie.auditing.run import ALL, Audit
from creperie.auditing.verdict import AuditRow
from creperie.core import render, write_text

if TYPE_CHECKING:
    from markupsafe import Markup

_BLANKS = re.compile(r"^[ \t]+|[ \t]+$|[ \t]{2,}")


def write_audit_page(found: Audit, path: Path) -> None:
    """Write the page; it appears completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(found))


def page(found: Audit) -> str:
    """The whole page."""
    cells: dict[tuple[str, str], dict[str, AuditRow]] = {}
    for row in (*found.rows, *found.views):
        cells.setdefault((row.view, row.subset), {})[row.attacker] = row
    title = f"Audit of {found.name}"
    values = {"heat": heat, "marked": _marked, "heat_rows": cells, "all": ALL}
    return render("auditing", "audit.html", title=title, found=found, **values)


def heat(accuracy: float) -> float:
    """How strongly a cell is coloured: from none at chance."""
    return max(0.0, min(1.0, (accuracy - 0.5) * 2)) * 0.75


def _marked(text: str, cue: Cue | None = None) -> Markup:
    """A caption with the cue marked and stray blanks made visible."""
    from markupsafe import Markup, escape

    pattern = _BLANKS
    if cue is not None and cue.kind == "words":
        words = r"\W+".join(re.escape(w) for w in cue.text.split())
        pattern = re.compile(f"{_BLANKS.pattern}|(?<!\\w){words}(?!\\w)", re.IGNORECASE)
    parts, last = [], 0
    for match in pattern.finditer(text):
        inner = match.group()
        shown = Markup("<mark>{}</mark>").format("␣" * len(inner) if inner.isspace() else inner)
        parts += [escape(text[last : match.start()]), shown]
        last = match.end()
    return Markup("").join([*parts, escape(text[last:])])
