"""Can pictures alone tell which of two twins a caption describes? Needs Mitsuba and the weights of DINOv2.

python requirements/fetch_weights.py weights dinov2-s
python research/world_images.py --model weights/dinov2-s/hf

Pictures that `world_farm.py` rendered elsewhere are taken from its folder with --rendered.
"""

from __future__ import annotations

import argparse
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from first_minute import ROOT, write
from PIL import Image
from transformers import AutoModel

from creperie import World, make_world
from creperie.auditing.learned import LearnedAttacker
from creperie.auditing.measure import AttackerMargins, measure_attacker
from creperie.auditing.model_attackers import EmbeddingLearner
from creperie.auditing.null import BOUND
from creperie.auditing.pairs import image_pairs_of
from creperie.bench import from_items, open_image
from creperie.core import silent
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.studio import RenderOptions


def unpack(folder: Path, studio: RenderOptions, size: int) -> None:
    """Put pictures that were rendered elsewhere into the cache."""
    for part in sorted(folder.glob("rooms-*.tar")):
        with tarfile.open(part) as pictures:
            for member in pictures:
                file, content = studio.file_of(Path(member.name).stem, size), pictures.extractfile(member)
                if content is not None and not file.exists():
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with Image.open(content) as picture:
                        picture.save(file)


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
    studio = RenderOptions(samples=options.samples)
    if options.rendered:
        unpack(options.rendered, studio, options.size)
    model = AutoModel.from_pretrained(options.model).eval()
    kinds = tuple(ROOM_KINDS)
    world = World(items=options.items, kinds=kinds, forms=("twins",), render="3d", size=options.size, seed=options.seed)
    twins = make_world(world, studio=studio)
    # with the second caption, too, each picture would be right once and wrong once
    items = [
        replace(t, id=f"{t.subset}-{t.id}", subset="twins", captions=t.captions[:1], match=((True,), (False,)))
        for t in twins
    ]
    bench = from_items("twins-of-rooms", items, images=twins.images)

    def encode(names: list[str]) -> np.ndarray:
        found = []
        for name in names:
            pixels = np.asarray(open_image(bench.images, name).convert("RGB"), np.float32) / 255
            pixels = (pixels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
            with torch.inference_mode():
                tokens = model(torch.tensor(pixels, dtype=torch.float32).permute(2, 0, 1)[None]).last_hidden_state[0]
            vector = np.concatenate([tokens[0].numpy(), tokens[1:].mean(0).numpy()])
            found.append(vector / np.linalg.norm(vector))
        return np.stack(found)

    attacker = LearnedAttacker("image-embedding", EmbeddingLearner(encode, seed=options.seed), "")
    pairs = image_pairs_of(bench)
    margins = attacker.margins(pairs, silent)
    odds = np.nan_to_num(margins.astype(np.float64))
    bound = np.full(pairs.n_items, BOUND)
    m = measure_attacker(AttackerMargins(pairs, margins, odds, attacker.directed, bound))
    low, share, high = (100 * v for v in (m.low, m.accuracy, m.high))
    text = (
        "Without the caption, from DINOv2-S's embeddings of both pictures, an attacker finds the right one for "
        f"{share:.1f} % of {m.n} captions [{low:.1f}, {high:.1f}] (`research/world_images.py`)."
    )
    print(text)
    if not options.check:
        write(ROOT / "docs" / "world.md", "images", text)


if __name__ == "__main__":
    main()
