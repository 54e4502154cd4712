"""What a benchmark is about: topics of its captions, and the categories of its pictures' annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from creperie.bench import Benchmark, load, split_reference
from creperie.core import DataError, UsageError, missing_extra, read_json
from creperie.reporting.figures.bars import counts
from creperie.reporting.figures.catalog import FigureOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPICS = 10
NAMED_BY = 4  #: words that name a topic


def topics_of(captions: Sequence[str], topics: int = TOPICS, seed: int = 0) -> dict[str, int]:
    """Captions by topic, found by a non-negative factorisation of their TF-IDF, named by its strongest words."""
    try:
        from sklearn.decomposition import NMF
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise missing_extra("sklearn", "stats") from None
    vectors = TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True)
    try:
        weights = vectors.fit_transform(captions)
    except ValueError:
        raise UsageError("the captions share too few words for topics") from None
    known = vectors.get_feature_names_out()
    model = NMF(min(topics, *weights.shape), init="nndsvda", random_state=seed, max_iter=400)
    shares = model.fit_transform(weights)
    names = [", ".join(known[np.argsort(-row)[:NAMED_BY]]) for row in model.components_]
    found = Counter(names[k] for k, row in zip(shares.argmax(axis=1), shares, strict=True) if row.any())
    return dict(found.most_common())


def draw_topics(sources: Sequence[str], options: FigureOptions) -> Figure:
    bench = _one(sources)
    captions = [next(iter(item.positives), "") for item in bench]
    found = topics_of(captions, seed=options.seed)
    return counts({"items": {k: float(v) for k, v in found.items()}}, label="items", title=f"{bench.name}: topics")


def categories_of(bench: Benchmark, annotations: Path) -> dict[str, int]:
    """Items by super-category of what COCO's annotations see in their pictures; an item counts once for each."""
    read = read_json(annotations)
    try:
        names = {c["id"]: str(c["supercategory"]) for c in read["categories"]}
        files = {i["id"]: Path(i["file_name"]).name for i in read["images"]}
        seen: dict[str, set[str]] = {}
        for one in read["annotations"]:
            seen.setdefault(files[one["image_id"]], set()).add(names[one["category_id"]])
    except (KeyError, TypeError) as e:
        what = f"is not a COCO file of annotations ({type(e).__name__}: {e})"
        raise DataError(what, where=str(annotations), hint="give instances_val2017.json") from None
    found: Counter[str] = Counter()
    for images in bench.column("images").to_pylist():
        keys = {Path(split_reference(ref)[0]).name for ref in images}
        found.update(set().union(*(seen.get(key, set()) for key in keys)))
    if not found:
        raise UsageError("knows none of the benchmark's pictures", where=str(annotations))
    return dict(found.most_common())


def draw_categories(sources: Sequence[str], options: FigureOptions) -> Figure:
    bench = _one(sources)
    if options.against is None:
        raise UsageError("the annotations are needed", hint="`against='instances_val2017.json'`")
    found = categories_of(bench, options.against)
    title = f"{bench.name}: super-categories"
    return counts({"items": {k: float(v) for k, v in found.items()}}, label="items", title=title)


def _one(sources: Sequence[str]) -> Benchmark:
    if len(sources) != 1:
        raise UsageError(f"{len(sources)} benchmarks, this figure takes 1")
    return load(sources[0])
