"""How much faster planned scoring is than the usual loops, on this machine's CPU, measured in one run.

    .venv/bin/python benchmarks/encoder_speed.py [--quick] [--data ../shared/data/sugarcrepe]

A random-weight ViT-B/32 (transformers' CLIPModel with its default configuration) scores 236 real SugarCrepe rows on
60 synthetic 640 × 480 JPEGs in three ways: the plain loop of the published evaluations (one image call and two text
calls of batch 1 a row, 77 tokens), a loop over batches of 64 rows without de-duplication and with 77 tokens, and
`creperie.score`. Then all of SugarCrepe's captions go through the text tower, against the bare forward passes, and a
second run of all 7,511 rows is timed from the store, command line included. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

GOALS = {"plain loop": 12.0, "batched loop": 6.0, "text tower": 1.3, "second run": 3.0}
ROWS, IMAGES, BATCH = 236, 60, 64
_NARROW = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
TINY = {"text_config": dict(_NARROW), "vision_config": dict(_NARROW)}
PARTS = ("loops", "text", "second")
clock: Callable[[], float] = time.perf_counter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data/sugarcrepe")
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows and captions; ratios are rougher")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds, where the machine is shared")
    parser.add_argument("--smallest", action="store_true", help="a tiny model: only to see that it runs")
    args = parser.parse_args()
    global clock
    clock = time.process_time if args.cpu_time else time.perf_counter
    if not args.data.is_dir():
        print(f"{args.data}: no SugarCrepe files here; pass --data")
        return 2
    import torch

    torch.set_num_threads(args.threads)
    print(f"torch {torch.__version__}, {args.threads} threads, float32")
    with tempfile.TemporaryDirectory() as place:
        os.environ["CREPERIE_CACHE"] = f"{place}/cache"
        return measure(Path(place), args.data, args.quick or args.smallest, args.parts, TINY if args.smallest else {})


def measure(place: Path, data: Path, quick: bool, parts: Sequence[str], size: dict[str, Any]) -> int:
    records = read_records(data)
    captions = list(dict.fromkeys(t for r in records for t in (r["caption"], r["negative_caption"])))
    folder = make_model(place / "vit-b-32", captions, size)
    rows = pick_rows(records, ROWS // 4, IMAGES // 4) if quick else pick_rows(records, ROWS, IMAGES)
    make_images(place / "images", sorted({r["filename"] for r in rows}))
    missed = []
    if "loops" in parts:
        missed += measure_loops(place, folder, rows)
    if "text" in parts:
        missed += measure_text_tower(folder, captions[:: 8 if quick else 1])
    if "second" in parts:
        missed += measure_second_run(place, folder, data, records, captions)
    print("all goals met" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0


def judge(name: str, value: float, unit: str, at_least: bool) -> list[str]:
    goal = GOALS[name]
    met = value >= goal if at_least else value <= goal
    sign = "≥" if at_least else "≤"
    print(f"  {name}: {value:.2f}{unit} (goal {sign} {goal:g}{unit}) {'ok' if met else 'MISSED'}")
    return [] if met else [name]


@contextmanager
def timed(found: dict[str, float], name: str) -> Iterator[None]:
    start = clock()
    yield
    found[name] = clock() - start


# -- what is measured ------------------------------------------------------------------------------------------------


def measure_loops(place: Path, folder: Path, rows: list[dict[str, str]]) -> list[str]:
    from creperie.bench import Item, choice, from_items, open_store
    from creperie.models import load_model
    from creperie.scoring import ScoreOptions, score

    items = [
        Item(str(i), "rows", (r["filename"],), (r["caption"], r["negative_caption"]), choice(1, 1))
        for i, r in enumerate(rows)
    ]
    bench = from_items("speed", items, images=open_store(str(place / "images")))
    model = load_model(f"hf:{folder}", device="cpu")
    library = Library(folder)
    library.scores(rows[:2], place / "images", 1)  # warm up both
    model.encode_texts([r["caption"] for r in rows[:4]])
    took: dict[str, float] = {}
    with timed(took, "plain"):
        plain = library.scores(rows, place / "images", 1)
    with timed(took, "batched"):
        batched = library.scores(rows, place / "images", BATCH)
    with timed(took, "creperie"):
        run = score(bench, model, tasks=["itt"], options=ScoreOptions(device="cpu"))
    ours = run.scores("image_text").reshape(-1, 2)
    print(
        f"{len(rows)} rows, {len({r['filename'] for r in rows})} images: "
        + ", ".join(f"{k} {v:.1f} s" for k, v in took.items())
    )
    print("  creperie's stages: " + ", ".join(f"{k} {v:.2f}" for k, v in run.document["timings"].items()))
    worst = max(float(np.abs(ours - other).max()) for other in (plain, batched))
    hits = [int((s[:, 0] > s[:, 1]).sum()) for s in (plain, batched, ours)]
    print(f"  largest difference of a score {worst:.1e}; hits {hits[0]}, {hits[1]}, {hits[2]}")
    missed = [] if worst <= 1e-5 and len(set(hits)) == 1 else ["same scores"]
    missed += judge("plain loop", took["plain"] / took["creperie"], "×", True)
    return missed + judge("batched loop", took["batched"] / took["creperie"], "×", True)


def measure_text_tower(folder: Path, captions: Sequence[str]) -> list[str]:
    """The pipeline with tokenising and keeping, against forward passes alone on the same trimmed, sorted batches."""
    from creperie.models import load_model
    from creperie.scoring import ResultStore, text_keys
    from creperie.scoring.batch_size import pace_for
    from creperie.scoring.driver import Driver
    from creperie.scoring.passes import encode_texts
    from creperie.scoring.sheet import Sheet

    model: Any = load_model(f"hf:{folder}", device="cpu")
    batches: list[Any] = []
    tokens = dict(zip(captions, model.prepare_texts(captions), strict=True))
    longest_first = sorted(tokens.values(), key=lambda p: -len(p.ids))
    lengths = np.array([len(p.ids) for p in longest_first])
    at = 0
    while at < len(lengths):
        size, _ = pace_for(model).captions_from(lengths[at:])
        batches.append(longest_first[at : at + size])
        at += size
    took: dict[str, float] = {}
    with timed(took, "bare"):
        for batch in batches:
            model.forward_texts(batch)
    keys = text_keys(captions)
    sheet, shelf = Sheet(len(captions)), ResultStore().shelf(model.fingerprint, "text")
    with timed(took, "pipeline"), Driver(model, pace_for(model)) as driver:
        sheet.keep = lambda r: shelf.add(keys[r], sheet.vectors[r], sheet.cut[r])
        encode_texts(driver, captions, sheet)
        shelf.close()
    mean = np.mean([len(t.ids) for t in tokens.values()])
    rate = len(captions) / took["pipeline"]
    print(f"{len(captions):,} captions of {mean:.1f} tokens: bare {took['bare']:.1f} s, ", end="")
    print(f"pipeline {took['pipeline']:.1f} s, {rate:.0f} captions/s")
    return judge("text tower", took["pipeline"] / took["bare"], "×", False)


def measure_second_run(
    place: Path, folder: Path, data: Path, records: list[dict[str, str]], captions: Sequence[str]
) -> list[str]:
    """The command line on all rows with a store that holds everything: random vectors serve as well as real ones."""
    from creperie.bench import open_store
    from creperie.scoring import ResultStore, text_keys
    from creperie.scoring.digests import digest_images
    from creperie.scoring.handle import open_model

    names = sorted({r["filename"] for r in records})
    make_images(place / "all", names, size=(64, 48))
    past = time.time() - 60
    for name in names:
        os.utime(place / "all" / name, (past, past))
    handle = open_model(f"hf:{folder}", device="cpu")
    store = ResultStore()
    image_keys = digest_images(open_store(str(place / "all")), names, store.memo("image")).keys
    rng = np.random.default_rng(0)
    for kind, keys in (("image", image_keys), ("text", text_keys(captions))):
        shelf = store.shelf(handle.fingerprint, kind)
        for i in range(0, len(keys), 512):
            vectors = rng.normal(size=(len(keys[i : i + 512]), 512)).astype(np.float32)
            shelf.add(keys[i : i + 512], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        shelf.close()
    command = [sys.executable, "-c", "from creperie.cli import main; main()", "score", f"sugarcrepe:{data}"]
    command += ["--images", str(place / "all"), "--model", f"hf:{folder}", "--task", "itt", "--json"]
    command += ["--out", str(place / "runs")]
    took: dict[str, float] = {}
    before = os.times()
    with timed(took, "second"):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    if clock is time.process_time:  # the work is a child's
        after = os.times()
        took["second"] = after.children_user + after.children_system - before.children_user - before.children_system
    document = json.loads(done.stdout)
    total = next(r for r in document["results"] if r["subset"] == "all")
    computed = sum(s["computed"] for s in document["work"].values())
    print(f"{total['n']:,} rows from the store, {computed} computed, command line included: {took['second']:.2f} s")
    return (["second run computes"] if computed else []) + judge("second run", took["second"], " s", False)


# -- the loops everybody writes --------------------------------------------------------------------------------------


class Library:
    """transformers' own forward pass: every row by itself or in batches, images as often as rows, 77 tokens."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

        self.model = CLIPModel.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.processor = AutoImageProcessor.from_pretrained(folder, backend="pil")

    def scores(self, rows: list[dict[str, str]], images: Path, batch: int) -> np.ndarray:
        import torch

        found = []
        for i in range(0, len(rows), batch):
            part = rows[i : i + batch]
            with torch.no_grad():
                image = self._image([images / r["filename"] for r in part])
                texts = [self._text([r[name] for r in part]) for name in ("caption", "negative_caption")]
            found.append(torch.stack([(image * text).sum(dim=1) for text in texts], dim=1).numpy())
        return np.concatenate(found)

    def _image(self, paths: Sequence[Path]) -> Any:
        pixels = self.processor([Image.open(p) for p in paths], return_tensors="pt")["pixel_values"]
        return self._unit(self.model.get_image_features(pixel_values=pixels))

    def _text(self, texts: list[str]) -> Any:
        tokens = self.tokenizer(texts, padding="max_length", max_length=77, truncation=True, return_tensors="pt")
        return self._unit(self.model.get_text_features(**tokens))

    def _unit(self, features: Any) -> Any:
        features = getattr(features, "pooler_output", features)
        return features / features.norm(dim=-1, keepdim=True)


# -- what it is measured on ------------------------------------------------------------------------------------------


def read_records(data: Path) -> list[dict[str, str]]:
    return [r for path in sorted(data.glob("*.json")) for r in json.loads(path.read_text()).values()]


def pick_rows(records: list[dict[str, str]], rows: int, images: int) -> list[dict[str, str]]:
    """Rows of the first images by name, drawn so that every image is there."""
    names = set(sorted({r["filename"] for r in records})[:images])
    own = [r for r in records if r["filename"] in names]
    order = np.random.default_rng(0).permutation(len(own)).tolist()
    first = {own[i]["filename"]: i for i in reversed(order)}
    rest = [i for i in order if i not in set(first.values())]
    return [own[i] for i in sorted([*first.values(), *rest[: rows - len(first)]])]


def make_images(folder: Path, names: Sequence[str], size: tuple[int, int] = (640, 480)) -> None:
    """Photo-like JPEGs: smooth shapes with some grain, no two alike."""
    folder.mkdir(exist_ok=True)
    for i, name in enumerate(names):
        rng = np.random.default_rng(i)
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(small.resize(size, Image.Resampling.BICUBIC), np.int16)
        grain = rng.integers(-12, 13, smooth.shape, dtype=np.int16)
        Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8)).save(folder / name, quality=90)


def make_model(folder: Path, captions: Sequence[str], size: dict[str, Any]) -> Path:
    """ViT-B/32 with random weights, and a tokenizer of CLIP's kind that is trained on the captions."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    tokenizer = train_tokenizer(captions)
    config = CLIPConfig(**size)
    config.text_config.bos_token_id = tokenizer.bos_token_id
    config.text_config.eos_token_id = tokenizer.eos_token_id
    torch.manual_seed(0)
    CLIPModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)
    return folder


def train_tokenizer(captions: Sequence[str]) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import CLIPTokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trained = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    trained.normalizer = normalizers.Lowercase()
    trained.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(False)])
    trainer = trainers.BpeTrainer(
        vocab_size=12_000, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    trained.train_from_iterator(captions, trainer)
    state = json.loads(trained.to_str())["model"]
    words = alphabet + [f"{letter}</w>" for letter in alphabet]
    known = set(words)
    words += [word for word, _ in sorted(state["vocab"].items(), key=lambda pair: pair[1]) if word not in known]
    vocab = {word: i for i, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    return CLIPTokenizer(vocab=vocab, merges=[tuple(m) for m in state["merges"]], model_max_length=77)


if __name__ == "__main__":
    sys.exit(main())
