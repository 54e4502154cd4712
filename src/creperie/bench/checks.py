"""Checks for defects of a benchmark: bad images, and items that are duplicate, contradictory, empty or impossible to
get right.

Texts are checked column by column, so that a million items take seconds. A finding of severity `error` is a defect; one
of severity `info` is only a remark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.benchmark import Benchmark, Parquet
from creperie.bench.hashing import content_hash
from creperie.bench.image_check import ERROR, INFO, Finding, check_images
from creperie.bench.rows import first_rows, list_codes, number_list_codes, owners, pair_codes, value_codes
from creperie.bench.shapes import shape_codes
from creperie.core import Progress, cut, packaged_toml, silent

#: The meaning of each code, in the order in which findings are shown.
CODES: dict[str, str] = packaged_toml("creperie.bench", "codes.toml")


def check(bench: Benchmark, *, images: bool = True, progress: Progress = silent) -> list[Finding]:
    """Return all findings, errors first. With `images`, every image that the items refer to is read and decoded."""
    view = View(bench)
    findings: list[Finding] = []
    with progress("check items", len(CHECKS), "checks") as advance:
        for one in CHECKS:
            findings.extend(one(view))
            advance(1)
    findings.extend(check_images(bench, look=images, progress=progress))
    order = {code: i for i, code in enumerate(CODES)}
    return sorted(findings, key=lambda f: (f.severity != ERROR, order.get(f.code, len(order))))


class View:
    """A benchmark, and the columns that several checks need. Each of these columns is computed only once."""

    def __init__(self, bench: Benchmark) -> None:
        self.bench = bench
        self.table = bench.table

    @cached_property
    def captions(self) -> tuple[np.ndarray, pa.Array]:
        return self.bench.ragged("captions")

    @cached_property
    def encoded(self) -> pa.DictionaryArray:
        """The captions as a dictionary-encoded array, so that each distinct text is tested once."""
        return self.captions[1].dictionary_encode()

    @cached_property
    def codes(self) -> np.ndarray:
        return np.asarray(self.encoded.indices.to_numpy(zero_copy_only=False), np.int64)

    @cached_property
    def owners(self) -> np.ndarray:
        return owners(self.captions[0])

    @cached_property
    def truth(self) -> np.ndarray:
        """For each caption, whether it is true of at least one image."""
        values = self.bench.ragged("match")[1].to_numpy(zero_copy_only=False)
        true = np.zeros(len(self.codes), bool)
        true[self.cell_captions[values]] = True
        return true

    @cached_property
    def cell_captions(self) -> np.ndarray:
        """For each cell of the match matrices, the index of its caption."""
        offsets, _ = self.bench.ragged("match")
        width = np.diff(self.captions[0])
        owner = owners(offsets)
        position = np.arange(len(owner)) - offsets[owner]
        return self.captions[0][owner] + position % np.maximum(width, 1)[owner]

    def text(self, caption: int) -> str:
        return _quoted(str(self.captions[1][caption].as_py()))

    def key(self, row: int) -> tuple[str, str]:
        return str(self.table.column("subset")[row].as_py()), str(self.table.column("id")[row].as_py())

    def finding(self, code: str, severity: str, row: int, message: str) -> Finding:
        return Finding(code, severity, *self.key(row), message)

    def where(self, test: Callable[[pa.Array], pa.Array]) -> np.ndarray:
        """Return the indices of the captions whose texts pass a test."""
        if not len(self.codes):
            return np.zeros(0, np.int64)
        passed = test(self.encoded.dictionary).to_numpy(zero_copy_only=False)
        return np.flatnonzero(passed[self.codes])


# -- whole items -----------------------------------------------------------------------------------------------------


def _hash(view: View) -> Iterator[Finding]:
    source = view.bench.source
    if isinstance(source, Parquet) and content_hash(view.table) != source.digest:
        message = "the items were changed after the benchmark was saved; save it again"
        yield Finding("hash-mismatch", ERROR, "", "", message)


def _ids(view: View) -> Iterator[Finding]:
    codes = pair_codes(*(value_codes(view.table.column(name)) for name in ("subset", "id")))
    for row, first in _repeats(codes).items():
        yield view.finding("duplicate-id", ERROR, row, f"items {first} and {row} (counted from 0) have this id")


def _repeats(codes: np.ndarray) -> dict[int, int]:
    """Return, for each row whose code occurred before, the first row with this code."""
    first = first_rows(codes)
    again = np.flatnonzero(first != np.arange(len(first)))
    return dict(zip(again.tolist(), first[again].tolist(), strict=True))


def _repeated_items(view: View) -> Iterator[Finding]:
    subset = value_codes(view.table.column("subset"))
    captions = number_list_codes(view.captions[0], view.encoded.indices.to_numpy(zero_copy_only=False))
    text = pair_codes(subset, captions, list_codes(view.bench.ragged("match")))
    content = _repeats(pair_codes(text, list_codes(view.bench.ragged("images"))))
    for row, first in content.items():
        message = f"repeats item {view.key(first)[1]}: same images, captions and match matrix"
        yield view.finding("duplicate-item", ERROR, row, message)
    for row, first in _repeats(text).items():
        if row not in content:
            message = f"has the same captions as item {view.key(first)[1]}, with other images"
            yield view.finding("duplicate-captions", INFO, row, message)


def _vacuous(view: View) -> Iterator[Finding]:
    """Yield findings for items without true captions or without false ones. Such items give a model nothing to rank."""
    codes, shapes = shape_codes(view.bench)
    subset = view.table.column("subset").combine_chunks().dictionary_encode()
    of = subset.indices.to_numpy(zero_copy_only=False)
    for index, shape in enumerate(shapes):
        cells = [cell for row in shape.match for cell in row]
        code = _vacuous_code(cells, shape.images)
        if not code:
            continue
        rows = np.flatnonzero(codes == index)
        if shape.captions == 1:  # one caption with a yes-or-no label: the design of a benchmark, not a defect
            for s, n in zip(*np.unique(of[rows], return_counts=True)):
                message = f"{n:,} items have one caption and a yes-or-no label: {CODES[code]}"
                yield Finding(code, INFO, str(subset.dictionary[int(s)]), "", message)
            continue
        severity = INFO if code == "no-negatives" else ERROR  # several true captions: paraphrases
        for row in rows.tolist():
            yield view.finding(code, severity, row, f"match is {shape.text[:80]}: {CODES[code]}")


def _vacuous_code(cells: list[bool], images: int) -> str:
    if not cells:
        return "no-captions"
    if not any(cells):
        return "no-positives"
    if all(cells):
        return "match-all-true" if images > 1 else "no-negatives"
    return ""


def _skipped(view: View) -> Iterator[Finding]:
    for record in view.bench.skipped:
        empty = "empty" in record.reason.lower()
        code, severity = ("empty-reference", ERROR) if empty else ("skipped-record", INFO)
        yield Finding(code, severity, record.subset, record.id, record.reason)


# -- captions within an item -----------------------------------------------------------------------------------------


def _repeated_captions(view: View) -> Iterator[Finding]:
    """Yield findings for captions that repeat an earlier caption of the same item, with the same or another label."""
    offsets = view.captions[0]
    for caption, earlier in _repeats(pair_codes(view.owners, view.codes)).items():
        row = int(view.owners[caption])
        begin, end = int(offsets[row]), int(offsets[row + 1])
        places = f"captions {earlier - begin + 1} and {caption - begin + 1} are both {view.text(caption)}"
        if _column(view, row, earlier) != _column(view, row, caption):
            yield view.finding("positive-equals-negative", ERROR, row, f"{places}: one is true, the other false")
            if int((~view.truth[begin:end]).sum()) > 1:
                message = f"the true caption {view.text(caption)} is also among the false ones"
                yield view.finding("true-caption-among-negatives", ERROR, row, message)
        else:
            code = "positives-equal" if view.truth[caption] else "duplicate-negatives"
            yield view.finding(code, ERROR, row, places)


def _column(view: View, row: int, caption: int) -> list[bool]:
    """Return a column of an item's match matrix: for each image, whether the caption is true of it."""
    width = int(view.captions[0][row + 1] - view.captions[0][row])
    cells: list[bool] = view.table.column("match")[row].as_py()
    return cells[caption - int(view.captions[0][row]) :: width]


def _contradictions(view: View) -> Iterator[Finding]:
    """Yield findings for captions that are true of an image in one item and false of the same image in another item."""
    cells, values = view.bench.ragged("match")
    images, references = view.bench.ragged("images")
    if not len(references):
        return
    owner = owners(cells)
    width = np.maximum(np.diff(view.captions[0]), 1)[owner]
    picture = images[owner] + (np.arange(len(owner)) - cells[owner]) // width
    shown = np.flatnonzero(np.diff(images)[owner] > 0)
    code = pair_codes(value_codes(references)[picture[shown]], view.codes[view.cell_captions[shown]])
    true = values.to_numpy(zero_copy_only=False)[shown]
    both = np.zeros(int(code.max(initial=-1)) + 1, np.int8)
    both[code[true]] |= 1
    both[code[~true]] |= 2
    true_in: dict[int, list[int]] = {}  # the items in which such a caption is true of the image
    for i in np.flatnonzero((both[code] == 3) & true).tolist():
        true_in.setdefault(int(code[i]), []).append(int(owner[shown[i]]))
    for i in np.flatnonzero((both[code] == 3) & ~true).tolist():
        row, elsewhere = int(owner[shown[i]]), true_in[int(code[i])]
        if row not in elsewhere:  # contradictions within one item are left to other checks
            subset, id_ = view.key(elsewhere[0])
            text = view.text(int(view.cell_captions[shown[i]]))
            message = f"{text} is false here and true of the same image in {subset}/{id_}"
            yield view.finding("caption-true-and-false", ERROR, row, message)


def _empty(view: View) -> Iterator[Finding]:
    for caption in view.where(lambda texts: pc.equal(pc.utf8_trim_whitespace(texts), "")).tolist():
        row = int(view.owners[caption])
        kind = "true" if view.truth[caption] else "false"
        place = caption - int(view.captions[0][row]) + 1
        yield view.finding("empty-caption", ERROR, row, f"caption {place} ({kind}) has no text")


def _odd_characters(view: View) -> Iterator[Finding]:
    # A line break counts only if text follows; at the end it is a trailing blank.
    pattern = r"(?s)[\x00-\x08\x0e-\x1f\x7f-\x{9f}\x{fffd}]|[\n\r\v\f].*\S"
    for caption in view.where(lambda texts: pc.match_substring_regex(texts, pattern)).tolist():
        message = f"{view.text(caption)} holds a control or replacement character"
        yield view.finding("odd-characters", INFO, int(view.owners[caption]), message)


def _trailing_blanks(view: View) -> Iterator[Finding]:
    """Yield one finding per subset. It says how many true and how many false captions end in a blank."""
    blank = np.zeros(len(view.codes), bool)
    blank[view.where(lambda texts: pc.not_equal(pc.utf8_rtrim_whitespace(texts), texts))] = True
    if not blank.any():
        return
    subset = view.table.column("subset").combine_chunks().dictionary_encode()
    of = subset.indices.to_numpy(zero_copy_only=False)[view.owners]
    for s, name in enumerate(subset.dictionary.to_pylist()):
        shares = []
        for kind, chosen in (("true", view.truth), ("false", ~view.truth)):
            group = chosen & (of == s)
            hits, n = int((blank & group).sum()), int(group.sum())
            shares.append((hits, f"{hits:,} of {n:,} {kind} captions ({hits / max(n, 1):.1%})"))
        if any(hits for hits, _ in shares):
            message = f"{shares[0][1]} and {shares[1][1]} end in a blank"
            yield Finding("trailing-blank", INFO, name, "", message)


def _nearly_equal(view: View) -> Iterator[Finding]:
    """Yield a finding per item in which a true and a false caption differ only in case, punctuation or spaces."""
    if not len(view.codes):
        return
    lowered = pc.utf8_lower(view.encoded.dictionary)
    plain = pc.replace_substring_regex(lowered, r"[^\p{L}\p{N}]+", "")
    codes = value_codes(plain)[view.codes]
    seen = set()
    for caption, earlier in _repeats(pair_codes(view.owners, codes)).items():
        row = int(view.owners[caption])
        if row in seen or view.codes[caption] == view.codes[earlier] or not plain[view.codes[caption]].as_py():
            continue
        if _column(view, row, earlier) != _column(view, row, caption):
            seen.add(row)
            message = f"{view.text(earlier)} and {view.text(caption)}: one is true, the other false"
            yield view.finding("nearly-equal-captions", INFO, row, message)


def _quoted(text: str) -> str:
    """Return a caption for a message: quoted, cut to 120 characters, and with line breaks as escapes."""
    return json.dumps(cut(text, 120), ensure_ascii=False)


CHECKS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    _hash,
    _ids,
    _repeated_items,
    _vacuous,
    _skipped,
    _repeated_captions,
    _contradictions,
    _empty,
    _odd_characters,
    _nearly_equal,
    _trailing_blanks,
)
