"""How many of VISLA's released spatial triplets `mine:spatial` finds again, and what it accepts by itself.

The released triplets went through experts, who chose one of three foils and edited captions, so not all can be found. A
pair is found when both positives of a triplet were mined for one image, in either order; its foil, when it is among the
three captions that are shown to people for that pair, or for either of its captions. Captions are compared without
case, final stop and blanks.

    python research/spatial_released.py VSR_FOLDER VISLA_FOLDER            # print the table
    python research/spatial_released.py VSR_FOLDER VISLA_FOLDER --write    # and put it into research/results/spatial.md
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from first_minute import write

from creperie.bench import load
from creperie.lang import Spatial, spatial
from creperie.lang.relations import clashes, follows
from creperie.making import MakerOptions, build_maker, read_captions

PAGE = Path(__file__).resolve().parents[1] / "research" / "results" / "spatial.md"
ROWS = ("captions with P2 and foils", "P2 mined", "P2 converse", "items")
ROWS += tuple(f"of these, foil: {sure}" for sure in ("people", "opposite", "unsure"))
ROWS += ("released pairs found",)
ROWS += tuple(f"released foils among the three of {whose}" for whose in ("such a pair", "P1 or of P2"))
Key = tuple[str, frozenset[str]]


def plain(text: str) -> str:
    return " ".join(text.lower().rstrip(" .").split())


def measure(vsr: str, triplets: list[tuple[str, str, str, str]], *, as_published: bool) -> dict[str, int]:
    """Counts of one way of mining."""
    captions = read_captions(f"vsr:{vsr}")
    maker = build_maker("mine:spatial", MakerOptions(as_published=as_published), captions)
    shown: dict[Key, set[str]] = {}
    offered: dict[tuple[str, str], set[str]] = {}  # foils by image and caption
    counts: Counter[str] = Counter()
    for source, proposal in zip(captions.sources, maker.propose(captions.sources), strict=True):
        positives = [c for c in proposal.candidates if c.role == "positive"]
        if not positives:
            continue
        foils = [c for c in proposal.candidates if c.role == "negative"]
        key = (source.images[0], frozenset((plain(source.text), plain(positives[0].text))))
        shown.setdefault(key, set()).update(plain(c.text) for c in foils)
        offered.setdefault((source.images[0], plain(source.text)), set()).update(plain(c.text) for c in foils)
        counts["captions with P2 and foils"] += 1
        counts[f"P2 {positives[0].tags['second_positive']}"] += 1
        kept = sorted((c for c in foils if not c.refused), key=lambda c: c.tags["foil"] == "unsure")
        counts["items"] += bool(kept)
        if kept:
            counts[f"of these, foil: {kept[0].tags['foil']}"] += 1
    for image, p1, p2, n in triplets:
        own = shown.get((image, frozenset((plain(p1), plain(p2)))))
        counts["released pairs found"] += own is not None
        counts["released foils among the three of such a pair"] += own is not None and plain(n) in own
        either = {foil for p in (p1, p2) for foil in offered.get((image, plain(p)), ())}
        counts["released foils among the three of P1 or of P2"] += plain(n) in either
    return counts


def contradicted(vsr: str) -> str:
    """Pairs of captions that people judged on one image: how often they contradict the tables of relations."""
    judged: dict[str, set[tuple[Spatial, bool]]] = {}  # a pair may be in several of VSR's files
    for item in load(f"vsr:{vsr}"):
        if told := spatial(item.captions[0]):
            judged.setdefault(item.images[0], set()).add((told, item.match[0][0]))
    counts: Counter[tuple[str, bool]] = Counter()
    for own in judged.values():
        for told, true in own:
            for other, holds in own:
                turned = told.subject == other.object
                if true and told.things == other.things and follows(told.relation, other.relation, turned):
                    counts["proven", holds] += 1
                if true and told.things == other.things and clashes(told.relation, other.relation, turned):
                    counts["opposite", holds] += 1
    proven, opposite = (counts[kind, True] + counts[kind, False] for kind in ("proven", "opposite"))
    return (
        f"Judged by VSR's annotators on one image, beside a caption that they found true:\n"
        f"{counts['proven', False]} of "
        f"{proven} captions that it proves were found false, {counts['opposite', True]} of {opposite} that it excludes "
        "were found true."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vsr")
    parser.add_argument("visla")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    released = load(f"visla-spatial:{asked.visla}")
    triplets = [(item.images[0], *item.captions[:3]) for item in released]
    both = (("default", False), ("as published", True))
    ways = {name: measure(asked.vsr, triplets, as_published=flag) for name, flag in both}
    lines = [
        f"Written by `python research/spatial_released.py VSR VISLA --write`; {len(triplets)} released triplets.",
        "",
        "| | default | `--as-published` |",
        "|---|---:|---:|",
        *(f"| {row} | {ways['default'].get(row, 0):,} | {ways['as published'].get(row, 0):,} |" for row in ROWS),
        "",
        contradicted(asked.vsr),
    ]
    print("\n".join(lines))
    if asked.write:
        write(PAGE, "spatial", "\n".join(lines))


if __name__ == "__main__":
    main()
