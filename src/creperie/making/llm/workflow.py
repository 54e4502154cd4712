"""SugarCrepe's workflows: replace and add in three questions (locate, propose, compose), swap in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from creperie.bench import Item
from creperie.making.candidate import Candidate, Proposal, Role, dice_for
from creperie.making.checks import word_key
from creperie.making.llm.parse import Fields, is_na
from creperie.making.llm.prompts import Template
from creperie.making.llm.question import Ask, Reply, Talk
from creperie.making.source import SourceCaption

QUARANTINED = "quarantined"


@dataclass(frozen=True)
class WorkflowTask:
    """What a workflow is to do: `maker` and `kind` name its candidates, `count` is how many per caption."""

    maker: str
    kind: str
    template: Template
    seed: int = 0
    count: int = 1
    matched: bool = True  #: additions keep the number of words
    rounds: int = 4  #: of second positives
    prompts: str = ""  #: a folder of prompt files of the user's own
    items: Mapping[str, Item] = field(default_factory=dict)  #: sources that stand for all captions of an item
    covered: frozenset[str] = frozenset()  #: sources that another one stands for

    def candidate(self, source: SourceCaption, text: str, role: Role, edit: str, refused: str = "") -> Candidate:
        return Candidate(source.id, text, role, self.kind, self.maker, edit, refused=refused)

    def quarantine(self, source: SourceCaption, reply: Reply, step: str, role: Role = "negative") -> Candidate:
        """The last text of a question that was never answered well, kept as it came."""
        return self.candidate(source, reply.text, role, step, refused=f"{QUARANTINED}: {reply.why}")


Workflow = Callable[[WorkflowTask, SourceCaption], Talk[Proposal]]


def replace_or_add(task: WorkflowTask, source: SourceCaption) -> Talk[Proposal]:
    """Locate concepts, propose new ones for some of them, compose a caption with each."""
    located = (yield [Ask(task.template["locate"], {"caption": source.text}, objection=_written_in(source.text))])[0]
    if located.fields is None:
        return Proposal((task.quarantine(source, located, "locate"),), calls=located.calls)
    chosen = _choose(task, source, located.fields["concepts"])
    if not chosen:
        return Proposal(skipped="the model finds nothing to change", calls=located.calls)
    rng = dice_for(task.seed, task.maker, f"{source.id}\0propose")
    proposed = yield [
        Ask(
            task.template["propose"],
            {"caption": source.text, "selected": old},
            seed=rng.randrange(2**31),
            objection=_other_than(old),
        )
        for old in chosen
    ]
    pairs = [(old, p.fields["new"]) for old, p in zip(chosen, proposed) if p.fields is not None]
    bad = [task.quarantine(source, p, "propose") for p in proposed if p.fields is None]
    calls = located.calls + sum(p.calls for p in proposed)
    adds = "compose-matched" in task.template.steps
    made = yield from (_added if adds else _replaced)(task, source, pairs)
    return Proposal((*made.candidates, *bad), calls=calls + made.calls)


def _choose(task: WorkflowTask, source: SourceCaption, concepts: Sequence[str]) -> list[str]:
    """Concepts to work on, at random: each once before any is taken again."""
    different = list(dict.fromkeys(concepts))
    rng = dice_for(task.seed, task.maker, source.id)
    chosen: list[str] = []
    while different and len(chosen) < task.count:
        chosen += rng.sample(different, min(len(different), task.count - len(chosen)))
    return chosen


def _replaced(task: WorkflowTask, source: SourceCaption, pairs: Sequence[tuple[str, str]]) -> Talk[Proposal]:
    return (yield from _composed(task, source, pairs, ("compose", "sentence", " → ")))


def _composed(
    task: WorkflowTask, source: SourceCaption, pairs: Sequence[tuple[str, str]], how: tuple[str, str, str]
) -> Talk[Proposal]:
    """A caption with each new concept: `how` is the step, the field of its answer, and the sign of the edit."""
    step, field, sign = how
    replies = yield [_compose(task, source, step, field, pair) for pair in pairs]
    foils = []
    for pair, reply in zip(pairs, replies):
        if reply.fields is None:
            foils.append(task.quarantine(source, reply, step))
        else:
            foils.append(task.candidate(source, reply.fields[field], "negative", sign.join(pair)))
    return Proposal(tuple(foils), calls=sum(r.calls for r in replies))


def _added(task: WorkflowTask, source: SourceCaption, pairs: Sequence[tuple[str, str]]) -> Talk[Proposal]:
    """Additions. A foil that alone is longer gives itself away, so it leaves out filler, unless made as published."""
    step, field = ("compose-matched", "matched") if task.matched else ("compose", "sentence")
    return (yield from _composed(task, source, pairs, (step, field, " + ")))


def swap(task: WorkflowTask, source: SourceCaption) -> Talk[Proposal]:
    """One question with a gate: can two phrases change places at all?"""
    asked = Ask(task.template["swap"], {"caption": source.text}, objection=_gate_objection(source.text))
    reply = (yield [asked])[0]
    if reply.fields is None:
        return Proposal((task.quarantine(source, reply, "swap"),), calls=reply.calls)
    if reply.fields["possible"] == "no":
        return Proposal(skipped="the model finds nothing to swap", calls=reply.calls)
    edit = f"{reply.fields['first']} ↔ {reply.fields['second']}"
    return Proposal((task.candidate(source, reply.fields["sentence"], "negative", edit),), calls=reply.calls)


# -- objections: answers that can be read but cannot be meant --------------------------------------------------------


def _gate_objection(caption: str) -> Callable[[Fields], str]:
    def objection(fields: Fields) -> str:
        given = [not is_na(fields[name]) for name in ("first", "second", "sentence")]
        if fields["possible"] == "yes" and not all(given):
            return "possible is yes but something is NA"
        if fields["possible"] == "no" and any(given):
            return "possible is no but something is not NA"
        same = fields["possible"] == "yes" and word_key(fields["sentence"]) == word_key(caption)
        return "the sentence is the caption itself: nothing changed places" if same else ""

    return objection


def _written_in(caption: str) -> Callable[[Fields], str]:
    def objection(fields: Fields) -> str:
        strange = [c for c in fields["concepts"] if not _occurs(c, caption)]
        return "a concept that is not in the caption" if strange else ""

    return objection


def _occurs(phrase: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase.strip().casefold())}(?!\w)", text.casefold()) is not None


def _other_than(old: str) -> Callable[[Fields], str]:
    def objection(fields: Fields) -> str:
        if word_key(fields["new"]) == word_key(old):
            return "the new concept is the selected one"
        return "the new concept is a sentence" if len(fields["new"].split()) > 8 else ""

    return objection


def _compose(task: WorkflowTask, source: SourceCaption, step: str, field: str, pair: tuple[str, str]) -> Ask:
    old, new = pair

    def objection(fields: Fields) -> str:
        # the words may be inflected to fit, so one of them in its first letters is enough
        stems = [w[: max(3, len(w) - 3)] for w in word_key(new)]
        said = word_key(fields[field])
        fits = any(word.startswith(stem) for stem in stems for word in said)
        return "" if fits else "the new concept is not in the sentence"

    given = {"caption": source.text, "selected": old, "new": new}
    return Ask(task.template[step], given, objection=objection)
