"""WordNet, read from its own data files (Debian's `wordnet-base`) without a library.

The index is read once (half a second); synsets are read on demand, by their offset in the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from creperie.core import MissingExtraError

FOLDERS = (Path("/usr/share/wordnet"), Path("/usr/share/wordnet-3.0/dict"), Path("/usr/local/WordNet-3.0/dict"))
_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
HYPERNYM, HYPONYM, ANTONYM, SIMILAR = "@", "~", "!", "&"


@dataclass(frozen=True, slots=True, eq=False)
class Synset:
    """A set of synonyms. Each synset of the database is one object, so two synsets are equal only if they are the same
    object. `topic` is the number of the lexicographer file: 5 for animals, 6 for artifacts, 13 for food …
    """

    pos: str
    offset: int
    topic: int
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str, int, int, int], ...]  #: symbol, pos, offset, source word, target word (0: all)
    gloss: str = ""  #: the definition, with examples

    def offsets(self, symbol: str) -> list[tuple[str, int]]:
        """Return (part of speech, offset) of each synset to which this one has a pointer with the given symbol. `@`
        (hypernym) includes `@i` (of an instance).
        """
        return [(pos, offset) for kind, pos, offset, _, _ in self.pointers if kind[0] == symbol]


class WordNet:
    """The WordNet database in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: dict[str, dict[str, tuple[int, ...]]] = {}
        self._data: dict[str, bytes] = {}
        self._synsets: dict[tuple[str, int], Synset] = {}
        self._above: dict[Synset, tuple[Synset, ...]] = {}

    def senses(self, lemma: str, pos: str) -> list[Synset]:
        """Return the synsets of a word, the most frequent sense first."""
        offsets = self._offsets(pos).get(lemma.lower().replace(" ", "_"), ())
        return [self.synset(pos, offset) for offset in offsets]

    def synset(self, pos: str, offset: int) -> Synset:
        pos = "a" if pos == "s" else pos
        cached = self._synsets.get((pos, offset))
        if cached is None:
            cached = self._synsets[pos, offset] = self._read(pos, offset)
        return cached

    def follow(self, synset: Synset, symbol: str) -> list[Synset]:
        """Return the synsets to which the given one has pointers with this symbol."""
        return [self.synset(pos, offset) for pos, offset in synset.offsets(symbol)]

    def above(self, synset: Synset) -> tuple[Synset, ...]:
        """Return all hypernyms of a synset, the nearest first."""
        known = self._above.get(synset)
        if known is None:
            found: dict[Synset, None] = {}
            level = self.follow(synset, HYPERNYM)
            while level:
                found.update(dict.fromkeys(level))
                level = [up for s in level for up in self.follow(s, HYPERNYM) if up not in found]
            known = self._above[synset] = tuple(found)
        return known

    def antonyms(self, lemma: str, pos: str) -> list[str]:
        """Return the antonyms of a word in its two most frequent senses. For an adjective that has none, return those
        of similar adjectives.
        """
        opposites: dict[str, None] = {}
        for synset in self.senses(lemma, pos)[:2]:
            for word in self._opposites(synset, lemma):
                opposites[word] = None
        if not opposites and pos == "a":
            for synset in self.senses(lemma, pos)[:1]:
                for head in self.follow(synset, SIMILAR):
                    opposites.update(dict.fromkeys(self._opposites(head, head.words[0])))
        return [w for w in opposites if w.isalpha()]

    def _opposites(self, synset: Synset, lemma: str) -> Iterator[str]:
        for symbol, pos, offset, own, other in synset.pointers:
            if symbol == ANTONYM and (not own or synset.words[own - 1].lower() == lemma.lower()):
                target = self.synset(pos, offset)
                yield from target.words[other - 1 : other] if other else target.words

    def synonyms(self, lemma: str, pos: str) -> set[str]:
        """Return all words that share a sense with this one."""
        return {w.lower() for s in self.senses(lemma, pos) for w in s.words}

    def _offsets(self, pos: str) -> dict[str, tuple[int, ...]]:
        if pos not in self._index:
            lines = (self.folder / f"index.{_FILES[pos]}").read_text(encoding="latin-1").splitlines()
            self._index[pos] = dict(_index_line(line) for line in lines if not line.startswith(" "))
        return self._index[pos]

    def _read(self, pos: str, offset: int) -> Synset:
        if pos not in self._data:
            self._data[pos] = (self.folder / f"data.{_FILES[pos]}").read_bytes()
        data = self._data[pos]
        line = data[offset : data.index(b"\n", offset)].decode("latin-1")
        entry, _, gloss = line.partition(" | ")
        fields = entry.split()
        count = int(fields[3], 16)
        words = tuple(w.partition("(")[0] for w in fields[4 : 4 + 2 * count : 2])
        at = 4 + 2 * count
        pointers = tuple(
            (f[0], "a" if f[2] == "s" else f[2], int(f[1]), int(f[3][:2], 16), int(f[3][2:], 16))
            for k in range(int(fields[at]))
            if (f := fields[at + 1 + 4 * k : at + 5 + 4 * k])
        )
        return Synset(pos, offset, int(fields[1]), words, pointers, gloss.strip())


def _index_line(line: str) -> tuple[str, tuple[int, ...]]:
    fields = line.split()
    return fields[0], tuple(int(f) for f in fields[len(fields) - int(fields[2]) :])


@cache
def open_wordnet() -> WordNet:
    """Return the installed WordNet, read from the folder named by CREPERIE_WORDNET or, if this is not set, from the
    folder of Debian's package.
    """
    named = os.environ.get("CREPERIE_WORDNET")
    for folder in [Path(named)] if named else FOLDERS:
        if (folder / "index.noun").is_file() and (folder / "data.noun").is_file():
            return WordNet(folder)
    raise MissingExtraError(
        f"WordNet's files are not in {named or FOLDERS[0]}",
        hint="on Debian: apt-get install wordnet-base; elsewhere set CREPERIE_WORDNET to the folder of index.noun",
    )
