"""Training data from the built-in world: true captions, and foils with the biases of older benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import Progress, batched, check_name, silent
from creperie.training.examples import TrainingExample, TrainSet, with_foils
from creperie.world import (
    BIASED,
    Dice,
    Shown,
    find_twins,
    image_key,
    is_false,
    key_of,
    render,
    scene_of,
    training_pairs,
)

#: types of hard negatives, like the template foils of ARO and CREPE: the biased kinds of the world that make them
TYPES: dict[str, tuple[str, ...]] = {
    "replace": ("replace_ungrammatical", "replace_rare"),
    "swap": ("swap_implausible",),
    "negate": ("negate_there", "negate_relation"),
}
#: the sources of scenes; about half of them show somebody doing something, which swaps need
_SOURCES = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "spatial", "active_passive")


@dataclass(frozen=True)
class BiasedScenes:
    """Training examples from the built-in world (`data`, without foils), and biased foils for them (`foils`).

    `foils` has one list per type, with one entry per example: a foil or, if the type does not apply to the example, "".
    """

    data: TrainSet
    foils: Mapping[str, tuple[str, ...]]

    def with_types(self, types: Sequence[str]) -> TrainSet:
        """Return the examples with foils of the named types only, at most one of each type per example."""
        for name in types:
            check_name("type of foils", name, self.foils)
        rows = zip(*(self.foils[name] for name in types), strict=True) if types else [()] * len(self.data)
        return with_foils(self.data, [tuple(text for text in row if text) for row in rows])


PART = 4096  #: examples that a process draws at a time; the examples do not depend on the number of processes


def scene_pairs(
    n: int,
    seed: int,
    size: int,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> TrainSet:
    """Return `n` examples from the split `train`, with unbiased captions and foils.

    Each example has an image of a scene, a caption, a paraphrase, and a foil that is known to be false of the scene.
    It also has an alternative: an image of a similar scene, for which the foil is true.
    """
    parts = [(min(PART, n - k), seed * 100_003 + k // PART, size) for k in range(0, n, PART)]
    examples: list[TrainingExample] = []
    shown = {}
    with progress("draw pictures", n, "pictures") as advance, _processes(workers) as run:
        for drawn in run(_draw_part, parts):
            for example, picture in drawn:
                shown[example.image] = picture
                examples.append(replace(example, key=f"{example.key}/{len(examples)}"))
            advance(len(drawn))
    return TrainSet(f"world-train-{seed}", tuple(examples), lambda key: Image.fromarray(shown[key]), _drawn_in(size))


def _draw_part(part: tuple[int, int, int]) -> list[tuple[TrainingExample, np.ndarray]]:
    n, seed, size = part
    pairs = list(training_pairs(n, seed, "train", size=size))
    drawn = []
    for k, e in enumerate(pairs):
        twin = pairs[k ^ 1] if k ^ 1 < len(pairs) else None  # twins are adjacent
        others = (image_key(twin.scene),) if twin is not None else ()
        example = TrainingExample(e.kind, image_key(e.scene), e.caption, e.paraphrase, (e.foil,), others)
        drawn.append((example, e.image))
    return drawn


@contextmanager
def _processes(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    if workers < 2:
        yield map
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(workers) as pool:
        yield pool.map


def biased_scenes(n: int, seed: int, size: int = 64, progress: Progress = silent) -> BiasedScenes:
    """Return `n` scenes from the split `train`, each with one caption and the biased foils made from it."""
    dice = Dice(seed, key_of("spoilt train"))
    examples: list[TrainingExample] = []
    foils: dict[str, list[str]] = {name: [] for name in TYPES}
    with progress("draw scenes", n, "scenes") as advance:
        while len(examples) < n:
            shown = Shown.of(find_twins(dice.pick(_SOURCES), dice, "train"), dice)
            own = {name: _biased_caption(shown, kinds, dice) for name, kinds in TYPES.items()}
            if not any(own.values()):
                continue
            examples.append(TrainingExample(f"scene/{len(examples)}", image_key(shown.scene), shown.text))
            for name, text in own.items():
                foils[name].append(text)
            advance(1)
    data = TrainSet(
        f"world-train-spoilt-{seed}",
        tuple(examples),
        lambda key: Image.fromarray(render(scene_of(key), size)),
        _drawn_in(size),
    )
    return BiasedScenes(data, {name: tuple(texts) for name, texts in foils.items()})


def with_drawn(data: TrainSet, size: int, workers: int, progress: Progress = silent) -> TrainSet:
    """Return the examples with all their images already drawn, because several models will be trained on them."""
    keys = list(dict.fromkeys(e.image for e in data.examples))
    parts = [(part, size) for part in batched(keys, 256)]
    drawn: dict[str, np.ndarray] = {}
    with progress("draw pictures", len(keys), "pictures") as advance, _processes(workers) as run:
        for (own, _), pictures in zip(parts, run(_draw_keys, parts), strict=True):
            drawn |= zip(own, pictures, strict=True)
            advance(len(own))
    return replace(data, open=lambda key: Image.fromarray(drawn[key]), contents=_drawn_in(size))


def _drawn_in(size: int) -> Callable[[], str]:
    """Return a function for the field `contents` of a `TrainSet` whose images are rendered from their keys. It returns
    the size of the images as text.
    """
    # Together, keys and size determine the images.
    return lambda: f"drawn in {size} pixels"


def _draw_keys(part: tuple[Sequence[str], int]) -> list[np.ndarray]:
    keys, size = part
    return [render(scene_of(key), size) for key in keys]


def _biased_caption(shown: Shown, kinds: Sequence[str], dice: Dice) -> str:
    """Return a foil of one of the biased `kinds`, made from the scene's caption. Return "" if none of them applies to
    that caption.
    """
    for kind in dice.shuffled(kinds):
        texts = BIASED[kind].spoil(shown, dice)
        if texts is not None and texts[1] != shown.text and is_false(texts[1], shown.graph):
            return texts[1]
    return ""
