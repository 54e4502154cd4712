"""The source captions of makers: the lines of a text file, or the true captions of a benchmark."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, overload

from creperie.bench import MANIFEST_FILE, NO_IMAGES, Benchmark, ImageStore, Item, Tag, load, open_store
from creperie.core import DataError, UsageError, unknown

if TYPE_CHECKING:
    from creperie.engine import Pieces

#: Maximum captions that are held in memory; larger sources are streamed.
HELD = 50_000
#: Options of a table of captions → the role of the column in a benchmark.
_COLUMNS = {"text": "positive", "id": "id", "image": "image"}
#: how a benchmark's table, and how a file of captions says where its captions are
_AS_OPTION = "pass `positive='COLUMN'`", "put ?text=COLUMN behind the name"


@dataclass(frozen=True, slots=True)
class SourceCaption:
    """One source caption. `others` are other captions that are known to be true of the same image."""

    id: str
    text: str
    images: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    subset: str = ""
    tags: Mapping[str, Tag] = field(default_factory=dict)


@dataclass(frozen=True)
class Captions:
    """All source captions of one generation job, where they come from, and their image store.

    The captions in a large file are read again on every pass instead of being held in memory.
    """

    name: str
    sources: Sequence[SourceCaption]
    images: ImageStore = NO_IMAGES
    spec: str = ""  #: the file or benchmark spec that they can be read from again; of several files, one per line
    bench: Benchmark | None = None  #: the benchmark that they come from; miners also use its false captions
    items: Mapping[str, Item] = field(default_factory=dict)  #: the item of each source of a benchmark
    drawn_from: Sequence[SourceCaption] = ()  #: all captions, if the sources are a sample of them

    @cached_property
    def false(self) -> frozenset[tuple[str, str]]:
        """The (image, caption) pairs of the benchmark that people found false."""
        rows = ((item.captions, row) for item in self.bench or () for row in zip(item.images, item.match))
        return frozenset((image, c) for captions, (image, row) in rows for c, holds in zip(captions, row) if not holds)

    @cached_property
    def digest(self) -> str:
        """A hash of the captions in their order, with everything known about them. A job resumes only if this hash is
        unchanged.
        """
        whole = hashlib.sha256()
        for s in self.sources:
            known = [s.id, s.text, s.images, s.others, s.subset, dict(s.tags)]
            whole.update(json.dumps(known, sort_keys=True).encode() + b"\n")
        return whole.hexdigest()


class Streamed(Sequence[SourceCaption]):
    """A sequence of source captions, from index `start` to `stop`, that is read in pieces. One piece is in memory at a
    time.

    A slice reads nothing; it stores only where it begins and ends.
    """

    def __init__(self, pieces: Pieces, start: int = 0, stop: int | None = None) -> None:
        self.pieces = pieces
        self.start = start
        self.stop = pieces.rows if stop is None else stop
        self._begins = [0, *accumulate(pieces.counts)]
        self._last: dict[int, list[SourceCaption]] = {}  #: the last piece that was read, shared with slices

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": {}}  # a worker reads its own pieces

    def __len__(self) -> int:
        return max(0, self.stop - self.start)

    @overload
    def __getitem__(self, index: int) -> SourceCaption: ...
    @overload
    def __getitem__(self, index: slice) -> Streamed: ...
    def __getitem__(self, index: int | slice) -> SourceCaption | Streamed:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise ValueError("streamed captions can be sliced only with step 1")
            part = Streamed(self.pieces, self.start + first, self.start + max(first, last))
            part._last = self._last  # so that adjacent slices do not read a piece twice
            return part
        if not -len(self) <= index < len(self):
            raise IndexError(f"no caption {index}: there are {len(self)}")
        row = self.start + index % len(self)
        number = bisect_right(self._begins, row) - 1
        return self.piece(number)[row - self._begins[number]]

    def piece(self, number: int) -> list[SourceCaption]:
        """Return the sources in a piece. The last piece read is cached, because batches are smaller than pieces."""
        if number not in self._last:
            table = self.pieces.piece(number)
            rows = zip(*(table.column(name).to_pylist() for name in ("id", "text", "image")), strict=True)
            self._last.clear()
            self._last[number] = [SourceCaption(id_, text, (image,) if image else ()) for id_, text, image in rows]
        return self._last[number]


def read_captions(spec: str | Path, *, images: str | Path | None = None) -> Captions:
    """Return captions from a text file (one per line), a TSV, CSV, JSON-lines or Parquet file, or a benchmark. From a
    benchmark, the true captions are taken, each once per image. `spec` may also list several files, one per line.
    """
    try:
        return replace(_read(str(spec), images), spec=str(spec))
    except (OSError, ValueError) as e:  # an invalid file name
        shown = str(spec) if len(str(spec)) < 80 else str(spec)[:77] + "…"
        reason = getattr(e, "strerror", None) or str(e)
        raise UsageError(
            f"the captions cannot be read ({reason})", where=shown, hint="check the name of the file or benchmark"
        ) from None


def _read(spec: str, images: str | Path | None) -> Captions:
    from creperie.engine import open_captions, open_lines, split_spec

    path = Path(spec)
    several = spec.splitlines() if not path.exists() else [spec]
    for one in several:
        if len(several) > 1 and not _is_streamed(one):
            hint = (
                "name text, TSV, Parquet or tar files; JSON lines with ?text=FIELD; join others: `creperie data concat`"
            )
            raise UsageError("this file of captions cannot be read together with others", where=one, hint=hint)
    if len(several) > 1 or _is_streamed(spec):
        place, options = split_spec(several[0])
        names = [Path(split_spec(one)[0]).name for one in several]
        name = ", ".join(names) if len(names) > 1 else names[0].split(".")[0].strip("*?[]") or "captions"
        alone = len(several) == 1 and place.endswith((".tar", ".parquet")) and Path(place).is_file()
        beside = images or (place if alone else None)
        return Captions(name, _of_pieces(open_captions(spec), spec), open_store(beside) if beside else NO_IMAGES)
    place, options = split_spec(spec)
    if Path(place).suffix.lower() in (".csv", ".jsonl"):  # a table: its columns are those of a benchmark
        for name in options:
            if name not in _COLUMNS:
                raise unknown("option of a table of captions", name, _COLUMNS, where=spec)
        roles = {_COLUMNS[name]: column for name, column in options.items()}
        try:
            return captions_of(load(place, images=images, **roles))
        except UsageError as e:
            raise UsageError(e.what, where=e.where, hint=e.hint.replace(*_AS_OPTION)) from None
    if path.suffix == ".json" and path.is_file():
        raise UsageError("is JSON, not one caption per line", where=spec, hint=f"name its format: coco-captions:{spec}")
    if path.is_file():  # one caption per line, unchanged, with the line number as its id
        return Captions(path.stem, _of_pieces(open_lines(spec), spec))
    if path.is_dir() and not (path / MANIFEST_FILE).is_file():
        raise UsageError("this folder is not a benchmark", where=spec, hint="name a text file or FORMAT:PATH")
    return captions_of(load(spec, images=images))


def first_or_drawn(captions: Captions, limit: int | None = None, sample: int | None = None, seed: int = 0) -> Captions:
    """Return the first `limit` captions (all if None). If `sample` is given, return only `sample` of these captions,
    drawn at random but in their original order.
    """
    if limit is not None:
        captions = replace(captions, sources=captions.sources[:limit])
    total = len(captions.sources)
    if sample is None or sample >= total:
        return captions
    chosen = sorted(Random(seed).sample(range(total), sample))
    return replace(captions, sources=tuple(captions.sources[k] for k in chosen), drawn_from=captions.sources)


def _is_streamed(spec: str) -> bool:
    """Return True for files that are read in pieces, and for folders of them; False for benchmarks and small tables."""
    from creperie.engine import kind_of, split_spec

    place, options = split_spec(spec)
    if Path(place).is_dir():
        known = any(kind_of(file.name) for file in Path(place).iterdir())
        return bool(options) or (known and not (Path(place) / MANIFEST_FILE).is_file())
    kind = kind_of(place)
    return kind is not None and (kind != "json" or "text" in options or not place.endswith(".jsonl"))


def _of_pieces(pieces: Pieces, spec: str) -> Sequence[SourceCaption]:
    sources = Streamed(pieces)
    if len(sources) > HELD:
        return sources
    held = tuple(sources)
    id_, times = next(iter(Counter(source.id for source in held).most_common(1)), ("", 0))
    if times > 1:
        raise DataError(
            f"{times} captions have the id {id_!r}",
            where=spec,
            hint="name another field with `?id=FIELD`, or leave out `?id=`",
        )
    return held


def captions_of(bench: Benchmark) -> Captions:
    """Return the true captions of a benchmark, each once per image, with the other true captions of that image."""
    true: dict[tuple[str, ...], dict[str, None]] = {}
    rows: dict[str, tuple[str, tuple[str, ...], Item]] = {}
    for item in bench:
        for row, truths in enumerate(item.match):
            images = item.images[row : row + 1]
            for column, holds in enumerate(truths):
                caption = item.captions[column]
                known = true.setdefault(images, {})
                if not holds or caption in known:
                    continue
                known[caption] = None
                several = len(item.captions) > 1 and sum(map(sum, item.match)) > 1
                key = f"{item.subset}/{item.id}" + (f"#{row}.{column}" if several else "")
                rows[key] = caption, images, item
    sources = tuple(
        SourceCaption(key, text, images, tuple(c for c in true[images] if c != text and images), item.subset, item.tags)
        for key, (text, images, item) in rows.items()
    )
    return Captions(bench.name, sources, bench.images, "", bench, {key: item for key, (*_, item) in rows.items()})
