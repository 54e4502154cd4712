"""Runs open_clip_training_suite.py in a process of its own, where open_clip and torchvision are to be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from open_clip_apart import run_suite, why_not

SUITE = Path(__file__).with_name("open_clip_training_suite.py")


@pytest.mark.slow
def test_open_clip_training_suite() -> None:
    if why := why_not():
        pytest.skip(why)
    done = run_suite(SUITE, timeout=540)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
