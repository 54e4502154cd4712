"""The folder of a training run. Checkpoints are written atomically.

out/mine/
  train.json               the model, the data and the settings; at the end, the result
  metrics.jsonl            one line per step: loss and learning rate
  checkpoints/step-000200.pt    trained weights, optimiser, random state and progress, to resume from
  model/                   the trained model
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from creperie.core import DataError, Json, UsageError, draft_of, read_json, write_json, write_text

DOCUMENT, METRICS, FOLDER, MODEL = "train.json", "metrics.jsonl", "checkpoints", "model"
VERSION = 2


def checkpoint_path(out: Path, step: int) -> Path:
    return out / FOLDER / f"step-{step:06d}.pt"


def steps_kept(out: Path) -> list[int]:
    """Return the steps for which checkpoints exist, in ascending order."""
    return sorted(int(path.stem.removeprefix("step-")) for path in (out / FOLDER).glob("step-*.pt"))


def write_checkpoint(out: Path, step: int, state: Json) -> None:
    """Write the checkpoint of a step, keeping earlier ones; raise a DataError if it cannot be written."""
    import torch

    path = checkpoint_path(out, step)
    try:
        with draft_of(path) as draft, draft.open("wb") as file:  # if given a path, torch hides the cause of a failure
            torch.save(state, file)
    except (OSError, RuntimeError) as e:
        last = f"the last good one is {newest(out)}" if newest(out) else "there is no earlier one"
        hint = "free some space and run the same command again: it continues from there"
        raise DataError(
            f"the checkpoint of step {step} cannot be written ({str(e).splitlines()[0][:120]}); {last}",
            where=path,
            hint=hint,
        ) from e


def newest(out: Path) -> Path | None:
    """Return the path of the newest checkpoint; None if the run has no checkpoint."""
    steps = steps_kept(out)
    return checkpoint_path(out, steps[-1]) if steps else None


def read_checkpoint(path: Path) -> Json:
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as e:
        raise DataError(
            f"cannot be read ({str(e).splitlines()[0][:100]})", where=path, hint="delete this checkpoint to resume"
        ) from e


def remove_old(out: Path, keep: int) -> None:
    """Delete all checkpoints except the newest `keep`."""
    for step in steps_kept(out)[:-keep]:
        checkpoint_path(out, step).unlink(missing_ok=True)


def open_run(out: Path, job: Json, force: bool) -> Json:
    """Return the record of the training run in the folder `out`. A run of the same `job` (model, data and settings) can
    be resumed, and its stored record is returned. Otherwise a new record is returned.

    Raise a UsageError if the folder contains files but no training run. Without `force`, also raise it if the folder
    holds the run of another job, and that run has finished or has a checkpoint. With `force`, an earlier run is deleted
    first.
    """
    path = out / DOCUMENT
    if out.exists() and any(out.iterdir()):
        if not path.is_file():
            raise UsageError(
                "the folder is not empty and contains no training run", where=out, hint="choose another, or empty it"
            )
        if force:
            shutil.rmtree(out)
    document = _read_document(path) if path.is_file() else {}
    before, now = document.get("job", {}), json.loads(json.dumps(job))
    same = before == now
    if not document or not (same or document.get("finished") or steps_kept(out)):
        # Nothing is lost: a training that ended before its first checkpoint, for example because of wrong settings.
        out.mkdir(parents=True, exist_ok=True)
        document = {"creperie": VERSION, "kind": "training", "job": job, "finished": False}
        write_json(path, document)
        return document
    if not same:
        changed = sorted(k for k in {*before, *now} if before.get(k) != now.get(k))
        raise UsageError(
            f"the folder contains another training run: {', '.join(changed)} differ",
            where=out,
            hint="choose another folder, or pass `force=True` to start over",
        )
    for draft in (*out.glob(".model.*"), *(out / FOLDER).glob(".step-*")):  # of a training run that was killed
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
    return document


def _read_document(path: Path) -> Json:
    again = "pass `force=True` to start over"
    document = read_json(path, again=again)
    if not isinstance(document, dict) or not isinstance(document.get("job"), dict):
        raise DataError("is not the record of a training run", where=path, hint=again)
    return document


def read_metrics(out: Path) -> list[Json]:
    """Return the lines of metrics.jsonl as dictionaries; a truncated last line is left out."""
    path, lines = out / METRICS, []
    for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else ():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines


def keep_metrics(out: Path, steps: int) -> None:
    """Delete the metrics logged after step number `steps`. Training that resumes there logs them again."""
    lines = [line for line in read_metrics(out) if line["step"] <= steps]
    write_text(out / METRICS, "".join(json.dumps(line) + "\n" for line in lines))
