"""The Ray engine, and stages on it with a worker or a whole node killed while they work: the result of a calm one."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fault_scorers as scorers
import pyarrow as pa
import pytest
from fault_stages import Shout
from foils import foil_bench

from creperie.bench import Benchmark
from creperie.core import DataError
from creperie.engine import Engine, Held, Local, choose_engine, gather
from creperie.engine.pieces import WorkerLostError

pytestmark = pytest.mark.slow
MORE = pytest.mark.skipif("CREPERIE_ALL_FAULTS" not in os.environ, reason="long; set CREPERIE_ALL_FAULTS=1 to run it")
ONE = choose_engine("ray", workers=1)
CAPTIONS = Held(pa.table({"id": [*"abcdef"], "text": [f"a dog chases {i} red cats" for i in range(6)]}), 1)


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
    texts = [f"{tmp_path.name} {i:04d}" for i in range(600)]
    return foil_bench([(f"{t} dogs", f"{t} cats") for t in texts], "small")


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorers.register()
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))


@dataclass(frozen=True)
class Work:
    """The stages on an engine, by name."""

    bench: Benchmark
    out: Path

    @property
    def marks(self) -> Path:
        return self.out / "marks"

    def make(self, engine: Engine) -> Any:
        from fault_makers import SlowMaker

        from creperie.making import Captions, SourceCaption, make

        texts = [f"a dog chases {i} red cats over there" for i in range(30)]
        captions = Captions("c", tuple(SourceCaption(str(i), t) for i, t in enumerate(texts)))
        make(SlowMaker(marks=str(self.marks)), captions, self.out / "made", engine=engine)
        return {p.name: p.read_bytes() for p in sorted((self.out / "made").rglob("*")) if p.is_file()}

    def score(self, engine: Engine) -> Any:
        from creperie.scoring import ScoreOptions, score_all

        (run,) = score_all([self.bench], [f"slow:{self.marks}"], ScoreOptions(tasks=("blind",)), engine=engine)
        return run.results, run.table.column("text").to_pylist()

    def audit(self, engine: Engine) -> Any:
        from creperie.auditing import AttackerModels, audit, audit_document

        arms = AttackerModels(lm=f"slow:{self.marks}")
        return audit_document(audit(self.bench, ["lm-mean"], models=arms, engine=engine))

    def validate(self, engine: Engine) -> Any:
        from creperie.making import validate

        found = validate(self.bench, f"slow-speaker:{self.marks}", limit=40, engine=engine)
        return [asdict(v) for v in found.verdicts]


def begun(marks: Path) -> list[int]:
    """The processes that have begun batches, one a batch."""
    return [int(p.name.split("-")[2]) for p in sorted(marks.iterdir(), key=lambda p: p.name.split("-")[1])]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def kill_amid(marks: Path, batches: int, raylet: int | None = None) -> list[int]:
    """Hold the work once so many batches are begun, kill -9 the process of the last, or a raylet and its worker once
    another node's worker has begun, too; then let the others go on. Returns a list that will hold who was killed."""
    marks.mkdir()
    hold = marks.with_name("hold")
    hold.write_bytes(bytes(batches))
    killed: list[int] = []

    def victims(pids: list[int]) -> list[int]:
        if raylet is None:
            return pids[-1:] if len(pids) >= batches else []
        return next(([raylet, p] for p in pids if parent(p) == raylet and len(set(pids)) > 1), [])

    def watch() -> None:
        end = time.monotonic() + 200
        try:
            while time.monotonic() < end and not killed:
                time.sleep(0.02)
                killed.extend(victims(begun(marks)))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        finally:
            hold.unlink()

    threading.Thread(target=watch, daemon=True).start()
    return killed


@pytest.mark.usefixtures("cluster")
def test_ray_returns_the_same_rows_and_opens_a_stage_once_a_worker(tmp_path: Path) -> None:
    """Two workers on one core: the second has no place, and nobody waits for it."""
    on_ray = gather(Shout(marks=str(tmp_path)), CAPTIONS, engine=choose_engine("ray", workers=2))
    assert on_ray == gather(Shout(), CAPTIONS)
    assert len(list(tmp_path.glob("opened-*"))) == 1
    assert len(list(tmp_path.glob("done-*"))) == len(CAPTIONS)


@pytest.mark.usefixtures("cluster")
def test_errors_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^caption f: this caption cannot be shouted; whisper it$"):
        gather(Shout(bad_at="f"), CAPTIONS, engine=ONE)
    with pytest.raises(DataError, match=r"^[^\n]*: no model here$"):
        gather(Shout(marks=str(tmp_path / "nowhere")), CAPTIONS, engine=ONE)
    with pytest.raises(WorkerLostError, match="3 times in a row a worker was killed"):
        gather(Shout(dies_at="c"), CAPTIONS, engine=ONE)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("stage", ["make", "score", "audit", "validate"])
def test_a_killed_worker_costs_only_its_batch(bench: Benchmark, tmp_path: Path, stage: str) -> None:
    marks = tmp_path / "marks"
    killed = kill_amid(marks, 3)
    found = getattr(Work(bench, tmp_path), stage)(ONE)
    pids = begun(marks)
    assert {*pids} > {*killed} > set(), "another worker went on"
    assert os.getpid() not in pids, "the work is done by workers, not here"
    assert found == calm(stage, bench, tmp_path)
    assert len(pids) == len(begun(tmp_path / "again" / "marks")) + 1


@pytest.mark.parametrize("stage", ["make", pytest.param("score", marks=MORE), pytest.param("audit", marks=MORE)])
def test_a_killed_node_costs_only_its_batches(cluster: Any, bench: Benchmark, tmp_path: Path, stage: str) -> None:
    """The second raylet is killed once workers on both nodes are at work, and its worker with it."""
    marks = tmp_path / "marks"
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    raylet = next(p for kind, ps in node.all_processes.items() if kind == "raylet" for p in ps).process.pid
    killed = kill_amid(marks, 2, raylet)
    found = getattr(Work(bench, tmp_path), stage)(choose_engine("ray", workers=2))
    assert killed, "the work ended before the node was killed"
    assert found == calm(stage, bench, tmp_path)
    cluster.remove_node(node)


def calm(stage: str, bench: Benchmark, tmp_path: Path) -> Any:
    """The stage in this process, undisturbed, with a store of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("CREPERIE_CACHE", str(tmp_path / "calm"))
    (tmp_path / "again" / "marks").mkdir(parents=True)
    found = getattr(Work(bench, tmp_path / "again"), stage)(Local())
    patch.undo()
    return found
