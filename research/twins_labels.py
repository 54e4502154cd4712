"""How often do people's labels agree with the exclusion rules for spatial captions? Measured on VSR.

For every image of VSR with a true caption, every other labelled caption about the same two things is looked up: does
the rule say that it must be false, and did people say so?

    python research/twins_labels.py VSR_FOLDER [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from creperie.bench import load
from creperie.lang import Spatial, spatial
from creperie.lang.relations import clashes, follows
from creperie.making.twins_words import depends_on_viewpoint
from creperie.metrics import wilson


def rule(one: Spatial, two: Spatial) -> str:
    """What the miner would say of the second caption, given that the first is true."""
    view = " (depends on the point of view)" if depends_on_viewpoint(one.relation) else ""
    if one.relation == two.relation and (one.subject, one.object) == (two.object, two.subject):
        turned = one.converse()
        if turned is None:
            return "exchanged, not known"
        return "exchanged, symmetric" if turned.relation == one.relation else f"exchanged, one-way{view}"
    if (one.subject, one.object) != (two.subject, two.object):
        return ""
    if clashes(one.relation, two.relation):
        return "opposite relations"
    alike = follows(one.relation, two.relation) or follows(two.relation, one.relation)
    return "may agree" if alike else f"not known{view}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    labels: dict[str, dict[str, bool]] = defaultdict(dict)
    for item in load(f"vsr:{asked.folder}"):
        labels[item.images[0]][item.captions[0]] = item.match[0][0]
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for captions in labels.values():
        read = {text: found for text in captions if (found := spatial(text))}
        for text, one in read.items():
            for other, two in read.items():
                if captions[text] and other != text and (name := rule(one, two)):
                    counts[name][0] += not captions[other]
                    counts[name][1] += 1
    rows = []
    for name, (false, n) in sorted(counts.items()):
        low, high = wilson(false, n)
        rows.append({"rule": name, "false": false, "n": n, "share": false / n, "low": low, "high": high})
        print(f"{name:<46} {false:>5} of {n:>5} false {100 * false / n:5.1f} % ({100 * low:.1f}–{100 * high:.1f})")
    if asked.out:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
