"""Training examples: images with captions, foils and paraphrases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from PIL import Image

from creperie.bench import Benchmark, Item
from creperie.core import DataError

#: a function from an image key to the image
Open = Callable[[str], Image.Image]


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A training example: an image and a true caption, with an optional paraphrase, foils and alternatives.

    `key` identifies the record from which the example was made. `alternatives` are other images, for which the caption
    is false.
    """

    key: str
    image: str
    caption: str
    paraphrase: str = ""
    foils: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainSet:
    """A list of training examples, and a function that opens their images.

    `contents` returns a digest of the images' contents. It can be left out if the keys alone determine the images.
    """

    name: str
    examples: tuple[TrainingExample, ...]
    open: Open
    contents: Callable[[], str] = str

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def with_foils(self) -> int:
        """The number of examples that have at least one foil."""
        return sum(bool(e.foils) for e in self.examples)

    @property
    def digest(self) -> str:
        """The hash of the examples, in order, and of their images. An interrupted training run resumes only if this
        hash is unchanged.
        """
        whole = hashlib.sha256(self.contents().encode())
        for e in self.examples:
            parts = (e.key, e.image, e.caption, e.paraphrase, *e.foils, "|", *e.alternatives)
            whole.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\n")
        return whole.hexdigest()

    def captions(self) -> Iterable[str]:
        """Yield all texts of the set: captions, paraphrases and foils."""
        for e in self.examples:
            yield e.caption
            if e.paraphrase:
                yield e.paraphrase
            yield from e.foils


def true_and_false(item: Item, row: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the true and the false captions of one image of an item; `row` is the image's index in the item."""
    pairs = list(zip(item.captions, item.match[row], strict=True))
    return tuple(c for c, holds in pairs if holds), tuple(c for c, holds in pairs if not holds)


def train_set(bench: Benchmark) -> TrainSet:
    """Return the items of a benchmark as training examples, one per image of an item.

    The image's first true caption becomes the example's caption, the second its paraphrase, and the false captions its
    foils. The item's other images become alternatives. If all captions of an image are true and there are more than
    two, each of them becomes an example of its own.
    """
    from creperie.bench import open_image
    from creperie.scoring import benchmark_digest

    examples = []
    for item in bench:
        for row, image in enumerate(item.images):
            true, false = true_and_false(item, row)
            if not true:
                continue
            others = tuple(
                key for k, key in enumerate(item.images) if k != row and not item.match[k][item.captions.index(true[0])]
            )
            name = f"{item.subset}/{item.id}" + (f"#{row}" if len(item.images) > 1 else "")
            if len(true) > 2 and not false:
                examples += [TrainingExample(f"{name}#{k}", image, text) for k, text in enumerate(true)]
                continue
            second = true[1] if len(true) > 1 else ""
            examples.append(TrainingExample(name, image, true[0], second, false, others))
    if not examples:
        raise DataError(
            "no item has an image with a true caption", where=bench.name, hint="pass the images folder as `images=`"
        )
    contents = cache(lambda: benchmark_digest(bench))
    return TrainSet(bench.name, tuple(examples), lambda key: open_image(bench.images, key), contents)


def with_foils(data: TrainSet, foils: Sequence[tuple[str, ...]]) -> TrainSet:
    """Return the data with new foils. `foils` has one tuple per example, which replaces the example's foils."""
    pairs = zip(data.examples, foils, strict=True)
    return replace(data, examples=tuple(replace(e, foils=own) for e, own in pairs))
