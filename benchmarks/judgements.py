"""Kendall's τ of models with people's judgements of Flickr8k's captions: the table in docs/photographs.md.

    python benchmarks/judgements.py path/to/flickr8k --out FILE.json "the house model=towers:out/house/model" …

Every model is `label=URI`; one that FILE.json has already is not computed again, so several machines can add to it.
Each τ is compared with scipy's on the same points. With `--page`, write the table.
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

from creperie.bench import open_store
from creperie.core import write_text
from creperie.metrics import kendall
from creperie.models import load_model
from creperie.scoring import human_correlation
from creperie.scoring.judgements import pair_scores, read_judgements

SETS = ("expert", "cf")
PRINTED = ["CLIPScore, ViT-B/32, as its paper prints it", "–", "51.2", "34.4", "–", ""]


def measured(folder: Path, which: str, uri: str, images: Path) -> dict[str, Any]:
    """What `creperie score flickr8k-expert:DIR` says, and how far scipy is from it."""
    began = time.perf_counter()
    row = human_correlation(folder, which, uri, images=images).document
    row["seconds"] = round(time.perf_counter() - began, 1)
    pairs, _ = read_judgements(folder, which)
    scores = pair_scores(pairs, load_model(uri), open_store(str(images)))
    ratings = np.array([r for pair in pairs for r in pair.ratings])
    points = np.repeat(scores, [len(pair.ratings) for pair in pairs])
    points, ratings = points[~np.isnan(points)], ratings[~np.isnan(points)]
    for variant in ("b", "c"):
        theirs = float(kendalltau(points, ratings, variant=variant).statistic)
        assert abs(kendall(points, ratings, variant) - theirs) < 1e-9, (uri, variant)
        row[f"scipy_{variant}"] = theirs
        assert abs(row[f"tau_{variant}"][0] - theirs) < 1e-6, (uri, variant)  # a GPU may sum in another order
    return row


def table(known: dict[str, dict[str, Any]]) -> str:
    def tau(row: dict[str, Any], variant: str) -> str:
        value, low, high = (100 * v for v in row[f"tau_{variant}"])
        return f"{value:.1f} [{low:.1f}, {high:.1f}]"

    rows = [PRINTED]
    for label in dict.fromkeys(key.split("/", 1)[1] for key in known):
        expert, crowd = (known.get(f"{which}/{label}") for which in SETS)
        cells = [tau(row, v) if row else "not run" for row, v in zip((expert, expert, crowd, crowd), "bcbc")]
        rows.append([label, *cells, str(sum(row["missing"] for row in (expert, crowd) if row))])
    head = ["model", "Expert τ_b", "Expert τ_c", "CF τ_b", "CF τ_c", "missing"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flickr8k", type=Path)
    parser.add_argument("models", nargs="*", metavar="LABEL=URI")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_intermixed_args()
    known: dict[str, dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for model in asked.models:
        label, _, uri = model.partition("=")
        for which in SETS:
            if f"{which}/{label}" not in known:
                row = measured(asked.flickr8k, which, uri, asked.images or asked.flickr8k / "images.zip")
                known[f"{which}/{label}"] = row
                write_text(asked.out, json.dumps(known, indent=1))
                print(label, which, row["tau_b"], row["tau_c"], row["seconds"], flush=True)
    print(table(known))
    if asked.page:
        write(asked.page, "judgements", f"\n{table(known)}\n")


if __name__ == "__main__":
    main()
