"""Sentences: natural, tidy, and read back to what they were written from."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.world.grammar import (
    FLAVOURS,
    FRAMES,
    INDEFINITE,
    PRESENCE,
    TAILS,
    SentencePlan,
    constructions,
    write_sentence,
)
from creperie.world.kinds import COLOURS, NAMES, PATTERNS
from creperie.world.parse import parse
from creperie.world.sample import RELATIONS
from creperie.world.solid.models import SOLIDS
from creperie.world.truth import CONVERSE, SYMMETRIC, Desc, Fact, LogicalForm

CAT, DOG, CUP = Desc("cat", "orange"), Desc("dog"), Desc("cup", size="big")


@pytest.mark.parametrize(
    ("relation", "plan", "text"),
    [
        ("left", SentencePlan("plain"), "An orange cat is to the left of a dog."),
        ("left", SentencePlan("turned", "the", 1), "The dog is to the right of the orange cat."),
        ("on", SentencePlan("has"), "A dog has an orange cat on it."),
        ("inside", SentencePlan("fronted", flavour=1), "In a dog is an orange cat."),
        ("front", SentencePlan("with"), "There is a dog with an orange cat in front of it."),
        ("near", SentencePlan("turned there", flavour=2, finish=2), "There is a dog next to an orange cat"),
        ("pushes", SentencePlan("plain"), "An orange cat pushes a dog."),
        ("pushes", SentencePlan("plain", flavour=1), "An orange cat is pushing a dog."),
        ("pushes", SentencePlan("turned", flavour=1), "A dog is being pushed by an orange cat."),
        ("holds", SentencePlan("turned shows", frame=1), "The picture shows a dog being held by an orange cat."),
        ("faces", SentencePlan("seen", flavour=2), "An orange cat can be seen looking at a dog."),
        ("follows", SentencePlan("there", frame=1), "In this picture, there is an orange cat following a dog."),
    ],
)
def test_wordings(relation: str, plan: SentencePlan, text: str) -> None:
    assert write_sentence(LogicalForm((CAT, DOG), (Fact(relation, (0, 1)),)), plan) == text


@pytest.mark.parametrize(
    ("construction", "text"),
    [
        ("to", "An orange cat gives a big cup to a dog."),
        ("double", "An orange cat gives a dog a big cup."),
        ("theme passive", "A big cup is given to a dog by an orange cat."),
        ("taker passive", "A dog is given a big cup by an orange cat."),
        ("double shows", "The picture shows an orange cat giving a dog a big cup."),
    ],
)
def test_giving(construction: str, text: str) -> None:
    assert (
        write_sentence(LogicalForm((CAT, CUP, DOG), (Fact("hands", (0, 1, 2)),)), SentencePlan(construction, flavour=2))
        == text
    )


@pytest.mark.parametrize(
    ("form", "plan", "text"),
    [
        (
            LogicalForm((CAT, DOG), (Fact("left", (0, 1), True),)),
            SentencePlan(),
            "An orange cat is not to the left of a dog.",
        ),
        (LogicalForm((CAT, DOG), (Fact("pulls", (0, 1), True),)), SentencePlan(), "An orange cat does not pull a dog."),
        (
            LogicalForm((CAT, DOG), (Fact("pulls", (0, 1), True),)),
            SentencePlan("turned"),
            "A dog is not pulled by an orange cat.",
        ),
        (LogicalForm((CAT,), absent=(DOG,)), SentencePlan(), "There is an orange cat but no dog."),
        (
            LogicalForm((Desc("box", state="open"), Desc("table", material="wood")), (Fact("under", (0, 1)),)),
            SentencePlan(),
            "An open box is under a wooden table.",
        ),
        (
            LogicalForm((Desc("lamp", state="on"), CAT, Desc("mug", state="full")), (Fact("between", (0, 1, 2)),)),
            SentencePlan("fronted"),
            "Between an orange cat and a mug full of coffee is a lamp that is switched on.",
        ),
        (
            LogicalForm((), counts=((DOG, 3), (CUP, 2))),
            SentencePlan(),
            "There are exactly three dogs and two big cups.",
        ),
        (LogicalForm((CAT,), absent=(DOG,)), SentencePlan("turned"), "There is no dog, but there is an orange cat."),
        (
            LogicalForm((CAT, DOG, Desc("star")), (Fact("left", (0, 1)), Fact("above", (2, 0))), (Desc("hat"),)),
            SentencePlan(),
            "An orange cat is to the left of a dog, and a star is above the cat, and there is no hat.",
        ),
    ],
)
def test_denials_and_additions(form: LogicalForm, plan: SentencePlan, text: str) -> None:
    assert write_sentence(form, plan) == text


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
STYLES = {
    "flavour": st.integers(0, FLAVOURS - 1),
    "frame": st.integers(0, len(FRAMES) - 1),
    "finish": st.integers(0, 2),
    "tail": st.integers(0, TAILS - 1),
}


_TERNARY = ("hands", "between", "depth")


@st.composite
def sentences(draw: st.DrawFn) -> tuple[LogicalForm, SentencePlan]:
    relation = draw(st.sampled_from([*RELATIONS, *_TERNARY, "under", "taller", "smaller", "nearer", ""]))
    first, second, third = draw(st.tuples(descs, descs, descs).filter(lambda t: len({d.kind for d in t}) == 3))
    if not relation:
        form, options = LogicalForm((first,), absent=(second,)), tuple(PRESENCE)
    else:
        arity = 3 if relation in _TERNARY else 2
        negated = arity == 2 and draw(st.booleans())
        facts = [Fact(relation, tuple(range(arity)), negated)]
        more = arity == 2 and draw(st.booleans())
        if more and draw(st.booleans()):
            facts.append(Fact(draw(st.sampled_from(["left", "above", "near", "far"])), (2, draw(st.integers(0, 1)))))
        things = (first, second, third) if arity == 3 or more else (first, second)
        absent = tuple(draw(st.lists(descs.filter(lambda d: d.kind not in {t.kind for t in things}), max_size=1)))
        form, options = LogicalForm(things, tuple(facts), absent), constructions(relation, negated)
    construction = draw(st.sampled_from(options))
    indefinite = construction in INDEFINITE or not form.facts
    article = "a" if indefinite else draw(st.sampled_from(["a", "the"]))
    return form, SentencePlan(construction, article, **{name: draw(value) for name, value in STYLES.items()})


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
    return [form.things[k] for k in order], facts, form.absent, form.denied


@given(sentences())
def test_what_is_written_is_read_back(sentence: tuple[LogicalForm, SentencePlan]) -> None:
    form, plan = sentence
    text = write_sentence(form, plan)
    claim = parse(text)
    assert claim is not None, text
    assert ordered(claim) == ordered(form), text


@given(sentences())
def test_text_is_tidy(sentence: tuple[LogicalForm, SentencePlan]) -> None:
    form, plan = sentence
    text = write_sentence(form, plan)
    assert text == " ".join(text.split())
    assert not re.search(r" [,.]|,,|\ba [aeiou]|\ban [^aeiou]|[A-Z].*[A-Z]|^The picture.*[Tt]he picture", text)
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
    assert claim is None or claim.things or claim.absent
