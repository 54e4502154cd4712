"""Runs open_clip_training_suite.py in a process of its own, where open_clip and torchvision are to be found (see
tests/models/test_open_clip.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("open_clip_training_suite.py")


@pytest.mark.slow
def test_open_clip_training_suite() -> None:
    beside = os.environ.get("CREPERIE_OPENCLIP_PATH", "")
    if not beside and find_spec("open_clip") is None:
        pytest.skip("open_clip is not installed and CREPERIE_OPENCLIP_PATH names no folder that has it")
    paths = [path for path in (beside, os.environ.get("PYTHONPATH", "")) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    flags = ["--define-operators"] if beside else []
    done = subprocess.run(
        [sys.executable, str(SUITE), *flags], env=environment, capture_output=True, text=True, timeout=540, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
