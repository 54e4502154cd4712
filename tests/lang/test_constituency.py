"""Constituency parsers by name: one process that is asked line by line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from creperie.core import CreperieError
from creperie.lang import open_constituency_parser
from creperie.lang.constituency import LineParser

ECHO = """
import sys
for line in sys.stdin:
    print("(ROOT (NN " + line.split()[0] + "))" if line[0] != "!" else "none", flush=True)
"""


def test_a_process_is_asked_line_by_line() -> None:
    parser = LineParser([sys.executable, "-c", ECHO])
    first = parser("cat\nsleeps")
    assert first is not None
    assert parser("  ") is None
    assert parser("! odd") is None
    assert parser("cat") == first
    parser.close()
    assert parser("cat") == first  # started again
    parser.close()


def test_a_process_that_ends_is_told() -> None:
    with pytest.raises(CreperieError, match="ended without an answer"):
        LineParser([sys.executable, "-c", "pass"])("a cat")


def test_wrong_names(tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match="stanford:FOLDER"):
        open_constituency_parser("standford:x")
    with pytest.raises(CreperieError, match=r"stanford-parser"):
        open_constituency_parser(f"stanford:{tmp_path}")


@pytest.mark.skipif("CREPERIE_STANFORD" not in os.environ, reason="CREPERIE_STANFORD names no Stanford parser")
def test_stanfords_parser() -> None:
    parser = open_constituency_parser(f"stanford:{os.environ['CREPERIE_STANFORD']}")
    tree = parser("A player hits a ball.")
    assert tree is not None
    assert "VBZ" in str(tree)
