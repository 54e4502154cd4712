"""A stage in shares: each job cooks its own, and when all are there they are put together into what one job cooks.

out/.shares/
  make-0123456789ab/      a stage and its key
    2-of-4/               what the second of four jobs made; `done.json` closes it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.core import write_json
from creperie.engine import Shard
from creperie.recipes.steps import StageJob

SHARES = ".shares"
DONE = "done.json"


def share_folder(place: Path, shard: Shard) -> Path:
    return place / f"{shard.number}-of-{shard.count}"


def missing_shares(place: Path, count: int) -> list[int]:
    """Which of the shares are not there yet."""
    return [k for k in range(1, count + 1) if not (share_folder(place, Shard(count, k)) / DONE).is_file()]


def all_shares(place: Path) -> list[Path]:
    """The folders of a cut of which every share is there; none where there is no such cut."""
    for count in sorted({int(p.name.partition("-of-")[2]) for p in place.glob("*-of-*")}):
        if not missing_shares(place, count):
            return [share_folder(place, Shard(count, k)) for k in range(1, count + 1)]
    return []


def cook_share(does: str, job: StageJob, shard: Shard, folder: Path) -> None:
    """Cook one share. If it is killed, the same call resumes; a finished share is not cooked again."""
    if (folder / DONE).is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _SHARE[does](job, shard, folder)
    write_json(folder / DONE, {"stage": job.name, "shard": str(shard)})


def put_together(does: str, job: StageJob, folders: Sequence[Path]) -> dict[str, Any]:
    """The stage's output from all its shares."""
    return _TOGETHER[does](job, folders)


def _share_of_making(job: StageJob, shard: Shard, folder: Path) -> None:
    from creperie.making import MakeRequest, make_shard
    from creperie.recipes.making import making_of, slug

    options, captions = making_of(job)
    for maker in job.option("makers"):
        request = MakeRequest(maker, job.input, options)
        place = folder / slug(maker)
        if not place.exists():  # there completely or not at all
            make_shard(request, captions, shard, place, progress=job.progress)


def _making(job: StageJob, folders: Sequence[Path]) -> dict[str, Any]:
    """Generation jobs that are in the stage's working folder are not run again."""
    from creperie.making import REPORT_FILE, merge_making
    from creperie.recipes.making import making_of, run_make, slug

    captions = making_of(job)[1]
    for maker in job.option("makers"):
        made = job.work / slug(maker)
        if not (made / REPORT_FILE).is_file():
            merge_making([folder / slug(maker) for folder in folders], made, captions=captions)
    return run_make(job)


def _share_of_scoring(job: StageJob, shard: Shard, folder: Path) -> None:
    from creperie.recipes.judging import scoring_of
    from creperie.scoring import score_all

    bench, models, options = scoring_of(job)
    for number, model in enumerate(models):
        score_all([bench], [model], replace(options, shard=shard), out=folder / str(number), progress=job.progress)


def _scoring(job: StageJob, folders: Sequence[Path]) -> dict[str, Any]:
    from creperie.recipes.judging import decided, runs_in, scored, scoring_of
    from creperie.scoring import merged_run

    bench, models, _ = scoring_of(job)
    shares = [[run for folder in folders for run in runs_in(folder / str(number))] for number in range(len(models))]
    merged = [merged_run(runs).save(job.out) for runs in shares]
    return scored(merged) | decided(bench, merged)


_SHARE: dict[str, Callable[[StageJob, Shard, Path], None]] = {"make": _share_of_making, "score": _share_of_scoring}
_TOGETHER: dict[str, Callable[[StageJob, Sequence[Path]], dict[str, Any]]] = {"make": _making, "score": _scoring}
