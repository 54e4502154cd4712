"""`creperie overlap`: captions and images of a benchmark that occur elsewhere."""

from __future__ import annotations

import click

from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, print_table
from creperie.statistics import OverlapOptions
from creperie.statistics import overlap as found_in

COLUMNS = ["corpus", "texts", "captions", "exact", "near", "items", "images"]


@click.command()
@click.argument("bench")
@click.argument("corpora", nargs=-1, required=True, metavar="FILE|BENCH…")
@options_of("options", OverlapOptions)
@click.option("--top", default=5, show_default=True, help="How many matches to print; JSON has up to 1,000.")
@answers
def overlap(bench: str, corpora: tuple[str, ...], options: OverlapOptions, top: int) -> CommandResult:
    """Find the captions of a benchmark in text files (one caption per line) or in other benchmarks.

    If lines contain tabs, only their last column is compared. In the result, `items` is the number of items with at
    least one caption that was found. The exit code is 1 if a caption or an image was found.
    """
    from creperie.bench import load

    own = load(bench)
    overlaps = [found_in(own, corpus, options=options, progress=bar) for corpus in corpora]

    def show() -> None:
        rows = [(f.corpus, f.texts, f.captions, f.exact, f.near, f.items, f.images) for f in overlaps]
        print_table(COLUMNS, rows)
        matches = [(f"{m.similarity:.2f}", m.caption, m.text) for f in overlaps for m in f.matches[:top]]
        print_table(["similarity", "caption", "text"], matches)

    document = {"overlaps": [f.document() for f in overlaps]}
    return CommandResult(document, show, ok=not any(f.items or f.images for f in overlaps))
