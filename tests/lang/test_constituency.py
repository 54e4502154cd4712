"""Constituency parsers by name: one process that is asked line by line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from creperie.core import CreperieError
from creperie.lang import open_constituency_parser, published_similarity, treebank_parser
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


TREES = """
( (S (NP-SBJ-1 (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (JJ red) (NN dog)) (PP-LOC (IN in) (NP (NN town)))) (. .)) )
( (S (NP-SBJ (DT a) (NN dog)) (VP (VBZ sleeps) (NP (-NONE- *-1))) (. .)) )
( (S (NP (NNS dogs)) (VP (VBP see) (NP (NP (DT a) (NN cat)) (PP (IN on) (NP (DT a) (NN mat))))) (. .)) )
( (S (NP (DT the) (NN man)) (VP (VBZ sees) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (DT a) (NN box))))) (. .)) )
"""


def test_a_grammar_of_a_treebank(tmp_path: Path) -> None:
    """The rules are those of the trees; where two trees fit, the likelier one by hand is found."""
    pytest.importorskip("nltk")
    from nltk.tree import Tree as Drawn

    from creperie.lang.constituency import _brackets, _Grammar, _plain

    trees = [_plain(Drawn.fromstring(text)) for text in _brackets(TREES)]
    assert str(trees[1]).split() == [
        "(S",
        "(NP",
        "(DT",
        "a)",
        "(NN",
        "dog))",
        "(VP",
        "(VBZ",
        "sleeps))",
        "(.",
        ".))",
    ]  # no trace, no tag
    grammar = _Grammar([tree.copy(deep=True) for tree in trees])
    words = ["the", "cat", "sees", "a", "dog", "on", "a", "mat", "."]
    tags = ["DT", "NN", "VBZ", "DT", "NN", "IN", "DT", "NN", "."]
    # VP → VBZ NP with NP → NP PP was seen twice, VP → VBZ NP PP only with an adjective: the phrase hangs on the noun
    wanted = (
        "(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (NP (DT a) (NN dog)) (PP (IN on) (NP (DT a) (NN mat))))) (. .))"
    )
    assert str(grammar.best(list(zip(words, tags, strict=True)))) == wanted
    assert grammar.best([("cat", "NN"), ("of", "XYZ")]) is None
    with pytest.raises(CreperieError, match=r"has no trees; name a folder with \*.mrg files"):
        open_constituency_parser(f"pcfg:{tmp_path}")


def test_a_downloaded_treebank_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    assert treebank_parser() == ""
    folder = tmp_path / "corpora" / "treebank" / "combined"
    folder.mkdir(parents=True)
    (folder / "wsj_0001.mrg").write_text(TREES)
    assert treebank_parser() == f"pcfg:{folder}"
    assert open_constituency_parser(treebank_parser()).name == "PCFG of treebank/combined"


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
    passive, given = parser("A ball is hit by a player."), parser("A woman gives the girl a book.")
    assert passive is not None
    assert given is not None
    # FastKASSIM's own values with this parser; it is not symmetric
    assert published_similarity(tree, given) == pytest.approx(0.911129, abs=1e-6)
    assert published_similarity(given, tree) == pytest.approx(0.959499, abs=1e-6)
    assert published_similarity(tree, passive) == pytest.approx(0.805720, abs=1e-6)
