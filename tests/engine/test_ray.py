"""The Ray engine on a Ray of two cores: the same bytes, and what happens when its workers or driver die."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.core.errors import DataError
from creperie.engine import Held, choose_engine, gather, map_batches

pytestmark = pytest.mark.slow
RAY = choose_engine("ray", workers=2)


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@pytest.mark.usefixtures("small_ray")
def test_ray_writes_the_same_bytes_and_opens_a_stage_once_a_worker(captions: pa.Table, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    map_batches(Shout(), Held(captions, 5), tmp_path / "plain")
    map_batches(Shout(marks=str(marks)), Held(captions, 5), tmp_path / "out", engine=RAY)
    assert content(tmp_path / "out") == content(tmp_path / "plain")
    assert 1 <= len(list(marks.glob("opened-*"))) <= 2
    assert len(list(marks.glob("done-*"))) == 10


@pytest.mark.usefixtures("small_ray")
def test_a_killed_ray_worker_is_replaced(captions: pa.Table, tmp_path: Path) -> None:
    stage = Shout(marks=str(tmp_path), dies_at="23")
    done = map_batches(stage, Held(captions, 5), tmp_path / "out", engine=RAY)
    assert (tmp_path / "died").exists()
    assert done.table == gather(Shout(), captions)


@pytest.mark.usefixtures("small_ray")
def test_bad_data_is_told_in_one_line_and_the_rest_goes_on(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="caption 49: this caption cannot be shouted; whisper it"):
        map_batches(Shout(bad_at="49"), Held(captions, 5), tmp_path / "out", engine=RAY)
    assert map_batches(Shout(), Held(captions, 5), tmp_path / "out").table == gather(Shout(), captions)
    with pytest.raises(DataError, match="no model here"):
        gather(Shout(marks=str(tmp_path / "nowhere")), Held(captions, 5), engine=RAY)


DRIVER = """
import sys, pyarrow as pa
from creperie.engine import Held, choose_engine, map_batches
from fault_stages import Shout
table = pa.table({"id": [str(i) for i in range(50)], "text": [f"a dog chases {i} red cats" for i in range(50)]})
stage = Shout(seconds=0.2)
map_batches(stage, Held(table, 1), sys.argv[1], engine=choose_engine("ray", workers=2))
"""


def test_a_killed_driver_goes_on_without_ray(captions: pa.Table, tmp_path: Path) -> None:
    """Started by itself: a Ray of its own, which ends with its driver."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path / "out")])
    parts, end = tmp_path / ".out.parts", time.monotonic() + 280
    while len(list(parts.glob("part-*.parquet"))) < 3:
        assert time.monotonic() < end, "waited in vain"
        assert driver.poll() is None, "the driver ended too early"
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = map_batches(Shout(), Held(captions, 1), tmp_path / "out")
    assert done.kept >= 3
    assert done.table == gather(Shout(), captions)
