"""VALSE: pairs of a caption and a foil, for six linguistic phenomena. An item is valid if enough annotators chose the
caption.
"""

from __future__ import annotations

from collections.abc import Callable

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import FormatSource, described
from creperie.bench.formats.published import NoItem, records_format
from creperie.bench.formats.record import Record, image_of, kind_of, tags_of, text_of
from creperie.bench.formats.textfile import is_data_json
from creperie.bench.item import Item, choice

#: Number of annotators, of three, who must have chosen the caption over the foil.
VOTES = 2
_VOTES = ("foil", "caption", "other")
_TAGS: tuple[str, ...] = ("dataset", "dataset_idx", "linguistic_phenomena", "original_split", "split", "classes")
_TAGS += ("classes_foil", "answer", "foil_method", "foiling_method", "provenance_of_foils")
_TAGS += ("only_caption", "orig_caption")


def _reader(keep_all: bool) -> Callable[[Record, str], Item | NoItem]:
    def item(record: Record, subset: str) -> Item | NoItem:
        if not isinstance(record.value, dict):
            raise record.error(f"is {kind_of(record.value)}, expected an object with caption, foil, image_file, mturk")
        captions = (text_of(record, "caption"), text_of(record, "foil"))
        votes = _votes(record)
        valid = votes["caption"] >= VOTES
        if not valid and not keep_all:
            return NoItem(f"not valid: {votes['caption']} of 3 people chose the caption, {VOTES} are needed")
        tags = tags_of(record, _TAGS)
        tags.update({f"mturk_{name}": float(n) for name, n in votes.items()})
        if keep_all:
            tags["valid"] = valid
        images = (image_of(record, "image_file"),)
        return Item(record.key, subset, images, captions, choice(1, 1), tags)

    return item


def _votes(record: Record) -> dict[str, int]:
    mturk = record.fields.get("mturk")
    votes = {n: mturk[n] for n in _VOTES if type(mturk.get(n)) is int} if isinstance(mturk, dict) else {}
    if "caption" not in votes or any(abs(n) > 2**53 for n in votes.values()):
        raise record.error("has no votes", "expected mturk: {caption: a number, foil: a number, other: a number}")
    return votes


def _read(source: FormatSource) -> Benchmark:
    item = _reader(source.choice("valid", ("only", "all")) == "all")
    return records_format("valse", is_data_json, "VALSE file (*.json)", "object", item).read(source)


FORMATS = (described("valse", _read),)
