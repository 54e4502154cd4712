"""Rows of published tables that no run gives: counts, pairs of foils, people's answers, trainings, effects."""

from __future__ import annotations

from typing import Any

import pytest

from creperie.bench import PAIRED, Item, choice, from_items
from creperie.reporting import RecipeFindings, fact_rows, fill_table, published_table, render_table
from creperie.reporting.figures.of_tables import imagenet_correlation


def rows(key: str, found: RecipeFindings) -> dict[tuple[str, str], dict[str, Any]]:
    """What is beside each printed row, by its group and name."""
    filled = fill_table(published_table(key), rows=fact_rows(key, found))
    return {(r.row.group, r.row.model): {c: f.value for c, f in r.figures.items()} for r in filled.ours if r.row}


def test_counts_and_their_agreement() -> None:
    items = [Item(str(i), "swap_obj", (), ("a", "b"), choice(1, 1)) for i in range(245)]
    found = RecipeFindings(benches={"released": from_items("sugarcrepe++", items)})
    assert rows("sugarcrepe++/1", found)["", "examples"] == {"swap_obj": 245.0, "total": 245.0}
    filled = fill_table(published_table("sugarcrepe++/1"), rows=fact_rows("sugarcrepe++/1", found))
    assert filled.ours[0].equal("swap_obj")
    assert [row["released"] for row in filled.document()["rows"] if row["source"] == "run"] == [True]
    assert "▶ released" in render_table(filled)


def test_pairs_of_foils_fill_table_4() -> None:
    """Means are shown where scores are probabilities; a language model's log-probability is not one."""
    row = {"kind": "negate / add", "n": 20, "better": 0.75}
    results = [
        row | {"attacker": "grammar", "first": 0.6, "second": 0.9},
        row | {"attacker": "lm-mean", "first": -5.0, "second": -4.0},
    ]
    got = rows("sugarcrepe/4", RecipeFindings(pairwise={"compare": {"results": results}}))
    assert got["Negate / Add", "Grammar"] == {"aro_crepe": 60.0, "sugarcrepe": 90.0, "better": 75.0}
    assert got["Negate / Add", "Commonsense"] == {"better": 75.0}


def test_people_fill_tables_and_scripts_are_named() -> None:
    better = {
        "task": "better-foil",
        "sources": ["rules", "model"],
        "annotators": ["a", "b"],
        "scripted": True,
        "table": [
            {"subset": "swap", "evaluation": "sense", "n": 5, "rules": 1, "model": 3, "tie": 1},
            {"subset": "negate", "evaluation": "sense", "n": 2, "rules": 0, "model": 2, "tie": 0},
            {"subset": "all", "evaluation": "sense", "n": 7, "rules": 1, "model": 5, "tie": 1},
        ],
    }
    found = RecipeFindings(people={"judges": better})
    assert rows("sugarcrepe/9", found) == {
        ("Swap", "Commonsense"): {"aro_crepe": 1, "sugarcrepe": 3, "tie": 1},
        ("Negate / Add", "Commonsense"): {"aro_crepe": 0, "sugarcrepe": 2, "tie": 0},
    }
    assert all("2 scripted annotators, not people" in row.label for row in fact_rows("sugarcrepe/9", found))
    rated = [{"source": s, "subset": "negate", "n": 4, "mean": m} for s, m in (("original", 2.0), ("filtered", 0.5))]
    bias = {"task": "bias-rating", "sources": ["original", "filtered"], "annotators": ["a"], "table": rated}
    got = rows("sade/1", RecipeFindings(people={"people": bias}))
    assert got["bias rated by people", "original references"] == {"crepe_negate": 2.0}
    assert got["bias rated by people", "SADE references"] == {"crepe_negate": 0.5}


def test_sades_branches_have_the_chance_of_their_score_and_are_counted_after_filtering() -> None:
    pairs = [Item(str(n), "comprehensive", ("a", "b"), ("x", "y"), PAIRED) for n in range(3)]
    five = [Item(str(n), "negate", ("a",), ("x", "1", "2", "3", "4", "5"), choice(1, 5)) for n in range(2)]
    rated = {"task": "bias-rating", "sources": [], "annotators": ["a"], "table": []}
    benches = {"validate": from_items("sade", [*pairs, *five]), "people": from_items("before", [*five, *pairs])}
    found = fact_rows("sade/1", RecipeFindings(benches, people={"people": rated}))
    assert {row.label for row in found} == {"validate"}
    assert found[-1].values == {"winoground": 16.7, "crepe_negate": 16.7}


def test_trainings_and_effects() -> None:
    sat = [
        {"arm": arm, "values": {"biased negate": b, "clean swap": c}}
        for arm, b, c in (("none", 50, 60), ("negate", 99, 61))
    ]
    found = RecipeFindings(
        trainings={
            "trainings": {"preset": "demo", "base": [sat[0] | {"arm": "base"}], "sat": sat},
            "scratch": {"preset": "scratch", "base": [], "sat": sat, "scratch": True},
        },
        fits={
            "stats": {
                "fits": [
                    {
                        "label": "active or passive",
                        "sample": "all models",
                        "coefficients": [
                            {"name": "grammaticality[foil]", "estimate": -0.1, "statistic": -2.0},
                            {"name": "type[passive]", "estimate": 0.3, "statistic": 1.0},
                        ],
                    }
                ]
            }
        },
    )
    got = rows("sugarcrepe/5", found)
    for model in (("RN50", "NegCLIP from scratch (negate)"), ("ViT-B/32", "NegCLIP finetuned (negate)")):
        assert got[model] == {"aro_negate": 99.0, "swap": 61.0}
    assert got["ViT-B/32", "CLIP pretrained"] == {"aro_negate": 50.0, "swap": 60.0}
    assert [row.label for row in fact_rows("sugarcrepe/10", found)] == [
        "scratch: none, preset scratch",  # the paper refined foils for the trainings from scratch
        "scratch: negate, preset scratch",
    ]
    assert rows("hit-or-be-hit/C", found) == {("first model", "grammaticality foil"): {"beta": -0.1, "t": -2.0}}


@pytest.mark.parametrize(("column", "printed"), [("swap_obj", 0.78), ("add_att", 0.75)])
def test_published_imagenet_figures_give_the_papers_correlations(column: str, printed: float) -> None:
    """SugarCrepe, section 5.3: r = 0.78 and 0.75 (0.76 with open_clip's table of results)."""
    assert imagenet_correlation(column).value == pytest.approx(printed, abs=0.011)


def test_the_other_correlations_are_strong() -> None:
    """The same place: above 0.8 for all other kinds of foils."""
    for column in ("replace_obj", "replace_att", "replace_rel", "swap_att", "add_obj"):
        assert imagenet_correlation(column).value > 0.8
