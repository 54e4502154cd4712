"""How fast is the world? Prints rates on one core, in CPU seconds, so that a busy machine does not blur them.

python research/world_speed.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

from creperie.world import (
    CLEAN,
    Dice,
    Graph,
    evaluate,
    find_twins,
    image_key,
    render,
    sayable,
    training_pairs,
    write_sentence,
)
from creperie.world.clean_items import clean_items
from creperie.world.grammar import SentencePlan
from creperie.world.make import SceneImages
from creperie.world.sprites import sprite
from creperie.world.twins import Twins


def rate(label: str, count: int, unit: str, work: Callable[[], object]) -> None:
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    print(f"{label:44}{count / seconds:12,.0f} {unit}/s   ({count:,} in {seconds:.2f} s)", flush=True)


def certified_captions(twins: list[Twins]) -> int:
    """Every claim of every twin in every construction, written and judged by both scene graphs."""
    count = 0
    for pair in twins:
        graphs = [Graph(scene) for scene in pair.scenes]
        for side, form in enumerate(pair.forms):
            assert evaluate(form, graphs[side]) is True
            assert evaluate(form, graphs[1 - side]) is False
            for flavour, construction in enumerate(sayable(form)):
                write_sentence(form, SentencePlan(construction, flavour=flavour))
                count += 1
    return count


def main() -> None:
    dice = Dice(0)
    kinds = list(CLEAN)
    twins: list[Twins] = []
    rate(
        "twins: two certified scenes and claims",
        2000,
        "twins",
        lambda: twins.extend(find_twins(kinds[k % len(kinds)], dice, "train") for k in range(2000)),
    )
    scenes = [scene for pair in twins for scene in pair.scenes]
    rate("render at 64 × 64, nothing kept yet", 4000, "scenes", lambda: [render(scene, 64) for scene in scenes])
    rate("render at 64 × 64, sprites kept", 4000, "scenes", lambda: [render(scene, 64) for scene in scenes])
    sprite.cache_clear()
    rate("render at 224 × 224, nothing kept yet", 500, "scenes", lambda: [render(s, 224) for s in scenes[:500]])
    rate("render at 224 × 224, sprites kept", 500, "scenes", lambda: [render(s, 224) for s in scenes[:500]])
    keys = [image_key(scene) for scene in scenes]
    store = SceneImages(64)
    rate("PNG files at 64 × 64", 2000, "files", lambda: [store.read(key) for key in keys[:2000]])
    count = certified_captions(twins)
    rate("captions, written and certified", count, "captions", lambda: certified_captions(twins))
    rate(
        "items (choice), all clean kinds",
        2200,
        "items",
        lambda: [list(islice(clean_items(kind, "choice", "train", 0), 200)) for kind in kinds],
    )
    rate("pairs() for training, 64 × 64", 4000, "examples", lambda: list(training_pairs(4000)))


if __name__ == "__main__":
    main()
