"""A benchmark as a task of MTEB v2: which captions say the same thing, by the vectors of any model that MTEB loads.

The exported folder holds `items.jsonl` and `task.py`, which defines an `AbsTask`. Its score is creperie's task `tot`:
every pair of captions that say the same thing must be closer than every pair that does not.
"""

from __future__ import annotations

import json
from pathlib import Path

from creperie.bench import Benchmark, new_folder
from creperie.core import UsageError
from creperie.metrics import applies
from creperie.scoring.plan import layout_of_bench

TASK = '''"""{name} (task tot) for MTEB v2, written by creperie:

    import mteb, task
    results = mteb.evaluate(mteb.get_model("sentence-transformers/all-MiniLM-L6-v2"), task.{name}())
"""

import json
from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict
from mteb.abstasks.abstask import AbsTask
from mteb.abstasks.task_metadata import TaskMetadata
from torch.utils.data import DataLoader

from creperie.metrics import HIT, TIE, layout_of, outcomes, task as creperie_task

HERE = Path(__file__).parent


class {name}(AbsTask):
    """Hits of creperie's task tot, by subset."""

    metadata = TaskMetadata(
        name="{name}",
        description="{about}",
        reference=None,
        dataset={"path": "{name}", "revision": "{digest}"},
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs={subsets},
        main_score="accuracy",
        date=None,
        domains=None,
        task_subtypes=None,
        license=None,
        annotations_creators=None,
        dialect=None,
        sample_creation=None,
        bibtex_citation=None,
    )

    def load_data(self, **kwargs):
        if self.data_loaded:
            return
        records = [json.loads(line) for line in (HERE / "items.jsonl").read_text(encoding="utf-8").splitlines()]
        subsets = list(dict.fromkeys(record["subset"] for record in records))
        self.dataset = {
            s: DatasetDict({"test": Dataset.from_list([r for r in records if r["subset"] == s])}) for s in subsets
        }
        self.data_loaded = True

    def _evaluate_subset(self, model, data_split, *, hf_split, hf_subset, encode_kwargs, **kwargs):
        texts = list(dict.fromkeys(text for captions in data_split["captions"] for text in captions))
        loader = DataLoader(Dataset.from_dict({"text": texts}), batch_size=encode_kwargs.get("batch_size", 32))
        about = {"task_metadata": self.metadata, "hf_split": hf_split, "hf_subset": hf_subset}
        encoded = model.encode(loader, **about, **encode_kwargs)
        vectors = np.asarray(encoded, np.float32)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        place = {text: row for row, text in enumerate(texts)}
        scores = []
        for captions in data_split["captions"]:
            own = vectors[[place[text] for text in captions]]
            scores.append((own @ own.T).ravel())
        layout = layout_of([[match] for match in data_split["match"]])
        found = outcomes(creperie_task("tot"), layout, np.concatenate(scores).astype(np.float32))
        hits, ties = int((found == HIT).sum()), int((found == TIE).sum())
        return {"accuracy": hits / len(found), "hits": hits, "ties": ties, "n": len(found)}

    def _calculate_descriptive_statistics_from_split(self, split, *, hf_subset=None, compute_overall=False, **kwargs):
        return {"num_samples": len(self.dataset[hf_subset][split]) if hf_subset else 0}
'''


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
        text = TASK.replace("{name}", name).replace("{about}", about).replace("{digest}", bench.hash[:12])
        (draft / "task.py").write_text(text.replace("{subsets}", json.dumps(subsets)), encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())
