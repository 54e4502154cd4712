"""Items from annotated photographs: twins, half-truths and confusions.

Twins are two photographs that differ in the position, look or number of the same things. A half-truth item has three
captions: a short true one, a longer one with a true detail added, and one with the reverse of that detail added. Models
that only match words prefer the longer false caption to the short true one. A confusion item has a caption of two
things with their colours, and foils that assign these colours to the things in other ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from creperie.bench import LEVELS, Item
from creperie.core import by_key
from creperie.lang import article_for
from creperie.making.candidate import Candidate, Role, dice_for
from creperie.making.data import read_data
from creperie.making.facts import check_annotated
from creperie.making.options import MakerOptions
from creperie.making.pipeline import without_source
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins import TwinMiner

NAME = "mine:scenes"
#: Maximum share of the items with the same contrast of two words, such as "dog ↔ cat" (at least two items are allowed).
PAIR_SHARE = 0.02
#: Maximum share of the items of kind "count", and of kind "size", about the same thing (at least three are allowed).
#: Other kinds are not limited.
THING_SHARE = 0.10
FEWEST = 3
#: Maximum number of items with the same photograph.
PER_PHOTOGRAPH = 2

Twin = tuple[SourceCaption, SourceCaption]


def scene_miner(name: str, options: MakerOptions, captions: Captions) -> TwinMiner:
    """Return the maker `mine:scenes`. It pairs a fact of one photograph with a fact of another photograph that says
    something different about the same things.
    """
    check_annotated(name, captions)
    candidates: dict[str, list[Candidate]] = {}
    sources = [s for s in captions.sources if LEVELS.index(str(s.tags["evidence"])) <= LEVELS.index(options.evidence)]
    pairs = drawn_twins(sources, options.seed)
    chosen = {one.id for one, _ in capped(pairs)}
    for one, two in pairs:
        tags = {"other": two.id, "other_image": two.images[0]} | {k: one.tags[k] for k in ("about", "evidence")}
        tags["basis"] = "annotated boxes of both images"
        refused = "" if one.id in chosen else "its words or photographs are in enough items already"
        row = Candidate(one.id, two.text, "negative", one.subset, NAME, contrast(one, two), "", tags, refused)
        candidates.setdefault(one.id, []).append(row)
    partners = frozenset(two.id for _, two in pairs)
    alone = {s.id: "no photograph with another state of the same things is left" for s in captions.sources}
    return TwinMiner(NAME, options, candidates, alone, partners)


def contrast(one: SourceCaption, two: SourceCaption) -> str:
    """Return the two contrasted words, such as `cat ↔ dog`. If they are numbers, the counted thing follows: `one ↔ two
    dog`.
    """
    about = str(one.tags["about"])
    states = sorted((str(one.tags["state"]), str(two.tags["state"])))
    return " ↔ ".join(states) + (f" {about}" if one.subset == "count" else "")


def drawn_twins(sources: Sequence[SourceCaption], seed: int) -> list[Twin]:
    """Return random pairs of facts. The two facts of a pair are about the same things (tag `about`) but say something
    different (tag `state`). There are as many pairs as possible, and each fact is in only one of them.
    """

    def topic(source: SourceCaption) -> tuple[str, str]:
        return source.subset, str(source.tags["about"])

    pairs = []
    for about, rows in groupby(sorted(sources, key=topic), topic):
        states = by_key((str(row.tags["state"]), row) for row in rows)
        dice = dice_for(seed, NAME, ": ".join(about))
        for group in states.values():
            dice.shuffle(group)
        while sum(map(bool, states.values())) > 1:  # pairing the two largest states leaves as few as possible unpaired
            one, two = sorted(states, key=lambda state: -len(states[state]))[:2]
            pairs.append((states[one].pop(), states[two].pop()))
    return [pair if dice_for(seed, NAME, pair[0].id + pair[1].id).random() < 0.5 else pair[::-1] for pair in pairs]


def capped(pairs: Sequence[Twin]) -> list[Twin]:
    """Return as many of the pairs as the limits allow. Limits hold for each contrast, for each photograph, and for
    each thing whose number or size a caption states. Pairs with rare contrasts are kept first.
    """
    times = Counter(contrast(*pair) for pair in pairs)
    kept = sorted(pairs, key=lambda pair: (times[contrast(*pair)], pair[0].id))
    while True:
        limit = max(2, int(PAIR_SHARE * len(kept)))
        of_kind = Counter(one.subset for one, _ in kept)
        used: Counter[tuple[str, str]] = Counter()
        fewer = []
        for one, two in kept:
            limited = str(one.tags["about"]).split(", ") if one.subset in ("count", "size") else []
            words = [("", contrast(one, two))] + [(one.subset, thing) for thing in limited]
            limits = [limit] + [max(FEWEST, int(THING_SHARE * of_kind[one.subset]))] * len(limited)
            words += [("photograph", row.images[0]) for row in (one, two)]
            limits += [PER_PHOTOGRAPH] * 2
            if all(used[word] < most for word, most in zip(words, limits)):
                used.update(words)
                fewer.append((one, two))
        if len(fewer) == len(kept):
            return kept
        kept = fewer


HALF_TRUTHS, CONFUSION = "mine:half-truths", "mine:confusion"
#: Minimum share of the picture of a thing: smaller ones were often not recognised by readers.
SMALLEST = 0.01


@dataclass(frozen=True)
class HalfTruthMaker(TwinMiner):
    """A maker of items with one photograph and three captions: short and true, longer and true, longer and false."""

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        return without_source(source, accepted)


def half_truths(name: str, options: MakerOptions, captions: Captions) -> HalfTruthMaker:
    """Return the maker `mine:half-truths`. The detail that makes a caption longer is always a position, because
    annotations are reliable about positions.
    """
    check_annotated(name, captions)
    details = read_data("facts")["details"]
    clear = [s for s in captions.sources if s.tags["evidence"] == "certain" and float(s.tags["least"]) >= SMALLEST]
    usable = [s for s in clear if s.subset in details and "all the" not in str(s.tags["about"])]
    usable.sort(key=lambda s: dice_for(options.seed, HALF_TRUTHS, s.id).random())
    once = list({(s.images, s.subset): s for s in usable}.values())  # one per photograph and kind
    limit, used = max(2, int(PAIR_SHARE * len(once))), Counter[str]()
    chosen = {}
    for source in once:
        about = str(source.tags["about"])
        if used[about] < limit:
            used[about] += 1
            chosen[source.id] = _captions(source, details[source.subset], options.seed)
    skipped = {s.id: "another fact of the photograph is used, or its words are in enough items" for s in usable}
    alone = {s.id: "not the position of two clearly visible things" for s in captions.sources}
    return HalfTruthMaker(HALF_TRUTHS, options, chosen, alone | skipped, frozenset())


def _captions(source: SourceCaption, detail: Sequence[str], seed: int) -> tuple[Candidate, ...]:
    """Return the three captions of a half-truth item. `detail` holds two opposite wordings of a position, such as
    `further left in it than` and `further right in it than`. Which of the two things is named first is random, so that
    each wording is true as often as false.
    """
    things = str(source.tags["about"]).split(", ")
    dice_for(seed, HALF_TRUTHS, f"{source.id} order").shuffle(things)
    a, b = (f"{article_for(thing)} {thing}" for thing in things)
    true, false = detail if source.tags["state"] == things[0] else reversed(detail)
    tags, group = {"evidence": source.tags["evidence"]}, f"half_{source.subset}"
    short, end = f"The picture shows {a}", f"{b}."
    edit = f"{true} → {false}"
    return (
        Candidate(source.id, f"{short}.", "positive", "short", HALF_TRUTHS, "", group, tags),
        Candidate(source.id, f"{short}, {true} {end}", "positive", "true detail", HALF_TRUTHS, "", group, tags),
        Candidate(source.id, f"{short}, {false} {end}", "negative", "false detail", HALF_TRUTHS, edit, group, tags),
    )


def confusions(name: str, options: MakerOptions, captions: Captions) -> HalfTruthMaker:
    """Return the maker `mine:confusion`, whose items have one true caption, and three foils with the same things and
    colours.
    """
    check_annotated(name, captions)
    bound = {s.id: _confused(s) for s in captions.sources if s.subset == "swap_att"}
    alone = {s.id: "no colours of two things" for s in captions.sources}
    return HalfTruthMaker(CONFUSION, options, bound, alone, frozenset())


def _confused(source: SourceCaption) -> list[Candidate]:
    *things, one, two = str(source.tags["about"]).split(", ")
    first = str(source.tags["state"]).removesuffix(f" {things[0]}")
    true = (first, two if first == one else one)
    tags = {"evidence": source.tags["evidence"]}
    candidates = []
    for colours in (true, true[::-1], (one, one), (two, two)):
        a, b = (f"{article_for(colour)} {colour} {thing}" for colour, thing in zip(colours, things))
        role: Role = "positive" if colours == true else "negative"
        text, edit = f"The picture shows {a} and {b}.", " and ".join(colours)
        candidates.append(Candidate(source.id, text, role, "confusion", CONFUSION, edit, "", tags))
    return candidates
