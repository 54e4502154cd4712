"""What a caption claims, and whether it is true of a scene.

A claim (`LogicalForm`) describes things, states facts about them and may say what is absent. It is true if there are
distinct things in the scene that fit the descriptions and the facts. A verdict is True, False, or None if the image
does not decide it. A caption counts as true only if the verdict is True, and as a foil only if it is False.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Protocol

from creperie.world.kinds import KINDS
from creperie.world.places import Verdict, pair_places, spatial
from creperie.world.scene import GIVING, Scene, Thing


@dataclass(frozen=True, slots=True)
class Desc:
    """A description of a thing: its kind, and the attributes that the caption mentions. An attribute is None if not
    mentioned.
    """

    kind: str
    colour: str | None = None
    pattern: str | None = None
    size: str | None = None
    material: str | None = None
    state: str | None = None  #: open, full, lit …


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation between described things, which are given by their indices; `negated` if the caption says "not"."""

    relation: str
    args: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class LogicalForm:
    """The claim of a caption in logical form: described things, facts about them, things said to be absent, and exact
    counts.
    """

    things: tuple[Desc, ...]
    facts: tuple[Fact, ...] = ()
    absent: tuple[Desc, ...] = ()
    denied: bool = False  #: "there is no cat on the box": the whole claim is negated
    counts: tuple[tuple[Desc, int], ...] = ()  #: exact number of things of a description
    setting: str = ""  #: "table": all this is on a table; "room": it is in a room


#: relation → its converse, with the arguments exchanged.
_PAIRS = (
    ("left", "right"), ("above", "below"), ("front", "behind"), ("taller", "shorter"), ("bigger", "smaller"),
    ("nearer", "farther"),
)  # fmt: skip
CONVERSE = dict(_PAIRS) | {b: a for a, b in _PAIRS}
SYMMETRIC = frozenset({"near", "far", "touching"})

#: Action of a scene → other actions of its agent on its patient that the image does not decide; all others are false.
_UNDECIDED: dict[str, frozenset[str]] = {
    "pushes": frozenset({"holds", "follows"}),
    "pulls": frozenset({"holds"}),
    "carries": frozenset({"holds"}),
    "holds": frozenset({"carries", "pushes"}),
    **dict.fromkeys(GIVING, frozenset({"carries", "pushes", "holds"})),
    "follows": frozenset(),
}


class Relations(Protocol):
    """The interface of a scene graph, against which claims are checked: things, the relations between them, and which
    descriptions fit them.
    """

    @property
    def things(self) -> Sequence[Any]: ...
    @property
    def setting(self) -> str: ...
    def holds(self, relation: str, args: tuple[int, ...]) -> Verdict: ...
    def fits(self, desc: Desc, thing: Any) -> Verdict: ...


class Graph:
    """The scene graph of a drawn scene: all relations between its things, computed from their positions
    and the action.
    """

    setting = "drawn"

    def __init__(self, scene: Scene) -> None:
        self.things = scene.things
        self.action = scene.action
        self.roles = scene.roles
        self.places, self.gaps = pair_places(scene.things, scene.action)

    @cached_property
    def sizes(self) -> frozenset[str]:
        return frozenset(thing.size for thing in self.things)

    def holds(self, relation: str, args: tuple[int, ...]) -> Verdict:
        """Return whether the relation holds between the things with these indices; None if that is undecided."""
        if relation in GIVING:
            return self._gives(relation, args)
        if relation == "depth":  # from front to back
            return and_(self.holds("front", args[:2]), self.holds("front", args[1:]))
        a, b = args
        if relation == "faces":
            return self._faces(a, b)
        if relation in _UNDECIDED:
            return self._acts(relation, a, b)
        return spatial(relation, self.places[a][b], self.gaps[a][b], self.things[a], self.things[b])

    def _gives(self, action: str, args: tuple[int, ...]) -> Verdict:
        """Return whether the scene shows this action ("hands" or "throws") with this giver, gift and taker.

        The result is None (undecided) if the scene shows the other of the two actions, or if the giver only holds the
        gift.
        """
        if self.action == "holds" and self.roles == args[:2]:
            return None
        if self.action not in GIVING or self.roles != args:
            return False
        return True if self.action == action else None

    def _acts(self, action: str, a: int, b: int) -> Verdict:
        if self.action and (a, b) == (0, 1):
            return True if self.action == action else None if action in _UNDECIDED[self.action] else False
        if self.action == "pulls" and action == "follows" and (a, b) == (1, 0):
            return None  # what is pulled may be called a follower
        return self._might_follow(a, b) if action == "follows" else False

    def _might_follow(self, a: int, b: int) -> Verdict:
        """Return None (undecided) if `a` may seem to follow `b`, else False. This is possible only if `b` is animate
        and both face the same way.
        """
        if not KINDS[self.things[b].kind].animate or self.things[a].facing != self.things[b].facing:
            return False
        return False if self._faces(a, b) is False else None

    def _faces(self, a: int, b: int) -> Verdict:
        if not KINDS[self.things[a].kind].animate:
            return False
        place = self.places[a][b]
        if place not in ("LEFT", "RIGHT"):
            return None
        if (self.things[a].facing > 0) != (place == "LEFT"):
            return False
        return None if self._between(a, b) else True

    def _between(self, a: int, b: int) -> bool:
        low, high = sorted((self.things[a].x, self.things[b].x))
        level = self.things[a].box[1]
        others = (t for k, t in enumerate(self.things) if k not in (a, b))
        return any(low < t.x < high and t.y > level for t in others)

    def fits(self, desc: Desc, thing: Thing) -> Verdict:
        """Return whether a description fits a thing; None if undecided. "Big" and "small" are decided only if the scene
        has things of both sizes.
        """
        if desc.kind != thing.kind or (desc.colour or thing.colour) != thing.colour or desc.material or desc.state:
            return False
        if (desc.pattern or thing.pattern) != thing.pattern:
            return False
        if desc.size is None:
            return True
        if thing.size == "medium" or not {"small", "big"} <= self.sizes:
            return None
        return desc.size == thing.size


def evaluate(form: LogicalForm, graph: Relations) -> Verdict:
    """Return whether a claim is true of a scene; None if that is undecided.

    >>> from creperie.world.scene import Scene, Thing
    >>> cat, box = Thing("cat", "red", "plain", "medium", 60, 220), Thing("box", "blue", "plain", "medium", 170, 224)
    >>> graph = Graph(Scene((cat, box)))
    >>> claims = [LogicalForm((Desc("cat"), Desc("box")), (Fact(r, (0, 1)),)) for r in ("left", "right", "near")]
    >>> [evaluate(claim, graph) for claim in claims]
    [True, False, None]
    >>> evaluate(LogicalForm((Desc("cat", "red"),), absent=(Desc("dog"),)), graph)
    True
    """
    verdict = _some_assignment(form, graph)
    for desc, count in (*((desc, 0) for desc in form.absent), *form.counts):
        fits = [graph.fits(desc, thing) for thing in graph.things]
        least, most = fits.count(True), len(fits) - fits.count(False)
        verdict = and_(verdict, False if not least <= count <= most else True if least == most else None)
    verdict = and_(verdict, form.setting in ("", graph.setting))
    return _not(verdict) if form.denied else verdict


def _some_assignment(form: LogicalForm, graph: Relations) -> Verdict:
    """Return True if some assignment of distinct things to the descriptions satisfies all facts, False if no assignment
    does, and None if that is undecided. The result is also None if the verdict on a negated fact differs between
    possible assignments.
    """
    candidates: list[Sequence[tuple[int, Verdict]]] = []
    for desc in form.things:
        fitting = [(k, v) for k, thing in enumerate(graph.things) if (v := graph.fits(desc, thing)) is not False]
        if not fitting:
            return False
        candidates.append(fitting)
    best: Verdict = False
    denials: set[Verdict] = set()
    for assignment in product(*candidates):
        chosen = [k for k, _ in assignment]
        if len(set(chosen)) < len(chosen):
            continue
        verdict = _satisfies(form, graph, chosen, denials)
        if verdict is not False:
            best = best or (verdict if all(v for _, v in assignment) else None)
    if best is False or not denials:
        return best
    # "A cat is not left of a box": true if no cat is left of a box, false if every cat is left of every box.
    return None if len(denials) > 1 else and_(best, denials.pop())


def _satisfies(form: LogicalForm, graph: Relations, chosen: list[int], denials: set[Verdict]) -> Verdict:
    """Return whether the chosen things satisfy all facts that are not negated. If the result is True or None, also add
    the verdicts on the negated facts to `denials`.
    """
    result: Verdict = True
    denied: list[Verdict] = []
    for fact in form.facts:
        verdict = graph.holds(fact.relation, tuple([chosen[k] for k in fact.args]))
        if fact.negated:
            denied.append(_not(verdict))
        elif verdict is False:
            return False
        else:
            result = and_(result, verdict)
    denials.update(denied)
    return result


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def and_(a: Verdict, b: Verdict) -> Verdict:
    """Return whether both verdicts are True; None if that is undecided."""
    return False if a is False or b is False else None if a is None or b is None else True
