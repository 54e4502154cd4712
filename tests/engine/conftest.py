"""Tables to work on."""

from __future__ import annotations

import pyarrow as pa
import pytest


@pytest.fixture
def captions() -> pa.Table:
    texts = [f"a dog chases {i} red cats" for i in range(50)]
    return pa.table({"id": [str(i) for i in range(50)], "text": texts})
