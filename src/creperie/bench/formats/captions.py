"""Raw captions (COCO, Karpathy's splits, Flickr, Conceptual Captions), read as items with true captions only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, SkippedRecord
from creperie.bench.columns import Columns
from creperie.bench.formats.format import Format, FormatSource, described, title_of
from creperie.bench.formats.published import finished
from creperie.bench.formats.record import Record, kind_of, record_of, text_of, texts_of
from creperie.bench.formats.textfile import find_files, is_data_json, stem_of
from creperie.bench.images import image_reference
from creperie.bench.item import Tag
from creperie.core import DataError, read_json, read_lines

#: One image with its captions: id, subset, image, captions, tags.
Row = tuple[str, str, str, list[str], dict[str, Tag]]
NamedFiles = list[tuple[str, Path]]
_TOKEN_LINE = re.compile(r"([^\t]+)#(\d+)\t(.*)", re.DOTALL)


def _benchmark(name: str, files: NamedFiles, rows: Iterable[Row | SkippedRecord]) -> Benchmark:
    columns = Columns()
    skipped: list[SkippedRecord] = []
    for row in rows:
        if isinstance(row, SkippedRecord):
            skipped.append(row)
            continue
        id_, subset, image, captions, tags = row
        if not captions:
            skipped.append(SkippedRecord(subset, id_, "an image without captions"))
            continue
        reference = image_reference(image) if "#" in image else image
        columns.add(id_, subset, [reference], captions, [True] * len(captions), tags)
    return finished(name, columns.table(), files, skipped)


def _records(document: Any, name: str, path: Path) -> Iterator[Record]:
    """Yield the objects in the list called `name` of a document; without a name, the document itself is the list."""
    if name and not isinstance(document, dict):
        what = f"the document is {kind_of(document)}, expected an object"
        raise DataError(what, where=path, hint="give the file as published")
    values = document.get(name) if name else document
    if not isinstance(values, list):
        raise DataError(
            f"{name!r} is {kind_of(values)}, expected a list", where=path, hint="give the file as published"
        )
    for i, value in enumerate(values):
        record = record_of(str(i), value, f"{path} ({name or 'record '}[{i}])")
        if not isinstance(value, dict):
            raise record.error(f"is {kind_of(value)}, expected an object")
        yield record


# -- COCO annotations ------------------------------------------------------------------------------------------------


def _coco_rows(files: NamedFiles) -> Iterator[Row]:
    for name, path in files:
        document = read_json(path, strict=True)
        names: dict[str, str] = {}
        captions: dict[str, list[str]] = {}
        for image in _records(document, "images", path):
            id_ = _whole_number(image, "id")
            if id_ in names:
                raise image.error(f"the image id {id_} is used twice")
            names[id_], captions[id_] = text_of(image, "file_name"), []
        for note in _records(document, "annotations", path):
            id_ = _whole_number(note, "image_id")
            if id_ not in names:
                raise note.error(f"there is no image with the id {id_}")
            captions[id_].append(text_of(note, "caption"))
        for id_, file in names.items():
            yield id_, stem_of(name), file, captions[id_], {}


def _whole_number(record: Record, name: str) -> str:
    if type(value := record.fields.get(name)) is not int:
        raise record.error(f"{name!r} is {kind_of(value)}, expected a whole number")
    return str(value)


# -- Karpathy's splits -----------------------------------------------------------------------------------------------


def _karpathy_rows(files: NamedFiles) -> Iterator[Row]:
    for name, path in files:
        document = read_json(path, strict=True)
        if isinstance(document, dict):
            yield from (_split_row(record, name) for record in _records(document, "images", path))
        else:
            yield from (_listed_row(record, name) for record in _records(document, "", path))


def _split_row(record: Record, name: str) -> Row:
    """Return the row for an image in Karpathy's split files: {"filename", "split", "sentences": [{"raw"}]}."""
    sentences = record.fields.get("sentences")
    if not isinstance(sentences, list):
        raise record.error(f"'sentences' is {kind_of(sentences)}, expected a list")
    captions = [text_of(record_of("", sentence, record.where), "raw") for sentence in sentences]
    file, split = text_of(record, "filename"), text_of(record, "split") if "split" in record.fields else stem_of(name)
    image = f"{text_of(record, 'filepath')}/{file}" if record.fields.get("filepath") else file
    own = {key: str(value) for key in ("cocoid", "imgid") if type(value := record.fields.get(key)) is int}
    tags: dict[str, Tag] = {"cocoid": own["cocoid"]} if "cocoid" in own else {}
    return own.get("imgid", record.key), split, image, captions, tags


def _listed_row(record: Record, name: str) -> Row:
    """Return the row for a record of the retrieval files derived from Karpathy's splits: {"image", "caption"}. The
    caption is a text or a list of texts.
    """
    several = isinstance(record.fields.get("caption"), list)
    captions = texts_of(record, "caption", least=0) if several else [text_of(record, "caption")]
    return record.key, stem_of(name).rsplit("/", 1)[-1], text_of(record, "image"), captions, {}


# -- Flickr ----------------------------------------------------------------------------------------------------------


def _flickr_rows(files: NamedFiles) -> Iterator[Row | SkippedRecord]:
    for name, path in files:
        if path.suffix.lower() == ".json":
            yield from _karpathy_rows([(name, path)])
            continue
        captions: dict[str, list[str]] = {}
        for number, line in read_lines(path):
            if not line or (number == 1 and line.lower().startswith(("image_name|", "image,caption"))):
                continue
            if parts := _flickr_line(line):
                captions.setdefault(parts[0], []).append(parts[1])
            else:
                yield SkippedRecord(stem_of(name), f"line {number}", "no image and caption on this line")
        own = stem_of(name).rsplit("/", 1)[-1]
        splits: dict[str, str] = {}  # of Flickr8k, if the lists of its splits are in the folder
        for split in ("train", "dev", "test"):
            if (file := path.parent / f"Flickr_8k.{split}Images.txt").is_file():
                splits |= {line.strip(): split for _, line in read_lines(file)}
        for image, texts in captions.items():
            yield image, splits.get(image, "unassigned") if splits else own, image, texts, {}


def _flickr_line(line: str) -> tuple[str, str] | None:
    """Return the image and the caption on a line in any of the three published notations. Return None if the line is in
    another notation.
    """
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


def _conceptual_rows(files: NamedFiles) -> Iterator[Row]:
    for name, path in files:
        subset = stem_of(name)
        for number, line in read_lines(path):
            caption, tab, link = line.partition("\t")
            if not tab or "\t" in link or not link:
                cells = line.count("\t") + 1
                raise DataError(f"has {cells} cells, expected a caption and a link", where=f"{path}:{number}")
            yield str(number - 1), subset, link, [caption], {}


def _format(
    name: str, rows: Callable[[NamedFiles], Iterable[Row | SkippedRecord]], accepts: Callable[[str], bool]
) -> Format:
    def read(source: FormatSource) -> Benchmark:
        files = find_files(source.path, accepts, f"file of {title_of(name)}")
        return _benchmark(name, files, rows(files))

    return described(name, read)


def _is_flickr(name: str) -> bool:
    beside = name.endswith(("Images.txt", "Annotations.txt", "readme.txt", ".lemma.txt"))
    captions = name.endswith((".token", ".csv", ".txt")) and not beside
    return captions or (is_data_json(name) and "flickr" in name.lower())


FORMATS = (
    _format("coco-captions", _coco_rows, lambda n: is_data_json(n) and "captions" in n),
    _format("karpathy", _karpathy_rows, is_data_json),
    _format("flickr-captions", _flickr_rows, _is_flickr),
    _format("conceptual-captions", _conceptual_rows, lambda n: n.endswith(".tsv")),
)
