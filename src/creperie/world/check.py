"""Is what was written still true? Captions are read anew and judged against the scenes that the pictures name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from creperie.bench import Benchmark, Item
from creperie.core import DataError, Progress, silent
from creperie.world.parse import parse
from creperie.world.store import scene_of
from creperie.world.truth import Graph, evaluate


@dataclass(frozen=True, slots=True)
class WorldFinding:
    """Something that is not as its item says."""

    code: str
    subset: str
    item: str
    message: str


def check_world(bench: Benchmark, progress: Progress = silent) -> list[WorldFinding]:
    """Every caption against every picture of its item. An empty list: all truths hold."""
    findings: list[WorldFinding] = []
    with progress("check the world", len(bench), "items") as advance:
        for item in bench:
            findings += [WorldFinding(code, item.subset, item.id, message) for code, message in _check_item(item)]
            advance(1)
    return findings


def _check_item(item: Item) -> Iterator[tuple[str, str]]:
    clean = item.tags.get("clean") is True
    claims = [parse(caption) for caption in item.captions]
    for key, row in zip(item.images, item.match, strict=True):
        try:
            graph = Graph(scene_of(key))
        except DataError as e:
            yield "unknown-scene", e.what
            continue
        for caption, claim, expected in zip(item.captions, claims, row, strict=True):
            if claim is None:
                if clean or expected:
                    yield "unreadable-caption", f"{caption!r} is not a sentence of the world"
            elif (verdict := evaluate(claim, graph)) is not expected:
                yield "wrong-match", f"{caption!r} is {_word(verdict)}, the item says {_word(expected)}"


def _word(verdict: bool | None) -> str:
    return "undecided" if verdict is None else str(verdict).lower()
