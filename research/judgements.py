"""Kendall's τ of models with people's judgements of Flickr8k's captions: the table in docs/photographs.md.

    python research/judgements.py path/to/flickr8k --out FILE.json "the house model=towers:out/house/model" …

Every model is `label=URI`; one that FILE.json has already is not computed again, so several machines can add to it.
Each τ is compared with scipy's on the same points. `--limit N` takes N photographs, drawn by a fixed seed, for models
that are slow. With `--page`, write the table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from first_minute import write
from scipy.stats import kendalltau

import creperie.scoring.judgements as judgements
from creperie.core import write_text
from creperie.scoring.judgements import pair_scores

SETS = ("expert", "cf")
PRINTED = ["CLIPScore, ViT-B/32, as its paper prints it", "–", "51.2", "34.4", "–", "", ""]


def measured(folder: Path, which: str, uri: str, how: dict[str, Any]) -> dict[str, Any]:
    """What `creperie score flickr8k-expert:DIR` says, and how far scipy is from it on the same points."""
    seen: list[tuple[Any, np.ndarray]] = []

    def kept(pairs: Any, *rest: Any) -> np.ndarray:
        seen.append((pairs, pair_scores(pairs, *rest)))
        return seen[-1][1]

    began = time.perf_counter()
    judgements.pair_scores, before = kept, pair_scores  # type: ignore[assignment]
    try:
        row = judgements.human_correlation(folder, which, uri, **how).document
    finally:
        judgements.pair_scores = before
    row["seconds"] = round(time.perf_counter() - began, 1)
    ((pairs, scores),) = seen
    ratings = np.array([r for pair in pairs for r in pair.ratings])
    points = np.repeat(scores, [len(pair.ratings) for pair in pairs])
    points, ratings = points[~np.isnan(points)], ratings[~np.isnan(points)]
    for variant in ("b", "c"):
        row[f"scipy_{variant}"] = float(kendalltau(points, ratings, variant=variant).statistic)
        assert abs(row[f"tau_{variant}"][0] - row[f"scipy_{variant}"]) < 1e-9, (uri, variant)
    return row


def table(known: dict[str, dict[str, Any]]) -> str:
    def tau(row: dict[str, Any], variant: str) -> str:
        value, low, high = (100 * v for v in row[f"tau_{variant}"])
        return f"{value:.1f} [{low:.1f}, {high:.1f}]"

    rows = [PRINTED]
    for label in dict.fromkeys(key.split("/", 1)[1] for key in known):
        expert, crowd = (known.get(f"{which}/{label}") for which in SETS)
        cells = [tau(row, v) if row else "not run" for row, v in zip((expert, expert, crowd, crowd), "bcbc")]
        counts = " / ".join(f"{row['pairs']:,}" if row else "–" for row in (expert, crowd))
        rows.append([label, *cells, counts, str(sum(row["missing"] for row in (expert, crowd) if row))])
    head = ["model", "Expert τ_b", "Expert τ_c", "CF τ_b", "CF τ_c", "pairs", "missing"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flickr8k", type=Path)
    parser.add_argument("models", nargs="*", metavar="LABEL=URI")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--limit", type=int, help="photographs, drawn by a fixed seed")
    parser.add_argument("--limit-cf", type=int)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_intermixed_args()
    known: dict[str, dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for model in asked.models:
        label, _, uri = model.partition("=")
        for which in SETS:
            if f"{which}/{label}" not in known:
                limit = asked.limit if which == "expert" else asked.limit_cf or asked.limit
                row = measured(asked.flickr8k, which, uri, {"images": asked.images, "limit": limit})
                known[f"{which}/{label}"] = row
                write_text(asked.out, json.dumps(known, indent=1))
                print(label, which, row["tau_b"], row["tau_c"], row["seconds"], flush=True)
    print(table(known))
    if asked.page:
        write(asked.page, "judgements", f"\n{table(known)}\n")


if __name__ == "__main__":
    main()
