"""Trees that somebody else's parser made: JSON lines of {"text": …, "tree": "(S …)"}."""

from __future__ import annotations

import json
from pathlib import Path

from creperie.core import DataError
from creperie.lang import Tree, read_tree


def read_trees(path: Path) -> dict[str, Tree]:
    """The trees of a file, by text."""
    trees: dict[str, Tree] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                record = json.loads(line.decode("utf-8"))
                text, brackets = record["text"], record["tree"]
            except (ValueError, KeyError, TypeError, RecursionError) as e:
                raise DataError("this line is not a record with text and tree", where=where) from e
            if not isinstance(text, str):
                raise DataError("the text of this line is not text", where=where)
            trees[text] = read_tree(str(brackets), where=where)
    return trees
