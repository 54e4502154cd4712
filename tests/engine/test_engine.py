"""Engines: the same rows whoever works, dead workers replaced, none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.core import DataError, UsageError
from creperie.engine import Engine, Held, Local, choose_engine, gather

ENGINES = {"one": Local(1), "processes": Local(2)}


def test_results_are_in_order(captions: pa.Table) -> None:
    found = gather(Shout(), Held(captions, 7), engine=Local(2))
    assert found.column("id").to_pylist() == captions.column("id").to_pylist()
    assert found.column("text")[49].as_py() == "A DOG CHASES 49 RED CATS"
    assert found == gather(Shout(), captions)
    assert gather(Shout(), captions.slice(0, 0)).num_rows == 0


def test_a_stage_is_opened_once_a_worker(captions: pa.Table, tmp_path: Path) -> None:
    gather(Shout(marks=str(tmp_path)), Held(captions, 5), engine=Local(2))
    assert 1 <= len(list(tmp_path.glob("opened-*"))) <= 2


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_stage_that_cannot_be_opened_says_why(engine: Engine, captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no model here"):
        gather(Shout(marks=str(tmp_path / "nowhere")), Held(captions, 5), engine=engine)


DRIVER = """
import sys, pyarrow as pa
from creperie.engine import Held, Local, gather
from fault_stages import Shout
if __name__ == "__main__":
    table = pa.table({"id": [str(i) for i in range(50)], "text": [f"a dog chases {i} red cats" for i in range(50)]})
    gather(Shout(marks=sys.argv[1], seconds=0.1), Held(table, 1), engine=Local(2))
"""


def test_a_killed_driver_leaves_no_orphans(tmp_path: Path) -> None:
    marks, script = tmp_path / "marks", tmp_path / "driver.py"
    marks.mkdir()
    script.write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, str(script), str(marks)])
    wait_for(lambda: len(list(marks.glob("done-*"))) >= 2)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    workers = [int(p.name.split("-")[1]) for p in marks.glob("opened-*")]
    wait_for(lambda: not any(is_alive(pid) for pid in workers))


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
