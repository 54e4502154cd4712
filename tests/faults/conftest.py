"""Ways to break things: processes that are stopped half-way, disks that are small or cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: The command line with a slow maker and a slow model.
COMMAND = """
import signal
import sys
import fault_makers as makers
import fault_scorers as scorers
from creperie.cli import main
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
    makers.register()
    scorers.register()
    main(sys.argv[1:])
"""


@pytest.fixture
def creperie(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start `creperie …` as a process of its own."""
    script = tmp_path / "creperie_with_slow_maker.py"
    script.write_text(COMMAND)
    environment = os.environ | {"CREPERIE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def start(*args: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, str(script), *args], text=True, env=environment, **pipes)

    return start


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool], seconds: float = 280) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)

    return wait


@contextmanager
def _mounted(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no small disk here: mount says {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 kB. Root may mount one; others skip."""
    with _mounted(tmp_path / "disk", "96k") as place:
        yield place


@pytest.fixture
def remount() -> Callable[[Path, str], None]:
    """Mount a small disk again with other options, such as `size=8m` or `ro`."""

    def again(place: Path, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)

    return again
