"""How often is a crossed cell really false? Mined twins against people's judgements of Flickr8k.

Flickr8k ships judgements of captions against other images: three experts on a scale of 1 (does not describe it) to 4
(describes it without errors), and crowd workers who said yes or no. A cell counts as true where the median expert gives
4, and where at least half of the crowd says yes; 3 is "with minor errors", which is what a wrong colour is.

Every pair that the join finds, whatever became of it, is looked up. Few of them were judged, so the same rules are also
tried on a wider set: judged captions that share many words with one of the image's own captions, and differ from it in
any number of words.

    python research/twins_judged.py FLICKR8K_FOLDER [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from creperie.making import MakerOptions, read_captions
from creperie.making.twins import TwinSearch
from creperie.making.twins_words import table_contrast, words_meaning, words_of
from creperie.metrics import wilson

Cells = dict[tuple[str, str], list[tuple[str, float]]]


def judgements(folder: Path) -> Cells:
    """(image, caption id) → how true people found it, 0 to 1, by source; own captions are left out."""
    found: Cells = defaultdict(list)
    for line in (folder / "ExpertAnnotations.txt").read_text().splitlines():
        image, caption, *scores = line.split("\t")
        if not caption.startswith(image):
            found[image, caption].append(("expert", float(sorted(map(int, scores))[1] == 4)))
    for line in (folder / "CrowdFlowerAnnotations.txt").read_text().splitlines():
        image, caption, share, *_ = line.split("\t")
        if not caption.startswith(image):
            found[image, caption].append(("crowd", float(share)))
    return found


def caption_ids(folder: Path) -> dict[tuple[str, str], str]:
    """(image, text) → the id of the caption."""
    rows = (line.split("\t", 1) for line in (folder / "Flickr8k.token.txt").read_text().splitlines())
    return {(name.partition("#")[0], text): name for name, text in rows}


class Shares:
    """Counts of judged cells that are false, by row of the table."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, kind: str, level: str, judged: list[tuple[str, float]]) -> None:
        for source, truth in judged:
            for row in ((kind, level, source), ("all", level, source)):
                self.counts[row][0] += truth < 0.5
                self.counts[row][1] += 1

    def rows(self) -> list[dict[str, Any]]:
        out = []
        for (kind, level, source), (false, n) in sorted(self.counts.items()):
            low, high = wilson(false, n)
            share = {"false": false, "n": n, "share": false / n, "low": low, "high": high}
            out.append({"kind": kind, "level": level, "judged_by": source, **share})
        return out


def mined(folder: Path, cells: Cells) -> Shares:
    """The crossed cells of all pairs that the join finds."""
    captions = read_captions(f"flickr-captions:{folder / 'Flickr8k.token.txt'}")
    search = TwinSearch(captions, MakerOptions(evidence="unchecked"))
    ids = caption_ids(folder)
    shares = Shares()
    for pair in search.pairs():
        left, right = search.sources[pair.left], search.sources[pair.right]
        kept = not pair.reason or pair.reason.startswith("an image or caption is used")
        level = pair.evidence.level if kept else f"rejected: {pair.reason}"
        for image, source in ((left.images[0], right), (right.images[0], left)):
            judged = cells.get((image, ids.get((source.images[0], source.text), "")), [])
            shares.add(pair.kind or "not typed", level, judged)
    return shares


def near(folder: Path, cells: Cells, alike: float) -> Shares:
    """The same evidence rules on judged cells whose caption has most words of one of the image's own captions."""
    texts: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for line in (folder / "Flickr8k.token.txt").read_text().splitlines():
        name, text = line.split("\t", 1)
        texts[name.partition("#")[0]][name] = [w.base for w in words_of(text)]
    shares = Shares()
    for (image, caption), judged in cells.items():
        words = set(texts[caption.partition("#")[0]].get(caption, []))
        own = [set(said) for said in texts[image].values()]
        closest = max(own, key=lambda said: len(said & words) / max(1, len(said | words)), default=set())
        if len(closest & words) < alike * len(closest | words):
            continue
        pairs = [(v, w) for v in sorted(closest - words) for w in sorted(words - closest)]
        contrasts = [c for v, w in pairs if (c := table_contrast(v, w))]
        for kind in sorted({c.kind for c in contrasts}):
            strong = [c for c in contrasts if c.kind == kind and _silent(c, own)]
            confirmed = [c for c in strong if sum(c.left in said for said in own) >= 2]
            level = "certain" if confirmed else "likely" if strong else "rejected: another caption says it"
            shares.add(kind, level, judged)
        if not contrasts:
            shares.add("none", "no excluding word", judged)
    return shares


def _silent(contrast: Any, own: list[set[str]]) -> bool:
    told = words_meaning(contrast.right, contrast.name) - words_meaning(contrast.left, contrast.name)
    return not any(told & said for said in own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alike", type=float, default=0.3, help="share of words that a near caption has in common")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    cells = judgements(asked.folder)
    document = {"mined": mined(asked.folder, cells).rows(), "near": near(asked.folder, cells, asked.alike).rows()}
    for name, rows in document.items():
        print(name)
        for r in rows:
            print(
                f"  {r['kind']:<12} {r['level']:<58} {r['judged_by']:<7} {r['false']:>6} of {r['n']:>6} false "
                f"{100 * r['share']:5.1f} % ({100 * r['low']:.1f}–{100 * r['high']:.1f})"
            )
    if asked.out:
        asked.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
