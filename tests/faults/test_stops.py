"""Processes that are stopped half-way, and two that want the same folder: then the result of an undisturbed one."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_makers import SlowMaker

from creperie.making import make, read_captions

pytestmark = pytest.mark.slow
Start = Callable[..., "subprocess.Popen[str]"]
Wait = Callable[[Callable[[], bool]], None]


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.txt"
    path.write_text("".join(f"a dog chases {i} red cats over there\n" for i in range(50)))
    return path


@pytest.fixture
def undisturbed(captions: Path, tmp_path: Path) -> dict[str, bytes]:
    make(SlowMaker(), read_captions(captions), tmp_path / "calm" / "mine")
    return content(tmp_path / "calm" / "mine")


@pytest.mark.parametrize(
    ("stop", "workers"),
    [(signal.SIGKILL, "1"), (signal.SIGKILL, "2"), (signal.SIGINT, "2"), (signal.SIGTERM, "1")],
    ids=lambda given: getattr(given, "name", given),
)
def test_a_stopped_making_goes_on(
    creperie: Start,
    captions: Path,
    undisturbed: dict[str, bytes],
    wait_for: Wait,
    tmp_path: Path,
    stop: signal.Signals,
    workers: str,
) -> None:
    out, marks = tmp_path / "mine", tmp_path / "marks"
    marks.mkdir()
    common = ("make", "test:slow", "--captions", str(captions), "--out", str(out), "--workers", workers)
    first = creperie(*common, "--others", f"0.3:{marks}")
    parts = tmp_path / ".mine.making"
    wait_for(lambda: len(list(parts.glob("part-*.parquet"))) >= 3)
    first.send_signal(stop)
    _, told = first.communicate(timeout=280)
    if stop != signal.SIGKILL:
        assert first.returncode == 130
        assert told.splitlines()[-1] == "creperie: interrupted; run the same command to continue"
        assert "Traceback" not in told
    kept = {p.name for p in parts.glob("part-*.parquet")}
    assert len(kept) >= 3
    assert not out.exists()
    second = creperie(*common, "--others", f"0:{marks}")
    _, told = second.communicate(timeout=280)
    assert second.returncode == 0, told
    assert content(out) == undisturbed
    begun = Counter(p.name.split("-")[0] for p in marks.iterdir())
    done_before = {str(1 + 5 * int(name[5:11])) for name in kept}
    assert all(begun[first_caption] == 1 for first_caption in done_before), "a kept chunk was made again"
    assert len(begun) == 10


def test_two_processes_want_one_folder(
    creperie: Start, captions: Path, undisturbed: dict[str, bytes], wait_for: Wait, tmp_path: Path
) -> None:
    common = ("make", "test:slow", "--captions", str(captions), "--out", str(tmp_path / "mine"), "--workers", "1")
    first = creperie(*common, "--others", "0.5:")
    wait_for(lambda: (tmp_path / ".mine.making" / "job.json").exists())
    second = creperie(*common)
    _, told = second.communicate(timeout=280)
    assert second.returncode == 2
    assert told.strip().endswith("another process is making this; wait for it, or write to another folder")
    assert first.wait(280) == 0
    first.communicate()
    assert content(tmp_path / "mine") == undisturbed
