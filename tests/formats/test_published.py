"""Every published format: what its files become, and that they are written back as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.bench import Benchmark, load_folder, save
from creperie.bench.formats import find_format, read_format, write_format
from creperie.core.errors import CreperieError


def rows(bench: Benchmark) -> list[tuple[Any, ...]]:
    return [(i.subset, i.id, i.images, i.captions, i.match) for i in bench]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def published(example: Any) -> dict[str, bytes]:
    """The files that hold items."""
    return {name: text.encode("utf-8") for name, text in example.files.items() if name != "corpus.json"}


def test_files_become_items(example: Any, tmp_path: Path) -> None:
    bench = read_format(find_format(example.format), str(example.put(tmp_path)))
    assert rows(bench) == list(example.items)
    assert len(bench.skipped) == example.skipped
    if example.tags is not None:
        assert dict(bench[0].tags) == example.tags


def test_what_was_read_is_written_back_byte_for_byte(example: Any, tmp_path: Path) -> None:
    format = find_format(example.format)
    assert format.faithful == example.faithful
    bench = read_format(format, str(example.put(tmp_path / "in")))
    write_format(format, bench, tmp_path / "out")
    if example.faithful:
        names = {name.removeprefix("data/") if example.format == "winoground" else name for name in published(example)}
        assert contents(tmp_path / "out").keys() == names
        assert sorted(contents(tmp_path / "out").values()) == sorted(published(example).values())
    else:
        assert sorted(rows(read_format(format, str(tmp_path / "out")))) == sorted(rows(bench))


def test_a_saved_benchmark_still_exports_the_published_bytes(example: Any, tmp_path: Path) -> None:
    format = find_format(example.format)
    bench = save(read_format(format, str(example.put(tmp_path / "in"))), tmp_path / "saved")
    write_format(format, load_folder(tmp_path / "saved"), tmp_path / "out")
    assert len(bench) == len(example.items)
    if example.faithful:
        assert sorted(contents(tmp_path / "out").values()) == sorted(published(example).values())


def test_what_is_left_after_a_filter_can_be_written_and_read(example: Any, tmp_path: Path) -> None:
    format = find_format(example.format)
    bench = read_format(format, str(example.put(tmp_path / "in")))
    left = bench.filter(np.arange(len(bench)) == len(bench) - 1)
    write_format(format, left, tmp_path / "out")
    again = read_format(format, str(tmp_path / "out"))
    # Records without an id are numbered by their place, which changes when others go.
    assert [r[2:] for r in rows(again)] == [r[2:] for r in rows(left)]
    if len(example.items) > 1:
        assert not again.skipped


def test_items_without_a_layout_are_written_in_the_published_style(example: Any, tmp_path: Path) -> None:
    format = find_format(example.format)
    bench = read_format(format, str(example.put(tmp_path / "in")))
    bare = Benchmark("bare", bench.table)
    write_format(format, bare, tmp_path / "out")
    again = read_format(format, str(tmp_path / "out"))
    assert sorted(r[2:] for r in rows(again)) == sorted(r[2:] for r in rows(bench))


def test_an_item_of_another_shape_cannot_be_written(example: Any, examples: Any, tmp_path: Path) -> None:
    format = find_format(example.format)
    wrong = "sugarcrepe" if example.format in ("sugarcrepe++", "visla", "hard-positives") else "sugarcrepe++"
    other = next(e for e in examples if e.format == wrong)
    bench = read_format(find_format(wrong), str(other.put(tmp_path / "in")))
    with pytest.raises(CreperieError, match=r"item swap_obj/.*: has "):
        write_format(format, bench, tmp_path / "out")
    assert not (tmp_path / "out").exists()
