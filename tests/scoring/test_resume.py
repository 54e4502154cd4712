"""Killed at any point, the next run repeats nothing that was finished and ends with the same scores, to the bit."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from foils import foil_items
from PIL import Image

from creperie.bench import Item, choice, from_items, open_store, save
from creperie.scoring.segments import SegmentFolder

# A process that loads a model once and then, for every line it reads, forks a child that scores; the child writes down
# what it encodes before it does so, and is slow enough to be killed in the middle.
WORKER = """
import hashlib, os, sys, time
import numpy as np
import torch
torch.set_num_threads(1)
from creperie.bench import load
from creperie.models import load_model
from creperie.scoring import ScoreOptions, score

folder, bench, out = sys.argv[1:4]
model = load_model(f"hf:{folder}", device="cpu")
bench = load(bench)

class Logged:  # holds nothing of its own: what an object holds decides whether stored results are its own
    def __getattr__(self, name):
        return getattr(model, name)
    def note(self, kind, parts):
        log = os.open(os.environ["LOG"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for part in parts:
            os.write(log, f"{kind} {hashlib.sha256(part).hexdigest()}\\n".encode())
        os.close(log)
        time.sleep(float(os.environ["DELAY"]))
    def forward_texts(self, prepared):
        self.note("text", [t.ids.tobytes() for t in prepared])
        return model.forward_texts(prepared)
    def forward_images(self, prepared):
        self.note("image", [p.tobytes() for p in prepared])
        return model.forward_images(prepared)
    # stored results are checked by computing a few again, one at a time; everything else goes by the batches above
    def encode_texts(self, texts):
        assert len(texts) == 1
        return model.encode_texts(texts)
    def encode_images(self, images):
        assert len(images) == 1
        return model.encode_images(images)

print("loaded", flush=True)
for line in sys.stdin:
    cache, log, delay = line.split()
    child = os.fork()
    if child == 0:
        os.environ.update(CREPERIE_CACHE=cache, LOG=log, DELAY=delay)
        score(bench, Logged(), tasks=["itt", "tot"], options=ScoreOptions(batch_size=4), out=out)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Worker:
    """The process above, and what its children wrote down."""

    def __init__(self, folder: Path, bench: Path, out: Path, logs: Path) -> None:
        self.logs = logs
        self.count = 0
        environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORKER, str(folder), str(bench), str(out)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._line() == "loaded"

    def _line(self) -> str:
        return self.process.stdout.readline().strip()

    def score(self, cache: Path, delay: float = 0.0, kill_after: float | None = None) -> tuple[int, list[str]]:
        """Score in a child that is killed after so many seconds of encoding; its status and what it began."""
        self.count += 1
        log = self.logs / f"{self.count}.log"
        log.touch()
        self.process.stdin.write(f"{cache} {log} {delay}\n")
        self.process.stdin.flush()
        child = int(self._line())
        if kill_after is not None:
            deadline = time.monotonic() + 20
            while not log.stat().st_size and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._line()), log.read_text().splitlines()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


@pytest.fixture
def bench_folder(tmp_path: Path) -> Path:
    """Forty images and eighty captions of many lengths, no two alike."""
    pictures = tmp_path / "many"
    pictures.mkdir()
    rng = np.random.default_rng(0)
    for i in range(40):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(pictures / f"{i}.png")
    items = foil_items(
        [(f"{'very ' * (i % 9)}big dog {i}", f"{'very ' * (i % 9)}small dog {i}") for i in range(40)],
        subset="a",
        images="{}.png",
    )
    # with two positives the captions are compared with each other too
    triples = [Item(i.id, i.subset, i.images, (*i.captions, f"{i.captions[0]} again"), choice(2, 1)) for i in items]
    save(from_items("many", triples, images=open_store(str(pictures))), tmp_path / "bench")
    return tmp_path / "bench"


def stored(cache: Path) -> dict[str, set[bytes]]:
    """The keys that the store serves, by kind."""
    found: dict[str, set[bytes]] = {"text": set(), "image": set()}
    for kind in found:
        for folder in cache.glob(f"store/*/{kind}"):
            for segment in SegmentFolder(folder).segments():
                for block in segment.blocks:
                    if block.sound:
                        found[kind] |= {k.tobytes() for k in block.keys}
    return found


@pytest.mark.slow
def test_killed_at_ten_random_points(tmp_path: Path, bench_folder: Path) -> None:
    from creperie.testing.tiny import tiny_clip

    tiny_clip(tmp_path / "clip")
    (tmp_path / "logs").mkdir()
    worker = Worker(tmp_path / "clip", bench_folder, tmp_path / "runs", tmp_path / "logs")
    try:
        status, whole = worker.score(tmp_path / "whole")
        assert status == 0
        assert len(whole) == len(set(whole)) == 160, "each of 120 captions and 40 images once"
        (run,) = (tmp_path / "runs").iterdir()
        expected = pq.read_table(run / "scores.parquet")
        (run / "scores.parquet").unlink()
        _check_kills(worker, tmp_path / "killed", whole)
        assert pq.read_table(run / "scores.parquet").equals(expected), "identical to the bit"
        assert worker.score(tmp_path / "killed") == (0, []), "and then there is nothing left to do"
    finally:
        worker.close()


def _check_kills(worker: Worker, cache: Path, whole: list[str]) -> None:
    rng = random.Random(7)
    begun: list[str] = []
    finished = stored(cache)
    kills = 0
    for _ in range(10):
        status, log = worker.score(cache, delay=0.02, kill_after=rng.uniform(0.0, 0.09))
        kills += status == signal.SIGKILL
        now = stored(cache)
        # what a child began and did not finish is lost; everything else it began must be new to the store
        for kind in ("text", "image"):
            fresh = len(now[kind]) - len(finished[kind])
            assert sum(line.startswith(kind) for line in log) - 4 <= fresh <= len(log)
            assert finished[kind] <= now[kind]
        begun += log
        finished = now
    assert kills == 10
    assert 0 < len(finished["text"]) + len(finished["image"]) < 160, "killed in the middle of the work"
    status, log = worker.score(cache)
    assert status == 0
    begun += log
    assert set(begun) == set(whole)
    repeated = len(begun) - len(set(begun))
    assert repeated <= 4 * kills, "at most the one batch that was under way when the process died"
    left = 160 - len(finished["text"]) - len(finished["image"])
    assert len(log) == left, "the last run computes exactly what was not finished"


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path, bench_folder: Path) -> None:
    from creperie.testing.tiny import tiny_clip

    tiny_clip(tmp_path / "clip")
    code = (
        "import sys, torch; torch.set_num_threads(1)\n"
        "from creperie.scoring import ScoreOptions, score\n"
        "how = ScoreOptions(tasks=('itt', 'tot'), device='cpu', batch_size=4)\n"
        "score(sys.argv[1], f'hf:{sys.argv[2]}', options=how, out=sys.argv[3])\n"
    )
    environment = os.environ | {"CREPERIE_CACHE": str(tmp_path / "shared"), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(bench_folder), str(tmp_path / "clip"), str(tmp_path / f"runs{i}")],
            env=environment,
        )
        for i in range(2)
    ]
    assert [p.wait(200) for p in started] == [0, 0]
    tables = [pq.read_table(next((tmp_path / f"runs{i}").iterdir()) / "scores.parquet") for i in range(2)]
    for name in ("image_text", "text_text"):
        a, b = (np.array(t.column(name).to_pylist()) for t in tables)
        np.testing.assert_allclose(a, b, atol=1e-6)
