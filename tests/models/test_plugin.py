"""The worked example of docs/plugin.md, installed as a package and used; and plug-ins that are broken."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from creperie.cli.models import models
from creperie.core import CreperieError
from creperie.models import ImageEncoder, TextEncoder, check_model, load_model

PAGE = Path(__file__).parents[2] / "docs" / "plugin.md"


def install(folder: Path, name: str, code: str, entry: str) -> None:
    """A distribution as pip leaves it: the module, and metadata with its entry points."""
    (folder / f"{name}.py").write_text(code)
    metadata = folder / f"{name}-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[creperie.models]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def albef(site: Path, tmp_path: Path) -> Path:
    """The page's package, and a checkpoint for it."""
    import torch

    from creperie.testing.tokenizers import wordpiece_tokenizer

    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n# creperie_albef\.py\n(.*?)```", page, re.DOTALL)
    (entry,) = re.findall(r'^(albef) = "(creperie_albef:load)"$', page, re.MULTILINE)
    install(site, "creperie_albef", code, " = ".join(entry))
    import creperie_albef  # type: ignore[import-not-found]

    checkpoint = tmp_path / "checkpoint"
    tokenizer = wordpiece_tokenizer(40)
    tokenizer.save_pretrained(checkpoint)
    torch.manual_seed(0)
    model = creperie_albef.Albef(width=32, size=32, vocabulary=len(tokenizer))
    torch.save(model.state_dict(), checkpoint / "albef.pth")
    return checkpoint


def test_the_example_scores(albef: Path, captions: list[str], pictures: list[Image.Image]) -> None:
    import torch

    model = load_model(f"albef:{albef}", device="cpu")
    assert isinstance(model, ImageEncoder)
    assert isinstance(model, TextEncoder)
    assert model.encode_texts(captions).shape == (4, 16)
    matching: Any = load_model(f"albef:{albef}?head=itm", device="cpu")
    scores = matching.score_pairs(pictures[0], captions)
    with torch.inference_mode():
        seen = matching.model.vision(matching.pixels(pictures[:1])).last_hidden_state
        words = matching.model.text(**matching.tokens(captions[1:2])).last_hidden_state[:, :1]
        joined = words + matching.model.fusion(words, seen, seen)[0]
        expected = matching.model.itm_head(joined[:, 0]).softmax(-1)[0, 1]
    np.testing.assert_allclose(scores[1], expected, atol=1e-6)


@pytest.mark.parametrize("query", ["", "?head=itm"])
def test_the_example_passes_the_check(albef: Path, query: str) -> None:
    report = check_model(f"albef:{albef}{query}", device="cpu")
    assert report.ok, report.checks
    assert report.roles == (["pair scorer"] if query else ["image encoder", "text encoder"])


def test_the_example_is_listed(albef: Path) -> None:
    result = CliRunner().invoke(models, ["list"])
    assert result.exit_code == 0
    assert re.search(r"albef:\s+a plug-in\s+creperie_albef:load", result.output)


def test_its_own_errors_come_through(albef: Path) -> None:
    with pytest.raises(CreperieError, match="an albef model takes head=itc or head=itm"):
        load_model(f"albef:{albef}?head=mlm", device="cpu")


BROKEN = {
    "does-not-import": ("import no_such_package", "the plug-in for model kind 'broken' does not load"),
    "no-fingerprint": ("def load(uri, options, place): return object()", "broken:x: object is not a model; pass"),
    "no-methods": (
        "class M: fingerprint = 1\ndef load(uri, options, place): return M()",
        "has none of the methods that scoring uses",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugins(site: Path, case: str) -> None:
    code, message = BROKEN[case]
    name = f"broken_{case.replace('-', '_')}"
    install(site, name, code, f"broken = {name}:load")
    with pytest.raises(CreperieError, match=message):
        load_model("broken:x", device="cpu")


def test_unknown_kind_names_the_near_one(albef: Path) -> None:
    with pytest.raises(CreperieError, match=r"unknown model kind 'albeff'; did you mean 'albef'"):
        load_model("albeff:x")
    with pytest.raises(CreperieError, match=r"unknown model kind 'open-clip'; did you mean 'open_clip'"):
        load_model("open-clip:ViT-B-32/openai")


FAULTY = """
import numpy as np
from creperie.models import Fingerprint
class M:
    fingerprint = Fingerprint("faulty:x", "a", "w")
    def __init__(self, fault): self.fault = fault
    def encode_texts(self, texts):
        v = np.random.default_rng(len(texts) if self.fault == "batch" else 0).normal(size=(len(texts), 4))
        v = np.stack([np.roll(v[0], len(t)) for t in texts]) if self.fault != "batch" else v
        v = v / np.linalg.norm(v, axis=1, keepdims=True)
        if self.fault == "nan": v[-1] = np.nan
        if self.fault == "long": v = v * 2
        if self.fault == "constant": v[:] = v[0]
        return v.astype(np.float64 if self.fault == "double" else np.float32)
def load(uri, options, place): return M(uri.name)
"""


@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        ("none", None),
        ("nan", "captions: finite"),
        ("long", "captions: length one"),
        ("batch", "captions: batch of 1 = batch of 4"),
        ("constant", "captions: different inputs differ"),
        ("double", "captions: float32 vectors"),
    ],
)
def test_the_check_finds_faults(site: Path, fault: str, failing: str | None) -> None:
    install(site, "faulty", FAULTY, "faulty = faulty:load")
    report = check_model(f"faulty:{fault}", device="cpu")
    failed = [check.name for check in report.checks if check.ok is False]
    assert report.ok == (failing is None)
    assert failing is None or failing in failed
    result = CliRunner().invoke(models, ["check", f"faulty:{fault}", "--device", "cpu"], standalone_mode=False)
    assert result.return_value == (0 if failing is None else 1)
