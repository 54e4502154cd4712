"""The training loop, based on accelerate. It is reproducible on a CPU, can be resumed, and never saves a diverged
model.

accelerate accumulates and clips gradients; creperie writes the checkpoints, each as one file.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.bench import new_folder
from creperie.core import CreperieError, Progress, UsageError, listing, locked, missing_extra, silent, write_json
from creperie.models import find_place, hash_state, named_content
from creperie.training import checkpoints
from creperie.training.architecture import Student
from creperie.training.examples import TrainSet
from creperie.training.feed import Batch, Feed, check_fits
from creperie.training.losses import batch_loss, make_optimiser, train_mode
from creperie.training.settings import TrainingSettings, Tuning, learning_rate, prepare
from creperie.training.student import HIGHEST_SCALE

if TYPE_CHECKING:
    import torch

#: steps whose losses are read together from a GPU, which has to wait for each read
READ_EVERY = 20


class DivergedError(CreperieError):
    """Raised when the loss is infinite or not a number."""


@dataclass(frozen=True)
class TrainingJob:
    """The model to train, the data and the settings. `base` is the name of the model that training starts from; it is
    only recorded in `document`.
    """

    student: Student
    data: TrainSet
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    tuning: Tuning = field(default_factory=Tuning)
    base: str = ""
    truncate: bool = False

    @property
    def document(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "files": named_content(self.base),
            "weights": hash_state(self.student.network.state_dict()),
            "data": {"name": self.data.name, "examples": len(self.data), "sha256": self.data.digest},
            "settings": self.settings.document,
            "tuning": self.tuning.document,
            "truncate": self.truncate,
        }


@dataclass(frozen=True)
class Trained:
    """The result of a training run."""

    folder: Path
    document: dict[str, Any]
    uri: str  #: of the trained model

    def __repr__(self) -> str:
        loss = self.document.get("loss")
        ending = "" if loss is None else f", loss {loss:.4f}"
        return f"<Trained {self.uri}: {self.document.get('steps', 0)} steps{ending}>"


def train_job(
    job: TrainingJob,
    out: str | Path,
    *,
    device: str,
    force: bool = False,
    progress: Progress = silent,
) -> Trained:
    """Train the job's model and return the result; the model is saved in `out`/model. If an earlier training of the
    same job in `out` was interrupted, it is resumed.
    """
    folder = Path(out)
    accelerator = open_accelerator(job.settings)
    with locked(folder.parent / f".{folder.name}.training", "another process is training this", where=folder):
        document = checkpoints.open_run(folder, job.document, force)
        if not document["finished"]:
            run = _TrainingRun(job, folder, accelerator, device, progress)
            document |= {"finished": True, **run.complete(progress)}
            write_json(folder / checkpoints.DOCUMENT, document)
    return Trained(folder, document, f"{job.student.kind}:{folder / checkpoints.MODEL}")


def open_accelerator(settings: TrainingSettings) -> Any:
    """Return an Accelerator that does not choose a device; creperie chooses it."""
    # If accelerate chose, all training runs in a process would use the device of the first run.
    try:
        from accelerate import Accelerator
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "accelerate", "train") from e
    return Accelerator(gradient_accumulation_steps=settings.accumulate, device_placement=False)


class _TrainingRun:
    """A training run in progress."""

    def __init__(self, job: TrainingJob, out: Path, accelerator: Any, device: str, progress: Progress) -> None:
        self.job, self.out, self.accelerator, self.settings = job, out, accelerator, job.settings
        check_fits(job.data, job.settings)
        self.trained_weights = prepare(job.student, job.tuning, job.settings.seed)
        self.total = job.settings.total(len(job.data)) if self.trained_weights else 0
        if self.total and self.settings.warmup >= self.total:
            raise UsageError(
                f"the warm-up takes {self.settings.warmup} steps, but the whole run only {self.total}",
                where=out,
                hint="pass a shorter `warmup=`, or train longer",
            )
        self.device = str(find_place(device).torch_device)
        self.network = job.student.network.to(self.device)
        self.weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        self.optimiser = make_optimiser(self.network, self.settings)
        self.feed = Feed(job.data, job.student, job.settings, self.device, truncate=job.truncate, progress=progress)
        self.steps, self.last_loss = 0, math.nan
        self.bare = 0  #: number of batches without any foil
        self.unread: list[tuple[int, torch.Tensor, float]] = []  #: step, loss and rate, still on the device
        self.samples, self.seconds, self.waited = 0, 0.0, 0.0

    def complete(self, progress: Progress) -> dict[str, Any]:
        """Train to the end, save the model, and return the results that are written into the run's document."""
        with closing(self.feed):
            self.resume()
            self.go(progress)
            shutil.rmtree(self.out / checkpoints.MODEL, ignore_errors=True)
            with new_folder(self.out / checkpoints.MODEL) as draft:
                self.job.student.save(draft)
        return {
            "steps": self.steps,
            "loss": None if math.isnan(self.last_loss) else self.last_loss,
            "trained_weights": self.trained_weights,
            "batches_without_foils": self.bare,
            "captions_cut": self.feed.cut,
            "seconds": round(self.seconds, 1),
            "samples_per_s": round(self.samples / self.seconds, 1) if self.seconds else 0.0,
            "waited_for_data": round(self.waited / self.seconds, 4) if self.seconds else 0.0,
            "device": self.device,
        }

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Load the newest checkpoint, if there is one."""
        import torch

        torch.manual_seed(self.settings.seed)
        if newest := checkpoints.newest(self.out):
            saved = checkpoints.read_checkpoint(newest)
            self.network.load_state_dict(saved["weights"], strict=False)
            self.optimiser.load_state_dict(saved["optimiser"])
            torch.random.set_rng_state(saved["random"])
            self.steps, self.bare = (saved["state"][name] for name in ("step", "bare"))
        checkpoints.keep_metrics(self.out, self.steps)

    def save(self) -> None:
        """Check that all losses so far are finite, then write a checkpoint of the current step."""
        import torch

        self.read_losses()
        fixed = {name for name, weight in self.network.named_parameters() if not weight.requires_grad}
        state = {
            "weights": {name: value for name, value in self.network.state_dict().items() if name not in fixed},
            "optimiser": self.optimiser.state_dict(),
            "random": torch.random.get_rng_state(),
            "state": {"step": self.steps, "bare": self.bare},
        }
        checkpoints.write_checkpoint(self.out, self.steps, state)
        checkpoints.remove_old(self.out, self.settings.keep)

    # -- training ------------------------------------------------------------------------------------------------

    def go(self, progress: Progress) -> None:
        """Train from the current step to the last one."""
        batches = self.settings.accumulate
        epoch = self.settings.epoch(len(self.job.data))
        save_every = self.settings.save_every or epoch
        stream = self.feed.stream(self.steps * batches, self.total * batches)
        samples = batches * self.feed.size
        train_mode(self.network)
        with progress("train", (self.total - self.steps) * samples, "samples") as advance, closing(stream):
            while self.steps < self.total:
                self.step(stream)
                advance(samples)
                if self.steps % save_every == 0 or self.steps == self.total:
                    self.save()
        self.read_losses()

    def step(self, stream: Iterator[Batch]) -> None:
        """Make one optimiser step. It uses one batch, or several whose gradients are accumulated."""
        import torch

        start = time.perf_counter()
        rate = learning_rate(self.steps, self.total, self.settings)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        losses = []
        for _ in range(self.settings.accumulate):
            asked = time.perf_counter()
            batch = next(stream)
            self.waited += time.perf_counter() - asked
            with self.accelerator.accumulate(self.network):
                loss = self.loss(batch)
                self.accelerator.backward(loss)
            losses.append(loss.detach())
            self.bare += self.settings.objective == "negclip" and not batch.foils
            self.samples += batch.size
        if self.settings.clip_norm:
            self.accelerator.clip_grad_norm_(self.weights, self.settings.clip_norm)
        self.optimiser.step()
        self.optimiser.zero_grad()
        scale = self.network.logit_scale
        if scale.requires_grad:
            with torch.no_grad():
                scale.clamp_(0, HIGHEST_SCALE)
        self.steps += 1
        self.unread.append((self.steps, torch.stack(losses).mean(), rate))
        if len(self.unread) >= (READ_EVERY if self.device.startswith("cuda") else 1):
            self.read_losses()
        self.seconds += time.perf_counter() - start

    def loss(self, batch: Batch) -> torch.Tensor:
        import torch

        mixed = self.settings.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16) if mixed else nullcontext():
            images, texts, scale = self.network(batch.pixels, batch.ids)
        return batch_loss(self.settings, batch, images, texts, scale)

    # -- records -------------------------------------------------------------------------------------------------

    def read_losses(self) -> None:
        """Fetch the losses that are still on the device, and log them. Raise a DivergedError if one is not finite."""
        import torch

        if not self.unread:
            return
        values = torch.stack([loss for _, loss, _ in self.unread]).tolist()
        lines = [{"step": step, "loss": value, "lr": rate} for (step, _, rate), value in zip(self.unread, values)]
        self.unread = []
        bad = next((k for k, line in enumerate(lines) if not math.isfinite(line["loss"])), None)
        with (self.out / checkpoints.METRICS).open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines[:bad]))
        if bad is not None:
            raise self._diverged(int(lines[bad]["step"]), lines[bad]["loss"])
        self.last_loss = values[-1]

    def _diverged(self, step: int, value: float) -> DivergedError:
        batches = self.settings.accumulate
        keys = [key for k in range((step - 1) * batches, step * batches) for key in self.feed.keys(k)]
        last = checkpoints.newest(self.out) or "none"
        return DivergedError(
            f"the loss of step {step} is {value} (batch: {listing(keys, 4)}); last good checkpoint: {last}",
            where=self.out,
            hint="look at these records, or train with a lower `lr=` or with `clip_norm=1`",
        )
