"""Full disks, and disks that cannot be written; clocks that jump and damaged pages are in test_stages.py."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from foils import foil_bench

from creperie.bench import save
from creperie.scoring import score

Start = Callable[..., "subprocess.Popen[str]"]
Remount = Callable[[Path, str], None]


@pytest.mark.slow
def test_the_command_says_what_to_do_about_a_full_disk(
    creperie: Start, small_disk: Path, remount: Remount, tmp_path: Path
) -> None:
    source = tmp_path / "captions.txt"
    source.write_text("".join(f"a dog chases {i} red cats over there\n" for i in range(300)))
    common = ("make", "test:slow", "--captions", str(source), "--workers", "1", "--out")
    process = creperie(*common, str(small_disk / "mine"))
    _, told = process.communicate(timeout=280)
    assert process.returncode == 2
    assert "No space left on device; make room, then run the same command to continue" in told
    assert "Traceback" not in told
    remount(small_disk, "size=32m")
    for out in (small_disk / "mine", tmp_path / "mine"):
        process = creperie(*common, str(out))
        _, told = process.communicate(timeout=280)
        assert process.returncode == 0, told
    same = [(p / "data" / "test-00000-of-00001.parquet").read_bytes() for p in (small_disk / "mine", tmp_path / "mine")]
    assert same[0] == same[1]


def test_a_place_that_cannot_be_written_is_told(creperie: Start, small_disk: Path, remount: Remount) -> None:
    remount(small_disk, "ro")
    source = small_disk.parent / "captions.txt"
    source.write_text("a dog chases a cat\n")
    process = creperie("make", "test:slow", "--captions", str(source), "--out", str(small_disk / "mine"))
    _, told = process.communicate(timeout=280)
    assert process.returncode == 2
    assert told.strip().endswith("Read-only file system; choose a place that can be written")
    assert told.count("\n") == 1


# -- scoring ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    save(foil_bench([(f"{i} dogs", f"{i} cats and dogs") for i in range(30)], "small"), tmp_path / "small")
    return tmp_path / "small"


def test_scoring_with_a_full_cache_stops_and_goes_on(
    small_disk: Path, bench: Path, remount: Remount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be kept is not computed: hours of encoding would be lost with the next fault."""
    calm = score(bench, "blind:length")
    fill_up(small_disk / "filler")
    monkeypatch.setenv("CREPERIE_CACHE", str(small_disk / "cache"))
    with pytest.raises(OSError) as told:
        score(bench, "blind:length")
    assert told.value.errno == errno.ENOSPC
    remount(small_disk, "size=8m")
    assert score(bench, "blind:length").table == calm.table


def fill_up(path: Path) -> None:
    """Write until nothing fits any more."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 512):
            continue
