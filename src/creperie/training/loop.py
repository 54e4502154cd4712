"""The trainer: bit-for-bit reproducible on a CPU, resumable after a kill, stopped before a bad step is saved."""

from __future__ import annotations

import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.bench import new_folder
from creperie.core import CreperieError, Progress, UsageError, locked, missing_extra, silent
from creperie.models import hash_state
from creperie.training import checkpoints
from creperie.training.examples import TrainSet
from creperie.training.feed import Batch, Feed, ProcessShare, check_fits
from creperie.training.ledger import Clock, Line, LossLog
from creperie.training.losses import batch_loss, make_optimiser, recompute, train_mode
from creperie.training.processes import Team, open_team
from creperie.training.settings import TrainingSettings, Tuning, learning_rate, prepare
from creperie.training.student import HIGHEST_SCALE, Student

if TYPE_CHECKING:
    import torch

LEG = 15.0  #: seconds after which the progress shows the newest loss


class DivergedError(CreperieError):
    """The loss is not a finite number."""


@dataclass(frozen=True)
class TrainingJob:
    """What to train, on what, how. `base` names the model that is started from, for the record."""

    student: Student
    data: TrainSet
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    tuning: Tuning = field(default_factory=Tuning)
    held_out: TrainSet | None = None
    base: str = ""
    truncate: bool = False

    @property
    def document(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "weights": hash_state(self.student.network.state_dict()),
            "data": {"name": self.data.name, "examples": len(self.data), "sha256": self.data.digest},
            "held_out": self.held_out.digest if self.held_out else None,
            "settings": self.settings.document,
            "tuning": self.tuning.document,
            "truncate": self.truncate,
        }


@dataclass(frozen=True)
class Trained:
    """The result of a training."""

    folder: Path
    document: dict[str, Any]
    uri: str  #: of the trained model

    def __repr__(self) -> str:
        loss = self.document.get("loss")
        told = "" if loss is None else f", loss {loss:.4f}"
        return f"<Trained {self.uri}: {self.document.get('steps', 0)} steps{told}>"


@dataclass
class _State:
    """What a checkpoint keeps beside weights and optimiser."""

    step: int = 0
    bare: int = 0  #: batches without any foil
    best: float = math.inf
    best_step: int = 0
    misses: int = 0  #: evaluations in a row without improvement


def train_job(
    job: TrainingJob,
    out: str | Path,
    *,
    device: str = "auto",
    force: bool = False,
    tensorboard: bool = False,
    progress: Progress = silent,
) -> Trained:
    """Train, or resume a killed training of the same job. The model is in `out`/model."""
    folder = Path(out)
    team = open_team(device, job.settings)
    with _alone(folder) if team.leads else nullcontext():
        document = team.first(lambda leads: checkpoints.open_run(folder, job.document, force and leads))
        if not document["finished"]:
            _go(_Run(job, folder, team, tensorboard, progress), document, progress)
    return Trained(folder, document, f"{job.student.kind}:{folder / checkpoints.MODEL}")


def _alone(folder: Path) -> AbstractContextManager[None]:
    return locked(folder.parent / f".{folder.name}.training", "another process is training this", where=folder)


def _go(run: _Run, document: dict[str, Any], progress: Progress) -> None:
    """To the end of the training, and what came of it into the document."""
    try:
        run.resume()
        run.go(progress)
        document |= {"finished": True, **run.result()}
    finally:
        run.close()
    if run.team.leads:
        checkpoints.write_document(run.out, document)
    run.team.wait()


class _Run:
    """One training under way."""

    def __init__(self, job: TrainingJob, out: Path, team: Team, tensorboard: bool, progress: Progress) -> None:
        self.job, self.out, self.team = job, out, team
        self.settings = job.settings
        check_fits(job.data, job.settings)
        self.trained_weights = prepare(job.student, job.tuning, job.settings.seed)
        self.total = job.settings.total(len(job.data)) if self.trained_weights else 0
        if self.total and self.settings.warmup >= self.total:
            what = f"the warm-up takes {self.settings.warmup} steps, the whole training {self.total}"
            raise UsageError(what, where=str(out), hint="pass a shorter `warmup=`, or train longer")
        self.state = _State()
        self.device = str(self.team.device)
        network = job.student.network.to(self.team.device)
        self.weights = [weight for weight in network.parameters() if weight.requires_grad]
        self.optimiser = make_optimiser(network, self.settings)
        if self.settings.recompute:
            recompute(network.model)
        self.network = self.team.wrap(network)
        self.feed = self._open(job.data, progress)
        self.looks = self._open(job.held_out, progress) if job.held_out else None
        self.ledger, self.clock, self.samples = LossLog(self.device), Clock(), 0
        self.last_loss = math.nan
        self.board = _board(out) if tensorboard and team.leads else None

    # -- where it stands -----------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Take up the newest checkpoint, if there is one."""
        import torch

        torch.manual_seed(self.settings.seed)
        kept = checkpoints.steps_kept(self.out)
        if kept:
            saved = checkpoints.read_state(self.out, kept[-1])
            if "adapters" in saved:
                self.job.student.network.load_state_dict(saved["adapters"], strict=False)
            else:
                self.job.student.restore(checkpoints.checkpoint_path(self.out, kept[-1]))
            self.optimiser.load_state_dict(saved["optimiser"])
            torch.random.set_rng_state(saved["random"])
            self.state = _State(**saved["state"])
        self.team.wait()  # nobody reads a checkpoint any more when the first new one is written
        if self.team.leads:
            checkpoints.keep_metrics(self.out, self.state.step)

    def save(self) -> None:
        """A checkpoint of the step that was just done; only of steps whose losses are known to be good."""
        import torch

        self.log(self.ledger.settle())
        if not self.team.leads:
            return
        state: dict[str, Any] = {
            "optimiser": self.optimiser.state_dict(),
            "random": torch.random.get_rng_state(),
            "state": vars(self.state),
        }
        network = self.job.student.network
        if self.job.tuning.way == "lora":
            trained = {name for name, weight in network.named_parameters() if weight.requires_grad}
            state["adapters"] = {k: v for k, v in network.state_dict().items() if k in trained}
        checkpoints.write_checkpoint(self.out, self.state.step, self.job.student.save, state)
        checkpoints.remove_old(self.out, self.settings.keep, self.state.best_step)

    # -- training ------------------------------------------------------------------------------------------------

    def go(self, progress: Progress) -> None:
        """From where it stands to the end."""
        micro = self.settings.accumulate
        epoch = self.settings.epoch(len(self.job.data))
        save_every = self.settings.save_every or epoch
        look_every = self.settings.check_every or epoch
        stream = self.feed.stream(self.state.step * micro, self.total * micro)
        train_mode(self.network)
        stopped = False
        try:
            while self.state.step < self.total and not stopped:
                label = f"train, step {self.state.step} of {self.total}"
                label += "" if math.isnan(self.last_loss) else f", loss {self.last_loss:.3f}"
                left = (self.total - self.state.step) * micro * self.feed.size
                began = time.perf_counter()
                with progress(label, left, "samples") as advance:
                    while self.state.step < self.total and not stopped and time.perf_counter() - began < LEG:
                        self.step(stream)
                        advance(micro * self.feed.size)
                        stopped = self.look(look_every)
                        if stopped or self.state.step % save_every == 0 or self.state.step == self.total:
                            self.save()
        finally:
            stream.close()  # type: ignore[attr-defined]
        self.log(self.ledger.settle())
        self.write_model()

    def step(self, stream: Any) -> None:
        """One optimiser step over one or several batches."""
        self.clock.start()
        rate = learning_rate(self.state.step, self.total, self.settings)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        micro = self.settings.accumulate
        losses = []
        for k in range(micro):
            batch = next(stream)
            self.clock.lap("data")
            with self.team.alone(self.network) if k + 1 < micro else nullcontext():
                loss = self.loss(batch) / micro if micro > 1 else self.loss(batch)
                self.clock.lap("forward")
                loss.backward()
                self.clock.lap("backward")
            losses.append(loss.detach())
            self.state.bare += self.settings.objective == "negclip" and not batch.whole_foils
            self.samples += batch.whole_size
        self.update()
        self.clock.lap("update")
        self.state.step += 1
        self.log(self.ledger.add(self.state.step, sum(losses[1:], losses[0]), rate))
        self.clock.lap("books")

    def update(self) -> None:
        """Change the weights by their gradients."""
        import torch

        if self.settings.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.weights, self.settings.clip_norm)
        self.optimiser.step()
        self.optimiser.zero_grad()
        scale = self.job.student.network.logit_scale
        if scale.requires_grad:
            with torch.no_grad():
                scale.clamp_(0, HIGHEST_SCALE)

    def loss(self, batch: Batch) -> torch.Tensor:
        with self.team.rough():
            images, texts, scale = self.network(batch.pixels, batch.ids)
        if batch.parts:
            from creperie.training.gather import gather_batch

            batch, images, texts = gather_batch(batch, images, texts, self.team.index)
        return batch_loss(self.settings, batch, images, texts, scale)

    def _open(self, data: TrainSet, progress: Progress) -> Feed:
        """With several processes each takes its share of every batch."""
        share = ProcessShare(self.team.index, self.team.count)
        job = self.job
        return Feed(data, job.student, job.settings, self.device, truncate=job.truncate, share=share, progress=progress)

    def log(self, lines: list[Line]) -> None:
        """Write down the losses that are known by now; one that is not a number ends the training."""
        bad = next((k for k, (_, loss, _) in enumerate(lines) if not math.isfinite(loss)), None)
        good = lines[:bad]
        if good:
            self._log([{"step": step, "loss": loss, "lr": rate} for step, loss, rate in good])
            self.last_loss = good[-1][1]
        if bad is not None:
            raise self._diverged(*lines[bad][:2])

    def _log(self, lines: list[dict[str, Any]]) -> None:
        if not self.team.leads:
            return
        with (self.out / checkpoints.METRICS).open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
        if self.board is not None:
            for line in lines:
                for name in line.keys() - {"step"}:
                    self.board.add_scalar(name, line[name], line["step"])
            if self.clock.total:
                self.board.add_scalar("samples_per_s", self.samples / self.clock.total, lines[-1]["step"])

    def _diverged(self, step: int, value: float) -> DivergedError:
        micro = self.settings.accumulate
        keys = [key for k in range((step - 1) * micro, step * micro) for key in self.feed.keys(k)]
        kept = checkpoints.steps_kept(self.out)
        last = f"step {kept[-1]} is kept in {checkpoints.checkpoint_path(self.out, kept[-1])}" if kept else "none kept"
        named = ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
        return DivergedError(
            f"the loss of step {step} is {value} (batch: {named}); last good checkpoint: {last}",
            where=str(self.out),
            hint="look at these records, or train with a lower `lr=` or with `clip_norm=` 1",
        )

    # -- held-out data -------------------------------------------------------------------------------------------

    def look(self, every: int) -> bool:
        """Now and then the loss on held-out data; True when it has not got better for too long."""
        if self.looks is None or (self.state.step % every and self.state.step != self.total):
            return False
        self.log(self.ledger.settle())
        value = self.held_out_loss(self.looks)
        self._log([{"step": self.state.step, "held_out": value}])
        if value < self.state.best:
            self.state.best, self.state.best_step, self.state.misses = value, self.state.step, 0
        else:
            self.state.misses += 1
        if self.settings.patience and self.state.best_step == self.state.step:
            self.save()
        return bool(self.settings.patience and self.state.misses >= self.settings.patience)

    def held_out_loss(self, feed: Feed) -> float:
        import torch

        self.network.eval()
        count = max(1, len(feed.data) // feed.size)
        with torch.no_grad():
            losses = [float(self.loss(feed.batch(k))) for k in range(count)]
        train_mode(self.network)
        return sum(losses) / count

    # -- the end -------------------------------------------------------------------------------------------------

    def write_model(self) -> None:
        """The trained model: the best where held-out data ended the training, else the last."""
        import shutil

        if not self.team.leads:
            return
        target = self.out / checkpoints.MODEL
        shutil.rmtree(target, ignore_errors=True)
        with new_folder(target) as draft:
            if self.settings.patience and self.state.best_step and self.total:
                best = checkpoints.checkpoint_path(self.out, self.state.best_step)
                shutil.copytree(best, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(checkpoints.STATE))
            else:
                self.job.student.save(draft)

    def result(self) -> dict[str, Any]:
        seconds = self.clock.total
        rate = self.samples / seconds if seconds else 0.0
        return {
            "steps": self.state.step,
            "loss": None if math.isnan(self.last_loss) else self.last_loss,
            "held_out": None if math.isinf(self.state.best) else self.state.best,
            "best_step": self.state.best_step,
            "trained_weights": self.trained_weights,
            "batches_without_foils": self.state.bare,
            "captions_cut": self.feed.cut,
            "samples_per_s": round(rate, 1),
            "waited_for_data": round(self.clock.seconds["data"] / seconds, 4) if seconds else 0.0,
            "phases": {phase: round(spent, 3) for phase, spent in self.clock.seconds.items()},
            "device": self.device,
        }

    def close(self) -> None:
        for feed in (self.feed, self.looks):
            if feed is not None:
                feed.close()
        if self.board is not None:
            self.board.close()


def _board(out: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "tensorboard", "train") from e
    return SummaryWriter(str(out / "tensorboard"))
