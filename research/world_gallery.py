"""A sheet of rendered rooms, kind after kind; pictures that the folder has already are not rendered again.

python research/world_gallery.py --pictures out/gallery --sheet docs/images/gallery.webp
"""

from __future__ import annotations

import argparse
from itertools import cycle, islice
from pathlib import Path

from PIL import Image

from creperie.world.clean_items import clean_items
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.scene import Room
from creperie.world.solid.studio import render_room


def rooms(count: int, seed: int) -> list[tuple[str, Room]]:
    """The rooms shown by choice items, one of each kind in turn, with a name each."""
    streams = {kind: clean_items(kind, "choice", "test", seed, rooms=True) for kind in ROOM_KINDS}
    made = [(kind, next(streams[kind]).scenes[0]) for kind in islice(cycle(streams), count)]
    return [(f"{k:02d}-{kind}.png", room) for k, (kind, room) in enumerate(made) if isinstance(room, Room)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--sheet", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--shown", default="", help="numbers of pictures, by comma; all of 60 if empty")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--tile", type=int, default=160)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--variant", default="auto")
    options = parser.parse_args()
    options.pictures.mkdir(parents=True, exist_ok=True)
    made = rooms(60, options.seed)
    chosen = [made[int(k)] for k in options.shown.split(",")] if options.shown else made
    tile, columns = options.tile, options.columns
    sheet = Image.new("RGB", (columns * tile, -(-len(chosen) // columns) * tile))
    for k, (name, room) in enumerate(chosen):
        file = options.pictures / name
        if not file.exists():
            picture = render_room(room, options.size, samples=options.samples, variant=options.variant)
            Image.fromarray(picture).save(file)
        with Image.open(file) as picture_file:
            small = picture_file.resize((tile, tile), Image.Resampling.LANCZOS)
        sheet.paste(small, (k % columns * tile, k // columns * tile))
    sheet.save(options.sheet, quality=78, method=6)


if __name__ == "__main__":
    main()
