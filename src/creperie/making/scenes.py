"""Twins from annotations: two photographs in which the same things stand, look or count otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from creperie.bench import LEVELS
from creperie.core import UsageError
from creperie.making.candidate import Candidate, dice_for
from creperie.making.options import MakerOptions
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins import TwinMiner

NAME = "mine:scenes"
#: No contrast of two words, such as "dog ↔ cat", is in more than this share of the items (or in two items).
PAIR_SHARE = 0.02
#: No thing is in more than this share of the counts, nor of the sizes (or in three items). Exchanges all stay.
THING_SHARE = 0.10
FEWEST = 3

Twin = tuple[SourceCaption, SourceCaption]


def scene_miner(name: str, options: MakerOptions, captions: Captions) -> TwinMiner:
    """Return the maker `mine:scenes`: it pairs facts about the same things whose states differ."""
    if not all("state" in s.tags for s in captions.sources):
        raise UsageError("mine:scenes needs annotated photographs", hint="pass --captions annotations:FILE")
    found: dict[str, list[Candidate]] = {}
    sources = [s for s in captions.sources if LEVELS.index(str(s.tags["evidence"])) <= LEVELS.index(options.evidence)]
    pairs = proposed(sources, options.seed)
    chosen = {one.id for one, _ in capped(pairs)}
    for one, two in pairs:
        tags = {"other": two.id, "other_image": two.images[0]} | {k: one.tags[k] for k in ("about", "evidence")}
        tags["basis"] = "annotated boxes of both images"
        refused = "" if one.id in chosen else "its words are in enough items already"
        row = Candidate(one.id, two.text, "negative", one.subset, NAME, contrast(one, two), "", tags, refused)
        found.setdefault(one.id, []).append(row)
    partners = frozenset(two.id for _, two in pairs)
    alone = {s.id: "no photograph that says otherwise is left" for s in captions.sources}
    return TwinMiner(options, {k: tuple(v) for k, v in found.items()}, alone, partners, NAME)


def contrast(one: SourceCaption, two: SourceCaption) -> str:
    """Return the two words whose contrast is tested: `cat ↔ dog`, or `one ↔ two dog`."""
    about = str(one.tags["about"])
    states = sorted((str(one.tags["state"]), str(two.tags["state"])))
    return " ↔ ".join(states) + (f" {about}" if one.subset == "count" else "")


def proposed(sources: Sequence[SourceCaption], seed: int) -> list[Twin]:
    """Return as many pairs as the photographs give, each photograph once per kind and things, drawn by the seed."""

    def topic(source: SourceCaption) -> tuple[str, str]:
        return source.subset, str(source.tags["about"])

    pairs = []
    for about, rows in groupby(sorted(sources, key=topic), topic):
        states: dict[str, list[SourceCaption]] = {}
        for row in rows:
            states.setdefault(str(row.tags["state"]), []).append(row)
        dice = dice_for(seed, NAME, ": ".join(about))
        for group in states.values():
            dice.shuffle(group)
        while (
            sum(map(bool, states.values())) > 1
        ):  # from the two largest states: none is left over that could be paired
            one, two = sorted(states, key=lambda state: -len(states[state]))[:2]
            pairs.append((states[one].pop(), states[two].pop()))
    return [pair if dice_for(seed, NAME, pair[0].id + pair[1].id).random() < 0.5 else pair[::-1] for pair in pairs]


def capped(pairs: Sequence[Twin]) -> list[Twin]:
    """Return the pairs that are kept: no contrast and no thing above its share, rare ones first."""
    times = Counter(contrast(*pair) for pair in pairs)
    kept = sorted(pairs, key=lambda pair: (times[contrast(*pair)], pair[0].id))
    while True:
        limit = max(2, int(PAIR_SHARE * len(kept)))
        of_kind = Counter(one.subset for one, _ in kept)
        used: Counter[tuple[str, str]] = Counter()
        fewer = []
        for one, two in kept:
            words = [("", contrast(one, two))] + [(one.subset, thing) for thing in _things(one)]
            limits = [limit] + [max(FEWEST, int(THING_SHARE * of_kind[one.subset]))] * (len(words) - 1)
            if all(used[word] < most for word, most in zip(words, limits)):
                used.update(words)
                fewer.append((one, two))
        if len(fewer) == len(kept):
            return kept
        kept = fewer


def _things(source: SourceCaption) -> list[str]:
    """Return the things whose share is limited."""
    return str(source.tags["about"]).split(", ") if source.subset in ("count", "size") else []
