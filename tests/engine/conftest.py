"""Tables to work on, and one small Ray for all tests that need it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest


@pytest.fixture
def captions() -> pa.Table:
    texts = [f"a dog chases {i} red cats" for i in range(50)]
    return pa.table({"id": [str(i) for i in range(50)], "text": texts})


@pytest.fixture(scope="module")
def small_ray() -> Iterator[None]:
    """A Ray of two cores and 100 MB, begun once: starting takes seconds."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=100 << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()
