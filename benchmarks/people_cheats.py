"""Studies with cheats in them: how many verdicts come out wrong, and who is excluded.

    python benchmarks/people_cheats.py --seeds 20

Questions are given out by the rules of `creperie.annotation.assignment` and judged by those of `quality`: whoever the
default rules exclude is replaced by others, and the verdict is the majority's. Prints one JSON document: wrong verdicts
beside those of honest people alone with the same number of answers, and how many honest people and cheats were
excluded. The exit code is 1 where a bound is missed: 1.5 times the wrong verdicts, 1 in 200 honest people excluded.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.annotation.assignment import CANDIDATES, depth, pair_cap, preferred
from creperie.annotation.outcome import judged, settle
from creperie.annotation.quality import measured, ruled_out
from creperie.annotation.settings import StudySettings
from creperie.annotation.tasks import task_named

#: Answers per question, by the accuracy of honest people; one check comes after so many questions.
OVERLAP, EVERY = {0.85: 5, 0.95: 3}, 10
#: Answers that everybody is asked for at first.
QUOTA = 48
#: How many verdicts may be wrong, as a multiple of those of the honest alone; the share of honest people excluded.
MOST_WRONG, MOST_HONEST = 1.5, 1 / 200
TASK = "foil-check"
#: Who cheats, by scenario; the others of 25 (or 29) people are honest.
SCENARIOS = {
    "random": ["random"] * 3,
    "one side": ["true"] * 2 + ["false"],
    "bot": ["bot"] * 3,
    "two accounts": ["twin", "twin"],
    "colluders first": ["colluder"] * 3,
    "5 of 25": ["random", "true", "bot", "twin", "twin"],
    "9 of 29": ["random", "random", "true", "bot", "twin", "twin", "colluder", "colluder", "colluder"],
}


@dataclass
class Simulated:
    """One study: `people` are the kinds of its annotators, in the order in which they arrive."""

    people: Sequence[str]
    accuracy: float
    seed: int
    quota: int = QUOTA
    share_true: float = 0.3

    def __post_init__(self) -> None:
        self.dice, self.overlap = random.Random(self.seed), OVERLAP[self.accuracy]
        self.questions = len(self.people) * self.quota // self.overlap
        self.truth = ["true" if self.dice.random() < self.share_true else "false" for _ in range(self.questions)]
        self.checks = ["true", "false"] * 10
        self.given: list[dict[str, Any]] = []
        self.holders: dict[int, list[int]] = {q: [] for q in range(self.questions)}
        self.mine: dict[int, set[int]] = defaultdict(set)
        self.met: dict[int, Counter[int]] = defaultdict(Counter)  #: common questions, by two people
        self.gone: set[int] = set()
        self.agreed = [self.dice.choice(["true", "false"]) for _ in range(self.questions)]  #: among colluders
        self.once: dict[int, str] = {}  #: what the person with two accounts says

    def answer(self, who: int, question: int) -> str:
        kind = self.people[who]
        truth = self.truth[question] if question < self.questions else self.checks[question - self.questions]
        right = truth if self.dice.random() < self.accuracy else {"true": "false", "false": "true"}[truth]
        if kind in ("true", "false"):
            return kind
        if kind == "bot":
            return ("true", "false")[question * 7919 % 13 % 2]
        if kind == "colluder" and question < self.questions:
            return self.agreed[question]
        if kind == "twin":
            return self.once.setdefault(question, right)
        return right if kind == "honest" else self.dice.choice(["true", "false"])

    def put(self, who: int, question: int) -> None:
        row = {"question": question, "annotator": str(who), "event": "answer", "comment": "", "turn": len(self.given)}
        row |= {"value": {"verdict": self.answer(who, question)}, "seconds": 3 + 4 * self.dice.random()}
        self.given.append(row | {"at": float(len(self.given)), "shown_order": None, "erased": None})
        if question < self.questions:
            for other in self.holders[question]:
                self.met[who][other] += 1
                self.met[other][who] += 1
            self.holders[question].append(who)
            self.mine[who].add(question)

    def work(self) -> None:
        """Everybody comes once, does a share, and comes again as long as there is something to do."""
        for arrived, who in enumerate(range(len(self.people)), 1):
            self._session(who, arrived, self.quota)
        self.fill()

    def fill(self) -> None:
        """Those who are not excluded answer what is still open, in turn."""
        before = -1
        while before != len(self.given):
            before = len(self.given)
            for who in self.dice.sample(range(len(self.people)), len(self.people)):
                if who not in self.gone:
                    self._session(who, len(self.people), 1)

    def _session(self, who: int, arrived: int, most: int) -> None:
        met = self.met[who]
        bound = depth(self.overlap, arrived, len(self.people))
        cap = pair_cap(self.questions, self.overlap, len(self.people))
        for _ in range(most):
            open_ = ((len(self.holders[q]), q) for q in range(self.questions) if q not in self.mine[who])
            shown = list(itertools.islice((one for one in open_ if one[0] < bound), CANDIDATES))
            ranked = preferred(shown, self.holders, met, cap)
            if not ranked:
                return
            self.put(who, ranked[0])
            done = len(self.mine[who])
            if done % EVERY == 0 and done // EVERY <= len(self.checks):
                self.put(who, self.questions + done // EVERY - 1)

    def exclude(self, people: set[int]) -> None:
        """Leave people out and give their questions to others."""
        self.gone |= people
        for question, holders in self.holders.items():
            self.holders[question] = [one for one in holders if one not in people]

    def record(self) -> dict[str, Any]:
        """The study as `annotate export` writes it."""

        def asked(n: int, kind: str, expected: Any) -> dict[str, Any]:
            row = {"ordinal": n, "kind": kind, "source": "b", "subset": "s", "item": str(n), "expected": expected}
            return row | {"payload": {"images": [f"{n}.png"], "caption": "", "true": None}}

        questions = [asked(n, "main", None) for n in range(self.questions)]
        questions += [asked(self.questions + n, "attention", {"verdict": v}) for n, v in enumerate(self.checks)]
        person = {"entry": "invited", "withdrawn": None}
        people = [
            {"annotator": str(n), "excluded": 1.0 if n in self.gone else None, **person}
            for n in range(len(self.people))
        ]
        about = {"task": TASK, "plan": {"overlap": self.overlap}, "decisions": []}
        return {**about, "questions": questions, "people": people, "answers": self.given}

    def wrong(self) -> int:
        """Verdicts of the majority that are not the truth."""
        task = task_named(TASK)
        verdicts = [settle(task, one).value for one in judged(self.record())]
        return sum(v is None or v["verdict"] != truth for v, truth in zip(verdicts, self.truth, strict=True))


def judge(study: Simulated, rounds: int = 3) -> None:
    """Exclude by the default rules and let others answer instead, as an owner does now and then."""
    study.work()
    for _ in range(rounds):
        out = {int(one["annotator"]) for one in ruled_out(StudySettings(), measured(study.record()))}
        if not out:
            return
        study.exclude(out)
        study.fill()


def wrong_alone(accuracy: float, questions: int) -> float:
    """How many majorities of honest people are wrong on average, with as many answers.

    >>> round(wrong_alone(0.95, 1000), 2)  # two or three of three: 3 · 0.05² · 0.95 + 0.05³
    7.25
    """
    n = OVERLAP[accuracy]
    wrong = range(n // 2 + 1, n + 1)
    return questions * sum(math.comb(n, k) * (1 - accuracy) ** k * accuracy ** (n - k) for k in wrong)


def scenario(name: str, accuracy: float, seeds: Sequence[int], quota: int = QUOTA) -> dict[str, Any]:
    """Mean figures of one scenario over seeds."""
    cheats = SCENARIOS[name]
    honest = ["honest"] * (20 if len(cheats) > 5 else 25 - len(cheats))
    wrong = excluded = caught = 0
    for seed in seeds:
        people = [*cheats, *honest]
        if "first" not in name:
            random.Random(seed).shuffle(people)
        study = Simulated(people, accuracy, seed, quota)
        judge(study)
        wrong += study.wrong()
        excluded += sum(people[n] == "honest" for n in study.gone)
        caught += sum(people[n] != "honest" for n in study.gone)
    counts = {"wrong": wrong / len(seeds), "wrong_alone": wrong_alone(accuracy, study.questions)}
    counts |= {"honest_excluded": excluded, "honest": len(honest) * len(seeds)}
    return {"scenario": name, "accuracy": accuracy, **counts, "caught": caught, "cheats": len(cheats) * len(seeds)}


def holds(row: dict[str, Any]) -> bool:
    """Whether a row keeps both bounds."""
    few = row["honest_excluded"] <= MOST_HONEST * row["honest"]
    return bool(few and row["wrong"] <= MOST_WRONG * row["wrong_alone"])


def main(say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    rows = [scenario(name, accuracy, seeds) for name in SCENARIOS for accuracy in OVERLAP]
    say(json.dumps(rows, indent=1))
    return 0 if all(map(holds, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
