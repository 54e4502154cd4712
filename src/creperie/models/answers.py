"""Parse a model's answer to a question. Many forms of answers are understood, but nothing is guessed.

An answer counts only if it names exactly one option. Any other answer is unparsable and stored with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from creperie.models.thoughts import final_answer, reply_of

#: kinds of answers: one option, no option, several, nothing that can be read, or cut off before its end
CHOSE_OPTION, NONE, SEVERAL, UNPARSABLE, CUT = "option", "none", "several", "unparsable", "cut off"

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
SHORT = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
_NOUN = r"(?:options?|captions?|choices?|statements?|sentences?|descriptions?|numbers?|no\.|answers?|letters?)"
_LABEL = r"[1-9]|[a-h]"
#: a label that cannot be anything else: in brackets, or after a noun
_BRACKETED = re.compile(rf"[(\[{{]\s*({_LABEL})\s*[)\]}}]|(?<!\w)([1-9])\)|#\s*([1-9])(?!\d)")
_BARE_BRACKET = re.compile(r"(?:^|\n)\s*([a-h])\)")
_NAMED = re.compile(rf"\b{_NOUN}\s*(?:is\s+|was\s+)?[#:=(\[\"']*\s*({_LABEL}|{'|'.join(WORDS)})(?![\w'])")
_PLACED = re.compile(
    rf"\b({'|'.join((*ORDINALS, *SHORT))}|last|final|former|latter)\b"
    rf"(?=\s+(?:one|and|or|{_NOUN})\b|\s*[&,/]|[\s.!;\"')]*$)"
)
#: the mark that `_marked` puts in place of a caption that the answer quotes
_QUOTED = re.compile("\ue000([0-9])")
#: the words between a label and what the answer says about that option
_CLAUSE = r"[ )\]}\"']*(?:(?!not\b|\w+n't\b)\w+ ){0,2}?"
_WRONG = re.compile(
    rf"{_CLAUSE}(?:does not|doesn't|do not|don't|is not|isn't|is wrong|is incorrect|is inaccurate|is false|fails)\b"
)
_RIGHT = re.compile(
    rf"{_CLAUSE}(?:matches|match|fits|describes|corresponds|is (?:the )?(?:correct|right|accurate|true))\b"
)
#: the whole answer is a label (_WHOLE), or begins with one and a full stop, colon or bracket (_OPENING)
_WHOLE = re.compile(rf"\s*(?:{_NOUN}\s*)?[\"'(\[]*({_LABEL}|{'|'.join(WORDS)})[\"')\].:,;!]*\s*")
_OPENING = re.compile(r"\s*([1-9]|[a-h])\s*[.:)]\s+\S")
#: a label alone at the end, with which an answer that began with a label may take it back
_CLOSING = re.compile(rf"(?<![\w'\ue000-])({_LABEL})[\s.!\"')\]]*$")
_FINAL = re.compile(r"(?:final answer|the answer is|answer is|my answer|answer)\s*(?:is\b|would be\b)?\s*[:=\-]?\s*")
_NONE = re.compile(
    r"\bnone\b|\bneither\b|\bno (?:caption|option|one|such|statement|sentence)\b|\bnot any\b|\bn/?a\b|\bnothing\b"
)
_ALL = re.compile(
    r"\bboth\b|\ball (?:of )?(?:the(?:m|se|y)?|three|four|two|captions|options|match|fit|are)\b|\beither\b|\ball\b$"
)
_FITS = re.compile(r"\b(?:match(?:es)?|fits?|describes?|correspond|correct|accurate|right|true)\b")
_NEGATION = re.compile(
    r"\b(?:not|isn't|isnt|aren't|doesn't|don't|rather than|instead of|except|excluding|wrong|incorrect)"
    r"\W+(?:\w+\W+){0,2}$"
)
_REFUSAL = re.compile(
    r"\b(?:i'?m sorry|i am sorry|cannot|can't|can not|unable to|as an ai|i do not see|no image (?:was|is|has))\b"
)


#: "yes", and "no" where it is an answer: at the beginning, after "say", or at the end of a sentence, clause or line
_YES_NO = re.compile(r"\byes\b|(?:^\W*|\bsay )no\b(?! doubt| question)|\bno\b(?=\s*(?:[.,;:!?)\n]|$))")
#: words that are answers if they begin a short text
ALONE = dict.fromkeys(("yeah", "yep", "true", "correct"), True) | dict.fromkeys(("nope", "false", "incorrect"), False)
MARKS = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("*", " "), ("_", " "), ("`", " "))


@dataclass(frozen=True)
class Parsed:
    """A parsed answer. `option` is the index of the option, from 0. `why` is the reason why the answer is unparsable or
    cut off, else empty.
    """

    kind: str
    option: int | None = None
    why: str = ""


def parse_choice(answer: str, options: Sequence[str], *, asks: str = "match") -> Parsed:
    """Return which option an answer names, if any. `asks` is the question: "match" (which one fits) or "odd" (which
    does not).

    >>> parse_choice("(2)", ["a cat", "a dog"]).option, parse_choice("The second one.", ["a cat", "a dog"]).option
    (1, 1)
    >>> parse_choice("A dog, I think", ["a cat", "a dog"]).option, parse_choice("(1) or (2)", ["x", "y"]).why
    (1, 'several options are named')
    """
    reply = reply_of(answer)
    if reply.cut:
        return Parsed(CUT, why="the answer was cut off")
    text = _simplified(final_answer(reply))
    if not text:
        return Parsed(UNPARSABLE, why="the answer is empty")
    final = _after_final(text)
    for part in dict.fromkeys([final, text]) if final else [text]:
        read = _read(part, options, asks)
        if read.kind != UNPARSABLE or read.why != "no option is named":
            break
    return read


def parse_yes_no(answer: str) -> bool | None:
    """Return True if the answer says yes, False if it says no, and None if it says neither or both.

    >>> parse_yes_no("Yes, it does."), parse_yes_no("**No**"), parse_yes_no("Yes and no"), parse_yes_no("A dog")
    (True, False, None, None)
    """
    reply = reply_of(answer)
    text = "" if reply.cut else _simplified(final_answer(reply))
    return next((read for part in (_after_final(text), text) if (read := _yes_no(part)) is not None), None)


# -- reading ---------------------------------------------------------------------------------------------------------


def _simplified(text: str) -> str:
    """Return a text in lower case, with straight quotes and without Markdown emphasis. Line breaks are kept."""
    for mark, plain in MARKS:
        text = text.replace(mark, plain)
    text = text.casefold()
    return "\n".join(" ".join(line.split()) for line in text.splitlines()).strip()


def _after_final(text: str) -> str:
    """Return the text after the last phrase such as "the answer is"; empty if the text has no such phrase."""
    verdicts = list(_FINAL.finditer(text))
    return text[verdicts[-1].end() :].strip() if verdicts else ""


def _yes_no(text: str) -> bool | None:
    spoken = {"yes" if match.endswith("yes") else "no" for match in _YES_NO.findall(text)}
    if spoken:
        return spoken == {"yes"} if len(spoken) == 1 else None
    words = re.findall(r"[a-z']+", text)
    known = words and len(words) <= 3 and not {"yes", "no", "not"} & {*words}
    return ALONE.get(words[0]) if known else None


def _read(text: str, options: Sequence[str], asks: str) -> Parsed:
    if _REFUSAL.search(text):
        return Parsed(UNPARSABLE, why="it refuses to answer")
    whole = _WHOLE.fullmatch(text)
    if whole:
        return _in_range({_number(whole[1], len(options))}, options)
    text = _marked(text, options)
    named, denied = _options_named(text, len(options), asks)
    if named & denied:
        return Parsed(UNPARSABLE, why="it contradicts itself")
    return _in_range(named, options) if named else _without_labels(text, denied, asks)


def _without_labels(text: str, denied: set[int], asks: str) -> Parsed:
    """Parse an answer that names no option. "none" gives `NONE`, and "all" gives `SEVERAL`. Any other answer is
    unparsable, even if it says which options are wrong (`denied`).

    If `asks` is "odd", the question asks for the option that does not fit. An answer that says which options fit is
    therefore reversed: "all match" gives `NONE`, and "none match" gives `SEVERAL`.
    """
    if denied:
        return Parsed(UNPARSABLE, why="it says which option is not meant")
    none, every = _NONE.search(text), _ALL.search(text)
    if none and every:
        return Parsed(UNPARSABLE, why="it says both none and all")
    if none or every:
        # "none of them match" is the opposite of "none" where the question was which one does not match
        contrary = asks == "odd" and bool(_FITS.search(text)) and not re.search(r"\bnot\b|n't\b", text)
        return Parsed(NONE if bool(every) == contrary else SEVERAL)
    return Parsed(UNPARSABLE, why="no option is named")


def _in_range(chosen: set[int], options: Sequence[str]) -> Parsed:
    if len(chosen) > 1:
        return Parsed(UNPARSABLE, why="several options are named")
    (option,) = chosen
    if not 0 <= option < len(options):
        return Parsed(UNPARSABLE, why=f"there is no option {option + 1}")
    return Parsed(CHOSE_OPTION, option)


def _number(label: str, count: int) -> int:
    """Return the index of the option that a label such as "b" or "second" means. "former" and "latter" mean an option
    only if there are exactly two options. If the label means no option, return `count`, which is too high to be an
    index.
    """
    if label in ("last", "final"):
        return count - 1
    if label in ("former", "latter"):
        return ("former", "latter").index(label) if count == 2 else count
    for table in (ORDINALS, SHORT, WORDS):
        if label in table:
            return table.index(label)
    return int(label) - 1 if label.isdigit() else ord(label) - ord("a")


def _options_named(text: str, count: int, asks: str) -> tuple[set[int], set[int]]:
    """Return two sets of indices: the options that an answer names, and those that it names only to rule them out. An
    option is named by its label or by the whole caption.
    """
    named: set[int] = set()
    denied: set[int] = set()
    contrary = _WRONG if asks == "match" else _RIGHT
    opening = _OPENING.match(text)
    if opening:
        closing = _CLOSING.search(text, opening.end())
        named |= {_number(label[1], count) for label in (opening, closing) if label}
    for pattern in (_BRACKETED, _BARE_BRACKET, _NAMED, _PLACED, _QUOTED):
        for match in pattern.finditer(text):
            label = next(group for group in match.groups() if group)
            option = int(label) if pattern is _QUOTED else _number(label, count)
            aside = _NEGATION.search(text[: match.start()]) or contrary.match(text[match.end() :])
            (denied if aside else named).add(option)
    return named, denied


def _marked(text: str, options: Sequence[str]) -> str:
    """Return an answer in which every caption quoted in full is replaced by a mark with the option's number."""
    plain = [_simplified(option).rstrip(" .!?") for option in options]
    for option in sorted(range(len(options)), key=lambda i: -len(plain[i])):
        caption = plain[option]
        if caption and plain.count(caption) == 1:
            text = re.sub(rf"(?<!\w){re.escape(caption)}(?!\w)", f" \ue000{option} ", text)
    return text
