"""Studies with cheats in them: how many verdicts come out wrong, and who is excluded.

    python research/people_cheats.py --seeds 20
    python research/people_cheats.py --world varied --first-seed 1000

Questions are given out by the rules of `creperie.annotation.assignment` and judged by those of `quality`: whoever the
default rules exclude is replaced by others, and the verdict is the majority's. Prints one JSON document: wrong verdicts
beside those of honest people alone with the same number of answers, and how many honest people and cheats were
excluded. The exit code is 1 where a bound is missed: 1.5 times the wrong verdicts, 1 in 200 honest people excluded.

There are two worlds. In the plain one, where the rules' thresholds were chosen, all honest people are equally good and
all questions equally hard. The varied one checks them: people and questions differ, half of the people lapse for a
while, the shares of true captions, checks and answers per person are others, and so are the cheats' habits.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.annotation.assignment import CANDIDATES, depth, pair_cap, preferred
from creperie.annotation.outcome import judged, settle
from creperie.annotation.quality import rule_breakers
from creperie.annotation.tasks import task_named


@dataclass(frozen=True, eq=False)
class World:
    """How simulated people and questions are: `overlap` is the number of answers per question, by mean accuracy."""

    overlap: Mapping[float, int]
    quota: int = 48  #: answers that everybody is asked for at first
    every: int = 10  #: one check comes after so many questions
    share_true: float = 0.3
    spread: float = 0.0  #: standard deviation of people's ability, in log-odds of a right answer
    hardness: float = 0.0  #: standard deviation of the questions' difficulty, in log-odds
    lapse: int = 0  #: half of the honest people guess so many answers in a row
    guess_true: float = 0.5  #: how often people who guess say "true"
    bot: int = 13  #: what the bot divides its numbers by


WORLDS = {
    "plain": World({0.85: 5, 0.95: 3}),
    "varied": World({0.80: 5, 0.90: 5, 0.97: 3}, 40, 8, 0.45, 0.4, 0.8, 5, 0.65, 11),
}
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
    world: World

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.overlap, self.quota = self.world.overlap[self.accuracy], self.world.quota
        self.questions = len(self.people) * self.quota // self.overlap
        share = self.world.share_true
        self.truth = ["true" if self.dice.random() < share else "false" for _ in range(self.questions)]
        self.checks = ["true", "false"] * 10
        nature = random.Random(f"nature {self.seed}")
        self.ability = [nature.gauss(0, self.world.spread) for _ in self.people]
        self.ease = [nature.gauss(0, self.world.hardness) for _ in (*self.truth, *self.checks)]
        self.usual = level(self.accuracy, math.hypot(self.world.spread, self.world.hardness))
        self.lapses = [nature.randrange(2 * self.quota) if self.world.lapse else math.inf for _ in self.people]
        self.given: list[dict[str, Any]] = []
        self.holders: dict[int, list[int]] = {q: [] for q in range(self.questions)}
        self.unfilled = list(self.holders)  #: questions that still lack answers
        self.mine: dict[int, set[int]] = defaultdict(set)
        self.met: dict[int, Counter[int]] = defaultdict(Counter)  #: common questions, by two people
        self.gone: set[int] = set()
        self.agreed = [self.dice.choice(["true", "false"]) for _ in range(self.questions)]  #: among colluders
        self.once: dict[int, str] = {}  #: what the person with two accounts says

    def guess(self) -> str:
        return "true" if self.dice.random() < self.world.guess_true else "false"

    def honest_answer(self, who: int, question: int) -> str:
        """The right answer, as often as the person's ability and the question's ease say; a guess in a lapse."""
        if 0 <= len(self.mine[who]) - self.lapses[who] < self.world.lapse:
            return self.guess()
        truth = self.truth[question] if question < self.questions else self.checks[question - self.questions]
        right = self.dice.random() < 1 / (1 + math.exp(-self.usual - self.ability[who] - self.ease[question]))
        return truth if right else {"true": "false", "false": "true"}[truth]

    def answer(self, who: int, question: int) -> str:
        kind, right = self.people[who], self.honest_answer(who, question)
        if kind in ("true", "false"):
            return kind
        if kind == "bot":
            return ("true", "false")[question * 7919 % self.world.bot % 2]
        if kind == "colluder" and question < self.questions:
            return self.agreed[question]
        if kind == "random":
            return self.guess()
        return self.once.setdefault(question, right) if kind == "twin" else right

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
            if len(self.holders[question]) >= self.overlap:
                self.unfilled.remove(question)

    def work(self) -> None:
        """Everybody comes once, does a share, and comes again as long as there is something to do."""
        for who, question in first_visits(len(self.people), self.accuracy, self.world):
            self.put(who, question)
        self.fill()

    def fill(self) -> None:
        """Those who are not excluded answer what is still open, in turn."""
        before = -1
        while before != len(self.given):
            before = len(self.given)
            for who in self.dice.sample(range(len(self.people)), len(self.people)):
                if who not in self.gone:
                    self.visit(who, len(self.people), 1)

    def visit(self, who: int, arrived: int, most: int) -> None:
        met = self.met[who]
        bound = depth(self.overlap, arrived, len(self.people))
        cap = pair_cap(self.questions, self.overlap, len(self.people))
        for _ in range(most):
            open_ = ((len(self.holders[q]), q) for q in self.unfilled if q not in self.mine[who])
            shown = list(itertools.islice((one for one in open_ if one[0] < bound), CANDIDATES))
            meetings = {q: [met[other] for other in self.holders[q]] or [0] for _, q in shown}
            ranked = preferred(shown, {q: (max(own), sum(own)) for q, own in meetings.items()}, cap)
            if not ranked:
                return
            self.put(who, ranked[0])
            done = len(self.mine[who])
            number, rest = divmod(done, self.world.every)
            if not rest and number <= len(self.checks):
                self.put(who, self.questions + number - 1)

    def exclude(self, people: set[int]) -> None:
        """Leave people out and give their questions to others."""
        self.gone |= people
        for question, holders in self.holders.items():
            self.holders[question] = [one for one in holders if one not in people]
        self.unfilled = [q for q, holders in self.holders.items() if len(holders) < self.overlap]

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
        about = {"task": TASK, "plan": {"overlap": self.overlap}, "decisions": [], "revisions": [{"settings": {}}]}
        return {**about, "questions": questions, "people": people, "answers": self.given}

    def wrong(self) -> int:
        """Verdicts of the majority that are not the truth."""
        task = task_named(TASK)
        verdicts = [settle(task, one).value for one in judged(self.record())]
        return sum(v is None or v["verdict"] != truth for v, truth in zip(verdicts, self.truth, strict=True))


@cache
def first_visits(people: int, accuracy: float, world: World) -> list[tuple[int, int]]:
    """Return who gets which question at their first visit: that depends on who was there before, not on answers."""
    study = Simulated(["honest"] * people, accuracy, 0, world)
    for who in range(people):
        study.visit(who, who + 1, study.quota)
    return [(int(row["annotator"]), row["question"]) for row in study.given]


def judge(study: Simulated, rounds: int = 3) -> None:
    """Exclude by the default rules and let others answer instead, as an owner does now and then."""
    study.work()
    for _ in range(rounds):
        out = {int(one["annotator"]) for one in rule_breakers(study.record())}
        if not out:
            return
        study.exclude(out)
        study.fill()


def level(accuracy: float, spread: float) -> float:
    """The mean log-odds at which people and questions that vary so much are right with this mean accuracy.

    >>> round(level(0.75, 0.0), 4), round(level(0.75, 1.0), 4)
    (1.0986, 1.3149)
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    low, high = -10.0, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        mean = float(weights @ (1 / (1 + np.exp(-middle - spread * nodes)))) / float(weights.sum())
        low, high = (middle, high) if mean < accuracy else (low, middle)
    return low


def wrong_alone(accuracy: float, questions: int, n: int) -> float:
    """How many majorities of `n` honest people, all equally good, are wrong on average.

    >>> round(wrong_alone(0.95, 1000, 3), 2)  # two or three of three: 3 · 0.05² · 0.95 + 0.05³
    7.25
    """
    wrong = range(n // 2 + 1, n + 1)
    return questions * sum(math.comb(n, k) * (1 - accuracy) ** k * accuracy ** (n - k) for k in wrong)


@cache
def wrong_without_cheats(people: int, accuracy: float, seeds: range, world: World) -> float:
    """The mean number of wrong verdicts when everybody is honest and nobody is excluded."""
    if not world.spread:
        return wrong_alone(accuracy, people * world.quota // world.overlap[accuracy], world.overlap[accuracy])
    studies = [Simulated(["honest"] * people, accuracy, seed, world) for seed in seeds]
    for study in studies:
        study.work()
    return sum(study.wrong() for study in studies) / len(seeds)


def scenario(name: str, accuracy: float, seeds: range, world: World = WORLDS["plain"]) -> dict[str, Any]:
    """Mean figures of one scenario over seeds."""
    cheats = SCENARIOS[name]
    honest = ["honest"] * (20 if len(cheats) > 5 else 25 - len(cheats))
    wrong = excluded = caught = 0
    for seed in seeds:
        people = [*cheats, *honest]
        if "first" not in name:
            random.Random(seed).shuffle(people)
        study = Simulated(people, accuracy, seed, world)
        judge(study)
        wrong += study.wrong()
        excluded += sum(people[n] == "honest" for n in study.gone)
        caught += sum(people[n] != "honest" for n in study.gone)
    alone = wrong_without_cheats(len(people), accuracy, seeds, world)
    counts = {"wrong": wrong / len(seeds), "wrong_alone": alone}
    counts |= {"honest_excluded": excluded, "honest": len(honest) * len(seeds)}
    return {"scenario": name, "accuracy": accuracy, **counts, "caught": caught, "cheats": len(cheats) * len(seeds)}


def holds(row: dict[str, Any]) -> bool:
    """Whether a row keeps both bounds."""
    few = row["honest_excluded"] <= MOST_HONEST * row["honest"]
    return bool(few and row["wrong"] <= MOST_WRONG * row["wrong_alone"])


def main(say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--world", choices=WORLDS, default="plain")
    options = parser.parse_args()
    world, seeds = WORLDS[options.world], range(options.first_seed, options.first_seed + options.seeds)
    rows = [scenario(name, accuracy, seeds, world) for name in SCENARIOS for accuracy in world.overlap]
    say(json.dumps(rows, indent=1))
    return 0 if all(map(holds, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
