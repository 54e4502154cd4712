"""SugarCrepe++'s second positive: write, guard, validate, write again; and SADE's richer captions."""

from __future__ import annotations

from dataclasses import replace

from creperie.making.candidate import Candidate, Proposal, Role, dice_for
from creperie.making.llm.parse import is_na
from creperie.making.llm.prompts import read_template
from creperie.making.llm.question import Ask, Talk
from creperie.making.llm.workflow import WorkflowTask
from creperie.making.source import SourceCaption

LEAST_SHARED = 3  #: words that a second positive shares with the first, else it is superfluous output
#: published: greedy first, 0.4 after a guard, 1.0 after the validator
AFTER_GUARD, AFTER_VALIDATOR = 0.4, 1.0
DUPLICATE, SUPERFLUOUS = "it is the caption itself", "it speaks of something else"


def is_duplicate(first: str, second: str) -> bool:
    """
    >>> is_duplicate("A dog. ", "a dog."), is_duplicate("A dog.", "a dog")
    (True, False)
    """
    return first.strip().lower() == second.strip().lower()


def is_superfluous(first: str, second: str) -> bool:
    """Fewer than three words shared, as they stand between blanks. A caption with fewer must share all it has.

    >>> is_superfluous("A dog on a mat", "Sure, here you are!"), is_superfluous("two dogs", "Two dogs there")
    (True, False)
    """
    words = set(first.lower().split())
    return len(words & set(second.lower().split())) < min(LEAST_SHARED, len(words))


def guard(first: str, second: str) -> str:
    """What Algorithm 1 finds wrong with a second positive, or nothing."""
    if is_duplicate(first, second):
        return DUPLICATE
    return SUPERFLUOUS if is_superfluous(first, second) else ""


def second_positive(task: WorkflowTask, source: SourceCaption) -> Talk[Proposal]:
    """Algorithms 1 and 2 with a bounded number of rounds. Every attempt is kept, with the reason of its refusal;
    so are the validator's corrections, as alternatives."""
    rng = dice_for(task.seed, task.maker, source.id)
    kept: list[Candidate] = []
    calls = 0
    ask = Ask(task.template["write"], {"caption": source.text}, seed=task.seed)
    for _ in range(task.rounds):
        reply = (yield [ask])[0]
        calls += reply.calls
        if reply.fields is None:
            kept.append(task.quarantine(source, reply, ask.step.name, "positive"))
            break
        text, plan = reply.fields["paraphrase"], reply.fields["plan"]
        reason, temperature = guard(source.text, text), AFTER_GUARD
        if not reason:
            verdict = yield from judged(source.text, text, task.prompts)
            calls += verdict.calls
            kept += [replace(c, source=source.id, maker=task.maker) for c in verdict.candidates]
            reason, temperature = verdict.skipped, AFTER_VALIDATOR
        if not reason:
            kept.append(task.candidate(source, text, "positive", plan))
            break
        kept.append(task.candidate(source, text, "positive", plan, refused=_refusal(reason)))
        ask = replace(ask, seed=rng.randrange(2**31), temperature=temperature)  # M{P1} again, as published
    return Proposal(tuple(kept), calls=calls)


def _refusal(reason: str) -> str:
    """Reasons are counted, so the validator's many words become one."""
    known = {DUPLICATE: "identical to the source", SUPERFLUOUS: "superfluous output"}
    return known.get(reason, "refused by the validator")


def judged(first: str, second: str, prompts: str = "") -> Talk[Proposal]:
    """Algorithm 2's validator. The proposal is empty where it accepts; else `skipped` is its reason, and its
    correction or its unreadable answer is the candidate."""
    reply = (yield [Ask(read_template("validate", prompts)["validate"], {"first": first, "second": second})])[0]
    if reply.fields is None:
        bad = Candidate("", reply.text, "positive", "verdict", "", "validate", refused=f"quarantined: {reply.why}")
        return Proposal((bad,), "its check could not be read", reply.calls)
    if reply.fields["verdict"] == "yes":
        return Proposal(calls=reply.calls)
    reason, correction = reply.fields["reason"], reply.fields["correction"]
    if is_na(correction) or guard(first, correction):
        return Proposal((), reason, reply.calls)
    alternative = "alternative: the validator's correction"
    kept = Candidate("", correction, "positive", "correction", "", reason, refused=alternative)
    return Proposal((kept,), reason, reply.calls)


def enrich(task: WorkflowTask, source: SourceCaption) -> Talk[Proposal]:
    """One question per caption: the caption with more details. All captions of an item are enriched, or none."""
    if source.id in task.covered:
        return Proposal(skipped="enriched with the first caption of its item")
    item = task.items.get(source.id)
    texts = item.captions if item is not None else (source.text,)
    replies = yield [Ask(task.template["enrich"], {"caption": text}) for text in texts]
    found = []
    for k, (text, reply) in enumerate(zip(texts, replies)):
        true = item is None or any(row[k] for row in item.match)
        role: Role = "positive" if true else "negative"
        if reply.fields is None:
            found.append(task.quarantine(source, reply, "enrich", role))
        else:
            made = task.candidate(source, reply.fields["enriched"], role, "more details")
            found.append(made if item is None else replace(made, tags={"original": text, "caption": k}))
    return Proposal(tuple(found), calls=sum(r.calls for r in replies))
