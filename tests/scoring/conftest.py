"""Small models whose answers are a function of the content, and small benchmarks with pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from creperie.bench import PAIRED, Benchmark, Item, choice, from_items, open_store
from creperie.models import Fingerprint, Tokens


def vector(content: bytes, dim: int = 16) -> np.ndarray:
    """A unit vector that depends on every byte."""
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    v = np.random.default_rng(seed).normal(size=dim).astype(np.float32)
    return v / np.linalg.norm(v)


class FakeTexts:
    """A staged text tower: a token a word, lower-cased."""

    trims = True

    def __init__(self, name: str = "fake", context: int = 12) -> None:
        self.fingerprint = Fingerprint(uri=f"fake:{name}", architecture="Fake", weights=name, context=context)
        self.context = context
        self.texts_seen: list[bytes] = []
        self.batches: list[int] = []

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        found = []
        for text in texts:
            ids = np.array(
                [int.from_bytes(hashlib.sha256(w.encode()).digest()[:4], "little") for w in text.lower().split()]
            )
            found.append(Tokens(ids[: self.context], max(0, len(ids) - self.context)))
        return found

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        self.batches.append(len(prepared))
        self.texts_seen += [t.ids.tobytes() for t in prepared]
        return np.stack([vector(t.ids.tobytes()) for t in prepared])

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.forward_texts(self.prepare_texts(texts))


class FakeDual(FakeTexts):
    """Both towers."""

    def __init__(self, name: str = "fake", context: int = 12) -> None:
        super().__init__(name, context)
        self.images_seen: list[bytes] = []

    def prepare_image(self, image: Image.Image) -> np.ndarray:
        return np.asarray(image.convert("RGB").resize((4, 4)))

    def forward_images(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        self.images_seen += [p.tobytes() for p in prepared]
        return np.stack([vector(p.tobytes()) for p in prepared])

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return self.forward_images([self.prepare_image(i) for i in images])


class FakePairs:
    """A matching head."""

    def __init__(self) -> None:
        self.fingerprint = Fingerprint(uri="fake:pairs", architecture="FakePairs", weights="pairs")
        self.calls: list[int] = []

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        seen = np.asarray(image).tobytes()
        return np.array([vector(seen + t.encode())[0] for t in texts], np.float32)


class FakeJoint:
    """Vectors of image and caption together."""

    def __init__(self) -> None:
        self.fingerprint = Fingerprint(uri="fake:joint", architecture="FakeJoint", weights="joint")

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return np.stack([vector(np.asarray(image).tobytes() + t.encode()) for t in texts])


for fake in (FakeTexts, FakeDual, FakePairs, FakeJoint):
    fake.__module__ = "creperie.tests"  # creperie's own adapters are stored by the fingerprint that they state


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a store of its own."""
    home = tmp_path / "cache"
    monkeypatch.setenv("CREPERIE_CACHE", str(home))
    return home


@pytest.fixture
def texts_model() -> Callable[..., FakeTexts]:
    return FakeTexts


@pytest.fixture
def dual_model() -> Callable[..., FakeDual]:
    return FakeDual


@pytest.fixture
def pairs_model() -> FakePairs:
    return FakePairs()


@pytest.fixture
def joint_model() -> FakeJoint:
    return FakeJoint()


@pytest.fixture
def unit_vector() -> Callable[..., np.ndarray]:
    return vector


def draw(path: Path, seed: int, size: tuple[int, int] = (48, 36)) -> None:
    """A picture of coloured patches; no two seeds alike."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(patches).resize(size, Image.Resampling.NEAREST).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Eight pictures 0.png … 7.png."""
    folder = tmp_path / "pictures"
    for i in range(8):
        draw(folder / f"{i}.png", i)
    return folder


@pytest.fixture
def triples(pictures: Path) -> Benchmark:
    """One image, two positives, one negative; images and captions are shared between items and subsets."""
    items = [
        Item(
            str(i),
            "swap" if i % 2 else "replace",
            (f"{i % 8}.png",),
            (f"a dog chases cat {i % 5}", f"cat {i % 5} is chased by a dog", f"a cat {i % 5} chases a dog"),
            choice(2, 1),
        )
        for i in range(40)
    ]
    return from_items("triples", items, images=open_store(str(pictures)))


@pytest.fixture
def paired(pictures: Path) -> Benchmark:
    """Winoground's form."""
    items = [
        Item(str(i), "relation" if i % 2 else "object", (f"{i}.png", f"{i + 1}.png"), (f"one {i}", f"two {i}"), PAIRED)
        for i in range(7)
    ]
    return from_items("paired", items, images=open_store(str(pictures)))
