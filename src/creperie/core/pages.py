"""Pages from templates. What is put into HTML is text: markup in it is escaped. Markdown takes it as it is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from creperie.core.text import percent

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
    made.filters |= {"percent": percent, "form": format, "sentence": _sentence}
    return made


def render(room: str, template: str, **values: Any) -> str:
    """A template of a room, filled in. All share `page.html`, the frame of a page that fetches nothing."""
    return _templates(room).get_template(template).render(values)


def fragment(room: str, template: str, macro: str, *values: Any) -> Markup:
    """One macro of a template, as markup that other templates take as it is."""
    made: Markup = getattr(_templates(room).get_template(template).module, macro)(*values)
    return made


def _sentence(text: str) -> str:
    """
    >>> _sentence("no attacker leaks")
    'No attacker leaks.'
    """
    return text[:1].upper() + text[1:] + "."
