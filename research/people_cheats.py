"""Studies with cheats in them: how many verdicts come out wrong, and who is excluded.

    python research/people_cheats.py --seeds 20 --write docs/results-studies.md
    python research/people_cheats.py --world varied --seeds 20 --first-seed 1000 --write docs/results-studies.md
    python research/people_cheats.py --world served --seeds 2 --write docs/results-studies.md

Questions are given out by the rules of `creperie.annotation.assignment` and judged by those of `quality`: whoever the
default rules exclude is replaced by others, and the verdict is the majority's. Prints one JSON document: wrong verdicts
beside those of honest people alone with the same number of answers, and how many honest people and cheats were
excluded. The exit code is 1 where a bound is missed: 1.5 times the wrong verdicts, 1 in 200 honest people excluded.

There are two worlds. In the plain one, where the rules' thresholds were chosen, all honest people are equally good and
all questions equally hard. The varied one checks them: people and questions differ, half of the people lapse for a
while, the shares of true captions, checks and answers per person are others, and so are the cheats' habits.

With `--world served`, simulated people open their links and answer through the real server, and the owner calls
`annotate apply` and `annotate exclude --rules` until nobody breaks a rule. Many of these people cheat, so the bound of
1.5 times is not expected to hold there: the table says where it does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.testclient import TestClient
from sqlalchemy import select

from creperie.annotation import (
    BrokenRulesError,
    Site,
    StudyPlan,
    apply_study,
    create_app,
    exclude_by_rules,
    invite,
    open_database,
    store_study,
    study_named,
    study_record,
)
from creperie.annotation.assignment import CANDIDATES, depth, pair_cap, preferred
from creperie.annotation.outcome import judged, settle
from creperie.annotation.quality import rule_breakers
from creperie.annotation.schema import Question
from creperie.annotation.tasks import task_named
from creperie.bench import Item, choice, from_items


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
        met, people = self.met[who], len(self.people) - len(self.gone)  # as the server counts them
        bound = depth(self.overlap, arrived, people)
        cap = pair_cap(self.questions, self.overlap, people)
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


def judge(study: Simulated, rounds: int = 9) -> None:
    """Exclude by the default rules and let others answer instead, until nobody breaks a rule."""
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


# -- through the server ------------------------------------------------------------------------------------------------

CHEATS = ("guess", "guess", "guess", "guess", "collude", "collude", "collude", "true", "true")
TARGETED = tuple("target" if kind == "collude" else kind for kind in CHEATS)
#: People by name of the row: 12 honest ones and nine cheats; three times as many honest ones; colluders who are honest
#: except on a third of the questions, on which all of them say what is wrong.
MIXES: dict[str, tuple[str, ...]] = {
    "12 honest, 4 who guess, 3 colluders, 2 who always say true": ("honest",) * 12 + CHEATS,
    "the same, colluders wrong on agreed questions only": ("honest",) * 12 + TARGETED,
    "36 honest, the 9 cheats of the first row": ("honest",) * 36 + CHEATS,
}
ANSWERS, PER_QUESTION, CHECKS = 30, 3, 3
#: The rows of the table: a mix, and how often honest people are right.
ROWS = [(name, 0.9) for name in MIXES] + [(name, 0.97) for name in list(MIXES)[:2]]
OPPOSITE = {"true": "false", "false": "true"}


def _question(reply: Any) -> Any:
    """The question in a reply of the server; None if there is none, or if the person was excluded."""
    assert reply.status_code in (200, 401), reply.text
    return reply.json()["question"] if reply.status_code == 200 else None


@dataclass
class Served:
    """A study on the real server: its people answer in turn, through their links and the annotators' API."""

    kinds: Sequence[str]
    accuracy: float
    seed: int
    folder: Path
    answers: int = ANSWERS  #: per person, if all come to the end

    def __post_init__(self) -> None:
        self.dice, self.given = random.Random(f"{self.seed} {len(self.kinds)}"), list[str]()  # keys of answers
        self.kinds = self.dice.sample(self.kinds, len(self.kinds))
        count = len(self.kinds) * self.answers // PER_QUESTION + 5  # checks are made of five items
        words = ["".join("abcdefghij"[int(digit)] for digit in f"{n:04}") for n in range(count)]
        captions = [(f"yes{word}", f"no{word}") for word in words]
        items = [Item(str(n), "s", (f"{n}.png",), pair, choice(1, 1)) for n, pair in enumerate(captions)]
        self.bench = from_items("simulated", items)
        self.db = open_database(self.folder / f"{self.seed}.db")
        plan = StudyPlan("foil-check", overlap=PER_QUESTION, practice=0, attention=CHECKS)
        store_study(self.db, "s", self.bench, plan, pictures=False)
        self.app = create_app(Site(self.db))
        invitations = invite(self.db, "s", len(self.kinds))
        self.kind_of = {one.pseudonym: kind for one, kind in zip(invitations, self.kinds, strict=True)}
        with self.db.read() as session:
            questions = session.scalars(select(Question)).all()
        self.truth = {q.payload["caption"]: (q.expected or {}).get("verdict") for q in questions}
        main = sorted(caption for caption, known in self.truth.items() if known is None)
        self.truth |= {caption: "true" if self.dice.random() < 0.3 else "false" for caption in main}
        self.agreed = {caption: self.dice.choice(["true", "false"]) for caption in main}
        self.targets = set(self.dice.sample(main, len(main) // 3))
        self.desks = [(self._open(one.token), kind) for one, kind in zip(invitations, self.kinds, strict=True)]

    def _open(self, token: str) -> Any:
        client = TestClient(self.app, base_url="http://127.0.0.1", follow_redirects=False)
        client.headers["accept"] = "text/html"

        def csrf(path: str) -> str:
            return re.findall(r'name="csrf" content="([^"]+)"', client.get(path).text)[0]

        client.post(f"/join/{token}", data={"csrf": csrf(f"/join/{token}")})
        client.headers["X-CSRF-Token"] = csrf("/work")
        return client

    def verdict(self, kind: str, caption: str) -> str:
        truth = self.truth[caption]
        honest = truth if self.dice.random() < self.accuracy else OPPOSITE[truth]
        if kind == "target" and caption in self.targets:
            return OPPOSITE[truth]
        guess = self.dice.choice(["true", "false"])
        return {"true": "true", "guess": guess, "collude": self.agreed.get(caption, honest)}.get(kind, honest)

    def work(self) -> None:
        """Everybody answers one question at a time, in turn, until nobody has anything to do."""
        before = -1
        while before != (before := len(self.given)):  # what others leave open may be theirs later
            left = [(client, kind, client.post("/api/next", json={})) for client, kind in self.desks]
            while left := [(client, kind, reply) for client, kind, reply in left if _question(reply)]:
                self.dice.shuffle(left)
                left = [(client, kind, self._answer(client, kind, _question(reply))) for client, kind, reply in left]

    def _answer(self, client: Any, kind: str, question: Mapping[str, Any]) -> Any:
        fields = {"verdict": self.verdict(kind, dict(question["texts"])["Caption"])}
        self.given.append(f"{self.dice.getrandbits(64):016x}")
        return client.post("/api/answer", json={"slot": question["slot"], "key": self.given[-1], "fields": fields})

    def wrong(self) -> int:
        """Verdicts of the majority that are not the truth; a question without a verdict is wrong."""
        with self.db.read() as session:
            questions = judged(study_record(session, study_named(session, "s")))
        verdicts = [(settle(task_named("foil-check"), one).value or {}).get("verdict") for one in questions]
        return sum(v != self.truth[one.payload["caption"]] for v, one in zip(verdicts, questions, strict=True))

    def rounds(self) -> tuple[list[int], Counter[str]]:
        """Let people work, and exclude by the rules until the study can be applied: wrong verdicts before the first
        exclusion and after each, and how many of each kind were excluded.
        """
        self.work()
        wrong, gone = [self.wrong()], Counter[str]()
        while True:
            try:
                apply_study(self.db, "s", self.bench)
                return wrong, gone
            except BrokenRulesError:
                gone.update(self.kind_of[one["annotator"]] for one in exclude_by_rules(self.db, "s"))
            self.work()
            wrong.append(self.wrong())


def served(name: str, accuracy: float, seeds: range, answers: int = ANSWERS) -> dict[str, Any]:
    """Mean figures of a mix of people on the server, beside those of honest people alone, who are equally good."""
    kinds, runs = MIXES[name], []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            study = Served(kinds, accuracy, seed, Path(folder), answers)
            runs.append(study.rounds())
            study.db.close()
    questions, honest = len(kinds) * answers // PER_QUESTION, kinds.count("honest")
    means = [statistics.fmean(wrong[min(place, len(wrong) - 1)] for wrong, _ in runs) for place in (0, 1, 10**6)]
    excluded = sum((gone for _, gone in runs), Counter[str]())
    return {
        "people": name,
        "accuracy": accuracy,
        "questions": questions,
        **dict(zip(("as_is", "one_round", "wrong"), means, strict=True)),
        "wrong_alone": wrong_alone(accuracy, questions, PER_QUESTION),
        "caught": excluded.total() - excluded["honest"],
        "cheats": (len(kinds) - honest) * len(seeds),
        "honest_excluded": excluded["honest"],
        "honest": honest * len(seeds),
        "rounds": max(len(wrong) - 1 for wrong, _ in runs),
    }


# -- tables ------------------------------------------------------------------------------------------------------------

SHOWN = ("random", "5 of 25", "9 of 29")
WORDS = {"random": "three who answer at random", "9 of 29": "9 of 29 (one more at random, three colluders)"}
WORDS["5 of 25"] = "5 of 25 (random, one side, bot, two accounts)"


def _excluded(row: Mapping[str, Any]) -> list[str]:
    return [f"{row['caught']} of {row['cheats']}", f"{row['honest_excluded']} of {row['honest']}"]


def simulated_table(rows: Sequence[Mapping[str, Any]], world: str) -> list[str]:
    """Lines of the table of a simulated world, by accuracy."""
    cells = [
        [f"{100 * row['accuracy']:.0f} %", WORDS[row["scenario"]], f"{row['wrong']:.1f}", f"{row['wrong_alone']:.1f}"]
        + _excluded(row)
        for row in sorted(rows, key=lambda row: row["accuracy"])
        if row["scenario"] in SHOWN
    ]
    return _table((f"{world} world: right", "cheats", "wrong", "honest alone", *EXCLUDED), cells)


EXCLUDED = ("cheats excluded", "honest excluded")


def served_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of the table of mixes on the server."""
    cells = []
    for row in rows:
        times = f"{row['wrong'] / row['wrong_alone']:.1f}"
        counts = [f"{row[name]:.1f}" for name in ("as_is", "one_round", "wrong", "wrong_alone")]
        cells.append(
            [row["people"], f"{100 * row['accuracy']:.0f} %", str(row["questions"]), *counts, times, *_excluded(row)]
        )
    head = ("people", "right", "questions", "wrong as is", "after one round", "after all", "honest alone", "times")
    return _table((*head, *EXCLUDED), cells)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def write_between(path: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the two marks of a table."""
    text, table = path.read_text(encoding="utf-8"), "\n".join((f"<!-- {name} -->", *lines, f"<!-- /{name} -->"))
    new, n = re.subn(rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _: table, text, flags=re.S)
    if n != 1:
        sys.exit(f"{path} has no marks for the table {name!r}")
    path.write_text(new, encoding="utf-8")


def main(say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--world", choices=[*WORLDS, "served"], default="plain")
    parser.add_argument("--answers", type=int, default=ANSWERS, help="per person, if served")
    parser.add_argument("--only", nargs="*", help="these scenarios; if served, these rows, from 0")
    parser.add_argument("--write", type=Path, help="write the table between its marks in this file")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.world == "served":
        wanted = [ROWS[int(n)] for n in options.only] if options.only else ROWS
        rows = []
        for name, accuracy in wanted:
            rows.append(served(name, accuracy, seeds, options.answers))
            print(rows[-1], file=sys.stderr, flush=True)
        lines = served_table(rows)
    else:
        world = WORLDS[options.world]
        rows = [scenario(name, acc, seeds, world) for name in options.only or SCENARIOS for acc in world.overlap]
        lines = simulated_table(rows, options.world)
    say(json.dumps(rows, indent=1))
    if options.write:
        write_between(options.write, f"cheats {options.world}", lines)
    return 0 if options.world == "served" or all(map(holds, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
