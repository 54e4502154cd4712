"""Reading claims from sentences, independently of the grammar.

The grammar writes sentences from claims. This parser reads only the text, with patterns of its own, and so checks what
the grammar wrote. Text that is not a sentence of the world has no claim (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from creperie.world.kinds import COLOURS
from creperie.world.scene import GIVING
from creperie.world.solid.models import SOLIDS
from creperie.world.sprites import WORDS
from creperie.world.truth import Desc, Fact, LogicalForm
from creperie.world.words import (
    ALL_NAMES,
    AT,
    ITS,
    MATERIAL_WORDS,
    NUMBERS,
    PATTERN_WORDS,
    PLACES,
    PLURALS,
    POSTURES,
    SAYING,
    SIZE_WORDS,
    VERBS,
    stated,
)

_SIZE = {word: size for size, words in SIZE_WORDS.items() for word in words}
_AT = {phrase: relation for relation, phrases in AT.items() for phrase in phrases}
_ITS = {phrase: relation for relation, phrases in ITS.items() for phrase in phrases}
_MATERIAL = {word: material for material, word in MATERIAL_WORDS.items()}
_KIND = {plural: kind for kind, plural in PLURALS.items()}
_STATES = {(kind, state): stated(kind, state) for kind, model in SOLIDS.items() for state in model.states}
_BEFORE = {before for before, _, _ in _STATES.values() if before}
_AFTER = {after for _, after, _ in _STATES.values() if after}

#: In a skeleton, @ stands for a thing, % for "no" thing and # for so many things.
Build = Callable[[re.Match[str], list[Any]], LogicalForm | None]


def parse(text: str) -> LogicalForm | None:
    """Return the claim that a caption makes; None if it is not a sentence of the world.

    >>> claim = parse("On the table, a red mug stands next to a bottle.")
    >>> [(thing.kind, thing.colour) for thing in claim.things], claim.facts[0].relation, claim.setting
    ([('mug', 'red'), ('bottle', None)], 'near', 'table')
    >>> parse("cat the left red of box is")
    """
    sentences = text.rstrip(" ").removesuffix(".").split(". ")
    claim = _parse_sentence(sentences[0])
    for more in sentences[1:]:
        extra = _parse_sentence(more)
        if claim is None or extra is None or extra.things or extra.facts:
            return None
        claim = replace(claim, absent=claim.absent + extra.absent)
    return claim


def _parse_sentence(sentence: str) -> LogicalForm | None:
    """Return the claim of a sentence, or None if it makes none. A place such as "on the table" is read as the setting
    of the whole sentence, except in sentences like "The lamp is on the table", where the table is one of the things.
    """
    body = (sentence[:1].lower() + sentence[1:]).replace("-framed picture", " framed picture")
    for setting, place in PLACES.items():
        rest = body.removeprefix(f"{place}, ").removesuffix(f" {place}")
        if rest != body and not (body.startswith("the ") and _read(body)):
            claim = _read(rest)
            return claim and replace(claim, setting=setting)
    return _read(body)


def _read(body: str) -> LogicalForm | None:
    if match := _colours().fullmatch(body):
        first, second = _KIND[match[1]], _KIND[match[4]]
        return LogicalForm(tuple(map(Desc, (first, first, second, second), match.group(2, 3, 5, 6))))
    names: list[Any] = []
    try:
        skeleton = _noun_pattern().sub(lambda match: _take_name(match, names), body)
    except _BadNameError:
        return None
    for pattern, build in _mains():
        match = pattern.fullmatch(skeleton)
        more = match["more"].count("@") if match else 0
        if match and (claim := build(match, names[: len(names) - more])):
            return replace(claim, things=(*claim.things, *names[len(names) - more :])) if more else claim
    return None


class _BadNameError(Exception):
    """Raised for a noun phrase that is wrong: "a umbrella", or "one" without an earlier noun to refer to."""


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


@cache
def _colours() -> re.Pattern[str]:
    kind, hue = f"({_either(_KIND)})", f"({_either(COLOURS)})"
    return re.compile(f"(?:there are )?{', and '.join([f'two {kind}, one {hue} and one {hue}'] * 2)}")


@cache
def _noun_pattern() -> re.Pattern[str]:
    adjectives = "".join(f"(?:({_either(w)}) )?" for w in (_BEFORE, _SIZE, COLOURS, PATTERN_WORDS, _MATERIAL))
    said = f"{SAYING} (?:{_either(WORDS)})"
    one = rf"(a|an|the|no) {adjectives}({_either(ALL_NAMES)}|one)(?: ({_either(_AFTER)}|{said}))?"
    several = rf"({_either(NUMBERS)}) {adjectives}({_either(_KIND)})"
    return re.compile(rf"\b(?:{one}|{several})\b")


def _take_name(match: re.Match[str], names: list[Any]) -> str:
    determiner, *parts = match.groups()[:8]
    if not determiner:
        number, *adjectives, kinds = match.groups()[8:]
        names.append((_desc(adjectives, _KIND[kinds], ""), NUMBERS.index(number) + 2))
        return "#"
    *adjectives, kind, after = parts
    first = next(part for part in (*adjectives, kind) if part)
    if (determiner in ("a", "an") and (determiner == "an") != (first[0] in "aeiou")) or (kind == "one" and not names):
        raise _BadNameError
    names.append(_desc(adjectives, names[-1].kind if kind == "one" else kind, after or ""))
    return "%" if determiner == "no" else "@"


def _desc(adjectives: list[str], kind: str, after: str) -> Desc:
    before, size, colour, pattern, material = adjectives
    state = next((s for (k, s), (b, a, _) in _STATES.items() if k == kind and (before, after) == (b or None, a)), None)
    if (before or after) and state is None and not after.startswith(SAYING):
        raise _BadNameError
    word = after.removeprefix(f"{SAYING} ") if after.startswith(SAYING) else pattern
    return Desc(kind, colour, word, _SIZE.get(size), _MATERIAL.get(material), state)


@cache
def _mains() -> tuple[tuple[re.Pattern[str], Build], ...]:
    """Return the patterns of main clauses, each with a function that turns a match into a claim; more specific patterns
    come first.
    """
    at, its = f"({_either(_AT)})", f"({_either(_ITS)})"
    verbs = [
        word
        for verb, (plural, doing, _) in POSTURES.items()
        for word in (verb, plural, *((f"is {doing}", f"are {doing}") if doing else ()))
    ]
    be, bes = f"(?:is|{_either(verbs)})", f"(?:are|{_either(verbs)})"
    going = f"(?:(?:{_either(filter(None, (p[1] for p in POSTURES.values())))}) )?"
    states = f"({_either({*(p for _, _, p in _STATES.values()), *_BEFORE})})"
    patterns: list[tuple[str, Build]] = [
        (rf"@ {be} {at} @", _placed(0, 1)),
        (rf"@ is not {at} @", _placed(0, 1, negated=True)),
        (rf"there is @ {going}{at} @", _placed(0, 1)),
        (rf"there is % {at} @", _placed(0, 1, denied=True)),
        (rf"there is @ with @ {its}", lambda m, names: LogicalForm(tuple(names), (Fact(_ITS[m[1]], (1, 0)),))),
        (rf"(?:there is @ {going}|@ {be} )between @ and @", _says(Fact("between", (0, 1, 2)))),
        (r"@ is in front, @ is in the middle and @ is at the back", _says(Fact("depth", (0, 1, 2)))),
        (r"@ is at the back, @ is in the middle and @ is in front", _says(Fact("depth", (2, 1, 0)))),
        (r"@ is behind @ and in front of @", _says(Fact("depth", (1, 0, 2)))),
        (r"@ is in front of @ and behind @", _says(Fact("depth", (2, 0, 1)))),
        (rf"@ is {at} @, not (?:{at} )?@", _opposed),
        (rf"there is @(?:, @)? and @|@(?:, @)? and @ {bes}", lambda _, names: LogicalForm(tuple(names))),
        (rf"there are # and #|# and # {bes}", lambda _, names: LogicalForm((), counts=tuple(names))),
        (rf"@ says ({_either(WORDS)}), and @ says ({_either(WORDS)})", _signs),
        (rf"@(?: on @)? is {states}|there is @", _state),
        (rf"@ is {states}, but @ is not", _states(0, 1)),
        (rf"@ is not {states}, but @ is", _states(1, 0)),
        *_action_patterns(),
        *_giving_patterns(),
        (r"there is %", lambda _, names: LogicalForm((), absent=(names[0],))),
    ]
    return tuple((re.compile(f"(?:{pattern})(?P<more>(?:, and there is @)*)"), build) for pattern, build in patterns)


def _placed(first: int, second: int, negated: bool = False, denied: bool = False) -> Build:
    return lambda m, names: LogicalForm(tuple(names), (Fact(_AT[m[1]], (first, second), negated),), denied=denied)


def _says(*facts: Fact, denied: bool = False) -> Build:
    return lambda _, names: LogicalForm(tuple(names), facts, denied=denied)


def _opposed(match: re.Match[str], names: list[Any]) -> LogicalForm:
    """Return the claim of "A is on B, not (in) C": a relation to the second thing, and a negated relation
    to the third.
    """
    facts = Fact(_AT[match[1]], (0, 1)), Fact(_AT[match[2] or match[1]], (0, 2), True)
    return LogicalForm(tuple(names), facts)


def _signs(match: re.Match[str], names: list[Any]) -> LogicalForm:
    return LogicalForm(tuple(replace(desc, pattern=word) for desc, word in zip(names, match.groups())))


def _predicated(desc: Desc, word: str) -> str | None:
    """Return the state of a thing that a predicate such as "full of coffee" describes; None if its kind has no such
    state.
    """
    return next((s for (k, s), (before, _, p) in _STATES.items() if k == desc.kind and word in (before, p)), None)


def _state(match: re.Match[str], names: list[Any]) -> LogicalForm | None:
    thing, *places = names
    if match[1] is None:
        return LogicalForm((thing,)) if thing.state else None
    state = _predicated(thing, match[1])
    if state is None or any(place != Desc("table") for place in places):
        return None
    return LogicalForm((replace(thing, state=state),), setting="table" if places else "")


def _states(true: int, false: int) -> Build:
    def build(match: re.Match[str], names: list[Any]) -> LogicalForm | None:
        one, two = names[true], names[false]
        state, other = _predicated(one, match[1]), _predicated(two, match[1])
        if state is None or other is None:
            return None
        contrary = next(s for s in SOLIDS[two.kind].states if s != other)
        return LogicalForm((replace(one, state=state), replace(two, state=contrary)))

    return build


def _action_patterns() -> list[tuple[str, Build]]:
    patterns: list[tuple[str, Build]] = []
    for action, (simple, doing, done, stem) in ((a, forms) for a in VERBS for forms in VERBS[a] if a not in GIVING):
        patterns += [
            (rf"@ (?:{simple}|is {doing}) @|there is @ {doing} @", _says(Fact(action, (0, 1)))),
            (rf"@ is being {done} by @", _says(Fact(action, (1, 0)))),
            (rf"@ (?:is not {doing}|does not {stem}) @", _says(Fact(action, (0, 1), True))),
            (rf"@ is not being {done} by @", _says(Fact(action, (1, 0), True))),
            (rf"there is % {doing} @", _says(Fact(action, (0, 1)), denied=True)),
            (rf"@ (?:{simple}|is {doing}) @, not @", _says(Fact(action, (0, 1)), Fact(action, (0, 2), True))),
        ]
    return patterns


def _giving_patterns() -> list[tuple[str, Build]]:
    patterns: list[tuple[str, Build]] = []
    for action, (simple, going, _, _) in ((name, forms) for name in GIVING for forms in VERBS[name]):
        verb = f"@ (?:{simple}|is {going})"
        patterns += [
            (rf"{verb} @ to @", _says(Fact(action, (0, 1, 2)))),
            (rf"{verb} @ @", _says(Fact(action, (0, 2, 1)))),
        ]
    return patterns
