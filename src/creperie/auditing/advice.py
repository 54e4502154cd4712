"""What to do after a verdict: the advice, and the command that carries it out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
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


def next_command(
    judgement: Judgement, spec: str, part: str = "", *, original: str = "", before: int = 0, english: bool = True
) -> str:
    """Return the command to type after a verdict. `spec` names the benchmark, and `part` holds the command-line options
    that select the judged part of it. `original` names the benchmark before a refinement, and `before` is the number of
    its items (0 if there was none). If `english` is False, generating captions is not suggested, because the generators
    know only English.
    """
    seen, verdict = judgement.measured, judgement.verdict
    # so little is left that more of the same would go the same way: start from the original
    afresh = seen.items < LEAST_KEPT * before
    action = _AFTER.get(verdict, "")
    if verdict == "leaks":
        action = _AFTER_LEAKS.get(judgement.fix, "select")
    elif verdict == "incomplete":
        action = "install" if seen.extras else "audit" if NOT_QUICK in seen.missing.values() else "name models"
    elif verdict == "not shown":
        action = "audit all items" if judgement.full else "new foils" if afresh else "more items"
    if not english and action in ("new foils", "more items"):
        action = "write foils"
    return _command(action, spec, part, original if afresh else spec, seen.extras)


def _command(
    action: str, spec: str, part: str = "", source: str = "", extras: Sequence[str] = (), items: int = 0
) -> str:
    """Return the command for an action, such as "repair" or "more items". `source` is where to take captions from,
    `extras` are those of creperie to install, and `items` is the number of items that people should check.
    """
    origin, last = (place.rstrip("/").replace(":", "/").rpartition("/")[2] for place in (source, spec))
    names = {"captions": source, "foils": f"{origin}-foils", "more": f"{origin}-more", "out": f"{last}-refined"}
    return COMMANDS[action].format(
        bench=shlex.quote(spec) + part,
        packages=" ".join(f"'creperie[{name}]'" for name in extras),
        items=items,
        **{key: shlex.quote(name) for key, name in names.items()},
    )


def judge_validation(items: int, failed: int, unanswered: int, bench: str) -> dict[str, Any]:
    """Return the verdict of a validation: has a model confirmed that every caption is true or false as the benchmark
    `bench` says? `failed` and `unanswered` are numbers of items.
    """
    if failed:
        word, what, action = "in doubt", f"{failed:,} of {items:,} items have a caption that is refuted", "ask people"
    elif not items or unanswered:
        word, what, action = "not shown", f"{unanswered:,} of {items:,} items are not decided", "ask again"
    else:
        word, what, action = "valid", f"all captions of {items:,} items are confirmed", "audit"
    step = _command(action, bench, items=failed)
    return {"verdict": word, "text": f"{word}: {what}", "next": step, "code": EXIT_CODES[word]}
