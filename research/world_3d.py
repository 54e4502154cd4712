"""How fast are rooms? Prints scenes per second, and for each variant of Mitsuba that works here the pictures per second
and the median of their processor time. The median with LLVM is written to docs/world.md.

python research/world_3d.py --pictures 24 --size 224
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from itertools import islice
from statistics import median

from first_minute import ROOT, write

from creperie.core import CreperieError
from creperie.world.clean_items import clean_items
from creperie.world.foils import ROOM_KINDS
from creperie.world.solid.scene import Room
from creperie.world.solid.studio import SAMPLES, VARIANTS, find_variant, render_room


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=24)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--check", action="store_true", help="print only")
    options = parser.parse_args()
    start = time.process_time()
    share = -(-options.pictures // len(ROOM_KINDS))
    made = [m for kind in ROOM_KINDS for m in islice(clean_items(kind, "choice", "test", 0, rooms=True), share)]
    print(f"{len(made) / (time.process_time() - start):.2f} items/s of processor time (two scenes each)", flush=True)
    rooms = [scene for m in made for scene in m.scenes if isinstance(scene, Room)][: options.pictures]
    for variant in options.variants.split(","):
        try:
            find_variant(variant)
        except CreperieError as e:
            print(f"{variant}: {e}")
            continue
        seconds, cpu = [], []
        for room in rooms:
            wall, busy = time.perf_counter(), time.process_time()
            render_room(room, options.size, samples=options.samples, variant=variant)
            seconds.append(time.perf_counter() - wall)
            cpu.append(time.process_time() - busy)
        print(f"{variant}: first picture, compilation included: {seconds[0]:.2f} s")
        rate, middle = len(cpu[1:]) / sum(seconds[1:]), median(cpu[1:])
        print(f"{variant}: {rate:.2f} pictures/s, {middle:.2f} s of processor time each (median)", flush=True)
        if variant == "llvm" and not options.check:
            where = f"the median of {len(cpu[1:])}, {platform.machine()} with {os.cpu_count()} cores"
            text = f"With LLVM, a picture of {options.size} pixels takes {middle:.2f} s of processor time ({where})."
            write(ROOT / "docs" / "world.md", "seconds", text)


if __name__ == "__main__":
    main()
