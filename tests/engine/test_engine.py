"""map_batches: the same bytes whoever works, going on after a death, one writer at a time."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.core.errors import DataError, UsageError
from creperie.engine import Engine, Held, Local, choose_engine, gather, map_batches
from creperie.engine.engines import WorkerLostError
from creperie.engine.parts import load_parts

ENGINES = {"one": Local(1), "threads": Local(2, "threads"), "processes": Local(2)}


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_every_engine_writes_the_same_bytes(engine: Engine, captions: pa.Table, tmp_path: Path) -> None:
    map_batches(Shout(), Held(captions, 7), tmp_path / "plain")
    done = map_batches(Shout(), Held(captions, 7), tmp_path / "out", engine=engine)
    assert done.computed == 8
    assert content(tmp_path / "out") == content(tmp_path / "plain")
    assert done.table.column("id").to_pylist() == captions.column("id").to_pylist()
    assert done.table.column("text")[49].as_py() == "A DOG CHASES 49 RED CATS"
    assert not (tmp_path / ".out.parts").exists()


def test_results_in_memory_are_in_order(captions: pa.Table) -> None:
    found = gather(Shout(), Held(captions, 7), engine=Local(2, "threads"))
    assert found.column("id").to_pylist() == captions.column("id").to_pylist()
    assert gather(Shout(), captions.slice(0, 0)).num_rows == 0


def test_a_stage_is_opened_once_a_worker(captions: pa.Table, tmp_path: Path) -> None:
    gather(Shout(marks=str(tmp_path)), Held(captions, 5), engine=Local(2))
    assert 1 <= len(list(tmp_path.glob("opened-*"))) <= 2


def test_a_killed_worker_costs_only_its_piece(captions: pa.Table, tmp_path: Path) -> None:
    stage = Shout(marks=str(tmp_path), dies_at="23")
    done = map_batches(stage, Held(captions, 5), tmp_path / "out", engine=Local(2))
    assert (tmp_path / "died").exists()
    assert done.table == gather(Shout(), captions)


def test_workers_that_always_die_are_given_up_with_a_word(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match="fewer `workers=`"):
        map_batches(Shout(dies_at="0"), Held(captions.slice(0, 10), 5), tmp_path / "out", engine=Local(2))


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_stage_that_cannot_be_opened_says_why(engine: Engine, captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no model here"):
        gather(Shout(marks=str(tmp_path / "nowhere")), Held(captions, 5), engine=engine)


def test_finished_work_is_not_done_again(captions: pa.Table, tmp_path: Path) -> None:
    map_batches(Shout(), Held(captions, 7), tmp_path / "out")
    again = map_batches(Shout(bad_at="0"), Held(captions, 7), tmp_path / "out")
    assert (again.computed, again.kept) == (0, 8)
    with pytest.raises(UsageError, match="another source"):
        map_batches(Shout(), Held(captions.slice(1), 7), tmp_path / "out")
    assert map_batches(Shout(), Held(captions.slice(1), 7), tmp_path / "out", force=True).computed == 7


def test_work_goes_on_where_bad_data_stopped_it(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="caption 23: this caption cannot be shouted; whisper it"):
        map_batches(Shout(bad_at="23"), Held(captions, 5), tmp_path / "out")
    assert len(list((tmp_path / ".out.parts").glob("part-*.parquet"))) == 4
    assert map_batches(Shout(), Held(captions, 5), tmp_path / "out").kept == 4


def test_damaged_parts_are_told_or_made_again(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        map_batches(Shout(bad_at="23"), Held(captions, 5), tmp_path / "out")
    torn, flipped = (tmp_path / ".out.parts" / f"part-00000{k}.parquet" for k in (1, 2))
    torn.write_bytes(torn.read_bytes()[:-20])
    damaged = bytearray(flipped.read_bytes())
    damaged[40] ^= 0xFF
    flipped.write_bytes(bytes(damaged))
    done = map_batches(Shout(), Held(captions, 5), tmp_path / "out")
    assert done.kept == 2
    assert done.table == gather(Shout(), captions)
    done.parts.path(3).write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"part-000003\.parquet: checksum mismatch"):
        load_parts(tmp_path / "out")


def test_another_job_in_the_way_is_told(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        map_batches(Shout(bad_at="23"), Held(captions, 5), tmp_path / "out")
    with pytest.raises(UsageError, match="interrupted work with another rows, source"):
        map_batches(Shout(), Held(captions.slice(3), 5), tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="did not write"):
        map_batches(Shout(), captions, tmp_path / "mine", force=True)


def test_two_processes_do_not_write_one_folder(captions: pa.Table, tmp_path: Path) -> None:
    (tmp_path / ".out.parts").mkdir()
    with (tmp_path / ".out.parts" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process is writing this"):
            map_batches(Shout(), captions, tmp_path / "out")


DRIVER = """
import sys, pyarrow as pa
from creperie.engine import Held, Local, map_batches
from fault_stages import Shout
if __name__ == "__main__":
    table = pa.table({"id": [str(i) for i in range(50)], "text": [f"a dog chases {i} red cats" for i in range(50)]})
    map_batches(Shout(marks=sys.argv[1], seconds=float(sys.argv[3])), Held(table, 1), sys.argv[2], engine=Local(2))
"""


def test_a_killed_driver_leaves_no_orphans_and_goes_on(captions: pa.Table, tmp_path: Path) -> None:
    marks, script = tmp_path / "marks", tmp_path / "driver.py"
    marks.mkdir()
    script.write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, str(script), str(marks), str(tmp_path / "out"), "0.1"])
    parts = tmp_path / ".out.parts"
    wait_for(lambda: len(list(parts.glob("part-*.parquet"))) >= 5)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    workers = [int(p.name.split("-")[1]) for p in marks.glob("opened-*")]
    wait_for(lambda: not any(is_alive(pid) for pid in workers))
    done = map_batches(Shout(), Held(captions, 1), tmp_path / "out")
    assert done.kept >= 5
    assert done.computed == 50 - done.kept
    assert done.table == gather(Shout(), captions)


def wait_for(condition: object, seconds: float = 240) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_engines_by_name() -> None:
    assert choose_engine("local", workers=2) == Local(2)
    with pytest.raises(UsageError, match="did you mean 'ray'"):
        choose_engine("rays")
    with pytest.raises(UsageError, match="`engine='ray'`"):
        choose_engine("local", address="auto")
