"""Choose the tasks to score. These are the requested ones or, by default, the usual ones that suit the benchmark and
the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from creperie.bench import Benchmark
from creperie.core import UsageError
from creperie.metrics import Input, Layout, applies, task
from creperie.models import in_words
from creperie.scoring.handle import Handle
from creperie.scoring.plan import brings_images, layout_of_bench

#: the tasks that are computed by default, if they apply
USUAL = ("itt", "t2i", "group", "tot", "blind")


def choose_tasks(bench: Benchmark, handle: Handle, asked: Sequence[str], *, some: bool = False) -> list[str]:
    """Return the tasks to compute. These are the requested ones (`asked`) or, by default, the usual ones that suit the
    items and the model.

    Raise a UsageError if a requested task is impossible. With `some`, impossible tasks are left out, and the error is
    raised only if no task is left.
    """
    layout = layout_of_bench(bench)
    if not len(layout):
        raise UsageError("the benchmark has no items", where=bench.name, hint="score one that is not empty")
    if asked:
        names = list(dict.fromkeys(task(name).name for name in asked))
        faults = {name: fault for name in names if (fault := _fault(name, bench, layout, handle))}
        if faults and not (some and len(faults) < len(names)):
            raise next(iter(faults.values()))
        return [name for name in names if name not in faults]
    fitting = [n for n in USUAL if task(n).needs in _fillable(bench, handle) and applies(n, layout).any()]
    if not fitting:
        able = in_words(handle.abilities)
        without = "" if brings_images(bench) else ", and the benchmark has no images"
        raise UsageError(
            f"there is nothing to score: the model can {able}{without}",
            where=bench.name,
            hint="load the benchmark with `images='DIR'`, or give another model",
        )
    return fitting


def _fillable(bench: Benchmark, handle: Handle) -> set[Input]:
    """Return the score columns that the model can fill for this benchmark."""
    inputs = set(handle.inputs)
    if not brings_images(bench):
        inputs.discard("image_text")
        if not handle.compares_captions:
            inputs.discard("text_text")
    return inputs


def _fault(name: str, bench: Benchmark, layout: Layout, handle: Handle) -> UsageError | None:
    """Return the error that says why a task cannot be computed; None if it can."""
    needs = task(name).needs
    if needs not in handle.inputs:
        able = ", ".join(n for n in USUAL if task(n).needs in handle.inputs)
        return UsageError(
            f"task {name!r} needs {needs} scores, which this model does not give",
            where=handle.uri,
            hint=f"choose among: {able}" if able else "choose another model",
        )
    if needs not in _fillable(bench, handle):
        return UsageError(
            f"task {name!r} needs the images",
            where=bench.name,
            hint="load the benchmark with `images='DIR'`"
            if bench.ragged("images")[0][-1]
            else "this benchmark has no images at all",
        )
    if not applies(name, layout).any():
        able = ", ".join(n for n in USUAL if applies(n, layout).any())
        return UsageError(
            f"task {name!r} has nothing to compare in any item", where=bench.name, hint=f"choose among: {able}"
        )
    return None


def columns_needed(tasks: Iterable[str]) -> set[Input]:
    """Return the score columns that these tasks are computed from."""
    return {task(name).needs for name in tasks}


def needs_images(tasks: Iterable[str], handle: Handle) -> bool:
    """Return whether the model must see images for any of these tasks."""
    columns = columns_needed(tasks)
    return "image_text" in columns or ("text_text" in columns and not handle.compares_captions)
