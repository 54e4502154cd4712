"""Can pictures alone tell which of two twins a caption describes? Needs Mitsuba and the weights of DINOv2.

python requirements/fetch_weights.py weights dinov2-s
python research/world_images.py --model weights/dinov2-s/hf

Pictures that `world_farm.py` rendered elsewhere are taken from its folder with --rendered.
"""

from __future__ import annotations

import argparse
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from first_minute import ROOT, write
from PIL import Image
from transformers import AutoModel
from world_farm import codes_of

from creperie.auditing.learned import LearnedAttacker
from creperie.auditing.measure import AttackerMargins, measure_attacker
from creperie.auditing.model_attackers import EmbeddingLearner
from creperie.auditing.null import BOUND
from creperie.auditing.pairs import image_pairs_of
from creperie.bench import Item, from_items
from creperie.core import silent
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.scene import read_room
from creperie.world.solid.studio import RenderOptions

BATCH = 32


def rendered(folder: Path) -> dict[str, bytes]:
    """Return the pictures that `world_farm.py` wrote, by their names: in turn one of each kind."""
    found = {}
    for part in sorted(folder.glob("rooms-*.tar"), key=lambda path: int(path.stem.split("-")[1])):
        with tarfile.open(part) as pictures:
            for member in pictures:
                content = pictures.extractfile(member)
                assert content is not None
                found[member.name] = content.read()
    return found


def embedded(model: torch.nn.Module, pictures: dict[str, bytes]) -> dict[str, np.ndarray]:
    """Return an embedding for each picture: of the whole, and the mean of those of its patches."""
    names, found = list(pictures), {}
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        opened = [Image.open(BytesIO(pictures[name])).convert("RGB") for name in some]
        pixels = np.stack([np.asarray(picture, np.float32) / 255 for picture in opened])
        pixels = ((pixels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).astype(np.float32)
        with torch.inference_mode():
            tokens = model(torch.from_numpy(pixels).permute(0, 3, 1, 2)).last_hidden_state
        for name, own in zip(some, tokens.numpy(), strict=True):
            vector = np.concatenate([own[0], own[1:].mean(0)])
            found[name] = vector / np.linalg.norm(vector)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder with DINOv2's weights")
    parser.add_argument("--items", type=int, default=8, help="of each kind")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rendered", type=Path, help="folder that world_farm.py wrote")
    parser.add_argument("--check", action="store_true", help="print only")
    options = parser.parse_args()
    if options.rendered:
        pictures = rendered(options.rendered)
    else:
        found = [codes_of(kind, options.items, options.seed) for kind in ROOM_KINDS]
        codes, studio = (
            [code for row in zip(*found, strict=True) for code in row],
            RenderOptions(samples=options.samples),
        )
        pictures = {code: studio.photograph(read_room(code), options.size) for code in codes}
    vectors = embedded(AutoModel.from_pretrained(options.model).eval(), pictures)
    rows = np.array(list(pictures))[: len(pictures) // len(ROOM_KINDS) // 2 * 2 * len(ROOM_KINDS)]
    # with the second caption, too, each picture would be right once and wrong once
    items = [
        Item(f"{number}", "twins", tuple(pair), ("the caption of the first",), ((True,), (False,)))
        for number, pair in enumerate(rows.reshape(-1, 2, len(ROOM_KINDS)).transpose(0, 2, 1).reshape(-1, 2).tolist())
    ]
    learner = EmbeddingLearner(lambda names: np.stack([vectors[name] for name in names]), seed=options.seed)
    attacker, pairs = (
        LearnedAttacker("image-embedding", learner, ""),
        image_pairs_of(from_items("twins-of-rooms", items)),
    )
    margins = attacker.margins(pairs, silent)
    odds = np.nan_to_num(margins.astype(np.float64))
    bound = np.full(pairs.n_items, BOUND)
    m = measure_attacker(AttackerMargins(pairs, margins, odds, attacker.directed, bound))
    low, share, high = (100 * v for v in (m.low, m.accuracy, m.high))
    text = (
        "Without the caption, from DINOv2-S's embeddings of both pictures, an attacker finds the right one for "
        f"{share:.1f} % of {m.n:,} captions [{low:.1f}, {high:.1f}] (`research/world_images.py`)."
    )
    print(text)
    if not options.check:
        write(ROOT / "docs" / "world.md", "images", text)


if __name__ == "__main__":
    main()
