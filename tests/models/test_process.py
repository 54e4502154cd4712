"""A model in another process: the same numbers as here, in an environment of its own; it may die, print and fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.core import CreperieError
from creperie.models import Prompt, load_model

MODULE = """
import os, sys
from pathlib import Path
import numpy as np

print("loading")  # never mistaken for a reply

class Model:
    fingerprint = "weights 1"

    def encode_image(self, images):
        if Path("die").exists():
            Path("die").unlink()
            os._exit(7)
        return np.stack([np.asarray(i, float).reshape(-1, 3).mean(0) for i in images])

    def encode_text(self, text):  # one at a time
        if "fail" in text:
            raise RuntimeError("no such word")
        return [float(len(text)), text.count("a"), 1.0]

    def score(self, image, captions):
        return [image.size[0] / len(c) for c in captions]

    def generate(self, prompts):
        return [f"{p['messages'][-1][1]} {[i.size for i in p['images']]} {sys.prefix}" for p in prompts]

load = Model
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "served.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_numbers_are_those_of_the_model_itself(folder: Path, pictures: list[Image.Image]) -> None:
    model: Any = load_model(f"process:{sys.executable}?module=served.py")
    means = np.stack([np.asarray(p, float).reshape(-1, 3).mean(0) for p in pictures]).astype(np.float32)
    vectors = model.encode_images(pictures)
    assert np.array_equal(vectors, means / np.linalg.norm(means, axis=1, keepdims=True))
    assert model.encode_texts(["a cat", "dog"]).shape == (2, 3)
    assert model.score_pairs(pictures[0], ["ab", "abcd"]).tolist() == [32.0, 16.0]
    asked = Prompt((("user", "what?"),), images=(pictures[0],))
    assert model.generate([asked]) == [f"what? [(64, 48)] {sys.prefix}"]
    (folder / "die").touch()
    assert np.array_equal(model.encode_images(pictures), vectors)  # it died, was started again and asked again
    with pytest.raises(CreperieError, match="RuntimeError: no such word"):
        model.encode_texts(["fail"])
    assert np.array_equal(model.encode_images(pictures), vectors)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("process:no/such/python?module=served.py", "cannot be started"),
        (f"process:{sys.executable}?module=missing.py", "No module named 'missing'"),
        (f"process:{sys.executable}", "no module given"),
        ("process:/bin/false?module=served.py", "ended with code 1"),
    ],
)
def test_what_cannot_be_started_is_said(uri: str, message: str, folder: Path) -> None:
    with pytest.raises(CreperieError, match=message):
        load_model(uri)


@pytest.mark.slow
def test_another_virtual_environment(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "other"], check=True)
    (site,) = folder.glob("other/lib/python*/site-packages")
    (site / "beside.pth").write_text(str(Path(np.__file__).parents[1]), encoding="utf-8")
    model: Any = load_model("process:other/bin/python?module=served.py")
    assert model.generate([Prompt((("user", "where?"),))]) == [f"where? [] {folder / 'other'}"]


def test_weights_that_are_no_torch_modules_are_known_apart(folder: Path) -> None:
    """Arrays are hashed; an object that may hold weights which cannot be seen is new every time."""
    text = MODULE.replace('    fingerprint = "weights 1"\n', "    def __init__(self):\n        self.own = WEIGHTS\n")

    def key(weights: str) -> str:
        (folder / "served.py").write_text(text.replace("WEIGHTS", "eval(Path('w').read_text())"), encoding="utf-8")
        (folder / "w").write_text(weights, encoding="utf-8")
        return load_model(f"process:{sys.executable}?module=served.py").fingerprint.key

    assert key("np.ones(3)") == key("np.ones(3)") != key("np.zeros(3)")
    assert key("[object()]") != key("[object()]")
