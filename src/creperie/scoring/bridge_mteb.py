"""A benchmark as a task of MTEB v2: which captions say the same thing, by the vectors of any model that MTEB loads.

The exported folder holds `items.jsonl` and `task.py`, which defines an `AbsTask`. Its score is creperie's task `tot`:
every pair of captions that say the same thing must be closer than every pair that does not.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from creperie.bench import Benchmark, new_folder
from creperie.core import UsageError
from creperie.metrics import applies
from creperie.scoring.plan import layout_of_bench


def export_mteb(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write an MTEB task; the files that it consists of."""
    folder = Path(out)
    layout = layout_of_bench(bench)
    keep = applies("tot", layout)
    if not keep.any():
        hint = "it needs items with two captions that say the same thing and one that does not"
        raise UsageError("task 'tot' has nothing to compare in any item", where=bench.name, hint=hint)
    chosen = bench.filter(keep, why="task tot applies")
    words = "".join(c if c.isalnum() and c.isascii() else " " for c in bench.name).split()
    name = "".join(word[:1].upper() + word[1:] for word in words) + "Tot"
    name = name if name[0].isalpha() else f"Bench{name}"
    subsets = {subset: ["eng-Latn"] for subset in chosen.subsets}
    with new_folder(folder, replace_old=force) as draft:
        draft.mkdir(parents=True, exist_ok=True)
        records = [
            {"subset": i.subset, "id": i.id, "captions": list(i.captions), "match": list(i.match[0])} for i in chosen
        ]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        (draft / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        about = json.dumps(f"Which captions of {bench.name} say the same thing?", ensure_ascii=True)[1:-1]
        task = (files("creperie.scoring") / "templates" / "mteb_task.txt").read_text("utf-8")
        text = task.replace("{name}", name).replace("{about}", about).replace("{digest}", bench.hash[:12])
        (draft / "task.py").write_text(text.replace("{subsets}", json.dumps(subsets)), encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())
