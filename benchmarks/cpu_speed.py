"""ViT-B/32 on a CPU: a loop of single inputs, creperie's adapters in float32 and bfloat16, and ONNX Runtime.

    python benchmarks/cpu_speed.py [--images 64] [--out FILE.json]

Random weights, prepared inputs in memory. Beside each rate stand its ratio to the loop and the share of the fastest
matrix product that was measured in the same run in the same precision. ONNX Runtime is left out where it or the
exporter is not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

#: multiplications and additions × 2 of one 224 × 224 image and of one caption of 16 tokens
IMAGE_FLOP, TEXT_FLOP = 8.8e9, 1.21e9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smallest", action="store_true", help="a tiny model, one image: only to see that it runs")
    args = parser.parse_args()
    import gpu_speed
    import torch
    from gpu_speed import SIZES, made_captions, make_model

    if args.smallest:
        gpu_speed.shrink()
        args.images = 1

    from creperie.models import load_model

    found: dict[str, Any] = {"cpu": cpu_name(), "cores": os.cpu_count(), "torch": torch.__version__, "rows": []}
    peaks = {name: peak(name, 64 if args.smallest else 2048) for name in gpu_speed.DTYPES}
    found["peak TFLOP/s"] = {name: round(value / 1e12, 3) for name, value in peaks.items()}
    print(found)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        folder = make_model(Path(place) / "model", SIZES["ViT-B/32"], made_captions(50 if args.smallest else 2000))
        for dtype in gpu_speed.DTYPES:
            model: Any = load_model(f"hf:{folder}", device="cpu", dtype=dtype)
            images = [rng.integers(0, 256, (224, 224, 3), dtype=np.uint8) for _ in range(args.images)]
            texts = model.prepare_texts([" ".join(c.split()[:14]) for c in made_captions(8 * args.images)])
            if dtype == "float32":
                loop = rates(model, images[:16], texts[:64], 1, 1)
                row(found, "loop, one at a time", loop, loop, peaks["float32"])
            row(found, f"creperie, {dtype}", rates(model, images, texts, 16, 128), loop, peaks[dtype])
        onnx = None if args.smallest else onnx_rates(folder, args.images)
        if onnx:
            row(found, "ONNX Runtime, float32", onnx, loop, peaks["float32"])
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def row(found: dict[str, Any], name: str, rates: tuple[float, float], loop: tuple[float, float], flops: float) -> None:
    images, texts = rates
    line = {
        "way": name,
        "images/s": round(images, 1),
        "captions/s": round(texts, 1),
        "images, times the loop": round(images / loop[0], 2),
        "captions, times the loop": round(texts / loop[1], 2),
        "images, of the peak": round(images * IMAGE_FLOP / flops, 2),
        "captions, of the peak": round(texts * TEXT_FLOP / flops, 2),
    }
    found["rows"].append(line)
    print(line)


def rates(
    model: Any, images: list[Any], texts: list[Any], images_at_once: int, texts_at_once: int
) -> tuple[float, float]:
    return (
        rate(lambda: in_parts(model.forward_images, images, images_at_once), len(images)),
        rate(lambda: in_parts(model.forward_texts, texts, texts_at_once), len(texts)),
    )


def in_parts(forward: Callable[[Any], Any], items: list[Any], size: int) -> None:
    for at in range(0, len(items), size):
        forward(items[at : at + size])


def rate(work: Callable[[], Any], count: int) -> float:
    work()
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return count / min(taken)


def peak(dtype: str, n: int) -> float:
    import torch

    a, b = (torch.randn(n, n, dtype=getattr(torch, dtype)) for _ in range(2))
    return 2 * n**3 * rate(lambda: a @ b, 1)


def onnx_rates(folder: Path, images: int) -> tuple[float, float] | None:
    """The same towers exported and run by ONNX Runtime, images and captions per second."""
    try:
        import onnxruntime
        import torch
        from transformers import CLIPModel

        model = CLIPModel.from_pretrained(folder).eval()

        class Tower(torch.nn.Module):
            def __init__(self, call: Callable[[torch.Tensor], Any]) -> None:
                super().__init__()
                self.model, self.call = model, call

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                found = self.call(x)
                return getattr(found, "pooler_output", found)

        ids = torch.randint(5, 1000, (128, 16))
        ids[:, -1] = model.config.text_config.eos_token_id
        pixels = torch.randn(16, 3, 224, 224)
        rates = []
        for tower, given, count in (
            (Tower(lambda x: model.get_image_features(pixel_values=x)), pixels, 16),
            (Tower(lambda x: model.get_text_features(input_ids=x)), ids, 128),
        ):
            path = folder / "tower.onnx"
            torch.onnx.export(tower, (given,), str(path), input_names=["x"], dynamo=True)
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            feed = {session.get_inputs()[0].name: given.numpy()}
            rates.append(rate(lambda session=session, feed=feed: session.run(None, feed), count))
        return rates[0], rates[1]
    except Exception as e:
        print(f"ONNX Runtime not measured: {type(e).__name__}: {str(e)[:200]}")
        return None


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    named = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    flags = next((line for line in lines if line.startswith("flags")), "")
    extra = [f for f in ("avx512f", "avx512_bf16", "amx_bf16") if f in flags.split()]
    return " ".join([named[0] if named else "unknown", *extra])


if __name__ == "__main__":
    sys.exit(main())
