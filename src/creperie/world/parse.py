"""Claims from sentences: the second path from text to truth, independent of the grammar.

The grammar writes sentences from claims; this parser reads nothing but the text, with its own patterns, so that it
checks the grammar's output independently. Text that is not a sentence of the world has no claim (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from creperie.world.kinds import COLOURS
from creperie.world.scene import GIVING
from creperie.world.sprites import WORDS
from creperie.world.truth import Desc, Fact, LogicalForm
from creperie.world.words import (
    ALL_NAMES,
    AT,
    CONTENTS,
    ITS,
    MATERIAL_WORDS,
    NUMBERS,
    PATTERN_WORDS,
    PLURALS,
    SAYING,
    SIZE_WORDS,
    STATES,
    VERBS,
)

_SIZE = {word: size for size, words in SIZE_WORDS.items() for word in words}
_PATTERN = {word: pattern for pattern, words in PATTERN_WORDS.items() for word in words}
_AT = {phrase: relation for relation, phrases in AT.items() for phrase in phrases}
_ITS = {phrase: relation for relation, phrases in ITS.items() for phrase in phrases}
_MATERIAL = {word: material for material, word in MATERIAL_WORDS.items()}
_BEFORE = {before: state for state, (before, _) in STATES.items() if before}
_BEHIND = {behind: state for state, (_, behind) in STATES.items() if behind} | dict.fromkeys(CONTENTS.values(), "full")
_FRAME = re.compile(r"^in (?:this|the) picture, ")

#: In a skeleton, @ stands for a thing, % for "no" thing and # for exactly so many things.
Skeleton = str
Build = Callable[[re.Match[str], list[Any]], LogicalForm | None]


def parse(text: str) -> LogicalForm | None:
    """Return the claim that a caption makes; None if it is not a sentence of the world.

    >>> parse("In this picture, the red cat is to the left of the box, but there is no dog.")
    LogicalForm(things=(Desc(kind='cat', colour='red', pattern=None, size=None, material=None, state=None),
                 Desc(kind='box', colour=None, pattern=None, size=None, material=None, state=None)),
         facts=(Fact(relation='left', args=(0, 1), negated=False),),
         absent=(Desc(kind='dog', colour=None, pattern=None, size=None, material=None, state=None),),
         denied=False, counts=())
    >>> parse("cat the left red of box is")
    """
    sentences = text.rstrip(" ").removesuffix(".").split(". ")
    claim = _parse_sentence(sentences[0])
    for more in sentences[1:]:
        extra = _parse_sentence(more)
        if claim is None or extra is None or extra.things or extra.facts:
            return None
        claim = LogicalForm(claim.things, claim.facts, claim.absent + extra.absent)
    return claim


def _parse_sentence(sentence: str) -> LogicalForm | None:
    body = _FRAME.sub("", sentence[:1].lower() + sentence[1:])
    names: list[Any] = []
    try:
        skeleton = _noun_pattern().sub(lambda match: _take_name(match, names), body)
    except _BadArticleError:
        return None
    for pattern, build in _mains():
        match = pattern.match(skeleton)
        if match:
            used = sum(match.group(0).count(symbol) for symbol in "@%#")
            claim = build(match, names[:used])
            finished = _read_tails(claim, skeleton[match.end() :], names[used:]) if claim else None
            if finished:
                return finished
    return None


class _BadArticleError(Exception):
    """Raised for a noun phrase with the wrong article, such as "a umbrella"."""


@cache
def _noun_pattern() -> re.Pattern[str]:
    def options(words: Iterable[str]) -> str:
        return "|".join(words)

    adjectives = "".join(f"(?:({options(words)}) )?" for words in (_BEFORE, _SIZE, _PATTERN, COLOURS, _MATERIAL))
    said = f"{SAYING} (?:{options(WORDS)})"
    one = rf"(a|an|the|no) {adjectives}({options(ALL_NAMES)})(?: ({options(_BEHIND)}|{said}))?"
    several = rf"({options(NUMBERS)}) {adjectives}({options(PLURALS.values())})"
    return re.compile(rf"\b(?:{one}|{several})\b")


def _take_name(match: re.Match[str], names: list[Any]) -> str:
    determiner, *parts = match.groups()[:8]
    if not determiner:
        number, *parts, kinds = match.groups()[8:]
        kind = next(name for name, plural in PLURALS.items() if plural == kinds)
        names.append((_desc(parts, kind, ""), NUMBERS.index(number) + 2))
        return "#"
    *adjectives, kind, behind = parts
    first = next(part for part in (*adjectives, kind) if part)
    if determiner in ("a", "an") and (determiner == "an") != (first[0] in "aeiou"):
        raise _BadArticleError
    names.append(_desc(adjectives, kind, behind or ""))
    return "%" if determiner == "no" else "@"


def _desc(adjectives: list[str], kind: str, behind: str) -> Desc:
    state, size, pattern, colour, material = adjectives
    word = behind.removeprefix(f"{SAYING} ") if behind.startswith(SAYING) else _PATTERN.get(pattern)
    return Desc(kind, colour, word, _SIZE.get(size), _MATERIAL.get(material), _BEFORE.get(state) or _BEHIND.get(behind))


def _either(words: Iterable[str]) -> str:
    return "(" + "|".join(sorted(words, key=len, reverse=True)) + ")"


@cache
def _mains() -> tuple[tuple[re.Pattern[str], Build], ...]:
    """Return patterns of whole sentences with a function from match to claim, specific patterns before general ones."""
    at, its = _either(_AT), _either(_ITS)
    there = "(?:there is |the picture shows )"
    between = _stated("between", (0, 1, 2))
    patterns: list[tuple[str, Build]] = [
        (rf"@ (?:is|can be seen) {at} @", _placed(False)),
        (rf"@ is not {at} @", _placed(False, negated=True)),
        (rf"{there}@ {at} @", _placed(False)),
        (rf"there is % {at} @", _placed(False, denied=True)),
        (rf"{at} @ is @", _placed(True)),
        (rf"(?:there is @ with|@ has) @ {its}", _with_its),
        (rf"(?:{there}@|@ is) between @ and @", between),
        (r"between @ and @ is @", _stated("between", (2, 0, 1))),
        (r"@ is in front, @ is in the middle and @ is at the back", _stated("depth", (0, 1, 2))),
        (r"from front to back, there are @, @ and @", _stated("depth", (0, 1, 2))),
        (r"@ is at the back, @ is in the middle and @ is in front", _stated("depth", (2, 1, 0))),
        (r"from back to front, there are @, @ and @", _stated("depth", (2, 1, 0))),
        (rf"{there}@ and @|@ and @ can be seen", lambda _, names: LogicalForm(tuple(names))),
        (
            r"(?:there are |the picture shows )exactly # and #|exactly # and # can be seen",
            lambda _, names: LogicalForm((), counts=tuple(names)),
        ),
        *_action_patterns(),
        *_giving_patterns(),
        (r"there is %, but there is @", _presence(1, 0)),
        (r"the picture does not show @, but it does show @", _presence(1, 0)),
        (rf"{there}@ but %|there is @, but there is %|@ can be seen, but %", _presence(0, 1)),
        (r"there is %", lambda _, names: LogicalForm((), absent=(names[0],))),
    ]
    return tuple((re.compile(f"(?:{pattern})(?=$|,)"), build) for pattern, build in patterns)


def _placed(reverse: bool, negated: bool = False, denied: bool = False) -> Build:
    def build(match: re.Match[str], names: list[Any]) -> LogicalForm:
        args = (1, 0) if reverse else (0, 1)
        return LogicalForm(tuple(names), (Fact(_AT[match.group(1)], args, negated),), denied=denied)

    return build


def _with_its(match: re.Match[str], names: list[Any]) -> LogicalForm:
    return LogicalForm(tuple(names), (Fact(_ITS[match.group(1)], (1, 0)),))


def _presence(there: int, missing: int) -> Build:
    return lambda _, names: LogicalForm((names[there],), absent=(names[missing],))


def _action_patterns() -> list[tuple[str, Build]]:
    patterns: list[tuple[str, Build]] = []
    for action, verbs in VERBS.items():
        if action in GIVING:
            continue
        for simple, going, done, stem in verbs:
            for pattern, args, negated in (
                (rf"@ {simple} @", (0, 1), False),
                (rf"(?:(?:there is|the picture shows) @|@ (?:is|can be seen)) {going} @", (0, 1), False),
                (rf"@ (?:is not {going}|does not {stem}) @", (0, 1), True),
                (rf"(?:there is|the picture shows) @ being {done} by @", (1, 0), False),
                (rf"@ is (?:being )?{done} by @", (1, 0), False),
                (rf"@ is not (?:being )?{done} by @", (1, 0), True),
            ):
                patterns.append((pattern, _stated(action, args, negated)))
            patterns.append((rf"there is % {going} @", _stated(action, (0, 1), denied=True)))
    return patterns


def _giving_patterns() -> list[tuple[str, Build]]:
    patterns: list[tuple[str, Build]] = []
    for action, (simple, going, done, _) in ((name, forms) for name in GIVING for forms in VERBS[name]):
        verb = f"(?:@ {simple}|@ is {going}|the picture shows @ {going})"
        patterns += [
            (rf"{verb} @ to @", _stated(action, (0, 1, 2))),
            (rf"{verb} @ @", _stated(action, (0, 2, 1))),
            (rf"@ is (?:being )?{done} to @ by @", _stated(action, (2, 0, 1))),
            (rf"@ is (?:being )?{done} @ by @", _stated(action, (2, 1, 0))),
        ]
    return patterns


def _stated(relation: str, args: tuple[int, ...], negated: bool = False, denied: bool = False) -> Build:
    return lambda _, names: LogicalForm(tuple(names), (Fact(relation, args, negated),), denied=denied)


@cache
def _tails() -> tuple[tuple[re.Pattern[str], str], ...]:
    at = _either(_AT)
    patterns = (
        (rf", (?:with @|and @ is) {at} @", "where"),
        (r", and there is also @|, and @ can be seen as well", "more"),
        (r", (?:and|but) there is %|, with % in sight", "none"),
    )
    return tuple((re.compile(f"(?:{pattern})(?=$|,)"), role) for pattern, role in patterns)


def _read_tails(claim: LogicalForm, rest: Skeleton, names: list[Any]) -> LogicalForm | None:
    while rest:
        tail = next(((m, role) for pattern, role in _tails() if (m := pattern.match(rest))), None)
        if tail is None:
            return None
        match, role = tail
        rest = rest[match.end() :]
        if role == "none":
            claim = LogicalForm(claim.things, claim.facts, (*claim.absent, names.pop(0)), claim.denied, claim.counts)
            continue
        things, facts = (*claim.things, names.pop(0)), claim.facts
        if role == "where":
            back = _referent(claim.things, names.pop(0))
            if back is None:
                return None
            facts = (*facts, Fact(_AT[match.group(1)], (len(things) - 1, back)))
        claim = LogicalForm(things, facts, claim.absent, claim.denied, claim.counts)
    return claim


def _referent(things: tuple[Desc, ...], name: Desc) -> int | None:
    """Return the index of the thing that a description refers to; None if it fits none or several."""
    fits = [
        k
        for k, thing in enumerate(things)
        if thing.kind == name.kind
        and name.colour in (None, thing.colour)
        and name.pattern in (None, thing.pattern)
        and name.size in (None, thing.size)
        and name.state in (None, thing.state)
    ]
    return fits[0] if len(fits) == 1 else None
