"""Constituency parsers by name: Stanford's PCFG parser from a folder with its jars, benepar, or a PCFG from a treebank.

None of them is part of creperie: Stanford's parser is under the GPL and needs Java, benepar downloads its models, and
treebanks have licences of their own.

A PCFG (probabilistic context-free grammar) is induced from a folder of Penn Treebank trees, over part-of-speech tags,
and sentences are parsed by the CKY algorithm. The tags of a new sentence come from spaCy, so no word is unknown. Labels
are annotated with their parent's label, and long rules are binarised with one sibling as context (Klein and Manning
2003), which improves a plain treebank grammar.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import DataError, UsageError, missing_extra
from creperie.lang.parser import parse
from creperie.lang.trees import Tree, read_tree

#: tags of spaCy that the Penn Treebank does not have → tags that it has
TAGS = {"HYPH": ":", "NFP": ":", "ADD": "NN", "AFX": "JJ", "XX": "NN", "_SP": ":"}
BEAM = 10.0  #: constituents of a span this much less probable (in log P) than its best one are pruned
Rules = dict[str, list[tuple[str, str, float]]]  #: left child → (right child, parent, log P)
Back = tuple[int, str, str]


def open_pcfg(folder: Path) -> Callable[[str], Tree | None]:
    """Return a parser whose grammar is induced from the trees in a folder (files `*.mrg` or `*.tree`)."""
    try:
        from nltk.tree import Tree as Drawn
    except ImportError as e:
        raise missing_extra("nltk", "lang") from e
    texts = [p.read_text(encoding="utf-8") for kind in ("mrg", "tree") for p in sorted(folder.rglob(f"*.{kind}"))]
    if not texts:
        raise DataError(
            "the folder has no trees", where=str(folder), hint="name a folder with *.mrg files, such as NLTK's treebank"
        )
    grammar = _Grammar([_plain(Drawn.fromstring(brackets)) for text in texts for brackets in _brackets(text)])

    def parse_one(text: str) -> Tree | None:
        (doc,) = parse([" ".join(text.split())])
        return grammar.best([(t.text, TAGS.get(t.tag_, t.tag_)) for t in doc if not t.is_space])

    return parse_one


def _brackets(text: str) -> Iterator[str]:
    """Yield the bracketed trees in the text of a file.

    >>> list(_brackets("( (S (NN a)) ) (NP (NN b))"))
    ['( (S (NN a)) )', '(NP (NN b))']
    """
    depth = start = 0
    for bracket in re.finditer(r"[()]", text):
        start = bracket.start() if not depth else start
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            yield text[start : bracket.end()]


def _plain(tree: Any) -> Any:
    """Return a tree without traces, function tags and the unlabelled outer bracket; None if nothing is left."""
    if isinstance(tree[0], str):
        return None if tree.label() == "-NONE-" else tree
    kept = [child for child in map(_plain, tree) if child is not None]
    if not kept or (not tree.label() and len(kept) == 1):
        return kept[0] if kept else None
    return type(tree)(re.split(r"[-=]", tree.label())[0] or "FRAG", kept)


class _Grammar:
    """A probabilistic context-free grammar with binary rules and log probabilities. A node and its only child share a
    label: `NP+NNS` is a noun phrase that consists of a plural noun.
    """

    def __init__(self, trees: list[Any]) -> None:
        counts: Counter[tuple[str, str, str]] = Counter()
        tops: Counter[str] = Counter()
        self.chains: dict[str, set[str]] = defaultdict(set)
        for tree in filter(None, trees):
            tree.collapse_unary(collapsePOS=True, collapseRoot=True, joinChar="+")
            tree.chomsky_normal_form(horzMarkov=1, vertMarkov=1)
            tops[tree.label()] += 1
            for node in tree.subtrees():
                if isinstance(node[0], str):
                    self.chains[_tag(node.label())].add(node.label())
                else:
                    counts[node.label(), node[0].label(), node[1].label()] += 1
        totals: Counter[str] = Counter()
        for (parent, _, _), n in counts.items():
            totals[parent] += n
        self.tops = {label: math.log(n / tops.total()) for label, n in tops.items()}
        self.rules: Rules = defaultdict(list)
        for (parent, left, right), n in counts.items():
            self.rules[left].append((right, parent, math.log(n / totals[parent])))

    def best(self, tagged: list[tuple[str, str]]) -> Tree | None:
        """Return the most probable tree for (word, tag) pairs; None if the grammar allows no tree."""
        n = len(tagged)
        chart: dict[tuple[int, int], dict[str, float]] = {}
        back: dict[tuple[int, int, str], Back] = {}
        for i, (_, tag) in enumerate(tagged):
            chart[i, i + 1] = dict.fromkeys(self.chains.get(tag, ()), 0.0)
        for size in range(2, n + 1):
            for i in range(n - size + 1):
                self._fill(chart, back, i, i + size)
        roots = {label: p + self.tops[label] for label, p in chart.get((0, n), {}).items() if label in self.tops}
        if not roots:
            return None
        from nltk.tree import Tree as Drawn

        tree = _drawn(Drawn, back, tagged, 0, n, max(roots, key=lambda label: roots[label]))
        tree.un_chomsky_normal_form(unaryChar="+")
        return read_tree(tree.pformat(margin=10**9), where="pcfg")

    def _fill(self, chart: dict[tuple[int, int], dict[str, float]], back: dict[Any, Back], i: int, k: int) -> None:
        cell: dict[str, float] = {}
        for j in range(i + 1, k):
            lefts, rights = chart[i, j], chart[j, k]
            for left, p in lefts.items() if rights else ():
                for right, parent, log in self.rules.get(left, ()):
                    q = rights.get(right)
                    if q is not None and p + q + log > cell.get(parent, -math.inf):
                        cell[parent] = p + q + log
                        back[i, k, parent] = (j, left, right)
        floor = max(cell.values(), default=0.0) - BEAM
        chart[i, k] = {label: p for label, p in cell.items() if p >= floor}


def _tag(label: str) -> str:
    """Return the part-of-speech tag that a label contains: of several labels joined by `+`, the last is the tag.

    >>> _tag("NP^<S>+NNS"), _tag("NN^<NP>")
    ('NNS', 'NN')
    """
    return label.rpartition("+")[2].partition("^")[0]


def _drawn(kind: Any, back: dict[Any, Back], tagged: list[tuple[str, str]], i: int, k: int, label: str) -> Any:
    if (i, k, label) not in back:
        word = tagged[i][0].replace("(", "-LRB-").replace(")", "-RRB-")
        return kind(label, [word])
    j, left, right = back[i, k, label]
    return kind(label, [_drawn(kind, back, tagged, i, j, left), _drawn(kind, back, tagged, j, k, right)])


PCFG = "edu/stanford/nlp/models/lexparser/englishPCFG.ser.gz"
MAIN = "edu.stanford.nlp.parser.lexparser.LexicalizedParser"
MEMORY = "-Xmx1g"
KNOWN = "stanford:FOLDER (with stanford-parser.jar and its models), benepar:MODEL or pcfg:FOLDER (with a treebank)"


@dataclass(frozen=True)
class ConstituencyParser:
    """A constituency parser, with the name under which its results are reported."""

    name: str
    parse: Callable[[str], Tree | None]

    def __call__(self, text: str) -> Tree | None:
        return self.parse(text)


def open_constituency_parser(spec: str) -> ConstituencyParser:
    """Return the parser that a spec names: `stanford:FOLDER`, `benepar:MODEL` or `pcfg:FOLDER`."""
    kind, _, name = spec.partition(":")
    if kind == "stanford" and name:
        return ConstituencyParser("Stanford englishPCFG", LineParser(stanford_command(Path(name))))
    if kind == "benepar" and name:
        return ConstituencyParser(f"benepar {name}", _benepar(name))
    if kind == "pcfg" and name:
        return ConstituencyParser(f"PCFG of {'/'.join(Path(name).parts[-2:])}", open_pcfg(Path(name)))
    raise UsageError(f"{spec!r} is not a constituency parser", hint=f"write {KNOWN}")


def treebank_parser() -> str:
    """Return the spec `pcfg:FOLDER` for NLTK's sample of the Penn Treebank (`nltk.download("treebank")`); empty if it
    is not installed.
    """
    try:
        from nltk.data import find

        return f"pcfg:{find('corpora/treebank/combined')}"
    except (ImportError, LookupError):
        return ""


def stanford_command(folder: Path) -> list[str]:
    """Return the command that starts Stanford's parser, which reads one sentence per line and writes one tree
    per line.
    """
    jars = sorted(folder.glob("*.jar"))
    if not any("parser" in jar.name for jar in jars):
        raise DataError(
            "the folder has no stanford-parser*.jar", where=str(folder), hint="unpack the parser's release there"
        )
    if shutil.which("java") is None:
        raise UsageError("Stanford's parser needs Java, which is not installed", hint="install a Java runtime")
    options = ["-sentences", "newline", "-outputFormat", "oneline"]
    return ["java", MEMORY, "-cp", f"{folder}/*", MAIN, *options, PCFG, "-"]


class LineParser:
    """A parser in a child process that answers each line of text with a tree. The process starts with the first
    sentence.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, text: str) -> Tree | None:
        line = " ".join(text.split())
        if not line:
            return None
        if self._process is None:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                bufsize=1,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            hint = f"run it by hand: {' '.join(self.command)}"
            raise DataError("the parser ended without an answer", where=self.command[0], hint=hint)
        return read_tree(answer, where=self.command[0]) if answer.startswith("(") else None

    def close(self) -> None:
        """Kill the process; the next sentence starts a new one."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def __del__(self) -> None:
        self.close()


def _benepar(model: str) -> Callable[[str], Tree | None]:
    try:
        import benepar
    except ImportError:
        raise missing_extra("benepar", "lang") from None
    parser = benepar.Parser(model)

    def parse(text: str) -> Tree | None:
        return read_tree(parser.parse(text).pformat(margin=10**9), where=model) if text.strip() else None

    return parse
