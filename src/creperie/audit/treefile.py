"""Trees that somebody else's parser made: JSON lines of {"text": …, "tree": "(S …)"}."""

from __future__ import annotations

import json
from pathlib import Path

from creperie.errors import DataError
from creperie.lang.trees import Tree, read_tree


def read_trees(path: Path) -> dict[str, Tree]:
    """The trees of a file, by text."""
    trees: dict[str, Tree] = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                record = json.loads(line)
                text, brackets = record["text"], record["tree"]
            except (ValueError, KeyError, TypeError) as e:
                raise DataError("this line is no record with text and tree", where=where) from e
            trees[text] = read_tree(str(brackets), where=where)
    return trees
