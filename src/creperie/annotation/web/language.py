"""What pages say in other languages: message catalogues (gettext .po files, read with Babel), and safe Markdown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources

from markupsafe import Markup

from creperie.annotation.settings import LANGUAGES

RIGHT_TO_LEFT = ("ar", "fa", "he", "ur")


@cache
def catalogue(language: str) -> dict[str, str]:
    """English texts and their translations; empty for English itself."""
    from babel.messages.pofile import read_po

    path = resources.files("creperie.annotation") / "locale" / f"{language}.po"
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        return {str(m.id): str(m.string) for m in read_po(file) if m.id and m.string}


def translator(language: str) -> Callable[..., str]:
    """A function that says a text in a language; what has no translation stays English."""

    def say(text: str, **values: object) -> str:
        said = catalogue(language).get(text, text)
        return said % values if values else said

    return say


def preferred(header: str) -> str:
    """The language of the pages that belong to no study: the first one of Accept-Language that there is.

    >>> preferred("fr-FR, de-AT;q=0.8, en;q=0.5"), preferred("")
    ('de', 'en')
    """
    wanted = [part.partition(";")[0].strip()[:2].lower() for part in header[:200].split(",")]
    return next((language for language in wanted if language in LANGUAGES), LANGUAGES[0])


def direction(language: str) -> str:
    return "rtl" if language in RIGHT_TO_LEFT else "ltr"


def prose(text: str) -> Markup:
    """Markdown as HTML: no markup of its own, no pictures, no scripts in links.

    >>> prose("**Look** <b>well</b>")
    Markup('<p><strong>Look</strong> &lt;b&gt;well&lt;/b&gt;</p>\\n')
    >>> prose("[x](javascript:alert(1)) ![y](https://elsewhere.example/y.png)")
    Markup('<p>[x](javascript:alert(1)) !<a href="https://elsewhere.example/y.png">y</a></p>\\n')
    """
    from markdown_it import MarkdownIt

    return Markup(MarkdownIt("commonmark", {"html": False}).disable("image").render(text))
