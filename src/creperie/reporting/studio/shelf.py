"""The benchmarks, runs and studies in the studio's folder. Nothing outside the folder is served, except images in
folders that the user named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench import AUDIT_FILE, MANIFEST_FILE, Benchmark, ImageError, load, recorded_audit
from creperie.core import CreperieError, Json, UsageError
from creperie.reporting.leaderboard import Board, FileTimes, LeaderboardEntry, RunsFolder, file_times, folders_in
from creperie.reporting.thumbnails import PictureRoots, thumbnail
from creperie.scoring import RUN_FILE, Run, load_run

DEPTH = 3  #: depth of folders in which benchmarks are searched
EDGE = 384  #: longest edge of images, in pixels


class Shelf:
    """A folder, with a cache of the benchmarks and runs opened from it."""

    def __init__(self, folder: Path, images: Sequence[str | Path] = ()) -> None:
        if not folder.is_dir():
            raise UsageError("there is no such folder", where=str(folder), hint="name a folder, or leave it out")
        self.folder = folder.resolve()
        self.roots = PictureRoots.of(images, [self.folder])
        self._runs = RunsFolder(self.folder)
        self._opened: dict[Path, tuple[FileTimes, Any]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def benches(self) -> dict[str, Path]:
        """Return the folders of all benchmarks by name. The name is the path within the studio's folder."""
        benches: dict[str, Path] = {}
        level = [self.folder]
        for _ in range(DEPTH):
            below = [path for folder in level for path in folders_in(folder)]
            found = [path for path in below if (path / MANIFEST_FILE).is_file()]
            inside = (path for path in found if path.resolve().is_relative_to(self.folder))
            benches |= {path.relative_to(self.folder).as_posix(): path for path in inside}
            level = [path for path in below if path not in found]  # a benchmark's own folders hold pictures
        return dict(sorted(benches.items()))

    def place(self, name: str) -> Path:
        """Return the folder of a benchmark."""
        path = self.benches().get(name)
        if path is None:
            raise UsageError(f"there is no benchmark {name[:80]!r} in this folder", hint="choose one on the start page")
        return path

    def readable(self) -> tuple[dict[str, Benchmark], dict[str, str]]:
        """Return the readable benchmarks by name, and the reasons why others cannot be read. An unreadable benchmark
        may be damaged, or have just been removed.
        """
        benches: dict[str, Benchmark] = {}
        damaged: dict[str, str] = {}
        for name, place in self.benches().items():
            try:
                benches[name] = self._bench(place)
            except (CreperieError, OSError) as e:
                if place.exists():
                    damaged[name] = e.what if isinstance(e, CreperieError) else str(e.strerror)
        return benches, damaged

    def within(self, path: Path | str | None) -> str:
        """Return a path relative to the studio's folder, as text. The path must be inside that folder."""
        return Path(path or "").relative_to(self.folder).as_posix()

    def bench(self, name: str) -> Benchmark:
        """Return a benchmark. It is read again if its manifest changed."""
        return self._bench(self.place(name))

    def _bench(self, place: Path) -> Benchmark:
        opened: Benchmark = self._open(place / MANIFEST_FILE, lambda: self.roots.applied(load(place)))
        return opened

    def run(self, name: str) -> Run:
        """Return the run in the folder with this name."""
        entry = next((e for e in self.board().entries if e.name == name), None)
        if entry is None:
            raise UsageError(f"there is no run {name[:80]!r} in this folder", hint="choose one on the page of runs")
        return self.opened(entry)

    def opened(self, entry: LeaderboardEntry) -> Run:
        """Return the run of an entry. It is read again if it changed."""
        opened: Run = self._open(entry.path / RUN_FILE, lambda: load_run(entry.path))
        return opened

    def _open(self, file: Path, read: Callable[[], Any]) -> Any:
        state = file_times(file)
        with self._lock:
            if file not in self._opened or self._opened[file][0] != state:
                self._opened[file] = (state, read())
            return self._opened[file][1]

    def board(self) -> Board:
        """Return the runs in the folder (headers only), with the names of their benchmarks."""
        names = {bench.hash: name for name, bench in self.readable()[0].items()}
        return replace(self._runs.look(), benches=names)

    def audit(self, name: str) -> Json | None:
        """Return the audit saved beside a benchmark; None if there is none."""
        bench, file = self.bench(name), self.place(name) / AUDIT_FILE
        return self._open(file, lambda: recorded_audit(bench)) if file.is_file() else None

    @contextmanager
    def new(self, name: str, ending: str) -> Iterator[Path]:
        """Yield an unused folder for a benchmark derived from the benchmark `name`. It is called `name-ending`, with a
        number added if that is taken.
        """
        # Only one such folder is open at a time, so that two simultaneous requests write two folders.
        with self._writing:
            stem = f"{name.partition(f'-{ending}')[0]}-{ending}"
            numbered = (self.folder / f"{stem}-{number}" for number in range(2, 10_000))
            yield next(place for place in (self.folder / stem, *numbered) if not place.exists())

    def picture(self, name: str, reference: str) -> bytes:
        """Return an image of a benchmark, decoded and encoded again as WebP. Raise an ImageError if pages may not show
        images from its folder.
        """
        bench = self.bench(name)
        if why := self.roots.hidden(bench):
            raise ImageError("missing-image", why)
        return thumbnail(bench.images, reference, EDGE)
