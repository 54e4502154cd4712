"""Twins: two claims and two scenes, each claim true of its own scene and false of the other.

This is why the clean kinds are clean. A foil is not a corrupted caption: it is the true caption of a twin scene, made
in the same way. A fair coin decides which of the two scenes is shown, so for every pair of texts (a, b) "a true, b
false" is exactly as likely as the reverse, and nothing in the text gives the answer away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from creperie.world.dice import Dice
from creperie.world.kinds import UNWRITTEN
from creperie.world.layout import SceneDraft, lay_out
from creperie.world.sample import Sampler
from creperie.world.scene import Scene
from creperie.world.splits import is_novel, settle
from creperie.world.truth import Desc, Fact, Graph, LogicalForm, Relations, evaluate

TAIL_RELATIONS = ("left", "right", "above", "below", "near")


@dataclass(frozen=True, slots=True)
class TwinDrafts:
    """A proposal for a foil of a clean kind: two drafts, and a claim about each. `note` says how the drafts differ."""

    drafts: tuple[SceneDraft, SceneDraft]
    forms: tuple[LogicalForm, LogicalForm]
    note: str
    base: LogicalForm | None = None  #: the claim without the addition, for kinds that add something
    tails: bool = True  #: whether the same additions may be made to both captions


@dataclass(frozen=True, slots=True)
class Twins:
    """Two certified claims with their scenes."""

    forms: tuple[LogicalForm, LogicalForm]
    scenes: tuple[Any, Any]  #: two scenes, or two rooms
    note: str
    novel: bool
    definite: bool  #: whether "the" is unambiguous in both scenes
    base: LogicalForm | None = None


class TwinClaims(Protocol):
    """What a pair of drafts, drawn or solid, says: two claims, how they differ, and how they may be extended."""

    @property
    def forms(self) -> tuple[LogicalForm, LogicalForm]: ...
    @property
    def note(self) -> str: ...
    @property
    def base(self) -> LogicalForm | None: ...
    @property
    def tails(self) -> bool: ...


Propose = Callable[[Sampler], TwinDrafts | None]


def find_twins(propose: Propose, dice: Dice, split: str) -> Twins:
    """Draw proposals until one is certified and return it. Proposals are rejected as a pair, so the coin stays fair."""
    while True:
        novel = split == "test" and dice.coin()
        for _ in range(200):
            pair = propose(Sampler(dice, seen=not novel))
            twins = certify(pair, dice, split, novel) if pair else None
            if twins:
                return twins


def certify(pair: TwinDrafts, dice: Dice, split: str, novel: bool) -> Twins | None:
    """Lay both drafts out and return twins; None unless each claim is true of its own scene, false of the other."""
    tape = dice.tape()
    scenes: list[Scene] = []
    for draft in pair.drafts:
        scene = lay_out(draft, tape.replay())
        scene = settle(scene, split) if scene else None
        if scene is None:
            return None
        scenes.append(scene)
    graphs = [Graph(scene) for scene in scenes]
    if any(is_novel(graph) != novel for graph in graphs):
        return None
    return confirmed(pair, (scenes[0], scenes[1]), graphs, dice, novel, UNWRITTEN)


def confirmed(
    pair: TwinClaims,
    scenes: tuple[Any, Any],
    graphs: Sequence[Relations],
    dice: Dice,
    novel: bool,
    kinds: Sequence[str],
) -> Twins | None:
    """Return the scenes with their claims; None unless each claim is true of its own scene, false of the other.

    `kinds` are those that a caption may call absent.
    """
    if any(evaluate(pair.forms[i], graphs[j]) is not (i == j) for i in (0, 1) for j in (0, 1)):
        return None
    forms = with_tails(pair, graphs, dice, kinds) if pair.tails else pair.forms
    if any(evaluate(form, graph) is not True for form, graph in zip(forms, graphs, strict=True)):
        return None
    named = ((desc, graph) for form in forms for graph in graphs for desc in form.things)
    definite = all(sum(graph.fits(desc, t) is not False for t in graph.things) <= 1 for desc, graph in named)
    return Twins(forms, scenes, pair.note, novel, definite, pair.base)


def with_tails(
    pair: TwinClaims, graphs: Sequence[Relations], dice: Dice, names: Sequence[str]
) -> tuple[LogicalForm, LogicalForm]:
    """Return both claims with the same addition, true of both scenes: a third thing, where it is, or what is absent.

    This puts "no" and "not" into true captions and foils of every clean kind equally.
    """
    first, second = pair.forms
    third = len(first.things)
    kinds = {thing.kind for graph in graphs for thing in graph.things}
    if third == 2 and first.facts and len(graphs[0].things) == len(graphs[1].things) > 2 and dice.chance(60):
        desc = _shared_desc(graphs, dice)
        if desc is not None and all(desc.kind != d.kind for d in (*first.things, *second.things)):
            fact = _shared_fact(graphs, dice) if dice.coin() else None
            extra = (fact,) if fact else ()
            first, second = (
                replace(form, things=(*form.things, desc), facts=(*form.facts, *extra)) for form in (first, second)
            )
    if not first.absent and dice.chance(14):
        named = {d.kind for form in (first, second) for d in form.things}
        missing = Desc(dice.pick([name for name in names if name not in kinds and name not in named]))
        first, second = (replace(form, absent=(missing,)) for form in (first, second))
    return first, second


def _shared_desc(graphs: Sequence[Relations], dice: Dice) -> Desc | None:
    """Return a description of the third thing that fits in both scenes; None if its kind differs."""
    a, b = (graph.things[2] for graph in graphs)
    if a.kind != b.kind:
        return None
    return Desc(a.kind, (a.colour or None) if a.colour == b.colour and dice.coin() else None)


def _shared_fact(graphs: Sequence[Relations], dice: Dice) -> Fact | None:
    """Return a spatial fact about the third thing that holds in both scenes; None if there is none."""
    facts = [
        Fact(relation, (2, k))
        for k in (0, 1)
        for relation in TAIL_RELATIONS
        if all(graph.holds(relation, (2, k)) for graph in graphs)
    ]
    return dice.pick(facts) if facts else None
