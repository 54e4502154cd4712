"""Three probes from the SADE paper. They show whether a model uses the order of words, whether it prefers content to
fluency, and whether it uses the image.

*order* scores every caption and four shuffles of it. *cases* makes three comparisons: a caption against shuffles of
itself; the caption against fluent captions of other images; and only its content words against the same fluent
captions. *images* measures accuracy with the images and with noise in their place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.auditing.measure import mean_of
from creperie.bench import Benchmark, Item, from_items, open_image
from creperie.core import Json, Progress, UsageError, batched, check_name, silent
from creperie.lang import parse
from creperie.making import (
    SHUFFLES,
    SourceCaption,
    captions_of,
    content_maker,
    dice_for,
    published_shuffle,
    word_order,
)
from creperie.making import MakerOptions as MakeOptions
from creperie.metrics import Input
from creperie.models import Model, caption_images, load_model, parse_uri
from creperie.scoring import Run, ScoreOptions, blind_twin, score_all

#: The shuffles of Figure 1: all but the full shuffle.
ORDERS = tuple(name for name in SHUFFLES if name != "shuffle-all")
#: The shuffles that serve as foils in the first case, as in Figure 2: nouns and adjectives, words within trigrams.
CASE_ONE = ("shuffle-nouns-adjectives", "shuffle-within-trigrams")
CASES = ("shuffled", "fluent", "content-only")
TOGETHER = 64  #: images in memory at once
SCORES: tuple[Input, ...] = ("image_text", "text", "text_text")


@dataclass(frozen=True)
class ScoreSpread:
    """The distribution of the scores of one kind of caption, and how often the true caption scores higher than this
    kind.

    `gap` is the mean difference between the score of the true caption and that of this kind. It is divided by the
    standard deviation, pooled over the kinds of captions, so that models whose scores have different units can be
    compared.
    """

    model: str
    metric: str
    kind: str
    n: int
    void: int  #: items left out because a score is missing
    mean: float
    quartiles: tuple[float, float, float, float, float]  #: minimum, 25 %, median, 75 %, maximum
    gap: float = math.nan
    above: int = 0
    ties: int = 0


@dataclass(frozen=True)
class Probed:
    """The results of a probe. If the probe compares distributions of scores, they are in `spreads`, and `rows` has the
    generated captions. Otherwise `rows` has accuracies, and `spreads` is empty.
    """

    probe: str
    benchmark: str
    items: int
    left_out: Mapping[str, int]
    spreads: tuple[ScoreSpread, ...] = ()
    rows: tuple[Json, ...] = ()

    def document(self) -> Json:
        about = {"probe": self.probe, "benchmark": self.benchmark, "items": self.items, "left_out": dict(self.left_out)}
        return {**about, "spreads": [vars(s) for s in self.spreads], "rows": list(self.rows)}


# -- word order ------------------------------------------------------------------------------------------------------


def probe_order(
    bench: Benchmark,
    models: Sequence[str],
    options: ScoreOptions | None = None,
    *,
    captioner: str | Model = "",
    references: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Probed:
    """Score every true caption and four shuffles of it, and return the distributions of the scores (Figure 1 of the
    SADE paper).

    Models that can only compare two texts (BERTScore, text encoders) compare each caption with a description of the
    image. The model `captioner` writes the descriptions; by default this is the first vlm: or api: model among
    `models`. With `references`, another true caption of the same image replaces the description, and only one caption
    of each image is used.
    """
    captions = captions_of(bench)
    items = []
    left_out = Counter({"shuffles are alike": 0})  # too short to be shuffled in four ways
    seen = set()
    for source, texts in _shuffled(captions.sources, ORDERS, seed):
        if source.text in texts:
            left_out["shuffles are alike"] += 1
            continue
        if references and (not source.others or source.images in seen):
            left_out["no other caption"] += not source.others
            continue
        seen.add(source.images)
        # The first caption is the reference; without references, a generated caption takes its place.
        first = source.others[0] if references else source.text
        items.append(_item(source, "order", (first, source.text, *texts), true=2))
    shuffled = _benchmark(bench, "order", items)
    writer = captioner or next((m for m in models if not isinstance(m, str) or m.startswith(("vlm:", "api:"))), "")
    judged: Benchmark | None = None
    descriptions: tuple[dict[str, str], ...] = ()
    spreads = []
    for model in models:
        (run,) = score_all([shuffled], [model], options, progress=progress)
        if not references and not {"image_text", "text"} & set(run.inputs):
            if judged is None:
                judged, descriptions = _described(shuffled, writer, options or ScoreOptions(), where=run.model)
                left_out["nothing is said about the image"] = len(shuffled) - len(judged)
            (run,) = score_all([judged], [model], options, progress=progress)
        spreads += _spreads(run, ("caption", *ORDERS))
    return Probed("order", bench.name, len(items), left_out, tuple(spreads), descriptions)


def _described(
    shuffled: Benchmark, writer: str | Model, options: ScoreOptions, *, where: str
) -> tuple[Benchmark, tuple[dict[str, str], ...]]:
    """Let a model describe the image of each item. Return the items, with the description in place of the first
    caption, and the descriptions alone, as rows.
    """
    if not writer or not all(item.images for item in shuffled):
        hint = "use items with images, and name a vlm: or api: model that describes them: `captioner=`"
        raise UsageError(
            "this model only compares captions with a text, but there is no text to compare them with",
            where=where,
            hint=hint,
        )
    model = load_model(writer, device=options.device, dtype=options.dtype) if isinstance(writer, str) else writer
    items = list(shuffled)
    descriptions: list[str] = []
    for batch in batched(items, TOGETHER):
        descriptions += caption_images(model, [open_image(shuffled.images, item.images[0]) for item in batch])
    described = [
        replace(i, captions=(text, *i.captions[1:])) for i, text in zip(items, descriptions, strict=True) if text
    ]
    rows = tuple({"id": i.id, "generated": i.captions[0], "by": model.fingerprint.uri} for i in described)
    return _benchmark(shuffled, "described", described), rows


def metric_of(run: Run) -> str:
    """Return the SADE paper's name for the kind of score in a run."""
    uri = parse_uri(run.model)
    if "image_text" in run.inputs:
        generative = {"visualgpt": "VisualGPTScore", "vqa": "VQAScore", "yesno": "P(yes)", "choice": "choice"}
        return generative[uri.options.get("score", "visualgpt")] if uri.kind == "vlm" else "image-text similarity"
    if "text" in run.inputs:
        return "GPTScore" if uri.kind == "lm" else "blind score"
    return "BERTScore" if uri.options.get("score") == "bertscore" else "caption similarity"


def _spreads(run: Run, kinds: Sequence[str]) -> list[ScoreSpread]:
    table = _first_row(run)[:, 1:]
    whole = np.isfinite(table).all(axis=1)
    complete = table[whole].astype(np.float64)
    unit = float(np.sqrt(complete.var(axis=0).mean())) if len(complete) else math.nan
    spreads = []
    for column, kind in enumerate(kinds):
        scores = complete[:, column]
        points = np.quantile(scores, [0, 0.25, 0.5, 0.75, 1]) if len(complete) else np.full(5, np.nan)
        about = run.model, metric_of(run), kind, len(complete), int((~whole).sum()), mean_of(scores)
        lead = table[whole, 0] - table[whole, column] if column else np.zeros(0)
        gap = mean_of(lead) / unit if unit else math.nan
        spreads.append(ScoreSpread(*about, (*points.tolist(),), gap, int((lead > 0).sum()), int((lead == 0).sum())))
    return spreads


def _first_row(run: Run) -> np.ndarray:
    """Return one number per caption, as an array (items × captions). It is the caption's score with the first image. If
    the run has no such scores, it is the score without an image, or else the similarity to the first caption.
    """
    needs = next(i for i in SCORES if i in run.inputs)
    width = int(run.layout.columns[0])
    return run.scores(needs).reshape(len(run), -1)[:, :width]


# -- three cases -----------------------------------------------------------------------------------------------------


def probe_cases(
    bench: Benchmark,
    models: Sequence[str],
    options: ScoreOptions | None = None,
    *,
    others: str = "",
    shuffles: Sequence[str] = CASE_ONE,
    seed: int = 0,
    progress: Progress = silent,
) -> Probed:
    """Return accuracies in three cases, which show how often a model prefers fluency to content (Figure 3 of the SADE
    paper).

    In the first case, a caption competes with shuffles of itself. In the second, it competes with fluent captions of
    other images. In the third, only its content words compete with the same fluent captions.

    The fluent captions come from `others` (a file or a benchmark) or are captions of other images. `shuffles` are the
    foils of the first case. Section 4.2 of the paper may instead mean `shuffle-trigrams`, which moves groups of three
    words.
    """
    for name in shuffles:
        check_name("shuffle", name, SHUFFLES)
    captions = captions_of(bench)
    maker = content_maker("content", MakeOptions(seed=seed, others=others), captions)
    proposals = maker.propose(captions.sources)
    items = []
    left_out: Counter[str] = Counter()
    for (source, foils), proposal in zip(_shuffled(captions.sources, shuffles, seed), proposals, strict=True):
        why = proposal.skipped or ("shuffles are alike" if source.text in foils else "")
        if why:
            left_out[why] += 1
            continue
        bare, *fluent = (c.text for c in proposal.candidates)
        items += [
            _item(source, CASES[0], (source.text, *foils)),
            _item(source, CASES[1], (source.text, *fluent)),
            _item(source, CASES[2], (bare, *fluent)),
        ]
    three = _benchmark(bench, "cases", items)
    rows = []
    for model in models:
        (run,) = score_all([three], [model], options, progress=progress)
        chosen = next((t for t in ("itt", "blind") if t in run.tasks), "")
        if not chosen:
            raise UsageError(
                "this model scores captions neither alone nor with an image", where=model, hint="use another model"
            )
        rows += [{"model": run.model, **r.as_dict()} for r in run.evaluate([chosen]) if r.subset in CASES]
    return Probed("cases", bench.name, len(items) // len(CASES), left_out, rows=tuple(rows))


# -- images ----------------------------------------------------------------------------------------------------------


def probe_images(
    bench: Benchmark,
    models: Sequence[str],
    options: ScoreOptions | None = None,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Probed:
    """Return accuracies by subset, with the images and with noise in their place (Figure 4 of the SADE paper)."""
    rows = []
    for model in models:
        asked = replace(options or ScoreOptions(), tasks=("itt",))
        with_image, without = score_all([bench, blind_twin(bench, "noise", seed)], [model], asked, progress=progress)
        for seen, noise in zip(with_image.evaluate(), without.evaluate(), strict=True):
            drop = seen.accuracy - noise.accuracy
            rows.append({"model": with_image.model, **seen.as_dict(), "noise": noise.as_dict(), "drop": drop})
    return Probed("images", bench.name, len(bench), {}, rows=tuple(rows))


PROBES: Mapping[str, Callable[..., Probed]] = {"order": probe_order, "cases": probe_cases, "images": probe_images}


# -- items -----------------------------------------------------------------------------------------------------------


def _shuffled(
    sources: Sequence[SourceCaption], kinds: Sequence[str], seed: int
) -> Iterator[tuple[SourceCaption, tuple[str, ...]]]:
    """Yield each caption with its shuffles. A shuffle that equals the caption or another shuffle is drawn again. If
    this fails too often, the caption itself takes the place of the shuffle.
    """
    for source, doc in zip(sources, parse([s.text for s in sources]), strict=True):
        rng = dice_for(seed, "probe", source.id)
        texts: list[str] = []
        for kind in kinds:
            taken = {word_order(t) for t in (source.text, *texts)}  # moved marks and spaces are no shuffle
            tries = (published_shuffle(kind, source.text, doc, rng) for _ in range(TRIES))
            texts.append(next((t for t in tries if word_order(t) not in taken), source.text))
        yield source, tuple(texts)


TRIES = 16


def _item(source: SourceCaption, subset: str, captions: tuple[str, ...], true: int = 1) -> Item:
    match = (tuple(k < true for k in range(len(captions))),)
    return Item(source.id, subset, source.images, captions, match, {})


def _benchmark(bench: Benchmark, probe: str, items: Sequence[Item]) -> Benchmark:
    if not items:
        raise UsageError(
            f"no caption can be used for the probe {probe!r}",
            where=bench.name,
            hint="use a benchmark with longer captions, or with more of them",
        )
    return from_items(f"{bench.name}~{probe}", items, images=bench.images)
