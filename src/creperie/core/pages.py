"""HTML and Markdown from templates. Values are escaped in HTML, and inserted unchanged in Markdown."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core.text import called, percent, word_differences

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@cache
def _templates(room: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(f"creperie.{room}"), PackageLoader("creperie.core")])
    made = Environment(
        loader=loader,
        autoescape=lambda name: not (name or "").endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"percent": percent, "form": format, "sentence": _sentence, "heat": heat_level}
    made.filters |= {"differences": word_differences, "elsewhere": _elsewhere, "breakable": _breakable}
    made.filters |= {"whole_last": lambda rows: sorted(rows, key=_is_whole), "called": called}
    made.tests |= {"whole": _is_whole}
    return made


def render(room: str, template: str, **values: Any) -> str:
    """Return the text of a template, filled in with `values`. The template is a file of creperie's package `room`.

    Templates of pages extend `page.html` and use the macros in `parts.html`, both in `core`. A complete page gets a
    Content-Security-Policy that allows its own scripts and style sheets by hash.
    """
    made = _templates(room).get_template(template).render(values)
    return sealed(made) if "</head>" in made and "<style>" in made else made


def fragment(room: str, template: str, macro: str, *values: Any) -> Markup:
    """Return a rendered macro, as markup that is not escaped again.

    The macro is defined in `template`, a file of the package `room`, or in the shared `parts.html`.
    """
    modules = [_templates(room).get_template(name).module for name in (template, "parts.html")]
    return getattr(next(module for module in modules if hasattr(module, macro)), macro)(*values)


def heat_level(accuracy: float | None) -> int:
    """Return the colour level of a table cell, from 0 to 10. It is 0 for an accuracy of at most 0.5 (or None) and 10
    for an accuracy of 1.

    >>> heat_level(0.5), heat_level(0.75), heat_level(1.0), heat_level(None)
    (0, 5, 10, 0)
    """
    return 0 if accuracy is None else round(max(0.0, min(1.0, (accuracy - 0.5) * 2)) * 10)


_STYLED = re.compile(r' style="([^"<>]*)"')
_INLINE = re.compile(r"<(script|style)(?:\s[^>]*)?>(.*?)</\1>", re.DOTALL)


def sealed(page: str) -> str:
    """Return a page with a Content-Security-Policy in its head. Style attributes cannot be allowed by hash, so they
    become CSS rules.

    >>> sealed('<head></head><p style="color: red">x</p>').partition("</head>")[2]
    '<p data-s="0">x</p>'
    """
    known: dict[str, int] = {}
    head, end, body = page.partition("</head>")
    body = _STYLED.sub(lambda style: f' data-s="{known.setdefault(style[1], len(known))}"', body)
    rules = "".join(f'[data-s="{n}"]{{{style}}}' for style, n in known.items())
    whole = head + (f"<style>{rules}</style>" if known else "") + end + body
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy_of(whole)}">'
    return whole.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)


def policy_of(page: str) -> str:
    """Return a Content-Security-Policy that allows a page only its own inline scripts, style sheets and images."""
    hashes: dict[str, set[str]] = {"script": set(), "style": set()}
    for kind, text in _INLINE.findall(page):
        hashes[kind].add(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
    scripts, styles = (" ".join(sorted(hashes[kind])) or "'none'" for kind in ("script", "style"))
    allowed = f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src 'self' data:"
    return f"{allowed}; base-uri 'none'; form-action 'none'"


def _sentence(text: str) -> str:
    """Return the text with a capital letter at its beginning and a full stop at its end.

    >>> _sentence("no attacker leaks")
    'No attacker leaks.'
    """
    return text[:1].upper() + text[1:] + "." * bool(text)


def _is_whole(row: Sequence[Any]) -> bool:
    """Return True if a table's row is about all items together, not one subset. Its first cell then says `all` or
    `macro`.

    >>> _is_whole(["all", 600]), _is_whole([{"html": "<b>all</b>", "value": "all"}]), _is_whole(["all dogs"])
    (True, True, False)
    """
    first = row[0] if row else ""
    own = first.get("value") if isinstance(first, dict) else getattr(first, "value", first)
    return own in ("all", "macro")


def _breakable(text: object) -> object:
    """Return a name as HTML in which a line may break after each `_` and `/`. Markup and other values are returned
    unchanged.

    >>> str(_breakable("replace_obj<")), _breakable(3)
    ('replace_<wbr>obj&lt;', 3)
    """
    from markupsafe import Markup, escape

    if not isinstance(text, str) or hasattr(text, "__html__"):
        return text
    return Markup(re.sub(r"(?<=[_/])(?=\w)", "<wbr>", str(escape(text))))


def _elsewhere(command: str) -> str:
    """Return a command for readers on other machines. Absolute paths are cut down to their last part.

    >>> _elsewhere("creperie audit /home/ana/mine --seed 1")
    'creperie audit mine --seed 1'
    """
    return shlex.join(Path(word).name if word.startswith("/") else word for word in shlex.split(command))
