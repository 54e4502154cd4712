"""How fast planned scoring is on a GPU, beside what the machine could do at most.

    python3 benchmarks/gpu_speed.py [--quick] [--out FILE.json]
    python3 benchmarks/gpu_speed.py --pictures images.zip [--out research/results/pictures.json]

Runs with the machine's own torch, transformers, numpy and Pillow; creperie is taken from ../src, nothing is installed.
Random-weight ViT-B/32 and ViT-L/14: the matrix-product peak, the bare towers on resident data, creperie's adapters on
prepared inputs, and the end-to-end time of a SugarCrepe-sized job: 1,560 JPEGs of 640 × 480, 11,844 captions, 7,511
rows, decoding included. float32 is float32: TF32 is off. --pictures needs no GPU: what a core takes for one picture,
of the made ones and of the first 300 photographs of a zip file.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

IMAGES, CAPTIONS, ROWS = 1560, 11_844, 7511
MANY = 32_000  #: images of a longer job, in which starting up does not count
SHOWN, READ = 256, 2048  #: images and captions on the device for the bare towers
DTYPES = ("float32", "bfloat16")
PRODUCT = 8192  #: rows and columns of the matrices whose product is timed
SIZES = {
    "ViT-B/32": {"patch_size": 32, "hidden_size": 768, "layers": 12, "heads": 12, "text": 512, "project": 512},
    "ViT-L/14": {"patch_size": 14, "hidden_size": 1024, "layers": 24, "heads": 16, "text": 768, "project": 768},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ViT-B/32 alone")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="ZIP", help="only what a core takes for a picture")
    parser.add_argument("--smallest", action="store_true", help="a tiny model on the CPU: only to see that it runs")
    args = parser.parse_args()
    if args.smallest:
        shrink()
        args.device, args.quick = "cpu", True
    if args.pictures:
        return per_picture(args.pictures, args.out)
    import torch
    import transformers

    found: dict[str, Any] = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if args.device == "cuda" else args.device,
        "cores": len(os.sched_getaffinity(0)),
    }
    print(", ".join(f"{k} {v}" for k, v in found.items()))
    found["peak TFLOP/s"] = {d: round(peak(d, args.device), 1) for d in ("bfloat16", "float32")}
    print(f"matrix product of {PRODUCT}³, TFLOP/s: {found['peak TFLOP/s']}")
    captions = made_captions(CAPTIONS)
    pictures = made_pictures(IMAGES)
    print(f"{IMAGES} JPEGs of 640 × 480, {sum(map(len, pictures)) / 1e6:.0f} MB; {CAPTIONS} captions, {ROWS} rows\n")
    found["decoding alone, images/s"] = decoding_rates(pictures)
    print(f"decoding alone, images/s: {found['decoding alone, images/s']}")
    found["models"] = {}
    for name in list(SIZES)[: 1 if args.quick else None]:
        with tempfile.TemporaryDirectory() as place:
            folder = make_model(Path(place) / "model", SIZES[name], captions)
            for dtype in DTYPES:
                found["models"][f"{name} {dtype}"] = measure(name, folder, dtype, args.device, captions, pictures)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def shrink() -> None:
    """Make all sizes as small as they can be."""
    global IMAGES, CAPTIONS, ROWS, MANY, SHOWN, READ, PRODUCT, DTYPES
    IMAGES, CAPTIONS, ROWS, MANY, SHOWN, READ, PRODUCT = 4, 40, 4, 8, 2, 2, 64
    DTYPES = DTYPES[:1]
    SIZES["ViT-B/32"] |= {"hidden_size": 64, "layers": 1, "heads": 1, "text": 64, "text_layers": 1, "project": 64}


def per_picture(source: Path, out: Path | None) -> int:
    """Milliseconds of a core for one picture: decoding, and resizing, cropping and copying."""
    from creperie.bench import decode_image
    from creperie.models.pixels import DirectPixels, Preprocessing

    with zipfile.ZipFile(source) as file:
        photographs = [file.read(name) for name in [n for n in file.namelist() if n.endswith(".jpg")][:300]]
    recipe = Preprocessing(224, (224, 224), 3, 1 / 255, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    found: dict[str, Any] = {"processor": f"{platform.machine()}, {os.cpu_count()} cores", "sets": {}}
    for name, pictures in (("made", made_pictures(150)), (source.parent.name, photographs)):
        row: dict[str, float] = {"pictures": len(pictures), "kB": sum(map(len, pictures)) / len(pictures) / 1e3}
        row["pixels"] = sum(np.prod(Image.open(io.BytesIO(p)).size) for p in pictures) / len(pictures)
        taken = np.full((2, 3), np.inf)
        for turn in range(3):
            start = time.process_time()
            decoded = [decode_image(p) for p in pictures]
            between = time.process_time()
            for picture in decoded:
                DirectPixels(recipe).prepare(picture)
            taken[:, turn] = between - start, time.process_time() - between
        decode, prepare = 1000 * taken.min(axis=1) / len(pictures)
        row |= {"decode ms": decode, "prepare ms": prepare}
        found["sets"][name] = {k: round(float(v), 2) for k, v in row.items()}
    print(json.dumps(found, indent=2))
    if out:
        out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def resize_all(pictures: Sequence[bytes]) -> int:
    """Decode and bring to 224 × 224 as CLIP asks for, with Pillow alone: the least that exact pixels cost."""
    wide = 0
    for data in pictures:
        with Image.open(io.BytesIO(data)) as picture:
            small = picture.convert("RGB").resize((299, 224), Image.Resampling.BICUBIC).crop((37, 0, 261, 224))
            wide += np.asarray(small).shape[1]
    return wide


def decode_all(pictures: Sequence[bytes]) -> int:
    from creperie.bench import decode_image

    return sum(decode_image(p).width for p in pictures)


def decoding_rates(pictures: Sequence[bytes]) -> dict[str, int]:
    """What the cores can decode when nothing else runs: threads of one process, and a process per core."""
    cores = min(len(os.sched_getaffinity(0)), len(pictures))
    parts = [pictures[i : i + 20] for i in range(0, len(pictures), 20)]
    found = {"one core": round(100 / best(lambda: decode_all(pictures[:100]), "cpu", 2))}
    with ThreadPoolExecutor(max(1, cores * 3 // 4)) as pool:
        found["threads"] = round(len(pictures) / best(lambda: list(pool.map(decode_all, parts)), "cpu"))
    found["one core, resized"] = round(100 / best(lambda: resize_all(pictures[:100]), "cpu", 2))
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        found["processes"] = round(len(pictures) / best(lambda: pool.map(decode_all, parts, chunksize=1), "cpu"))
        found["processes, resized"] = round(
            len(pictures) / best(lambda: pool.map(resize_all, parts, chunksize=1), "cpu")
        )
    return found


def peak(dtype: str, device: str) -> float:
    import torch

    n = PRODUCT if device == "cuda" else min(PRODUCT, 1024)
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.randn(n, n, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    seconds = best(lambda: a @ b, device, repeats=5)
    return 2 * n**3 / seconds / 1e12


def best(work: Callable[[], Any], device: str, repeats: int = 3) -> float:
    """The shortest of several runs, after one that warms up."""
    import torch

    taken = []
    for _ in range(repeats + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])


def made_captions(count: int) -> list[str]:
    """Different captions with the length of SugarCrepe's: 14.7 tokens on average, start and end included."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(2, 7))) for _ in range(3000)]
    lengths = np.clip(rng.normal(12.0, 3.5, count).round(), 5, 40).astype(int)
    return [" ".join(rng.choice(words, n)) + f" {i % 97}." for i, n in enumerate(lengths - 1)]


def made_pictures(count: int) -> list[bytes]:
    """JPEGs with the detail of photographs (smooth colours with texture over them), about 96 kB each; four times the
    same ones, since nothing here looks for copies."""
    rng = np.random.default_rng(1)
    texture = rng.normal(0, 24, (480, 640, 3))
    pictures = []
    for _ in range(-(-count // 4)):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize(
            (640, 480), Image.Resampling.BICUBIC
        )
        pixels = np.clip(np.asarray(coarse, np.float32) + np.roll(texture, int(rng.integers(640)), axis=1), 0, 255)
        buffer = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", quality=75)
        pictures.append(buffer.getvalue())
    return (pictures * 4)[:count]


def make_model(folder: Path, size: dict[str, int], captions: Sequence[str]) -> Path:
    import torch
    from encoder_speed import train_tokenizer
    from transformers import CLIPConfig, CLIPModel

    tokenizer = train_tokenizer(captions)
    vision = {
        "hidden_size": size["hidden_size"],
        "intermediate_size": 4 * size["hidden_size"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "patch_size": size["patch_size"],
        "image_size": 224,
    }
    text = {
        "hidden_size": size["text"],
        "intermediate_size": 4 * size["text"],
        "num_hidden_layers": size.get("text_layers", 12),
        "num_attention_heads": size["text"] // 64,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(0)
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=size["project"])).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    processor = {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": 224},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "do_convert_rgb": True,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def measure(
    name: str, folder: Path, dtype: str, device: str, captions: Sequence[str], pictures: Sequence[bytes]
) -> dict[str, Any]:
    from creperie.models import load_model

    model: Any = load_model(f"hf:{folder}", device=device, dtype=dtype)
    found = {**bare_towers(model, device), **adapter_rates(model, device, captions, pictures)}
    end_to_end(model, captions[:512], pictures[:128])  # warm up
    runs = [end_to_end(model, captions, pictures) for _ in range(3)]
    found["end to end s"], found["stages s"] = min(runs, key=lambda run: run[0])[:2]
    alone = min(end_to_end(model, captions[:2], pictures)[0] for _ in range(2))
    found["images alone, images/s"] = len(pictures) / alone
    if name == "ViT-B/32":
        many = list(pictures) * -(-MANY // len(pictures))
        found[f"{MANY:,} images, images/s"] = MANY / end_to_end(model, captions[:2], many[:MANY])[0]
    print(f"{name} {dtype}")
    for what, value in found.items():
        print(
            f"  {what:28} {value if isinstance(value, dict) else f'{value:,.2f}' if value < 100 else f'{value:,.0f}'}"
        )
    print()
    return found


def bare_towers(model: Any, device: str) -> dict[str, float]:
    """The towers on data that lies on the device already: the floor."""
    import torch

    net = model.model
    pixels = torch.randn(SHOWN, 3, 224, 224, device=device, dtype=next(net.parameters()).dtype)
    ids = torch.randint(5, 1000, (READ, 16), device=device)
    ids[:, -1] = net.config.text_config.eos_token_id
    with torch.inference_mode():
        image = best(lambda: net.get_image_features(pixel_values=pixels), device)
        text = best(lambda: net.get_text_features(input_ids=ids), device)
    return {"bare images/s": SHOWN / image, "bare 16-token captions/s": READ / text}


def adapter_rates(model: Any, device: str, captions: Sequence[str], pictures: Sequence[bytes]) -> dict[str, float]:
    """creperie's adapters from prepared inputs in memory to float32 vectors in memory."""
    prepared = [model.pixels.prepare(Image.open(io.BytesIO(p))) for p in pictures[:SHOWN]]
    tokens = model.prepare_texts([" ".join(c.split()[:14]) for c in captions[:READ]])
    image = best(lambda: model.forward_images(prepared), device)
    text = best(lambda: model.forward_texts(tokens), device)
    return {"adapter images/s": len(prepared) / image, "adapter captions/s": len(tokens) / text}


def end_to_end(
    model: Any, captions: Sequence[str], pictures: Sequence[bytes]
) -> tuple[float, dict[str, float], np.ndarray]:
    """Encoded bytes and strings in, one score a pair out: as `creperie score` does it, without its files."""
    from creperie.bench import decode_image
    from creperie.scoring.batch_size import pace_for
    from creperie.scoring.driver import Driver
    from creperie.scoring.passes import encode_images, encode_texts, prepare_images
    from creperie.scoring.sheet import Sheet

    def open_picture(row: int) -> Any:
        return decode_image(pictures[row])

    rng = np.random.default_rng(2)
    start = time.perf_counter()
    with Driver(model, pace_for(model)) as driver:
        shown, read = Sheet(len(pictures)), Sheet(len(captions))
        ready = prepare_images(driver, open_picture, shown)
        encode_texts(driver, captions, read)
        encode_images(driver, ready, shown)
    rows = rng.integers(0, len(pictures), (ROWS, 1)), rng.integers(0, len(captions), (ROWS, 2))
    scores = np.einsum("nid,njd->nj", shown.vectors[rows[0]], read.vectors[rows[1]])
    taken = time.perf_counter() - start
    assert np.isfinite(scores).all()
    return taken, {k: round(v, 3) for k, v in driver.timings.seconds.items()}, scores


if __name__ == "__main__":
    sys.exit(main())
