"""Progress reporting: long-running functions take a `Progress` and report to it.

On the command line, progress is shown as a bar on stderr; in notebooks, library functions show a bar below the cell.
Elsewhere, nothing is displayed.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
#: `with progress("encode captions", total, "captions") as advance: advance(64)`
Progress = Callable[[str, int | None, str], AbstractContextManager[Advance]]
#: seconds between two updates of a bar
REDRAWN = 0.2


@contextmanager
def silent(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A `Progress` that shows nothing."""

    def advance(n: int) -> None:
        return None

    yield advance


@contextmanager
def automatic(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A `Progress` that shows a bar below the cell of a notebook, and nothing elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        with silent(label, total, unit) as nothing:
            yield nothing
        return
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    done, start, drawn = 0, time.monotonic(), 0.0
    handle = display(HTML(""), display_id=True)

    def advance(n: int) -> None:
        nonlocal done, drawn
        done += n
        now = time.monotonic()
        if now - drawn > REDRAWN:
            drawn = now
            handle.update(HTML(bar_html(label, done, total, unit, now - start)))

    advance(0)
    yield advance
    handle.update(HTML(""))


def bar_html(label: str, done: int, total: int | None, unit: str, seconds: float) -> str:
    """Return a progress bar as HTML, with its label, how much of the total is done, and the rate.

    >>> bar_html("encode", 30, 60, "captions", 2.0)
    '<progress value="30" max="60"></progress> encode: 30 of 60 captions, 15/s'
    """
    whole = f' max="{total}"' if total else ""
    of = f" of {total:,}" if total else ""
    rate = f", {pace(done / seconds)}" if seconds and done else ""
    return f'<progress value="{done}"{whole}></progress> {html.escape(f"{label}: {done:,}{of} {unit}{rate}")}'


def pace(rate: float) -> str:
    """Return a rate, given per second, as text. A slow rate, such as a language model's, is shown per minute or per
    hour.

    >>> pace(24.2), pace(0.031), pace(0.002)
    ('24/s', '2/min', '7/h')
    """
    for factor, unit in ((1, "s"), (60, "min")):
        if rate * factor >= 1:
            return f"{rate * factor:,.0f}/{unit}"
    return f"{rate * 3600:,.0f}/h"
