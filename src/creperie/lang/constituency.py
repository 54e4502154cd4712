"""Constituency parsers by name: Stanford's PCFG parser from a folder with its jars, benepar, or a PCFG of a treebank.

Nothing of it is part of creperie: Stanford's parser is under the GPL and needs Java, benepar downloads its models, and
treebanks have licences of their own.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from creperie.core import DataError, UsageError, missing_extra
from creperie.lang.trees import Tree, read_tree

PCFG = "edu/stanford/nlp/models/lexparser/englishPCFG.ser.gz"
MAIN = "edu.stanford.nlp.parser.lexparser.LexicalizedParser"
MEMORY = "-Xmx1g"
KNOWN = "stanford:FOLDER (with stanford-parser.jar and its models), benepar:MODEL or pcfg:FOLDER (with a treebank)"


@dataclass(frozen=True)
class ConstituencyParser:
    """A parser with the name that its numbers are reported under."""

    name: str
    parse: Callable[[str], Tree | None]

    def __call__(self, text: str) -> Tree | None:
        return self.parse(text)


def open_constituency_parser(spec: str) -> ConstituencyParser:
    """The parser behind `stanford:FOLDER`, `benepar:MODEL` or `pcfg:FOLDER`."""
    kind, _, name = spec.partition(":")
    if kind == "stanford" and name:
        return ConstituencyParser("Stanford englishPCFG", LineParser(stanford_command(Path(name))))
    if kind == "benepar" and name:
        return ConstituencyParser(f"benepar {name}", _benepar(name))
    if kind == "pcfg" and name:
        from creperie.lang.pcfg import open_pcfg

        return ConstituencyParser(f"PCFG of {'/'.join(Path(name).parts[-2:])}", open_pcfg(Path(name)))
    raise UsageError(f"{spec!r} is not a constituency parser", hint=f"write {KNOWN}")


def treebank_parser() -> str:
    """`pcfg:FOLDER` of NLTK's sample of the Penn Treebank, where it was downloaded (`nltk.download("treebank")`)."""
    try:
        from nltk.data import find

        return f"pcfg:{find('corpora/treebank/combined')}"
    except (ImportError, LookupError):
        return ""


def stanford_command(folder: Path) -> list[str]:
    """How the parser is started: it reads one sentence per line and writes one tree per line."""
    jars = sorted(folder.glob("*.jar"))
    if not any("parser" in jar.name for jar in jars):
        raise DataError("has no stanford-parser*.jar", where=str(folder), hint="unpack the parser's release there")
    if shutil.which("java") is None:
        raise UsageError("Stanford's parser needs Java, which is not installed", hint="install a Java runtime")
    options = ["-sentences", "newline", "-outputFormat", "oneline"]
    return ["java", MEMORY, "-cp", f"{folder}/*", MAIN, *options, PCFG, "-"]


class LineParser:
    """A parser in a process of its own, asked line by line. It is started with the first sentence."""

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
            found = self._process.stdout.readline()
        except OSError:
            found = ""
        if not found:
            raise DataError("the parser ended without an answer", where=self.command[0], hint=" ".join(self.command))
        return read_tree(found, where=self.command[0]) if found.startswith("(") else None

    def close(self) -> None:
        """End the process; it is started again when it is asked again."""
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
