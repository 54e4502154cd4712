"""Write the figures of docs/twins.md from the mined benchmarks, the readings and the measurements.

    python benchmarks/twins_figures.py --flickr8k DIR --vsr DIR [--page docs/twins.md]

Tables stand between `<!-- NAME -->` and `<!-- end -->` in the page; everything else of it is left alone.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from creperie.auditing import symmetry_of
from creperie.bench import load
from creperie.core import write_text
from creperie.making.twins_typing import KINDS
from creperie.metrics import wilson

READINGS = Path("docs/readings")
LEARNED = {
    "learned-embedding": "on MiniLM's vectors",
    "learned-boosted": "boosted trees",
    "lm-mean": "SmolLM2-135M",
    "finetuned": "fine-tuned MiniLM",
}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def mined(folders: dict[str, str]) -> str:
    rows = []
    for name, folder in folders.items():
        bench = load(folder)
        counts = Counter((item.subset, item.tags["evidence"]) for item in bench)
        for kind in KINDS:
            levels = [counts[kind, level] for level in ("certain", "likely")]
            if sum(levels):
                rows.append([name, f"`{kind}`", *map(str, levels)])
        total = [sum(n for (_, at), n in counts.items() if at == level) for level in ("certain", "likely")]
        balanced = "balanced by design" if symmetry_of(bench).balanced else "NOT balanced"
        rows.append([f"**{name}**", f"**{len(bench)} twins, {balanced}**", *[f"**{n}**" for n in total]])
    return table(["corpus", "kind", "certain", "likely"], rows)


def readings() -> str:
    rows = []
    for path in sorted(READINGS.glob("twins-*-[0-9].json")):
        counts = json.loads(path.read_text())["counts"]
        n = sum(counts.values())
        low, high = wilson(counts["valid"], n)
        interval = f"{100 * low:.0f}–{100 * high:.0f}"
        rows.append([f"`{path.stem}`", *[str(counts[v]) for v in ("valid", "doubtful", "invalid")], interval])
    return table(["reading", "valid", "doubtful", "invalid", "95 % interval of valid"], rows)


def shares(name: str, part: str | None, columns: tuple[str, ...]) -> str:
    found = json.loads((READINGS / f"{name}.json").read_text())
    rows = []
    for r in found[part] if part else found:
        share = f"{100 * r['share']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})"
        rows.append([*[str(r[c]) for c in columns], f"{r['false']} of {r['n']}", share])
    return table([*(c.replace("_", " ") for c in columns), "false", "share, %"], rows)


def audits(paths: list[Path]) -> str:
    rows = []
    for path in paths:
        if not path.exists() or not path.stat().st_size:
            continue
        found = json.loads(path.read_text())
        best: dict[str, dict[str, float]] = {}
        for r in found["results"]:
            if r["subset"] != "all" and r["accuracy"] > best.get(r["attacker"], {"accuracy": -1.0})["accuracy"]:
                best[r["attacker"]] = r
        said = ", ".join(
            f"{name} {100 * r['accuracy']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})" for name, r in best.items()
        )
        bound = next(s for s in found["symmetry"] if s["subset"] == "all")["text"]["bound"]
        rows.append([found["benchmark"], str(found["items"]), said, f"{100 * bound:.1f}"])
    return table(["benchmark", "items", "attackers, % on their best subset", "captions alone, at most %"], rows)


def learned(paths: list[Path]) -> str:
    """One row per audit and subset: attackers that learn, on part of a benchmark."""
    rows = []
    for path in paths:
        found = json.loads(path.read_text())
        own = [r for r in found["results"] if r["subset"] != "all"]
        for subset in dict.fromkeys(r["subset"] for r in own):
            cells = {
                r["attacker"]: f"{100 * r['accuracy']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})"
                for r in own
                if r["subset"] == subset
            }
            n = str(next(r["n"] for r in own if r["subset"] == subset))
            rows.append([found["benchmark"], f"`{subset}`", n, *[cells.get(name, "not run") for name in LEARNED]])
    return table(["benchmark", "subset", "items", *LEARNED.values()], rows)


def scored(paths: list[Path]) -> str:
    """Text, image and group score of each model, from what `creperie score --json` wrote."""
    rows = []
    for path in paths:
        found = json.loads(path.read_text())
        for run in found.get("runs", [found]):
            own = {r["task"]: r for r in run["results"] if r["subset"] == "all"}
            for task, name in (("itt", "text"), ("t2i", "image"), ("group", "group")):
                r = own[task]
                share = f"{100 * r['accuracy']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})"
                rows.append([run["model"], name, str(r["n"]), share, f"{100 * r['chance']:.1f}"])
    return table(["model", "score", "n", "%", "chance"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flickr8k", required=True)
    parser.add_argument("--vsr", required=True)
    parser.add_argument("--audits", nargs="*", type=Path, default=[], help="what `creperie audit --json` wrote")
    parser.add_argument("--learned", nargs="*", type=Path, default=[], help="the same, of attackers that learn")
    parser.add_argument("--scored", nargs="*", type=Path, default=[], help="what `creperie score --json` wrote")
    parser.add_argument("--page", type=Path, default=Path("docs/twins.md"))
    asked = parser.parse_args()
    parts = {
        "mined": mined({"Flickr8k": asked.flickr8k, "VSR": asked.vsr}),
        "readings": readings(),
        "judged": shares("twins-judged", "mined", ("kind", "level", "judged_by")),
        "near": shares("twins-judged", "near", ("kind", "level", "judged_by")),
        "labels": shares("twins-vsr-labels", None, ("rule",)),
    }
    for name, write in (("audits", audits), ("learned", learned), ("scored", scored)):
        if given := getattr(asked, name):  # without files, what the page has stays
            parts[name] = write(given)
    text = asked.page.read_text(encoding="utf-8")
    for name, part in parts.items():
        start, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition("<!-- end -->")
        text = f"{start}<!-- {name} -->\n\n{part}\n\n<!-- end -->{after}"
    write_text(asked.page, text)


if __name__ == "__main__":
    main()
