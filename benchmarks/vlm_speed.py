"""How fast captions are scored by a LLaVA-shaped model: everything again for each caption, or a shared prefix.

    python benchmarks/vlm_speed.py               a small random model on the CPU
    python benchmarks/vlm_speed.py --gpu         a 7B-shaped random model in bfloat16 on a CUDA device

One run measures all ways, checks that they agree, and prints milliseconds an image and tokens a second beside the
floor: the time that the operations and bytes of one batched pass take at the speed that the device shows on one large
matrix product and one large copy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch

from creperie.models.place import Place
from creperie.models.vlm.causal import CausalEngine
from creperie.models.vlm.families import FAMILIES
from creperie.models.vlm.reader import Line

IMAGE_TOKENS, TEXT_TOKENS, CAPTION_TOKENS, CAPTIONS = 576, 40, 16, 4
IMAGE_TOKEN, VOCABULARY = 31_999, 32_000


@dataclass(frozen=True)
class Shape:
    """Layers and widths of the decoder and of the vision tower."""

    layers: int
    width: int
    inner: int
    heads: int
    vision_layers: int
    vision_width: int
    vision_inner: int
    vision_heads: int


SMALL = Shape(4, 256, 688, 4, 4, 192, 768, 4)
SEVEN_B = Shape(32, 4096, 11008, 32, 24, 1024, 4096, 16)


def build(shape: Shape, place: Place) -> Any:
    """A LLaVA 1.5 with random weights, made on the device itself."""
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    vision = CLIPVisionConfig(
        hidden_size=shape.vision_width,
        intermediate_size=shape.vision_inner,
        num_hidden_layers=shape.vision_layers,
        num_attention_heads=shape.vision_heads,
        image_size=336,
        patch_size=14,
    )
    text = LlamaConfig(
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        vocab_size=VOCABULARY,
        max_position_embeddings=4096,
    )
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_id=IMAGE_TOKEN)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(place.torch_dtype)
    try:
        with place.torch_device:
            model = LlavaForConditionalGeneration(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval()


def inputs(images: int, seed: int = 0) -> tuple[list[dict[str, np.ndarray]], list[list[Line]]]:
    """Images as a processor would give them, and captions of one length behind one prompt."""
    rng = np.random.default_rng(seed)
    head = np.concatenate([[1, 5, 6], np.full(IMAGE_TOKENS, IMAGE_TOKEN)])
    context = rng.integers(10, 30_000, TEXT_TOKENS - 3)
    seen: list[dict[str, np.ndarray]] = []
    lines: list[list[Line]] = []
    for _ in range(images):
        pixels = rng.normal(size=(1, 3, 336, 336)).astype(np.float32)
        ids = head[None].astype(np.int64)
        seen.append({"input_ids": ids, "attention_mask": np.ones_like(ids), "pixel_values": pixels})
        captions = rng.integers(10, 30_000, (CAPTIONS, CAPTION_TOKENS))
        lines.append([Line(np.concatenate([context, c]).astype(np.int64), 0, len(context)) for c in captions])
    return seen, lines


def naive(model: Any, place: Place, seen: list[dict[str, np.ndarray]], lines: list[list[Line]]) -> np.ndarray:
    """Vision tower, prompt and caption again for every caption, through the library's own loss."""
    scores = []
    with torch.inference_mode():
        for image, captions in zip(seen, lines, strict=True):
            pixels = torch.from_numpy(image["pixel_values"]).to(place.torch_device, place.torch_dtype)
            for line in captions:
                ids = torch.from_numpy(np.concatenate([image["input_ids"][0], line.ids]))[None].to(place.torch_device)
                labels = ids.clone()
                labels[:, :-CAPTION_TOKENS] = -100
                mask = torch.ones_like(ids)
                loss = model(
                    input_ids=ids, attention_mask=mask, pixel_values=pixels, labels=labels, use_cache=False
                ).loss
                scores.append(-float(loss))
    return np.array(scores)


def shared(engine: CausalEngine, seen: Any, lines: Any, together: int) -> np.ndarray:
    """The prefix once an image, so many images at a time."""
    found: list[float] = []
    for at in range(0, len(seen), together):
        for own in engine.log_probabilities(seen[at : at + together], lines[at : at + together]):
            found += [float(logs.mean()) for logs in own]
    return np.array(found)


def timed(work: Callable[[], np.ndarray], place: Place, repeats: int) -> tuple[float, np.ndarray]:
    """The best of several times, after one to warm up."""
    result = work()
    best = float("inf")
    for _ in range(repeats):
        wait(place)
        start = time.perf_counter()
        result = work()
        wait(place)
        best = min(best, time.perf_counter() - start)
    return best, result


def wait(place: Place) -> None:
    if place.device == "cuda":
        torch.cuda.synchronize()


# -- the floor -------------------------------------------------------------------------------------------------------


def operations(model: Any, shape: Shape) -> float:
    """Multiplications and additions of one image with its captions, each part once: twice the weights a token, and
    attention over what is before each token."""
    prefix, rest = IMAGE_TOKENS + TEXT_TOKENS, CAPTIONS * CAPTION_TOKENS
    layers = sum(p.numel() for n, p in model.named_parameters() if "language_model.layers" in n)
    tower = sum(p.numel() for n, p in model.named_parameters() if "vision_tower" in n or "multi_modal" in n)
    patches = IMAGE_TOKENS + 1
    attention = 4 * shape.width * shape.layers * (prefix * prefix / 2 + rest * prefix)
    looking = 4 * shape.vision_width * shape.vision_layers * patches * patches
    words = 2 * shape.width * VOCABULARY * (1 + rest)
    return 2 * layers * (prefix + rest) + 2 * tower * patches + attention + looking + words


def bytes_moved(model: Any, shape: Shape, place: Place, together: int) -> float:
    """The weights once a batch; keys and values written once and read for the captions."""
    each = 4 if place.dtype == "float32" else 2
    weights = sum(p.numel() for p in model.parameters()) * each / together
    tokens = IMAGE_TOKENS + TEXT_TOKENS + CAPTIONS * CAPTION_TOKENS
    return weights + 2 * 2 * shape.layers * shape.width * each * tokens


def device_speed(place: Place) -> tuple[float, float]:
    """Operations and bytes a second, from a large matrix product and a large copy."""
    n = 8192 if place.device == "cuda" else 1024
    a = torch.randn(n, n, device=place.torch_device, dtype=place.torch_dtype)
    product, _ = timed(lambda: np.zeros(int((a @ a).numel() > 0)), place, 5)
    big = torch.empty(1 << (31 if place.device == "cuda" else 26), dtype=torch.uint8, device=place.torch_device)
    copy, _ = timed(lambda: np.zeros(int(big.clone().numel() > 0)), place, 5)
    return 2 * n**3 / product, 2 * big.numel() / copy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="a 7B-shaped model in bfloat16 on CUDA")
    parser.add_argument("--images", type=int, help="images in the measurement (6, or 72 with --gpu)")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    place = Place("cuda", "bfloat16") if asked.gpu else Place()
    shape = SEVEN_B if asked.gpu else SMALL
    count = asked.images or (72 if asked.gpu else 6)
    model = build(shape, place)
    reader: Any = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=0))
    engine = CausalEngine(model, reader, FAMILIES["llava"], place)
    seen, lines = inputs(count)
    few = min(count, 8 if asked.gpu else count)
    size = sum(p.numel() for p in model.parameters()) / 1e9
    print(
        f"{size:.2f} B weights, {place.dtype} on {place.device}; {IMAGE_TOKENS + TEXT_TOKENS} prefix tokens,", end=" "
    )
    print(f"{CAPTIONS} captions of {CAPTION_TOKENS} tokens an image")
    flops, bandwidth = device_speed(place)
    rows = [("naive loop", *timed(lambda: naive(model, place, seen[:few], lines[:few]), place, asked.repeats), few)]
    for together in [1, *([4, 16, 36] if asked.gpu else [3])]:
        n = few if together == 1 else count
        name = "shared prefix, one image" if together == 1 else f"shared prefix, {together} images"
        work = lambda n=n, together=together: shared(engine, seen[:n], lines[:n], together)  # noqa: E731
        rows.append((name, *timed(work, place, asked.repeats), n))
    compute = operations(model, shape) / flops
    memory = bytes_moved(model, shape, place, 16) / bandwidth
    report(rows, compute, memory, flops, bandwidth)
    return verdict(rows, gpu=asked.gpu)


def report(rows: list[Any], compute: float, memory: float, flops: float, bandwidth: float) -> None:
    tokens = IMAGE_TOKENS + TEXT_TOKENS + CAPTIONS * CAPTION_TOKENS
    base = rows[0][1] / rows[0][3]
    print(f"{'':28} {'ms an image':>12} {'faster':>8} {'tokens/s':>10} {'of floor':>9} {'largest difference':>19}")
    for name, seconds, scores, n in rows:
        each = seconds / n
        apart = np.abs(scores[: len(rows[0][2])] - rows[0][2][: len(scores)]).max()
        share = max(compute, memory) / each
        print(f"{name:28} {1e3 * each:12.1f} {base / each:7.2f}× {tokens / each:10,.0f} {share:8.0%} {apart:19.1e}")
    floor = max(compute, memory)
    print(f"floor: {1e3 * floor:.1f} ms an image, {tokens / floor:,.0f} tokens/s")
    print(f"  {1e3 * compute:.2f} ms of operations at {flops / 1e12:.2f} Tflop/s, as measured on a matrix product")
    print(f"  {1e3 * memory:.2f} ms of bytes at {bandwidth / 1e9:.0f} GB/s, as measured on a copy")


def verdict(rows: list[Any], *, gpu: bool) -> int:
    """0 where the goal is reached: 3.5 times the naive loop on the CPU, under 25 ms an image on the GPU."""
    best = min(seconds / n for _, seconds, _, n in rows[1:])
    if gpu:
        good = best < 0.025
        print(f"best {1e3 * best:.1f} ms an image: {'under' if good else 'NOT under'} 25 ms")
    else:
        speedup = rows[0][1] / rows[0][3] / best
        good = speedup >= 3.5
        print(f"{speedup:.2f} times the naive loop: {'at least' if good else 'NOT'} 3.5")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
