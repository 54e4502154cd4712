"""The parameters of a URL, or the fields of a form. A missing or malformed value is reported as a mistake in the
request.
"""

from __future__ import annotations

from creperie.core import UsageError


class StudioQuery(dict[str, str]):
    """The parameters of a URL, or the fields of a form, by name."""

    def __missing__(self, name: str) -> str:
        raise UsageError(f"the request lacks {name!r}", hint="open the page again and use its buttons")

    def number(self, name: str) -> int:
        """Return a value as an integer. Return 0 if the value is missing. Raise a UsageError if it is not a whole
        number.
        """
        text = self.get(name) or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise UsageError(
                f"{name!r} must be a whole number, not {text[:20]!r}", hint="correct the address of the page"
            )
        return int(text)
