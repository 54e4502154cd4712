"""SugarCrepe's two main claims: checked on the paper's own figures, and honest about runs too small to show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from creperie.core import write_json
from creperie.recipes import directions, main_tables
from creperie.recipes.figure_prompts import papers
from creperie.reporting import published_table
from creperie.reporting.tables.facts import ARM_ROWS

COLUMNS = {
    **{f"biased {name}": f"aro_{name}" for name in ("replace", "swap", "negate", "shuffle")},
    **{f"clean {name}": name for name in ("replace", "swap", "add")},
}


def folder_of(tmp_path: Path, file: str, document: dict[str, Any], profile: str = "paper") -> Path:
    write_json(tmp_path / "recipe.json", {"recipe": "sugarcrepe", "profile": profile, "stages": ["01-x"]})
    write_json(tmp_path / "01-x" / "stage.json", {"does": "x", "summary": {}})
    write_json(tmp_path / "01-x" / file, document)
    return tmp_path


def study(of: str, size: int, seeds: int = 3, **more: Any) -> dict[str, Any]:
    """The printed rows of Table 5 as a study of trainings, as if every seed had given the same."""
    printed = {row.model: row for row in published_table("sugarcrepe/5").rows}
    sat = [
        {"arm": arm, "seed": seed, "values": {ours: float(printed[model].cells[c]) for ours, c in COLUMNS.items()}}
        for seed in range(seeds)
        for arm, model in ARM_ROWS[of].items()
        if arm != "base"
    ]
    about = {"model": "open_clip:x/y", "benchmarks": ["aro+crepe", "sugarcrepe"], "sizes": dict.fromkeys(COLUMNS, size)}
    return {"sat": sat, "base": [], "columns": list(COLUMNS), **about, **more}


@pytest.mark.parametrize(
    ("of", "gains"),
    [
        ("ViT-B/32", "+25.7 on aro+crepe swap and +5.4 on sugarcrepe swap"),
        ("RN50", "+32.3 on aro+crepe swap and +8.0 on sugarcrepe swap"),
    ],
)
def test_gains_are_smaller_on_sugarcrepe_in_the_papers_table_5(tmp_path: Path, of: str, gains: str) -> None:
    """SugarCrepe, section 5.2: "NegCLIP's improvements are much larger on ARO+CREPE than on SugarCrepe"."""
    claims = directions(folder_of(tmp_path, "study.json", study(of, 900)))
    claim = "gains from foils in training are smaller on SugarCrepe than on ARO+CREPE (Table 5)"  # nowhere "honest"
    assert [(c.claim, c.holds) for c in claims] == [(claim, "yes")] * 3
    assert claims[1].numbers.startswith(gains)
    assert "sugarcrepe add" in claims[2].numbers  # the paper has no negated captions there
    toys = directions(folder_of(tmp_path, "study.json", study(of, 900), "small"))  # six rows of toys said yes
    assert [c.holds for c in toys] == ["stand-in: agrees"] * 3
    few = directions(folder_of(tmp_path, "study.json", study(of, 20), "small"))
    assert few[0].holds == "not shown"


def test_a_gain_of_one_training_shows_nothing(tmp_path: Path) -> None:
    """Table 5 says of one seed that it is too few for an interval; an interval of items alone made it "agrees", then
    stood beside "not shown" although it was above 0."""
    for seeds, holds, said in ((1, "not shown", "1 seed"), (2, "not shown", "2 seeds"), (3, "yes", "")):
        for claim in directions(folder_of(tmp_path, "study.json", study("ViT-B/32", 900, seeds))):
            assert claim.holds == holds
            assert claim.numbers.endswith(f"apart, {said}, too few for an interval" if said else "] apart")
            assert ("[" in claim.numbers) == (not said)


def test_a_gain_on_few_items_shows_nothing(tmp_path: Path) -> None:
    """The same figures on 20 items: the intervals of four shares add up; and the other way round is a no."""
    claims = directions(folder_of(tmp_path, "study.json", study("ViT-B/32", 20)))
    assert [c.holds for c in claims] == ["not shown", "not shown", "yes"]
    turned = study("ViT-B/32", 900)
    for exam in turned["sat"]:
        exam["values"] |= {
            f"clean {b}": exam["values"][f"biased {a}"] for a, b in (("swap", "swap"), ("negate", "add"))
        }
        exam["values"] |= {"biased swap": 60.0, "biased negate": 60.0}
    assert [c.holds for c in directions(folder_of(tmp_path, "study.json", turned))] == ["yes", "no", "no"]
    toys = directions(folder_of(tmp_path, "study.json", turned, "small"))  # a contradiction had the mark of agreement
    assert [c.holds for c in toys] == [f"stand-in: {found}" for found in ("agrees", "disagrees", "disagrees")]


def table_8(models: tuple[str, ...] = (), released: bool = True, chance: float = 5) -> dict[str, Any]:
    """The printed rows of Table 8 as rows of a run, without intervals; the paper prints no chance."""
    table = published_table("sugarcrepe/8")
    rows = [
        {
            **{"source": "run", "model": row.model, "uri": row.uris[0], "low": {}, "high": {}, "benchmarks": ["b"]},
            "released": released,
            "chance": dict.fromkeys(row.cells, chance),
            **{name: float(cell) for name, cell in row.cells.items() if cell},
        }
        for row in table.rows
        if row.uris and (not models or row.model in models)
    ]
    return {"rows": rows, "columns": [{"name": column.name, "title": column.title} for column in table.columns]}


def test_blind_models_are_ahead_in_nine_of_ten_columns_of_the_papers_table_8(tmp_path: Path) -> None:
    """SugarCrepe, section 3: "Blind models achieves state-of-the-art performances on 9 out of 10" tasks."""
    (claim,) = directions(folder_of(tmp_path, "sugarcrepe-8.json", table_8()))
    assert claim.claim == "models that see no image beat image-text models on earlier benchmarks"
    assert claim.numbers.startswith("ahead in 9 of 10 columns")
    assert claim.who == "in each column the best of 2 without the image against the best of 17 with it"
    assert claim.holds == "yes"
    (claim,) = directions(folder_of(tmp_path, "sugarcrepe-8.json", table_8(released=False)))
    assert claim.who.endswith("with it, on b, not the published sets")
    assert claim.holds == "stand-in: agrees"
    assert claim.numbers.endswith("; the one with the image is above chance in 10")
    (claim,) = directions(folder_of(tmp_path, "sugarcrepe-8.json", table_8(released=False, chance=40)))
    assert claim.numbers.endswith("; the one with the image is above chance in 7")  # 27.63, 32.74 and 31.25 on CREPE
    assert claim.holds == "stand-in: agrees"  # in the other columns of the nine it is
    (claim,) = directions(folder_of(tmp_path, "sugarcrepe-8.json", table_8(released=False, chance=60)))
    assert claim.holds == "not shown"  # a student at chance is beaten by any model that is not
    (claim,) = directions(folder_of(tmp_path, "sugarcrepe-8.json", table_8(("Vera", "Grammar"))))
    assert (claim.numbers, claim.holds) == ("no image-text model was scored on these benchmarks", "not shown")


def test_a_paper_is_not_said_to_say_what_another_says() -> None:
    """Hit or Be Hit says nothing of shuffled captions; its own claim is that simplified ones are told apart better
    (section 5: 24.93 → 36.96, 52.33 → 62.17, 64.20 → 65.78 of comparison 1)."""
    said = {p["recipe"]: [claim["says"] for claim in p.get("claims", ())] for p in papers()}
    assert [r for r, claims in said.items() if "shuffled captions score below true ones" in claims] == ["sade"]
    (claim,) = next(p["claims"] for p in papers() if p["recipe"] == "hit-or-be-hit")
    for row in published_table("hit-or-be-hit/4").rows:
        assert float(row.cells[claim["lower"]]) < float(row.cells[claim["higher"]])


def test_a_run_ends_with_the_main_tables_of_its_paper() -> None:
    """Those of sections 5.1 to 5.3 of SugarCrepe and of section 3.1 of SugarCrepe++; appendices came last."""
    assert main_tables("sugarcrepe") == ["sugarcrepe/4", "sugarcrepe/5", "sugarcrepe/6"]
    assert main_tables("sugarcrepe-pp") == ["sugarcrepe++/2", "sugarcrepe++/3"]
    for recipe in ("sugarcrepe", "sugarcrepe-pp", "visla", "sade", "hit-or-be-hit"):
        assert all(not published_table(key).where.startswith("appendix") for key in main_tables(recipe))
    assert main_tables("twins") == []


def test_claims_about_two_columns_hold_in_the_printed_rows_but_those_they_name() -> None:
    """VISLA's Table 2 has one encoder for which spatial items are the easier ones: LaBSE, 33.92 and 44.53."""
    said = [(p["name"], c) for p in papers() for c in p.get("claims", ()) if "lower" in c]
    assert len(said) == 3
    for paper, claim in said:
        rows = published_table(f"{paper}/{claim['table']}").rows
        against = {r.model for r in rows if float(r.cells[claim["lower"]]) >= float(r.cells[claim["higher"]])}
        assert against == {r.model for r in rows if r.model in claim["says"]}, paper
