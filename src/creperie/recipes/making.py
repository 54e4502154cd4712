"""Stages that create items: captions, load, world, make, shots, join, paired."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.bench import (
    Benchmark,
    Info,
    Item,
    ProvenanceStep,
    concatenate,
    from_items,
    image_keys,
    limited,
    load,
    open_store,
    save,
    split_reference,
)
from creperie.core import DataError, Json, UsageError, read_json
from creperie.recipes.steps import StageJob, engine_for

if TYPE_CHECKING:
    from creperie.making import Captions

STAND_IN = "Sentences in the format of {}, which they stand in for; none of its items is among them."


def run_captions(job: StageJob) -> Json:
    """Save the source captions. These are the items of a benchmark, unchanged, or the lines of a text file, one item
    each.
    """
    bench = caption_source(job.options)
    if not len(bench):
        raise DataError("has no captions", where=job.option("source"), hint="name another source")
    if name := job.option("name"):  # a stand-in in a published format, without that benchmark's title and licence
        bench = replace(bench, name=name, info=Info(description=STAND_IN.format(bench.info.title or bench.name)))
    if note := job.option("note"):
        *before, read = bench.provenance
        bench = replace(bench, provenance=(*before, replace(read, args={**read.args, "note": note})))
    return _saved(bench, job)


def caption_source(options: Mapping[str, Any]) -> Benchmark:
    """Return the benchmark that a `captions` stage reads. `limit` is the number of items per subset, or of lines of a
    text file.
    """
    from creperie.making import read_captions

    limit = options["limit"] or None
    captions = read_captions(options["source"], images=options["images"] or None)
    if captions.bench is not None:
        bench = chosen_items(captions.bench, options["subsets"], limit, options["seed"])
        each = options["per_image"] or None
        cut = (replace(i, captions=i.captions[:each], match=tuple(r[:each] for r in i.match)) for i in bench)
        return from_items(bench.name, cut, images=bench.images) if each else bench
    lines = captions.sources[:limit] if limit else captions.sources
    items = [Item(s.id, s.subset or "captions", s.images, (s.text,), ((True,),), s.tags) for s in lines]
    return from_items(captions.name, items, images=captions.images)


def run_load(job: StageJob) -> Json:
    """Save a benchmark, or some of its subsets. The recipe selects subsets by name or pattern, and may rename them."""
    bench = chosen_items(
        load(job.option("source"), images=job.option("images") or None), job.option("subsets"), job.option("limit")
    )
    if job.option("pictured"):
        there = [all(split_reference(key)[0] in bench.images for key in item.images) for item in bench]
        if not any(there):
            raise DataError(
                "the folder has none of the benchmark's images", where=job.option("images"), hint="name another folder"
            )
        if not all(there):  # a part gets another name: tables would show it as the whole benchmark
            part = bench.filter(np.array(there, bool), why="its images are here")
            bench = replace(part, name=f"{sum(there)}-pictured-of-{bench.name}")
    return _saved(_under_names(bench, job), job)


def chosen_items(bench: Benchmark, patterns: Sequence[str], limit: int | None, seed: int = -1) -> Benchmark:
    """Return the benchmark with only the subsets that match one of the patterns. Without patterns, all subsets are
    kept. Each has at most `limit` items: the first ones or, if `seed` is not negative, a random sample.
    """
    if patterns:
        bench = bench.only([s for s in bench.subsets if any(fnmatchcase(s, p) for p in patterns)] or list(patterns))
    return limited(bench, limit, seed if seed >= 0 else None) if limit else bench


def run_world(job: StageJob) -> Json:
    """Save items of the built-in world, with their subsets renamed as the recipe says. If the option `caption` names a
    tag, items with this tag get the tag's text as their true caption.

    The tag `base` is set in items whose foil differs from the true caption in one detail. Its text is the caption
    without this detail.
    """
    from creperie.world import World, make_world

    bench = make_world(job.settings(World), job.progress)
    if tag := job.option("caption"):
        items = [
            replace(item, captions=(str(item.tags.get(tag, item.captions[0])), *item.captions[1:])) for item in bench
        ]
        changed = from_items(bench.name, items, images=bench.images)
        bench = bench.with_table(changed.table, "caption", tag=tag)
    return _saved(_under_names(bench, job), job, copy_images=True)


def run_make(job: StageJob) -> Json:
    """Run every maker on the captions of the input, and save the items of all makers as one benchmark. Makers that had
    finished before an interruption are not run again.

    With `subsets: source`, an item stays in the subset of its caption; otherwise the makers name the subset.
    """
    from creperie.making import CANDIDATES_FILE, REPORT_FILE, MakerOptions, build_maker, make

    options, captions = job.settings(MakerOptions), _captions(job.input)
    engine = engine_for(job, options.model)
    parts = []
    reports = {}
    for maker in job.option("makers"):
        folder = job.work / slug(maker)
        if not (folder / REPORT_FILE).is_file():
            make(build_maker(maker, options, captions), captions, folder, engine=engine, progress=job.progress)
        report = read_json(folder / REPORT_FILE)
        reports[maker] = {k: report[k] for k in ("made", "rejected", "reasons", "calls", "items")}
        parts.append(load(folder))
    homes = {s.id: s.subset for s in captions.sources} if job.option("subsets") == "source" else {}
    parts = [_without_dropped(part, job.option("rename"), homes) for part in parts]
    made = [replace(item, subset=homes.get(item.id) or item.subset) for part in parts for item in part]
    kept = with_false_foils(made)
    items = _renamed(kept, job.option("rename"))
    if not items and not job.option("optional"):
        raise DataError("the makers created no items", where=job.input, hint="give more captions or another model")
    bench = from_items(job.option("name") or f"{captions.name}-{job.name}", items, images=captions.images)
    provenance = tuple(step for part in parts for step in part.provenance)
    whole = set(map(id, made))
    changed = sum(id(item) not in whole for item in kept)
    lost = {"removed": len(made) - len(kept), "changed": changed}
    if any(lost.values()):
        provenance += (ProvenanceStep("true-foils", lost, tuple(part.hash for part in parts)),)
    summary = _saved(replace(bench, provenance=provenance), job)
    for maker in reports:  # all candidates, with the reasons for rejections
        folder = job.out / "makers" / slug(maker)
        folder.mkdir(parents=True)
        for name in (CANDIDATES_FILE, REPORT_FILE):
            shutil.copyfile(job.work / slug(maker) / name, folder / name)
    true = sum(lost.values())
    calls = sum(report["calls"] for report in reports.values())
    return {**summary, "makers": reports, "calls": calls} | ({"true_foils": true} if true else {})


def with_false_foils(items: Sequence[Item]) -> list[Item]:
    """Return the items without the foils that are in fact true of the drawn scene. Items whose picture is not a drawn
    scene are returned unchanged.

    A foil that is a sentence of the built-in world is kept only if the scene makes it false. Any other foil is kept
    unless the true caption entails it.
    """
    # Such foils exist because a paper's rule, applied as published and without checks, also swaps the two sides of a
    # symmetric relation or an enumeration.
    from creperie.lang import ENTAILED, read_together, truth

    drawn = {k: verdicts for k, item in enumerate(items) if (verdicts := _of_scene(item)) is not None}
    unread = [(items[k], n) for k, verdicts in drawn.items() for n, verdict in verdicts.items() if verdict is None]
    read_together(text for item, n in unread for text in (item.positives[0], item.captions[n]))
    kept = []
    for k, item in enumerate(items):
        bad = [
            n
            for n, false in drawn.get(k, {}).items()
            if not (truth(item.positives[0], item.captions[n]).word != ENTAILED if false is None else false)
        ]
        kept += [item] if not bad else _without_captions(item, bad)
    return kept


def _of_scene(item: Item) -> dict[int, bool | None] | None:
    """Return, by index, whether each foil of an item is certainly false of the scene in its image. Return None if the
    image is not a drawn scene.

    A foil that is not a sentence of the built-in world counts as false if it only jumbles the words of another caption.
    Otherwise its value is None (unknown).
    """
    from creperie.lang import words
    from creperie.world import Graph, falsity, scene_of

    try:
        (scene,) = map(scene_of, item.images)
    except (DataError, ValueError):
        return None
    verdicts = dict[int, bool | None]()
    bags = [sorted(words(caption)) for caption in item.captions]
    for n in (n for n, true in enumerate(item.match[0]) if not true):
        verdict = falsity(item.captions[n].capitalize(), Graph(scene))
        verdicts[n] = True if verdict is None and bags.count(bags[n]) > 1 else verdict
    return verdicts


def _without_captions(item: Item, bad: Sequence[int]) -> list[Item]:
    """Remove the foils at the indices `bad` from an item, and return the item in a list. The list is empty if no foil
    would be left. It is also empty if the item has several true captions with separate foils.
    """
    (line,) = item.match
    rest = [n for n in range(len(line)) if n not in bad]
    if sum(line) > 1 or len(rest) == sum(line):
        return []
    return [replace(item, captions=tuple(item.captions[n] for n in rest), match=(tuple(line[n] for n in rest),))]


def _captions(place: str) -> Captions:
    """Return the captions that an earlier stage saved. If they are plain lines of text (one caption per item and no
    images), the result does not include the benchmark that contains them.
    """
    from creperie.making import read_captions

    captions = read_captions(place)
    bare = captions.bench is not None and all(len(i.captions) == 1 and not i.images for i in captions.bench)
    return replace(captions, bench=None) if bare else captions


def slug(maker: str) -> str:
    return re.sub(r"\W+", "-", maker)


def run_shots(job: StageJob) -> Json:
    """Save demonstrations for few-shot questions, and the benchmark without the items that they use."""
    from creperie.scoring import draw_shots

    count = job.option("count")
    bench = draw_shots(load(job.input), count, job.out, seed=job.option("seed"), progress=job.progress)
    return {"items": len(bench), "subsets": bench.subsets, "demonstrations": count * len(bench.subsets)}


def run_join(job: StageJob) -> Json:
    """Save the items of all inputs as one benchmark, with the subset names of the recipe."""
    parts = one_image_folder([load(spec) for spec in job.inputs], job.work / "images")
    joined = concatenate(job.option("name") or f"{parts[0].name}-{job.name}", parts)
    return _saved(_under_names(joined, job), job, copy_images=(job.work / "images").is_dir())


def run_paired(job: StageJob) -> Json:
    """Save the items of the first input that the second also has. Two versions of a benchmark can then be compared."""
    if len(job.inputs) != 2:
        raise UsageError(f"stage {job.name!r} needs two benchmarks to pair", hint="write `from: [original, changed]`")
    bench, other = (load(place) for place in job.inputs)
    paired_keys = {(item.subset, item.id) for item in other}
    mask = np.array([(item.subset, item.id) in paired_keys for item in bench], bool)
    if not mask.any():
        raise DataError(
            "the two benchmarks have no item in common",
            where=f"stage {job.name}",
            hint="pair two versions of one benchmark",
        )
    chosen = bench.filter(mask, why=f"also in {other.name}")
    return _saved(replace(chosen, name=job.option("name") or bench.name), job)


def one_image_folder(parts: list[Benchmark], folder: Path) -> list[Benchmark]:
    """Return the benchmarks with all their images copied to one folder. Benchmarks that already share one are
    unchanged.

    Raise a DataError if two different images have the same name.
    """
    if len({part.images.location for part in parts if part.images.location}) < 2:
        return parts
    whose: dict[str, str] = {}
    for part in parts:
        for key in (key for key in image_keys(part) if key in part.images):
            target, data = folder / key, part.images.read(key)
            if whose.setdefault(key, part.images.location) != part.images.location and target.read_bytes() != data:
                raise DataError(
                    f"different images are named {key!r}: rename one", where=f"{whose[key]} and {part.images.location}"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    store = open_store(folder)
    return [replace(part, images=store) if part.images.location else part for part in parts]


def _under_names(bench: Benchmark, job: StageJob) -> Benchmark:
    """Return the benchmark with its subsets renamed as the recipe says."""
    if not (names := job.option("rename")):
        return bench
    bench = _without_dropped(bench, names)
    renamed = from_items(bench.name, _renamed(bench, names), images=bench.images)
    return replace(renamed, info=bench.info, provenance=bench.provenance)


def _without_dropped(bench: Benchmark, names: Mapping[str, str], homes: Mapping[str, str] = {}) -> Benchmark:
    """Return the benchmark without the subsets whose new name in `names` is empty. The provenance lists these subsets.
    `homes` maps the ids of some items to the subset that is used instead of their own.
    """
    own = [homes.get(id) or subset for subset, id in bench.item_keys]
    lost = Counter(subset for subset in own if not _new_name(subset, names))
    why = "not wanted here: " + ", ".join(f"{name} {n:,}" for name, n in lost.items())
    return bench.filter([subset not in lost for subset in own], why=why) if lost else bench


def _new_name(subset: str, names: Mapping[str, str]) -> str:
    return next((new for old, new in names.items() if fnmatchcase(subset, old)), subset)


def _renamed(items: Iterable[Item], names: Mapping[str, str]) -> list[Item]:
    """Return the items with their subsets renamed. The old names may be patterns.

    If two subsets become one and both have an item with the same id, a number is added to the id.
    """
    renamed = []
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        subset = _new_name(item.subset, names)
        seen[subset, item.id] += 1
        number = f"~{count}" if (count := seen[subset, item.id]) > 1 else ""
        renamed.append(replace(item, subset=subset, id=item.id + number))
    return renamed


def _saved(bench: Benchmark, job: StageJob, *, copy_images: bool = False) -> Json:
    save(bench, job.out, copy_images=copy_images, progress=job.progress)
    return {"name": bench.name, "items": len(bench), "subsets": bench.subsets}
