"""A small benchmark with pictures and awkward captions, and runs of models that answer by content."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.bench import PAIRED, Benchmark, Item, choice, from_items, open_store, save
from creperie.models import Fingerprint
from creperie.reporting import fill_table, published_table
from creperie.scoring import Run, blind_twin, score_all
from creperie.training import ExamResult, TrainingStudy

AWKWARD = '</script><img src=x onerror="document.title=1"> & "quoted" <!-- \u2028 '


def _vector(content: bytes) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    v = np.random.default_rng(seed).normal(size=8).astype(np.float32)
    return v / np.linalg.norm(v)


class Dual:
    """An image and text encoder whose vectors are a function of the content."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fingerprint = Fingerprint(uri=f"fake:{name}", architecture="Fake", weights=name)

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([_vector((self.name + t).encode()) for t in texts])

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return np.stack([_vector(self.name.encode() + i.convert("RGB").resize((4, 4)).tobytes()) for i in images])


def _items() -> Iterator[Item]:
    for i in range(24):
        words = (f"a dog chases cat {i}", f"cat {i} is chased by a dog", f"cat {i} chases a dog ")
        tags = {"size": float(i) / 7, "animal": "dog" if i % 3 else "cat"}
        yield Item(str(i), "swap", (f"{i % 6}.png",), words, choice(2, 1), tags)
    for i in range(10):
        yield Item(str(i), "pairs", (f"{i % 6}.png",), (f"{AWKWARD}{i}", f"a plain caption {i}"), choice(1, 1))
    for i in range(4):
        yield Item(f"w{i}", "two", (f"{i}.png", f"{i + 1}.png"), (f"one {i}", f"other {i}"), PAIRED)


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with `bench`, pictures inside, and `runs` of two models and a blind one."""
    folder = tmp_path_factory.mktemp("report")
    pictures = folder / "pictures"
    pictures.mkdir()
    for i in range(6):
        patches = np.random.default_rng(i).integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(patches).resize((320, 240), Image.Resampling.NEAREST).save(pictures / f"{i}.png")
    bench = from_items("mine", _items(), images=open_store(pictures))
    save(bench, folder / "bench", copy_images=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREPERIE_CACHE", str(folder / "cache"))
        models: list[Any] = [Dual("alpha"), Dual("beta"), "blind:length"]
        score_all([folder / "bench"], models, out=folder / "runs")
        yield folder


@pytest.fixture
def bench(room: Path) -> Benchmark:
    from creperie.bench import load

    return load(room / "bench")


@pytest.fixture
def twins(bench: Benchmark, tmp_path: Path) -> list[Run]:
    """Saved runs of two models, each on noise and then on the pictures."""
    models = [Dual("alpha"), Dual("beta")]
    return list(score_all([blind_twin(bench, "noise"), bench], models, out=tmp_path / "runs"))


@pytest.fixture
def runs(room: Path) -> list[Run]:
    from creperie.scoring import load_run

    return [load_run(p) for p in sorted((room / "runs").iterdir())]


@pytest.fixture
def folder(room: Path, tmp_path: Path) -> Path:
    """A folder with a benchmark with pictures and its runs."""
    shutil.copytree(room / "bench", tmp_path / "mine")
    shutil.copytree(room / "runs", tmp_path / "runs")
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Any:
    """A studio on this folder, entered by its link."""
    testclient = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed")
    from creperie.reporting import make_studio

    studio = make_studio(folder, "the-token", hosts=("testserver",))
    client = testclient.TestClient(studio, headers={"Origin": "http://testserver"})
    assert client.get("/", params={"token": "the-token"}).url.path == "/benchmarks"
    return client


def beside(key: str, runs: Any = (), **how: Any) -> Any:
    """Runs beside the rows of a published table."""
    return fill_table(published_table(key), runs, **how)


COLUMNS = ("biased negate", "clean swap", "clean add")
ARMS = ("none", "negate", "negate-refined")
VALUES = {  # arm → the three columns, seed by seed
    "base": [(50.0, 48.0, 70.0), (52.0, 50.0, 72.0)],
    "none": [(60.0, 50.0, 71.0), (62.0, 51.0, 73.0)],
    "negate": [(90.0, 50.5, 70.0), (96.0, 50.0, 73.5)],
    "negate-refined": [(66.0, 49.0, 71.0), (69.0, 52.0, 74.0)],
}


def sat(arm: str, seed: int) -> ExamResult:
    values = dict(zip(COLUMNS, VALUES[arm][seed], strict=True))
    return ExamResult(
        arm, seed, values, {f"{k} kind": v for k, v in values.items()}, 7 * (arm != "none"), 12.0, f"small:{arm}"
    )


@pytest.fixture
def study() -> TrainingStudy:
    rows = tuple(sat(arm, seed) for seed in (0, 1) for arm in ARMS)
    base = tuple(sat("base", seed) for seed in (0, 1))
    return TrainingStudy("small", ARMS, (0, 1), rows, base, 99.0, COLUMNS, ("foils left after refinement: <few>",))
