"""A Ray node that dies in the middle of the work, and a driver on Ray that is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.engine import Held, choose_engine, gather

pytestmark = pytest.mark.slow


@pytest.fixture
def captions() -> pa.Table:
    texts = [f"a dog chases {i} red cats" for i in range(40)]
    return pa.table({"id": [str(i) for i in range(40)], "text": texts})


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without cores of its own for the work, and two raylets with one core each, all on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_health_check_initial_delay_ms", "0")
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_health_check_failure_threshold", "4")
    monkeypatch.setenv("RAY_health_check_timeout_ms", "500")
    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **small})
    extra = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    ray.shutdown()  # of whatever an earlier test left
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield extra
    ray.shutdown()
    cluster.shutdown()


def test_a_killed_ray_node_costs_only_its_pieces(two_nodes: Any, captions: pa.Table, tmp_path: Path) -> None:
    """SIGKILL for the second raylet once both workers are at work; its worker dies with it."""
    marks = tmp_path / "marks"
    marks.mkdir()
    raylet = next(p for kind, ps in two_nodes.all_processes.items() if kind == "raylet" for p in ps).process.pid
    killed = threading.Event()

    def kill() -> None:
        while len(list(marks.glob("opened-*"))) < 2 or len(list(marks.glob("done-*"))) < 6:
            time.sleep(0.05)
            if killed.is_set():
                return
        os.kill(raylet, signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    stage = Shout(marks=str(marks), seconds=0.4)
    table = gather(stage, Held(captions, 1), engine=choose_engine("ray", workers=2))
    assert killed.is_set(), "the work ended before the node was killed"
    assert table == gather(Shout(), captions)
    begun = [p.name.split("-")[1] for p in marks.glob("done-*")]
    assert set(begun) == {str(i) for i in range(40)}
    killed.set()


DRIVER = """
import sys, pyarrow as pa
from creperie.cli.app import main
import creperie.cli.app as app
import click
from creperie.engine import Held, choose_engine, gather
from fault_stages import Shout

@click.command()
def work():
    table = pa.table({"id": [str(i) for i in range(40)], "text": [f"a dog chases {i} red cats" for i in range(40)]})
    gather(Shout(marks=sys.argv[1], seconds=0.3), Held(table, 1), engine=choose_engine("ray", workers=2))

app.cli = work
main([])
"""


def test_a_driver_on_ray_that_is_told_to_stop_says_so(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 280
    while len(list(tmp_path.glob("done-*"))) < 3:
        assert time.monotonic() < end, "waited in vain"
        assert driver.poll() is None, driver.communicate()[1]
        time.sleep(0.05)
    driver.send_signal(signal.SIGTERM)
    _, told = driver.communicate(timeout=280)
    assert driver.returncode == 130, told
    assert "creperie: interrupted; run the same command to continue" in told
