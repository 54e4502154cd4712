"""Many models on many benchmarks: one table with ranks, a tab per benchmark, and a site of plain files."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from click.testing import CliRunner
from foils import foil_bench

from creperie.bench import Item, from_items, save
from creperie.cli.report import report
from creperie.cli.studio import studio
from creperie.reporting import Contents, export_site, gather_runs, report_page, runs_in
from creperie.scoring import load_run, rank_runs, score
from creperie.scoring.replies import answered_run

MODELS, BENCHES, ITEMS = range(4, 12), 4, 120
SUBSETS = ("swap_obj", "swap_att", "add_obj")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 models × 4 benchmarks with random scores; model k is a little better than model k − 1."""
    place = tmp_path_factory.mktemp("zoo")
    rng = np.random.default_rng(0)
    for b in range(BENCHES):
        items = [
            Item(f"{s}-{i}", s, (f"{i}.jpg",), (f"{s} {b} dog {i}", f"{s} {b} cat {i}"), ((True, False),))
            for s in SUBSETS
            for i in range(ITEMS // len(SUBSETS))
        ]
        bench = save(from_items(f"bench{b}", items), place / "benches" / f"bench{b}")
        for m in MODELS:
            scores = rng.normal(size=(len(items), 2)) + [0.2 * (m - 4), 0]
            answered_run(bench, scores.ravel().astype(np.float32), f"hf:zoo/model-{m:02d}").save(place / "runs")
    return place


@pytest.fixture(scope="module")
def page(zoo: Path) -> str:
    benches = [zoo / "benches" / f"bench{b}" for b in range(BENCHES)]
    return report_page(gather_runs(runs_in([zoo / "runs"]), benches=benches), Contents(figures=False)).html


@pytest.mark.slow
def test_a_report_on_many_runs_has_a_tab_per_benchmark(page: str) -> None:
    """It was 94,581 px long."""
    assert page.count('role="tab"') == page.count('role="tabpanel"') == BENCHES
    assert "28 pairs" in page
    assert page.count('<svg class="spark"') >= len(MODELS) * BENCHES


@pytest.mark.slow
def test_the_command_does_not_audit_many_benchmarks_by_itself(zoo: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(report, [str(zoo / "runs"), "--html", str(tmp_path / "r.html"), "--no-figures", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert any("4 benchmarks are not audited here" in note for note in told["notes"]), told["notes"]
    assert len(told["runs"]) == len(MODELS) * BENCHES


def test_ranks_find_the_order_that_was_put_in(zoo: Path) -> None:
    runs = [load_run(p) for p in runs_in([zoo / "runs"])]
    ranked = rank_runs(runs)
    assert len(ranked.columns) == BENCHES
    assert ranked.models[0] in {f"hf:zoo/model-{m}" for m in ("09", 10, 11)}
    assert ranked.models[-1] in {f"hf:zoo/model-0{m}" for m in (4, 5, 6)}
    first, last = (ranked.columns[0].models[f"hf:zoo/model-{m}"] for m in ("11", "04"))
    assert first.rank == 1 < last.rank
    assert not set(first.groups) & set(last.groups)
    assert any("weighs every column alike" in note for note in ranked.notes)
    assert math.isnan(rank_runs(runs[1:]).mean[runs[0].model])
    assert "no mean for 1 model: there is no result in at least one column" in rank_runs(runs[1:]).notes
    apart = [next(run for run in runs if run.benchmark == name) for name in sorted({run.benchmark for run in runs})[:2]]
    other = next(run for run in runs if run.benchmark == apart[1].benchmark and run.model != apart[0].model)
    (note,) = [note for note in rank_runs([apart[0], other]).notes if "mean" in note]  # nothing on how it was computed
    assert note.startswith("no mean for 2 models")


@pytest.mark.slow
def test_a_site_of_plain_files(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.reporting.page.page_figures", lambda group: "")  # drawn in tests of their own
    done = CliRunner().invoke(studio, [str(zoo / "runs"), "--export", str(tmp_path / "site"), "--json"])
    assert done.exit_code == 0, done.output
    pages = json.loads(done.stdout)["pages"]
    assert len(pages) == 2 + BENCHES
    for name in pages:
        page = (tmp_path / "site" / name).read_text(encoding="utf-8")
        assert "fetch(" not in page
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
        for link in re.findall(r'href="([^"#]+)"', page):
            if not link.startswith("data:"):
                assert (tmp_path / "site" / name).parent.joinpath(link).is_file(), f"{name}: {link}"


def test_filter_and_tabs_work_in_a_browser(page: str, tmp_path: Path, chromium: Any) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    shown = chromium.new_page(viewport={"width": 390, "height": 800})
    shown.goto((tmp_path / "page.html").as_uri())
    assert shown.locator(".panel:visible").count() == 1
    shown.locator("[role=tab]").nth(1).click()
    assert shown.locator(".panel:visible").get_attribute("id") == "bench-1"
    assert shown.locator("#bench").input_value() == "1"  # the items below are those of the benchmark above
    shown.locator("[data-filter]").first.fill("model-0")
    assert shown.locator(".matrix").first.locator("tbody tr:visible").count() == 6
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    shown.close()


@pytest.mark.slow
def test_compare_of_a_folder_ranks_first(zoo: Path) -> None:
    """152 runs did not finish in 200 s and would have printed 8,400 lines."""
    from creperie.cli.compare import compare

    done = CliRunner().invoke(compare, [str(zoo / "runs")])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) < 40
    assert "model-11" in done.stdout


def test_links_of_a_site_lead_to_its_files(tmp_path: Path) -> None:
    """As a server reads them: `%2B` is a plus."""
    score(foil_bench([(f"a {k}", f"not a {k}") for k in range(4)], "b++"), "blind:length-words", out=tmp_path / "runs")
    export_site(tmp_path / "runs", tmp_path / "site")
    links = re.findall(r'href="([^"#:?]+\.html)', (tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    assert any("b%2B%2B" in link for link in links)
    assert [link for link in links if not (tmp_path / "site" / unquote(link)).is_file()] == []
