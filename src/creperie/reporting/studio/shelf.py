"""The benchmarks, runs and studies in the studio's folder. Nothing outside it is served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from creperie.bench import MANIFEST_FILE, Benchmark, ImageError, load, recorded_audit
from creperie.core import UsageError
from creperie.reporting.leaderboard import Board, RunsFolder
from creperie.reporting.thumbnails import thumbnail
from creperie.scoring import Run, load_run

DEPTH = 3  #: depth of folders in which benchmarks are searched
EDGE = 384  #: longest edge of images, in pixels


class Shelf:
    """A folder with a cache of the benchmarks and runs opened from it."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UsageError("there is no such folder", where=str(folder), hint="name a folder, or leave it out")
        self.folder = folder.resolve()
        self._runs = RunsFolder(self.folder)
        self._opened: dict[Path, tuple[tuple[int, ...], Any]] = {}
        self._lock = threading.Lock()

    def benches(self) -> dict[str, Path]:
        """Return the folders of all benchmarks by name, which is the path within the studio's folder."""
        return dict(sorted((path.relative_to(self.folder).as_posix(), path) for path in self._bench_folders()))

    def _bench_folders(self) -> Iterator[Path]:
        for depth in range(1, DEPTH + 1):
            for manifest in self.folder.glob("*/" * depth + MANIFEST_FILE):
                hidden = any(part.startswith(".") for part in manifest.relative_to(self.folder).parts)
                if not hidden and manifest.resolve().is_relative_to(self.folder):
                    yield manifest.parent

    def place(self, name: str) -> Path:
        """Return the folder of a benchmark."""
        path = self.benches().get(name)
        if path is None:
            raise UsageError(f"there is no benchmark {name[:80]!r} in this folder")
        return path

    def within(self, path: Path | str | None) -> str:
        """Return a path relative to the studio's folder."""
        return Path(path or "").relative_to(self.folder).as_posix()

    def bench(self, name: str) -> Benchmark:
        """Return a benchmark; it is read again if its manifest changed."""
        place = self.place(name)
        opened: Benchmark = self._open(place / MANIFEST_FILE, lambda: load(place))
        return opened

    def run(self, name: str) -> Run:
        """Return a run by its folder's name."""
        entry = next((e for e in self.board().entries if e.name == name), None)
        if entry is None:
            raise UsageError(f"there is no run {name[:80]!r} in this folder")
        opened: Run = self._open(entry.path / "run.json", lambda: load_run(entry.path))
        return opened

    def _open(self, file: Path, read: Any) -> Any:
        state = (about := file.stat()).st_mtime_ns, about.st_size, about.st_ino, about.st_ctime_ns
        with self._lock:
            if file not in self._opened or self._opened[file][0] != state:
                self._opened[file] = (state, read())
            return self._opened[file][1]

    def board(self) -> Board:
        """Return the headers of all runs in the folder."""
        return self._runs.look()

    def audit(self, name: str) -> dict[str, Any] | None:
        """Return the audit recorded beside a benchmark; None if there is none."""
        return recorded_audit(self.bench(name))

    def free(self, name: str, ending: str) -> Path:
        """Return an unused folder for a benchmark derived from this one: `name-ending`, with a number if it exists."""
        stem, number = f"{name}-{ending}", 2
        place = self.folder / stem
        while place.exists():
            place, number = self.folder / f"{stem}-{number}", number + 1
        return place

    def picture(self, name: str, reference: str) -> bytes:
        """Return an image of a benchmark as WebP; only images inside the folder are read."""
        bench = self.bench(name)
        if not self.has_pictures(bench):
            raise ImageError("missing-image", "the pictures are not in the studio's folder")
        return thumbnail(bench.images, reference, EDGE)

    def has_pictures(self, bench: Benchmark) -> bool:
        """Return whether the benchmark's images can be shown."""
        place = bench.images.location
        return bool(place) and Path(place).resolve().is_relative_to(self.folder)
