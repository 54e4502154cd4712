"""One file over HTTP, against a real server that drops, lies, stalls and refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.bench import ImageError
from creperie.bench.catalog.download import Fetcher, FetchError, Limits, Received
from creperie.bench.catalog.entries import File
from creperie.core import retry_after

BODY = b"".join(f"line {i} of a file that is long enough to be cut\n".encode() for i in range(4000))
SHA = hashlib.sha256(BODY).hexdigest()


PINNED = {"sha256": SHA}

Fetch = Callable[..., tuple[Received, int]]


@pytest.fixture
def fetch(client: httpx.Client, limits: Limits, tmp_path: Path) -> Fetch:
    """Fetch a file into tmp_path; the file, and the number of bytes that progress was told."""

    def run(file: File, mirror: str = "", **patience: Any) -> tuple[Received, int]:
        counted = 0

        def advance(n: int) -> None:
            nonlocal counted
            counted += n

        return Fetcher(replace(limits, **patience), mirror, client).fetch(file, tmp_path, advance), counted

    return run


@pytest.fixture
def take(site: Any, fetch: Fetch, tmp_path: Path) -> Fetch:
    """Fetch a.json, of which the catalog knows this, from a server that makes these moves; it must come whole."""

    def run(*moves: Any, known: Any = (), **patience: Any) -> tuple[Received, int]:
        site.moves["/a.json"] = list(moves)
        received = fetch(site.file("/a.json", BODY, **dict(known)), **patience)
        assert (tmp_path / "a.json").read_bytes() == BODY
        assert only(tmp_path) == ["a.json"]
        return received

    return run


def only(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_a_file_comes_whole_and_is_described(take: Fetch) -> None:
    got, counted = take()
    assert (got.size, got.sha256, got.fetched, counted) == (len(BODY), SHA, True, len(BODY))


def test_what_is_there_and_right_is_not_fetched_again(site: Any, take: Fetch) -> None:
    take(known=PINNED)
    got, counted = take(known=PINNED)
    assert (got.fetched, counted, len(site.requests)) == (False, len(BODY), 1)


def test_a_dropped_connection_is_resumed_with_range(site: Any, take: Fetch) -> None:
    _, counted = take(("drop", 50_000), ("drop", 60_000), known=PINNED)
    first, second, third = site.asked("/a.json")
    assert "Range" not in first
    assert second["Range"] == "bytes=50000-"
    assert third["Range"] == "bytes=110000-"
    assert counted == len(BODY)


def test_a_later_call_goes_on_where_an_earlier_one_ended(site: Any, take: Fetch, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"503.*continues where it stopped"):
        take(("drop", 70_000), *[("status", 503)] * 10, known=PINNED)
    assert only(tmp_path) == ["a.json.part"]
    site.requests.clear()
    take(known=PINNED)
    assert [r["Range"] for r in site.asked("/a.json")] == ["bytes=70000-"]


def test_a_server_that_ignores_range_is_read_from_the_start(take: Fetch) -> None:
    _, counted = take(("drop", 50_000), ("whole",), known=PINNED)
    assert counted == len(BODY)  # what was thrown away is not counted twice


@pytest.mark.parametrize("pinned", [True, False])
def test_a_file_that_changes_in_between_is_never_mixed(pinned: bool, site: Any, fetch: Fetch, tmp_path: Path) -> None:
    newer = BODY.replace(b"line", b"LINE")
    file = site.file("/a.json", BODY, **({"sha256": hashlib.sha256(newer).hexdigest()} if pinned else {}))
    site.moves["/a.json"] = [("drop", 50_000)] + [("status", 503)] * 3
    with pytest.raises(FetchError):
        fetch(file)
    site.files["/a.json"] = newer
    fetch(file)
    assert (tmp_path / "a.json").read_bytes() == newer


@pytest.mark.parametrize(
    ("known", "ranges"),
    [({}, [None]), (PINNED, ["bytes=100-", None])],
    ids=["not resumed", "found out and fetched anew"],
)
def test_a_part_without_version_is_resumed_only_where_a_checksum_guards_it(
    known: Any, ranges: list[str | None], site: Any, take: Fetch, tmp_path: Path
) -> None:
    (tmp_path / "a.json.part").write_bytes(b"x" * 100)
    take(known=known)
    assert [r.get("Range") for r in site.asked("/a.json")] == ranges


def test_a_complete_part_is_taken_without_asking(site: Any, take: Fetch, tmp_path: Path) -> None:
    (tmp_path / "a.json.part").write_bytes(BODY)
    take(known={**PINNED, "size": len(BODY)})
    assert site.requests == []


@pytest.mark.parametrize(("name", "content"), [("a.json", b"something else"), ("a.json.part", BODY + b"more")])
def test_what_is_there_and_wrong_or_too_long_is_fetched_again(
    name: str, content: bytes, take: Fetch, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    take(known=PINNED)


def test_an_answer_that_is_always_cut_ends_after_a_few_attempts(site: Any, take: Fetch, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="connection failed"):
        take(*[("drop", 1000)] * 50)
    assert len(site.requests) == 3
    assert not (tmp_path / "a.json").exists()


def test_a_server_that_gives_a_byte_a_time_is_not_asked_forever(site: Any, limits: Limits, take: Fetch) -> None:
    with pytest.raises(FetchError, match="3 attempts"):
        take(*[("drop", 1)] * 1000, known=PINNED)
    assert len(site.requests) == limits.attempts


def test_a_wrong_checksum_is_an_error_and_the_file_is_removed(site: Any, take: Fetch, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as error:
        take(known={"sha256": "0" * 64})
    assert f"sha256 {SHA[:12]}…, in the catalog 000000000000…; the file was removed" in str(error.value)
    assert str(error.value).startswith(site.url + "/a.json: ")
    assert "`from='DIR'`" in error.value.hint
    assert only(tmp_path) == []
    assert len(site.requests) == 1


@pytest.mark.parametrize(("known", "patience"), [({}, {"most": 1000}), ({"size": 1000}, {})])
def test_a_file_over_the_limit_is_not_read(known: Any, patience: Any, take: Fetch) -> None:
    with pytest.raises(FetchError, match="larger than 1,000 bytes"):
        take(known=known, **patience)


def test_a_server_that_never_answers_ends_in_time(take: Fetch, stopwatch: Callable[[], float]) -> None:
    with pytest.raises(FetchError, match=r"did not answer in time .* \(3 attempts\)"):
        take(*[("hang", 30)] * 10, read=0.15)
    assert stopwatch() < 5


def test_a_trickle_counts_as_dropped(site: Any, take: Fetch) -> None:
    take(("drip", 10, 0.05), known=PINNED, patience=0.3, slowest=2000)
    assert len(site.requests) == 2
    assert site.requests[1][1]["Range"].startswith("bytes=")


@pytest.mark.parametrize(
    ("moves", "patience"),
    [([("status", 503), ("status", 503)], {}), ([("hang", 20)], {"read": 0.5})],
    ids=["503 twice", "slow"],
)
def test_what_fails_or_is_slow_is_tried_again(moves: list[Any], patience: Any, site: Any, take: Fetch) -> None:
    take(*moves, **patience)
    assert len(site.requests) == len(moves) + 1


@pytest.mark.parametrize("as_date", [False, True])
def test_429_waits_as_long_as_the_server_asks(
    as_date: bool, site: Any, take: Fetch, stopwatch: Callable[[], float]
) -> None:
    import time

    value = formatdate(int(time.time()) + 2, usegmt=True) if as_date else "1"
    take(("status", 429, {"Retry-After": value}))
    assert stopwatch() >= 0.9
    assert len(site.requests) == 2


def test_a_server_that_asks_for_an_hour_is_not_waited_for(take: Fetch, stopwatch: Callable[[], float]) -> None:
    with pytest.raises(FetchError, match=r"429 .* asks to wait 3,600 s; try again later"):
        take(("status", 429, {"Retry-After": "3600"}))
    assert stopwatch() < 2


@pytest.mark.parametrize(("code", "gone"), [(404, True), (403, True), (410, True), (400, False), (451, False)])
def test_a_refusal_is_final(code: int, gone: bool, site: Any, take: Fetch) -> None:
    with pytest.raises(FetchError, match=f"the server answered {code}") as error:
        take(*[("status", code)] * 5)
    assert error.value.gone is gone
    assert len(site.requests) == 1


def test_the_second_address_is_tried_when_the_first_has_it_not(site: Any, fetch: Fetch) -> None:
    file = site.file("/b/a.json", BODY)
    got, _ = fetch(File((f"{site.url}/a/a.json", *file.urls), "a.json"))
    assert [path for path, _ in site.requests] == ["/a/a.json", "/b/a.json"]
    assert got.url == f"{site.url}/b/a.json"


def test_a_file_without_an_address_is_said(fetch: Fetch, site: Any) -> None:
    with pytest.raises(FetchError) as caught:
        fetch(replace(site.file("/x.json", b"x"), urls=()))
    assert str(caught.value) == "x.json: the catalog has no address for this file; pass a copy: `from='DIR'`"


def test_a_redirect_is_followed(site: Any, fetch: Fetch, tmp_path: Path) -> None:
    site.file("/there", BODY)
    site.moves["/here"] = [("redirect", f"{site.url}/there")]
    fetch(File((f"{site.url}/here",), "x"))
    assert (tmp_path / "x").read_bytes() == BODY


def test_redirects_in_a_ring_end(site: Any, fetch: Fetch) -> None:
    site.moves["/here"] = [("redirect", f"{site.url}/here")] * 50
    with pytest.raises(FetchError, match="redirect"):
        fetch(File((f"{site.url}/here",), "x"))


def test_what_comes_compressed_all_the_same_is_unpacked(take: Fetch) -> None:
    take(("gzip",), known={**PINNED, "size": len(BODY)})


def test_a_mirror_is_laid_out_by_host(site: Any, fetch: Fetch, tmp_path: Path) -> None:
    site.files["/example.org/data/a.json"] = BODY
    got, _ = fetch(File(("https://example.org/data/a.json",), "a.json"), mirror=site.url)
    assert got.url == "https://example.org/data/a.json"
    assert (tmp_path / "a.json").read_bytes() == BODY


def test_a_closed_port_is_one_line(fetch: Fetch) -> None:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with pytest.raises(FetchError, match=r"connection failed .* \(3 attempts\)") as error:
        fetch(File((f"http://127.0.0.1:{port}/a",), "a"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["../a.json", "/etc/a.json", "x/../../a.json", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, site: Any, fetch: Fetch) -> None:
    site.files["/a.json"] = BODY
    with pytest.raises(ImageError, match="not a path inside"):
        fetch(File((f"{site.url}/a.json",), name))
    assert site.requests == []


def test_a_page_is_not_taken_for_an_image(site: Any, fetch: Fetch, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="something that is not an image"):
        fetch(site.file("/7.jpg", b"<!DOCTYPE html><p>log in first", picture=True))
    assert only(tmp_path) == []


@given(st.text(max_size=40) | st.floats().map(str) | st.integers().map(str))
def test_no_retry_after_breaks_the_parser(value: str) -> None:
    wait = retry_after(value)
    assert wait is None or wait >= 0
