"""Does binding that was learned on hard negatives in rendered rooms carry over to photographs?

The house model (DINOv2-S and MiniLM with a head each, all trained) starts from photographs; arms go on from it with
photographs alone, or with photographs and twins of the world: in rooms or in drawings, the two pictures of a twin in
one batch (each is then the other's hard negative) or never in one. Pictures, captions, loss and steps are the same.

    python research/world_study.py items --out DIR [--rounds 140]   twins of rooms and drawings, as data
    python research/world_study.py render --carry DIR --out DIR     pictures of the rooms (Mitsuba; the long part)
    python research/world_study.py pack --carry DIR --flickr8k DIR --twins DIR --coco DIR --sugarcrepe DIR --photos DIR
    python research/world_study.py train --carry DIR --out DIR --seeds 0,1,2 --seconds 480   18 models
    python research/world_study.py write --out DIR                  research/results/world-study.* and the docs

`render` and `train` import nothing but numpy, Pillow, torch and transformers (and Mitsuba): they run on a bare GPU
machine. Every result is written as soon as it is there. `train --smallest` is a trial on a CPU.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

SIZE = 168  #: pixels: 12 patches of DINOv2
KINDS = ("swap_obj", "swap_att", "spatial", "replace_rel", "depth", "negation", "replace_att", "replace_obj")
TESTED = 160  #: twins of rooms and of drawings that are tested on, at most
STEPS = (20, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000)  #: of an arm: what fits the time is rounded down
ARMS = {
    "photographs only": ("", False),
    "rooms, twins apart": ("rooms", False),
    "rooms, twins together": ("rooms", True),
    "drawings, twins apart": ("drawings", False),
    "drawings, twins together": ("drawings", True),
}


# -- twins as data ---------------------------------------------------------------------------------------------------


def items(asked: argparse.Namespace) -> None:
    """Write twins, eight to train on and two to test on in turn, so that every beginning is a fair sample."""
    from creperie.world.dice import Dice
    from creperie.world.twins import find_twins
    from creperie.world.wording import one_wording, say

    asked.out.mkdir(parents=True, exist_ok=True)
    for world in asked.worlds.split(","):
        streams = {
            (split, kind): Dice(51, sum(map(ord, split + kind))) for split in ("train", "test") for kind in KINDS
        }
        with gzip.open(asked.out / f"{world}.jsonl.gz", "wt") as file:
            for k in range(asked.rounds * 10):
                split = "train" if k % 10 < 8 else "test"
                kind = KINDS[k % 10 if split == "train" else (2 * (k // 10) + k % 2) % 8]
                dice = streams[split, kind]
                texts: list[list[str]] = []
                while not texts:
                    twins = find_twins(kind, dice, split, rooms=world == "rooms")
                    for _ in range(16):
                        plan = one_wording(twins, dice)
                        two = [say(twins, side, plan) for side in (0, 1)]
                        if two[0] != two[1] and two not in texts:
                            texts.append(two)
                codes = [scene.code for scene in twins.scenes]
                row = {"id": k, "split": split, "kind": kind, "novel": twins.novel, "codes": codes}
                file.write(json.dumps(row | {"texts": texts[: 6 if split == "train" else 1]}) + "\n")


def twins_of(carry: Path, world: str) -> list[dict[str, Any]]:
    with gzip.open(carry / f"{world}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


# -- pictures of rooms -----------------------------------------------------------------------------------------------


def render(asked: argparse.Namespace) -> None:
    """Render rooms, with CUDA if it works, until all are done or the time is over, into one file."""
    end = time.monotonic() + asked.seconds
    folder = asked.out / "rooms"
    folder.mkdir(parents=True, exist_ok=True)
    variant = next(v for v in ("cuda", "scalar") if asked.variant in ("auto", v) and tries(v))
    workers = 3 if variant == "cuda" else asked.workers
    rows = [(row["id"], code, side) for row in twins_of(asked.carry, "rooms") for side, code in enumerate(row["codes"])]
    parts = [(rows[k::workers], folder, variant, end) for k in range(workers)]
    start = time.perf_counter()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        took = sorted(seconds for part in pool.map(render_part, parts) for seconds in part)
    took = took or [0.0]
    seen = {"variant": variant, "workers": workers, "pictures": len(took), "seconds": time.perf_counter() - start}
    seen |= {"median": took[len(took) // 2], "fastest": took[0], "size": SIZE, "samples": 8}
    print(json.dumps(seen), flush=True)
    (asked.out / "render.json").write_text(json.dumps(seen))
    with zipfile.ZipFile(asked.out / "rooms.zip", "w") as file:
        for path in sorted(folder.iterdir()):
            file.write(path, f"rooms/{path.name}")


def tries(variant: str) -> bool:
    """Return whether a first picture succeeds in a process of its own."""
    code = f"import creperie.world.solid.studio as s; s.render_room(s.Room(()), 32, samples=1, variant={variant!r})"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        print(variant, "took too long", flush=True)
        return False
    print(variant, "works" if run.returncode == 0 else run.stderr[-600:], flush=True)
    return run.returncode == 0


def render_part(part: tuple[list[tuple[int, str, int]], Path, str, float]) -> list[float]:
    from PIL import Image

    from creperie.world.solid.scene import read_room
    from creperie.world.solid.studio import render_room

    rows, folder, variant, end = part
    took = []
    for number, code, side in rows:
        file = folder / f"{number:05d}-{side}.webp"
        if file.exists():
            continue
        if time.monotonic() > end:
            break
        start = time.perf_counter()
        picture = render_room(read_room(code), SIZE, samples=8, variant=variant)
        Image.fromarray(picture).save(file, "WEBP", quality=65)
        took.append(time.perf_counter() - start)
    return took


# -- what travels ----------------------------------------------------------------------------------------------------


def pack(asked: argparse.Namespace) -> None:
    """Write the photographs, all captions with their tokens, and the towers with one byte per weight."""
    from creperie.bench import load

    shelf = Shelf(asked.carry / "photographs.zip")
    captions = load(f"flickr8k:{asked.flickr8k}", images=Path(asked.flickr8k) / "images.zip")
    mined = load(str(asked.twins), images=Path(asked.flickr8k) / "images.zip")
    rng = np.random.default_rng(0)
    tested = [item for item in mined if item.tags.get("evidence") in (None, "certain", "likely")]
    held = {key for item in tested for key in item.images}
    free = [item for item in captions if item.images[0] not in held]
    rng.shuffle(free)  # type: ignore[arg-type]
    photographs = [[shelf.add(captions, item.images[0]), *item.captions] for item in free[: asked.train]]
    exams: dict[str, list[dict[str, Any]]] = {
        "photographs: twins of captions": [exam_row(shelf, mined, item) for item in tested],
        "photographs: left and right": mirrored(shelf, Path(asked.coco)),
    }
    coco = load(str(asked.scenes), images=Path(asked.coco) / "images")
    exams["photographs: twins of annotations"] = [exam_row(shelf, coco, item) for item in coco]
    crepe = load(f"sugarcrepe:{asked.sugarcrepe}", images=asked.photos)
    here = {path.name for path in Path(asked.photos).iterdir()}
    exams["photographs: SugarCrepe"] = [exam_row(shelf, crepe, i) for i in crepe if i.images[0] in here]
    shelf.zip.close()
    with gzip.open(asked.carry / "study.json.gz", "wt") as file:
        json.dump({"photographs": photographs, "exams": exams}, file)
    texts = {t for row in photographs for t in row[1:]} | {
        t for exam in exams.values() for r in exam for t in r["captions"]
    }
    for world in ("rooms", "drawings"):
        texts |= {text for row in twins_of(asked.carry, world) for two in row["texts"] for text in two}
    pack_towers(asked, sorted(texts))
    print({name: len(exam) for name, exam in exams.items()}, len(photographs), len(texts), flush=True)


class Shelf:
    """Photographs, squeezed to squares as the house model does it, in one file."""

    def __init__(self, path: Path) -> None:
        self.zip, self.names = zipfile.ZipFile(path, "w"), set[str]()

    def add(self, source: Any, key: str, mirror: bool = False) -> str:
        from PIL import Image, ImageOps

        from creperie.bench import open_image

        name = f"photographs/{Path(key).stem}{'-mirrored' if mirror else ''}.webp"
        if name not in self.names:
            self.names.add(name)
            whole = Image.open(source / key) if isinstance(source, Path) else open_image(source.images, key)
            image, out = whole.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BICUBIC), io.BytesIO()
            (ImageOps.mirror(image) if mirror else image).save(out, "WEBP", quality=45)
            self.zip.writestr(name, out.getvalue())
        return name


def exam_row(shelf: Shelf, bench: Any, item: Any) -> dict[str, Any]:
    match = [[bool(v) for v in row] for row in item.match]
    images = [shelf.add(bench, key) for key in item.images]
    return {"kind": item.subset, "images": images, "captions": list(item.captions), "match": match}


def mirrored(shelf: Shelf, coco: Path) -> list[dict[str, Any]]:
    """Return twins of a photograph and its mirror image: which of two things is on the left, by COCO's boxes.

    Both things are the only ones of their categories and plainly apart: neither reaches the other's middle.
    """
    document = json.loads((coco / "instances.json").read_text())
    names = {c["id"]: c["name"] for c in document["categories"]}
    shown: dict[int, list[dict[str, Any]]] = {}
    for box in document["annotations"]:
        shown.setdefault(box["image_id"], []).append(box)
    rows = []
    for image in document["images"]:
        boxes = shown.get(image["id"], [])
        count = {c: sum(b["category_id"] == c for b in boxes) for c in names}
        crowd = {b["category_id"] for b in boxes if b["iscrowd"]}
        area = image["width"] * image["height"]
        plain = [b for b in boxes if count[b["category_id"]] == 1 and b["category_id"] not in crowd]
        plain = sorted((b for b in plain if b["area"] > 0.01 * area), key=lambda b: -b["area"])[:4]
        for k, one in enumerate(plain):
            for two in plain[k + 1 :]:
                middle = [b["bbox"][0] + b["bbox"][2] / 2 for b in (one, two)]
                a, b = (one, two) if middle[0] < middle[1] else (two, one)
                apart = abs(middle[0] - middle[1]) > 0.1 * image["width"]
                clear = a["bbox"][0] + a["bbox"][2] < max(middle) and min(middle) < b["bbox"][0]
                if apart and clear:
                    first, second = names[a["category_id"]], names[b["category_id"]]
                    captions = [f"The {first} is to the {side} of the {second}." for side in ("left", "right")]
                    images = [shelf.add(coco / "images", image["file_name"], m) for m in (False, True)]
                    rows.append(
                        {
                            "kind": "left",
                            "images": images,
                            "captions": captions,
                            "match": [[True, False], [False, True]],
                        }
                    )
    return rows


def pack_towers(asked: argparse.Namespace, texts: list[str]) -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    text = Path(asked.text)
    tokenizer = Tokenizer.from_file(str(text / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(64)
    ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    used = sorted({0} | {i for own in ids for i in own})
    place = {old: new for new, old in enumerate(used)}
    with gzip.open(asked.carry / "tokens.json.gz", "wt") as file:
        json.dump({text: [place[i] for i in own] for text, own in zip(texts, ids)}, file)
    arrays: dict[str, np.ndarray] = {}
    for name, folder in (("image", Path(asked.image)), ("text", text)):
        for key, value in load_file(folder / "model.safetensors").items():
            if "word_embeddings" in key:
                value = value[used]
            if "position_ids" in key:
                continue
            value = np.asarray(value, np.float32)
            if value.ndim < 2 or value.size < 10000 or "position" in key:
                arrays[f"{name}/{key}"] = value.astype(np.float16)
                continue
            rows = value.reshape(len(value), -1)
            scale = np.abs(rows).max(1) / 127 + 1e-12
            arrays[f"{name}/{key}"] = np.round(rows / scale[:, None]).astype(np.int8).reshape(value.shape)
            arrays[f"{name}/{key}/scale"] = scale.astype(np.float32)
        config = json.loads((folder / "config.json").read_text())
        if name == "text":
            config["vocab_size"] = len(used)
        (asked.carry / f"{name}.json").write_text(json.dumps(config))
    np.savez_compressed(asked.carry / "towers.npz", **arrays)
    pack_probes(asked, used)


def pack_probes(asked: argparse.Namespace, used: list[int]) -> None:
    """Write what the whole towers say of one picture and one text."""
    import torch
    from transformers import AutoModel

    for name in ("image", "text"):
        tower = AutoModel.from_pretrained(getattr(asked, name), dtype=torch.float32)
        if name == "text":
            words = tower.embeddings.word_embeddings
            words.weight = torch.nn.Parameter(words.weight[used])
        np.save(asked.carry / f"probe-{name}.npy", probed(tower, name))


# -- the model -------------------------------------------------------------------------------------------------------


def new_model(carry: Path, seed: int) -> Any:
    """Return the house model: both towers, and a head on each that is drawn anew."""
    import torch
    from torch import nn

    class Head(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, 512)
            drop = 0.3
            parts = nn.Dropout(drop), nn.Linear(width, 1024), nn.GELU(), nn.Dropout(drop), nn.Linear(1024, 512)
            self.mlp = nn.Sequential(*parts)

        def forward(self, x: Any) -> Any:
            x = self.norm(x)
            return self.linear(x) + self.mlp(x)

    class House(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image, self.text = open_tower(carry, "image"), open_tower(carry, "text")
            torch.manual_seed(seed)
            self.image_head, self.text_head = Head(384 * 5), Head(384)
            self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
            shift, scale = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
            self.register_buffer("shift", torch.tensor(shift)[:, None, None], persistent=False)
            self.register_buffer("scale", torch.tensor(scale)[:, None, None], persistent=False)

        def images(self, pixels: Any) -> Any:
            """Return the vectors of bytes (n, 3, h, w): class tokens of four layers and the mean of the patches."""
            told = self.image(pixel_values=(pixels.float() / 255 - self.shift) / self.scale, output_hidden_states=True)
            tokens = [self.image.layernorm(h)[:, 0] for h in told.hidden_states[-4:-1]]
            last = told.last_hidden_state
            features = torch.cat([*tokens, last[:, 0], last[:, 1:].mean(1)], 1)
            return nn.functional.normalize(self.image_head(features).float(), dim=-1)

        def texts(self, ids: Any) -> Any:
            mask = (ids != 0).long()
            told = self.text(input_ids=ids, attention_mask=mask).last_hidden_state
            features = (told * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            features = nn.functional.normalize(features, dim=-1)
            return nn.functional.normalize(self.text_head(features).float(), dim=-1)

    return House()


def open_tower(carry: Path, name: str) -> Any:
    """Return a tower from its packed weights; stop if it does not compute what it computed where it was packed."""
    import torch
    from safetensors.numpy import save_file
    from transformers import AutoModel

    arrays, weights = np.load(carry / "towers.npz"), {}
    for key in arrays.files:
        owner, _, rest = key.partition("/")
        if owner == name and not rest.endswith("/scale"):
            weights[rest] = arrays[key].astype(np.float32)
            if f"{key}/scale" in arrays.files:
                scale = arrays[f"{key}/scale"]
                weights[rest] *= scale.reshape(-1, *[1] * (weights[rest].ndim - 1))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text((carry / f"{name}.json").read_text())
        save_file(weights, Path(folder) / "model.safetensors", metadata={"format": "pt"})
        tower = AutoModel.from_pretrained(folder, dtype=torch.float32)
    probe = carry / f"probe-{name}.npy"
    told = probed(tower, name)
    if not probe.exists():
        raise SystemExit(f"{probe} is missing")
    likeness = np.sum(told * np.load(probe)) / np.linalg.norm(told) / np.linalg.norm(np.load(probe))
    if likeness < 0.98:
        raise SystemExit(f"the {name} tower is another here: {likeness:.4f}")
    tower.likeness = float(likeness)
    return tower.train()


def probed(tower: Any, name: str) -> np.ndarray:
    """Return what a tower says of one fixed picture or text."""
    import torch

    ramp = torch.linspace(-1, 1, 3 * SIZE * SIZE).view(1, 3, SIZE, SIZE).sin()
    given = {"pixel_values": ramp} if name == "image" else {"input_ids": torch.arange(1, 12)[None]}
    with torch.no_grad():
        return np.asarray(tower.eval()(**given).last_hidden_state[0].mean(0), np.float32)


# -- training --------------------------------------------------------------------------------------------------------


class Study:
    """Everything on the device: pictures as bytes, captions as ids."""

    def __init__(self, asked: argparse.Namespace) -> None:
        import torch

        self.asked, self.device = asked, asked.device
        study, tokens = (read_packed(asked.carry / f"{name}.json.gz") for name in ("study", "tokens"))
        pictures = dict(read_zips(sorted(asked.carry.glob("*.zip"))))
        rows = twins_of(asked.carry, "drawings")
        keyed = [(f"drawings/{r['id']:05d}-{side}.webp", code) for r in rows for side, code in enumerate(r["codes"])]
        with get_context("fork").Pool(min(16, os.cpu_count() or 1)) as pool:
            drawn = pool.map(draw, [code for _, code in keyed[: asked.most]], chunksize=32)
        pictures |= {key: picture for (key, _), picture in zip(keyed, drawn)}
        self.photographs = [row for row in study["photographs"] if row[0] in pictures]
        self.exams, self.worlds = dict(study["exams"]), {}
        sizes = []
        for world in ("rooms", "drawings"):
            rows = twins_of(asked.carry, world)
            for row in rows:
                row["images"] = [f"{world}/{row['id']:05d}-{side}.webp" for side in (0, 1)]
            self.worlds[world] = [r for r in rows if all(key in pictures for key in r["images"])]
            sizes.append(sum(r["split"] == "train" for r in self.worlds[world]))
        for world, rows in self.worlds.items():  # as many of one world as of the other
            tested = [r for r in rows if r["split"] == "test"][:TESTED]
            self.exams[f"{world}: twins"] = [
                {
                    "kind": r["kind"],
                    "images": r["images"],
                    "captions": r["texts"][0],
                    "match": [[True, False], [False, True]],
                }
                for r in tested
            ]
            self.worlds[world] = [r for r in rows if r["split"] == "train"][: min(sizes)]
        self.row = {key: k for k, key in enumerate(pictures)}
        self.pixels = (
            torch.from_numpy(np.stack(list(pictures.values()))).permute(0, 3, 1, 2).contiguous().to(self.device)
        )
        self.text_row = {text: k for k, text in enumerate(tokens)}
        longest = max(map(len, tokens.values()))
        self.ids = torch.tensor([own + [0] * (longest - len(own)) for own in tokens.values()], device=self.device)
        self.sizes = {"photographs": len(self.photographs), **{w: len(r) for w, r in self.worlds.items()}}
        print(self.sizes, {name: len(rows) for name, rows in self.exams.items()}, flush=True)

    def shown(self, keys: list[str]) -> Any:
        return self.pixels[[self.row[key] for key in keys]]

    def said(self, texts: list[str]) -> Any:
        ids = self.ids[[self.text_row[text] for text in texts]]
        return ids[:, : int((ids != 0).sum(1).max())]


def draw(code: str) -> np.ndarray:
    from creperie.world.picture import render as drawn
    from creperie.world.scene import decode

    return drawn(decode(code), SIZE)


def read_packed(path: Path) -> Any:
    with gzip.open(path) as file:
        return json.load(file)


def read_zips(paths: list[Path]) -> Iterator[tuple[str, np.ndarray]]:
    from PIL import Image

    for path in paths:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                with Image.open(io.BytesIO(file.read(name))) as image:
                    yield name, np.asarray(image.convert("RGB"))


def batches(
    study: Study, world: str, together: bool, n: int, rng: np.random.Generator
) -> Iterator[tuple[list, list, list, list]]:
    """Yield photographs with captions, and as many scenes with captions, without end."""
    rows = study.worlds.get(world, [])
    while True:
        own = [study.photographs[k] for k in rng.choice(len(study.photographs), min(n, len(study.photographs)), False)]
        said = [row[1 + rng.integers(len(row) - 1)] for row in own]
        scenes: list[tuple[str, str]] = []
        if rows:
            count = min(n // 2 if together else n, len(rows))
            for k in rng.choice(len(rows), count, False):
                two = rows[k]["texts"][rng.integers(len(rows[k]["texts"]))]
                sides = (0, 1) if together else (int(rng.integers(2)),)
                scenes += [(rows[k]["images"][side], two[side]) for side in sides]
        yield [row[0] for row in own], said, [s[0] for s in scenes], [s[1] for s in scenes]


def cropped(pixels: Any, least: float) -> Any:
    """Return random windows of at least this share of the area. Nothing is mirrored: left has to stay left."""
    import torch

    n = len(pixels)
    area, shape, x, y = torch.rand(4, n, device=pixels.device)
    edge, stretch = (least + (1 - least) * area).sqrt(), torch.exp((2 * shape - 1) * 0.3 * (1 - least))
    wide, high = (edge * stretch).clamp(max=1), (edge / stretch).clamp(max=1)
    where = torch.zeros(n, 2, 3, device=pixels.device)
    where[:, 0, 0], where[:, 0, 2] = wide, (2 * x - 1) * (1 - wide)
    where[:, 1, 1], where[:, 1, 2] = high, (2 * y - 1) * (1 - high)
    grid = torch.nn.functional.affine_grid(where, list(pixels.shape), align_corners=False)
    return torch.nn.functional.grid_sample(pixels.float(), grid, padding_mode="reflection", align_corners=False)


def fit(model: Any, study: Study, arm: tuple[str, bool], steps: int, seed: int, end: float) -> dict[str, Any]:
    """Train a model for so many steps, or until the time is over."""
    import torch
    from torch.nn.functional import cross_entropy

    towers = [w for part in (model.image, model.text) for w in part.parameters()]
    others = [w for name, w in model.named_parameters() if not name.startswith(("image.", "text."))]
    groups = [{"params": towers, "share": study.asked.tower_rate}, {"params": others, "share": 1.0}]
    optimiser = torch.optim.AdamW(groups, lr=study.asked.rate, weight_decay=0.1, betas=(0.9, 0.98), eps=1e-6)
    torch.manual_seed(seed)
    stream = batches(study, *arm, study.asked.batch, np.random.default_rng(seed))
    cuda = study.device.startswith("cuda")
    model.train()
    start, losses = time.perf_counter(), []
    for step in range(steps):
        if time.monotonic() > end:
            break
        rate = (
            study.asked.rate * min(1, (step + 1) / max(1, steps // 10)) * 0.5 * (1 + math.cos(math.pi * step / steps))
        )
        for group in optimiser.param_groups:
            group["lr"] = rate * group["share"]
        keys, captions, scenes, told = next(stream)
        pixels = cropped(study.shown(keys), 0.5)
        if scenes:
            pixels = torch.cat([pixels, cropped(study.shown(scenes), 0.8)])
        with torch.autocast(study.device.partition(":")[0], dtype=torch.bfloat16, enabled=cuda):
            images, texts = model.images(pixels), model.texts(study.said(captions + told))
        loss = 0.0
        for part in (slice(0, len(keys)), slice(len(keys), None)):
            if len(images[part]):
                logits = model.logit_scale.exp() * images[part].float() @ texts[part].float().T
                target = torch.arange(len(logits), device=logits.device)
                loss = loss + (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        if step % 20 == 19 or step + 1 == steps:
            losses.append(round(loss.item(), 4))
    return {"steps": step + 1, "seconds": round(time.perf_counter() - start, 1), "losses": losses[-5:]}


def sit(model: Any, study: Study) -> dict[str, dict[str, list[float]]]:
    """Return the credits of each item of each exam: text, image and group score of twins; ties are wrong."""
    import torch

    model.eval()
    found: dict[str, dict[str, list[float]]] = {}
    with torch.no_grad():
        for name, rows in study.exams.items():
            keys = list(dict.fromkeys(key for row in rows for key in row["images"]))
            texts = list(dict.fromkeys(text for row in rows for text in row["captions"]))
            images = torch.cat([model.images(study.shown(keys[k : k + 256])) for k in range(0, len(keys), 256)])
            said = torch.cat([model.texts(study.said(texts[k : k + 256])) for k in range(0, len(texts), 256)])
            scores = (images @ said.T).float().cpu().numpy()
            at, column = ({v: k for k, v in enumerate(own)} for own in (keys, texts))
            own = found.setdefault(name, {})
            for row in rows:
                part = scores[np.ix_([at[k] for k in row["images"]], [column[t] for t in row["captions"]])]
                match = np.array(row["match"])
                text = all(part[k][match[k]].min() > part[k][~match[k]].max() for k in range(len(part)))
                own.setdefault("text", []).append(float(text))
                if len(part) > 1:
                    image = all(c[m].min() > c[~m].max() for c, m in zip(part.T, match.T))
                    own.setdefault("image", []).append(float(image))
                    own.setdefault("group", []).append(float(text and image))
    return found


def train(asked: argparse.Namespace) -> None:
    """Train base models and arms, seed after seed; the file of results is whole after each model."""
    import copy

    import torch

    began = time.monotonic()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    study = Study(asked)
    known: dict[str, Any] = {
        "sizes": study.sizes,
        "settings": {k: str(v) for k, v in vars(asked).items()},
        "models": {},
    }
    path = asked.out / "world-study.json"
    seeds = [int(s) for s in asked.seeds.split(",")]
    model = new_model(asked.carry, 0).to(study.device)
    state = copy.deepcopy(model.state_dict())
    fit(model, study, ("rooms", True), 5, 0, began + asked.seconds)  # starts the device
    rate = 20 / fit(model, study, ("rooms", True), 20, 0, began + asked.seconds)["seconds"]
    left = (asked.seconds - (time.monotonic() - began)) / len(seeds) - 40
    fitting = 0.9 * left * rate / (0.55 * asked.base + 0.55 + 4)
    steps = asked.steps or max((n for n in STEPS if n <= fitting), default=STEPS[0])
    known["steps/s"], known["steps"] = round(rate, 2), steps
    print(known["steps/s"], "steps/s;", steps, "steps per arm", flush=True)
    del model, state
    for seed in seeds:
        base = new_model(asked.carry, seed).to(study.device)
        report(
            path,
            known,
            f"before/{seed}",
            fit(base, study, ("", False), int(asked.base * steps), seed, began + asked.seconds),
            base,
            study,
        )
        start = copy.deepcopy(base.state_dict())
        for arm, how in ARMS.items():
            if time.monotonic() - began > asked.seconds:
                print("the time is over", flush=True)
                return
            base.load_state_dict(start)
            report(
                path,
                known,
                f"{arm}/{seed}",
                fit(base, study, how, steps, 1000 + seed, began + asked.seconds),
                base,
                study,
            )


def report(path: Path, known: dict[str, Any], name: str, row: dict[str, Any], model: Any, study: Study) -> None:
    known["models"][name] = row | {"credits": sit(model, study)}
    path.write_text(json.dumps(known))
    shown = {
        e: [round(100 * float(np.mean(v)), 1) for v in own.values()]
        for e, own in known["models"][name]["credits"].items()
    }
    print(name, row, shown, flush=True)


# -- figures ---------------------------------------------------------------------------------------------------------


def write(asked: argparse.Namespace) -> None:
    """Write results and tables: shares with intervals over items, and gains over the control with intervals."""
    from first_minute import write as put
    from photographs_study import gain_interval

    from creperie.core import write_text
    from creperie.metrics import share_interval

    known: dict[str, Any] = {"models": {}}
    for path in sorted(asked.out.glob("world-study*.json")):
        told = json.loads(path.read_text())
        known = told | {"models": known["models"] | told["models"]}
    models = known["models"]
    seeds = sorted(
        {name.rpartition("/")[2] for name in models if f"{list(ARMS)[-1]}/{name.rpartition('/')[2]}" in models}
    )
    columns = [(exam, part) for exam, own in models[f"before/{seeds[0]}"]["credits"].items() for part in own]

    def mean(arm: str, exam: str, part: str) -> np.ndarray:
        return np.mean([models[f"{arm}/{seed}"]["credits"][exam][part] for seed in seeds], axis=0)

    rows: list[list[str]] = []
    for exam, part in columns:
        chance = {"text": 25, "image": 25, "group": 16.7}[part] if "SugarCrepe" not in exam else 50
        cells = [exam, part, str(len(mean("before", exam, part))), f"{chance:g}"]
        for arm in ("before", *ARMS):
            own = mean(arm, exam, part)
            spread = share_interval(own)
            cells.append(f"{100 * own.mean():.1f} [{100 * spread.low:.0f}, {100 * spread.high:.0f}]")
        rows.append(cells)
    gains = []
    for exam, part in columns:
        cells = [exam, part]
        for world in ("rooms", "drawings"):
            gain = mean(f"{world}, twins together", exam, part) - mean(f"{world}, twins apart", exam, part)
            low, high = gain_interval(gain, np.arange(len(gain)))
            cells.append(f"{100 * gain.mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]")
        gains.append(cells)
    sizes = known["sizes"]
    head = (
        f"{len(seeds)} seeds; {known['steps']} steps per arm of {known['settings']['batch']} photographs and as many "
        f"scenes; trained on {sizes['photographs']} photographs, {sizes['rooms']} twins of rooms, "
        f"{sizes['drawings']} of drawings."
    )
    tables = {
        "scores": table(["test", "score", "n", "chance", "before", *ARMS], rows),
        "gains": table(["test", "score", "rooms: together less apart", "drawings: together less apart"], gains),
    }
    page = "# The training study on rooms, all rows\n\nWritten by `research/world_study.py write`. " + head
    page += (
        f"\n\nPercent right [95 % interval over items]\n\n{tables['scores']}\n\n## Points gained\n\n{tables['gains']}\n"
    )
    write_text(ROOT / "research/results/world-study.md", page)
    put(ROOT / "docs/results-training.md", "rooms", in_short(head, rows, gains))
    shares = {
        name: {exam: {p: round(float(np.mean(v)), 4) for p, v in own.items()} for exam, own in row["credits"].items()}
        for name, row in models.items()
    }
    kept = {k: v for k, v in known.items() if k not in ("models", "settings")} | {"seeds": seeds, "models": shares}
    write_text(ROOT / "research/results/world-study.json", json.dumps(kept, indent=1) + "\n")
    print(page)


def in_short(head: str, rows: list[list[str]], gains: list[list[str]]) -> str:
    """Return the group scores (of SugarCrepe, the only one) for the documentation."""
    chosen = [k for k, row in enumerate(rows) if row[1] == "group" or "SugarCrepe" in row[0]]
    short = [[rows[k][0], *rows[k][2:4], rows[k][5], *(gains[k][n] for n in (2, 3))] for k in chosen]
    return f"{head}\n\n" + table(["test", "n", "chance", "photographs only", "rooms", "drawings"], short)


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("items", "render", "pack", "train", "write"))
    parser.add_argument("--carry", type=Path, default=Path(".carry"))
    parser.add_argument("--out", type=Path, default=Path("out/world-study"))
    parser.add_argument("--rounds", type=int, default=140, help="of ten twins")
    parser.add_argument("--worlds", default="drawings,rooms")
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--variant", default="auto", choices=("auto", "cuda", "scalar"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    for name in ("flickr8k", "twins", "coco", "scenes", "sugarcrepe", "photos", "image", "text"):
        parser.add_argument(f"--{name}", help="a folder")
    parser.add_argument("--train", type=int, default=1800, help="photographs to train on")
    parser.add_argument("--most", type=int, default=10**6, help="drawings, for a trial")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--tower-rate", type=float, default=0.03)
    parser.add_argument("--base", type=float, default=2.0, help="steps of the base model, of those of an arm")
    parser.add_argument("--steps", type=int, default=0, help="of an arm; 0: as many as fit the time")
    parser.add_argument("--smallest", action="store_true", help="a few steps on the CPU: only to see that it runs")
    asked = parser.parse_args()
    if asked.smallest:
        asked.device, asked.batch, asked.steps, asked.seeds, asked.base = "cpu", 4, 2, "0", 1.0
        asked.most = 40
    {"items": items, "render": render, "pack": pack, "train": train, "write": write}[asked.what](asked)


if __name__ == "__main__":
    main()
