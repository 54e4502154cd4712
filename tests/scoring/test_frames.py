"""A run as a data frame: captions and outcomes beside the scores, and what it did not cover said aloud."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from foils import foil_bench

import creperie as cr
from creperie.bench import Benchmark
from creperie.core import CreperieError, UsageError


@pytest.fixture
def bench() -> Benchmark:
    texts = [("short", "a longer one"), ("a longer one", "short"), ("same", "size")]
    return foil_bench(texts, "three")


def shorter(captions: list[str]) -> list[int]:
    return [-len(c) for c in captions]


def test_a_row_has_captions_scores_and_the_outcome(bench: Benchmark, tmp_path: Path) -> None:
    run = cr.score(bench, shorter, out=tmp_path)
    rows = run.frame().to_pylist()
    assert rows[0] == {
        "task": "blind",
        "subset": "s",
        "id": "0",
        "captions": ["short", "a longer one"],
        "images": [],
        "scores": [-5.0, -12.0],
        "margin": 7.0,
        "correct": True,
        "tie": False,
    }
    assert [(r["margin"], r["correct"], r["tie"]) for r in rows[1:]] == [(-7.0, False, False), (0.0, False, True)]
    stored = cr.load_run(run.path)
    assert stored.frame().column("captions").null_count == 3
    assert stored.frame(bench).equals(run.frame())
    with pytest.raises(UsageError, match="is not the benchmark that was scored"):
        stored.frame(bench.head(1))
    assert list(run.to_pandas()["correct"]) == [True, False, False]
    assert hasattr(run.frame(), "__arrow_c_stream__")


def test_every_task_has_its_rows(triples: Benchmark, dual_model: Any) -> None:
    run = cr.score(triples, dual_model())
    table = run.frame()
    assert table.num_rows == len(run.tasks) * len(triples)
    for result in run.results:
        if result["subset"] == "all":
            own = table.filter(pa.compute.equal(table.column("task"), result["task"]))
            assert pa.compute.sum(own.column("correct")).as_py() == result["hits"]


def test_what_is_not_covered_is_in_the_repr_and_a_warning(triples: Benchmark, dual_model: Any, pictures: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "of 40 items" not in repr(cr.score(triples, dual_model(), tasks="itt"))
    (pictures / "3.png").unlink()
    with pytest.warns(UserWarning, match=r"5 of 40 items have no score \(missing-image\)"):
        run = cr.score(triples, dual_model(), tasks="itt")
    assert "35 of 40 items" in repr(run)
    assert run.frame().column("correct").null_count == 5


def test_scores_that_are_not_numbers_are_counted_aloud(bench: Benchmark) -> None:
    """One caption of one item, or both of it; an item without numbers is not in the accuracy."""
    for lost in (["short"], ["short", "a longer one"]):
        told = r"2 of 3 items have no score \(NaN\)"
        with pytest.warns(UserWarning, match=told):
            run = cr.score(bench, lambda texts: [float("nan") if t in lost else len(t) for t in texts])  # noqa: B023
        assert "2 of 3 items have no score" in repr(run)
        assert run.results[-1]["n"] == 1
        assert run.frame().column("correct").null_count == 2
    for wrong, line in (
        (lambda texts: [None for _ in texts], "every score is NaN"),
        (lambda texts: 1.0, "the function returned one number for 4 captions; return a list with one number per"),
        (lambda texts: [[1.0, 2.0] for _ in texts], r"the function returned an array of shape \(4, 2\) for 4 captions"),
    ):
        with pytest.raises(CreperieError, match=line):
            cr.score(bench, wrong)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_package_is_named(name: str, bench: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    real = importlib.import_module

    def hide(module: str, *given: Any) -> Any:
        if module == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(module, *given)

    monkeypatch.setattr("creperie.core.frames.import_module", hide)
    with pytest.raises(CreperieError, match=name):
        getattr(cr.score(bench, shorter), f"to_{name}")()
