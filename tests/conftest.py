"""What every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real benchmark files, where they are at hand; tests that need them skip without."""
    if not SHARED.is_dir():
        pytest.skip("the real benchmark files (../shared/data) are not here")
    return SHARED
