"""What to do after a verdict: the advice, and the command that carries it out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from creperie.auditing.registry import NOT_QUICK
from creperie.auditing.verdict import EXIT_CODES, LEAST_KEPT, Judgement

#: What can be advised, as commands: `bench` is the benchmark with the options that select the part of it that was
#: judged, `captions` where to take captions from.
COMMANDS = {
    "repair": "creperie refine {bench} --repair --out {out}",
    "select": "creperie refine {bench} --method optimal --out {out}",
    "new foils": "creperie make rules:replace --captions {captions} --foils 8 --unmatched --apart --out {foils}",
    "more items": "creperie make all --captions {captions} --out {more}",
    "install": "pip install {packages}",
    "name models": "creperie audit {bench} --lm lm:MODEL --encoder st:MODEL",
    "write foils": "creperie data import --help  # add foils of your own to {bench}: makers know only English",
    "audit": "creperie audit {bench}",
    "audit all items": "creperie audit {bench} --full",
    "check": "creperie data check {bench}",
    "score": "creperie score {bench} --model URI",
    "ask people": "creperie annotate --help  # let people look at the {items:,} items of {bench}",
    "ask again": "creperie validate {bench} --help",
}
_AFTER_LEAKS = {"repairable": "repair", "structural": "new foils"}
_AFTER = {
    "anti-learned": "new foils",
    "nothing left": "new foils",
    "unsolvable": "check",
    "clean": "score",
    "not run": "audit",
}


@dataclass(frozen=True)
class Advice:
    """What to do next. `action` names it in one or two words, such as "repair" or "more items"."""

    action: str
    extras: tuple[str, ...] = ()  #: the extras of creperie to install
    afresh: bool = False  #: so little is left that more of the same would go the same way: start from the original

    def command(self, spec: str, part: str = "", original: str = "", items: int = 0) -> str:
        """Return the command to type. `spec` names the benchmark, and `part` holds the command-line options that select
        the judged part of it. `original` names the benchmark before refinement, and `items` is the number of items that
        people should check.
        """
        source = original if self.afresh else spec
        names = {"foils": f"{_last(source)}-foils", "more": f"{_last(source)}-more", "out": f"{_last(spec)}-refined"}
        return COMMANDS[self.action].format(
            bench=shlex.quote(spec) + part,
            captions=shlex.quote(source),
            packages=" ".join(f"'creperie[{name}]'" for name in self.extras),
            items=items,
            **{key: shlex.quote(name) for key, name in names.items()},
        )


def _last(spec: str) -> str:
    return spec.rstrip("/").replace(":", "/").rpartition("/")[2]


def advice_on(judgement: Judgement, before: int = 0, *, english: bool = True) -> Advice:
    """Return what to do after a verdict. `before` is the number of items before a refinement (0 if there was none). If
    `english` is False, generating captions is not suggested, because the generators know only English.
    """
    advice = _advice_on(judgement, before)
    return advice if english or advice.action not in ("new foils", "more items") else Advice("write foils")


def _advice_on(judgement: Judgement, before: int) -> Advice:
    seen, afresh = judgement.measured, judgement.measured.items < LEAST_KEPT * before
    if judgement.verdict == "leaks":
        return Advice(_AFTER_LEAKS.get(judgement.fix, "select"), afresh=afresh)
    if judgement.verdict == "incomplete":
        models = "audit" if NOT_QUICK in seen.missing.values() else "name models"
        return Advice("install" if seen.extras else models, seen.extras)
    if judgement.verdict == "not shown":
        return Advice("audit all items" if judgement.full else "new foils" if afresh else "more items", afresh=afresh)
    return Advice(_AFTER[judgement.verdict], afresh=afresh)


def judge_validation(items: int, failed: int, unanswered: int, bench: str) -> dict[str, Any]:
    """Return the verdict of a validation. It says whether the validator confirmed that captions are true or false as
    marked in the benchmark. `failed` and `unanswered` are numbers of items.
    """
    if failed:
        word, what, action = "in doubt", f"{failed:,} of {items:,} items have a caption that is refuted", "ask people"
    elif not items or unanswered:
        word, what, action = "not shown", f"{unanswered:,} of {items:,} items are not decided", "ask again"
    else:
        word, what, action = "valid", f"all captions of {items:,} items are confirmed", "audit"
    step = Advice(action).command(bench, items=failed)
    return {"verdict": word, "text": f"{word}: {what}", "next": step, "code": EXIT_CODES[word]}
