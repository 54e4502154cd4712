"""Write the figures of research/results/twins.md from the mined benchmarks, the readings and the measurements.

    python research/twins_figures.py --flickr8k DIR --vsr DIR [--page research/results/twins.md]

Tables stand between `<!-- NAME -->` and `<!-- end -->` in the page; everything else of it is left alone.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from creperie.auditing import symmetry_of
from creperie.bench import load
from creperie.core import write_text
from creperie.metrics import wilson

READINGS = Path("research/readings")
RESULTS = Path("research/results/twins.json")
KINDS = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel", "number", "spatial")
NAMES = {"f8k": "Flickr8k twins", "vsr": "VSR twins"}


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


def captions_of_id(key: str) -> frozenset[str]:
    """An item by its two captions: the parts of its id, without the name of the file or split."""
    return frozenset(part.rpartition("/")[2] for part in key.split("+"))


def readings(folders: dict[str, str]) -> str:
    rows = []
    for corpus, folder in folders.items():
        now = {captions_of_id(item.id) for item in load(folder)}
        for path in sorted(READINGS.glob(f"twins-{corpus.lower()}-[0-9].json")):
            read = json.loads(path.read_text())
            n, counts = len(read["items"]), read["counts"]
            low, high = wilson(counts["valid"], n)
            still = [r["verdict"] == "valid" for r in read["items"] if captions_of_id(r["id"]) in now]
            seen = "words and labels" if "WITHOUT" in read["about"] else "both photographs"
            interval = f"{100 * low:.0f}–{100 * high:.0f}"
            counted = [str(counts[v]) for v in ("valid", "doubtful", "invalid")]
            rows.append([f"`{path.stem}`", seen, *counted, interval, f"{len(still)}, {sum(still)} valid"])
    return table(
        ["reading", "in view", "valid", "doubtful", "invalid", "95 % of valid", "of these in today's set"], rows
    )


def shares(name: str, part: str | None, columns: tuple[str, ...]) -> str:
    found = json.loads((READINGS / f"{name}.json").read_text())
    rows = []
    for r in found[part] if part else found:
        share = f"{100 * r['share']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})"
        rows.append([*[str(r[c]) for c in columns], f"{r['false']} of {r['n']}", share])
    return table([*(c.replace("_", " ") for c in columns), "false", "share, %"], rows)


def short(document: dict[str, Any]) -> dict[str, Any]:
    """What the tables need of `creperie audit --json`."""
    fields = ("subset", "attacker", "view", "n", "accuracy", "low", "high")
    found = {k: document[k] for k in ("benchmark", "items", "seconds", "limit") if k in document}
    found["results"] = [{k: r[k] for k in fields if k in r} for r in document["results"]]
    found["symmetry"] = {side: document["symmetry"][-1][side]["bound"] for side in ("text", "images")}
    return found


def kept(paths: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """Audits by benchmark, from `research/results` and, in place of those, from documents that are given."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        document = json.loads(path.read_text())
        found.setdefault(document["benchmark"], []).append(short(document))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if found:
        write_text(RESULTS, json.dumps(known | found, indent=1) + "\n")
    return known | found


def cell(r: dict[str, Any]) -> str:
    return f"{100 * r['accuracy']:.1f} ({100 * r['low']:.1f}–{100 * r['high']:.1f})"


def attackers(found: dict[str, list[dict[str, Any]]]) -> str:
    """One row per attacker, one column per benchmark: all its items, and of several views the weakest."""
    best: dict[str, dict[str, dict[str, Any]]] = {}
    for name, parts in found.items():
        for r in (r for part in parts for r in part["results"] if r["subset"] == "all"):
            row = best.setdefault(r["attacker"], {})
            if r["accuracy"] > row.get(name, {"accuracy": -1.0})["accuracy"]:
                row[name] = r
    rows = [[name, *[cell(row[b]) if b in row else "not run" for b in found]] for name, row in best.items()]
    for side, said in (("text", "captions alone, at most"), ("images", "images alone, at most")):
        rows.append([f"**{said}**", *[f"**{100 * parts[0]['symmetry'][side]:.1f}**" for parts in found.values()]])
    return table(["attacker", *[f"{NAMES.get(n, n)}, {parts[0]['items']:,}" for n, parts in found.items()]], rows)


def kinds(found: dict[str, list[dict[str, Any]]]) -> str:
    """Twins kind by kind: how far attackers are from one half."""
    rows = []
    for name in NAMES.keys() & found.keys():
        own: dict[str, list[dict[str, Any]]] = {}
        for r in (r for part in found[name] for r in part["results"]):
            own.setdefault(r["subset"], []).append(r)
        for kind, results in own.items():
            shares = sorted(100 * r["accuracy"] for r in results)
            holds = sum(r["low"] <= 0.5 <= r["high"] for r in results)
            low, high = min(100 * r["low"] for r in results), max(100 * r["high"] for r in results)
            span = f"{shares[0]:.1f} to {shares[-1]:.1f}"
            n = str(results[0]["n"])
            rows.append([NAMES[name], f"`{kind}`", n, span, f"{low:.1f}–{high:.1f}", f"{holds} of {len(results)}"])
    head = ["benchmark", "kind", "items", "attackers, % right", "all intervals within", "intervals that hold 50 %"]
    return table(head, sorted(rows, key=lambda row: row[0]))


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
    parser.add_argument("--scored", nargs="*", type=Path, default=[], help="what `creperie score --json` wrote")
    parser.add_argument("--page", type=Path, default=Path("research/results/twins.md"))
    asked = parser.parse_args()
    parts = {
        "mined": mined({"Flickr8k": asked.flickr8k, "VSR": asked.vsr}),
        "readings": readings({"Flickr8k": asked.flickr8k, "VSR": asked.vsr}),
        "judged": shares("twins-judged", "mined", ("kind", "level", "judged_by")),
        "near": shares("twins-judged", "near", ("kind", "level", "judged_by")),
        "labels": shares("twins-vsr-labels", None, ("rule",)),
    }
    if found := kept(asked.audits):  # without figures, what the page has stays
        parts |= {"audits": attackers(found), "kinds": kinds(found)}
    if asked.scored:
        parts["scored"] = scored(asked.scored)
    text = asked.page.read_text(encoding="utf-8")
    for name, part in parts.items():
        start, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition("<!-- end -->")
        text = f"{start}<!-- {name} -->\n\n{part}\n\n<!-- end -->{after}"
    write_text(asked.page, text)


if __name__ == "__main__":
    main()
