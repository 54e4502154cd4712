"""How fast a LLaVA-shaped model scores captions and writes answers, beside a naive loop.

    python benchmarks/vlm_speed.py                             a small random model on the CPU
    python benchmarks/vlm_speed.py --gpu [--out FILE.json]     a 7B-shaped random model in bfloat16 on a CUDA device
    python benchmarks/vlm_speed.py --from FILE.json --write    the table of docs/performance.md

The naive loop reads everything again for each caption, through the library's loss. *Behind a cache* reads an image's
prefix, then its captions with copies of the prefix's keys and values; *one pass* reads image and captions together;
*compiled* is one pass with the decoder's layers compiled by torch. The floor is the time that the operations and bytes
of one batched pass take at the speed that the device shows on one large matrix product and one large copy. The second
part has more text before the image, the third compares precisions with the naive loop in float32, the fourth writes
answers of 64 tokens. On a GPU the kernels of one batch are listed by kind. Every part that is done is written to FILE
(default: vlm_speed.json in the folder $OUT, where that is set); a part that fails says so and the next one begins. The
last line is all figures as JSON. The exit code is 1 where a goal is missed: 3.5 times the naive loop on the CPU; on the
GPU at most 18 ms per image, and answers in batches at 6 times the rate of one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch

from creperie.models import Place
from creperie.models.device import exact_float32
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.vlm.causal import CausalEngine
from creperie.models.vlm.chooser import VlmGenerator
from creperie.models.vlm.families import FAMILIES
from creperie.models.vlm.reader import AnswerLine

IMAGE_TOKENS, TEXT_TOKENS, CAPTION_TOKENS, CAPTIONS = 576, 40, 16, 4
IMAGE_TOKEN, VOCABULARY = 31_999, 32_000
#: below, text before the image is a few words of the template
LITTLE = 16
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


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


TINY = Shape(1, 16, 16, 2, 1, 16, 16, 2)
SMALL = Shape(4, 256, 688, 4, 4, 192, 768, 4)
#: in the part with text before the image: as in real models, and unlike in the small one, attention is a small part
WIDE = Shape(4, 768, 2048, 12, 4, 192, 768, 4)
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


def inputs(images: int, before: int = 3, seed: int = 0) -> tuple[list[dict[str, np.ndarray]], list[list[AnswerLine]]]:
    """Images as a processor would give them behind so many tokens of text, and captions of one length behind one
    prompt."""
    rng = np.random.default_rng(seed)
    head = np.concatenate([rng.integers(10, 30_000, before), np.full(IMAGE_TOKENS, IMAGE_TOKEN)])
    context = rng.integers(10, 30_000, TEXT_TOKENS - 3)
    seen: list[dict[str, np.ndarray]] = []
    lines: list[list[AnswerLine]] = []
    for _ in range(images):
        pixels = rng.normal(size=(1, 3, 336, 336)).astype(np.float32)
        ids = head[None].astype(np.int64)
        seen.append({"input_ids": ids, "attention_mask": np.ones_like(ids), "pixel_values": pixels})
        captions = rng.integers(10, 30_000, (CAPTIONS, CAPTION_TOKENS))
        lines.append([AnswerLine(np.concatenate([context, c]).astype(np.int64), 0, len(context)) for c in captions])
    return seen, lines


def naive(model: Any, place: Place, seen: list[dict[str, np.ndarray]], lines: list[list[AnswerLine]]) -> np.ndarray:
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


@dataclass(frozen=True)
class Way:
    """One way to score, as it was measured: seconds an image, by the clock and of all processors' time (which says
    more where others use the machine too), and the scores."""

    name: str
    seconds: float
    busy: float
    scores: np.ndarray


def measured(name: str, work: Callable[[int], np.ndarray], images: int, place: Place, repeats: int) -> Way:
    """The best of several times, after one image to warm up (on a GPU all of them, for its memory pool)."""
    scores = work(images if place.device == "cuda" else 1)
    best = busy = float("inf")
    for _ in range(repeats):
        wait(place)
        start, used = time.perf_counter(), time.process_time()
        scores = work(images)
        wait(place)
        best, busy = min(best, time.perf_counter() - start), min(busy, time.process_time() - used)
    return Way(name, best / images, busy / images, scores)


def wait(place: Place) -> None:
    if place.device == "cuda":
        torch.cuda.synchronize()


# -- the floor -------------------------------------------------------------------------------------------------------


def operations(model: Any, shape: Shape, past: int = 0) -> float:
    """Multiplications and additions of one image with its captions, each part once: twice the weights a token, and
    attention over what is before each token. `past` tokens before the image have been read for all images."""
    prefix, rest = IMAGE_TOKENS + TEXT_TOKENS - (3 if past else 0), CAPTIONS * CAPTION_TOKENS
    layers = sum(p.numel() for n, p in model.named_parameters() if "language_model.layers" in n)
    tower = sum(p.numel() for n, p in model.named_parameters() if "vision_tower" in n or "multi_modal" in n)
    patches = IMAGE_TOKENS + 1
    attention = 4 * shape.width * shape.layers * (prefix * (past + prefix / 2) + rest * (past + prefix))
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
    big = torch.empty(1 << (31 if place.device == "cuda" else 26), dtype=torch.uint8, device=place.torch_device)
    product = measured("product", lambda _: np.zeros(int((a @ a).numel() > 0)), 1, place, 5)
    copy = measured("copy", lambda _: np.zeros(int(big.clone().numel() > 0)), 1, place, 5)
    return 2 * n**3 / product.seconds, 2 * big.numel() / copy.seconds


class RandomReader:
    """Stands in for a processor and a tokenizer: questions are random tokens, answers are shown as numbers."""

    tokenizer = SimpleNamespace(pad_token_id=0, eos_token_id=None, decode=lambda ids, **_: " ".join(map(str, ids)))
    family = FAMILIES["llava"]

    def frame(self, question: str, turns: Any = ()) -> Any:
        return SimpleNamespace(head="")

    def see(self, image: Any, head: str, before: Any) -> dict[str, np.ndarray]:
        return image

    def lines(self, pairs: Any, *, end: bool = False, turns: Any = ()) -> list[AnswerLine]:
        made = []
        for question, _ in pairs:
            rng = np.random.default_rng(int(question))
            made.append(AnswerLine(rng.integers(10, 30_000, 30 + int(question) % 16), 0, 64))
        return made


@dataclass(frozen=True)
class Bench:
    """A model, where it runs, and how much is measured."""

    shape: Shape
    place: Place
    images: int
    repeats: int
    batches: tuple[int, ...]

    @cached_property
    def model(self) -> Any:
        return build(self.shape, self.place)

    @cached_property
    def engine(self) -> CausalEngine:
        reader: Any = RandomReader()
        return CausalEngine(self.model, reader, FAMILIES["llava"], self.place)

    def way(self, name: str, before: int, together: int, **settings: bool) -> Way:
        """Measure the engine with these settings, so many images at a time."""
        seen, lines = inputs(self.images, before)
        known = {field: getattr(self.engine, field) for field in settings}
        for field, value in settings.items():
            setattr(self.engine, field, value)
        count = min(self.images, max(together, 8))
        work = lambda n: shared(self.engine, seen[:n], lines[:n], together)  # noqa: E731
        try:
            return measured(
                f"{name}, {together} image{'s' if together > 1 else ''}", work, count, self.place, self.repeats
            )
        finally:
            for field, value in known.items():
                setattr(self.engine, field, value)

    def naive(self, before: int, images: int) -> Way:
        """Measure the naive loop on so many images."""
        seen, lines = inputs(images, before)
        loop = lambda n: naive(self.model, self.place, seen[:n], lines[:n])  # noqa: E731
        with self.engine.eagerly():
            return measured("naive loop", loop, min(images, self.images), self.place, 1)

    def ways(self, before: int) -> list[Way]:
        """The naive loop, then the shared prefix in batches of several sizes, with so much text before the image."""
        most = self.batches[-1]
        found = [self.naive(before, 4), self.way("captions behind a cache", before, most, packs=False)]
        found += [self.way("one pass", before, together) for together in (self.batches if before < LITTLE else [most])]
        return found

    def floor(self, before: int, flops: float, bandwidth: float) -> tuple[float, float]:
        """Seconds that operations and bytes take, where text before the image costs nothing."""
        past = 0 if before < LITTLE else before
        moved = bytes_moved(self.model, self.shape, self.place, self.batches[-1])
        return operations(self.model, self.shape, past) / flops, moved / bandwidth


# -- the parts -------------------------------------------------------------------------------------------------------


def compiled(bench: Bench) -> tuple[float, list[Way]]:
    """Compile the decoder's layers; return the seconds that takes, and one pass with them as measured."""
    seen, lines = inputs(bench.batches[-1])
    start = time.perf_counter()
    bench.engine.compile()
    shared(bench.engine, seen, lines, len(seen))
    took = time.perf_counter() - start
    return took, [bench.way("one pass, compiled", 3, together) for together in bench.batches[-2:]]


def kernels(bench: Bench, work: Callable[[], object], count: int) -> list[dict[str, Any]]:
    """Return the kernels of one batch, the longest first: milliseconds per image or answer, and calls."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        wait(bench.place)
    events = [e for e in profile.key_averages() if e.self_device_time_total > 0]
    events.sort(key=lambda e: -e.self_device_time_total)
    total = sum(e.self_device_time_total for e in events)
    rows = [
        {"kernel": e.key[:110], "ms": round(e.self_device_time_total / 1e3 / count, 3), "calls": e.count}
        for e in events[:20]
    ]
    print(f"\nkernels: {total / 1e3 / count:.2f} ms each")
    for row in rows:
        print(f"{row['ms']:8.3f} ms {row['calls']:6} × {row['kernel']}")
    return rows


def precision(bench: Bench) -> dict[str, Any]:
    """Return how far scores are from the naive loop in float32: the naive loop and one pass, in both precisions."""
    few = min(bench.images, 4)
    seen, lines = inputs(few)
    with bench.engine.eagerly():
        loop = naive(bench.model, bench.place, seen, lines)
    low = {
        "naive": loop,
        "one_pass": shared(bench.engine, seen, lines, few),
    }
    exact = replace(bench, place=Place(bench.place.device, "float32"))
    exact.__dict__["model"] = build(bench.shape, exact.place)
    exact.model.load_state_dict(bench.model.state_dict())
    with exact_float32():
        right = naive(exact.model, exact.place, seen, lines)
    apart = lambda scores: {"max": float(np.abs(scores - right).max()), "mean": float(np.abs(scores - right).mean())}  # noqa: E731
    figures = {f"{bench.place.dtype}_{name}": apart(scores) for name, scores in low.items()}
    figures["float32_one_pass"] = apart(shared(exact.engine, seen, lines, few))
    print("\ndistance from the naive loop in float32:", json.dumps(figures))
    return {**figures, "same_text": answers(exact, 4, 16)["same_text"]}


def answers(bench: Bench, count: int, tokens: int) -> dict[str, Any]:
    """Return answers per second one by one and in batches, and how many answers are the same text."""
    images = inputs(count)[0]
    generator = VlmGenerator(bench.engine, Fingerprint("random", "", ""), bench.place)
    prompts = [Prompt((("user", str(n)),), images=(image,), max_tokens=tokens) for n, image in enumerate(images)]
    few = prompts[: min(count, 4)]
    generator.generate(few[:1])
    seconds, texts = [], []
    for batches in ([[p] for p in few], [prompts]):
        wait(bench.place)
        start = time.perf_counter()
        texts.append([text for batch in batches for text in generator.generate(batch)])
        seconds.append((time.perf_counter() - start) / len(texts[-1]))
    figures = {
        "tokens": tokens,
        "prompts": count,
        "one_by_one_per_s": round(1 / seconds[0], 3),
        "in_batches_per_s": round(1 / seconds[1], 3),
        "faster": round(seconds[0] / seconds[1], 2),
        "same_text": f"{sum(a == b for a, b in zip(*texts, strict=False))} of {len(few)}",
    }
    print(f"\nanswers of {tokens} tokens, {bench.place.dtype}:", json.dumps(figures))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="a 7B-shaped model in bfloat16 on CUDA")
    parser.add_argument("--images", type=int, help="images in the measurement (6, or 64 with --gpu)")
    parser.add_argument("--before", type=int, nargs="*", help="tokens of text before the image, in the second part")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smallest", action="store_true", help="a tiny model and one image: only to see that it runs")
    parser.add_argument("--out", type=Path, help="also write the figures into this file")
    parser.add_argument("--from", dest="known", type=Path, help="measure nothing, read the figures from this file")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    asked = parser.parse_args()
    if not asked.out and os.environ.get("OUT"):
        asked.out = Path(os.environ["OUT"]) / "vlm_speed.json"
    figures = json.loads(asked.known.read_text(encoding="utf-8")) if asked.known else measure_all(asked)
    print(json.dumps(figures))
    if asked.write:
        head, begin, rest = PAGE.read_text(encoding="utf-8").partition("<!-- vlm: begin -->\n")
        end = rest[rest.index("<!-- vlm: end -->") :]
        PAGE.write_text(f"{head}{begin}{table(figures)}\n{end}", encoding="utf-8")
    return 0 if figures["goal"] else 1


def measure_all(asked: argparse.Namespace) -> dict[str, Any]:
    """Measure all parts and return the figures; those of every part that is done are written at once."""
    place = Place("cuda", "bfloat16") if asked.gpu else Place()
    batches = (16, 36, 64) if asked.gpu else (1, 3)
    images = asked.images or (1 if asked.smallest else 64 if asked.gpu else 6)
    repeats = 1 if asked.smallest else asked.repeats
    bench = Bench(TINY if asked.smallest else SEVEN_B if asked.gpu else SMALL, place, images, repeats, batches)
    flops, bandwidth = device_speed(place)
    figures = setting(place, flops, bandwidth)
    wide = bench if asked.gpu or asked.smallest else replace(bench, shape=WIDE)

    def plain() -> dict[str, Any]:
        return report(bench, bench.ways(3), 3, bench.floor(3, flops, bandwidth))

    def longer() -> list[dict[str, Any]]:
        texts = asked.before or [300]
        return [report(wide, wide.ways(b), b, wide.floor(b, flops, bandwidth)) for b in texts]

    def in_compiled() -> dict[str, Any]:
        took, ways = compiled(bench)
        found = report(bench, [bench.naive(3, 4), *ways], 3, bench.floor(3, flops, bandwidth))
        return {"compile_s": round(took, 1), **found}

    def one_pass() -> object:
        seen, lines = inputs(36)
        return shared(bench.engine, seen, lines, 36)

    few = 2 if asked.smallest else 32 if asked.gpu else 6
    parts: dict[str, Callable[[], Any]] = {"plain": plain}
    if asked.gpu:
        parts["kernels"] = lambda: kernels(bench, one_pass, 36)
        parts |= {"compiled": in_compiled, "kernels_compiled": lambda: kernels(bench, one_pass, 36)}
    parts["answers"] = lambda: answers(bench, few, 4 if asked.smallest else 64 if asked.gpu else 16)
    if asked.gpu:
        parts["kernels_answers"] = lambda: kernels(bench, lambda: answers(bench, few, 8), few)
    parts["precision"] = lambda: precision(bench)
    parts["text_before"] = longer
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            figures[name] = part()
        except Exception:
            figures[name] = {"failed": traceback.format_exc()[-2000:]}
            print(f"{name} failed:\n{figures[name]['failed']}")
        if place.device == "cuda":
            torch.cuda.empty_cache()
        figures.setdefault("part_seconds", {})[name] = round(time.perf_counter() - start, 1)
        if asked.out:
            asked.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    verdict(figures, gpu=asked.gpu)
    if asked.out:
        asked.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def table(figures: dict[str, Any]) -> str:
    """The figures as Markdown: the naive loop and the fastest ways, answers, and distances from float32."""
    compiled, answered, apart = figures.get("compiled", {}), figures["answers"], figures["precision"]
    lines = [
        f"{figures['device']}, {figures['dtype']}, torch {figures['torch']}, transformers {figures['transformers']}; "
        f"floor {figures['plain']['floor_ms']:.2f} ms per image at {figures['tflops']:.0f} TFLOP/s:",
        "",
        "| tokens before the image | way | ms per image | times the naive loop | tokens/s | of the floor |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for part in (figures["plain"], *figures["text_before"]):
        naive, cached, *others = part["ways"]
        rows = [naive, cached, min(others, key=lambda way: way["ms"])]
        if part is figures["plain"] and compiled:
            rows.append(min(compiled["ways"][1:], key=lambda way: way["ms"]))
        for k, row in enumerate(rows):
            faster = round(naive["ms"] / row["ms"], 1)
            cells = (f"{row['ms']:.1f}", faster, f"{row['tokens_per_s']:,}", f"{100 * row['of_floor']:.0f} %")
            lines.append(f"| {'' if k else part['before']} | {row['way']} | {' | '.join(map(str, cells))} |")
    lines += [
        "",
        f"Answers of {answered['tokens']} tokens: {answered['one_by_one_per_s']:.2f} per second one by one, "
        f"{answered['in_batches_per_s']:.1f} in batches of 32 ({answered['faster']:.1f} times as many).",
    ]
    if compiled:
        lines[-1] += f" Compiling takes {compiled['compile_s']:.0f} s once."
    far = {name: figure["max"] for name, figure in apart.items() if isinstance(figure, dict)}
    low = figures["dtype"]
    lines.append(
        "Mean log-probabilities differ from those of the naive loop in float32 by at most "
        f"{far['float32_one_pass']:.1e} in one pass in float32 and {far[low + '_one_pass']:.3f} in {low}; "
        f"those of the naive loop in {low} by {far[low + '_naive']:.3f}."
    )
    return "\n".join(lines)


def setting(place: Place, flops: float, bandwidth: float) -> dict[str, Any]:
    """The machine, what else it does, and the libraries."""
    import transformers

    print(f"{place.dtype} on {place.device}: a large matrix product runs at", end=" ")
    print(f"{flops / 1e12:.2f} Tflop/s, a large copy at {bandwidth / 1e9:.0f} GB/s")
    return {
        "dtype": place.dtype,
        "device": torch.cuda.get_device_name() if place.device == "cuda" else f"cpu, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "load": round(os.getloadavg()[0], 1),
        "tflops": round(flops / 1e12, 2),
        "gb_per_s": round(bandwidth / 1e9, 1),
    }


def report(bench: Bench, ways: list[Way], before: int, least: tuple[float, float]) -> dict[str, Any]:
    """Print a table of the ways beside the floor, and give its figures back."""
    compute, memory = least
    size = sum(p.numel() for p in bench.model.parameters()) / 1e9
    prefix = before + IMAGE_TOKENS + TEXT_TOKENS - 3
    tokens = prefix + CAPTIONS * CAPTION_TOKENS
    floor = max(compute, memory)
    print(f"\n{size:.2f} B weights; {before} tokens, the image's {IMAGE_TOKENS}, {TEXT_TOKENS - 3} more,", end=" ")
    print(f"then {CAPTIONS} captions of {CAPTION_TOKENS} tokens")
    print(f"{'':36} {'ms an image':>12} {'CPU ms':>8} {'faster':>8} {'tokens/s':>10} {'of floor':>9} {'apart':>8}")
    rows = []
    for way in ways:
        both = min(len(way.scores), len(ways[0].scores))
        apart = float(np.abs(way.scores[:both] - ways[0].scores[:both]).max())
        faster = ways[0].seconds / way.seconds
        print(f"{way.name:36} {1e3 * way.seconds:12.1f} {1e3 * way.busy:8.0f} {faster:7.2f}×", end=" ")
        print(f"{tokens / way.seconds:10,.0f} {floor / way.seconds:9.0%} {apart:8.1e}")
        rows.append(
            {
                "way": way.name,
                "ms": round(1e3 * way.seconds, 2),
                "cpu_ms": round(1e3 * way.busy, 1),
                "faster": round(faster, 2),
                "tokens_per_s": round(tokens / way.seconds),
                "of_floor": round(floor / way.seconds, 3),
                "largest_difference": apart,
            }
        )
    print(f"floor: {1e3 * floor:.1f} ms an image ({1e3 * compute:.2f} of operations, {1e3 * memory:.2f} of bytes)")
    return {
        "weights_billions": round(size, 3),
        "before": before,
        "prefix_tokens": prefix,
        "tokens_read_an_image": tokens,
        "floor_ms": round(1e3 * floor, 2),
        "ways": rows,
    }


def verdict(figures: dict[str, Any], *, gpu: bool) -> None:
    """Add the best way, and whether it reaches the goal: 3.5 times the naive loop on the CPU, 18 ms on the GPU."""
    ways = [row for part in ("plain", "compiled") for row in figures.get(part, {}).get("ways", [])[1:]]
    if not ways:
        figures["goal"] = False
        return
    best = min(ways, key=lambda row: row["ms"])
    good = best["ms"] <= 18 and figures["answers"].get("faster", 0) >= 6 if gpu else best["faster"] >= 3.5
    failed = [name for name, part in figures.items() if isinstance(part, dict) and "failed" in part]
    figures |= {"best_ms": best["ms"], "best_faster": best["faster"], "goal": bool(good) and not failed}
    goal = "at most 18 ms" if gpu else "at least 3.5 times as fast"
    print(f"\nbest: {best['ms']:.1f} ms per image, {best['faster']:.2f} times the naive loop; the goal is {goal}")
    if failed:
        print("failed:", ", ".join(failed))


if __name__ == "__main__":
    raise SystemExit(main())
