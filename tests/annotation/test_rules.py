"""The rules of a study: who breaks them, and what `apply`, `show` and the owner's page make of it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from research.people_cheats import Simulated, World
from sqlalchemy import select
from tests.annotation.acting import begin, change_settings, record_of, seen_in, set_state, work

from creperie.annotation import (
    ApplyPlan,
    BrokenRulesError,
    Database,
    StudyPlan,
    answers_missing,
    apply_record,
    apply_study,
    exclude_by_rules,
    exported,
    invite,
    store_study,
    write_applied,
)
from creperie.annotation.outcome import without_people
from creperie.annotation.quality import ODDS, rule_breakers
from creperie.annotation.schema import Annotator
from creperie.bench import Benchmark, save
from creperie.metrics import Votes, dawid_skene, habit_odds


def honest(desk: Any, ticket: Any) -> Any:
    return ticket.question.expected or {"verdict": "false"}


def always_true(desk: Any, ticket: Any) -> Any:
    return {"verdict": "true"}


def cheated(db: Database, bench: Benchmark, **plan: Any) -> list[str]:
    """A study of six people with four checks each, of whom the first always says true; their names."""
    people = begin(db, bench, people=6, **({"overlap": 4, "attention": 4, "attention_every": 2} | plan))
    for _ in range(20):  # all at the same time
        for n, who in enumerate(people):
            work(db, who, 1, honest if n else always_true)
    with db.read() as session:
        return list(session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)))


# -- applying ----------------------------------------------------------------------------------------------------------


def test_apply_names_those_who_break_a_rule_and_writes_nothing(
    db: Database, bench: Benchmark, place: str, tmp_path: Path, command: Any
) -> None:
    names, store = cheated(db, bench), ("--db", place, "--json")
    given = seen_in(db, "s")["annotators"][0]["answers"]
    pairs, out = str(tmp_path / "pairs"), str(tmp_path / "v2")
    save(bench.only(["pair"]), Path(pairs), copy_images=True)
    code, text, _ = command("annotate", "apply", "s", "--bench", pairs, "--out", out, *store)
    refused = json.loads(text)
    assert (code, refused["applied"], Path(out).exists()) == (3, False, False)
    assert [one["annotator"] for one in refused["rule_breakers"]] == names[:1]
    assert "answers do not depend on the questions" in refused["rule_breakers"][0]["why"]
    assert refused["missing_without_them"] == given > 0
    code, text, _ = command("annotate", "apply", "s", "--bench", pairs, "--out", out, "--db", place)
    assert (code, names[0] in text, "--as-is" in text, "exclude s --rules" in text) == (3, True, True, True)
    code, text, _ = command("annotate", "show", "s", *store)
    assert [one["annotator"] for one in json.loads(text)["rule_breakers"]] == names[:1]
    code, text, _ = command("annotate", "exclude", "s", "--rules", *store)
    done = json.loads(text)
    assert [one["given_out_again"] for one in done["excluded"]] == [given]
    assert done["missing"] == given
    assert command("annotate", "apply", "s", "--bench", pairs, "--out", out, *store)[0] == 0


def test_what_was_applied_as_is_says_so_in_card_and_datasheet(db: Database, bench: Benchmark, tmp_path: Path) -> None:
    names, pairs = cheated(db, bench), bench.only(["pair"])
    with pytest.raises(BrokenRulesError, match=names[0]):
        apply_study(db, "s", pairs)
    with pytest.raises(BrokenRulesError, match=names[0]):  # from the exported record as well
        apply_record(exported(record_of(db, "s")), pairs)
    plan = ApplyPlan(as_is=True, out=tmp_path / "v2")
    written = write_applied(db, apply_study(db, "s", pairs, plan), plan)
    assert list(written["rule_breakers"]) == names[:1]
    for card in ("README.md", "DATASHEET.md"):
        text = (tmp_path / "v2" / card).read_text(encoding="utf-8")
        assert "**Applied as is**: 1 of the 6 annotators of study `s` break its rules" in text
        assert names[0] in text
    exclude_by_rules(db, "s")
    plan = ApplyPlan(out=tmp_path / "v3")
    write_applied(db, apply_study(db, "s", pairs, plan), plan)
    assert "Applied as is" not in (tmp_path / "v3" / "README.md").read_text(encoding="utf-8")


def test_a_closed_study_must_be_reopened_to_exclude_anybody(db: Database, bench: Benchmark) -> None:
    cheated(db, bench)
    set_state(db, "s", "closed")
    with pytest.raises(BrokenRulesError, match="annotate stop s, then creperie annotate exclude s --rules"):
        apply_study(db, "s", bench.only(["pair"]))


def test_the_owners_page_and_show_flag_the_same_people(
    browser: Callable[..., Any], db: Database, bench: Benchmark
) -> None:
    names = cheated(db, bench)
    seen = seen_in(db, "s")
    flagged = [row["annotator"] for row in seen["annotators"] if any("breaks a rule" in flag for flag in row["flags"])]
    assert flagged == names[:1]
    owner = browser().log_in()
    text = owner.get("/owner/studies/s").text
    assert f"<li><b>{names[0]}</b>: answers do not depend on the questions" in text
    assert owner.post("/owner/studies/s/rules").status_code == 303
    assert "break the study's rules" not in owner.get("/owner/studies/s").text
    assert seen_in(db, "s")["rule_breakers"] == []


# -- the rules ---------------------------------------------------------------------------------------------------------


def test_whoever_fails_every_check_is_named_whatever_the_settings_say(db: Database, bench: Benchmark) -> None:
    """Their other answers agree with everybody's, so only the checks tell."""
    people = begin(db, bench, people=3, overlap=3, attention=3, attention_every=2)

    def careless(desk: Any, ticket: Any) -> Any:
        other = {"true": "false", "false": "true"}
        return (
            {"verdict": other[ticket.question.expected["verdict"]]}
            if ticket.kind == "attention"
            else honest(desk, ticket)
        )

    for n, who in enumerate(people):
        work(db, who, fields=honest if n else careless)
    (one,) = rule_breakers(record_of(db, "s"))
    assert "failed 3 of 3 checks" in one["why"]


def test_exclusion_goes_on_until_nobody_breaks_a_rule() -> None:
    """Four who guess, three who collude and two who always say true, among twelve honest people: one who guesses shows
    in a second round, once the answers of others no longer blur the truth.
    """
    people = ["random"] * 4 + ["colluder"] * 3 + ["true"] * 2 + ["honest"] * 12
    random.Random(2).shuffle(people)
    study = Simulated(people, 0.9, 2, World({0.9: 3}, 30, 10))
    study.work()
    record = study.record()
    breakers = rule_breakers(record)
    assert {one["round"] for one in breakers} >= {1, 2}
    left = without_people(record, {one["annotator"] for one in breakers})
    assert rule_breakers(left) == []
    assert answers_missing(record) == 0 < answers_missing(record, breakers) == answers_missing(left)


@pytest.mark.parametrize("share_true", [0.0, 0.01, 0.03])
def test_honest_people_who_nearly_always_say_the_same_break_no_rule(share_true: float) -> None:
    """Ten people who are right in 97 of 100 cases about a benchmark with hardly any true foil, 200 answers each."""
    dice = np.random.default_rng(1)
    truth = (dice.random(400) < share_true).astype(int)
    question = np.repeat(np.arange(400), 5)
    person = np.concatenate([dice.choice(10, 5, replace=False) for _ in range(400)])
    label = np.where(dice.random(2000) < 0.97, truth[question], 1 - truth[question])
    votes = Votes(question, person, label, np.full(400, -1), 10, 2)
    assert (habit_odds(votes, dawid_skene(votes)) < math.log(ODDS)).all()


def test_opinions_that_differ_break_no_rule(db: Database, bench: Benchmark) -> None:
    """Where people's ratings hardly agree, a habit cannot be told from an opinion."""
    store_study(db, "s", bench.only(["pair"]), StudyPlan("bias-rating", practice=0, overlap=4))
    invite(db, "s", 4)
    dice = np.random.default_rng(3)
    with db.read() as session:
        people = list(session.scalars(select(Annotator.id)))
    for who in people:
        work(db, who, fields=lambda desk, ticket: {"rating": int(dice.integers(-5, 6))})
    assert rule_breakers(record_of(db, "s")) == []
    change_settings(db, "s", min_median_seconds=60)
    assert len(rule_breakers(record_of(db, "s"))) == 4
