"""Finding captions and images of a benchmark that also occur elsewhere: in a training corpus or in another benchmark.

Captions are equal if they have the same words in the same order. Similar captions are found by MinHash (rensa) over
words and pairs of neighbouring words; their Jaccard similarity is then computed exactly. The benchmark is indexed and
the corpus is read as a stream, so the memory needed does not depend on the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from creperie.bench import Benchmark, as_benchmark, split_reference
from creperie.core import Progress, missing_module, option, read_lines, silent, with_options
from creperie.lang import words

BATCH = 20_000
#: Slots of a MinHash signature, and bands that they form: captions of similarity 0.7 share one in 99 of 100 cases.
SLOTS, BANDS, SEED = 64, 16, 1
#: Maximum number of matches that are listed.
LISTED = 1_000


@dataclass(frozen=True)
class OverlapOptions:
    """Options that decide which captions count as similar."""

    near: float = option(0.7, "Similarity from which captions are near-duplicates; 1 finds equal ones only.", minimum=0)


@dataclass(frozen=True)
class CaptionMatch:
    """A caption of the benchmark and an equal or similar text of the corpus. `line` is the position of the text in the
    corpus, from 1.
    """

    caption: str
    text: str
    line: int
    similarity: float


@dataclass
class Overlap:
    """What a benchmark shares with a corpus.

    `texts` is the number of texts in the corpus, and `captions` the number of distinct captions in the benchmark.
    `exact` counts the captions that equal a text in the corpus, and `near` those that are only similar to one. `items`
    counts the items with such captions, and `images` the images whose file name also occurs in the corpus. `matches`
    lists at most 1,000 pairs.
    """

    benchmark: str
    corpus: str
    texts: int = 0
    captions: int = 0
    exact: int = 0
    near: int = 0
    items: int = 0
    images: int = 0
    matches: list[CaptionMatch] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return asdict(self)


@with_options(options=OverlapOptions)
def overlap(
    bench: Benchmark | str | Path,
    corpus: Benchmark | str | Path,
    *,
    options: OverlapOptions,
    progress: Progress = silent,
) -> Overlap:
    """Return the captions of a benchmark that occur in a corpus, and the number of items with such captions.

    The corpus is a text file with one caption per line, or another benchmark. Of tab-separated lines, only the last
    column is compared. If the corpus is a benchmark, images with the same file name are counted as well.
    """
    benchmark = as_benchmark(bench)
    other = None if isinstance(corpus, str | Path) and Path(corpus).is_file() else as_benchmark(corpus)
    shared = Overlap(benchmark.name, str(corpus) if other is None else other.name)
    captions = benchmark.column("captions").to_pylist()
    place = {" ".join(words(c)): c for item in captions for c in item}
    keys = list(place)
    index = _Index(keys, options.near)
    best: dict[str, float] = {}
    with progress("reading the corpus", None, "captions") as advance:
        lines = _texts(corpus if other is None else other)
        while batch := list(islice(lines, BATCH)):
            for line, key, similarity in index.matches([" ".join(words(text)) for text in batch]):
                best[key] = max(best.get(key, 0.0), similarity)
                if len(shared.matches) < LISTED:
                    match = CaptionMatch(place[key], batch[line], shared.texts + line + 1, round(similarity, 3))
                    shared.matches.append(match)
            shared.texts += len(batch)
            advance(len(batch))
    shared.captions, shared.exact = len(keys), sum(s == 1 for s in best.values())
    shared.near = len(best) - shared.exact
    shared.items = sum(any(" ".join(words(c)) in best for c in item) for item in captions)
    shared.images = len(_images(benchmark) & _images(other)) if other is not None else 0
    return shared


class _Index:
    """An index of a benchmark's captions, by their words and by bands of their MinHash signatures."""

    def __init__(self, keys: Sequence[str], near: float) -> None:
        self.keys, self.near = keys, near
        self.known = set(keys)
        if near >= 1:
            return
        try:
            from rensa import RMinHash, RMinHashLSH
        except ModuleNotFoundError as e:
            raise missing_module(e) from None
        self.sketch = RMinHash.from_token_sets
        self.bands = RMinHashLSH(threshold=near, num_perm=SLOTS, num_bands=BANDS)
        for k, sketch in enumerate(self.sketch([_shingles(key) for key in keys], SLOTS, SEED)):
            self.bands.insert(k, sketch)

    def matches(self, texts: Sequence[str]) -> Iterator[tuple[int, str, float]]:
        """Yield (index of the text, caption, similarity) for every match between a text and a caption."""
        yield from ((n, text, 1.0) for n, text in enumerate(texts) if text in self.known)
        if self.near >= 1:
            return
        shingles = [_shingles(text) for text in texts]
        for n, candidates in enumerate(self.bands.query_all(self.sketch(shingles, SLOTS, SEED))):
            for key in (self.keys[k] for k in candidates if self.keys[k] != texts[n]):
                one, two = set(shingles[n]), set(_shingles(key))
                similarity = len(one & two) / max(1, len(one | two))
                if self.near <= similarity:
                    yield n, key, min(similarity, 0.999)


def _shingles(text: str) -> list[str]:
    """Return the words of a text, followed by its pairs of neighbouring words."""
    tokens = text.split()
    return [*tokens, *map(" ".join, pairwise(tokens))]


def _texts(corpus: Benchmark | str | Path) -> Iterator[str]:
    if isinstance(corpus, Benchmark):
        yield from (caption for item in corpus.column("captions").to_pylist() for caption in item)
    else:
        yield from (line.rpartition("\t")[2] for _, line in read_lines(Path(corpus)))


def _images(bench: Benchmark) -> set[str]:
    """Return the file names of a benchmark's images, without folders. For a crop, this is the name of the whole image's
    file.
    """
    keys = {key for item in bench.column("images").to_pylist() for key in item}
    return {PurePosixPath(split_reference(key)[0]).name for key in keys}
