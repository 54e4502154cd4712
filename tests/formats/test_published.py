"""Every published format: what its files become, and that they are written back with the same content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.bench import Benchmark, load_folder, save
from creperie.bench.formats import find_format, read_format, write_format
from creperie.core.errors import CreperieError

Content = Callable[[str, bytes], Any]


def rows(bench: Benchmark) -> list[tuple[Any, ...]]:
    return [(i.subset, i.id, i.images, i.captions, i.match) for i in bench]


def published(example: Any, content: Content) -> dict[str, Any]:
    """What the files that hold items say."""
    return {name: content(name, text.encode()) for name, text in example.files.items() if name != "corpus.json"}


def written(folder: Path, content: Content) -> dict[str, Any]:
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: content(name, data) for name, data in files.items()}


def test_files_become_items(example: Any, tmp_path: Path) -> None:
    bench = read_format(find_format(example.format), str(example.put(tmp_path)))
    assert rows(bench) == list(example.items)
    assert len(bench.skipped) == example.skipped
    if example.tags is not None:
        assert dict(bench[0].tags) == example.tags


def test_what_was_read_is_written_back_with_the_same_content(example: Any, tmp_path: Path, content: Content) -> None:
    format = find_format(example.format)
    bench = read_format(format, str(example.put(tmp_path / "in")))
    save(bench, tmp_path / "saved")
    for number, source in enumerate((bench, load_folder(tmp_path / "saved"))):
        out = tmp_path / f"out{number}"
        write_format(format, source, out)
        again = read_format(format, str(out))
        assert sorted(rows(again)) == sorted(rows(bench))
        assert [s.reason for s in again.skipped] == [s.reason for s in bench.skipped]
        if example.returns:
            names = {n.removeprefix("data/") if example.format == "winoground" else n: n for n in example.files}
            wanted = published(example, content)
            assert written(out, content) == {n: wanted[names[n]] for n in names if names[n] in wanted}


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


def test_items_without_a_layout_are_written_too(example: Any, tmp_path: Path) -> None:
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
