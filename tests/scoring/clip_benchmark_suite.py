"""CLIP_benchmark reads exported shards; run by test_bridges.py in a process that can import torchvision."""

from __future__ import annotations

import sys
from pathlib import Path

from open_clip_apart import run_as_suite

from creperie.bench import save
from creperie.scoring import export_webdataset
from creperie.world import World, make_world


def test_clip_benchmark_reads_the_shards(tmp_path: Path) -> None:
    from clip_benchmark.datasets.builder import build_wds_dataset

    made = make_world(World(items=4, kinds=("swap_obj",), forms=("choice", "triple", "winoground"), size=32))
    world = save(made, tmp_path / "world", copy_images=True)
    export_webdataset(world, tmp_path / "wds")
    read = list(build_wds_dataset("wds/mine", lambda image: image.size, data_dir=str(tmp_path / "wds")))
    wanted = [
        [caption for caption, fits in zip(item.captions, row, strict=True) if fits]
        for item in world
        for row in item.match
    ]
    assert read == [((32, 32), captions) for captions in wanted]


if __name__ == "__main__":
    sys.exit(run_as_suite(__file__))
