"""Parallel downloads by a few worker threads.

All workers stop when a required file cannot be fetched, or after too many failures in a row. Images are not required;
neither are optional files that the server does not have.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from creperie.bench.catalog.download import Fetcher, FetchError, Received
from creperie.bench.catalog.entries import File, total_size
from creperie.core import Advance, Progress, counted, locked, silent

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
        return _run(fetcher, [_FetchJob(f, folder, advance) for f in files])


def fetch_images(fetcher: Fetcher, files: Sequence[File], folder: Path, progress: Progress = silent) -> Fetched:
    """Fetch images and return the result. Progress is counted in files. If an image is missing, the others are still
    fetched.
    """
    with progress("fetch images", len(files), "images") as advance, fetching_into(folder):
        return _run(fetcher, [_FetchJob(f, folder, advance) for f in files])


@dataclass(frozen=True)
class _FetchJob:
    file: File
    folder: Path
    advance: Advance

    def run(self, fetcher: Fetcher) -> Received:
        if not self.file.picture:
            return fetcher.fetch(self.file, self.folder, self.advance)
        try:
            return fetcher.fetch(self.file, self.folder, lambda n: None)
        finally:
            self.advance(1)

    def can_do_without(self, error: FetchError) -> bool:
        """Return whether this error can be ignored. It can if the file is an image, or if it is optional and not on the
        server.
        """
        return self.file.picture or (self.file.optional and error.gone)


Outcome = tuple[_FetchJob, Received | BaseException]


def _run(fetcher: Fetcher, jobs: Sequence[_FetchJob]) -> Fetched:
    """Run the jobs in a few worker threads and return the results."""
    # The workers are daemon threads, so that an interrupt does not wait for a server that does not respond.
    todo, done = iter(jobs), queue.SimpleQueue[Outcome]()
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                job = next(todo, None)
            if job is None or fetcher.stop.is_set():
                return
            try:
                done.put((job, job.run(fetcher)))
            except BaseException as e:
                done.put((job, e))

    workers = min(fetcher.limits.workers, len(jobs))
    threads = [threading.Thread(target=work, name=f"fetch-{n}", daemon=True) for n in range(workers)]
    for thread in threads:
        thread.start()
    try:
        return _collect(done, len(jobs), fetcher.limits.give_up_after)
    except BaseException:
        fetcher.stop.set()
        end = time.monotonic() + LAST_WORDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        raise


def _collect(done: queue.SimpleQueue[Outcome], count: int, give_up_after: int) -> Fetched:
    result, failed_in_a_row = Fetched(), 0
    for _ in range(count):
        job, outcome = done.get()
        if isinstance(outcome, Received):
            failed_in_a_row = 0
            result.received[job.file.saved_as] = outcome
            continue
        if not isinstance(outcome, FetchError) or not job.can_do_without(outcome):
            raise outcome
        failed_in_a_row += not outcome.gone
        if failed_in_a_row >= give_up_after:
            raise outcome
        result.missing[job.file.saved_as] = outcome
    return result


def fetching_into(folder: Path) -> AbstractContextManager[None]:
    """Return a context manager that keeps other processes from fetching into the same folder."""
    lock = folder.parent / f".{folder.name}.fetching"
    hint = "wait until it is done, then run the same command again"
    return locked(lock, "another creperie process is fetching into this folder", where=folder, hint=hint)
