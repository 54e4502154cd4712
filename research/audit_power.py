"""Do audits find and clear what `creperie power` says, and how often do they raise false alarms?

Real captions (SugarCrepe's), every item with an image of its own, roles drawn at random: sets without a leak, and sets
with a word planted in one caption of every pair. Each set is attacked and judged as by an audit, and the shares are
put beside what `power` predicts. Not a test: run it when a verdict, an attacker or the sampling changes.

    python research/audit_power.py --captions DIR --prepare SCORES    # once, where the models of the battery are
    python research/audit_power.py --captions DIR --scores SCORES --sets 200 --few 40 --workers 16 --save FILE
    python research/audit_power.py --from FILE --write                # the table of docs/results-intervals.md

What a language model and an encoder say about a caption does not depend on its role, so it is computed once, and the
machine of the second command needs neither torch nor the models. `whole` runs the standard battery in steps, on a
sample, as `creperie audit` does. Without `--scores` its rows are left out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread for each of the workers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from creperie.auditing import AttackerModels, Pairs, corrected, make_attackers, pairs_of, planned_battery
from creperie.auditing.pairs import ArrowTexts
from creperie.auditing.run import Attack
from creperie.auditing.verdict import ALL, AuditRow, Measurements, judge
from creperie.bench import load
from creperie.core import silent
from creperie.metrics import wilson

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results-intervals.md"
BEGIN, END = "<!-- audits: begin -->", "<!-- audits: end -->"
#: Attackers that take milliseconds; `cues` is part of every audit.
CHEAP = ("length-words", "length-chars", "surface", "negation", "frequency", "rarity", "similarity")
BATTERIES = {
    "tutorial": ("length-words", "surface", "negation"),
    "cheap": CHEAP,
    "quick": (*CHEAP, "ngram-3", "ngram-4", "ngram-5", "cooccurrence", "learned-linear"),
    "whole": (),
}


@dataclass(frozen=True)
class Row:
    """A row of the table: so many items, attacked by one battery; `right` is how often a planted word is right."""

    kind: str
    battery: str
    items: int
    word: str
    right: float = 0.5


ROWS = (
    Row("no leak", "tutorial", 150, "leaks"),
    Row("no leak", "cheap", 600, "leaks"),
    Row("no leak", "cheap", 1000, "clean"),
    Row("no leak", "quick", 2000, "clean"),
    Row("no leak", "whole", 3000, "clean"),
    Row("a word, right on 60 %", "cheap", 300, "leaks", 0.4),
    Row("a word, right on 60 %", "cheap", 450, "leaks", 0.4),
    Row("a word, right on 60 %", "quick", 450, "leaks", 0.4),
)


def null_set(pairs: Pairs, size: int, rng: np.random.Generator) -> Pairs:
    """So many items, each with an image of its own and roles drawn at random."""
    keep = np.zeros(pairs.n_items, dtype=bool)
    keep[rng.permutation(pairs.n_items)[:size]] = True
    some = pairs.of_items(keep)
    turned = rng.random(len(some)) < 0.5
    left, right = np.where(turned, some.right, some.left), np.where(turned, some.left, some.right)
    one = {"subset": np.zeros(size, np.int64), "subsets": ("mixed",), "cluster": np.arange(size)}
    return replace(some, left=left, right=right, **one)


def planted(pairs: Pairs, right: float, rng: np.random.Generator) -> Pairs:
    """The word "now" after the first of one caption of every pair: the true one in so many cases."""
    import pyarrow as pa

    texts = [[*pairs.captions_at(side)] for side in (pairs.left, pairs.right)]
    for k, true in enumerate(rng.random(len(pairs)) < right):
        first, _, rest = texts[0 if true else 1][k].partition(" ")
        texts[0 if true else 1][k] = f"{first} now {rest}"
    everything = ArrowTexts(pa.array([*texts[0], *texts[1]]))
    return replace(pairs, texts=everything, left=np.arange(len(pairs)), right=np.arange(len(pairs)) + len(pairs))


class Told:
    """A language model and an encoder that know the captions of a file by heart."""

    def __init__(self, file: str) -> None:
        with np.load(file) as known:
            self.at = {text: k for k, text in enumerate(known["texts"].tolist())}
            self.values = {name: known[name].astype(np.float32) for name in ("mean", "sum", "vectors")}

    @property
    def model(self) -> Told:
        return self

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        raise NotImplementedError  # its presence says that means and sums of log-probabilities can be had

    def likelihoods(self, texts: Sequence[str], reduce: str) -> np.ndarray:
        return self.values[reduce][[self.at[text] for text in texts]]

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.values["vectors"][[self.at[text] for text in texts]]


@cache
def told(file: str) -> Told:
    return Told(file)


def models_for(scores: str) -> AttackerModels:
    if not scores:  # also for planted words, which the models were not asked about
        return AttackerModels()
    models = AttackerModels(lm="lm:told", encoder="st:told")
    models.__dict__.update(language_model=told(scores), text_encoder=told(scores))  # where cached properties are kept
    return models


def prepare(captions: str, file: str) -> None:
    """Write what the models of the standard battery say about every caption."""
    models, texts = AttackerModels(), sorted(set(singles(captions).texts))
    scores = {reduce: models.language_model.likelihoods(texts, reduce) for reduce in ("mean", "sum")}
    vectors = models.text_encoder.encode_texts(texts).astype(np.float16)  # half the size; nothing here is so exact
    np.savez_compressed(file, texts=np.array(texts), vectors=vectors, **scores)


@cache
def singles(captions: str) -> Pairs:
    everything = pairs_of(load(f"sugarcrepe:{captions}"))
    return everything.of_items(everything.per_item == 1)


def audited(pairs: Pairs, row: Row, scores: str) -> tuple[str, list[AuditRow]]:
    names = [entry.name for entry in planned_battery(BATTERIES[row.battery])]
    attack = Attack(tuple(make_attackers(names, models_for(scores if row.battery == "whole" else ""))), 0, 0.55, silent)
    pairs = attack.counted(pairs)
    rows = attack.in_steps(pairs, str)[1] if row.battery == "whole" else attack.on(pairs)[0]
    rows = [found for found in corrected(rows, 0.55) if found.subset != ALL]
    return judge(Measurements("mixed", pairs.n_items, tuple(rows))).verdict, rows


def one_audit(captions: str, scores: str, at: int, seed: int) -> tuple[int, int, bool, str, float]:
    """Return whether one simulated audit ends as its row asks; what decided it; and its processor time."""
    row, begun = ROWS[at], time.process_time()
    rng = np.random.default_rng([seed, row.items, len(BATTERIES[row.battery])])
    some = null_set(singles(captions), row.items, rng)
    verdict, found = audited(planted(some, row.right, rng) if row.right != 0.5 else some, row, scores)
    named = any(r.leaks and "now" in r.cue for r in found)
    widest = max(found, key=lambda r: max(r.measure.high, 1 - r.measure.low))
    seen = verdict == row.word and (named or row.right == 0.5)
    return at, seed, seen, f"{verdict} {widest.attacker}", time.process_time() - begun


def predicted(at: int) -> float | None:
    """Return the share that `power` predicts."""
    from creperie.statistics import power

    row = ROWS[at]
    if row.right == 0.5 and row.word != "clean":
        return None
    plan = {"accuracy": max(row.right, 1 - row.right), "simulations": 400, "target": 0.0}
    claim = {"clean": "clean", "leaks": "leak"}[row.word]
    return power(claim, items=row.items, attackers=BATTERIES[row.battery], **plan).power


def simulated(chosen: argparse.Namespace) -> dict[str, dict]:
    """Run all audits and predictions, the long ones first; the result can be read as JSON."""
    done: dict[str, dict] = {}
    tasks = []
    for at in sorted(range(len(ROWS)), key=lambda k: -ROWS[k].items):
        count = chosen.few if ROWS[at].battery in ("quick", "whole") else chosen.sets
        if ROWS[at].battery == "whole" and not chosen.scores:
            count = 0
        if count and chosen.only in f"{ROWS[at].kind}, {ROWS[at].battery}":
            done[str(at)] = {"seen": [], "decided": [], "seconds": [], "says": None}
            tasks += [(at, seed) for seed in range(count)]
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(one_audit, chosen.captions, chosen.scores, *task) for task in tasks]
        saying = {at: pool.submit(predicted, int(at)) for at in done}
        for k, future in enumerate(as_completed(running), 1):
            at, seed, seen, decided, seconds = future.result()
            for name, value in (("seen", bool(seen)), ("decided", decided), ("seconds", round(seconds, 2))):
                done[str(at)][name].append(value)
            print(f"{k} of {len(running)}: {ROWS[at]} {seed} {seen} {decided} {seconds:.1f} s", flush=True)
            if chosen.save:
                Path(chosen.save).write_text(json.dumps(done), encoding="utf-8")
        for at, said in saying.items():
            done[at]["says"] = said.result()
    if chosen.save:
        Path(chosen.save).write_text(json.dumps(done), encoding="utf-8")
    return done


def share(seen: Sequence[bool]) -> str:
    low, high = wilson(sum(seen), len(seen))
    return f"{100 * np.mean(seen):.1f} % ({100 * low:.0f} to {100 * high:.0f})"


def table(done: dict[str, dict], before: str = "") -> str:
    """Return the table; rows that were not run, or not to the end, are those of the table before."""
    lines = ["| sets | attackers | items | audits | verdict | `power` says |", "|---|---|---:|---:|---|---|"]
    for at, row in enumerate(ROWS):
        begin = f"| {row.kind} | {row.battery} | {row.items:,} | "
        if not (found := done.get(str(at), {})).get("seen"):
            lines += [line for line in before.splitlines() if line.startswith(begin)]
            continue
        said = predicted(at) if found["says"] is None else found["says"]
        says = "" if said is None else f"{100 * said:.0f} %"
        lines.append(f"{begin}{len(found['seen'])} | {row.word}: {share(found['seen'])} | {says} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--captions", default="", help="a folder with SugarCrepe's files")
    parser.add_argument("--prepare", default="", help="write what the models say about every caption into this file")
    parser.add_argument("--scores", default="", help="such a file, for the rows of the whole battery")
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--few", type=int, default=40, help="sets for attackers that learn")
    parser.add_argument("--only", default="", help="run the rows of these sets only, such as 'no leak, cheap'")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--save", default="", help="write what was found into this file, as JSON")
    parser.add_argument("--from", dest="source", nargs="+", default=[], help="make the table from such files")
    parser.add_argument("--write", action="store_true", help="write the table into docs/results-intervals.md")
    chosen = parser.parse_args()
    if chosen.prepare:
        return prepare(chosen.captions, chosen.prepare)
    done: dict[str, dict] = {}
    for file in chosen.source:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
        done |= {at: found for at, found in read.items() if found["seen"]}
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""  # where it only simulates, there may be none
    before, _, rest = page.partition(BEGIN)
    old, _, rest = rest.partition(END)
    text = table(done if chosen.source else simulated(chosen), old)
    print(text)
    if chosen.write:
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
