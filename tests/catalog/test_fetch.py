"""Many files at once."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from creperie.bench.catalog.download import Fetcher, FetchError, Limits, fetch_files, fetch_images
from creperie.bench.catalog.entries import File
from creperie.core import Advance, UsageError

Jpeg = Callable[[int], bytes]


def pictures(site: Any, jpeg: Jpeg, count: int) -> list[File]:
    return [site.file(f"/{i}.jpg", jpeg(i), picture=True) for i in range(count)]


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


class Heard:
    """A Progress that remembers what it was told, and may interrupt."""

    def __init__(self, interrupt_at: int = 0) -> None:
        self.label, self.total, self.unit, self.done, self.calls = "", None, "", 0, 0
        self.interrupt_at = interrupt_at
        self.lock = threading.Lock()

    @contextmanager
    def __call__(self, label: str, total: int | None, unit: str) -> Iterator[Advance]:
        self.label, self.total, self.unit = label, total, unit  # type: ignore[assignment]

        def advance(n: int) -> None:
            with self.lock:
                self.done += n
                self.calls += 1
                if self.calls == self.interrupt_at:
                    raise KeyboardInterrupt

        yield advance


def test_files_come_with_their_bytes_counted(site: Any, client: httpx.Client, limits: Limits, tmp_path: Path) -> None:
    files = [site.file(f"/d/{i}.json", b"x" * (1000 + i), size=1000 + i) for i in range(12)]
    heard = Heard()
    result = fetch_files(Fetcher(limits, client=client), files, tmp_path, heard)
    assert len(result.received) == 12
    assert heard.done == heard.total == sum(1000 + i for i in range(12))
    assert (heard.label, heard.unit) == ("download 12 files", "bytes")


def test_an_optional_file_may_be_missing_a_needed_one_not(
    site: Any, client: httpx.Client, limits: Limits, tmp_path: Path
) -> None:
    here = site.file("/a.json", b"[]")
    absent = File((f"{site.url}/b.json",), "b.json")
    result = fetch_files(Fetcher(limits, client=client), [here, replace(absent, optional=True)], tmp_path)
    assert set(result.missing) == {"b.json"}
    with pytest.raises(FetchError, match="404"):
        fetch_files(Fetcher(limits, client=client), [here, absent], tmp_path)


def test_an_optional_file_that_the_server_fails_to_send_is_no_missing_file(
    site: Any, client: httpx.Client, limits: Limits, tmp_path: Path
) -> None:
    file = site.file("/b.json", b"[]", optional=True)
    site.moves["/b.json"] = [("status", 500)] * 10
    with pytest.raises(FetchError, match="500"):
        fetch_files(Fetcher(limits, client=client), [file], tmp_path)


def test_one_missing_image_does_not_stop_the_others(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path
) -> None:
    files = pictures(site, jpeg, 40)
    del site.files["/17.jpg"]
    heard = Heard()
    result = fetch_images(Fetcher(limits, client=client), files, tmp_path, heard)
    assert len(result.received) == 39
    assert {name: e.what for name, e in result.missing.items()} == {"17.jpg": "the server answered 404 Not Found"}
    assert (heard.done, heard.total, heard.unit) == (40, 40, "images")
    assert (tmp_path / "16.jpg").read_bytes() == jpeg(16)
    assert names(tmp_path) == {f"{i}.jpg" for i in range(40)} - {"17.jpg"}


def test_images_are_fetched_side_by_side(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path, stopwatch: Callable[[], float]
) -> None:
    files = pictures(site, jpeg, 16)
    for file in files:
        site.moves["/" + file.saved_as] = [("hang", 0.3)]
    fetch_images(Fetcher(limits, client=client), files, tmp_path)
    assert stopwatch() < 16 * 0.3 / 2  # one after the other they would take 4.8 s


def test_an_interrupted_run_goes_on_without_asking_twice(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path
) -> None:
    files = pictures(site, jpeg, 60)
    with pytest.raises(KeyboardInterrupt):
        fetch_images(Fetcher(limits, client=client), files, tmp_path, Heard(interrupt_at=20))
    there = {name for name in names(tmp_path) if name.endswith(".jpg")}
    assert 19 <= len(there) < 60
    assert all((tmp_path / name).read_bytes() == jpeg(int(name.removesuffix(".jpg"))) for name in there)
    site.requests.clear()
    fetch_images(Fetcher(limits, client=client), files, tmp_path)
    assert {path.strip("/") for path, _ in site.requests} == {f"{i}.jpg" for i in range(60)} - there
    assert len(site.requests) == 60 - len(there)
    assert names(tmp_path) == {f"{i}.jpg" for i in range(60)}


def test_a_host_that_is_down_is_given_up_soon(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path
) -> None:
    files = pictures(site, jpeg, 300)
    for file in files[5:]:
        site.moves["/" + file.saved_as] = [("status", 502)] * 10
    with pytest.raises(FetchError, match="502 Bad Gateway"):
        fetch_images(Fetcher(replace(limits, give_up_after=6, workers=2), client=client), files, tmp_path)
    assert len(site.requests) < 300


def test_two_fetches_into_one_folder_do_not_mix(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path
) -> None:
    folder = tmp_path / "coco"
    with (tmp_path / ".coco.fetching").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another creperie process is fetching"):
            fetch_images(Fetcher(limits, client=client), pictures(site, jpeg, 1), folder)
    fetch_images(Fetcher(limits, client=client), pictures(site, jpeg, 1), folder)
    assert names(folder) == {"0.jpg"}


def test_nobody_who_interrupts_waits_for_a_server_that_hangs(
    site: Any, client: httpx.Client, limits: Limits, jpeg: Jpeg, tmp_path: Path, stopwatch: Callable[[], float]
) -> None:
    files = pictures(site, jpeg, 30)
    for file in files[10:]:
        site.moves["/" + file.saved_as] = [("hang", 30)]
    with pytest.raises(KeyboardInterrupt):
        fetch_images(Fetcher(replace(limits, read=30), client=client), files, tmp_path, Heard(interrupt_at=5))
    assert stopwatch() < 5
