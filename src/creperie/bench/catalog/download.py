"""Download files over HTTP, with retries and a check of the content, by a few worker threads.

During the download, a file is called `NAME.part`. It is renamed to `NAME` only when it is complete and has passed the
check. An interrupted download is continued only if the published checksum is known; it shows whether the bytes from
both downloads belong together.

All workers stop when a required file cannot be fetched, or after too many failures in a row. Images are not required.
Optional files are not required either if the server does not have them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from creperie.bench.catalog.entries import File
from creperie.bench.images import safe_path
from creperie.core import PASSING, Advance, DataError, backoff, retry_after, sha256_of

if TYPE_CHECKING:
    import httpx
import queue
from collections.abc import Sequence
from contextlib import AbstractContextManager

from creperie.bench.catalog.entries import total_size
from creperie.core import Progress, counted, locked, silent

#: Status codes that mean that the file is not available there. (Object stores answer 403 for missing objects.)
GONE = {401, 403, 404, 410}
#: The longest wait in seconds that a server may ask for.
LONGEST_WAIT = 120.0
#: The bytes of a part that make an attempt count as progress.
PROGRESS = 2**20
#: The first bytes of image files.
PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"II*\0", b"MM\0*")


@dataclass(frozen=True)
class Limits:
    """The timeouts (in seconds), retries and size limits (in bytes) of a download."""

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 5  # consecutive attempts without progress
    slowest: float = 100.0  # bytes per second, from `patience` seconds on; a slower connection counts as dropped
    patience: float = 60.0
    most: int = 4 << 30  # bytes of one text file
    most_picture: int = 64 << 20
    workers: int = 8
    give_up_after: int = 16  # consecutive failed files


class FetchError(DataError):
    """Raised when a file cannot be fetched. `gone` is True if the server says that the file does not exist."""

    def __init__(self, what: str, *, where: object = "", hint: str = "", gone: bool = False) -> None:
        self.gone = gone
        super().__init__(what, where=where, hint=hint)


class _PassingError(Exception):
    """Raised by an attempt that failed but should be retried. `wait` is the delay in seconds that the server asks for,
    if any.
    """

    def __init__(self, what: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(what)


class StoppedError(Exception):
    """Raised in a worker when the download is stopped, by the user or because another worker failed."""


@dataclass(frozen=True)
class Received:
    """A complete file on disk: its path, address, size and checksum, and whether it was fetched just now."""

    path: Path
    url: str
    size: int
    sha256: str  # empty for images, for which no checksum is published
    fetched: bool  # False if an earlier run fetched it


@dataclass
class Fetcher:
    """A downloader with one HTTP client, which is created on first use. Several threads may share it."""

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
        """Return a file, downloading it unless it is already in the folder. Its addresses are tried in order."""
        target = safe_path(folder, file.saved_as)
        if size := _size(target):
            digest = _digest(target, file)
            if file.sha256 in (None, digest):
                advance(size)
                return Received(target, file.urls[0], size, digest, fetched=False)
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        for url in file.urls:
            try:
                digest = self._complete(mirrored(url, self.mirror), file, part, advance)
            except FetchError as e:
                if not e.gone or url == file.urls[-1]:
                    raise
                continue
            if self.stop.is_set():
                raise StoppedError
            part.replace(target)
            return Received(target, url, target.stat().st_size, digest, fetched=True)
        raise FetchError(
            "the catalog has no address for this file", where=file.saved_as, hint="pass a copy: `from='DIR'`"
        )

    def _complete(self, url: str, file: File, part: Path, advance: Advance) -> str:
        """Request a file until it is complete and has the published checksum; return its sha256 ("" for images)."""
        at = _positions(advance)
        failed = tries = 0
        continued = False
        while True:
            have = _size(part) if file.sha256 else 0
            at(have)
            continued = continued or have > 0
            try:
                if not have or have != file.size:
                    self._attempt(url, file, part, have, at)
                digest = _digest(part, file)
                if file.sha256 in (None, digest) and (not file.picture or is_picture(part)):
                    return digest
                part.unlink()
                if not continued:
                    raise _unlike(url, file, digest)
                continued = False  # the start may be of an older version of the file: once more, from the beginning
                raise _PassingError("the file has changed since its first part was fetched", wait=0)
            except _PassingError as e:
                tries += 1
                failed = 0 if _size(part) >= have + PROGRESS else failed + 1
                if failed >= self.limits.attempts:
                    raise FetchError(f"{e} ({tries} attempts)", where=url, hint=_AGAIN) from None
                if self.stop.wait(backoff(max(failed - 1, 0)) if e.wait is None else e.wait):
                    raise StoppedError from None

    def _attempt(self, url: str, file: File, part: Path, have: int, at: Callable[[int], None]) -> None:
        """Request the rest of a file, and append it to the `have` bytes that are already in `part`. `at` is called with
        the number of bytes on disk.
        """
        import httpx

        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        timeout = httpx.Timeout(self.limits.read, connect=self.limits.connect)
        try:
            with self.connected().stream("GET", url, headers=headers, timeout=timeout) as answer:
                if answer.status_code == 416:
                    part.unlink()
                    raise _PassingError("the server has fewer bytes than were already downloaded", wait=0)
                _refuse(answer, url)
                with part.open("ab" if answer.status_code == 206 else "wb") as out:
                    self._take(answer, out, url, file, at)
        except httpx.TimeoutException as e:
            raise _PassingError(f"the server did not answer in time ({type(e).__name__})") from None
        except httpx.TransportError as e:
            raise _PassingError(f"the connection failed ({str(e) or type(e).__name__})") from None
        except (httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError) as e:
            raise FetchError(f"cannot be fetched ({e})", where=url, hint=_AGAIN) from None

    def _take(self, answer: httpx.Response, out: BinaryIO, url: str, file: File, at: Callable[[int], None]) -> None:
        """Write a response to disk as it arrives."""
        # Nothing is lost if the connection breaks.
        most = file.size or (self.limits.most_picture if file.picture else self.limits.most)
        start, since = out.tell(), time.monotonic()
        for chunk in answer.iter_bytes():
            if self.stop.is_set():
                raise StoppedError  # before the write: a new run may already be writing to this file
            out.write(chunk)
            at(out.tell())
            if out.tell() > most:
                raise FetchError(f"is larger than {most:,} bytes", where=url, hint=_CHANGED)
            passed, came = time.monotonic() - since, out.tell() - start
            if passed > self.limits.patience and came < self.limits.slowest * passed:
                raise _PassingError(f"the server sends only {came / passed:,.0f} bytes per second")
        if file.sha256:
            out.flush()
            os.fsync(out.fileno())


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
    """Return the address of a file on a mirror. The top-level folders of a mirror are host names. Without a mirror,
    return `url`.

    >>> mirrored("https://example.org/a/b.json", "http://127.0.0.1:8000/")
    'http://127.0.0.1:8000/example.org/a/b.json'
    """
    if not mirror:
        return url
    parts = urlsplit(url)
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}{'?' + parts.query if parts.query else ''}"


def is_picture(path: Path) -> bool:
    """Return whether a file begins like an image. Some servers send a login page with status 200 instead."""
    with path.open("rb") as f:
        head = f.read(16)
    return head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _positions(advance: Advance) -> Callable[[int], None]:
    """Return a function that takes the number of bytes now on disk. It calls `advance` with the increase since the last
    call.
    """
    reported = 0

    def at(size: int) -> None:
        nonlocal reported
        advance(size - reported)
        reported = size

    return at


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _digest(path: Path, file: File) -> str:
    return "" if file.picture else sha256_of(path)


def _unlike(url: str, file: File, digest: str) -> FetchError:
    if file.picture:
        return FetchError(
            "the server sent something that is not an image", where=url, hint="open the address to see why"
        )
    what = f"checksum mismatch: sha256 {digest[:12]}…, in the catalog {str(file.sha256)[:12]}…; the file was removed"
    return FetchError(what, where=url, hint=_CHANGED)


def _refuse(answer: httpx.Response, url: str) -> None:
    code = answer.status_code
    problem = f"the server answered {code} {answer.reason_phrase}".strip()
    if code in PASSING:
        wait = retry_after(answer.headers.get("Retry-After", ""))
        if wait is not None and wait > LONGEST_WAIT:
            raise FetchError(f"{problem} and asks to wait {wait:,.0f} s", where=url, hint="try again later")
        raise _PassingError(problem, wait)
    if code not in (200, 206):
        raise FetchError(problem, where=url, hint="try later, or pass your own copy (`from=`)", gone=code in GONE)


# -- several files at once ---------------------------------------------------------------------------------------------

#: Seconds to wait for the workers to finish after an interrupt.
LAST_WORDS = 1.0


@dataclass
class Fetched:
    """The result of fetching several files; `missing` maps the name of each missing file to its error."""

    received: dict[str, Received] = field(default_factory=dict)
    missing: dict[str, FetchError] = field(default_factory=dict)


def fetch_files(fetcher: Fetcher, files: Sequence[File], folder: Path, progress: Progress = silent) -> Fetched:
    """Fetch text files and return the result. Progress is counted in bytes. If a required file cannot be fetched, raise
    its error.
    """
    label = f"download {counted(len(files), 'file')}"
    with progress(label, total_size(files), "bytes") as advance, fetching_into(folder):
        return _run(fetcher, files, lambda file: fetcher.fetch(file, folder, advance))


def fetch_images(fetcher: Fetcher, files: Sequence[File], folder: Path, progress: Progress = silent) -> Fetched:
    """Fetch images and return the result. Progress is counted in files. If an image is missing, the others are still
    fetched.
    """
    with progress("fetch images", len(files), "images") as advance, fetching_into(folder):

        def fetch(file: File) -> Received:
            try:
                return fetcher.fetch(file, folder, lambda n: None)
            finally:
                advance(1)

        return _run(fetcher, files, fetch)


Outcome = tuple[File, Received | BaseException]


def _run(fetcher: Fetcher, files: Sequence[File], fetch: Callable[[File], Received]) -> Fetched:
    """Fetch files in a few worker threads and return the results."""
    # The workers are daemon threads, so that an interrupt does not wait for a server that does not respond.
    todo, done = iter(files), queue.SimpleQueue[Outcome]()
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                file = next(todo, None)
            if file is None or fetcher.stop.is_set():
                return
            try:
                done.put((file, fetch(file)))
            except BaseException as e:
                done.put((file, e))

    workers = min(fetcher.limits.workers, len(files))
    threads = [threading.Thread(target=work, name=f"fetch-{n}", daemon=True) for n in range(workers)]
    for thread in threads:
        thread.start()
    try:
        return _collect(done, len(files), fetcher.limits.give_up_after)
    except BaseException:
        fetcher.stop.set()
        end = time.monotonic() + LAST_WORDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        raise


def _collect(done: queue.SimpleQueue[Outcome], count: int, give_up_after: int) -> Fetched:
    result, failed_in_a_row = Fetched(), 0
    for _ in range(count):
        file, outcome = done.get()
        if isinstance(outcome, Received):
            failed_in_a_row = 0
            result.received[file.saved_as] = outcome
            continue
        if not isinstance(outcome, FetchError) or not (file.picture or (file.optional and outcome.gone)):
            raise outcome
        failed_in_a_row += not outcome.gone
        if failed_in_a_row >= give_up_after:
            raise outcome
        result.missing[file.saved_as] = outcome
    return result


def fetching_into(folder: Path) -> AbstractContextManager[None]:
    """Return a context manager that keeps other processes from fetching into the same folder."""
    lock = folder.parent / f".{folder.name}.fetching"
    hint = "wait until it is done, then run the same command again"
    return locked(lock, "another creperie process is fetching into this folder", where=folder, hint=hint)
