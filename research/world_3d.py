"""How fast are rooms? Prints scenes per second, and pictures per second of each variant of Mitsuba that works here.

python research/world_3d.py --pictures 24 --size 224 --samples 16
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

from creperie.core import CreperieError
from creperie.world.clean_items import clean_items
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.scene import Room
from creperie.world.solid.studio import VARIANTS, find_variant, render_room


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=24)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    options = parser.parse_args()
    start = time.process_time()
    each = -(-options.pictures // len(ROOM_KINDS))
    made = [m for kind in ROOM_KINDS for m in islice(clean_items(kind, "choice", "test", 0, rooms=True), each)]
    print(f"{len(made) / (time.process_time() - start):.2f} items/s of processor time (two scenes each)", flush=True)
    rooms = [scene for m in made for scene in m.scenes if isinstance(scene, Room)][: options.pictures]
    for variant in options.variants.split(","):
        try:
            find_variant(variant)
        except CreperieError as e:
            print(f"{variant}: {e}")
            continue
        first, cpu, wall = time.perf_counter(), 0.0, 0.0
        for k, room in enumerate(rooms):
            render_room(room, options.size, samples=options.samples, variant=variant)
            if not k:
                print(
                    f"{variant}: first picture, compilation included: {time.perf_counter() - first:.2f} s", flush=True
                )
                cpu, wall = time.process_time(), time.perf_counter()
        n = len(rooms) - 1
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(f"{variant}: {n / wall:.2f} pictures/s, {cpu / n:.2f} s of processor time each", flush=True)


if __name__ == "__main__":
    main()
