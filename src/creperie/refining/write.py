"""Writing a refinement to disk, and as a JSON document with keys that scripts can rely on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.auditing import audit_document
from creperie.bench import Benchmark, load_folder, new_folder, record_audit, save
from creperie.core import Json, TableWriter, write_json
from creperie.refining.methods import REASONS
from creperie.refining.refinement import Refined, RemovedRows, SubsetOutcome, reasons_of
from creperie.refining.standing import ALL, AttackerStanding, figures_for_json

REMOVED = "removed.parquet"
REPORT = "refine.json"


def write_refined(refined: Refined, folder: str | Path, *, force: bool = False, place: str | Path = "") -> Benchmark:
    """Write the refined benchmark with removed.parquet and refine.json, and return the benchmark as loaded from the
    folder. The folder appears only once everything in it is complete. `place` is its later location, if it will be
    moved.
    """
    folder, images = Path(folder), refined.bench.images.location
    inside = bool(images) and Path(images).resolve().is_relative_to(folder.resolve())
    with new_folder(folder, replace_old=force) as draft:
        save(refined.bench, draft, copy_images=inside)
        write_removed(refined, draft / REMOVED)
        write_json(draft / REPORT, refine_document(refined), files=[REMOVED])
        if refined.audit is not None:
            record_audit(draft, audit_document(refined.audit, place or folder, refined.audit_options))
    return load_folder(folder)


def write_removed(refined: Refined, path: Path) -> None:
    """Write the removed items, each with the reason for its removal and the figures that explain it. They are written a
    piece at a time.
    """
    original, removed = refined.original, refined.removed
    texts = {
        "reason": lambda r: r.reason,
        "why": lambda r: REASONS[r.reason],
        "detail": lambda r: r.detail,
    }
    writer = TableWriter(path, pa.schema([*original.schema, *(pa.field(name, pa.string()) for name in texts)]))
    keep = np.ones(len(original), bool)
    keep[removed.rows if isinstance(removed, RemovedRows) else [r.row for r in removed]] = False
    first = done = 0
    for piece in original.pieces(original.columns):
        rows = piece.filter(pa.array(~keep[first : first + piece.num_rows]))
        mine = removed[done : done + rows.num_rows]
        first, done = first + piece.num_rows, done + rows.num_rows
        for name, text in texts.items():
            rows = rows.append_column(name, pa.array(map(text, mine), pa.string()))
        writer.write(rows)
    writer.close()


def refine_document(refined: Refined) -> Json:
    """Return a refinement as a document for JSON."""
    plan = refined.plan
    return {
        "benchmark": refined.original.name,
        "hash": refined.bench.hash,
        "input_hash": refined.original.hash,
        "method": plan.method,
        "seed": refined.seed,
        "bins": plan.fineness or None,
        "repair": plan.repair,
        "together": plan.together,
        "kept": len(refined.bench),
        "removed": len(refined.removed),
        **refined.judgement.document(refined.next),
        "subsets": {name: refined.bench.subsets.get(name, 0) for name in refined.original.subsets},
        "attackers": [_standing(s) for s in refined.standings],
        "reasons": {code: {"items": n, "meaning": REASONS[code]} for code, n in reasons_of(refined.removed).items()},
        "parts": [_outcome(o) for o in refined.outcomes],
        "structural": [
            {"subset": o.name, "attacker": s.attacker, "share": s.share}
            for o in refined.outcomes
            for s in o.choice.structural
        ],
    }


def _standing(standing: AttackerStanding) -> Json:
    stages = {"before": standing.before, "after": standing.after}
    whole = {name: figures_for_json(stage.get(ALL)) for name, stage in stages.items()}
    return {
        "name": standing.name,
        "held_out": standing.held_out,
        "leaks": list(standing.leaks),
        **{name: figures["accuracy"] for name, figures in whole.items()},
        **{f"{name}_{end}": figures[end] for name, figures in whole.items() for end in ("low", "high")},
        "after_p": whole["after"]["p"],
        **({"repaired": standing.repaired[ALL].accuracy} if standing.repaired else {}),
        "subsets": {
            subset: {
                name: figures_for_json(stage[subset]) if subset in stage else None for name, stage in stages.items()
            }
            for subset in dict.fromkeys((*standing.before, *standing.after))
            if subset != ALL
        },
    }


def _outcome(outcome: SubsetOutcome) -> Json:
    choice, chosen = outcome.choice, outcome.choice.selection
    shown = {
        "subset": outcome.name,
        "items": outcome.items,
        "unsolvable": outcome.unsolvable,
        "kept": outcome.kept,
        "curve": [{"after": label, "kept": kept} for label, kept in choice.curve],
    }
    if chosen is not None:
        shown |= {"bound": chosen.bound, "proven": bool(chosen.proven), "off": chosen.off}
    names = {"p": "p_value", "p_limit": "limit", "accuracy_low": "low", "accuracy_high": "high"}
    keys = ("threshold", "mean", "p", "test", "p_limit", "balanced", "accuracy", "accuracy_low", "accuracy_high")
    filters = [{key: getattr(f, names.get(key, key)) for key in keys} for f in choice.filtered]
    return shown | (filters[0] if len(filters) == 1 else {"halves": filters} if filters else {})
