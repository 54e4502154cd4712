"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, and no hurry: a test must not fail because the machine is busy. New examples:
# pytest --hypothesis-profile explore
settings.register_profile(
    "steady", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None)
settings.load_profile("steady")

# Audits use an installed language model and encoder when none is named; in tests only where they are named.
os.environ.setdefault("CREPERIE_AUDIT_MODELS", "none")

# Processes that tests start, workers among them, find the stand-ins of tests/support.
SUPPORT = str(Path(__file__).parent / "support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SUPPORT, os.environ.get("PYTHONPATH"))))

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real benchmark files, where they are at hand; tests that need them skip without."""
    if not SHARED.is_dir():
        pytest.skip("the real benchmark files (../shared/data) are not here")
    return SHARED
