"""Raw captions: COCO, Karpathy's splits, Flickr, Conceptual Captions. Items with true captions only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.formats.columns import Columns
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.record import kind_of
from creperie.bench.formats.textfile import file_digest, find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import Tag
from creperie.core import BOM, DataError, parse_json, read_lines, read_text

#: One image with its captions: id, subset, image, captions, tags.
Row = tuple[str, str, str, list[str], dict[str, Tag]]
_TOKEN_LINE = re.compile(r"([^\t]+)#(\d+)\t(.*)", re.DOTALL)


def _benchmark(
    format: str, title: str, files: list[tuple[str, Path]], rows: Iterable[Row | SkippedRecord]
) -> Benchmark:
    columns = Columns()
    skipped: list[SkippedRecord] = []
    for row in rows:
        if isinstance(row, SkippedRecord):
            skipped.append(row)
            continue
        id_, subset, image, captions, tags = row
        reference = image_reference(image) if "#" in image else image
        columns.add(id_, subset, [reference], captions, [True] * len(captions), tags)
    if not columns.count:
        raise DataError("there is no caption in these files", where=", ".join(n for n, _ in files))
    step = ProvenanceStep("read", {"format": format, "sha256": {name: file_digest(path) for name, path in files}})
    info = Info(title=title)
    bench = Benchmark(format, columns.table(), info=info, provenance=(step,), skipped=tuple(skipped))
    check_keys(bench)
    return bench


def _wanted(value: Any, kind: type, what: str, where: str) -> Any:
    """A part of a JSON document that must be of a kind."""
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if right and kind is str and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise DataError(f"{what} holds an unpaired surrogate, which is not a character", where=where) from None
    if not right:
        words = {str: "text", list: "a list", dict: "an object", int: "a whole number"}
        raise DataError(f"{what} is {kind_of(value)}, expected {words[kind]}", where=where)
    return value


# -- COCO annotations ------------------------------------------------------------------------------------------------


def _coco_rows(files: list[tuple[str, Path]]) -> Iterator[Row | SkippedRecord]:
    for name, path in files:
        document = _wanted(parse_json(read_text(path), str(path), strict=True), dict, "the document", str(path))
        images = _wanted(document.get("images"), list, "'images'", str(path))
        notes = _wanted(document.get("annotations"), list, "'annotations'", str(path))
        names: dict[int, str] = {}
        captions: dict[int, list[str]] = {}
        for i, image in enumerate(images):
            where = f"{path} (images[{i}])"
            id_ = _wanted(_wanted(image, dict, "the image", where).get("id"), int, "'id'", where)
            if id_ in names:
                raise DataError(f"the image id {id_} is used twice", where=where)
            names[id_] = _wanted(image.get("file_name"), str, "'file_name'", where)
            captions[id_] = []
        for i, note in enumerate(notes):
            where = f"{path} (annotations[{i}])"
            id_ = _wanted(_wanted(note, dict, "the annotation", where).get("image_id"), int, "'image_id'", where)
            if id_ not in names:
                raise DataError(f"there is no image with the id {id_}", where=where)
            captions[id_].append(_wanted(note.get("caption"), str, "'caption'", where))
        for id_, file in names.items():
            if captions[id_]:
                yield str(id_), stem_of(name), file, captions[id_], {}
            else:
                yield SkippedRecord(stem_of(name), str(id_), "an image without captions")


# -- Karpathy's splits -----------------------------------------------------------------------------------------------


def _karpathy_rows(files: list[tuple[str, Path]]) -> Iterator[Row | SkippedRecord]:
    for name, path in files:
        document = parse_json(read_text(path), str(path), strict=True)
        if isinstance(document, dict):
            rows = _wanted(document.get("images"), list, "'images'", str(path))
            yield from (_split_row(row, i, name, path) for i, row in enumerate(rows))
        else:
            rows = _wanted(document, list, "the document", str(path))
            yield from (_listed_row(row, i, name, path) for i, row in enumerate(rows))


def _split_row(row: Any, number: int, name: str, path: Path) -> Row | SkippedRecord:
    """An image of Karpathy's own files: {"filename", "split", "sentences": [{"raw"}]}."""
    where = f"{path} (images[{number}])"
    file = _wanted(_wanted(row, dict, "the image", where).get("filename"), str, "'filename'", where)
    folder = row.get("filepath")
    split = _wanted(row.get("split", stem_of(name)), str, "'split'", where)
    sentences = _wanted(row.get("sentences"), list, "'sentences'", where)
    captions = [_wanted(_wanted(s, dict, "a sentence", where).get("raw"), str, "'raw'", where) for s in sentences]
    image = f"{_wanted(folder, str, repr('filepath'), where)}/{file}" if folder else file
    tags: dict[str, Tag] = {"cocoid": str(row["cocoid"])} if type(row.get("cocoid")) is int else {}
    id_ = str(row["imgid"]) if type(row.get("imgid")) is int else str(number)
    return (id_, split, image, captions, tags) if captions else SkippedRecord(split, id_, "an image without captions")


def _listed_row(row: Any, number: int, name: str, path: Path) -> Row | SkippedRecord:
    """A row of the files made from them for retrieval: {"image", "caption": text or texts}."""
    where = f"{path} (record {number})"
    image = _wanted(_wanted(row, dict, "the record", where).get("image"), str, "'image'", where)
    given = row.get("caption")
    captions = given if isinstance(given, list) else [given]
    subset = stem_of(name).rsplit("/", 1)[-1]
    texts = [_wanted(c, str, "'caption'", where) for c in captions]
    return (str(number), subset, image, texts, {}) if texts else SkippedRecord(subset, str(number), "no captions")


# -- Flickr ----------------------------------------------------------------------------------------------------------


def _flickr_rows(files: list[tuple[str, Path]]) -> Iterator[Row | SkippedRecord]:
    for name, path in files:
        if path.suffix.lower() == ".json":
            yield from _karpathy_rows([(name, path)])
            continue
        found: dict[str, list[str]] = {}
        for number, line in read_lines(path):
            line = line.removeprefix(BOM)
            if not line or (number == 1 and line.lower().startswith(("image_name|", "image,caption"))):
                continue
            parts = _flickr_line(line, path)
            if parts is None:
                yield SkippedRecord(stem_of(name), f"line {number}", "no image and caption on this line")
            else:
                found.setdefault(parts[0], []).append(parts[1])
        splits = _flickr8k_splits(path.parent)
        own = stem_of(name).rsplit("/", 1)[-1]
        for image, captions in found.items():
            yield image, splits.get(image, "unassigned") if splits else own, image, captions, {}


def _flickr8k_splits(folder: Path) -> dict[str, str]:
    """From an image to train, dev or test, where the lists of Flickr8k are in the same folder."""
    found: dict[str, str] = {}
    for split in ("train", "dev", "test"):
        path = folder / f"Flickr_8k.{split}Images.txt"
        if path.is_file():
            found |= {line.strip(): split for _, line in read_lines(path)}
    return found


def _flickr_line(line: str, path: Path) -> tuple[str, str] | None:
    """Image and caption of a line, in any of the three published spellings."""
    if token := _TOKEN_LINE.fullmatch(line):
        return token[1], token[3]
    bars = line.split("| ", 2)
    if len(bars) == 3:
        return bars[0], bars[2]
    image, comma, caption = line.partition(",")
    if comma and "|" not in image and image.lower().endswith((".jpg", ".jpeg", ".png")):
        quoted = len(caption) > 1 and caption.startswith('"') and caption.endswith('"')
        return image, caption[1:-1].replace('""', '"') if quoted else caption
    return None


# -- Conceptual Captions ---------------------------------------------------------------------------------------------


def _conceptual_rows(files: list[tuple[str, Path]]) -> Iterator[Row | SkippedRecord]:
    for name, path in files:
        subset = stem_of(name)
        for number, line in read_lines(path):
            caption, tab, link = line.removeprefix(BOM if number == 1 else "").partition("\t")
            if not tab or "\t" in link or not link:
                cells = line.count("\t") + 1
                raise DataError(f"has {cells} cells, expected a caption and a link", where=f"{path}:{number}")
            yield str(number - 1), subset, link, [caption], {}


def _reader(
    format: str,
    title: str,
    rows: Callable[[list[tuple[str, Path]]], Iterator[Row | SkippedRecord]],
    wanted: Callable[[str], bool],
) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, wanted, f"file of {title}")
        return _benchmark(format, title, files, rows(files))

    return read


def _is_flickr(name: str) -> bool:
    beside = name.endswith(("Images.txt", "Annotations.txt", "readme.txt", ".lemma.txt"))
    captions = name.endswith((".token", ".csv", ".txt")) and not beside
    return captions or (is_data_json(name) and "flickr" in name.lower())


FORMATS = (
    described(
        "coco-captions",
        _reader("coco-captions", "COCO captions", _coco_rows, lambda n: is_data_json(n) and "captions" in n),
    ),
    described("karpathy", _reader("karpathy", "Karpathy's splits", _karpathy_rows, is_data_json)),
    described("flickr-captions", _reader("flickr-captions", "Flickr captions", _flickr_rows, _is_flickr)),
    described(
        "conceptual-captions",
        _reader("conceptual-captions", "Conceptual Captions", _conceptual_rows, lambda n: n.endswith(".tsv")),
    ),
)
