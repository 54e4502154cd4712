"""Parallel downloads by a few worker threads.

All workers stop when a required file cannot be fetched, or after too many failures in a row. Images are not required;
neither are optional files that the server does not have.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from creperie.bench.catalog.download import Fetcher, FetchError, Received
from creperie.bench.catalog.entries import File, total_size
from creperie.core import Progress, counted, locked, silent

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
