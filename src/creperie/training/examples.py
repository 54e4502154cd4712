"""What a training sees: pictures with captions, foils and second wordings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from PIL import Image

from creperie.bench import Benchmark
from creperie.core import DataError

#: from an image's key to the picture
Open = Callable[[str], Image.Image]


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One picture to learn from. `key` names the record it came from; `alternatives` are other pictures' keys, of
    which the caption is not true."""

    key: str
    image: str
    caption: str
    paraphrase: str = ""
    foils: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainSet:
    """Examples and the way to their pictures."""

    name: str
    examples: tuple[TrainingExample, ...]
    open: Open

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def with_foils(self) -> int:
        """How many examples have at least one foil."""
        return sum(bool(e.foils) for e in self.examples)

    @property
    def digest(self) -> str:
        """The same for the same examples in the same order: a training resumes only on what it began with."""
        whole = hashlib.sha256()
        for e in self.examples:
            parts = (e.key, e.image, e.caption, e.paraphrase, *e.foils, "|", *e.alternatives)
            whole.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\n")
        return whole.hexdigest()

    def captions(self) -> Iterable[str]:
        """Return every text of the set."""
        for e in self.examples:
            yield e.caption
            if e.paraphrase:
                yield e.paraphrase
            yield from e.foils


def train_set(bench: Benchmark, *, foils: bool = True) -> TrainSet:
    """Return a benchmark's items as examples: one for each image of an item, with its first true caption, its second
    one as the paraphrase, and its false captions as foils. The other images of the item are alternatives. Of an item
    that has only true captions, and more than two, each caption is an example of its own."""
    from creperie.bench import open_image

    examples = []
    for item in bench:
        if not item.images:
            continue
        for row, image in enumerate(item.images):
            true = [c for c, holds in zip(item.captions, item.match[row], strict=True) if holds]
            false = tuple(c for c, holds in zip(item.captions, item.match[row], strict=True) if not holds)
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
            examples.append(TrainingExample(name, image, true[0], second, false if foils else (), others))
    if not examples:
        raise DataError(
            "no item has a picture with a true caption", where=bench.name, hint="give the images with `images=`"
        )
    return TrainSet(bench.name, tuple(examples), lambda key: open_image(bench.images, key))


def with_foils(data: TrainSet, foils: Sequence[tuple[str, ...]]) -> TrainSet:
    """Return the same pictures and captions with other foils, one tuple per example."""
    pairs = zip(data.examples, foils, strict=True)
    return replace(data, examples=tuple(replace(e, foils=own) for e, own in pairs))
