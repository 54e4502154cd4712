"""One benchmark, many models: pictures are prepared once, and every model of a study takes the same test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image

from creperie.bench import Benchmark, Item, open_image
from creperie.core import Progress, silent
from creperie.metrics import Layout, Result, clusters_of, evaluate, layout_of
from creperie.models import Tokens
from creperie.scoring import products
from creperie.training.examples import Open

CHUNK = 128


class Sitter(Protocol):
    """A dual encoder with staged inputs."""

    def prepare_image(self, image: Image.Image) -> np.ndarray: ...

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray: ...

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]: ...

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray: ...


@dataclass
class Exam:
    """Items with prepared pictures."""

    items: tuple[Item, ...]
    pictures: list[np.ndarray]
    image_rows: np.ndarray
    captions: list[str]
    caption_rows: np.ndarray
    layout: Layout
    clusters: np.ndarray

    def sit(self, model: Sitter) -> dict[str, Result]:
        """Image-to-text results by subset, and for "all"."""
        images = _in_chunks(model.forward_images, self.pictures)
        order = np.argsort([len(c) for c in self.captions], kind="stable")
        texts = np.empty((len(order), images.shape[1]), np.float32)
        texts[order] = _in_chunks(model.forward_texts, model.prepare_texts([self.captions[i] for i in order]))
        scores = products(images, self.image_rows, texts, self.caption_rows)
        subsets = [item.subset for item in self.items]
        results = evaluate("itt", self.layout, scores, subsets=subsets, clusters=self.clusters)
        return {row.subset: row for row in results}


def exam_of(bench: Benchmark, first: Sitter, progress: Progress = silent) -> Exam:
    """`first` is any model of the study: all must prepare pictures in the same way."""
    return make_exam(list(bench), lambda key: open_image(bench.images, key), first.prepare_image, progress)


def make_exam(
    items: Sequence[Item], open_picture: Open, prepare: Callable[[Image.Image], np.ndarray], progress: Progress = silent
) -> Exam:
    """Prepare the pictures, and the pairs to be scored."""
    keys = {key: i for i, key in enumerate(dict.fromkeys(k for item in items for k in item.images))}
    texts = {text: i for i, text in enumerate(dict.fromkeys(t for item in items for t in item.captions))}
    pictures = []
    with progress("prepare pictures", len(keys), "pictures") as advance:
        for key in keys:
            pictures.append(prepare(open_picture(key)))
            advance(1)
    pairs = [(keys[k], texts[t]) for item in items for k in item.images for t in item.captions]
    rows = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    clusters = clusters_of(np.asarray([len(item.images) for item in items]), [k for item in items for k in item.images])
    layout = layout_of(item.match for item in items)
    return Exam(tuple(items), pictures, rows[:, 0], list(texts), rows[:, 1], layout, clusters)


def _in_chunks(encode: object, prepared: Sequence[object]) -> np.ndarray:
    assert callable(encode)
    return np.concatenate([encode(prepared[i : i + CHUNK]) for i in range(0, len(prepared), CHUNK)])
