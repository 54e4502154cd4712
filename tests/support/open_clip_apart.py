"""Tests of open_clip in a process of their own, where it and torchvision are to be found.

The library may lie beside the tests' environment, in a folder that the variable CREPERIE_OPENCLIP_PATH names: a
torchvision without its compiled operators breaks transformers in every process that can import it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = "CREPERIE_OPENCLIP_PATH"
FLAG = "--define-operators"
_kept: list[object] = []  #: what must live as long as the process


def why_not() -> str:
    """Why such tests cannot run here; empty where they can."""
    there = os.environ.get(FOLDER) or find_spec("open_clip")
    return "" if there else f"open_clip is not installed and {FOLDER} names no folder that has it"


def run_suite(suite: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a file of tests that ends with `run_as_suite(__file__)`."""
    beside = os.environ.get(FOLDER, "")
    here = str(Path(__file__).parent)
    paths = [path for path in (beside, here, os.environ.get("PYTHONPATH", "")) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(suite), *([FLAG] if beside else [])]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


def run_as_suite(file: str) -> int:
    """The tests of this file, in this process."""
    import pytest

    if FLAG in sys.argv:
        _define_missing_operators()
    return int(pytest.main([file, "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]))


def _define_missing_operators() -> None:
    """torchvision without its compiled part: declare the operators whose absence stops its import."""
    import torch

    registry = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        registry.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(registry)
