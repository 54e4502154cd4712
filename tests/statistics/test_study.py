"""Studies: presets, sub-samples, cell means, plots, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from creperie.bench import Benchmark, from_items
from creperie.core import CreperieError
from creperie.reporting import interactions, save_figure
from creperie.scoring import Run
from creperie.statistics import (
    Analysis,
    FittedStudy,
    TableReading,
    find_analysis_preset,
    fit_study,
    long_table,
    terms,
    write_table,
)
from creperie.statistics.analyse import ALL, bearable
from creperie.statistics.declare import PRESETS
from creperie.statistics.wording import WordingPreference

MakeRun = Callable[..., Run]
LENGTH = WordingPreference(lambda texts: np.array([len(t) // 9 for t in texts]), "length")


@pytest.fixture(scope="module")
def table(events: Benchmark, make_run: MakeRun) -> pa.Table:
    runs = [make_run("fake:good", 0.9, 0.8, 1), make_run("fake:poor", 0.0, 0.8, 2)]
    return long_table(runs, [events], TableReading(grammar=LENGTH)).table


def of_preset(table: pa.Table, name: str, **wish: Any) -> FittedStudy:
    return fit_study(table, find_analysis_preset(name).analyses, **wish)


@pytest.mark.slow
def test_the_first_test_finds_what_is_there(table: pa.Table) -> None:
    """Simplified captions and the better model were given an advantage; the construction was not."""
    found = of_preset(table, "construction", lenient=True, required="type", per_model=True)
    whole = found.fits[0].fit
    assert whole.n == 480  # 120 items, 2 comparisons, 2 models
    assert whole["simplified[true]"].estimate > 0.1
    assert whole["simplified[true]"].p < 0.001
    assert whole["model[fake:poor]"].estimate < -0.15
    assert whole["type[passive]"].p > 0.01
    assert [f.sample for f in found.fits] == [ALL, "fake:good", "fake:poor"]
    assert all("model" not in f.analysis.fixed for f in found.fits[1:])
    assert [(s.label, s.sample) for s in found.skipped] == [("active or ditransitive", ALL)]
    assert "fewer than two values" in found.skipped[0].reason
    with pytest.raises(CreperieError, match="unknown family 'logstic'; did you mean 'logistic'"):
        Analysis("chosen", ("model",), family="logstic")  # type: ignore[arg-type]


def test_constructions_of_two_benchmarks_are_compared(events: Benchmark, make_run: MakeRun) -> None:
    """Active captions come from one benchmark, ditransitive ones from another; here the second were made easier."""
    giving = from_items(
        "giving",
        [
            replace(item, tags={**item.tags, "construction": "dative"}, subset="dative-" + item.subset)
            for item in events
        ],
    )
    runs = [make_run("fake:m", 0.0, seed=1), make_run("fake:m", 1.5, seed=2, bench=giving)]
    table = long_table(runs, [giving, events], TableReading(grammar=LENGTH)).table
    found = of_preset(table, "construction", lenient=True, required="type")
    fits = {f.label: f.fit for f in found.fits}
    assert fits["active or ditransitive"].n == 240
    assert fits["active or ditransitive"]["type[ditransitive]"].estimate > 0.2
    assert abs(fits["active or passive"]["type[passive]"].statistic) < 3


@pytest.mark.slow
def test_the_second_test_takes_the_papers_comparisons(table: pa.Table) -> None:
    (one,) = of_preset(table, "argument-order", lenient=True, required="order").fits
    assert one.fit.n == 720
    assert "order[different]" in {c.name for c in one.fit.coefficients}
    assert "not in the model: log10(size)" in one.notes[0]


def test_estimates_do_not_depend_on_the_contrast(table: pa.Table) -> None:
    """Contrasts turn the coefficients, not the fitted means."""
    means = []
    for contrast in ("treatment", "rest", "orthogonal", "sum"):
        analysis = Analysis("chosen", terms("grammaticality*simplified"), contrast=contrast)
        (one,) = fit_study(table, {"": analysis}, cells=("grammaticality", "simplified")).fits
        means.append([c.estimate for c in one.cells])
    assert means[1] == pytest.approx(means[0], abs=1e-5)
    assert means[2] == pytest.approx(means[0], abs=1e-5)
    assert means[3] == pytest.approx(means[0], abs=1e-5)


def test_cells_of_a_saturated_model_are_near_the_plain_means(table: pa.Table) -> None:
    for family in ("linear", "logistic"):
        analysis = Analysis("chosen", terms("model*simplified"), family=family)  # type: ignore[arg-type]
        (one,) = fit_study(table, {"": analysis}, cells=("model", "simplified")).fits
        assert len(one.cells) == 4
        for cell in one.cells:
            assert cell.low < cell.estimate < cell.high
            assert cell.estimate == pytest.approx(cell.raw, abs=0.03)


def test_terms_without_two_values_are_left_out(table: pa.Table) -> None:
    kept, left_out = bearable(table, Analysis("chosen", terms("simplified*benchmark + nothing + size")))
    assert kept.fixed == ("simplified",)
    assert left_out == ["benchmark", "nothing", "size", "simplified:benchmark"]


def test_a_term_that_a_user_wrote_is_not_left_out(table: pa.Table) -> None:
    with pytest.raises(CreperieError, match="one level only"):
        fit_study(table, {"": Analysis("chosen", ("benchmark",))})


def test_presets_have_their_own_name() -> None:
    with pytest.raises(CreperieError, match="did you mean 'construction'"):
        find_analysis_preset("constructions")
    assert set(PRESETS) == {"foils", "construction", "argument-order"}


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_plots(table: pa.Table, tmp_path: Path, suffix: str) -> None:
    analysis = Analysis("chosen", terms("grammaticality*type"))
    found = fit_study(table, {"": analysis}, cells=("grammaticality", "type"))
    file, again = (
        save_figure(interactions(found.fits, ("grammaticality", "type")), tmp_path / f"{name}{suffix}") for name in "pq"
    )
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
    assert file.read_bytes().startswith(start)
    if suffix == ".svg":
        assert file.read_bytes() == again.read_bytes()
        text = file.read_text(encoding="utf-8")
        assert all(word in text for word in ("active", "passive", "caption", "grammaticality"))


def test_a_plot_of_nothing_is_refused(table: pa.Table, tmp_path: Path) -> None:
    found = fit_study(table, {"": Analysis("chosen", ("simplified",))})
    with pytest.raises(CreperieError, match="has both factors"):
        interactions(found.fits, ("a", "b"))


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command(saved: tuple[Path, list[Path]], tmp_path: Path, command: Any) -> None:
    bench, runs = saved
    fixed = ["--fixed", "model*simplified + length", "--random", "image,caption"]
    plot = ["--plot", tmp_path / "p.svg", "--plot-by", "model,simplified"]
    code, out, _ = command("stats", *runs, "--bench", bench, *fixed, *plot, "--table", tmp_path / "t.parquet", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["rows"] == 3 * 120 * 4
    (one,) = found["fits"]
    assert one["convergence"]["converged"]
    assert [g["name"] for g in one["random"]] == ["caption", "image", "residual"]
    assert one["analysis"]["formula"].endswith("(1 | image) + (1 | caption)")
    assert len(one["cells"]) == 6
    assert (tmp_path / "p.svg").is_file()
    # the table that was written gives the same answer
    code, out, _ = command("stats", tmp_path / "t.parquet", *fixed, "--json")
    assert code == 0
    again = json.loads(out)["fits"][0]
    assert again["coefficients"] == one["coefficients"]


def test_what_people_see(saved: tuple[Path, list[Path]], command: Any) -> None:
    bench, runs = saved
    options = ["--fixed", "simplified", "--family", "logistic", "--per-model", "--contrasts", "rest"]
    code, shown, _ = command("stats", *runs, "--bench", bench, *options, "--where", "comparison=1-1,2-2")
    assert code == 0
    for piece in ("logistic mixed model, Laplace, 720 rows", "simplified[true]", "image", "60 groups", "converged"):
        assert piece in shown
    assert "fake:poor" in shown
    assert "residual" not in shown, "a row of a logistic model has no variance of its own"


def test_a_preset_can_be_changed(saved: tuple[Path, list[Path]], command: Any) -> None:
    bench, runs = saved
    options = ["--contrasts", "orthogonal", "--random", "image,caption", "--outcome", "gap", "--where", "source=web"]
    grammar = ["--grammar", "blind:length"]
    preset = ["--preset", "argument-order"]
    code, out, _ = command("stats", *runs, "--bench", bench, *preset, *options, *grammar, "--json")
    assert code == 0
    (one,) = json.loads(out)["fits"]
    assert one["analysis"]["outcome"] == "gap"
    assert one["analysis"]["contrast"] == "orthogonal"
    assert one["analysis"]["random"] == ["image", "caption"]
    assert one["n"] == 3 * 40 * 2 * 3  # models, pictures from the web, long and simplified, comparisons
    assert any("source" in note for note in one["notes"])


def test_a_table_can_be_judged(tmp_path: Path, command: Any) -> None:
    rng = np.random.default_rng(2)
    captions = rng.choice(["a dog", "a dog runs", "a dog runs away"], 200)
    foils = rng.choice(["a cat", "a cat sits", "a cat sits down"], 200)
    columns = {"caption": captions, "foil": foils, "image": np.arange(200) // 4, "chosen": rng.integers(0, 2, 200)}
    file = write_table(pa.table(columns), tmp_path / "t.csv")
    code, out, _ = command("stats", file, "--fixed", "grammaticality", "--grammar", "blind:length", "--json")
    assert code == 0
    (one,) = json.loads(out)["fits"]
    assert [c["name"] for c in one["coefficients"][1:]] == ["grammaticality[equal]", "grammaticality[foil]"]
    code, _, err = command("stats", file, "--fixed", "grammaticality", "--task", "itt")
    assert code == 2
    assert "a table cannot be combined with runs" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no analysis given"),
        (["--preset", "konstruction"], "did you mean 'construction'"),
        (["--preset", "construction", "--fixed", "x"], "its own fixed effects"),
        (["--fixed", "simplfied"], "unknown column 'simplfied'"),
        (["--fixed", "simplified", "--plot", "p.svg"], "no interaction of two factors to plot"),
        (["--fixed", "simplified", "--contrasts", "simplified=helmet"], "unknown contrast 'helmet'"),
        (["--fixed", "simplified", "--where", "subset=none"], "no row is left"),
        (["--fixed", "simplified", "--levels", "simplified"], "write --levels NAME=VALUE"),
        (["--fixed", "simplified", "--size", "a=many"], "write --size URI=NUMBER"),
        (["--fixed", "simplified", "--random", "benchmark"], "one group only"),
    ],
)
def test_mistakes_are_said_in_one_line(
    saved: tuple[Path, list[Path]], command: Any, options: list[str], said: str
) -> None:
    bench, runs = saved
    code, _, err = command("stats", *runs, "--bench", bench, *options)
    assert code == 2
    line = err.strip().splitlines()[-1]
    assert said in line
