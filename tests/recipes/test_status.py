"""Stages of the papers' chains on tiny input: a scripted study through the real server, figures, and the status."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import load
from creperie.core import CreperieError
from creperie.recipes import paper_status, read_recipe, status_page
from creperie.recipes.kitchen import run_stages
from creperie.reporting import published_tables
from creperie.reporting.gather import model_tail

CHAIN = """
recipe: sugarcrepe
stages:
  - {name: make, does: world, with: {kinds: [swap_obj, add_obj], items: 8, size: 32}}
  - {name: people, does: people, with: {scripted: true, sample: 6}}
  - {name: absent, does: load, with: {source: "sugarcrepe:nowhere", optional: true}}
  - {name: score-absent, does: score, with: {models: ["blind:length"], tasks: [blind]}}
  - {name: score, does: score, from: people, with: {models: ["blind:length"], tasks: [blind]}}
  - {name: table, does: table, from: [score, score-absent, make, people], with: {tables: [sugarcrepe/2, sugarcrepe/6]}}
  - name: figures
    does: figure
    from: [make, people, score]
    with: {figures: {"1": gaps make people, "5": imagenet score, "4": accuracy people}, attackers: [length-words]}
"""


@pytest.fixture(scope="module")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("status")
    (folder / "r.yaml").write_text(CHAIN, encoding="utf-8")
    run_stages(read_recipe(folder / "r.yaml"), folder / "out")
    return folder / "out"


def test_a_scripted_study_is_answered_through_the_server_and_marked(cooked: Path) -> None:
    said = json.loads((cooked / "02-people" / "people.json").read_text(encoding="utf-8"))
    assert (said["task"], said["scripted"], len(said["annotators"])) == ("foil-check", True, 2)
    assert said["answers"] == 12  # two annotators, six questions each
    bench = load(str(cooked / "02-people"))
    assert bench.provenance[-1].args["scripted"] is True
    sheet = (cooked / "02-people" / "DATASHEET.md").read_text(encoding="utf-8")
    assert "2 scripted annotators, not people, in the task `foil-check`: 12 answers" in sheet
    assert "by the grammar of creperie's built-in world" in sheet


def test_what_is_optional_and_absent_is_skipped_with_what_follows(cooked: Path) -> None:
    assert not list(cooked.glob("*absent*"))
    rows = json.loads((cooked / "06-table" / "sugarcrepe-2.json").read_text(encoding="utf-8"))["rows"]
    ours = [row["model"].split(" on ")[0] for row in rows if row["source"] == "run"]
    assert ours == ["items after stage make", "items after stage people"]


def test_a_table_of_counts_says_that_scripts_checked_the_items(cooked: Path) -> None:
    """SugarCrepe's items are checked by people (section 4.1)."""
    text = " ".join((cooked / "06-table" / "sugarcrepe-2.txt").read_text(encoding="utf-8").split())
    assert "scripts, not people, checked 6 (task foil-check) of 16 items" in text


def test_the_status_of_every_table_and_figure(cooked: Path) -> None:
    parts = {(p.paper, p.kind, p.number): p for p in paper_status([cooked])}
    assert parts["sugarcrepe", "table", "2"].status == "with stand-ins only"
    assert parts["sugarcrepe", "table", "4"].status == "not made"
    assert parts["sugarcrepe", "figure", "1"].status == "drawn"
    failed = parts["sugarcrepe", "figure", "4"]
    assert (failed.status, bool(failed.why)) == ("not made", True)  # a benchmark is not a run
    page = status_page(list(parts.values()), [], "creperie cook status")
    assert "|2|7|0|0|2|0|0|" in page
    words = (
        "- In creperie's words, not the paper's, by `creperie prompts show NAME`: figure 3 (replace-object), figure 7 "
    )
    assert words + "(replace-object, replace-attribute, replace-relation), figure 8 (swap-object" in page
    assert (
        "only if more than half of them say so, beyond both intervals" in page
    )  # 5 of 10 and 0 against: why not shown?
    assert parts["sugarcrepe", "table", "7"].status == "nothing to compute"  # no command shows it as printed
    assert str(cooked) not in page  # nothing of this machine
    with pytest.raises(CreperieError, match="not the folder of a recipe run"):
        paper_status([cooked / "01-make"])


def test_stages_of_an_earlier_form_of_the_recipe_do_not_count(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "out")
    (tmp_path / "out" / "06-table").rename(tmp_path / "out" / "05-table")
    parts = {(p.kind, p.number): p.status for p in paper_status([tmp_path / "out"]) if p.paper == "sugarcrepe"}
    assert (parts["table", "2"], parts["figure", "1"]) == ("not made", "drawn")


def test_figures_name_a_model_by_the_stage_that_trained_it() -> None:
    assert model_tail("small:/any/where/08-student/model") == "student"
    assert model_tail("vlm:out/09-generative/model?score=vqa") == "generative?score=vqa"
    assert model_tail("hf:openai/model") == "model"


def test_without_answers_a_study_waits(tmp_path: Path) -> None:
    text = CHAIN.replace("scripted: true, sample: 6", "overlap: 1")
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(CreperieError, match="people's answers are not complete") as caught:
        run_stages(read_recipe(tmp_path / "r.yaml"), tmp_path / "out")
    assert "creperie annotate serve" in str(caught.value)
    assert (tmp_path / "out" / "people.db").is_file()


def test_every_run_of_the_ledger_has_its_digest() -> None:
    """Rows of an earlier run, which today's command had not seen, stood among the others without a word."""
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    runs = page.partition("\nFrom runs of ")[2].partition(". The eight")[0].split("; ")
    assert len(runs) >= 5
    assert [run for run in runs if not re.fullmatch(r"[\w-]+, \w+ \(\d+ of \d+ stages, [0-9a-f]{8}\)", run)] == []
    told = {run.partition(" (")[0] for run in runs}
    assert {row.split("|")[1] for row in page.splitlines() if re.match(r"\|[\w-]+, (small|local|paper)\|", row)} <= told


def test_readme_and_pages_say_what_the_ledger_counts() -> None:
    """Results, and what was computed by what: in the same words and numbers wherever they stand."""
    root = Path(__file__).parents[2]
    page, readme, about = (
        " ".join((root / name).read_text(encoding="utf-8").split())
        for name in ("docs/papers.md", "README.md", "docs/about.md")
    )
    printed = sum(len(table.results) for table in published_tables())
    assert f"The tables print {printed:,} results." in page
    counted = re.search(r"(\d+) of these were computed from what the authors released: (.*?)\. To agree", page)
    assert counted
    for text in (readme, about):
        assert f"{printed:,} results" in text
        assert counted[2] in text


def test_status_takes_folders_with_and_without_use(cooked: Path, command: Any) -> None:
    """A folder after the first, in `cook status --use A B`, had no say."""
    code, bare, _ = command("cook", "status", cooked, "--json")
    assert (code, bare) == command("cook", "status", "--use", cooked, "--json")[:2]
    code, _, err = command("cook", "status", "--use", cooked, cooked / "nothing")
    assert (code, "is not the folder of a recipe run" in err) == (2, True)
    assert command("cook", "list", cooked)[0] == 2
