"""Items of one annotated photograph: half-truths and confusions.

A half-truth is a short true caption, the same with a true detail, and the same with that detail turned round. Models
that match words prefer the longer caption although its detail is false; the one with the true detail is as long. A
confusion is a caption of two things with their colours, and the other ways to share these colours out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from creperie.bench import Item
from creperie.core import UsageError
from creperie.lang import article_for
from creperie.making.candidate import Candidate, Role, dice_for
from creperie.making.data import read_data
from creperie.making.options import MakerOptions
from creperie.making.pipeline import without_source
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins import TwinMiner

NAME, CONFUSION = "mine:half-truths", "mine:confusion"
#: Only things of this share of the picture: of smaller ones readers could often not say what they are.
SMALLEST = 0.01
#: No two things are compared in more than this share of the items, or in two of them.
PAIR_SHARE = 0.02


@dataclass(frozen=True)
class HalfTruthMaker(TwinMiner):
    """One photograph per item, and three captions: short and true, longer and true, longer and false."""

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        return without_source(source, accepted)


def half_truths(name: str, options: MakerOptions, captions: Captions) -> HalfTruthMaker:
    """Return the maker `mine:half-truths`: details are positions, which annotations give for certain."""
    if not all("state" in s.tags for s in captions.sources):
        raise UsageError(f"{NAME} needs annotated photographs", hint="pass --captions annotations:FILE")
    details = read_data("facts")["details"]
    clear = [s for s in captions.sources if s.tags["evidence"] == "certain" and float(s.tags["least"]) >= SMALLEST]
    usable = [s for s in clear if s.subset in details and "all the" not in str(s.tags["about"])]
    usable.sort(key=lambda s: dice_for(options.seed, NAME, s.id).random())
    once = list({(s.images, s.subset): s for s in usable}.values())  # one per photograph and kind
    limit, used = max(2, int(PAIR_SHARE * len(once))), Counter[str]()
    chosen = {}
    for source in once:
        about = str(source.tags["about"])
        if used[about] < limit:
            used[about] += 1
            chosen[source.id] = _captions(source, details[source.subset], options.seed)
    skipped = {s.id: "another fact of the photograph is used, or its words are in enough items" for s in usable}
    alone = {s.id: "not the position of two things that are plain to see" for s in captions.sources}
    return HalfTruthMaker(options, chosen, alone | skipped, frozenset(), NAME)


def _captions(source: SourceCaption, detail: Sequence[str], seed: int) -> tuple[Candidate, ...]:
    """Three captions. The thing that they begin with is drawn, so either detail is as often true as false."""
    things = str(source.tags["about"]).split(", ")
    dice_for(seed, NAME, f"{source.id} order").shuffle(things)
    a, b = (f"{article_for(thing)} {thing}" for thing in things)
    true, false = detail if source.tags["state"] == things[0] else reversed(detail)
    tags, group = {"evidence": source.tags["evidence"]}, f"half_{source.subset}"
    short, end = f"The picture shows {a}", f"{b}."
    edit = f"{true} → {false}"
    return (
        Candidate(source.id, f"{short}.", "positive", "short", NAME, "", group, tags),
        Candidate(source.id, f"{short}, {true} {end}", "positive", "true detail", NAME, "", group, tags),
        Candidate(source.id, f"{short}, {false} {end}", "negative", "false detail", NAME, edit, group, tags),
    )


def confusions(name: str, options: MakerOptions, captions: Captions) -> HalfTruthMaker:
    """Return the maker `mine:confusion`: one true caption and three foils with the same things and colours."""
    if not all("state" in s.tags for s in captions.sources):
        raise UsageError(f"{CONFUSION} needs annotated photographs", hint="pass --captions annotations:FILE")
    bound = {s.id: _confused(s) for s in captions.sources if s.subset == "swap_att"}
    alone = {s.id: "no colours of two things" for s in captions.sources}
    return HalfTruthMaker(options, bound, alone, frozenset(), CONFUSION)


def _confused(source: SourceCaption) -> tuple[Candidate, ...]:
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
    return tuple(candidates)
