"""The biased kinds: foils made as older benchmarks make them, with the same give-aways.

The positives are ordinary captions of the world. The negatives come from a template, so something in the text alone
gives them away; the field `cue` of the `BiasedKind` describes what it is. They are still certain to be false: the claim
of a foil is checked against the scene graph, and a text that is not a sentence of the world makes no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from creperie.bench import Tag, choice
from creperie.world.clean_items import MadeItem
from creperie.world.dice import Dice, key_of
from creperie.world.grammar import SentencePlan, sayable, write_sentence
from creperie.world.kinds import COLOURS, KINDS, NAMES
from creperie.world.parse import parse
from creperie.world.scene import GIVING, Scene
from creperie.world.sprites import TABLES
from creperie.world.truth import Desc, Fact, Graph, LogicalForm, evaluate
from creperie.world.twins import Twins, find_twins
from creperie.world.wording import draw_style
from creperie.world.words import AT, VERBS, noun_phrase


@dataclass(frozen=True, slots=True)
class Shown:
    """A scene and a true caption of it, which is changed to make a biased foil."""

    scene: Scene
    graph: Graph
    form: LogicalForm
    plan: SentencePlan
    text: str

    @classmethod
    def of(cls, twins: Twins, dice: Dice) -> Shown:
        """Return one of the two scenes of `twins`, drawn at random, with a caption in a random construction."""
        side = dice.roll(2)
        plan = replace(draw_style(twins, dice), construction=dice.pick(sayable(twins.forms[side])))
        scene, form = twins.scenes[side], twins.forms[side]
        return cls(scene, Graph(scene), form, plan, write_sentence(form, plan))


#: A function that returns the caption and a foil; None if it cannot be applied to the caption.
Spoil = Callable[[Shown, Dice], tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class BiasedKind:
    """A kind of biased foil. `family` is the benchmark whose foils it imitates, and `source` lists the kinds of
    unbiased foils whose captions are used. The function `spoil` returns a caption and its biased foil. `says` describes
    how the foil differs from the caption, and `cue` describes what gives the foil away.
    """

    family: str
    says: str
    cue: str
    spoil: Spoil
    source: tuple[str, ...]


# -- negation (CREPE) ----------------------------------------------------------------------------------------------


def negate_there(shown: Shown, dice: Dice) -> tuple[str, str]:
    """Return the caption and a foil. The foil is either "There is no cat on a box." or the caption followed by "There
    is no cat."
    """
    form = shown.form
    if dice.coin() and not form.absent and form.facts[0].relation not in GIVING and len(form.things) == 2:
        there = write_sentence(form, replace(shown.plan, construction="there", article="a", posture="", finish=0))
        return shown.text, re.sub(r"^There is an? ", "There is no ", there)
    desc = form.things[dice.roll(len(form.facts[0].args))]
    text = shown.text if shown.text.endswith(".") else shown.text + "."
    missing = noun_phrase(Desc(desc.kind), "no", 0)
    return shown.text, f"{text[0].upper()}{text[1:]} There is {missing}."


def negate_relation(shown: Shown, dice: Dice) -> tuple[str, str] | None:
    """Return the caption and a foil with "not" before the relation; None if the construction does not allow it."""
    fact = shown.form.facts[0]
    if fact.relation in GIVING or shown.plan.construction not in ("plain", "turned"):
        return None
    denied = replace(shown.form, facts=(replace(fact, negated=True), *shown.form.facts[1:]))
    if shown.plan.construction not in sayable(denied):
        return None
    return shown.text, write_sentence(denied, shown.plan)


# -- a shuffle (ARO) -----------------------------------------------------------------------------------------------


def shuffle_trigrams(shown: Shown, dice: Dice) -> tuple[str, str] | None:
    """Return the caption and a foil: the caption's words in groups of three, with the groups in random order. None if
    this changes nothing.
    """
    text = write_sentence(shown.form, replace(shown.plan, finish=1))
    tokens = re.findall(r"\w+|,", text)
    groups = dice.shuffled([tokens[k : k + 3] for k in range(0, len(tokens), 3)])
    mixed = [token for group in groups for token in group]
    return (text, " ".join(mixed)) if mixed != tokens else None


# -- templates -----------------------------------------------------------------------------------------------------

_LIVELY = ("pushes", "pulls", "carries", "holds", "follows", "faces")


def swap_implausible(shown: Shown, dice: Dice) -> tuple[str, str] | None:
    """Return the caption and an implausible foil, in which the caption's first two noun phrases are exchanged: "a box
    pushes a robot". None if the exchange would not make the caption implausible.
    """
    fact, things = shown.form.facts[0], shown.form.things
    a, b = (KINDS[things[k].kind] for k in fact.args[:2])
    odd = fact.relation in (*_LIVELY, *GIVING) and a.animate and not b.animate
    if not odd and (fact.relation not in ("inside", "on") or a.interior or a.surface):
        return None
    swapped = (fact.args[1], fact.args[0], *fact.args[2:])
    turned = replace(shown.form, facts=(replace(fact, args=swapped), *shown.form.facts[1:]))
    return shown.text, write_sentence(turned, shown.plan)


def replace_ungrammatical(shown: Shown, dice: Dice) -> tuple[str, str] | None:
    """Return the caption and an ungrammatical foil, which has the bare stem of a verb in place of the caption's verb or
    preposition: "a cat is push a box". None if the foil would not be false.
    """
    fact = shown.form.facts[0]
    verb = dice.pick(_LIVELY[:5])
    claim = replace(shown.form, facts=(Fact(verb, fact.args[:2]),), absent=())
    if verb == fact.relation or evaluate(claim, shown.graph) is not False:
        return None
    words = AT if fact.relation in AT else {relation: sum(forms, ()) for relation, forms in VERBS.items()}
    alternatives = sorted((phrase for phrases in words.values() for phrase in phrases), key=len, reverse=True)
    text = re.sub(rf"\b({'|'.join(alternatives)})\b", VERBS[verb][0][3], shown.text, count=1, flags=re.IGNORECASE)
    return (shown.text, text) if text != shown.text else None


_RARE: tuple[str, ...] = TABLES["rare"]["nouns"]


def replace_rare(shown: Shown, dice: Dice) -> tuple[str, str] | None:
    """Return the caption and a foil in which one noun is replaced by a noun that occurs in no caption of the world.
    Return None if the caption contains the replaced noun twice.
    """
    kind = shown.form.things[dice.roll(len(shown.form.facts[0].args))].kind
    rare = dice.pick(_RARE)
    if shown.text.count(f" {kind}") > 1:
        return None
    text = re.sub(rf"\b{kind}\b", rare, shown.text)
    text = re.sub(rf"\b([Aa])n? {rare}", rf"\1{'n' if rare[0] in 'aeiou' else ''} {rare}", text)
    return (shown.text, text) if text != shown.text else None


# -- longer and tidier (SugarCrepe's residue) ----------------------------------------------------------------------


def add_obj_longer(shown: Shown, dice: Dice) -> tuple[str, str]:
    """Return the caption and a longer foil: the caption with an added thing that is not in the scene."""
    kinds = {thing.kind for thing in shown.graph.things}
    extra = Desc(dice.pick([n for n in NAMES if n not in kinds]), dice.pick(COLOURS) if dice.coin() else None)
    longer = replace(shown.form, things=(*shown.form.things, extra))
    return shown.text, write_sentence(longer, shown.plan)


def replace_restyled(shown: Shown, dice: Dice) -> tuple[str, str]:
    """Return the caption and a foil that names a thing that is not in the scene. The foil is always tidy. The caption
    is often untidy: it begins with a small letter, has no full stop, or ends with a space.
    """
    fact = shown.form.facts[0]
    k = dice.roll(len(fact.args))
    kinds = {thing.kind for thing in shown.graph.things}
    new = replace(shown.form.things[k], kind=dice.pick([n for n in NAMES if n not in kinds]))
    things = tuple(new if i == k else d for i, d in enumerate(shown.form.things))
    text = write_sentence(shown.form, replace(shown.plan, finish=dice.roll(3)))
    return text + dice.pick(("", "", " ")), write_sentence(
        replace(shown.form, things=things), replace(shown.plan, finish=0)
    )


_SPOILERS = (
    negate_there, negate_relation, shuffle_trigrams, swap_implausible, replace_ungrammatical, replace_rare,
    add_obj_longer, replace_restyled,
)  # fmt: skip
BIASED = {f.__name__: BiasedKind(spoil=f, **TABLES["biased"][f.__name__]) for f in _SPOILERS}


def biased_items(kind: str, split: str, seed: int) -> Iterator[MadeItem]:
    """Yield items with foils of one biased kind (a name in `BIASED`); the iterator never ends."""
    dice = Dice(seed, key_of(f"{kind} {split}"))
    rule = BIASED[kind]
    seen: set[tuple[str, str]] = set()
    while True:
        twins = find_twins(dice.pick(rule.source), dice, split)
        shown = Shown.of(twins, dice)
        texts = rule.spoil(shown, dice)
        if texts is None or texts in seen or not is_false(texts[1], shown.graph):
            continue
        seen.add(texts)
        yield MadeItem((shown.scene,), texts, choice(1, 1), _tags(kind, rule, twins, shown))


def is_false(text: str, graph: Graph) -> bool:
    """Return True if a text can be a foil of the scene: its claim is false, or it is not a sentence of the world and so
    claims nothing. Return False if its claim is true or undecided.
    """
    return falsity(text, graph) is not False


def falsity(text: str, graph: Graph) -> bool | None:
    """Return True if a text's claim is false of the scene, and False if the claim is true or undecided. Return None if
    the text is not a sentence of the world, and so makes no claim.
    """
    claim = parse(text)
    return None if claim is None else evaluate(claim, graph) is False


def _tags(kind: str, rule: BiasedKind, twins: Twins, shown: Shown) -> dict[str, Tag]:
    return {
        "kind": kind,
        "family": rule.family,
        "clean": False,
        "form": "choice",
        "cue": rule.cue,
        "combination": "novel" if twins.novel else "seen",
        "difference": rule.says,
        "construction": shown.plan.construction,
    }
