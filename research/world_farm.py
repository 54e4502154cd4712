"""Renders the twins that `world_images.py` shows to an attacker, on a machine with a GPU and many cores, until
time is up. Prints pictures per second for each variant of Mitsuba that works there.

python research/world_farm.py --items 108 --out out/farm
python research/world_images.py --model weights/dinov2-s/hf --items 108 --rendered out/farm
"""

from __future__ import annotations

import argparse
import os
import tarfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from PIL import Image

from creperie.core import CreperieError
from creperie.world.clean_items import clean_items
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.scene import Room, read_room
from creperie.world.solid.studio import RenderOptions, find_variant

PART = 600  #: pictures in one file of the result


def codes_of(kind: str, items: int, seed: int) -> list[str]:
    """Return the codes of the rooms of the first twins of a kind, two per item."""
    made = islice(clean_items(kind, "twins", "test", seed, rooms=True), items)
    return [scene.code for item in made for scene in item.scenes if isinstance(scene, Room)]


def packed(options: RenderOptions, code: str, size: int) -> bytes:
    """Return the finished picture of a room as lossless WebP."""
    out = BytesIO()
    with Image.open(BytesIO(options.photograph(read_room(code), size))) as picture:
        picture.save(out, "WEBP", lossless=True, method=2)
    return out.getvalue()


def rate(variant: str, workers: int, rooms: Sequence[Room], size: int, samples: int) -> float:
    """Render the rooms and return how many pictures per second were made; 0 if the variant does not work here."""
    try:
        options = RenderOptions(variant=find_variant(variant), workers=workers, samples=samples)
    except CreperieError as e:
        print(f"{variant}: {e}", flush=True)
        return 0.0
    start = time.perf_counter()
    options.photograph_all(rooms, size)
    per_second = len(rooms) / (time.perf_counter() - start)
    print(f"{variant}: {per_second:.2f} pictures/s with {workers} processes, {len(rooms)} pictures", flush=True)
    return per_second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=108, help="of each kind")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tried", type=int, default=160, help="pictures by which each variant is measured")
    parser.add_argument("--seconds", type=float, default=420, help="after so many seconds, nothing more is rendered")
    parser.add_argument("--gpu-workers", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    start, cores = time.perf_counter(), os.cpu_count() or 1
    with ProcessPoolExecutor(cores, get_context("spawn")) as pool:
        found = list(
            pool.map(codes_of, ROOM_KINDS, *([value] * len(ROOM_KINDS) for value in (options.items, options.seed)))
        )
    codes = list(dict.fromkeys(code for pair in zip(*found, strict=True) for code in pair))
    print(f"{len(codes)} rooms after {time.perf_counter() - start:.0f} s", flush=True)
    rooms = [read_room(code) for code in codes]
    done, rates = 0, {}
    for variant, workers in (("cuda", options.gpu_workers), ("llvm", cores), ("scalar", cores)):
        chosen = rooms[done : done + options.tried]
        rates[variant] = rate(variant, workers, chosen, options.size, options.samples)
        done += len(chosen) if rates[variant] else 0
    best = max(rates, key=lambda name: rates[name])
    while done < len(rooms) and time.perf_counter() - start < options.seconds:
        chosen = rooms[done : done + 400]
        rate(best, options.gpu_workers if best == "cuda" else cores, chosen, options.size, options.samples)
        done += len(chosen)
    options.out.mkdir(parents=True, exist_ok=True)
    studio = RenderOptions(samples=options.samples)
    for part in range(0, done, PART):
        with tarfile.open(options.out / f"rooms-{part}.tar", "w") as pack:
            for code in codes[part : min(part + PART, done)]:
                picture = packed(studio, code, options.size)
                info = tarfile.TarInfo(f"{code}.webp")
                info.size = len(picture)
                pack.addfile(info, BytesIO(picture))
    print(f"{done} pictures after {time.perf_counter() - start:.0f}s", flush=True)


if __name__ == "__main__":
    main()
