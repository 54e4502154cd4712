"""Changes to a benchmark. They are made in a fixed order, and each is recorded as a provenance step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from creperie.bench.benchmark import Benchmark, from_items
from creperie.bench.checks import CODES, check
from creperie.bench.item import TAG_PREFIX, whole_number
from creperie.core import Progress, UsageError, option, silent, unknown


@dataclass(frozen=True)
class Edit:
    """The changes to make, in the order in which they are applied."""

    subset: tuple[str, ...] = option((), "Keep these subsets, by comma or repeated.")
    tag: tuple[str, ...] = option(
        (), "Keep items whose tag has one of these values; repeat for more tags.", metavar="NAME=VALUE,…", whole=True
    )
    drop: tuple[str, ...] = option((), "Drop this item; repeat for more.", metavar="SUBSET/ID", whole=True)
    without: tuple[str, ...] = option((), "Drop items with this finding of `data check`.", metavar="CODES")
    head: int | None = option(None, "Keep the first N items of every subset.")
    sample: int | None = option(None, "Keep N items drawn at random, in their order.")
    seed: int = option(0, "Seed of `sample=`.")


def edit(bench: Benchmark, change: Edit, *, progress: Progress = silent) -> Benchmark:
    """Return the benchmark after the changes."""
    if change.subset:
        bench = bench.only(change.subset)
    for condition in change.tag:
        bench = with_tag(bench, condition)
    if change.drop:
        bench = bench.filter(["/".join(key) not in change.drop for key in bench.item_keys], why="dropped by name")
    if change.without:
        bench = without(bench, change.without, progress)
    if change.head is not None:
        bench = bench.head(change.head)
    if change.sample is not None:
        bench = bench.sample(change.sample, change.seed)
    return bench


def with_tag(bench: Benchmark, condition: str) -> Benchmark:
    """Return a benchmark of the items whose tag NAME has one of the given values. `condition` is written as
    NAME=VALUE,VALUE.
    """
    name, equals, values = condition.partition("=")
    tags = [column.removeprefix(TAG_PREFIX) for column in bench.columns if column.startswith(TAG_PREFIX)]
    if not equals:
        raise UsageError(
            f"{condition!r} does not name a tag and its value", hint="write NAME=VALUE, or NAME=VALUE,VALUE"
        )
    if name not in tags:
        raise unknown("tag", name, tags, where=bench.name)
    shown = [str(whole_number(v)).lower() for v in bench.column(TAG_PREFIX + name).to_pylist()]
    chosen = {value.strip().lower() for value in values.split(",")}
    return bench.filter([value in chosen for value in shown], why=condition)


def without(bench: Benchmark, codes: Sequence[str], progress: Progress) -> Benchmark:
    """Return a benchmark without the items for which a check reports a finding with one of these codes."""
    for code in codes:
        if code not in CODES:
            raise unknown("finding", code, CODES)
    images = any("image" in code or "crop" in code for code in codes)
    bad = {(f.subset, f.item) for f in check(bench, images=images, progress=progress) if f.code in codes and f.item}
    return bench.filter([key not in bad for key in bench.item_keys], why=f"without {', '.join(codes)}")


#: values of the tag `evidence`: how certain it is that the captions of a twin are false of the other image
LEVELS = ("certain", "likely", "unchecked")
Keys = Collection[tuple[str, str]]  #: subset and id of items


def reweighed(bench: Benchmark, by: str, doubted: Keys, agreed: Keys = ()) -> Benchmark | None:
    """Return the benchmark with the tag `evidence` changed according to a model's judgement. Return None if no item has
    this tag.

    `doubted` holds the keys of items that the model doubts. Their evidence falls by one level: from `certain` to
    `likely`, or from `likely` to `unchecked`. `agreed` holds the keys of items that the model confirms. Their evidence
    rises from `unchecked` to `likely`. The name of the model, `by`, is added to the tag `basis`.
    """
    items = []
    for item in bench:
        level, key = item.tags.get("evidence"), (item.subset, item.id)
        if level in LEVELS and (key in doubted or key in agreed):
            at = LEVELS.index(level)
            level = LEVELS[min(at + 1, 2) if key in doubted else min(at, 1)]
            basis = f"{item.tags.get('basis', '')}; {by} {'doubts it' if key in doubted else 'sees it so'}"
            item = replace(item, tags={**item.tags, "evidence": level, "basis": basis})
        items.append(item)
    weighed = any("evidence" in item.tags for item in items)
    return from_items(bench.name, items, images=bench.images) if weighed else None
