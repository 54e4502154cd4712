"""How far a small model gets on swaps, and what it takes: the training signal, depth, size. For a GPU.

    python research/train_binding.py --device cuda --seconds 120 --out FILE.json

All variants see the same pictures of the built-in world (split train) for the same time, beside each other, and sit the
same exam (split test). "certified" trains with the world's own foils: the true caption of a twin scene, which no blind
attacker can tell, as a further caption and the twin's picture as a further picture.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

#: variant → (objective, changes to the preset's model)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "large, CLIP loss": ("clip", {}),
    "large, certified foils": ("negclip", {}),
    "large, certified foils, text tower of one layer": ("negclip", {"text_layers": 1}),
    "small, certified foils": (
        "negclip",
        {"channels": (32, 64, 128), "vision_layers": 1, "text_width": 128, "text_layers": 1, "heads": 4, "joint": 128},
    ),
}
SHARED: dict[str, Any] = {}  #: what the processes inherit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=120.0, help="of training, a variant")
    parser.add_argument("--pairs", type=int, default=32 * 4096)
    parser.add_argument("--probe", type=int, default=60, help="steps to measure the speed on")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--variants", default=",".join(map(str, range(len(VARIANTS)))))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smallest", action="store_true", help="a few steps on the CPU: only to see that it runs")
    args = parser.parse_args()
    if args.smallest:
        args.device, args.seconds, args.pairs, args.probe, args.items, args.batch = "cpu", 0.0, 16, 2, 2, 4
        args.variants = str(len(VARIANTS) - 1)
    from creperie.training.presets import PRESETS
    from creperie.training.scenes import scene_pairs

    start = time.perf_counter()
    preset = replace(PRESETS["large"], items=args.items)
    SHARED["data"] = scene_pairs(args.pairs, 1, preset.model.size, workers=os.cpu_count() or 1)
    SHARED["preset"], SHARED["args"] = preset, args
    print(f"{args.pairs} pictures in {time.perf_counter() - start:.1f} s", flush=True)
    found: dict[str, Any] = {}
    context = get_context("fork")  # before CUDA is touched: the pictures need not be sent
    names = [list(VARIANTS)[int(k)] for k in args.variants.split(",")]
    with context.Pool(len(names)) as pool:
        for name, values in zip(names, pool.imap(run, names), strict=True):
            found[name] = values
            print(name, json.dumps(values), flush=True)
            if args.out:
                args.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def run(name: str) -> dict[str, Any]:
    """One variant: as many steps as fit the time, measured on a few first ones."""
    import torch

    from creperie.scoring import ScoreOptions, score
    from creperie.training import TrainingJob, train_job
    from creperie.training.lab import world_exam
    from creperie.training.student import new_small

    torch.set_num_threads(2)
    args, preset, data = SHARED["args"], SHARED["preset"], SHARED["data"]
    objective, changes = VARIANTS[name]
    config = replace(preset.model, **changes)
    precision = "bfloat16" if args.device.startswith("cuda") else "float32"
    settings = replace(preset.base, objective=objective, batch=args.batch, precision=precision)

    def go(steps: int, out: Path) -> Any:
        student = new_small(config, data.captions(), 0)
        SHARED["weights"] = sum(w.numel() for w in student.network.parameters())
        chosen = replace(settings, steps=steps, warmup=min(200, steps // 10))
        return train_job(TrainingJob(student, data, chosen), out, device=args.device)

    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        go(10, Path(place) / "first")  # starts the device
        probe = go(args.probe, Path(place) / "probe").document["samples_per_s"] / args.batch
        left = max(5.0, args.seconds - (time.perf_counter() - begun)) if args.seconds else 0.0
        done = go(max(20 if args.seconds else 2, int(left * probe)), Path(place) / "run")
        exam = world_exam(preset, extra=("spatial", "active_passive", "dative"))
        run = score(exam, done.uri, tasks=["itt"], options=ScoreOptions(device=args.device))
        results = {r.subset: r for r in run.evaluate()}
    return {
        "weights": SHARED["weights"],
        "steps": done.document["steps"],
        "samples/s": done.document["samples_per_s"],
        "loss": round(done.document["loss"], 4),
        "accuracy": {k: round(100 * r.accuracy, 1) for k, r in results.items()},
        "interval": {k: [round(100 * r.low, 1), round(100 * r.high, 1)] for k, r in results.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
