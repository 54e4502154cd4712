"""A refinement on disk and as a JSON document. Scripts rely on the keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.auditing import audit_document
from creperie.bench import Benchmark, load_folder, new_folder, record_audit, save, write_table
from creperie.core import write_json
from creperie.refining.methods import REASONS
from creperie.refining.refinement import Refined, SubsetOutcome
from creperie.refining.standing import ALL, AttackerFigure, AttackerStanding

REMOVED = "removed.parquet"
REPORT = "refine.json"


def write_refined(found: Refined, folder: str | Path, *, force: bool = False) -> Benchmark:
    """Write the refined benchmark with removed.parquet and refine.json in it: all of it or nothing."""
    folder, images = Path(folder), found.bench.images.location
    inside = bool(images) and Path(images).resolve().is_relative_to(folder.resolve())
    with new_folder(folder, replace_old=force) as draft:
        save(found.bench, draft, copy_images=inside)
        write_table(removed_table(found), draft / REMOVED)
        write_json(draft / REPORT, refine_document(found))
        if found.audit is not None:
            record_audit(draft, audit_document(found.audit, folder, found.audit_options))
    return load_folder(folder)


def removed_table(found: Refined) -> pa.Table:
    """The removed items as they were, each with its reason and the numbers behind it."""
    rows = found.original.table.take(pa.array([r.row for r in found.removed], pa.int64()))
    for name, values in (
        ("reason", [r.reason for r in found.removed]),
        ("why", [REASONS[r.reason] for r in found.removed]),
        ("detail", [r.detail for r in found.removed]),
    ):
        rows = rows.append_column(name, pa.array(values, pa.string()))
    return rows


def refine_document(found: Refined) -> dict[str, Any]:
    """Everything that is known about a refinement."""
    plan = found.plan
    return {
        "benchmark": found.original.name,
        "hash": found.bench.hash,
        "input_hash": found.original.hash,
        "method": plan.method,
        "seed": found.seed,
        "bins": plan.fineness or None,
        "repair": plan.repair,
        "together": plan.together,
        "kept": len(found.bench),
        "removed": len(found.removed),
        **found.judgement.document(),
        "subsets": {name: found.bench.subsets.get(name, 0) for name in found.original.subsets},
        "attackers": [_standing(s) for s in found.standings],
        "reasons": _reasons(found),
        "parts": [_outcome(o) for o in found.outcomes],
        "structural": [
            {"subset": o.name, "attacker": s.attacker, "share": s.share}
            for o in found.outcomes
            for s in o.choice.structural
        ],
    }


def _reasons(found: Refined) -> dict[str, dict[str, Any]]:
    codes = [r.reason for r in found.removed]
    return {code: {"items": codes.count(code), "meaning": REASONS[code]} for code in dict.fromkeys(codes)}


def _standing(standing: AttackerStanding) -> dict[str, Any]:
    nothing = AttackerFigure(0, *(float("nan"),) * 4)
    before, after = standing.before.get(ALL, nothing), standing.after.get(ALL, nothing)
    shown: dict[str, Any] = {
        "name": standing.name,
        "before": before.accuracy,
        "after": after.accuracy,
        "held_out": standing.held_out,
        "before_low": before.low,
        "before_high": before.high,
        "after_low": after.low,
        "after_high": after.high,
        "after_p": after.p,
        "leaks": list(standing.leaks),
    }
    if standing.repaired:
        shown["repaired"] = standing.repaired[ALL].accuracy
    shown["subsets"] = {
        name: {
            "before": standing.before[name].document() if name in standing.before else None,
            "after": standing.after[name].document() if name in standing.after else None,
        }
        for name in dict.fromkeys((*standing.before, *standing.after))
        if name != ALL
    }
    return shown


def _outcome(outcome: SubsetOutcome) -> dict[str, Any]:
    choice = outcome.choice
    shown: dict[str, Any] = {
        "subset": outcome.name,
        "items": outcome.items,
        "unsolvable": outcome.unsolvable,
        "kept": outcome.kept,
        "curve": [{"after": label, "kept": kept} for label, kept in choice.curve],
    }
    if choice.selection is not None:
        chosen = choice.selection
        shown |= {"bound": chosen.bound, "proven": bool(chosen.proven), "off": chosen.off}
    if choice.filtered is not None:
        f = choice.filtered
        shown |= {"threshold": f.threshold, "mean": f.mean, "p": f.p_value, "test": f.test, "balanced": f.balanced}
        shown |= {"accuracy": f.accuracy, "accuracy_low": f.low, "accuracy_high": f.high}
    return shown
