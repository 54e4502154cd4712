"""All makers: any text, the published ways, determinism, checks, plug-ins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creperie.bench import Item, from_items, load
from creperie.core import UnknownNameError
from creperie.engine import Local
from creperie.lang import spatial
from creperie.lang.relations import clashes
from creperie.making import (
    MAKERS,
    Candidate,
    Captions,
    Made,
    MakerOptions,
    SourceCaption,
    build_maker,
    captions_of,
    checks,
    make,
    word_order,
)
from creperie.making.checks import why_unfit
from creperie.making.run import preview
from creperie.making.shuffle import aro_caption, shuffled, word_tokens

Preview = Callable[..., Made]
ANNOTATED = ("mine:scenes", "mine:half-truths", "mine:confusion")  # they read annotations, not captions
BY_RULE = [n for n in MAKERS if n.split(":")[0] in ("rules", "grammar", "content", "mine") and n not in ANNOTATED]
TEXTS = [
    "A brown dog chases two small cats over the old wooden fence.",
    "An elderly woman gives a red apple to the smiling boy.",
    "The man hits the wall with a hammer.",
    "a plate of food on a table next to a glass ",
    "The cat is on the bed.",
    "The bed is far from the cat.",
]
ODD = [
    "",
    "   ",
    "Ein Mann reitet auf einem Pferd.",
    "Un chien court dans le jardin avec une balle",
    "一只猫坐在桌子上",
    "word " * 500,
    "A dog 🐶 chases a cat 😀",
    "<b>A dog</b> chases a cat",
    '"A dog chases a cat',
    "a a a a a a",
    "!!!",
    "dog",
    "1234",
    "A small grey and white horse",
    "A DOG CHASES A CAT",
    "a man... and, a dog; (big) - 'yes'",
    "buffalo buffalo buffalo",
    "The the cat cat hits hits the the dog dog.",
]

_words = st.sampled_from(
    ["a", "an", "the", "two", "dog", "cat", "man", "hits", "gives", "is", "with", "against", "on", "to", "by", "red"]
    + ["and", "not", ",", ".", "'", '"']
)
_sentences = st.lists(_words, min_size=1, max_size=14).map(" ".join)


def sound(made: Made) -> None:
    for item in made.items:
        assert not set(item.positives) & set(item.negatives), item
        assert item.positives
        assert all(c.strip() for c in item.captions)
        keys = {checks.word_key(c) for c in item.positives}
        assert not keys & {checks.word_key(c) for c in item.negatives}, item


@pytest.mark.parametrize("maker", BY_RULE)
def test_odd_captions_are_skipped_or_handled(maker: str, previewed: Preview) -> None:
    made = previewed(maker, [*TEXTS, *ODD])
    assert len(made.outcomes) == len(TEXTS) + len(ODD)
    assert all(o.skipped or o.verdicts for o in made.outcomes)
    sound(made)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.one_of(st.text(max_size=60), _sentences), min_size=1, max_size=12))
def test_no_text_breaks_a_maker_or_makes_a_foil_that_is_true(texts: list[str], previewed: Preview) -> None:
    for maker in BY_RULE:
        sound(previewed(maker, [*texts, *TEXTS[:2]]))


@pytest.mark.parametrize("maker", BY_RULE)
def test_a_source_gets_the_same_whatever_stands_beside_it(maker: str, previewed: Preview, parser: str) -> None:
    captions = [SourceCaption(str(i), t) for i, t in enumerate(TEXTS)]
    pool = Captions("all", tuple(captions))
    chosen = build_maker(maker, MakerOptions(parser=parser, seed=3), pool)
    whole = dict(zip((c.id for c in captions), chosen.propose(captions), strict=True))
    random.Random(1).shuffle(captions)
    for part in (captions[:2], captions[2:]):
        for source, proposal in zip(part, chosen.propose(part), strict=True):
            assert proposal == whole[source.id]


def test_seeds_change_what_is_drawn(previewed: Preview, parser: str) -> None:
    def texts(seed: int) -> list[str]:
        made = previewed("rules:shuffle", TEXTS, MakerOptions(parser=parser, seed=seed))
        return [v.candidate.text for o in made.outcomes for v in o.verdicts]

    assert texts(0) == texts(0) != texts(1)


# -- the published ways ----------------------------------------------------------------------------------------------


def test_shuffles_are_permutations_of_the_published_tokens(previewed: Preview, parser: str) -> None:
    text = "A brown dog doesn't chase two small cats, ever."
    made = previewed("rules:shuffle", [text], MakerOptions(parser=parser, as_published=True))
    found = {v.candidate.kind: v.candidate.text for v in made.outcomes[0].verdicts}
    penn = word_tokens(text)
    for kind in ("shuffle-within-trigrams", "shuffle-trigrams"):
        assert Counter(found[kind].split(" ")) == Counter(penn)
    within = found["shuffle-within-trigrams"].split(" ")
    assert all(Counter(within[i : i + 3]) == Counter(penn[i : i + 3]) for i in range(0, len(penn), 3))
    groups = [tuple(penn[i : i + 3]) for i in range(0, len(penn), 3)]
    left = found["shuffle-trigrams"].split(" ")
    while left:
        group = next(g for g in groups if tuple(left[: len(g)]) == g)
        groups.remove(group)
        left = left[len(group) :]
    nouns = found["shuffle-nouns-adjectives"].split(" ")
    assert [w for w in nouns if w not in ("brown", "dog", "small", "cats")] == [
        "A",
        "does",
        "n't",
        "chase",
        "two",
        ",",
        "ever",
        ".",
    ]
    others = found["shuffle-others"].split(" ")
    assert [others.index(w) for w in ("brown", "dog", "small", "cats")] == [1, 2, 7, 8]


def test_published_order_items_go_through_aros_clean_up(previewed: Preview, parser: str) -> None:
    made = previewed("rules:shuffle", [TEXTS[0]], MakerOptions(parser=parser, as_published=True))
    order = next(i for i in made.items if i.subset == "order")
    assert order.captions[0] == "a brown dog chases two small cats over the old wooden fence"
    assert all(c == aro_caption(c) for c in order.captions)
    assert order.match[0] == (True, False, False, False, False)


def test_published_replacements_are_put_in_as_the_dictionary_has_them(previewed: Preview, parser: str) -> None:
    text = "Two brothers are pushing it."
    made = previewed("rules:replace", [text], MakerOptions(parser=parser, as_published=True, foils=5))
    assert "Two brothers are pull it." in made.items[0].captions
    assert made.items[0].subset == "atom"


def test_foils_apart_are_items_with_tags_of_their_own(previewed: Preview, parser: str) -> None:
    texts = ["A small black dog sleeps under the wooden table."]
    wanted = MakerOptions(parser=parser, matched=False, band=50, foils=3)
    (whole,) = [i for i in previewed("rules:replace", texts, wanted).items if i.subset == "replace-attribute"]
    each = previewed("rules:replace", texts, replace(wanted, apart=True)).items
    each = [i for i in each if i.subset == "replace-attribute"]
    assert [i.negatives for i in each] == [(text,) for text in whole.negatives]
    assert len({i.id for i in each}) == len(each) == 3
    assert "; ".join(str(i.tags["edit"]) for i in each) == whole.tags["edit"]
    assert len({i.tags["lm_gap"] for i in each}) > 1


def test_published_negation_leaves_the_verb_as_it_is(previewed: Preview, parser: str) -> None:
    made = previewed("rules:negate", ["A dog barks loudly."], MakerOptions(parser=parser, as_published=True))
    texts = [v.candidate.text for v in made.outcomes[0].verdicts]
    assert "A dog not barks loudly." in texts
    assert "There is no a dog barks loudly." in texts


def test_the_rebuild_makes_one_foil_of_each_type(previewed: Preview) -> None:
    made = previewed("rules:rebuild", ["A brown dog chases a black cat over the old wooden fence."])
    assert {i.subset for i in made.items} == {"replace", "swap", "negate", "shuffle"}
    assert all(i.match == ((True, False),) for i in made.items)


# -- shapes of items -------------------------------------------------------------------------------------------------


def test_roles_are_exchanged_only_where_that_makes_sense(previewed: Preview) -> None:
    """A ball hits no player, and who hugs is hugged: the alternation is a second positive without a foil."""
    made = previewed("grammar:passive", ["A player hits a ball.", "A man hugs a woman.", "A dog chases a cat."])
    subsets = [(i.id, i.subset, len(i.positives), len(i.negatives)) for i in made.items]
    assert [s for s in subsets if s[1] == "passive"] == [
        ("0", "passive", 2, 0), ("1", "passive", 2, 0), ("2", "passive", 2, 2)
    ]  # fmt: skip
    assert "the roles cannot be exchanged" in str(made.report["missing"])


def test_grammar_items_hold_both_constructions_in_one_order(previewed: Preview, parser: str) -> None:
    options = MakerOptions(parser=parser, as_published=True)
    made = previewed("grammar:passive", ["A player hits a ball.", "A ball is hit by a player."], options)
    captions = (
        "A player hits a ball.",
        "A ball is hit by a player.",
        "A ball hits a player.",
        "A player is hit by a ball.",
    )
    assert [i.captions for i in made.items] == [captions] * 4
    assert {i.match for i in made.items} == {((True, True, False, False),)}
    assert [i.tags["source_construction"] for i in made.items] == ["active", "active", "passive", "passive"]
    assert [i.tags["simplified"] for i in made.items] == [False, True, False, True]


def test_a_caption_and_its_foil_differ_in_the_roles_only(previewed: Preview, parser: str) -> None:
    """Hit or Be Hit, section 3.1: foils swap subject and object. A phrase before `by` stays before it in the foil."""
    options = MakerOptions(parser=parser, as_published=True)
    made = previewed("grammar:passive", ["A hat is thrown to a cat by a robot."], options)
    assert made.items[0].captions == (
        "A robot throws a hat to a cat.",
        "A hat is thrown to a cat by a robot.",
        "A hat throws a robot to a cat.",
        "A robot is thrown to a cat by a hat.",
    )


def test_a_trigram_shuffle_moves_words_and_not_only_the_full_stop() -> None:
    """`a b c / d e f / .`: one order in six of these groups leaves all words where they are."""
    for seed in range(60):
        text = shuffled("shuffle-trigrams", "A dog runs past two cats.", None, random.Random(seed), as_published=True)
        assert word_order(text) != word_order("A dog runs past two cats.")


def test_content_items_have_fluent_foils_of_other_things(previewed: Preview, tmp_path: Path) -> None:
    texts = [
        "A brown dog chases a small cat.",
        "Two planes fly over the city.",
        "A chef cuts an onion.",
        "A dog sleeps.",
    ]
    made = previewed("content", texts)
    first = made.items[0]
    assert first.captions[0] == "brown dog , small cat"
    assert set(first.captions[1:]) == {"Two planes fly over the city.", "A chef cuts an onion."}
    captions = Captions("own", tuple(SourceCaption(str(n), text) for n, text in enumerate(texts)))
    done = make(build_maker("content", MakerOptions(), captions), captions, tmp_path / "out")
    (step,) = load(tmp_path / "out").provenance
    items = done.report["items"]
    assert (step.args["made"], step.args["taken"]) == (3 * items, 2 * items)  # two of three are others', unchanged


def mined(options: MakerOptions, images: str, *texts: str) -> dict[str, Item]:
    """Items mined from true captions of these images, by their ids."""
    rows = [Item(str(k), "s", (i,), (t,), ((True,),)) for k, (i, t) in enumerate(zip(images, texts, strict=True), 1)]
    captions = captions_of(from_items("vsr", rows))
    return {i.id: i for i in preview(build_maker("mine:spatial", options, captions), captions).items}


def test_spatial_mining_prefers_what_people_said() -> None:
    made = mined(
        MakerOptions(),
        "aabcd",
        "The cat is on the bed.",
        "The bed is beneath the cat.",
        "The cat is under the bed.",
        "The cat is on top of the bed.",
        "The dog is under the bed.",
    )
    first, third = made["s/1"], made["s/3"]
    assert first.captions == ("The cat is on the bed.", "The bed is beneath the cat.", "The cat is under the bed.")
    assert first.match == ((True, True, False),)
    assert first.tags["second_positive"] == "mined"
    assert third.captions[:2] == ("The cat is under the bed.", "The bed is above the cat.")


def test_a_second_positive_is_proven_and_a_foil_cannot_hold() -> None:
    told = (
        "The apple is behind the cake.",
        "The cake is at the right side of the apple.",
        "The apple is touching the cake.",
        "The apple is in front of the cake.",
    )
    made = mined(MakerOptions(), "aabc", *told)
    first = made["s/1"]
    assert first.captions[1] == "The cake is in front of the apple."  # not what is only true too
    assert first.negatives == ("The apple is in front of the cake.",)
    assert {(i.tags["foil"], i.tags["decidable"]) for i in made.values()} == {("opposite", "decidable")}
    assert (
        mined(MakerOptions(as_published=True), "aabc", *told)["s/1"].captions[1]
        == "The cake is at the right side of the apple."
    )


@pytest.mark.parametrize(
    ("told", "other", "excluded"),
    [
        ("The cat is above the bed.", "The bed is above the cat.", True),
        ("The cat is in front of the bus.", "The bus is in front of the cat.", False),  # each in front of the other
        ("The cat is left of the dog.", "The dog is at the left side of the cat.", False),
        ("The cat is left of the dog.", "The cat is right of the dog.", True),
        ("The cat is in front of the truck.", "The cat is at the back of the truck.", False),
    ],
)
def test_what_holds_from_two_points_of_view_excludes_nothing(told: str, other: str, excluded: bool) -> None:
    first, second = spatial(told), spatial(other)
    assert first is not None
    assert second is not None
    assert clashes(first.relation, second.relation, first.subject != second.subject) is excluded


# -- checks ----------------------------------------------------------------------------------------------------------

SOURCE = SourceCaption("1", "A red dog chases a cat.")


def candidate(text: str, role: str = "negative") -> Candidate:
    return Candidate("1", text, role, "kind", "maker", "edit")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("check", "text", "reason"),
    [
        (checks.not_identical, "a red DOG chases  a cat", "identical to the source"),
        (checks.not_identical, "a red fox chases a cat", None),
        (checks.vocabulary_followed, "A red cat chases a dog.", None),
        (checks.vocabulary_followed, "A red cat chases a cow.", "other words than the source"),
        (checks.vocabulary_extended, "A red dog chases a fat cat.", None),
        (checks.vocabulary_extended, "A dog chases a fat cat.", "not an addition to the source"),
        (checks.EditSize(3), "A red dog chases a cow.", None),
        (checks.EditSize(1), "A red cat chases a dog.", "edit too large"),
        (checks.LengthMatched(1), "A red dog chases a very fat cat.", "more than 1 words longer or shorter"),
        (checks.LengthMatched(2), "A red dog chases a very fat cat.", None),
    ],
)
def test_checks_say_why(check: checks.Check, text: str, reason: str | None) -> None:
    assert check(SOURCE, candidate(text)) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A dog's toy (red).", None),
        ("Ein Mann reitet auf einem Pferd.", "not in English (de)"),
        ("一只猫坐在桌子上", "not in English"),
        ("see https://example.org", "markup"),
        ("He said “hello", "unbalanced quotes or brackets"),
        ("a\u0000b", "control characters"),
        ("★ a dog", "emoji or symbols"),
        ("A sign says `` Lotos '' in red.", "tokenised quotation marks (``)"),
    ],
)
def test_unfit_captions(text: str, reason: str | None) -> None:
    assert why_unfit(text) == reason


def test_a_wrong_maker_is_told_the_right_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'grammar:passive'"):
        build_maker("gramar:pasive", MakerOptions(), Captions("none", ()))


@pytest.mark.slow
def test_two_processes_make_the_same(parser: str, dictionary: None, tmp_path: Path) -> None:
    captions = Captions("many", tuple(SourceCaption(str(i), TEXTS[i % 6].replace("dog", "fox")) for i in range(1100)))
    chosen = build_maker("rules:swap", MakerOptions(parser=parser), captions)
    one = make(chosen, captions, tmp_path / "one", engine=Local(1))
    two = make(chosen, captions, tmp_path / "two", engine=Local(2))
    assert one.outcomes == two.outcomes
