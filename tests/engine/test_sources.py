"""Sources larger than memory: every kind gives its captions exactly, in pieces that can be read alone."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import CreperieError, DataError, UsageError
from creperie.engine import Pieces, open_captions

PICTURE = b"\xff\xd8\xff\xe0 the bytes of a picture"
TEXTS = [f"caption {i}  with blanks " for i in range(23)] + ["Ünïcode — 🥞", ""]


def texts_of(pieces: Pieces) -> list[str]:
    return [t for table in all_pieces(pieces) for t in table.column("text").to_pylist()]


def all_pieces(pieces: Pieces) -> list[pa.Table]:
    return [pieces.piece(number) for number in range(len(pieces))]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    lines = "\n".join(TEXTS[:-1]) + "\n\n"
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "a.tsv").write_text("".join(f"{t}\thttp://x/{i}.jpg\n" for i, t in enumerate(TEXTS)))
    table = pa.table({"URL": [f"{i}.jpg" for i in range(25)], "TEXT": TEXTS})
    (tmp_path / "files").mkdir()
    pq.write_table(table.slice(0, 15), tmp_path / "files" / "0.parquet", row_group_size=4)
    pq.write_table(table.slice(15), tmp_path / "files" / "1.parquet", row_group_size=4)
    records = "".join(json.dumps({"t": t, "key": f"k{i}"}) + "\n" for i, t in enumerate(TEXTS))
    (tmp_path / "a.jsonl").write_text(records)
    (tmp_path / "a.jsonl.zst").write_bytes(bytes(pa.Codec("zstd").compress(records.encode())))
    (tmp_path / "lists").mkdir()
    for k, part in enumerate((records.splitlines()[:20], records.splitlines()[20:])):
        (tmp_path / "lists" / f"{k}.jsonl").write_text("\n".join(part))
    (tmp_path / "many").mkdir()
    for k, part in enumerate((TEXTS[:20], TEXTS[20:])):
        (tmp_path / "many" / f"{k}.txt.gz").write_bytes(gzip.compress("".join(t + "\n" for t in part).encode()))
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, text in enumerate(TEXTS):
            for name, data in ((f"{i:04}.jpg", PICTURE), (f"{i:04}.json", json.dumps({"caption": text}).encode())):
                (about := tarfile.TarInfo(name)).size = len(data)
                tar.addfile(about, io.BytesIO(data))
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    with fsspec.open("memory://far/a.tsv.gz", "wb") as far:
        far.write(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    pictures = pa.table({"caption": TEXTS, "image": [{"bytes": PICTURE, "path": None}] * 25})
    pq.write_table(pictures, tmp_path / "pictures.parquet", row_group_size=9)
    return {
        "json": f"{tmp_path}/a.jsonl?text=t&id=key",
        "zst": f"{tmp_path}/a.jsonl.zst?text=t",
        "several": f"{tmp_path}/many",
        "named": f"{tmp_path}/lists?text=t&id=key",
        "tar": f"{tmp_path}/a.tar?text=json.caption",
        "remote": "memory://far/*.tsv.gz?text=0&image=1",
        "pictures": f"{tmp_path}/pictures.parquet?image=image",
        "lines": f"{tmp_path}/a.txt",
        "tsv": f"{tmp_path}/a.tsv?text=0&image=1",
        "parquet": f"{tmp_path}/files?text=TEXT&image=URL",
        "pattern": f"{tmp_path}/files/*.parquet?text=TEXT",
    }


NEW = ["json", "zst", "several", "named", "tar", "remote", "pictures"]


@pytest.mark.parametrize("kind", ["lines", "tsv", "parquet", "pattern", *NEW])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_every_source_gives_its_captions_exactly(sources: dict[str, str], kind: str, size: int) -> None:
    pieces = open_captions(sources[kind], size=size)
    assert texts_of(pieces) == TEXTS
    assert pieces.rows == 25
    last = len(pieces) - 1
    assert pieces.piece(last) == all_pieces(pieces)[last]
    ids = [i for table in all_pieces(pieces) for i in table.column("id").to_pylist()]
    assert len(set(ids)) == 25
    assert kind not in ("json", "named") or ids == [f"k{i}" for i in range(25)], "ids that are given stay as they are"


def test_images_go_along(sources: dict[str, str]) -> None:
    assert open_captions(sources["tsv"]).piece(0).column("image")[3].as_py() == "http://x/3.jpg"
    assert open_captions(sources["parquet"]).piece(0).column("image")[3].as_py() == "3.jpg"


def test_mistakes_are_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.tsv").write_text("one\ttwo\nthree\n")
    (tmp_path / "bad.txt").write_bytes(b"ok\n\xff\xfe\n")
    (tmp_path / "no.parquet").write_bytes(b"PAR1")
    pq.write_table(pa.table({"TEXT": ["a"]}), tmp_path / "a.parquet")
    cases = {
        "a.tsv?text=1": r"a\.tsv:2: has 1 columns",
        "a.tsv?txt=1": "did you mean 'text'",
        "a.tsv?text=one": "is not a column",
        "bad.txt": r"bad\.txt:2: is not UTF-8",
        "bad.txt?text=caption": r"one caption per line has no options; leave out \?text=",
        "no.parquet": "not a complete Parquet file",
        "a.parquet?text=text": "unknown column 'text'; did you mean 'TEXT'",
        "nothing.txt": "cannot be read",
        "*.gif": "matches no file",
        "a.doc": "can be streamed",
    }
    for name, message in cases.items():
        with pytest.raises((DataError, UsageError), match=message):
            texts_of(open_captions(f"{tmp_path}/{name}"))


def test_endless_lines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.txt").write_bytes(b"x" * (3 << 20))
    with pytest.raises(DataError, match="a line of more than 1 MB"):
        open_captions(f"{tmp_path}/endless.txt")


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs"])), min_size=1))
def test_any_lines_come_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("".join(t + "\n" for t in texts).encode())
    found = texts_of(open_captions(str(path), size=3))
    assert found == [texts[0].removeprefix("\ufeff"), *texts[1:]]


@given(st.binary(max_size=2000), st.sampled_from([".txt", ".tsv", ".parquet", ".tar", ".jsonl", ".txt.gz", ".txt.zst"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / f"a{suffix}").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREPERIE_CACHE", str(folder / "cache"))
        with suppress(CreperieError):
            texts_of(open_captions(f"{folder}/a{suffix}"))


def test_a_field_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """A list of captions is not one caption."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        data = json.dumps({"captions": ["a dog", "a cat"], "title": "a dog"}).encode()
        (about := tarfile.TarInfo("0.json")).size = len(data)
        tar.addfile(about, io.BytesIO(data))
    with pytest.raises(CreperieError, match="'captions' is not text; name a field of text: title"):
        texts_of(open_captions(f"{tmp_path}/a.tar?text=json.captions"))


def test_makers_read_these_sources_too(sources: dict[str, str]) -> None:
    from creperie.making import read_captions
    from creperie.making.source import first_or_drawn

    for kind in ("tsv", "parquet", *NEW):
        assert [s.text for s in read_captions(sources[kind]).sources] == TEXTS
    for kind in ("tar", "pictures"):  # these hold the images, too
        found = read_captions(sources[kind])
        assert found.images.read(found.sources[11].images[0]) == PICTURE
    found = first_or_drawn(read_captions(sources["tsv"]), 3)
    assert [s.images for s in found.sources] == [("http://x/0.jpg",), ("http://x/1.jpg",), ("http://x/2.jpg",)]
