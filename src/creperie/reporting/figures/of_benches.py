"""Figures drawn from benchmarks: gaps of blind attackers, likeness of captions, words and categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from creperie.auditing import AttackerModels, TreeParser, item_gaps, likeness_of, linkage_tree, make_attackers, pairs_of
from creperie.bench import TAG_PREFIX, Benchmark, load
from creperie.core import UsageError, unknown
from creperie.lang import ConstituencyParser, open_constituency_parser, treebank_parser, words
from creperie.refining import syntaxbias_scores, unit_gaps
from creperie.reporting.figures.bars import counts
from creperie.reporting.figures.catalog import FigureOptions
from creperie.reporting.figures.gaps import bias_distributions, gap_histograms, gap_plane
from creperie.reporting.figures.spreads import Box, boxes_by_subset

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gaps_of(bench: Benchmark, attackers: Sequence[str], options: FigureOptions) -> dict[str, np.ndarray]:
    """The gap of every item by attacker; above zero the attacker prefers the true captions."""
    pairs = pairs_of(bench)
    arms = AttackerModels(lm=options.lm, plausibility=options.plausibility, grammar=options.grammar, seed=options.seed)
    sent = make_attackers(list(attackers), arms)
    return {a.name: item_gaps(pairs, np.nan_to_num(a.margins(pairs))).astype(np.float64) for a in sent}


def _attackers(options: FigureOptions) -> tuple[str, ...]:
    """Those that are named; else the models that are given, or two that need none."""
    given = tuple(name for name in ("plausibility", "grammar") if getattr(options, name))
    return options.attackers or given or ("length-words", "surface")


def draw_gaps(sources: Sequence[str], options: FigureOptions) -> Figure:
    benches = _benches(sources, most=6)
    names = _attackers(options)
    twice = len({bench.name for bench in benches}) < len(benches)
    piles = {f"{b.name} ({n})" if twice else b.name: gaps_of(b, names, options) for n, b in enumerate(benches, 1)}
    found = {name: {pile: gaps[name] for pile, gaps in piles.items()} for name in next(iter(piles.values()))}
    return gap_histograms(found, title=benches[0].name if len(benches) == 1 else "")


def draw_plane(sources: Sequence[str], options: FigureOptions) -> Figure:
    before, *after = _benches(sources, most=2)
    names = _attackers(options)
    if len(names) != 2:
        raise UsageError(f"{len(names)} attackers", hint="a plane has two: `attackers=` length-words,surface")
    found = gaps_of(before, names, options)
    gaps = unit_gaps(np.nan_to_num(np.stack(list(found.values()), axis=1)))
    kept = None
    if after:
        staying = set(_keys(after[0]))
        kept = np.array([key in staying for key in _keys(before)])
        if not kept.any():
            raise UsageError(f"shares no item with {before.name}", where=after[0].name)
    return gap_plane(gaps[:, 0], gaps[:, 1], kept, names=(names[0], names[1]), title=before.name)


def draw_syntaxbias(sources: Sequence[str], options: FigureOptions) -> Figure:
    name = options.attackers[0] if options.attackers else "lm-mean"
    if name.startswith("lm-") and not options.lm:
        raise UsageError(f"{name} needs a language model", hint="`lm='lm:NAME'`, or `attackers=` with another")
    benches = _benches(sources, most=20)
    scores = {}
    for bench in benches:
        score = syntaxbias_scores(np.nan_to_num(gaps_of(bench, [name], options)[name]))
        if len(benches) > 1:
            scores[bench.name] = score
            continue
        subset = np.array(bench.column("subset").to_pylist())
        scores = {s: score[subset == s] for s in bench.subsets}
    return bias_distributions(scores, title=name)


def draw_likeness(sources: Sequence[str], options: FigureOptions) -> Figure:
    (bench,) = _benches(sources, most=1)
    parser: TreeParser | None = None
    measure, label = "levenshtein", "lexical similarity (characters)"
    if options.parser or options.syntax:
        spec = options.parser or treebank_parser()
        parser = open_constituency_parser(spec) if spec else linkage_tree
        by = parser.name if isinstance(parser, ConstituencyParser) else "link-grammar"
        measure, label = "sls", f"SLS, trees by {by}"
    groups = {}
    for subset in bench.subsets:
        found = likeness_of(bench, subset, parser=parser)
        boxes = {c.kind: c.measures[measure] for c in found.couples if measure in c.measures}
        groups[subset] = {k: Box(s.quantiles, s.mean) for k, s in boxes.items() if s.n and len(s.quantiles) == 5}
    return boxes_by_subset({s: by for s, by in groups.items() if by}, label=label, title=bench.name)


def draw_words(sources: Sequence[str], options: FigureOptions) -> Figure:
    """Words that stand in true and in false captions, the most unequal first; or the values of a tag."""
    (bench,) = _benches(sources, most=1)
    if options.tag:
        return _tag(bench, options)
    true: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for item in bench:
        for column, caption in enumerate(item.captions):
            pile = true if any(row[column] for row in item.match) else false
            pile.update({w.lower() for w in words(caption)})
    n = max(1, len(bench))
    unequal = sorted({*true, *false}, key=lambda w: (-abs(true[w] - false[w]), w))[: options.most]
    piles = {"true captions": true, "false captions": false}
    shown = {name: {w: 100 * pile[w] / n for w in unequal} for name, pile in piles.items()}
    return counts(shown, label="captions with the word, per 100 items", title=f"{bench.name}: what tells them apart")


def _tag(bench: Benchmark, options: FigureOptions) -> Figure:
    tags = [c[len(TAG_PREFIX) :] for c in bench.columns if c.startswith(TAG_PREFIX)]
    if options.tag not in tags:
        raise unknown("tag", options.tag, tags, where=bench.name)
    found = Counter(str(v) for v in bench.column(TAG_PREFIX + options.tag).to_pylist() if v is not None)
    top = dict(found.most_common(options.most))
    return counts(
        {options.tag: {k: float(v) for k, v in top.items()}}, label="items", title=f"{bench.name}: {options.tag}"
    )


def _benches(sources: Sequence[str], most: int) -> list[Benchmark]:
    if len(sources) > most:
        raise UsageError(f"{len(sources)} benchmarks, this figure takes {most}")
    return [load(s) for s in sources]


def _keys(bench: Benchmark) -> list[tuple[str, str]]:
    return list(zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True))
