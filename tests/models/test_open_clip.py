"""Runs open_clip_suite.py in a process of its own, where open_clip and torchvision are to be found."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from open_clip_apart import run_suite, why_not

SUITE = Path(__file__).with_name("open_clip_suite.py")


@pytest.mark.slow
def test_open_clip_suite() -> None:
    if why := why_not():
        pytest.skip(why)
    done = run_suite(SUITE, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_without_the_library() -> None:
    from creperie.core import MissingExtraError
    from creperie.models import load_model

    if find_spec("open_clip") is not None:
        pytest.skip("open_clip is installed here")
    with pytest.raises(MissingExtraError, match=r"pip install 'creperie\[open-clip\]'"):
        load_model("open_clip:ViT-B-32/openai", device="cpu")
