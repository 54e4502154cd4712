"""From answers to decisions, agreement, new versions, human runs, and files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foils import foil_bench, foil_items
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from tests.annotation.acting import begin, judged_in, seen_in, work

from creperie import compare, load, load_run
from creperie.annotation import (
    ApplyPlan,
    Database,
    StudyPlan,
    agreement,
    apply_record,
    apply_study,
    disagreements,
    invite,
    read_export,
    store_study,
    study_named,
    task_named,
    write_applied,
)
from creperie.annotation.outcome import settle
from creperie.annotation.schema import MAIN, Annotator, Question, Slot
from creperie.annotation.state import adjudicate
from creperie.annotation.study import _drafts
from creperie.annotation.tasks import TASKS
from creperie.annotation.tasks.form import AnswerError, read_form
from creperie.annotation.tasks.preference import by_kind, foil_pairs
from creperie.annotation.tasks.task import QuestionDraft, texts
from creperie.bench import Benchmark, Item, choice, from_items, items_of
from creperie.core import UsageError

Reply = Callable[[str, Slot], dict[str, Any]]


def run_study(db: Database, bench: Benchmark, reply: Reply, people: int = 2, **plan: Any) -> list[str]:
    """A study that everybody works through; `reply` gives the value that an annotator means."""
    other = plan.pop("other", None)
    store_study(db, "s", bench, StudyPlan(**({"practice": 0, "overlap": people} | plan)), other=other)
    invite(db, "s", people)
    with db.read() as session:
        everybody = session.execute(select(Annotator.id, Annotator.pseudonym).order_by(Annotator.id)).all()
    for place, (who, _) in enumerate(everybody):
        work(db, who, fields=lambda desk, ticket, place=place: shown_as(desk.task, ticket, reply(str(place), ticket)))
    return [name for _, name in everybody]


def shown_as(task: Any, ticket: Slot, value: dict[str, Any]) -> dict[str, Any]:
    """The fields that mean this value: found by trying what the page offers."""
    order = ticket.order or []
    if ("text" in value and "foil" not in value) or not order:
        return value
    extra = {k: v for k, v in value.items() if k == "text"}
    for fields in _possible(task, ticket):
        if task.mean(ticket.question.payload, order, {**fields, **extra}) == value:
            return {**fields, **extra}
    raise AssertionError(f"no answer of the page means {value}")


def _possible(task: Any, ticket: Slot) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}]
    for field in task.show(ticket.question.payload, ticket.order or []).fields:
        if field.kind == "text":
            continue
        values = [o.value for o in field.options] or list(range(field.low, field.high + 1))
        found = [{**one, field.name: v} for one in found for v in values]
    return found


# -- tasks -----------------------------------------------------------------------------------------------------------

ITEMS = [
    Item("0", "a", ("x.png",), ("p", "n"), choice(1, 1)),
    Item("1", "a", ("x.png",), ("p", "q", "n"), choice(2, 1)),
    Item("2", "a", ("x.png",), ("p", "n", "m"), choice(1, 2)),
    Item("3", "b", ("x.png", "y.png"), ("p", "q"), ((True, False), (False, True))),
    Item("4", "b", (), ("p", "q", "n"), choice(2, 1)),
]


@pytest.mark.parametrize(
    ("task", "keys"),
    [
        ("foil-check", ["0", "1", "2", "2", "3", "3"]),
        ("positive-check", ["1", "4"]),
        ("triplet-check", ["0", "1", "2", "4"]),
        ("find-negative", ["1"]),
        ("choose-caption", ["0", "2", "3"]),
        ("better-foil", ["2"]),
        ("bias-rating", ["0", "1", "2", "3", "4"]),
    ],
)
def test_which_items_become_questions(task: str, keys: list[str]) -> None:
    assert [d.item for d in TASKS[task].draft("x", ITEMS)] == keys


def test_without_images_the_odd_caption_is_found_from_texts() -> None:
    drafts = TASKS["find-negative"].draft("x", ITEMS, with_image=False)
    assert [(d.item, d.payload["images"]) for d in drafts] == [("1", []), ("4", [])]


@given(st.sampled_from(sorted(TASKS)), st.integers(0, 9), st.randoms(use_true_random=False))
def test_what_an_answer_means_does_not_depend_on_the_order_shown(task: str, n: int, dice: Any) -> None:
    """Every value can be expressed in every order, and exactly one set of fields means it."""
    own = TASKS[task]
    drafts = own.draft("x", ITEMS)
    payload = drafts[n % len(drafts)].payload
    order = list(range(own.shuffled(payload)))
    plain = {json.dumps(own.mean(payload, order, f), sort_keys=True) for f in _answers(own.show(payload, order))}
    dice.shuffle(order)
    form = own.show(payload, order)
    turned = [json.dumps(own.mean(payload, order, read_form(form, f)), sort_keys=True) for f in _answers(form)]
    assert len(turned) == len(set(turned))
    assert set(turned) == plain
    for asked, known in own.known(payload, None):
        assert own.right(known, known)
        assert own.say(asked, known)


def _answers(form: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}]
    for field in form.fields:
        values = [o.value for o in field.options] or (
            ["t"] if field.kind == "text" else range(field.low, field.high + 1)
        )
        found = [
            {**one, field.name: v} if field.when is None or one.get(field.when[0]) == field.when[1] else one
            for one in found
            for v in (values if field.when is None or one.get(field.when[0]) == field.when[1] else [None])
        ]
    return found


@pytest.mark.parametrize("task", sorted(TASKS))
def test_known_answers_are_ones_that_their_question_accepts(task: str) -> None:
    own = TASKS[task]
    drafts = own.draft("x", ITEMS)
    for draft in drafts:
        for payload, known in own.known(draft.payload, drafts[0].payload):
            order = list(range(own.shuffled(payload)))
            meant = [own.mean(payload, order, f) for f in _answers(own.show(payload, order))]
            assert any(own.right(value, known) for value in meant)
            assert not all(own.right(value, known) for value in meant)


def test_fields_are_needed_only_where_they_apply() -> None:
    own = TASKS["positive-check"]
    form = own.show(own.draft("x", ITEMS)[0].payload, [])
    assert read_form(form, {"verdict": "accept", "text": "ignored", "error": "other"}) == {"verdict": "accept"}
    with pytest.raises(AnswerError, match="'text' is empty"):
        read_form(form, {"verdict": "edit", "error": "other"})


# -- decisions -------------------------------------------------------------------------------------------------------


def verdicts(**said: list[str]) -> Reply:
    """Verdicts of three annotators by item id; `false` where nothing is said, and in every attention check."""

    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        named = said.get(f"i{ticket.question.item}") if ticket.question.kind == MAIN else None
        return {"verdict": (named or ["false"] * 3)[int(who)]}

    return reply


def test_majority_adjudication_and_splits(db: Database, bench: Benchmark) -> None:
    replies = verdicts(i0=["true", "true", "false"], i1=["true", "false", "unsure"], i2=["true"] * 3)
    run_study(db, bench, replies, 3, task="foil-check", subsets=("pair",))
    task = task_named("foil-check")
    by_item = {one.item: one for one in judged_in(db, "s")}
    assert [(settle(task, by_item[i]).how, (settle(task, by_item[i]).value or {}).get("verdict")) for i in "0123"] == [
        ("majority", "true"),
        ("split", None),
        ("unanimous", "true"),
        ("unanimous", "false"),
    ]
    assert {one.item for one in disagreements(task, judged_in(db, "s"))} == {"0", "1"}
    with db.write() as session:
        adjudicate(session, study_named(session, "s"), by_item["1"].ordinal, {"verdict": "true"}, "", "ana")
    seen = seen_in(db, "s")
    assert (seen["disagreements"], seen["to_adjudicate"]) == (2, 1)
    done = apply_study(db, "s", bench)
    kept = {i.id: i.tags["people.foil-check"] for i in items_of(done.bench.only(["pair"]).table)}
    assert {"0", "1", "2"}.isdisjoint(kept)
    assert list(kept.values()) == ["confirmed"] * 13
    assert done.document["fates"] == {"removed": 3, "not judged": 40, "confirmed": 13}


def test_the_new_version_says_where_it_comes_from(db: Database, bench: Benchmark, tmp_path: Path) -> None:
    names = run_study(db, bench, verdicts(i0=["true"] * 2), task="foil-check", subsets=("pair", "several"))
    done = apply_study(db, "s", bench)
    written = write_applied(db, done, ApplyPlan(out=tmp_path / "v2"))
    again = load(str(tmp_path / "v2"))
    step = again.provenance[-1]
    assert (step.op, step.inputs, step.args["study"]) == ("annotate", (bench.hash,), "s")
    assert sorted(step.args["annotators"]) == sorted(names)
    assert written["removed"] == len(bench) - len(again) == 2  # the pair, and the one whose two foils are both true
    record = read_export(tmp_path / "v2" / "study.json")
    assert record["digest"] == step.args["export"] == written["export"]
    assert len(record["answers"]) == 96
    recomputed = apply_record(record, bench)  # from the file alone
    assert recomputed.bench.hash == again.hash
    with pytest.raises(UsageError, match="made from a different version"):
        apply_study(db, "s", again)


def test_a_true_foil_among_several_goes_alone(db: Database, bench: Benchmark) -> None:
    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        return {"verdict": "true" if ticket.question.payload["column"] == 2 else "false"}

    run_study(db, bench, reply, task="foil-check", subsets=("several",))
    done = apply_study(db, "s", bench)
    before, after = bench.item("several", "0"), done.bench.item("several", "0")
    assert after.captions == before.captions[:2]
    assert after.captions[1].endswith(" ")  # captions are data
    assert after.match == ((True, False),)
    assert after.tags["people.foil-check"] == "foil removed"


def test_undecided_items_stay_or_go_as_asked(db: Database, bench: Benchmark) -> None:
    run_study(db, bench, verdicts(i0=["true", "false"], i1=["unsure", "unsure"]), task="foil-check", subsets=("pair",))
    kept = apply_study(db, "s", bench)
    assert kept.bench.item("pair", "0").tags["people.foil-check"] == "undecided"
    dropped = apply_study(db, "s", bench, ApplyPlan(undecided="drop"))
    assert dropped.document["removed"] == 2


def test_mended_captions_replace_the_second_positive(db: Database, bench: Benchmark) -> None:
    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        mended = {"verdict": "edit", "text": " a mended caption ", "error": "hallucination"}
        different = {**mended, "text": f"by {who}"}
        return {"0": mended, "1": {"verdict": "reject"}, "2": different}.get(
            ticket.question.item, {"verdict": "accept"}
        )

    run_study(db, bench, reply, task="positive-check", subsets=("triplet",))
    done = apply_study(db, "s", bench)
    assert done.bench.item("triplet", "0").captions[1] == " a mended caption "
    assert done.bench.item("triplet", "2").tags["people.positive-check"] == "undecided"
    assert done.document["fates"] == {"not judged": 40, "corrected": 1, "removed": 1, "undecided": 1, "confirmed": 13}


def test_experts_choose_one_of_three_foils_and_correct_the_second_positive(db: Database) -> None:
    made = foil_bench([("p", "q", "x", "y", "z")] * 5, "mined", subset="spatial", true=2)

    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        chosen = {"foil": "3", "verdict": "valid"}
        mended = {"foil": "4", "verdict": "edit", "text": "Q"}
        apart = {"foil": str(2 + int(who)), "verdict": "valid"}
        own = {"0": chosen, "1": mended, "2": {"foil": "2", "verdict": "invalid"}, "3": apart}
        return own.get(ticket.question.item, chosen)

    run_study(db, made, reply, task="triplet-check")
    done = apply_study(db, "s", made)
    assert done.bench.item("spatial", "0").captions == ("p", "q", "y")
    assert done.bench.item("spatial", "1").captions == ("p", "Q", "z")
    assert done.bench.item("spatial", "3").captions == ("p", "q", "x", "y", "z")  # two experts, two foils: adjudicate
    assert done.document["fates"] == {"foil chosen": 2, "corrected": 1, "removed": 1, "undecided": 1}


def test_instructions_ask_for_words_without_gender() -> None:
    for task in ("positive-check", "triplet-check"):
        assert "write person, child or they" in texts()[task]["instructions"].replace(": person", ": write person")


@pytest.mark.parametrize("task", ["positive-check", "triplet-check", "find-negative"])
def test_a_study_without_pictures_does_not_speak_of_them(task: str, db: Database) -> None:
    """Instructions spoke of the picture five times, of a second caption and of words without gender, for items that
    had one true caption and no picture.
    """
    study = store_study(
        db,
        "s",
        foil_bench([(f"a {n}", f"one {n}", f"no {n}") for n in range(9)], "texts", true=2),
        StudyPlan(task, practice=2, with_image=False),
    )
    with db.read() as session:
        payloads = list(session.scalars(select(Question.payload)))
    shown = [TASKS[task].show(one, range(TASKS[task].shuffled(one))) for one in payloads]
    words = [study.instructions, *(form.ask for form in shown), *TASKS[task].words.get("why", {}).values()]
    words += [f"{o.label} {o.hint}" for form in shown for field in form.fields for o in field.options]
    assert [text for text in words if "picture" in text or "{" in text] == []


def test_instructions_name_only_what_the_items_have(db: Database) -> None:
    text = store_study(
        db, "s", foil_bench([(f"a {n}", f"no {n}") for n in range(9)], "texts"), StudyPlan("triplet-check")
    ).instructions
    assert [word for word in ("second", "gender", "several", "other way", "say the same") if word in text] == []
    assert text.startswith("You see captions. An item is sound when all of them make sense, and the caption")


# -- human runs ------------------------------------------------------------------------------------------------------


def test_human_runs_are_scored_like_models(db: Database, bench: Benchmark, tmp_path: Path) -> None:
    """The first annotator is always right, the second wrong on four items; together they tie there."""

    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        odd = ticket.question.payload["odd"]
        return {"caption": 0 if who == "1" and int(ticket.question.item) < 4 else odd}

    names = run_study(db, bench, reply, task="find-negative", subsets=("triplet",))
    done = apply_study(db, "s", bench)
    written = write_applied(db, done, ApplyPlan(runs=tmp_path / "runs"))
    runs = {run.model: run for run in map(load_run, written["written_runs"])}
    assert set(runs) == {"human:s/everybody", *(f"human:s/{n}" for n in names)}
    accuracy = {m: next(r for r in run.results if r["subset"] == "triplet") for m, run in runs.items()}
    assert [accuracy[f"human:s/{n}"]["hits"] for n in names] == [16, 12]
    assert accuracy["human:s/everybody"]["hits"] == 12
    assert accuracy["human:s/everybody"]["ties"] == 4
    assert runs["human:s/everybody"].hash == bench.hash
    assert runs["human:s/everybody"].document["people"]["number"] == 2
    notes = compare(list(runs.values())).notes  # which `creperie compare` prints and reports repeat
    unasked = [note for note in notes if "40 of 56 items have no score" in note]  # the study asked about one subset
    assert len(unasked) == 3
    notes = [note for note in notes if note not in unasked]
    said = [note.partition(",")[0].removeprefix("human:s/") for note in notes]
    assert sorted(said) == sorted(["everybody: 2 people", *(f"{name}: 1 person" for name in names)])
    assert all("α = " in note for note in notes)
    from creperie.reporting.gather import short_labels

    (label,) = short_labels([runs["human:s/everybody"]])
    assert label == f"everybody (2 people, α = {runs['human:s/everybody'].document['people']['alpha']:.2f})"


def test_without_images_people_are_scored_by_tot(db: Database, bench: Benchmark) -> None:
    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        return {"caption": ticket.question.payload["odd"] if int(ticket.question.item) % 2 else 1}

    run_study(db, bench, reply, 1, task="find-negative", subsets=("triplet",), with_image=False)
    (run,) = apply_study(db, "s", bench).runs
    result = next(r for r in run.results if r["subset"] == "triplet")
    assert (result["task"], result["n"], result["hits"]) == ("tot", 16, 8)


def test_two_images_against_two_captions_give_all_three_scores(db: Database, bench: Benchmark) -> None:
    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        return {"captions": {"0": [1, 0], "1": [0, 0]}.get(ticket.question.item, [0, 1])}

    run_study(db, bench, reply, 1, task="choose-caption", subsets=("two",))
    (run,) = apply_study(db, "s", bench).runs
    hits = {r["task"]: r["hits"] for r in run.results if r["subset"] == "two"}
    assert hits == {"itt": 6, "t2i": 6, "group": 6}
    scores = run.scores("image_text")
    assert np.nansum(scores) == 16  # one caption for each of two images of eight items


# -- ratings ---------------------------------------------------------------------------------------------------------


def test_foils_of_two_sources_are_counted(db: Database, bench: Benchmark) -> None:
    items = [
        Item(i.id, i.subset, i.images, (i.captions[0], f"other foil {i.id}"), choice(1, 1))
        for i in items_of(bench.only(["pair"]).table)
    ]
    other = from_items("theirs", items)

    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        ours = int(ticket.question.item) < 10
        return {"sense": "0" if ours else "1", "grammar": "tie" if ours else ("0" if who == "0" else "1")}

    run_study(db, bench, reply, task="better-foil", subsets=("pair",), other=other)
    done = apply_study(db, "s", bench)
    rows = {r["evaluation"]: r for r in done.document["table"] if r["subset"] == "all"}
    assert rows["sense"] == {"subset": "all", "evaluation": "sense", "n": 16, "shapes": 10, "theirs": 6, "tie": 0}
    assert rows["grammar"]["tie"] == 16
    assert done.bench.item("pair", "0").tags["people.better-sense"] == "shapes"


def test_foils_of_two_kinds_are_never_shown_together() -> None:
    true = "A cat sits on a mat."
    first = [Item(s, s, (), (true, t), choice(1, 1)) for s, t in (("swap", "A mat sits on a cat."), ("negate", "No."))]
    second = [
        Item(s, s, (), (true, t), choice(1, 1))
        for s, t in (("replace_obj", "A dog."), ("add_obj", "A cat and a dog."), ("swap_obj", "A mat sits on a cat. "))
    ]
    drafts = list(foil_pairs("rules", first, "model", second))
    # the swaps are equal but for a blank, so nothing is to be asked about them
    assert [(d.subset, d.payload["foils"]) for d in drafts] == [("negate", ["No.", "A cat and a dog."])]
    twice = Item("1", "s", (), (true, "No.", "No.", "Never."), choice(1, 3))
    (one,) = TASKS["better-foil"].draft("x", [twice])
    assert one.payload["foils"] == ["No.", "Never."]


def test_a_sample_of_pairs_has_as_many_of_every_kind() -> None:
    kinds = {"replace_obj": 60, "swap_obj": 12, "add_obj": 4}
    drafts = [QuestionDraft("x", subset, str(k), {}) for subset, n in kinds.items() for k in range(n)]
    chosen = by_kind(drafts, 30, seed=1)
    assert Counter(d.subset for d in chosen) == {"replace_obj": 14, "swap_obj": 12, "add_obj": 4}
    assert Counter(d.subset for d in by_kind(drafts, 9, seed=1)) == dict.fromkeys(kinds, 3)
    assert chosen == by_kind(drafts, 30, seed=1) != by_kind(drafts, 30, seed=2)
    # in a study only pairs count: items without a partner take no place in the sample
    trues = [f"A cat sits on mat {k}." for k in range(20)]
    first = [
        Item(f"{s}{k}", s, (), (true, f"{s} {k}"), choice(1, 1))
        for s in ("swap", "negate")
        for k, true in enumerate(trues)
    ]
    second = foil_items([(true, f"other {k}") for k, true in enumerate(trues[:3])], subset="add_obj")
    second += foil_items([(true, f"other {k}") for k, true in enumerate(trues)], subset="swap_obj")
    plan = StudyPlan("better-foil", sample=10)
    asked = _drafts(TASKS["better-foil"], from_items("rules", first), from_items("model", second), plan)
    assert Counter(d.subset for d in asked) == {"swap": 7, "negate": 3}


def test_bias_ratings_are_averaged_by_source(db: Database, bench: Benchmark) -> None:
    other = from_items("refined", list(items_of(bench.only(["pair"]).table)))

    def reply(who: str, ticket: Slot) -> dict[str, Any]:
        return {"rating": (4 if ticket.question.source == "shapes" else 0) + int(who)}

    run_study(db, bench, reply, task="bias-rating", subsets=("pair",), other=other)
    done = apply_study(db, "s", bench)
    rows = {r["source"]: r for r in done.document["table"] if r["subset"] == "all"}
    assert [(rows[s]["n"], rows[s]["mean"]) for s in ("shapes", "refined")] == [(16, 4.5), (16, 0.5)]
    seen = seen_in(db, "s")
    kinds = {r["kind"] for r in seen["agreement"]}
    assert "krippendorff alpha (interval)" in kinds
    assert "cohen kappa (quadratic weights)" in kinds


# -- measures --------------------------------------------------------------------------------------------------------


def test_agreement_speed_and_reliability(db: Database, bench: Benchmark) -> None:
    """Sixteen items, two annotators, three differences: 13/16 agree; kappa from the table by hand."""
    replies = verdicts(i0=["true", "false"], i1=["false", "true"], i2=["true", "true"], i3=["true", "false"])
    names = run_study(db, bench, replies, task="foil-check", subsets=("pair",))
    seen = seen_in(db, "s")
    values = {r["kind"]: r for r in seen["agreement"]}
    assert values["percent agreement"]["value"] == pytest.approx(13 / 16)
    expected = (3 * 2 + 13 * 14) / 256  # both say "also true", both say "wrong", by chance
    kappa = values["cohen kappa"]
    assert kappa["value"] == pytest.approx((13 / 16 - expected) / (1 - expected))
    assert kappa["low"] <= kappa["value"] <= kappa["high"]
    assert "fleiss kappa" in values
    people = {a["annotator"]: a for a in seen["annotators"]}
    assert set(people) == set(names)
    for one in people.values():
        assert (one["answers"], one["attention_asked"], one["attention_passed"]) == (16, 0, 0)
        assert one["median_seconds"] >= 0
    assert (seen["done"], seen["slots"]) == (32, 32)


@pytest.mark.parametrize(
    ("task", "foil", "meant"),
    [
        ("find-negative", (True, True, False), lambda caption: {"caption": caption}),
        ("choose-caption", (False, False, True), lambda caption: {"captions": [caption]}),
    ],
)
def test_agreement_does_not_depend_on_where_the_foil_stands(task: str, foil: tuple[bool, ...], meant: Any) -> None:
    """Two raters, 300 items whose answer is always the last caption; in 30 the second rater takes another one.

    By hand: the captions stand in an order of each question's own, so every place is chosen about as often and three
    places agree by chance in a third of the items: alpha is about 1 - (30/300)/(2/3) = 0.85. In the benchmark's order
    it was 1 - (30/300)/0.0964 = -0.037.
    """
    wording = "{} dogs run", "dogs run, {} of them", "{} dogs sleep"
    images = [f"{n}.png" for n in range(300)]
    items = [Item(str(n), "s", (i,), tuple(w.format(n) for w in wording), (foil,)) for n, i in enumerate(images)]
    drafts = TASKS[task].draft("x", items)
    asked = [{**vars(d), "ordinal": n, "kind": MAIN, "expected": None} for n, d in enumerate(drafts)]
    given = [("ana", n, 2) for n in range(300)] + [("rob", n, n % 2 if n < 30 else 2) for n in range(300)]
    about = {"event": "answer", "comment": "", "seconds": None, "at": 0.0}
    answers = [{"annotator": a, "question": n, "value": meant(caption), **about} for a, n, caption in given]
    people = [{"annotator": name, "excluded": None, "entry": "invited"} for name in ("ana", "rob")]
    study = {"task": task, "plan": {"overlap": 2}, "decisions": [], "people": people}
    rows = agreement({**study, "questions": asked, "answers": answers})
    values = {row["kind"]: row["value"] for row in rows}
    assert values["percent agreement"] == pytest.approx(0.9)
    assert values["krippendorff alpha (nominal)"] == pytest.approx(0.85, abs=0.005)
    assert values["cohen kappa"] == pytest.approx(0.85, abs=0.005)


def test_one_annotator_alone_has_no_agreement(db: Database, bench: Benchmark) -> None:
    run_study(db, bench, verdicts(), 1, task="foil-check", subsets=("pair",))
    seen = seen_in(db, "s")
    assert seen["agreement"] == []
    assert seen["annotators"][0]["answers"] == 16


def test_nothing_can_be_applied_before_anybody_answered(db: Database, bench: Benchmark) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check"))
    with pytest.raises(UsageError, match="no answers yet"):
        apply_study(db, "s", bench)


def test_accuracy_is_shown_only_where_it_can_be_estimated(db: Database, bench: Benchmark, browser: Any) -> None:
    """Somebody alone had an accuracy of 0.85, and somebody with one answer 0.60: both were the prior."""
    one, two, three = begin(db, bench, people=3, overlap=3)
    work(db, one)

    def accuracies() -> list[bool]:
        return [a["competence"] > 0 for a in seen_in(db, "s")["annotators"]]

    owner = browser().log_in()
    why = "–: fewer than 5 answers that can be compared with those of others or with known ones"
    assert accuracies() == [False] * 3
    assert why in owner.get("/owner/studies/s").text
    work(db, two, 5)
    work(db, three, 4)
    assert accuracies() == [True, True, False]
    assert why in owner.get("/owner/studies/s").text
    work(db, three, 1)
    assert accuracies() == [True] * 3
    assert why not in owner.get("/owner/studies/s").text
