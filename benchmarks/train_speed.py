"""How fast the trainer is, beside the bare forward and backward pass on data that is already there.

    python benchmarks/train_speed.py [--device cuda] [--models small,large,vit-b-32] [--out FILE.json]

For each model: samples a second of the forward pass, loss and backward pass on one resident batch; the same with the
optimiser's step; and of `creperie.train`, with batches drawn, tokens padded, losses logged. The trainer's rate is that
of its last steps, when all pictures have been seen once. Random weights; small models on the built-in world.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

#: model → batch, examples, timed steps, precision
PLANS = {
    "small": (64, 512, 40, "float32"),
    "large": (512, 8192, 200, "bfloat16"),
    "vit-b-32": (256, 1024, 60, "bfloat16"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", default="small")
    parser.add_argument("--steps", type=int, help="timed steps, in place of the plan's")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smallest", action="store_true", help="batches of four: only to see that it runs")
    args = parser.parse_args()
    if args.smallest:
        PLANS.update({name: (4, 8, 3, precision) for name, (_, _, _, precision) in PLANS.items()})
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    found, passes = {}, {}
    for name in args.models.split(","):
        found[name], passes[name] = measure(name, args.device, args.steps)
        print(name, json.dumps(found[name]), flush=True)
    if args.device.startswith("cuda"):  # last, for a profiler that was once at work slows down all that follows
        for name, once in passes.items():
            found[name] |= {"on the GPU": kernels_of(once, args.device)}
            print(name, json.dumps(found[name]["on the GPU"]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def measure(name: str, device: str, steps: int | None) -> tuple[dict[str, Any], Callable[[], None]]:
    """What was measured, and one bare pass for whoever wants to look closer."""
    from creperie.training import TrainingJob, TrainingSettings
    from creperie.training.losses import make_optimiser

    batch, examples, planned, precision = PLANS[name]
    timed = steps or planned
    student, data = made(name, examples)
    warm = examples // batch + 15
    settings = TrainingSettings(
        objective="negclip", epochs=10**6, steps=warm + timed, batch=batch, lr=1e-5, warmup=10, precision=precision,
        save_every=10**6,
    )  # fmt: skip
    own, own_cpu = trainer_rate(TrainingJob(student, data, settings), device, warm)
    network = student.network.to(device)
    bare = bare_rate(student, network, data, settings, device, timed, None)
    whole = bare_rate(student, network, data, settings, device, timed, make_optimiser(network, settings))
    found = {
        "batch": batch,
        "forward + backward": round(bare.rate, 1),
        "with the optimiser": round(whole.rate, 1),
        "trainer": round(own, 1),
        "share of forward + backward": round(own / bare.rate, 3),
        "ms a step": round(1000 * batch / own, 3),
    }
    if device == "cpu":  # what a machine that does other things besides cannot distort
        found |= {
            "forward + backward, a CPU second": round(bare.cpu_rate, 1),
            "trainer, a CPU second": round(own_cpu, 1),
            "share by CPU time": round(own_cpu / bare.cpu_rate, 3),
        }
    return found, bare.once


def trainer_rate(job: Any, device: str, warm: int) -> tuple[float, float]:
    """Samples per second, and per CPU second, of the steps after the first ones."""
    from creperie.training import train_job

    total, steps = job.settings.steps, 0
    stamps: list[tuple[float, float]] = []

    @contextmanager
    def stamping(label: str, left: int | None, unit: str) -> Iterator[Any]:
        def advance(n: int) -> None:
            nonlocal steps
            steps += 1
            if steps in (warm, total - 1):  # the last step also writes the model
                synchronise(device)
                stamps.append((time.perf_counter(), time.process_time()))

        yield advance

    with tempfile.TemporaryDirectory() as place:
        train_job(job, Path(place) / "run", device=device, progress=stamping)
    (begin, begin_cpu), (end, end_cpu) = stamps
    samples = (total - 1 - warm) * job.settings.batch
    return samples / (end - begin), samples / (end_cpu - begin_cpu)


@dataclass(frozen=True)
class Bare:
    """Passes over one batch that lies on the device."""

    rate: float  #: samples a second
    cpu_rate: float  #: samples a CPU second
    once: Callable[[], None]  #: such a pass


def bare_rate(student: Any, network: Any, data: Any, settings: Any, device: str, steps: int, optimiser: Any) -> Bare:
    import torch

    from creperie.training.feed import Feed
    from creperie.training.losses import batch_loss

    feed = Feed(data, student, settings, device, truncate=True)
    batch = feed.batch(0)
    network.train()
    kind = device.split(":")[0]
    mixed = settings.precision == "bfloat16"

    def once() -> None:
        network.zero_grad()
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=mixed):
            vectors = network(batch.pixels, batch.ids)
        loss = batch_loss(settings, batch, *vectors)
        loss.backward()
        if optimiser is not None:
            optimiser.step()

    for _ in range(5):
        once()
    synchronise(device)
    start, start_cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        once()
    synchronise(device)
    spent, spent_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    feed.close()
    samples = steps * batch.size
    return Bare(samples / spent, samples / spent_cpu, once)


def kernels_of(once: Callable[[], None], device: str) -> dict[str, float]:
    """How many kernels a step starts, and how long the GPU works on them."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    steps = 5
    try:
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(steps):
                once()
            synchronise(device)
    except RuntimeError as e:  # a driver that does not let itself be watched must not cost the other figures
        print(f"no profile: {e}", file=sys.stderr)
        return {}
    own = [e for e in seen.events() if e.device_type == DeviceType.CUDA]
    busy = sum(e.time_range.elapsed_us() for e in own)
    return {"kernels a step": len(own) / steps, "busy ms a step": round(busy / steps / 1000, 3)}


def synchronise(device: str) -> None:
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize()


def made(name: str, examples: int) -> tuple[Any, Any]:
    """A model with random weights and pictures for it."""
    from creperie.training.presets import PRESETS
    from creperie.training.scenes import scene_pairs
    from creperie.training.student import new_small

    if name in PRESETS:
        config = PRESETS[name].model
        data = scene_pairs(examples, 0, config.size)
        plain = replace(data, examples=tuple(replace(e, alternatives=()) for e in data.examples))
        return new_small(config, plain.captions(), 0), plain
    return vit(examples)


def vit(examples: int) -> tuple[Any, Any]:
    """CLIP ViT-B/32 with a small vocabulary, and noise of its size."""
    from transformers import CLIPConfig, CLIPModel

    from creperie.testing.tiny import clip_processor
    from creperie.testing.tokenizers import clip_tokenizer
    from creperie.training.examples import TrainingExample, TrainSet
    from creperie.training.student import open_student

    tokenizer = clip_tokenizer(77)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = CLIPConfig(
        text_config={"hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8, "intermediate_size": 2048,
                     "vocab_size": len(tokenizer), **ends},
        vision_config={"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                       "intermediate_size": 3072, "patch_size": 32, "image_size": 224},
        projection_dim=512,
    )  # fmt: skip
    processor = clip_processor(224)
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (examples, 224, 224, 3), dtype=np.uint8)
    words = "a dog chases a cat across the green lawn"
    found = tuple(
        TrainingExample(str(k), str(k), f"{words} {k % 97}", "", (f"a cat chases a dog across the lawn {k % 97}",))
        for k in range(examples)
    )
    with tempfile.TemporaryDirectory() as folder:
        for part in (CLIPModel(config), tokenizer, processor):
            part.save_pretrained(folder)
        student = open_student(f"hf:{folder}")
    return student, TrainSet("noise", found, lambda key: Image.fromarray(pictures[int(key)]))


if __name__ == "__main__":
    sys.exit(main())
