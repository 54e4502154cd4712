"""What every test may use."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, and no hurry: a test must not fail because the machine is busy. New examples:
# pytest --hypothesis-profile explore
settings.register_profile(
    "steady", max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None)
settings.load_profile("steady")

# Audits use an installed language model and encoder when none is named; in tests only where they are named.
os.environ.setdefault("CREPERIE_AUDIT_MODELS", "none")

# What tests store goes into a folder of this session, never into the user's cache; only language models that were
# prepared there, which takes minutes, are read from it. Workers of pytest-xdist inherit the folder.
if "PYTEST_XDIST_WORKER" not in os.environ:
    from creperie.core import cache_home

    prepared, session = cache_home() / "gguf", Path(tempfile.mkdtemp(prefix="creperie-tests-"))
    if prepared.is_dir():
        (session / "gguf").symlink_to(prepared)
    else:
        (session / "gguf").mkdir()
    os.environ["CREPERIE_CACHE"] = str(session)
    atexit.register(shutil.rmtree, session, ignore_errors=True)

PREPARED = Path(os.environ["CREPERIE_CACHE"]) / "gguf"

# Processes that tests start, workers among them, find the stand-ins of tests/support.
SUPPORT = str(Path(__file__).parent / "support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SUPPORT, os.environ.get("PYTHONPATH"))))

#: Files with the longest slow tests: at the end they would keep one process busy and the other idle.
LONGEST = [
    "cook_papers",
    "docs",
    "demo",
    "presets",
    "cheats",
    "vlm_sharing",
    "learned",
    "tables_beside",
    "vlm",
    "study",
    "calibration",
    "released",
    "planning",
    "zoo",
    "stages",
    "attacks",
    "cook_spread",
    "studio",
    "report_browser",
    "open_clip_training",
    "open_clip",
    "ray_stages",
    "makers",
    "clean",
    "lm",
    "batch",
    "cli_make",
    "llm",
    "resume",
    "llm_flight",
    "browser",
    "browser_pages",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests: those of the longest files first."""
    order = {name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem.removeprefix("test_"), len(order)))


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and never among what was imported: it stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real benchmark files, where they are at hand; tests that need them skip without."""
    if not SHARED.is_dir():
        pytest.skip("the real benchmark files (../shared/data) are not here")
    return SHARED


@pytest.fixture(autouse=True)
def own_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers ends with it: one without a file, as in a page of the docs, makes every later key new."""
    monkeypatch.setattr("creperie.core.plugins._REGISTERED", {})


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache for this test alone, but for language models that another test prepared."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "gguf").symlink_to(PREPARED)
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command of creperie in this process: its exit code, what it printed, and what it said on stderr."""
    from creperie.cli import main

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser, where there is one. Closed with its module: two of them cannot be open in one process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed here")
    flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync"
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=flags.split())
        yield browser
        browser.close()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums over several threads have other last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
