"""Every stage that runs on Ray, with a worker or a whole node killed while it works: the result of a calm one."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fault_scorers as scorers
import pytest

from creperie.bench import Benchmark, Item, from_items
from creperie.engine import Engine, Local, choose_engine

pytestmark = pytest.mark.slow
#: A minute each; asked for by name.
MORE = pytest.mark.skipif("CREPERIE_ALL_FAULTS" not in os.environ, reason="long; set CREPERIE_ALL_FAULTS=1 to run it")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A head with one core; nodes are added by the tests. Workers know the slow models."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    patch = pytest.MonkeyPatch()
    patch.setenv("CREPERIE_CACHE", str(tmp_path_factory.mktemp("workers")))  # theirs, for all tests
    for name, value in (("initial_delay_ms", 0), ("period_ms", 500), ("failure_threshold", 4), ("timeout_ms", 500)):
        patch.setenv(f"RAY_health_check_{name}", str(value))
    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **small})
    ray.shutdown()  # of whatever an earlier test left
    hook = {"worker_process_setup_hook": "fault_scorers.register"}
    ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=hook)
    yield made
    ray.shutdown()
    made.shutdown()
    patch.undo()


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    """Captions that no other test has: what workers have scored is kept."""
    texts = [f"{tmp_path.name} {i:04d}" for i in range(1200)]
    items = [Item(str(i), "s", (), (f"{t} dogs", f"{t} cats"), ((True, False),)) for i, t in enumerate(texts)]
    return from_items("small", items)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorers.register()
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))


@dataclass(frozen=True)
class Work:
    """A stage on an engine. `seconds` is how long it takes for every batch."""

    bench: Benchmark
    marks: Path
    out: Path

    def make(self, engine: Engine, seconds: float) -> Any:
        from fault_makers import SlowMaker

        from creperie.making.generation import make
        from creperie.making.source import Captions, SourceCaption

        texts = [f"a dog chases {i} red cats over there" for i in range(60)]
        captions = Captions("c", tuple(SourceCaption(str(i), t) for i, t in enumerate(texts)))
        make(SlowMaker(seconds=seconds, marks=str(self.marks)), captions, self.out / "made", engine=engine)
        return {p.name: p.read_bytes() for p in sorted((self.out / "made").rglob("*")) if p.is_file()}

    def score(self, engine: Engine, seconds: float) -> Any:
        from creperie.scoring import ScoreOptions, score_all

        slow = f"slow:{self.marks}?seconds={seconds}"
        (run,) = score_all([self.bench], [slow], ScoreOptions(tasks=("blind",)), engine=engine)
        return run.results, run.table.column("text").to_pylist()

    def audit(self, engine: Engine, seconds: float) -> Any:
        from creperie.auditing.battery import AttackerModels
        from creperie.auditing.document import audit_document
        from creperie.auditing.run import audit

        arms = AttackerModels(lm=f"slow:{self.marks}?seconds={seconds}")
        found = json.dumps(audit_document(audit(self.bench, ["lm-mean"], models=arms, engine=engine)))
        return json.loads(found.replace(f"{self.marks.name}?seconds={seconds}", "MODEL"))  # verdicts name the model

    def validate(self, engine: Engine, seconds: float) -> Any:
        from creperie.making.llm.validate import validate

        found = validate(self.bench, f"slow-speaker:{self.marks}?seconds={seconds}", limit=600, engine=engine)
        return [asdict(v) for v in found.verdicts]


def begun(marks: Path) -> list[int]:
    """The processes that have begun batches, one a batch."""
    return [int(p.name.split("-")[2]) for p in sorted(marks.iterdir(), key=lambda p: p.name.split("-")[1])]


def killed_in_the_middle(marks: Path, victim: Callable[[list[int]], int | None]) -> threading.Event:
    """Kill -9 for a process, as soon as there is a victim among those at work."""
    done = threading.Event()

    def watch() -> None:
        end = time.monotonic() + 280
        while time.monotonic() < end and not done.is_set():
            if (pid := victim(begun(marks))) is not None:
                os.kill(pid, signal.SIGKILL)
                done.set()
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    return done


@pytest.mark.parametrize("stage", ["make", "score", "audit", "validate"])
def test_a_killed_worker_costs_only_its_batch(cluster: Any, bench: Benchmark, tmp_path: Path, stage: str) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    work = Work(bench, marks, tmp_path)
    dead = killed_in_the_middle(marks, lambda pids: pids[-1] if len(pids) >= 3 else None)
    found = getattr(work, stage)(choose_engine("ray", workers=1), 0.3)
    assert dead.is_set(), "the work ended before a worker was killed"
    pids = begun(marks)
    assert len(set(pids)) > 1, "another worker went on"
    assert os.getpid() not in pids, "the work is done by workers, not here"
    assert found == calm(stage, bench, tmp_path)


@pytest.mark.parametrize("stage", ["make", pytest.param("score", marks=MORE), pytest.param("audit", marks=MORE)])
def test_a_killed_node_costs_only_its_batches(cluster: Any, bench: Benchmark, tmp_path: Path, stage: str) -> None:
    """The second raylet is killed once workers on both nodes are at work; its worker dies with it."""
    marks = tmp_path / "marks"
    marks.mkdir()
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    raylet = next(p for kind, ps in node.all_processes.items() if kind == "raylet" for p in ps).process.pid
    dead = killed_in_the_middle(marks, lambda pids: raylet if len(set(pids)) >= 2 and len(pids) >= 4 else None)
    found = getattr(Work(bench, marks, tmp_path), stage)(choose_engine("ray", workers=2), 0.4)
    assert dead.is_set(), "the work ended before the node was killed"
    assert found == calm(stage, bench, tmp_path)
    cluster.remove_node(node)


def calm(stage: str, bench: Benchmark, tmp_path: Path) -> Any:
    """The stage in this process, undisturbed, with a store of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("CREPERIE_CACHE", str(tmp_path / "calm"))
    (tmp_path / "calm-marks").mkdir()
    (tmp_path / "again").mkdir()
    found = getattr(Work(bench, tmp_path / "calm-marks", tmp_path / "again"), stage)(Local(), 0.0)
    patch.undo()
    return found
