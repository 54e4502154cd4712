"""Half-truths: a short true caption, the same with a true detail, and the same with that detail turned round.

Models that match words prefer the longer caption although its detail is false; the one with the true detail is as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from creperie.bench import Item
from creperie.core import UsageError
from creperie.lang import article_for
from creperie.making.candidate import Candidate, dice_for
from creperie.making.data import read_data
from creperie.making.options import MakerOptions
from creperie.making.pipeline import without_source
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins import TwinMiner

NAME = "mine:half-truths"
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
    usable = [s for s in captions.sources if s.subset in details and "all the" not in str(s.tags["about"])]
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
    alone = {s.id: "not the position of two things" for s in captions.sources}
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
