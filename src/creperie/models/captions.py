"""Named changes that published evaluations of a model make to captions before tokenising them.

Captions in a benchmark stay as published; only the model's input is changed. The changes are chosen in the model URI
and are part of the model's fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from creperie.models.uri import ModelOption

#: text that published evaluations put before every caption
PROMPTS = {
    "instructor": "Represent the sentence for cosine similarity matching.",
    "instructor-spatial": "Represent the sentence for spatial semantics.",
    "e5-mistral": "Instruct: Retrieve semantically similar text.\nQuery: ",
    "e5-query": "query: ",
    "e5-passage": "passage: ",
}
#: named clean-ups → how many words they keep
CLEANERS = {"lavis": 50, "aro": 30, "albef": 30}

OPTIONS = (
    ModelOption(
        "clean",
        'lower-case, blank out . ! " ( ) * # : ; ~, squeeze blanks, keep the first 50 (lavis) or 30 (aro, albef) words',
        "choice",
        None,
        tuple(CLEANERS),
    ),
    ModelOption("lower", "lower-case the caption", "flag", False),
    ModelOption("words", "keep the first N words", "number"),
    ModelOption("prefix", "text put before every caption"),
    ModelOption("prompt", "a named prefix: " + ", ".join(PROMPTS), "choice", None, tuple(PROMPTS)),
)

_PUNCTUATION = re.compile(r"[.!\"()*#:;~]")
_BLANKS = re.compile(r"\s{2,}")


@dataclass(frozen=True)
class CaptionRule:
    """The changes made to a caption. They are made in this order: clean the caption by the method called `clean`, put
    it in lower case if `lower` is True, cut it to its first `words` words, and put `prefix` in front.

    >>> CaptionRule(lower=True, words=3, prefix="query: ")("A Dog chases a cat.")
    'query: a dog chases'
    """

    clean: str | None = None
    lower: bool = False
    words: int | None = None
    prefix: str = ""

    def __call__(self, text: str) -> str:
        if self.clean:
            text = clean_caption(text, CLEANERS[self.clean])
        if self.lower:
            text = text.lower()
        return self.prefix + (first_words(text, self.words) if self.words else text)

    @property
    def described(self) -> dict[str, Any]:
        """The settings of this rule as part of the model's fingerprint. Settings that have no effect, and `prefix`, are
        left out.
        """
        return {name: value for name, value in asdict(self).items() if value and name != "prefix"}


def caption_rule(options: Mapping[str, Any]) -> CaptionRule:
    """Return the caption rule that the options of a model URI describe."""
    prefix = options.get("prefix") or PROMPTS.get(options.get("prompt") or "", "")
    return CaptionRule(options.get("clean"), bool(options.get("lower")), options.get("words"), prefix)


def clean_caption(text: str, words: int) -> str:
    """Return a caption cleaned up as in the BLIP, ALBEF and ARO evaluations, and cut to its first `words` words.

    >>> clean_caption('A man (in red): "stop"!  Now, ', 50)
    'a man in red stop now,'
    """
    text = _BLANKS.sub(" ", _PUNCTUATION.sub(" ", text.lower()))
    return first_words(text.rstrip("\n").strip(" "), words)


def first_words(text: str, count: int) -> str:
    """Return the first `count` words of a text, split at single blanks. A shorter text is returned unchanged.

    >>> first_words("a  b c", 3), first_words("a  b c", 9)
    ('a  b', 'a  b c')
    """
    words = text.split(" ")
    return text if len(words) <= count else " ".join(words[:count])
