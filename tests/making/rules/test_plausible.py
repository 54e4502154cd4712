"""Rules that know what people see: slots from captions, WordNet as a filter, plausibility by a language model."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from creperie.lang.parser import load_parser
from creperie.making.add import Adder
from creperie.making.checks import why_unfit
from creperie.making.lexicon import dimension_of, excludes, kind_of
from creperie.making.options import TRIGRAM, MakerOptions
from creperie.making.plausibility import even_chance, gaps
from creperie.making.registry import build_maker
from creperie.making.run import Made, preview
from creperie.making.slots import Slots, count_slots
from creperie.making.source import Captions, SourceCaption
from creperie.making.substitution import Substitutes, compatible, for_preposition
from creperie.making.swap import Swapper, adjective_pairs

Preview = Callable[..., Made]
SCENES = [
    "A man is throwing a frisbee in the park.",
    "A woman is throwing a ball in the park.",
    "A surfer is carrying a surfboard on the beach.",
    "A boy is holding a kite on the beach.",
    "A dog is catching a frisbee in the park.",
    "A cat is sleeping on a bed.",
    "A zebra is standing in a field.",
    "A cow is standing in a field.",
] * 60


def parse_one(text: str, parser: str) -> Any:
    return load_parser(parser)(text)


@pytest.mark.parametrize(
    ("word", "other", "both"),
    [
        ("dog", "cat", True),
        ("dog", "puppy", False),
        ("couch", "sofa", False),
        ("bicycle", "pedal", False),
        ("cup", "bowl", True),
    ],
)
def test_a_replacement_is_no_synonym_kind_or_part(word: str, other: str, both: bool, dictionary: None) -> None:
    assert excludes(word, other) is both


def test_a_word_must_fit_the_scene(parser: str, dictionary: None) -> None:
    """`throwing a surfboard` is never said where `throwing a frisbee` often is; a ball is thrown."""
    found = Substitutes(count_slots(SCENES))
    doc = parse_one(SCENES[0], parser)
    frisbee = next(t for t in doc if t.text == "frisbee")
    assert [new for new, *_ in found.fitting(frisbee, [(w, w, w) for w in ("ball", "surfboard")], doc)] == ["ball"]


def test_what_was_remembered_stays_behind_when_it_is_sent_to_another_process(parser: str, dictionary: None) -> None:
    found, doc = Substitutes(count_slots(SCENES)), parse_one(SCENES[0], parser)
    before = [(t.i, new) for t, new, _ in found.objects(SourceCaption("1", SCENES[0]), doc)]
    sent = pickle.loads(pickle.dumps(found))
    assert before
    assert [(t.i, new) for t, new, _ in sent.objects(SourceCaption("1", SCENES[0]), doc)] == before


def test_few_captions_reject_no_word_of_our_own_lists(parser: str, dictionary: None) -> None:
    found = Substitutes(count_slots(SCENES[:8]))
    doc = parse_one("A dog sleeps.", parser)
    assert "cat" in {new for _, new, _ in found.objects(SourceCaption("1", "A dog sleeps."), doc)}


def test_what_another_caption_of_the_image_mentions_is_not_added(parser: str, dictionary: None) -> None:
    source = SourceCaption("1", "A dog sleeps.", others=("A cat lies beside a dog.",))
    found = {new for _, new, _ in Substitutes(count_slots([])).objects(source, parse_one("A dog sleeps.", parser))}
    assert found
    assert "cat" not in found


@pytest.mark.parametrize(
    ("verb", "other", "both"), [("hold", "carry", True), ("sit", "stand", False), ("walk", "run", False)]
)
def test_verbs_that_happen_together_are_no_foils(verb: str, other: str, both: bool) -> None:
    assert compatible(verb, other) is both


def test_prepositions_fit_what_they_govern(dictionary: None) -> None:
    assert "under" in for_preposition("on", "table")
    assert for_preposition("in", "shirt") == ()
    assert "beside" in for_preposition("on", "motorcycle")
    assert "in" not in for_preposition("on", "motorcycle")


def test_kinds_and_dimensions(dictionary: None) -> None:
    assert [kind_of(w) for w in ("zebra", "tractor", "sweater", "bat", "idea")] == [
        "animal", "vehicle", "clothing", "", ""
    ]  # fmt: skip
    assert [dimension_of(w) for w in ("red", "three", "strange")] == ["colour", "number", ""]


@pytest.mark.parametrize(
    ("source", "foil"),
    [
        ("A dog chases a cat.", "A cat chases a dog."),
        ("A dog sleeps on the couch.", "A dog sleeps on the bench."),
        ("Men sleep.", "Three men sleep in a boat."),
    ],
)
def test_the_window_of_an_edit_has_the_gap_of_the_whole(source: str, foil: str) -> None:
    """Two words on either side of an edit are all that a trigram model sees of it."""
    pytest.importorskip("pocketsphinx")
    from creperie.models import load_model

    whole = load_model(TRIGRAM).score_texts([source, foil])  # type: ignore[union-attr]
    assert gaps(source, [foil], TRIGRAM)[0] == pytest.approx(float(whole[1] - whole[0]), abs=1e-4)


def test_likely_foils_are_kept_and_unlikely_ones_by_chance() -> None:
    assert all(even_chance(gap, Random(seed)) for gap in (0.0, 2.0) for seed in range(20))
    kept = sum(even_chance(-1.0, Random(seed), 1.0) for seed in range(4000)) / 4000
    assert kept == pytest.approx(0.368, abs=0.03)  # 1 / e


@pytest.mark.parametrize("maker", ["rules:replace", "rules:swap", "rules:add"])
def test_every_foil_is_in_the_band_and_says_how_it_compares(maker: str, parser: str, dictionary: None) -> None:
    captions = Captions("scenes", tuple(SourceCaption(str(i), t) for i, t in enumerate(SCENES[:8])))
    made = preview(build_maker(maker, MakerOptions(parser=parser, band=2.5, matched=False), captions), captions)
    for item in made.items:
        assert abs(float(item.tags["lm_gap"])) <= 2.5
        assert {"frequency_gap", "reversible", "edit_kind"} <= set(item.tags)
    wide = preview(build_maker(maker, MakerOptions(parser=parser, band=50, matched=False), captions), captions)
    assert len(wide.items) >= len(made.items)


def test_an_attribute_comes_for_one_that_goes(previewed: Preview, parser: str) -> None:
    texts = ["A woman on a wooden bench reads a book.", "A man in a striped shirt waits with a dog."]
    options = MakerOptions(parser=parser, matched=False, band=30)
    for item in previewed("rules:add", texts, options).items:
        assert len(item.captions[0].split()) == len(item.captions[-1].split())
        assert item.subset in ("add-attribute", "add-object")


def test_only_reversible_foils(previewed: Preview, parser: str) -> None:
    options = MakerOptions(parser=parser, matched=False, band=50, reversible_only=True)
    assert previewed("rules:replace", SCENES[:4], options).items == ()
    assert previewed("rules:swap", ["A dog chases a cat."], options).items


def test_numbers_and_dimensions_stay_within_their_own(previewed: Preview, parser: str) -> None:
    texts = ["Two red buses.", "Three big dogs sleep."]
    made = previewed("rules:replace", texts, MakerOptions(parser=parser, matched=False, band=50, foils=20))
    edits = [
        tuple(str(c.edit).lower().split(" → ")) for o in made.outcomes for c in o.accepted if "attribute" in c.kind
    ]
    assert edits
    assert all(dimension_of(old) == dimension_of(new) for old, new in edits)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A BLACK CAT SITS IN A SINK", "all capitals"),
        ("beach, red boat, sunset, people", "a list of tags"),
        ("A dog, a cat, and two birds.", None),
    ],
)
def test_capitals_and_tags_are_refused_with_a_reason(text: str, why: str | None) -> None:
    assert why_unfit(text) == why


def test_next_to_is_replaced_as_one(parser: str, dictionary: None) -> None:
    doc = parse_one("A cat sleeps next to a bench.", parser)
    found = Substitutes(Slots()).relations(SourceCaption("1", doc.text), doc)
    assert ["next", "to"] in [[t.text for t in span] for span, new, _ in found if new == "under"]


def test_people_are_replaced_by_listed_ones_and_as_pronouns_ask(parser: str, dictionary: None) -> None:
    found = Substitutes(count_slots(SCENES))
    doc = parse_one("A child stands with his luggage.", parser)
    assert not {new for _, new, _ in found.objects(SourceCaption("1", doc.text), doc)} & {"man", "woman"}


@pytest.mark.parametrize(
    ("caption", "never"),
    [
        ("A boy is riding on a skateboard.", {"behind", "in front of", "beside"}),
        ("A pizza sits on a table.", {"behind", "by", "near", "in front of"}),
        ("A man stands in the kitchen.", {"behind"}),
        ("A clown makes faces in front of the camera.", {"behind"}),
        ("A baby hangs off a branch.", {"on"}),
        ("A truck drives through the street.", {"by"}),
        ("A boy quickly pushes a girl.", {"hold", "carry"}),
        ("A dog is swimming in the lake.", {"sleep", "sit", "lie", "jump"}),
        ("A man jumps to reach a branch.", {"sleep", "sit", "walk"}),
        ("A dog runs through the grass.", {"swim"}),
        ("A man sits on a chair.", {"under"}),
        ("A picture hangs on the wall.", {"beside", "behind"}),
        ("A woman looks into a mirror.", {"out of"}),
        ("A cow stands next to a horse.", {"on"}),
    ],
)
def test_relations_that_readers_refused(caption: str, never: set[str], parser: str, dictionary: None) -> None:
    """Absurd (`riding behind a skateboard`), or true as well (`hangs on` for `hangs off`)."""
    found = Substitutes(count_slots(SCENES[:8])).relations(SourceCaption("1", caption), parse_one(caption, parser))
    assert not never & {new for _, new, _ in found}


@pytest.mark.parametrize(
    ("caption", "pairs"),
    [
        ("A small child touches a white dog.", 0),
        ("A black dog and a yellow dog are playing.", 0),
        ("A black dog chases a yellow ball.", 1),
    ],
)
def test_adjectives_change_places_where_that_is_false(caption: str, pairs: int, parser: str, dictionary: None) -> None:
    """`a white child` may be true, and `a yellow dog and a black dog` are the same two dogs."""
    assert len(list(adjective_pairs(parse_one(caption, parser), False))) == pairs


@pytest.mark.parametrize(
    ("caption", "objects", "attributes"),
    [
        ("A woman in a kitchen jumps over a red box.", False, False),  # nobody by a horse jumps, nor an elderly one
        ("A man stands in a kitchen in a black coat.", False, True),  # no `near a horse in a black coat`
        ("A man stands on a sunny day.", False, False),  # no `on a day`
        ("A black dog lies in a garden.", True, True),
        ("A small surfer waits in a kitchen.", False, False),  # surfers have nothing of ours with them
    ],
)
def test_what_may_go_for_an_addition(
    caption: str, objects: bool, attributes: bool, parser: str, dictionary: None
) -> None:
    adder, doc = Adder(count_slots(SCENES[:8])), parse_one(caption, parser)
    source = SourceCaption("1", caption)
    by = [c for _, c in adder._objects(source, doc) if " with " not in c.text]
    assert (bool(by), bool(list(adder._attributes(source, doc)))) == (objects, attributes)


@pytest.mark.parametrize(
    ("caption", "corpus", "new"),
    [
        ("A man sits at a desk.", ["A man sits at a desk.", "A man sits on a small bench."], ""),  # never `at a bench`
        ("A man sits on a couch.", ["A man sits on a couch.", "A man sits on a small bench."], "bench"),
        ("A bathroom with a toilet.", ["A bathroom with a toilet.", "A bathroom with a toilet and a sink."], ""),
        ("A dog sees another dog.", ["A dog sees another dog.", "A dog sees another cat."], ""),
        ("A man with a beard waits.", ["A man waits.", "A woman waits with a beard."], ""),
    ],
)
def test_things_are_replaced_by_what_is_said_there_and_not_seen_with_them(
    caption: str, corpus: list[str], new: str, parser: str, dictionary: None
) -> None:
    others = ["A tree stands.", "A bird flies.", "A boat floats.", "Rain falls."]
    found = Substitutes(count_slots([*corpus, *others] * 100))
    made = {word for _, word, _ in found.objects(SourceCaption("1", caption), parse_one(caption, parser))}
    assert made == ({new} if new else set())


@pytest.mark.parametrize(
    ("caption", "pairs"),
    [
        ("A red vase stands near a blue cup.", 1),
        ("A tall vase stands near a blue cup.", 0),
        ("A hot pink vase stands near a blue cup.", 0),
        ("A white and grey vase stands near a blue cup.", 0),
        ("A dark red vase stands near a blue cup.", 0),
        ("A cat with blue eyes lies on a pink bed.", 0),
    ],
)
def test_attributes_change_places_within_one_dimension(caption: str, pairs: int, parser: str, dictionary: None) -> None:
    assert len(list(Swapper(count_slots([]))._attributes(parse_one(caption, parser)))) == pairs


@pytest.mark.parametrize(
    ("comes", "goes", "kept"),
    [
        ("with a dog", "in a garden", True),
        ("near a dog", "in a garden", False),  # said once only
        ("with a dog", "in the snow", False),  # far more usual than what comes
    ],
)
def test_what_is_added_is_about_as_usual_as_what_goes(
    comes: str, goes: str, kept: bool, parser: str, dictionary: None
) -> None:
    said = ["A man waits with a dog."] * 4 + ["A man waits near a dog."] + ["A man waits in a garden."] * 20
    adder = Adder(count_slots([*said, *["A man waits in the snow."] * 400]))
    place, _, new = comes.split()
    assert adder._as_usual(list(parse_one(f"A man waits {goes}.", parser))[3:6], place, new) is kept


@pytest.mark.parametrize(
    ("caption", "pairs"),
    [
        ("A small dog chases a black cat.", 1),
        ("Two small dogs chase a black cat.", 0),  # of one number
        ("A small dog chases the black cat.", 0),  # both known, or neither
        ("A small dog chases a black cat near another cat.", 0),
    ],
)
def test_phrases_change_places_where_they_are_alike(caption: str, pairs: int, parser: str, dictionary: None) -> None:
    made = Swapper(count_slots([]))(
        SourceCaption("1", caption), parse_one(caption, parser), MakerOptions(matched=False)
    )
    assert sum(c.kind == "swap-phrase" for c in made.candidates) == pairs
