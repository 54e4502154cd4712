"""A language model as the judge of foils that no rule decides: could the foil describe a photograph, and is it
false?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from creperie.lang import OPEN_REASONS
from creperie.making.candidate import Candidate
from creperie.making.source import SourceCaption

#: The evidence of a foil whose truth rules leave open: a judge decides. An added detail is not entailed, and stays so.
OPEN = "unchecked"
#: Why a replacement is left out: what a corpus, a judge or `--plausible no` would add.
NOT_VOUCHED = "rules do not vouch for it and the corpus has no such words together (--corpus, --judge, --plausible no)"


@dataclass(frozen=True)
class JudgedByModel:
    """A check that asks a model about the foils that rules leave open. The model can be any `lm:`, `vlm:` or `api:`
    model that writes text.
    """

    uri: str
    prompts: str = ""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        from creperie.making.llm.flight import generator, run_conversations
        from creperie.making.llm.prompts import read_template
        from creperie.making.llm.question import Ask, Conversation

        step = read_template("judge", self.prompts)["judge"]

        def ask(true: str, other: str) -> Conversation[str | None]:
            reply = (yield [Ask(step, {"true": true, "other": other})])[0]
            return why_rejected(reply.fields)

        asked = [k for k, (_, c) in enumerate(pairs) if is_open(c)]
        replies = run_conversations([ask(pairs[k][0].text, pairs[k][1].text) for k in asked], generator(self.uri))
        reasons: list[str | None] = [None] * len(pairs)
        for k, reason in zip(asked, replies, strict=True):
            reasons[k] = reason
        return reasons


def is_open(candidate: Candidate) -> bool:
    """Return True for a foil if the rules have not decided whether it is false, or have not decided whether it is
    plausible.
    """
    unsure = candidate.tags.get("evidence", OPEN) == OPEN or candidate.tags.get("plausible") == "unsure"
    return candidate.role == "negative" and unsure


def what_a_judge_would_add(missing: Mapping[str, Mapping[str, int]]) -> str:
    """Return a note on the foils that a judge could add; empty if there are none. These foils were not made because no
    rule finds them plausible.

    `missing` maps each kind of foil to the reasons why captions have no foil of this kind, and each reason to the
    number of captions.

    >>> what_a_judge_would_add({"replace-object": {"nothing is known of it": 3, "nothing to change": 4}})
    'no rule vouches for the foils of 3 captions (3 replace-object); --judge URI asks a model'
    """
    counts = {
        kind: sum(n for why, n in whys.items() if why in (*OPEN_REASONS, NOT_VOUCHED)) for kind, whys in missing.items()
    }
    named = ", ".join(f"{n:,} {kind}" for kind, n in counts.items() if n)
    total = f"{sum(counts.values()):,} captions"
    return f"no rule vouches for the foils of {total} ({named}); --judge URI asks a model" if named else ""


def why_rejected(fields: Mapping[str, object] | None) -> str | None:
    """Return why the judge's answer rejects a foil. Return None if the answer says that the foil could describe a
    photograph and that it is false.

    >>> why_rejected({"reason": "", "photograph": "yes", "false": "no"})
    'the judge does not find it false'
    """
    if fields is None:
        return "the judge's answer could not be read"
    if fields["photograph"] != "yes":
        return "the judge sees no photograph in it"
    return None if fields["false"] == "yes" else "the judge does not find it false"
