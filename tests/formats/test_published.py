"""Every published format: what its files become, and that what is written is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from creperie.bench import Benchmark, find_format, load_folder, read_format, save, write_format
from creperie.core import CreperieError


def rows(bench: Benchmark) -> list[tuple[Any, ...]]:
    return [(i.subset, i.id, i.images, i.captions, i.match) for i in bench]


def test_files_become_items(example: Any, tmp_path: Path) -> None:
    bench = read_format(find_format(example.format), str(example.put(tmp_path)))
    assert rows(bench) == list(example.items)
    assert len(bench.skipped) == example.skipped
    if example.tags is not None:
        assert dict(bench[0].tags) == example.tags


WRITTEN = ("sugarcrepe", "sugarcrepe++", "visla", "winoground", "sade", "hit-or-be-hit")


@pytest.fixture(params=WRITTEN)
def written(request: pytest.FixtureRequest, examples: Any) -> Any:
    """An example of each format that is written, too."""
    return next(e for e in examples if e.format == request.param)


def test_what_was_read_can_be_written_and_read_again(written: Any, tmp_path: Path) -> None:
    format = find_format(written.format)
    bench = read_format(format, str(written.put(tmp_path / "in")))
    save(bench, tmp_path / "saved")
    write_format(format, load_folder(tmp_path / "saved"), tmp_path / "out")
    again = read_format(format, str(tmp_path / "out"))
    # Records without an id are numbered by their place, which changes when others go.
    assert sorted(r[2:] for r in rows(again)) == sorted(r[2:] for r in rows(bench))
    assert not again.skipped


def test_an_item_of_another_shape_cannot_be_written(written: Any, examples: Any, tmp_path: Path) -> None:
    format = find_format(written.format)
    wrong = "sugarcrepe" if written.format in ("sugarcrepe++", "visla") else "sugarcrepe++"
    other = next(e for e in examples if e.format == wrong)
    bench = read_format(find_format(wrong), str(other.put(tmp_path / "in")))
    with pytest.raises(CreperieError, match=r"item swap_obj/.*: has "):
        write_format(format, bench, tmp_path / "out")
    assert not (tmp_path / "out").exists()
