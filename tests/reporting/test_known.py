"""Published results of others: transcribed faithfully, ranked only with results of the same definition."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from creperie.bench import PAIRED, Item, from_items
from creperie.core import CreperieError
from creperie.reporting import (
    column_correlations,
    export_mieb,
    fill_table,
    known_places,
    published_table,
    without_place,
)
from creperie.reporting.known import known_columns
from creperie.scoring.replies import answered_run


def test_mieb_s_figures_and_correlations_are_those_of_its_file(shared_data: Path) -> None:
    pandas = pytest.importorskip("pandas")
    theirs = pandas.read_csv(shared_data / "outside/mieb/mieb.csv", index_col=0)
    table = published_table("mieb/1")
    ours = pandas.DataFrame({r.model: r.cells for r in table.rows}).T.replace("", None).astype(float) / 100
    assert abs(ours.to_numpy() - theirs.to_numpy())[~theirs.isna().to_numpy()].max() < 6e-5
    reference = theirs.SugarCrepe.corr(theirs.Winoground, method="spearman")
    assert column_correlations(table).pairs[-1][2].value == pytest.approx(
        reference, abs=2e-3
    )  # two digits tie some models


def test_mieb_s_sugarcrepe_is_the_share_of_all_items() -> None:
    """Pooled by the paper's numbers of items, the subsets of its Table 6 give MIEB's figures; their mean does not."""
    table = published_table("sugarcrepe/6")
    sizes = {c.name: c.n for c in table.columns if c.name not in ("params", "average")}
    pooled = {r.model: sum(float(r.cells[s]) * n for s, n in sizes.items()) / 7512 for r in table.rows}  # type: ignore
    same = {"ViT-B-32": "openai/clip-vit-base-patch32", "ViT-L-14": "openai/clip-vit-large-patch14"}
    same |= {"ViT-H-14": "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"}
    theirs = {r.model: float(r.cells["sugarcrepe"]) for r in published_table("mieb/1").rows if r.cells["sugarcrepe"]}
    assert max(abs(pooled[a] - theirs[b]) for a, b in same.items()) < 0.2


def test_a_run_is_placed_among_results_of_its_definition_alone() -> None:
    result: dict[str, Any] = {"task": "itt", "subset": "all", "n": 7511, "accuracy": 0.765, "low": 0.75, "high": 0.766}
    document = {"benchmark": {"name": "sugarcrepe", "subsets": {"a": 1, "b": 1}}, "results": [result]}
    run: Any = SimpleNamespace(benchmark="sugarcrepe", model="hf:x", name="r", document=document)
    (place,) = known_places(run)
    assert "76.5 %, between BAAI/bge-visualized-m3 (75.7, mieb/1) and openai/clip-vit-base-patch32 (76.6" in str(place)
    assert {r.table for r in place.column.results} == {"mieb/1"}
    result |= {"ties": 100, "hits": 5746, "tie_rule": "wrong"}  # MIEB takes the first of equals, which is true
    assert known_places(run)[0].value == pytest.approx(100 * 5846 / 7511)
    assert str(known_places(run)[0]).endswith("; 100 of its 7,511 items are ties, counted as right")
    assert without_place(run, "winoground") == ["r has no place: it is a run on sugarcrepe"]
    (clip,) = [r for r in place.column.results if r.model == "openai/clip-vit-base-patch32"]
    result |= {"ties": 0, "accuracy": clip.value / 100 + 3e-5}  # equal in all digits that were printed
    assert "equal to the last printed digit to openai/clip-vit-base-patch32 (76.6, mieb/1);" in str(
        known_places(run)[0]
    )
    result["n"] = 700  # a part of the items
    assert known_places(run) == []
    assert any(
        "by SugarCrepe: it has 700 items; a place needs 99 % of" in why for why in without_place(run, "sugarcrepe")
    )
    result["task"] = "tot"
    assert without_place(run, "sugarcrepe") == ["r has no place: it has tot; published are itt"]


SIZES = {"add_att": 692, "add_obj": 2062, "swap_att": 666, "swap_obj": 245}
SIZES |= {"replace_att": 788, "replace_obj": 1652, "replace_rel": 1406}


def run_with(**items: int) -> Any:
    """A run on SugarCrepe with these numbers of items; 7 of 10 are right, and 1 of 10 is a tie."""
    rows = [
        {
            "task": "itt",
            "subset": s,
            "n": n,
            "hits": 7 * n // 10,
            "ties": n // 10,
            "accuracy": 0.7,
            "low": 0.6,
            "high": 0.8,
        }
        for s, n in items.items()
    ]
    total = {k: sum(r[k] for r in rows) for k in ("n", "hits", "ties")}
    rows += [{**rows[0], **total, "subset": "all"}, {**rows[0], "n": total["n"], "subset": "macro", "ties": 0}]
    document = {"benchmark": {"name": "sugarcrepe", "subsets": items}, "results": rows}
    return SimpleNamespace(benchmark="sugarcrepe", model="hf:x", name="r", document=document)


def test_a_run_has_a_place_by_every_definition_that_it_fills_and_a_reason_by_every_other() -> None:
    """A mean of subsets was placed though a third of one of them was missing; pooled subsets were left out unsaid."""
    places = {p.column.title: p for p in known_places(run_with(**SIZES))}
    assert places.keys() >= {"Average", "Swap obj", "Replace", "Swap", "Add", "SugarCrepe"}
    assert places["Swap"].value == pytest.approx(100 * (7 * 666 // 10 + 7 * 245 // 10) / 911)
    assert places["Swap"].note == "90 of its 911 items are ties, counted as wrong"
    assert without_place(run_with(**SIZES), "sugarcrepe") == []
    part = run_with(**{**SIZES, "swap_obj": 174})
    assert {p.column.title for p in known_places(part)} == places.keys() - {"Average", "Swap obj", "Swap"}
    why = without_place(part, "sugarcrepe")
    assert "r has no place by Average: it has 174 items of swap_obj; a place needs 99 % of the 246 published" in why
    assert len(why) == 3
    some = run_with(swap_obj=245, swap_att=666)
    assert any(
        "Replace obj, Replace att, " in why and "lacks some of" in why for why in without_place(some, "sugarcrepe")
    )
    assert {p.column.title for p in known_places(some)} == {"Swap obj", "Swap att", "Swap"}


def test_a_model_of_two_tables_of_a_paper_is_one_published_result() -> None:
    """Table 10 of SugarCrepe prints models of Table 5 again, by other names; they counted twice."""
    (swap,) = [c for c in known_columns() if c.title == "Swap" and c.definition[0] == "sugarcrepe"]
    assert [r.table for r in swap.results if r.value in (62.65, 60.33)] == ["sugarcrepe/5"] * 2
    assert {r.table for r in swap.results} == {"sugarcrepe/5", "sugarcrepe/10"}


def test_of_several_runs_every_sentence_names_its_own(tmp_path: Path, command: Any) -> None:
    items = [Item(str(k), "swap_obj", ("a",), ("x", "y"), ((True, False),), {}) for k in range(245)]
    bench = from_items("sugarcrepe", items)
    for name, right in (("one", 100), ("two", 200)):
        answered_run(bench, np.array([1, 0] * right + [0, 1] * (245 - right), np.float32), name).save(tmp_path / "runs")
    _, out, _ = command("table", "known/sugarcrepe", *sorted((tmp_path / "runs").iterdir()))
    said = [line for line in out.splitlines() if "Swap obj, itt: " in line]
    assert [(line.split(":")[0].split()[-1], line.count("40.8 %"), line.count("81.6 %")) for line in said] == [
        ("one", 1, 0),
        ("two", 0, 1),
    ]


def test_runs_that_can_be_exported_are_and_the_others_are_named(tmp_path: Path, command: Any) -> None:
    items = [Item(str(k), "w", ("a", "b"), ("x", "y"), PAIRED, {}) for k in range(400)]
    scores = np.tile(np.array([1, 0, 0, 1], np.float32), 400)
    whole, part = scores.copy(), scores.copy()
    part[:800] = np.nan
    bench = from_items("winoground", items)
    for name, own in (("a", part), ("b", whole)):
        answered_run(bench, own, f"hf:org/{name}").save(tmp_path / "runs")
    code, out, _ = command("runs", "export", tmp_path / "runs", "--out", tmp_path / "o", "--json")
    assert code == 3
    assert [Path(file).parts[-3] for file in json.loads(out)["files"]] == ["org__b"]
    assert "200 of 400 items" in next(iter(json.loads(out)["refused"].values()))


def test_correlations_are_over_models_of_images_and_not_with_their_own_parts() -> None:
    pandas = pytest.importorskip("pandas")
    table = published_table("sugarcrepe/6")
    rows = [r.cells for r in table.rows if r.model not in ("Human", "Vera", "Grammar")]
    figures = pandas.DataFrame(rows).drop(columns="params").astype(float)
    found = column_correlations(table)
    assert found.left_out == ("Grammar", "Human", "Vera")
    assert {c.n for *_, c in found.pairs} == {19}
    titles = {c.name: c.title for c in table.columns}
    expected = figures.rename(columns=titles).corr(method="spearman")
    assert [(a, b) for a, b, _ in found.pairs if "Average" in (a, b)] == []
    assert [c.value for *_, c in found.pairs] == pytest.approx([expected.loc[a, b] for a, b, _ in found.pairs])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mieb/1", "--correlate", "runs/mine"], "RUN has no effect on --correlate"),
        (["known/sugarcrepe", "--correlate"], "--correlate has no effect on published results"),
        (["known/sugarcrepe", "--any", "--rows", "task"], "--rows, --any have no effect"),
        (["list", "--out", "x.md"], "--out has no effect on the list of tables"),
        (["sugarcrepe/6", "--task", "itt"], "--task has no effect on a published table"),
        (["."], "--correlate has no effect on a table of your own runs"),
    ],
)
def test_what_has_no_effect_on_a_table_is_refused(command: Any, words: list[str], says: str) -> None:
    code, _, err = command("table", *words, *(["--correlate"] if words == ["."] else []))
    assert (code, says in err) == (2, True), err


def test_a_results_file_has_mieb_s_figures(tmp_path: Path) -> None:
    """Of equal scores the first is taken: right for the first image and caption, wrong for the second."""
    items = [Item(str(k), "w", ("a", "b"), ("x", "y"), PAIRED, {}) for k in range(400)]
    scores = np.tile(np.array([1, 0, 0, 1] * 3 + [1, 1, 0, 1], np.float32), 100)  # ties in the last
    run = answered_run(from_items("winoground", items), scores, "hf:org/model")
    document = json.loads(export_mieb(run, tmp_path).read_text())
    entry = document["scores"]["test"][0]
    assert (entry["text_acc"], entry["image_acc"], entry["main_score"]) == (1.0, 0.75, 0.75)
    assert document["mteb_version"] is None
    assert document["dataset_revision"].startswith("creperie-")  # not MIEB's: other items may have been scored
    assert entry["computed_by"].startswith("creperie ")
    with pytest.raises(CreperieError, match="100 of its 400 items are ties, which the source counts by a rule of its"):
        fill_table(published_table("mieb/1"), [run])
    scores[:800] = np.nan
    with pytest.raises(CreperieError, match="200 of 400 items have image-text scores"):
        export_mieb(answered_run(from_items("winoground", items), scores, "hf:org/model"), tmp_path)
