"""Download of one file over HTTP, with resumption, retries and a check of the content.

A file is called `NAME.part` while it is downloaded. It is renamed to `NAME` only when it is complete and has passed the
check, so a file called `NAME` is never partial.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from creperie.bench.catalog.entries import File
from creperie.bench.images import safe_path
from creperie.core import Advance, DataError, retry_after, sha256_of

if TYPE_CHECKING:
    import httpx


@dataclass
class PartialDownload:
    """The part of a file received so far, and the validator (ETag or date) of the version that it belongs to."""

    target: Path
    url: str
    validator: str = ""
    resumed: bool = False

    @property
    def path(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def note(self) -> Path:
        return self.target.with_name(self.target.name + ".part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def recall(self) -> None:
        """Set `validator` to the ETag or date that an earlier run stored for this URL; to "" if there is none."""
        try:
            left = json.loads(self.note.read_text(encoding="utf-8"))
            self.validator = str(left["validator"]) if left["url"] == self.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            self.validator = ""

    def remember(self, validator: str) -> None:
        self.validator = validator
        self.note.write_text(json.dumps({"url": self.url, "validator": validator}), encoding="utf-8")

    def drop(self) -> int:
        """Delete the partial file and return the number of bytes that were discarded."""
        lost = self.size
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
        self.validator, self.resumed = "", False
        return lost

    def finish(self, sync: bool) -> None:
        if sync:
            with self.path.open("rb") as f:
                os.fsync(f.fileno())
        self.path.replace(self.target)
        self.note.unlink(missing_ok=True)


#: Status codes of failures that are temporary: the request is retried.
PASSING = {408, 425, 429, 500, 502, 503, 504}
#: Status codes that mean that the file is not available there. (Object stores answer 403 for missing objects.)
GONE = {401, 403, 404, 410}

#: The first bytes of image files.
PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"II*\0", b"MM\0*")


@dataclass(frozen=True)
class Limits:
    """The timeouts, retries and size limits of a download, in seconds and bytes."""

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 5  # consecutive attempts without a single new byte
    pause: float = 0.5  # before the second attempt; doubles each time
    longest_pause: float = 120.0
    slowest: float = 100.0  # bytes per second, averaged over `patience` seconds; a slower connection counts as dropped
    patience: float = 60.0
    most: int = 4 << 30  # bytes of one text file
    most_picture: int = 64 << 20
    workers: int = 8
    give_up_after: int = 16  # consecutive failed files

    def most_of(self, file: File) -> int:
        return self.most_picture if file.picture else self.most

    def wait_before(self, attempt: int) -> float:
        """Return the seconds to wait: exponential backoff, with jitter so that the workers do not retry in step."""
        return min(self.pause * 2**attempt, self.longest_pause) * random.uniform(0.75, 1.25)


class FetchError(DataError):
    """Raised when a file cannot be fetched; `gone` is True if the server says that it has no such file."""

    def __init__(self, what: str, *, where: object = "", hint: str = "", gone: bool = False) -> None:
        self.gone = gone
        super().__init__(what, where=where, hint=hint)


class _PassingError(Exception):
    """Raised by a failed attempt that should be retried, after `wait` seconds if the server asked for a delay."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(what)


class StoppedError(Exception):
    """Raised in a worker when the user or the failure of another worker has stopped the download."""


@dataclass(frozen=True)
class Received:
    """A file that is complete on disk: its path, address, size and checksum, and whether it was fetched just now."""

    path: Path
    url: str
    size: int
    sha256: str  # empty for images, for which no checksum is published
    fetched: bool  # False if an earlier run fetched it


@dataclass
class Fetcher:
    """A downloader with one HTTP client, which is created on first use. It may be used from several threads."""

    limits: Limits
    mirror: str = ""
    client: httpx.Client | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def connected(self) -> httpx.Client:
        import httpx

        from creperie.core import __version__

        with self._lock:
            if self.client is None:
                pool = httpx.Limits(max_connections=self.limits.workers, max_keepalive_connections=self.limits.workers)
                agent = {"User-Agent": f"creperie/{__version__}"}
                self.client = httpx.Client(limits=pool, headers=agent, follow_redirects=True, max_redirects=5)
            return self.client

    def fetch(self, file: File, folder: Path, advance: Advance) -> Received:
        """Download a file, unless it is already there, and return it. The addresses are tried in order."""
        target = safe_path(folder, file.saved_as)
        earlier = self._kept(file, target)
        if earlier is not None:
            advance(earlier.size)
            return earlier
        target.parent.mkdir(parents=True, exist_ok=True)
        for url in file.urls:
            try:
                return self._fetch_from(url, file, target, advance)
            except FetchError as e:
                if not e.gone or url == file.urls[-1]:
                    raise
        raise FetchError("the catalog has no address for this file", where=file.saved_as)

    def _kept(self, file: File, target: Path) -> Received | None:
        """Return the file that an earlier run fetched; None if there is none or its checksum is wrong."""
        if not target.is_file() or target.stat().st_size == 0:
            return None
        digest = "" if file.picture else sha256_of(target)
        if file.sha256 and digest != file.sha256:
            target.unlink()
            return None
        return Received(target, file.urls[0], target.stat().st_size, digest, fetched=False)

    def _fetch_from(self, url: str, file: File, target: Path, advance: Advance) -> Received:
        address = mirrored(url, self.mirror)
        part = PartialDownload(target, address)
        part.recall()
        advance(part.size)
        fresh = self._complete(part, file, advance)
        if file.sha256 and fresh != file.sha256 and part.resumed:
            # The beginning may be from an older version of the file than the end: try again from the start.
            advance(-part.drop())
            fresh = self._complete(part, file, advance)
        self._accept(part, file, fresh)
        if self.stop.is_set():
            raise StoppedError
        size = part.size
        part.finish(sync=file.sha256 is not None)
        return Received(target, url, size, fresh, fetched=True)

    def _complete(self, part: PartialDownload, file: File, advance: Advance) -> str:
        """Retry until the file is complete and return its sha256 (an empty string for images)."""
        failed, tries = 0, 0
        while True:
            before = part.size
            try:
                self._attempt(part, file, advance)
                return "" if file.picture else sha256_of(part.path)
            except _PassingError as e:
                failed = 0 if part.size > before else failed + 1
                tries += 1
                if failed >= self.limits.attempts or tries >= 20 * self.limits.attempts:
                    raise FetchError(f"{e} ({tries} attempts)", where=part.url, hint=_AGAIN) from None
                wait = self.limits.wait_before(max(failed - 1, 0)) if e.wait is None else e.wait
                if self.stop.wait(wait):
                    raise StoppedError from None

    def _attempt(self, part: PartialDownload, file: File, advance: Advance) -> None:
        import httpx

        if part.size and not part.validator and not file.sha256:
            advance(-part.drop())  # without a validator or checksum, the rest might be of another version
        have = part.size
        if have and have == file.size:
            part.resumed = True
            return
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if part.validator:
                headers["If-Range"] = part.validator
        try:
            timeout = httpx.Timeout(self.limits.read, connect=self.limits.connect)
            with self.connected().stream("GET", part.url, headers=headers, timeout=timeout) as answer:
                if _says_complete(answer, part):
                    part.resumed = True
                    return
                total = self._open_answer(answer, part, file, advance)
                self._take(answer, part, file.size if total is None else total, self.limits.most_of(file), advance)
        except httpx.TimeoutException as e:
            raise _PassingError(f"the server did not answer in time ({type(e).__name__})") from None
        except httpx.TransportError as e:
            raise _PassingError(f"the connection failed ({str(e) or type(e).__name__})") from None
        except (httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError) as e:
            raise FetchError(f"cannot be fetched ({e})", where=part.url) from None

    def _open_answer(self, answer: httpx.Response, part: PartialDownload, file: File, advance: Advance) -> int | None:
        """Check the headers of a response, drop the partial file if it does not fit, and return the size of the whole
        file (None if the server does not state it).
        """
        if answer.status_code == 416:
            advance(-part.drop())
            raise _PassingError("the server has fewer bytes than were already downloaded", wait=0)
        _refuse(answer, part.url, self.limits)
        version = _version(answer)
        if answer.status_code == 206:
            start, total = _content_range(answer.headers.get("Content-Range", ""))
            if start != part.size or (part.validator and version and version != part.validator):
                advance(-part.drop())
                raise _PassingError("the file has changed since its first part was fetched", wait=0)
            part.resumed = True
            return total
        advance(-part.drop())
        total = _length(answer)
        if file.size is not None and total is not None and total != file.size:
            raise FetchError(
                f"the server offers {total:,} bytes, the catalog says {file.size:,}", where=part.url, hint=_CHANGED
            )
        if (total or 0) > self.limits.most_of(file):
            raise FetchError(f"is larger than {self.limits.most_of(file):,} bytes", where=part.url)
        if version and "Content-Encoding" not in answer.headers:
            part.remember(version)
        return total

    def _take(
        self, answer: httpx.Response, part: PartialDownload, total: int | None, most: int, advance: Advance
    ) -> None:
        """Append the body of a response to the partial file."""
        most = most if total is None else total
        came, since = 0, time.monotonic()
        size = part.size
        encoded = answer.headers.get("Content-Encoding", "identity") not in ("", "identity")
        with part.path.open("ab") as out:
            # Write chunks as they arrive: chunks of a fixed size would be buffered, and lost if the connection drops.
            for chunk in answer.iter_bytes() if encoded else answer.iter_raw():
                if self.stop.is_set():
                    raise StoppedError  # before the write: a new run may already be writing to this file
                out.write(chunk)
                advance(len(chunk))
                size += len(chunk)
                came += len(chunk)
                if size > most:
                    break
                if (passed := time.monotonic() - since) > self.limits.patience:
                    if came < self.limits.slowest * passed:
                        raise _PassingError(f"the server sends only {came / passed:,.0f} bytes per second")
                    came, since = 0, time.monotonic()
        if total is not None and size < total:
            raise _PassingError(f"the response ended after {size:,} of {total:,} bytes")
        if size > most:
            advance(-part.drop())
            raise FetchError(f"received more than {most:,} bytes", where=part.url, hint=_CHANGED)

    def _accept(self, part: PartialDownload, file: File, digest: str) -> None:
        """Delete the file and raise a FetchError if its checksum is wrong, or if it should be an image and is not."""
        if file.sha256 and digest != file.sha256:
            part.drop()
            raise FetchError(
                f"checksum mismatch: sha256 {digest[:12]}…, in the catalog {file.sha256[:12]}…; the file was removed",
                where=part.url,
                hint=_CHANGED,
            )
        if file.picture and not is_picture(part.path):
            part.drop()
            raise FetchError("the server sent something that is not an image", where=part.url)


_AGAIN = "run the same command again, it continues where it stopped; offline, pass your own copy (`from=`, `images=`)"
_CHANGED = "the published file has changed or was altered on the way; pass a copy you trust with `from='DIR'`"


@contextmanager
def open_fetcher(limits: Limits, mirror: str = "") -> Iterator[Fetcher]:
    """Yield a fetcher; its connections are closed at the end of the block."""
    fetcher = Fetcher(limits, mirror)
    try:
        yield fetcher
    finally:
        if fetcher.client is not None:
            fetcher.client.close()


def mirrored(url: str, mirror: str) -> str:
    """Return the address of a file on a mirror, whose top folders are host names; without a mirror, the address itself.

    >>> mirrored("https://example.org/a/b.json", "http://127.0.0.1:8000/")
    'http://127.0.0.1:8000/example.org/a/b.json'
    """
    if not mirror:
        return url
    parts = urlsplit(url)
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}{'?' + parts.query if parts.query else ''}"


def is_picture(path: Path) -> bool:
    """Return whether a file starts like an image. (Some servers answer 200 with a login page.)"""
    with path.open("rb") as f:
        head = f.read(16)
    return head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _says_complete(answer: httpx.Response, part: PartialDownload) -> bool:
    """Return whether the server says that the partial file is already complete and of the same version."""
    nothing_more = answer.status_code == 416 and bool(part.validator)
    return nothing_more and answer.headers.get("Content-Range", "") == f"bytes */{part.size}"


def _refuse(answer: httpx.Response, url: str, limits: Limits) -> None:
    code = answer.status_code
    problem = f"the server answered {code} {answer.reason_phrase}".strip()
    if code in PASSING:
        wait = retry_after(answer.headers.get("Retry-After", ""))
        if wait is not None and wait > limits.longest_pause:
            raise FetchError(f"{problem} and asks to wait {wait:,.0f} s", where=url, hint="try again later")
        raise _PassingError(problem, wait)
    if code in GONE:
        raise FetchError(problem, where=url, gone=True)
    if code not in (200, 206):
        raise FetchError(problem, where=url)


def _version(answer: httpx.Response) -> str:
    """Return the strong validator (ETag or date) of a response, or "": a weak ETag must not be used to resume."""
    tag: str = answer.headers.get("ETag", "")
    name = tag if tag.startswith('"') else str(answer.headers.get("Last-Modified", ""))
    return name if name.isascii() and name.isprintable() else ""


def _length(answer: httpx.Response) -> int | None:
    if "Content-Encoding" in answer.headers:
        return None
    return _whole_number(answer.headers.get("Content-Length", ""))


def _content_range(value: str) -> tuple[int, int | None]:
    """Return the start offset and the total size in a Content-Range header.

    >>> _content_range("bytes 100-299/300"), _content_range("bytes 5-9/*"), _content_range("nonsense")
    ((100, 300), (5, None), (-1, None))
    """
    unit, _, rest = value.partition(" ")
    span, _, total = rest.partition("/")
    start = _whole_number(span.partition("-")[0])
    if unit != "bytes" or start is None:
        return -1, None
    return start, _whole_number(total)


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
