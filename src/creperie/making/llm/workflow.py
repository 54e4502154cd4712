"""The workflows of SugarCrepe, SugarCrepe++ and SADE as conversations with a model.

Replacements and additions take three questions each (locate, propose, compose), a swap takes one. A second positive is
written, then checked by an algorithm and by a validator; if either refuses it, it is written again. Enriching a caption
takes one question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from creperie.core import MissingExtraError, UsageError
from creperie.lang import lemma, noun_likeness
from creperie.making.candidate import IN_ANOTHER, Proposal, Role, dice_for
from creperie.making.checks import true_too, word_key
from creperie.making.llm.maker import ROUNDS, SERVER_CHUNK, LLMMaker
from creperie.making.llm.prompts import Fields, is_na, read_template
from creperie.making.llm.question import Ask, Conversation, Given
from creperie.making.options import MakerOptions
from creperie.making.source import Captions, SourceCaption


def replace_or_add(maker: LLMMaker, source: SourceCaption) -> Conversation[Proposal]:
    """Ask the model to find concepts in the caption, to propose a new concept for some of them, and to write one
    caption for each new concept. Return the proposal.

    An addition could be recognised by its length. Unless `as_published`, the model is therefore also asked to remove
    filler words from the longer caption.
    """
    located = (yield [Ask(maker.template["locate"], {"caption": source.text}, objection=_is_not_there)])[0]
    if located.fields is None:
        return Proposal((maker.quarantine(source, located, "locate"),), calls=located.calls)
    chosen = _choose(maker, source, located.fields["concepts"])
    if not chosen:
        return Proposal(skipped="the model finds nothing to change", calls=located.calls)
    rng = dice_for(maker.options.seed, maker.name, f"{source.id}\0propose")
    given = [{"caption": source.text, "selected": old} for old in chosen]
    step = maker.template["propose"]
    objection = _may_stay_true(maker, source) if maker.guarded else _is_nothing_new
    proposed = yield [Ask(step, g, seed=rng.randrange(2**31), objection=objection) for g in given]
    step = maker.template[maker.compose]
    field = "matched" if "matched" in step.answer else "sentence"
    new = [{**g, "new": p.fields["new"]} for g, p in zip(given, proposed) if p.fields is not None]
    composed = yield [Ask(step, g, objection=_lacks_the_new) for g in new]
    sign = " + " if maker.family == "add" else " → "
    candidates = [
        maker.quarantine(source, reply, step.name)
        if reply.fields is None
        else maker.candidate(source, reply.fields[field], "negative", f"{g['selected']}{sign}{g['new']}")
        for g, reply in zip(new, composed)
    ]
    candidates += [maker.quarantine(source, p, "propose") for p in proposed if p.fields is None]
    return Proposal(candidates, calls=sum(reply.calls for reply in (located, *proposed, *composed)))


def _choose(maker: LLMMaker, source: SourceCaption, concepts: Sequence[str]) -> list[str]:
    """Return as many concepts as the option `foils` asks for, drawn at random. A concept is drawn again only after all
    others have been drawn as often.
    """
    different = list(dict.fromkeys(concepts))
    rng = dice_for(maker.options.seed, maker.name, source.id)
    chosen: list[str] = []
    while different and len(chosen) < maker.options.foils:
        chosen += rng.sample(different, min(len(different), maker.options.foils - len(chosen)))
    return chosen


def swap(maker: LLMMaker, source: SourceCaption) -> Conversation[Proposal]:
    """Ask the model one question: can two phrases of the caption be swapped, and how does the caption then read? Return
    the proposal.
    """
    asked = Ask(maker.template["swap"], {"caption": source.text}, objection=_contradicts_itself)
    reply = (yield [asked])[0]
    if reply.fields is None:
        return Proposal((maker.quarantine(source, reply, "swap"),), calls=reply.calls)
    if reply.fields["possible"] == "no":
        return Proposal(skipped="the model finds nothing to swap", calls=reply.calls)
    edit = f"{reply.fields['first']} ↔ {reply.fields['second']}"
    return Proposal((maker.candidate(source, reply.fields["sentence"], "negative", edit),), calls=reply.calls)


# -- objections to answers that can be parsed but make no sense ------------------------------------------------------


def _contradicts_itself(given: Given, fields: Fields) -> str:
    named = [not is_na(fields[name]) for name in ("first", "second", "sentence")]
    if fields["possible"] == "no":
        return "possible is no but something is not NA" if any(named) else ""
    if not all(named):
        return "possible is yes but something is NA"
    same = word_key(fields["sentence"]) == word_key(given["caption"])
    return "the sentence is the caption itself: nothing changed places" if same else ""


def _is_not_there(given: Given, fields: Fields) -> str:
    text = given["caption"].casefold()
    there = [re.search(rf"(?<!\w){re.escape(c.strip().casefold())}(?!\w)", text) for c in fields["concepts"]]
    return "" if all(there) else "a concept that is not in the caption"


def _is_nothing_new(given: Given, fields: Fields) -> str:
    if word_key(fields["new"]) == word_key(given["selected"]):
        return "the new concept is the selected one"
    return "the new concept is a sentence" if len(fields["new"].split()) > 8 else ""


def _may_stay_true(maker: LLMMaker, source: SourceCaption) -> Callable[[Given, Fields], str]:
    """Return a function that checks a new concept. The function returns an objection if nothing is new, or if the
    caption with the new concept may be true of the same picture; otherwise an empty string. After an objection, the
    model is asked for another concept.
    """

    def objection(given: Given, fields: Fields) -> str:
        old, new = given["selected"], fields["new"]
        draft = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, source.text, count=1, flags=re.IGNORECASE)
        named = _names_it_too(old, new) if maker.template.id == "replace-object" else ""
        return _is_nothing_new(given, fields) or named or true_too(source, draft)

    return objection


def _names_it_too(old: str, new: str) -> str:
    """Return an objection if the last nouns of two phrases are different words that may be said of one thing;
    otherwise an empty string. The singular and the plural of a noun (`pipe`, `pipes`) count as one word.

    >>> _names_it_too("yellow raincoat", "shoes"), _names_it_too("copper pipe", "steel pipes")
    ('may be true as well: both may be said of one thing', '')
    """
    heads = [lemma((word_key(phrase) or ("",))[-1], "NNS") for phrase in (old, new)]
    try:
        alike = heads[0] != heads[1] and noun_likeness(*heads) in ("same", "above", "below", "alike")
    except MissingExtraError:
        return ""
    return "may be true as well: both may be said of one thing" if alike else ""


def _lacks_the_new(given: Given, fields: Fields) -> str:
    # the words may be inflected, so a match of the first letters of one of them is enough
    stems = tuple(w[: max(3, len(w) - 3)] for w in word_key(given["new"]))
    fits = any(word.startswith(stems) for word in word_key(fields.get("matched") or fields["sentence"]))
    return "" if fits else "the new concept is not in the sentence"


LEAST_SHARED = 3  #: minimum number of words shared with the first positive; below, the output is superfluous
#: temperatures as published: greedy first, 0.4 after a guard, 1.0 after the validator
AFTER_GUARD, AFTER_VALIDATOR = 0.4, 1.0
AGAIN = "That is the caption itself. Word it differently."  #: for prompt files that do not say it


def is_duplicate(first: str, second: str) -> bool:
    """Return True if two captions are equal, apart from case and from blanks around them.

    >>> is_duplicate("A dog. ", "a dog."), is_duplicate("A dog.", "a dog")
    (True, False)
    """
    return first.strip().lower() == second.strip().lower()


def is_superfluous(first: str, second: str) -> bool:
    """Return True if the second text shares too few words with the first to be a version of it. It must share at least
    three words or, if the first text has fewer than three words, all of them. Texts are split at blanks.

    >>> is_superfluous("A dog on a mat", "Sure, here you are!"), is_superfluous("two dogs", "Two dogs there")
    (True, False)
    """
    words = set(first.lower().split())
    return len(words & set(second.lower().split())) < min(LEAST_SHARED, len(words))


def guard(first: str, second: str) -> str:
    """Return why `second` cannot be a second true caption beside `first` according to Algorithm 1 of SugarCrepe++;
    empty if the algorithm finds no fault.
    """
    if is_duplicate(first, second):
        return "identical to the source"
    return "superfluous output" if is_superfluous(first, second) else ""


def second_positive(maker: LLMMaker, source: SourceCaption) -> Conversation[Proposal]:
    """Run Algorithms 1 and 2 of SugarCrepe++ for a limited number of rounds, and return the proposal. The proposal
    also contains every refused attempt with its reason, and the validator's corrections as alternatives.

    If an answer repeats the caption, Algorithm 1 asks again and shows the model this answer (M{P1; P2} in the paper).
    With the option `duplicates="again"`, it repeats only the question (M{P1}). After unrelated output or a refusal by
    the validator, it always repeats only the question.
    """
    rng = dice_for(maker.options.seed, maker.name, source.id)
    kept = []
    calls = 0
    ask = Ask(maker.template["write"], {"caption": source.text}, seed=maker.options.seed)
    for _ in range(ROUNDS):
        reply = (yield [ask])[0]
        calls += reply.calls
        if reply.fields is None:
            kept.append(maker.quarantine(source, reply, ask.step.name, "positive"))
            break
        text, plan = reply.fields["paraphrase"], reply.fields["plan"]
        reason, temperature = guard(source.text, text), AFTER_GUARD
        if not reason:
            verdict = yield from judged(maker, source, text)
            calls += verdict.calls
            kept += verdict.candidates
            reason, temperature = verdict.skipped, AFTER_VALIDATOR
        if not reason:
            kept.append(maker.candidate(source, text, "positive", plan))
            break
        kept.append(maker.candidate(source, text, "positive", plan, refused=reason))
        repeated = is_duplicate(source.text, text) and maker.options.duplicates == "context"
        said = (("assistant", reply.text), ("user", maker.template.again or AGAIN)) if repeated else ()
        ask = replace(ask, seed=rng.randrange(2**31), temperature=temperature, context=said)
    return Proposal(kept, calls=calls)


def judged(maker: LLMMaker, source: SourceCaption, text: str) -> Conversation[Proposal]:
    """Ask the validator (Algorithm 2 of SugarCrepe++) about a text. If it accepts the text, return an empty proposal.
    Otherwise the proposal holds the reason in `skipped` and, as its candidate, the validator's correction. If the
    correction is missing or unusable, there is no candidate. If the validator's answer cannot be parsed, its whole text
    is the candidate.
    """
    step = maker.validator
    reply = (yield [Ask(step, {"first": source.text, "second": text})])[0]
    refused = "refused by the validator"
    if reply.fields is None:
        unread = replace(maker.quarantine(source, reply, "validate", "positive"), kind="verdict")
        return Proposal((unread,), refused, reply.calls)
    if reply.fields["verdict"] == "yes":
        return Proposal(calls=reply.calls)
    reason, correction = reply.fields["reason"], reply.fields["correction"]
    if is_na(correction) or guard(source.text, correction):
        return Proposal((), refused, reply.calls)
    kept = maker.candidate(source, correction, "positive", reason, "alternative: the validator's correction")
    return Proposal((replace(kept, kind="correction"),), refused, reply.calls)


def enrich(maker: LLMMaker, source: SourceCaption) -> Conversation[Proposal]:
    """Ask for a more detailed version of the source caption or, if the source represents a whole item, of every
    caption of the item. Return the proposal.
    """
    if source.id in maker.covered:
        return Proposal(skipped=IN_ANOTHER)
    item = maker.enriched.get(source.id)
    texts = item.captions if item is not None else (source.text,)
    replies = yield [Ask(maker.template["enrich"], {"caption": text}) for text in texts]
    candidates = []
    for k, (text, reply) in enumerate(zip(texts, replies)):
        true = item is None or any(row[k] for row in item.match)
        role: Role = "positive" if true else "negative"
        if reply.fields is None:
            candidates.append(maker.quarantine(source, reply, "enrich", role))
        else:
            made = maker.candidate(source, reply.fields["enriched"], role, "more details")
            candidates.append(made if item is None else replace(made, tags={"original": text, "caption": k}))
    return Proposal(candidates, calls=sum(r.calls for r in replies))


WORKFLOWS = {
    "replace": replace_or_add,
    "add": replace_or_add,
    "swap": swap,
    "paraphrase": second_positive,
    "enrich": enrich,
}


def llm(name: str, options: MakerOptions, captions: Captions) -> LLMMaker:
    """Return the maker `llm:NAME`, where NAME is the name of a prompt template."""
    if not options.model:
        raise UsageError(
            f"the maker {name} needs a model that writes text",
            hint="pass `model='URI'`, such as api:gpt-4o-mini or lm:HuggingFaceTB/SmolLM2-135M-Instruct",
        )
    kind = name.removeprefix("llm:")
    maker = LLMMaker(name, options, read_template(kind, options.prompts), WORKFLOWS[kind.split("-")[0]])
    if options.model.startswith("api:"):
        maker = replace(maker, chunk=SERVER_CHUNK)
    if captions.bench is None or kind not in ("paraphrase", "enrich"):
        return maker
    items = {s.id: captions.items[s.id] for s in captions.sources}
    if kind == "paraphrase":
        return replace(maker, foils={key: item.negatives for key, item in items.items() if len(item.match) == 1})
    items = {key: item for key, item in items.items() if not all(map(all, item.match))}
    first = {(item.subset, item.id): key for key, item in reversed(items.items())}  # the first source of each item
    whole = {key: items.pop(key) for key in first.values()}
    return replace(maker, enriched=whole, covered=frozenset(items))
