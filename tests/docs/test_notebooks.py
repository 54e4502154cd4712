"""The notebooks run, cell by cell, without a download."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
#: what the cells of a notebook must have printed
SAYS = {
    "evaluate": ("rank 1", "\\toprule", "memory:colours", "disagree"),
    "audit": ("leaks", "not worse than the baseline", "Blind audit"),
    "build": ("nearly-equal-captions", '"A dog chases a cat."'),
}


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    document = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert document["nbformat"] == 4
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == []
                exec(compile("".join(cell["source"]), f"{name}.ipynb", "exec"), names)
    for text in SAYS[name]:
        assert text in printed.getvalue()


def test_every_notebook_is_tested() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(SAYS)
