"""Second positives: paraphrases of a caption, by back-translation or with a synonym.

rewrite:translate   A dog leaps over a log.   A dog jumps over a log.   (into French and back, `model="mt:…"`)
rewrite:synonyms    A kid on a bike.          A child on a bike.

A proposed text is kept if each of the two captions entails the other. They do if they have the same words in the same
order, up to inflection, articles, forms of "be", relative pronouns, and synonymous words or phrases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from creperie.bench import Item, choice
from creperie.core import UsageError
from creperie.lang import inflected, kind_of, lemma, open_wordnet, parse, words, zipf
from creperie.making.atoms import base_of
from creperie.making.candidate import Candidate, Proposal
from creperie.making.data import read_data
from creperie.making.options import MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import reworded
from creperie.models import load_model

TRANSLATE, SYNONYMS = "rewrite:translate", "rewrite:synonyms"
#: Number of back-translations of each caption that are compared.
TRIED = 4
#: A word below this frequency (Zipf scale) is taken for a translation error.
RARE = 1.5


@dataclass(frozen=True)
class Rewriter(Maker):
    """A maker of items with two true captions: the source, and the first proposed rewording with the same meaning."""

    chunk = 64

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        texts = [s.text for s in sources]
        docs = list(parse(texts, self.options.parser))
        translated = self.name == TRANSLATE
        rewritten = _translator(self.options.model).rewritten(texts, TRIED) if translated else map(with_synonyms, docs)
        for source, doc, texts_of_one in zip(sources, docs, rewritten, strict=True):
            yield self._judged(source, doc, list(dict.fromkeys(texts_of_one)))

    def _judged(self, source: SourceCaption, doc: Any, texts: Sequence[str]) -> Proposal:
        candidates: list[Candidate] = []
        enough = ""
        for text, other in zip(texts, parse(texts, self.options.parser)):
            change, reason = compare(doc, other)
            kind = self.name.partition(":")[2]
            tags, refused = {"evidence": "likely"}, reason or enough
            candidates.append(Candidate(source.id, text, "positive", kind, self.name, change, "", tags, refused))
            enough = enough or ("" if reason else "another paraphrase was chosen")
        return Proposal(candidates, skipped="" if candidates else "no word has a synonym in the table")

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        pairs = [(c, {"maker": c.maker, "edit": c.edit}) for c in accepted]
        return [Item(source.id, c.kind, source.images, (source.text, c.text), choice(2, 0), t) for c, t in pairs]


@cache
def _translator(uri: str) -> Any:
    """Return the translation model, loaded once for all batches of captions."""
    return load_model(uri)


def rewriter(name: str, options: MakerOptions, captions: Captions) -> Rewriter:
    """Return the maker `rewrite:translate` or `rewrite:synonyms`."""
    if name == TRANSLATE and not options.model.startswith("mt:"):
        hint = "pass `model='mt:Helsinki-NLP/opus-mt-en-fr?back=Helsinki-NLP/opus-mt-fr-en'`"
        raise UsageError(f"the maker {name} needs two translation models", hint=hint)
    open_wordnet()
    return Rewriter(name, options)


Key = tuple[str, str]  #: a lemma, and the first letter of its part of speech (plural nouns: with "s")


def compare(doc: Any, other: Any) -> tuple[str, str]:
    """Return the differences between two parsed captions, and the reason why the captions may differ in meaning. The
    reason is empty if they mean the same.

    >>> compare(*parse(["A dog is leaping over a log.", "A dog jumps over the log."]))
    ('leap → jump', '')
    >>> compare(*parse(["A young boy runs.", "A boy runs."]))[1]
    'not known to say the same: young → '
    """
    old, new = _keys(doc), _keys(other)
    if (fault := _fault(doc, other)) is not None:
        return "", fault
    changes = []
    for op, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            continue
        change = f"{_spelt(old[a:b])} → {_spelt(new[c:d])}"
        changes.append(change)
        if not _say_the_same(old[a:b], new[c:d]):
            return "; ".join(changes), f"not known to say the same: {change}"
    return "; ".join(changes) or "another form", ""


_ARTICLES = frozenset(("a", "an", "the"))


def _fault(doc: Any, other: Any) -> str | None:
    """Return why the second caption is unusable (only an article differs, or it is not English); None if it is
    usable.
    """
    old, new = ([w for w in words(d.text) if w not in _ARTICLES] for d in (doc, other))
    if old == new:
        return "only an article differs"
    if any(zipf(word) < RARE for word in set(new) - set(old)):
        return "a very rare word, probably a translation error"
    plural = [t for t in other if t.tag_ == "NNS" and any(c.lower_ in ("a", "an") for c in t.lefts)]
    return "an article before a plural" if plural else None


def _spelt(keys: Sequence[Key]) -> str:
    return " ".join(word for word, _ in keys)


def _keys(doc: Any) -> list[Key]:
    """Return the content words of a caption: verbs as lemmas, nouns as lemmas with their number. Variants of spelling
    are unified.
    """
    data = read_data("paraphrases")
    keys: list[Key] = []
    for token in doc:
        tag = token.tag_
        base = lemma(token.lower_, tag) if tag[:2] in ("VB", "NN") else token.lower_
        if not token.text[:1].isalnum() or base in data["dropped"] or (token.text == "'s" and tag != "POS"):
            continue
        spelt = data["spellings"].get(base, base).split()
        number = "s" if tag == "NNS" and base != "people" else ""
        keys += [(word, tag[:1] + number if tag[:2] == "NN" else tag[:1]) for word in spelt]
    return keys


def _say_the_same(old: Sequence[Key], new: Sequence[Key]) -> bool:
    """Return True if two sequences of words mean the same, phrase by phrase; a phrase has up to three words."""
    if not old or not new:
        return not old and not new
    lengths = [(i, j) for i in range(1, min(3, len(old)) + 1) for j in range(1, min(3, len(new)) + 1)]
    return any(_is_same_phrase(old[:i], new[:j]) and _say_the_same(old[i:], new[j:]) for i, j in lengths)


def _is_same_phrase(old: Sequence[Key], new: Sequence[Key]) -> bool:
    if len(old) == len(new) == 1 and _are_synonyms(old[0], new[0]):
        return True
    numbers = [sum(pos == "Ns" for _, pos in keys) for keys in (old, new)]
    return numbers[0] == numbers[1] and _in_one_row(_spelt(old), _spelt(new))


def _are_synonyms(a: Key, b: Key) -> bool:
    (one, pos), (two, other) = a, b
    if pos != other and {pos, other} & {"Ns"}:
        return False
    return one == two or _in_one_row(one, two) or (pos == other and _share_first_sense(one, two, pos[:1].lower()))


@cache
def _in_one_row(one: str, two: str) -> bool:
    return any(one in row and two in row for row in read_data("paraphrases")["same"])


@cache
def _share_first_sense(one: str, two: str, pos: str) -> bool:
    """Return True if the most frequent sense of one word is among the two most frequent senses of the other."""
    part = {"j": "a", "n": "n", "v": "v"}.get(pos)
    if part is None or {one, two} & set(read_data("paraphrases")["light"]):
        return False
    first, second = ([s.offset for s in open_wordnet().senses(word, part)[:2]] for word in (one, two))
    return bool(first and second) and (first[0] in second or second[0] in first)


def _goes_with(token: Any, word: str) -> bool:
    """Return True if the synonym `word` can replace a token here. In a fixed name (`big wheel`, `ocean liner`) it
    cannot.

    An adjective is replaced only directly before its noun; `little` and `small` are not replaced before a noun for a
    person or an unknown noun. Some synonyms, such as `leap`, are used only beside the words that paraphrases.json
    lists for them.
    """
    fixed = read_data("paraphrases")["fixed"].get(word)
    after = token.nbor(1) if token.i + 1 < len(token.doc) else None
    named = after is not None and open_wordnet().senses(f"{token.lower_} {after.lower_}", "n")
    if named or token.dep_ == "compound":
        return False
    if token.tag_ == "JJ":
        noun = token.head
        plain = token.dep_ == "amod" and after is not None and not after.is_punct and not list(token.children)
        return plain and (token.lower_ not in ("little", "small") or kind_of(base_of(noun)) not in ("", "person"))
    if fixed and token.tag_[:2] == "VB":
        return any(c.dep_ == "prep" and c.lower_ in fixed for c in token.children)
    return not fixed or base_of(token.head) in fixed


def with_synonyms(doc: Any) -> list[str]:
    """Return the versions of a caption in which one word is replaced by a synonym in the same form. Articles are
    adjusted.
    """
    rows = read_data("paraphrases")["replaced"]
    texts = []
    for token in (t for t in doc if not t.text[:1].isupper()):
        base, tag = base_of(token), token.tag_
        for word in (w for w in rows.get(tag[:2], {}).get(base, ()) if _goes_with(token, w)):
            new = word if tag in ("NN", "JJ", "IN") else inflected(word, tag)
            texts.append(reworded(doc, {token.i: new}))
    return texts
