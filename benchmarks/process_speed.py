"""How much of its speed a model keeps in another process (`process:`), for images of 224 × 224.

    python benchmarks/process_speed.py [--python OTHER/bin/python] [--smallest]

A CLIP image tower of the size of ViT-B/32 with random weights encodes batches here and in a process of the same or
another Python environment, in turn. The exit code is 1 if the process has less than nine tenths of the speed, or if the
vectors differ: at all in an environment with the same versions, by more than 1e-5 in another one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

MODULE = """
import numpy as np, torch
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

class Tower:
    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        layers = LAYERS
        self.model = CLIPVisionModelWithProjection(CLIPVisionConfig(num_hidden_layers=layers)).eval()
    def encode_image(self, images):
        pixels = torch.from_numpy(np.stack([np.asarray(i) for i in images])).permute(0, 3, 1, 2) / 255
        with torch.inference_mode():
            return self.model(pixel_values=pixels).image_embeds.numpy()
    def encode_text(self, texts):
        return np.eye(512, dtype=np.float32)[[len(t) for t in texts]]

load = Tower
"""
TOLERANCE, LEAST = 1e-5, 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python of the process (default: this one)")
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--smallest", action="store_true", help="one layer, two images: only to see that it runs")
    args = parser.parse_args()
    if args.smallest:
        args.images, args.batch = 2, 2
    from creperie.models import load_model

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tower.py"
        file.write_text(MODULE.replace("LAYERS", "1" if args.smallest else "12"))
        sys.path.insert(0, folder)
        from tower import load  # type: ignore[import-not-found]

        there: Any = load_model(f"process:{args.python}?module={file}", device="cpu")
        figures = measured({"here": in_this_process(load()), "process": there.encode_images}, args.images, args.batch)
    there = there.fingerprint.preprocessing["versions"]
    same = all(there.get(name) == version for name, version in versions().items())
    figures |= {"versions there": there, "same versions": same}
    print(json.dumps(figures, indent=1))
    close = figures["largest difference"] <= (0 if same else TOLERANCE)
    return 0 if close and (args.smallest or figures["share of the speed"] >= LEAST) else 1


def versions() -> dict[str, str]:
    import torch
    import transformers

    return {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": np.__version__}


def in_this_process(tower: Any) -> Callable[[Sequence[Image.Image]], np.ndarray]:
    def encode(images: Sequence[Image.Image]) -> np.ndarray:
        vectors = tower.encode_image(images)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    return encode


def measured(models: dict[str, Any], count: int, batch: int) -> dict[str, Any]:
    """Images per second of both, the best of three turns, and how far their vectors are apart."""
    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)) for _ in range(count)]
    rates, vectors = dict.fromkeys(models, 0.0), {}
    for _ in range(3):
        for name, encode in models.items():
            start = time.perf_counter()
            parts = [encode(pictures[at : at + batch]) for at in range(0, count, batch)]
            rates[name] = max(rates[name], count / (time.perf_counter() - start))
            vectors[name] = np.concatenate(parts)
    return {
        "images/s": {name: round(rate, 2) for name, rate in rates.items()},
        "share of the speed": round(rates["process"] / rates["here"], 3),
        "largest difference": float(np.abs(vectors["here"] - vectors["process"]).max()),
    }


if __name__ == "__main__":
    sys.exit(main())
