"""Sentences: natural, tidy, and read back to what they were written from."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.world import sayable, write_sentence
from creperie.world.grammar import FLAVOURS, SentencePlan, needs_the, postures, takes_place
from creperie.world.kinds import COLOURS, NAMES, PATTERNS
from creperie.world.parse import parse
from creperie.world.sample import COMPARING, arity_of
from creperie.world.solid.models import SOLIDS
from creperie.world.sprites import TABLES
from creperie.world.truth import CONVERSE, SYMMETRIC, Desc, Fact, LogicalForm

CAT, DOG, CUP = Desc("cat", "orange"), Desc("dog"), Desc("cup", size="big")


RED, BLUE = (Desc("candle", colour, state=state) for colour, state in (("red", "lit"), ("blue", "unlit")))


@pytest.mark.parametrize(
    ("form", "plan", "text"),
    [
        (("left", CAT, DOG), SentencePlan("turned", "the", 1), "The dog is to the right of the orange cat."),
        (("left", CAT, Desc("cat", "red")), SentencePlan(), "An orange cat is to the left of a red one."),
        (("on", CAT, CUP), SentencePlan("there", posture="sits"), "There is an orange cat sitting on a big cup."),
        (
            ("inside", CAT, CUP),
            SentencePlan("plain", flavour=1, posture="sits"),
            "An orange cat is sitting inside a large cup.",
        ),
        (("front", CAT, DOG), SentencePlan("with"), "There is a dog with an orange cat in front of it."),
        (("far", CAT, DOG), SentencePlan(), "The orange cat is far away from the dog."),
        (("pushes", CAT, DOG), SentencePlan("turned"), "A dog is being pushed by an orange cat."),
        (
            ("hands", CAT, CUP, DOG),
            SentencePlan("double", flavour=2),
            "An orange cat gives a dog a big cup.",
        ),
        (
            ("depth", CAT, CUP, DOG),
            SentencePlan("middle"),
            "The big cup is behind the orange cat and in front of the dog.",
        ),
        (
            ("above", Desc("framed picture", "green"), Desc("cup", "red", "spotted")),
            SentencePlan("there", posture="hangs"),
            "There is a green-framed picture hanging above a red spotted cup.",
        ),
        (
            ("front", Desc("hat", "red"), Desc("hat", "blue")),
            SentencePlan("there"),
            "There is a red hat in front of a blue hat.",
        ),
        (
            ("between", CAT, CUP, Desc("mug", state="full")),
            SentencePlan(),
            "An orange cat is between a big cup and a mug of coffee.",
        ),
        (
            LogicalForm((CAT, DOG), (Fact("left", (0, 1), True),)),
            SentencePlan(),
            "An orange cat is not to the left of a dog.",
        ),
        (
            LogicalForm((CAT, DOG), (Fact("near", (0, 1)),), setting="table"),
            SentencePlan(article="the", posture="sits"),
            "The orange cat sits next to the dog on the table.",
        ),
        (
            LogicalForm((CAT, CUP, DOG), (Fact("on", (0, 1)), Fact("on", (0, 2), True))),
            SentencePlan(),
            "The orange cat is on the big cup, not on the dog.",
        ),
        (
            LogicalForm((CAT, CUP, Desc("cup", "red")), (Fact("on", (0, 1)), Fact("on", (0, 2), True))),
            SentencePlan("turned"),
            "The orange cat is on the big cup, not the red one.",
        ),
        (
            LogicalForm((CAT, CUP, DOG), (Fact("pulls", (0, 1)), Fact("pulls", (0, 2), True))),
            SentencePlan("simple"),
            "The orange cat pulls the big cup, not the dog.",
        ),
        (LogicalForm((RED, BLUE)), SentencePlan(), "The red candle is lit, but the blue one is not."),
        (LogicalForm((RED, BLUE)), SentencePlan("turned"), "The blue candle is not lit, but the red one is."),
        (LogicalForm((BLUE,), setting="table"), SentencePlan(), "The blue candle on the table is not lit."),
        (LogicalForm((BLUE,), setting="table"), SentencePlan("there"), "On the table, there is an unlit blue candle."),
        (LogicalForm((CAT, DOG, CUP)), SentencePlan("turned there"), "There is a big cup, a dog and an orange cat."),
        (
            LogicalForm((CAT, DOG), setting="room"),
            SentencePlan(posture="sits"),
            "An orange cat and a dog sit in the room.",
        ),
        (
            LogicalForm((), counts=((DOG, 3), (CUP, 2)), setting="table"),
            SentencePlan("there"),
            "On the table, there are three dogs and two big cups.",
        ),
        (
            LogicalForm((Desc("cup", "red"), Desc("cup", "blue"), Desc("hat", "red"), Desc("hat", "pink"))),
            SentencePlan("there"),
            "There are two cups, one red and one blue, and two hats, one red and one pink.",
        ),
        (
            LogicalForm((Desc("sign", "red", "TEA"), Desc("sign", "blue", "ZOO"))),
            SentencePlan(),
            "The red sign says TEA, and the blue one says ZOO.",
        ),
    ],
)
def test_wordings(form: LogicalForm | tuple[Any, ...], plan: SentencePlan, text: str) -> None:
    if isinstance(form, tuple):
        relation, *things = form
        form = LogicalForm(tuple(things), (Fact(relation, tuple(range(len(things)))),))
    assert write_sentence(form, plan) == text
    claim = parse(text)
    assert claim is not None
    assert ordered(claim) == ordered(form)


descs = st.builds(
    Desc,
    st.sampled_from(NAMES),
    st.none() | st.sampled_from(COLOURS),
    st.none() | st.sampled_from(PATTERNS),
    st.none() | st.sampled_from(["big", "small"]),
) | st.sampled_from(list(SOLIDS)).flatmap(
    lambda kind: st.builds(
        Desc,
        st.just(kind),
        st.none() | st.sampled_from(COLOURS),
        material=st.none() | st.sampled_from(["wood", "metal", "glass"]),
        state=st.sampled_from([None, *SOLIDS[kind].states]),
    )
)
RELATIONS = (*TABLES["roles"]["drawn"], *TABLES["roles"]["table"], "under", "taller", "smaller")


@st.composite
def sentences(draw: st.DrawFn) -> tuple[LogicalForm, SentencePlan]:
    relation = draw(st.sampled_from(RELATIONS))
    things = draw(st.tuples(descs, descs, descs).filter(lambda t: len({d.kind for d in t}) == 3))
    n = arity_of(relation)
    if relation == "crowd":
        form = LogicalForm(tuple(replace(desc, state=None) for desc in things))
    else:
        more = (
            draw(st.sampled_from(["", "", "denied", "negated", "also"])) if n == 2 and relation not in COMPARING else ""
        )
        facts = [Fact(relation, tuple(range(n)), more == "negated")]
        if more == "denied":
            facts.append(Fact(relation, (0, 2), True))
        named = 3 if more == "also" or any(2 in fact.args for fact in facts) else 2
        form = LogicalForm(things[:named], tuple(facts))
    form = replace(
        form, setting=draw(st.sampled_from([s for s in ("", "table", "room") if not s or takes_place(form, s)]))
    )
    posture = draw(st.sampled_from(["", *postures(form)]))
    article = "the" if needs_the(form) else draw(st.sampled_from(["a", "the"]))
    finish, flavour = draw(st.integers(0, 2)), draw(st.integers(0, FLAVOURS - 1))
    return form, SentencePlan(draw(st.sampled_from(sayable(form))), article, flavour, posture, finish)


def ordered(form: LogicalForm) -> tuple[object, ...]:
    """The claim, however its things are numbered and whichever of two converse words is used."""
    order = sorted(range(len(form.things)), key=lambda k: repr(form.things[k]))
    place = {k: i for i, k in enumerate(order)}
    facts = set()
    for fact in form.facts:
        relation, args = fact.relation, tuple(place[k] for k in fact.args)
        if relation in CONVERSE and relation > CONVERSE[relation]:
            relation, args = CONVERSE[relation], args[::-1]
        if relation == "between":
            args = (args[0], *sorted(args[1:]))
        facts.add((relation, tuple(sorted(args)) if relation in SYMMETRIC else args, fact.negated))
    counts = sorted(form.counts, key=repr)
    return [form.things[k] for k in order], facts, form.absent, form.denied, counts, form.setting


@given(sentences())
def test_what_is_written_is_tidy_and_read_back(sentence: tuple[LogicalForm, SentencePlan]) -> None:
    form, plan = sentence
    text = write_sentence(form, plan)
    claim = parse(text)
    assert claim is not None, text
    assert ordered(claim) == ordered(form), text
    assert text == " ".join(text.split())
    assert not re.search(r" [,.]|,,|\ba [aeiou]|\ban [^aeiou]|[A-Z].*[A-Z]", text)
    assert text.endswith(".") == (plan.finish == 0)
    assert text[0].isupper() == (plan.finish != 1)


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(["a", "the", "cat", "dog", "red", "is", "left", "of", "no", "not", "by", "to", ",", "."])
    ).map(" ".join)
)
def test_reading_never_fails(text: str) -> None:
    claim = parse(text)
    assert claim is None or claim.things or claim.absent or claim.counts
