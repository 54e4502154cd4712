"""When a figure is compared with a printed one: the paper's own model on the paper's own items, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from foils import foil_bench
from tests.reporting.conftest import beside

from creperie.bench import Item, choice, from_items
from creperie.core import UsageError
from creperie.metrics import MetricSettings
from creperie.models import prompts_of
from creperie.reporting import (
    PublishedTable,
    RecipeFindings,
    fact_rows,
    fill_table,
    misplaced,
    published_table,
    published_tables,
    render_table,
)
from creperie.scoring import Run, layout_of_bench, score_table

FIVE = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel")


def run_of(benchmark: str, model: str, cells: dict[str, list[list[float]]], **people: Any) -> Run:
    """A run on triples: the scores of P1, P2 and N, item by item, for every subset."""
    items = [
        Item(str(i), subset, (f"{subset}{i}.jpg",), (f"p {i}", f"q {i}", f"n {i}"), choice(2, 1))
        for subset, rows in cells.items()
        for i in range(len(rows))
    ]
    bench = from_items(benchmark, items)
    scores = np.array([row for rows in cells.values() for row in rows], np.float32)
    between = [[1, p, n, p, 1, n, n, n, 1] for p, _, n in scores]
    inputs = {"image_text": scores.ravel(), "text_text": np.array(between, np.float32).ravel(), "text": scores.ravel()}
    document: dict[str, Any] = {
        "creperie": 1,
        "name": f"{benchmark}.{model.split('/')[-1]}",
        "model": {"uri": model, "key": model},
        "benchmark": {"name": benchmark, "hash": bench.hash},
        "tasks": ["itt", "tot"],
        "settings": vars(MetricSettings()),
        "findings": [],
        "results": [],
    }
    document |= {"people": people} if people else {}
    return Run(document, score_table(bench, layout_of_bench(bench), inputs))  # type: ignore[arg-type]


RIGHT, WRONG, FIRST_ALONE = [0.9, 0.8, 0.1], [0.1, 0.2, 0.9], [0.9, 0.1, 0.5]


def test_the_sugarcrepe_half_of_table_19_compares_p1_with_n() -> None:
    """SugarCrepe++'s Table 19, left half: "the corresponding results on SUGARCREPE", which has no P2.

    It held the SC++ rule of the same run again.
    """
    llava = "vlm:llava-hf/llava-1.5-7b-hf?score=vqa"
    run = run_of("rebuilt", llava, {name: [RIGHT, FIRST_ALONE, WRONG, WRONG] for name in FIVE})
    (row,) = beside("sugarcrepe++/19", [run], any_benchmark=True).ours
    assert {row.figures[f"{name}_sc"].value for name in (*FIVE, "average")} == {50.0}
    assert {row.figures[f"{name}_scpp"].value for name in (*FIVE, "average")} == {25.0}
    # a run on SugarCrepe itself goes before P1 and N of the triples, and it alone is compared
    older = run_of("sugarcrepe", llava, {name: [RIGHT, RIGHT, RIGHT, WRONG] for name in FIVE})
    (row,) = beside("sugarcrepe++/19", [run, older], any_benchmark=True).ours
    assert {row.figures[f"{name}_sc"].value for name in FIVE} == {75.0}
    assert row.difference("swap_obj_sc") == pytest.approx(75 - 74.29)
    assert row.difference("swap_obj_scpp") is None


# -- people ----------------------------------------------------------------------------------------------------------

HITS = {"a": 6, "b": 7, "c": 3, "d": 7}


def persons(benchmark: str = "sugarcrepe++", **people: Any) -> list[Run]:
    """Four people on the same 15 items: 40.0, 46.7, 20.0 and 46.7 %."""
    runs = [
        run_of(benchmark, f"human:s/{who}", {"swap_obj": [RIGHT] * n + [WRONG] * (15 - n)}, number=1, **people)
        for who, n in HITS.items()
    ]
    votes = {"swap_obj": [RIGHT] * 8 + [WRONG] * 7}  # 53.3 %
    return [*runs, run_of(benchmark, "human:s/everybody", votes, number=4, **people)]


def test_the_human_row_is_the_average_over_people() -> None:
    """SugarCrepe++, section 3: "The average human performance is reported in terms of accuracy (%)"; four people.

    The combined vote stood in its place.
    """
    filled = beside("sugarcrepe++/2", persons())
    mean, votes = filled.ours
    assert (mean.label, votes.label) == ("4 people, average", "4 people, combined votes")
    assert round(mean.figures["swap_obj_itt"].value, 1) == 38.3
    assert mean.figures["swap_obj_itt"].n == 60
    assert mean.figures["swap_obj_itt"].low < 38.3 < mean.figures["swap_obj_itt"].high
    assert mean.difference("swap_obj_itt") == pytest.approx(100 * 23 / 60 - 100)
    assert round(votes.figures["swap_obj_itt"].value, 1) == 53.3
    assert votes.difference("swap_obj_itt") is None  # another quantity than the paper's
    assert votes.row is mean.row
    assert any("combined votes: all answers to an item are pooled" in note for note in filled.notes)


def test_people_with_unequal_numbers_of_answers_count_alike() -> None:
    one = run_of("sugarcrepe++", "human:s/a", {"swap_obj": [RIGHT] * 10})
    two = run_of("sugarcrepe++", "human:s/b", {"swap_obj": [WRONG] * 2})
    (row,) = beside("sugarcrepe++/2", [one, two]).ours
    assert row.figures["swap_obj_itt"].value == pytest.approx(50)  # pooled: 83.3


def test_the_interval_of_people_who_answer_alike_is_that_of_their_items() -> None:
    """Four people who give the same answers to 15 items are no more evidence about the items than one."""
    alike = {"swap_obj": [RIGHT] * 6 + [WRONG] * 9}
    runs = [run_of("sugarcrepe++", f"human:s/{who}", alike) for who in "abcd"]
    four, one = (beside("sugarcrepe++/2", own).ours[0] for own in (runs, runs[:1]))
    cells = [row.figures["swap_obj_itt"] for row in (four, one)]
    assert cells[0].high - cells[0].low == pytest.approx(cells[1].high - cells[1].low, rel=0.1)


def test_scripts_are_never_compared_with_people() -> None:
    rows = beside("sugarcrepe++/2", persons(scripted=True)).ours
    assert rows[0].label == "4 scripted annotators, not people, average"
    assert all(row.difference("swap_obj_itt") is None for row in rows)
    assert "minus Human" not in render_table(beside("sugarcrepe++/2", persons(scripted=True)))


def test_people_belong_where_the_paper_asked_people() -> None:
    runs = persons()
    assert not any(misplaced(published_table("sugarcrepe++/2"), run) for run in runs)
    assert misplaced(published_table("sugarcrepe++/12"), runs[0]) == "the table has no row for people"


# -- other items, other models ---------------------------------------------------------------------------------------

#: tables whose columns triples can fill; four captions and pairs that are reordered are another matter
MEASURED = [
    table
    for table in published_tables()
    if any(row.uris for row in table.rows)
    and any(column.tasks and not column.tasks[0].startswith(("preference", "tot-")) for column in table.columns)
]


@pytest.mark.parametrize("table", MEASURED, ids=lambda table: table.key)
def test_the_papers_own_model_on_other_items_is_not_compared(table: PublishedTable) -> None:
    """All papers: VISLA's Tables 2, 3 and 5 printed "+9.44 ✓" for MiniLM on 60 rebuilt items."""
    models = [uri for row in table.rows for uri in row.uris]
    names = {s.replace("*", "x") for c in table.columns for s in (c.subsets or (c.name,)) if c.measured}
    run = run_of("rebuilt", models[0], {name: [RIGHT, WRONG] for name in names})
    filled = fill_table(table, [run], any_benchmark=True)
    (row,) = filled.ours
    assert row.row is not None
    assert row.figures
    assert {row.difference(name) for name in row.figures} == {None}
    assert {row.equal(name) for name in row.figures} == {row.within(name) for name in row.figures} == {None}
    assert row.label.endswith("on rebuilt")
    text = render_table(filled)
    assert "minus " not in text
    assert "None is compared" in text


def test_rows_of_recipes_are_compared_only_if_they_are_the_papers() -> None:
    """SugarCrepe's Table 9 printed "=" for scripts, its Table 5 "minus CLIP pretrained −20.95" for a toy model, SADE's
    Table 1 "minus images −5169.00".
    """
    better = {
        **{"task": "better-foil", "sources": ["aro+crepe-rebuilt", "sugarcrepe-small"], "annotators": ["a"]},
        "table": [{"subset": "swap", "evaluation": "sense", "n": 3, "aro+crepe-rebuilt": 1, "sugarcrepe-small": 2}],
    }
    exam = {"arm": "base", "values": {"clean replace": 60.0}}
    about = {"data": "lessons", "sizes": {"clean replace": 30}, "base": [exam], "sat": []}
    trained = about | {"benchmarks": ["aro+crepe-rebuilt", "forms"]}
    found = RecipeFindings(
        benches={"validate": foil_bench([("x", "y")] * 3, "sade-cooked", subset="negate", images="{}")},
        people={"judges": better, "scripts": better | {"scripted": True}},
        trainings={
            "toy": trained | {"model": "small:/out/14-student/model"},
            "clip": trained | {"model": "open_clip:ViT-B-32-quickgelu/openai"},
            "fresh": trained | {"model": "/cookbook/student.json", "scratch": True, "sat": [exam | {"arm": "none"}]},
        },
    )
    for key in ("sugarcrepe/5", "sugarcrepe/9", "sade/1"):
        filled = beside(key, rows=fact_rows(key, found))
        assert filled.ours
        for row in filled.ours:
            assert row.row is not None or row.stands_in
            assert {row.difference(name) for name in row.figures} == {None}
            assert " on " in row.label  # whose items, beside who
            assert "/" not in row.label.replace("ViT-B/32", "").partition("open_clip:")[0]  # no path of this machine
        assert "minus" not in render_table(filled)
    real = about | {"benchmarks": ["aro+crepe", "sugarcrepe"]}
    for model, difference in (("open_clip:ViT-B-32-quickgelu/openai", 60 - 80.76), ("small:/out/14-s/model", None)):
        study = RecipeFindings(trainings={"t": real | {"model": model}})
        (row,) = beside("sugarcrepe/5", rows=fact_rows("sugarcrepe/5", study)).ours
        assert row.difference("replace") == (None if difference is None else pytest.approx(difference))


# -- prompts ---------------------------------------------------------------------------------------------------------


def asked(way: str) -> Run:
    return run_of("sugarcrepe++", way, {name: [RIGHT, WRONG] for name in FIVE})


def test_every_table_about_prompts_has_its_own() -> None:
    """SugarCrepe++: Prompts 1 to 3 (section 3.3, Table 8), five wordings (Table 17), Figure 7 (Table 18), and the query
    of Table 14, whose zero-shot row is Prompt 3. One prompt served three of these tables.
    """
    own = {number: published_table(f"sugarcrepe++/{number}").prompts for number in ("8", "14", "17", "18")}
    assert [len(names) for names in own.values()] == [3, 2, 5, 1]
    assert set(own["8"]) & set(own["14"]) == {"odd-forced"}
    assert not set(own["18"]) & {*own["8"], *own["14"], *own["17"]}
    shipped = {prompt.id: prompt.text for prompt in prompts_of("")}
    used = [name for names in own.values() for name in names]
    assert len({shipped[name] for name in used}) == len(set(used)) == 10  # no two share their words
    tiny = "vlm:/out/15-random-asked/model?score=choice&prompt={}&order=NPP"
    for number, prompt, fits in (("8", "odd-forced", True), ("8", "odd-which", False), ("18", "odd-which", True)):
        table, run = published_table(f"sugarcrepe++/{number}"), asked(tiny.format(prompt))
        if fits:
            assert len(fill_table(table, [run]).ours) == 1
        else:
            with pytest.raises(UsageError, match="the table is about the prompts odd-or-none, odd-or-none-reworded"):
                fill_table(table, [run])


def test_rows_of_tables_about_prompts_stand_below_the_row_that_was_asked_alike(tmp_path: Path) -> None:
    """Table 14 prints 49.24 for four and 52.39 for eight examples; our rows of both stood at the end, of no row."""
    for count, model, compared in ((4, "vlm:/t/15-random/model", False), (8, "api:gpt-4o", True)):
        file = tmp_path / f"{count}.toml"
        shots = [f'[[demonstration]]\nsubset = "{name}"\n' for name in FIVE for _ in range(count)]
        file.write_text("".join(shots), encoding="utf-8")
        way = f"?score=choice&prompt=%2Fmy%2F%23odd-few-shot&order=NPP&shots={quote(str(file), safe='')}"
        (row,) = beside("sugarcrepe++/14", [asked(model + way)]).ours
        assert row.row.model == f"GPT-4o, {count}-shot"
        assert row.compared("swap_obj") is compared  # a model in the place of GPT-4o never is


def test_a_table_says_whose_words_a_prompt_had_and_compares_the_users_alone() -> None:
    """The papers' prompts are not shipped: creperie's words are not Prompt 3 of Table 8, which gave 67.61 %."""
    ours, theirs = "odd-forced", "%2Fmy%2F%23odd-forced"
    for prompt, says, difference in (
        (ours, "asked in creperie's words, not the paper's", None),
        (theirs, "asked in the words given with --prompts", 50 - 67.61),
    ):
        filled = beside("sugarcrepe++/8", [asked(f"api:gpt-4o?score=choice&prompt={prompt}&order=NPP")])
        (row,) = filled.ours
        assert row.row.model == "GPT-4o, prompt-3"
        assert row.label == "api:gpt-4o?score=choice&prompt=odd-forced&order=NPP"
        assert row.difference("swap_obj") == (None if difference is None else pytest.approx(difference))
        assert any(says in note for note in filled.notes)


def test_a_row_says_the_chance_of_its_columns_where_they_differ() -> None:
    """25.12 looked above the paper's 22.31 on CREPE atomic, and was below its own chance of five captions."""
    items = [
        Item(f"{subset}{i}", subset, (f"{subset}{i}.jpg",), tuple(f"c {k} {i}" for k in range(n)), choice(1, n - 1))
        for subset, n in (("swap_obj", 2), ("swap_att", 5))
        for i in range(4)
    ]
    bench = from_items("sugarcrepe", items)
    scores = np.concatenate([np.linspace(1, 0, len(item.captions)) for item in items]).astype(np.float32)
    document = run_of("sugarcrepe", "small:x", {"swap_obj": [RIGHT]}).document
    run = Run(document, score_table(bench, layout_of_bench(bench), {"image_text": scores}))  # type: ignore[arg-type]
    notes = beside("sugarcrepe/6", [run]).notes
    assert "small:x: chance, %: Swap obj 50.0, Swap att 20.0." in notes


def test_a_share_below_chance_is_explained_by_its_ties() -> None:
    """SugarCrepe's code counts a tie as wrong (score of the positive > score of the negative): a rule of length that
    sees two captions of one length has 1.2 % of two choices, and the table did not say why. Cells alike were marked
    in one table and not in another.
    """
    same = [0.5, 0.5, 0.5]
    run = run_of("sugarcrepe", "blind:length", {"swap_obj": [RIGHT] + [same] * 79 + [WRONG] * 5})
    filled = beside("sugarcrepe/6", [run])
    assert round(filled.ours[0].figures["swap_obj"].value, 1) == 1.2
    rule = "ties are counted as wrong (many can put a figure below chance)"
    assert f"blind:length: {rule}: Swap obj 79 of 85." in filled.notes
    several = {"swap_obj": [same] * 9 + [WRONG], "swap_att": [RIGHT] * 60 + [same] * 40, "replace_obj": [RIGHT, same]}
    (*_, note) = beside("sugarcrepe/6", [run_of("sugarcrepe", "blind:length", several)]).notes
    assert note.endswith(f"{rule}: Replace obj 1 of 2, Swap obj 9 of 10, Swap att 40 of 100.")  # marked alike
