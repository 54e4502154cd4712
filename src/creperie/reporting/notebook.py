"""Tables and figures of runs in memory, for notebooks: drawn where they are asked for, saved where they are named."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import UsageError, split_names, write_text
from creperie.reporting.figures.catalog import FigureOptions, draw_figure
from creperie.reporting.figures.style import save_figure
from creperie.reporting.run_tables import RunTable, TableChoice, render_run_table, run_table
from creperie.scoring import Run, load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: endings of files, and how a table is written into them
FORMS = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".html": "html", ".txt": "text"}


@dataclass(frozen=True, repr=False)
class NotebookTable:
    """A table of runs that shows itself in a notebook, and is saved as LaTeX, markdown, CSV or HTML."""

    table: RunTable

    def __str__(self) -> str:
        return render_run_table(self.table, "markdown")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_run_table(self.table, "html")

    def latex(self) -> str:
        return render_run_table(self.table, "latex")

    def save(self, path: str | Path) -> Path:
        """Write the table in the form that the file's ending names."""
        target = Path(path)
        if target.suffix not in FORMS:
            raise UsageError(
                f"a table cannot be written as {target.suffix or 'that'}", hint=f"end it in {', '.join(FORMS)}"
            )
        write_text(target, render_run_table(self.table, FORMS[target.suffix]))
        return target


def table(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    rows: str | Iterable[str] = "model",
    columns: str | Iterable[str] = "subset",
    task: str = "",
    intervals: bool = True,
    digits: int = 1,
) -> NotebookTable:
    """A table of runs, in memory or by their folders: models down and subsets across, unless told otherwise."""
    choice = TableChoice(tuple(split_names(rows)), tuple(split_names(columns)), task, intervals, digits)
    return NotebookTable(run_table(_runs(runs), choice))


def figure(
    runs: Run | str | Path | Sequence[Run | str | Path],
    name: str = "accuracy",
    *,
    options: FigureOptions | None = None,
    out: str | Path | None = None,
) -> Figure:
    """A figure of runs, in memory or by their folders; with `out` also written as SVG, PDF or PNG."""
    with tempfile.TemporaryDirectory() as folder:
        saved = [run if run.path is not None else run.save(folder) for run in _runs(runs)]
        drawn = draw_figure(name, [str(run.path) for run in saved], options)
    if out is not None:
        save_figure(drawn, out)
    return drawn


def _runs(given: Any) -> list[Run]:
    several = [given] if isinstance(given, (Run, str, Path)) else list(given)
    return [one if isinstance(one, Run) else load_run(one) for one in several]
