"""A driver on Ray that is told to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


DRIVER = """
import sys, pyarrow as pa
from creperie.cli import main
import creperie.cli.app as app
import click
from creperie.engine import Held, choose_engine, gather
from fault_stages import Shout

@click.command()
def work():
    table = pa.table({"id": [str(i) for i in range(40)], "text": [f"a dog chases {i} red cats" for i in range(40)]})
    gather(Shout(marks=sys.argv[1], seconds=0.3), Held(table, 1), engine=choose_engine("ray", workers=1))

app.cli = work
main([])
"""


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_driver_on_ray_that_is_told_to_stop_says_so_and_leaves_no_worker(
    tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: driver.poll() is not None or len(list(tmp_path.glob("done-*"))) >= 3)
    driver.send_signal(signal.SIGTERM)
    _, told = driver.communicate(timeout=280)
    assert driver.returncode == 130, told
    assert "creperie: interrupted; run the same command to continue" in told
    (worker,) = (p.name.split("-")[1] for p in tmp_path.glob("opened-*"))
    wait_for(lambda: not is_alive(worker))
