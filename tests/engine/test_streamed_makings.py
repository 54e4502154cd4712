"""Captions, items and candidates that are not held: the same values and bytes as those that are."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_makers import SlowMaker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creperie.bench import Item, Tag, from_items, load, save
from creperie.bench.hashing import content_hash
from creperie.core import DataError, parquet, silent
from creperie.engine import Held, Local, Shard, open_lines
from creperie.making import Captions, SourceCaption, captions_of, make, read_captions, source, written
from creperie.making.parts import opened
from creperie.making.run import CANDIDATES_FILE, job_of, make_parts, preview
from creperie.making.source import Streamed
from creperie.making.written import ItemSpool

QUICK = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups and spools of a few rows, so that a few items fill several."""
    monkeypatch.setattr(parquet, "ROW_GROUP", 7)
    monkeypatch.setattr(written, "SPOOLED", 3)


@QUICK
@given(rows=st.integers(3, 40), size=st.integers(1, 9), start=st.integers(0, 45), length=st.integers(0, 45))
def test_streamed_captions_are_those_that_are_held(rows: int, size: int, start: int, length: int) -> None:
    held = tuple(SourceCaption(str(i), f"caption {i}", (f"{i}.jpg",) if i % 3 else ()) for i in range(rows))
    images = [s.images[0] if s.images else None for s in held]
    columns = [[s.id for s in held], [s.text for s in held], images]
    table = pa.table([pa.array(c, pa.string()) for c in columns], names=["id", "text", "image"])
    found = Streamed(Held(table, size))
    assert (len(found), tuple(found)) == (rows, held)
    part, same = found[start : start + length], held[start : start + length]
    assert (len(part), tuple(part)) == (len(same), same)
    assert [part[k] for k in range(len(part))] == list(same)
    assert tuple(part[2:5]) == same[2:5]
    assert tuple(pickle.loads(pickle.dumps(part))) == same
    assert tuple(Shard(3, 2).of(found)) == tuple(Shard(3, 2).of(held))
    with pytest.raises(IndexError):
        found[rows]


def test_only_one_piece_is_read_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("".join(f"caption {i}\n" for i in range(100)))
    read: list[int] = []

    class Watched(type(open_lines(str(path)))):  # type: ignore[misc]
        def piece(self, number: int) -> pa.Table:
            read.append(number)
            return super().piece(number)

    plain = open_lines(str(path), size=10)
    sources = Streamed(Watched(**vars(plain)))
    for k in range(0, 100, 3):
        assert [s.text for s in sources[k : k + 3]] == [f"caption {i}" for i in range(k, min(k + 3, 100))]
    assert read == list(range(10)), "neighbours read a piece again"


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_large_text_file_has_the_captions_of_a_small_one(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.txt"
    lines = ["\ufeffa dog ", "", "  a cat", "ein Hündchen", "the end"]
    path.write_bytes((ending or "\n").join(lines).encode() + ending.encode())
    small = read_captions(path)
    monkeypatch.setattr(source, "HELD", 0)
    large = read_captions(path)
    assert isinstance(large.sources, Streamed)
    assert tuple(large.sources) == small.sources
    assert large.digest == small.digest
    path.write_bytes(b"a dog\n\xff\n")
    with pytest.raises(DataError, match=r"c\.txt:2: is not UTF-8 text"):
        read_captions(path).digest  # noqa: B018


TAGS = st.dictionaries(
    st.sampled_from("abc"), st.text("xyz", max_size=2) | st.booleans() | st.integers(-9, 9), max_size=3
)


@pytest.mark.usefixtures("small_groups")
@QUICK
@given(tags=st.lists(TAGS, max_size=20))
def test_spooled_items_are_the_table_of_all(
    tags: list[dict[str, Tag]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tags come and go and change their kind; the file is that of a benchmark which was held."""
    folder = tmp_path_factory.mktemp("spool")
    items = [Item(str(i), "ab"[i % 2], (), (f"{i}", f"not {i}"), ((True, False),), t) for i, t in enumerate(tags)]
    spool = ItemSpool(folder / "spool")
    for item in items:
        spool.add(item)
    found = spool.write(folder / "items.parquet", "x")
    bench = from_items("x", items)
    parquet.write_parquet(bench.table, folder / "whole.parquet")
    assert (folder / "items.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    assert found.digest == bench.hash
    assert not (folder / "spool").exists()


def test_the_content_hash_does_not_depend_on_pieces() -> None:
    items = [Item(str(i), "s", (), (f"{i}",), ((True,),), {"n": float(i)} if i else {}) for i in range(5)]
    table = from_items("x", items).table
    pieces = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert content_hash(pieces) == content_hash(table)
    bare = table.set_column(5, "tag.n", pa.nulls(5, pa.float64()))
    assert content_hash(bare) == content_hash(table.drop_columns(["tag.n"])), (
        "a tag that nobody carries is not a content"
    )


def test_two_items_with_one_key_are_told(tmp_path: Path) -> None:
    spool = ItemSpool(tmp_path / "spool")
    for id_ in ("1", "2", "1"):
        spool.add(Item(id_, "s", (), ("a", "b"), ((True, False),)))
    with pytest.raises(DataError, match="item id '1' appears 2 times in subset 's'"):
        spool.write(tmp_path / "items.parquet", "x")


@pytest.mark.usefixtures("small_groups")
def test_a_making_is_the_same_from_a_file_that_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.txt"
    path.write_text("".join(f"a dog chases {i} red cats over there\n" if i % 4 else "x\n" for i in range(50)))
    make(SlowMaker(), read_captions(path), tmp_path / "held" / "it")
    monkeypatch.setattr(source, "HELD", 0)
    made = make(SlowMaker(), read_captions(path), tmp_path / "streamed" / "it")
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / n / "it").rglob("*") if p.is_file()} for n in ("held", "streamed")
    ]
    assert files[0] == files[1]
    shown = preview(SlowMaker(), read_captions(path))
    assert shown.report == made.report
    assert made.items == shown.items
    assert [(o.source, o.skipped, [(v.candidate.text, v.reason) for v in o.verdicts]) for o in made.outcomes] == [
        (o.source, o.skipped, [(v.candidate.text, v.reason) for v in o.verdicts]) for o in shown.outcomes
    ]
    groups = pq.ParquetFile(tmp_path / "held" / "it" / CANDIDATES_FILE).metadata
    assert [groups.row_group(k).num_rows for k in range(groups.num_row_groups)] == [7] * 7 + [1]


def test_damaged_parts_of_a_making_are_made_again(tmp_path: Path) -> None:
    path, marks = tmp_path / "c.txt", tmp_path / "marks"
    marks.mkdir()
    path.write_text("".join(f"a dog chases {i} red cats over there\n" for i in range(50)))
    captions = read_captions(path)
    make(SlowMaker(), captions, tmp_path / "calm" / "it")
    with opened(tmp_path / "it", job_of(SlowMaker(), captions), force=False) as parts:
        make_parts(SlowMaker(), captions.sources, parts, Local(), silent)
        torn, flipped = (parts / f"part-{k:06d}.parquet" for k in (3, 7))
        torn.write_bytes(torn.read_bytes()[:-30])
        data = bytearray(flipped.read_bytes())
        data[60] ^= 1
        flipped.write_bytes(data)
    make(SlowMaker(marks=str(marks)), captions, tmp_path / "it")
    assert sorted(int(p.name.split("-")[0]) for p in marks.iterdir()) == [16, 36], "only these two are made again"
    files = [
        {p.name: p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (tmp_path / "it", tmp_path / "calm")
    ]
    assert files[0] == files[1]


def test_a_making_of_nothing_is_a_benchmark_without_items(tmp_path: Path) -> None:
    made = make(SlowMaker(), Captions("none", ()), tmp_path / "it")
    assert made.report["sources"] == made.report["items"] == 0
    assert len(load(tmp_path / "it")) == 0
    bench = from_items("b", [Item("1", "s", (), ("a dog runs", "a cat"), ((True, False),))])
    save(bench, tmp_path / "b")
    assert [s.text for s in captions_of(load(tmp_path / "b")).sources] == ["a dog runs"]
