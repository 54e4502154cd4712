"""The pages of a leaderboard: served live, or written as a static site that any host can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from creperie.bench import Benchmark, load
from creperie.core import Progress, UsageError, silent, write_text
from creperie.reporting.gather import distinct, fits, gather_runs, model_tail
from creperie.reporting.html_tables import standings_table
from creperie.reporting.leaderboard import Board, BoardLinks, RunsFolder, board_html
from creperie.reporting.page import Contents, page_of, report_page
from creperie.scoring import load_run, rank_runs

STATIC = BoardLinks("matrix.html", ".html", runs=False)


def board_site(board: Board, folder: Path, links: BoardLinks | None = None) -> str:
    """The leaderboard page; without links it is live and asks its server for news."""
    title = f"Leaderboard of {folder.resolve().name}"
    scripts = ["tables.js"] if links else ["tables.js", "leaderboard.js"]
    values = {"count": len(board.entries), "version": board.version, "live": links is None}
    return page_of(title, template="board.html", scripts=scripts, shown=board_html(board, links), **values)


def matrix_page(board: Board, folder: Path, links: BoardLinks | None = None) -> str:
    """All models and benchmarks in one table."""
    if not board.entries:
        raise UsageError("there are no runs yet", where=str(folder))
    urls = list(dict.fromkeys(entry.model for entry in board.entries))
    names = dict(zip(urls, distinct([[model_tail(uri), uri] for uri in urls]), strict=True))
    ranked = rank_runs([load_run(entry.path) for entry in board.entries], names=names)
    chosen = links or BoardLinks()
    shown = standings_table(ranked, {digest: chosen.bench(digest) for digest in board.by_content()})
    title = f"Models and benchmarks of {folder.resolve().name}"
    return page_of(title, back="index.html" if links else "/", shown=shown)


def export_site(folder: Path, out: Path, *, benches: Sequence[str] = (), progress: Progress = silent) -> dict[str, int]:
    """Write the leaderboard, the matrix and one report per benchmark as files; the bytes of each by name."""
    board = RunsFolder(folder).look()
    pages = {"index.html": board_site(board, folder, STATIC), "matrix.html": matrix_page(board, folder, STATIC)}
    given = [load(spec) for spec in benches]
    groups = board.by_content()
    with progress("reports", len(groups), "benchmarks") as advance:
        for digest, entries in groups.items():
            fitting: list[Benchmark] = [bench for bench in given if fits(bench, load_run(entries[0].path))][:1]
            (group,) = gather_runs([entry.path for entry in entries], benches=fitting)
            page = report_page([group], Contents(title=group.name, back="../index.html"))
            pages[STATIC.bench(digest)] = page.html
            advance(1)
    for name, html in pages.items():
        write_text(out / name, html)
    return {name: len(html.encode("utf-8")) for name, html in pages.items()}
