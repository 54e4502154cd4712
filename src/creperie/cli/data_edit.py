"""`creperie data edit` and `creperie data concat`: new benchmarks from old ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.options import as_one
from creperie.cli.output import CommandResult, answers, bar, say

if TYPE_CHECKING:
    from creperie.bench import Benchmark, Edit


@click.command()
@click.argument("bench")
@click.option(
    "--join", type=click.Path(path_type=Path), metavar="FILE", help="Add tags from a table with subset and id."
)
@click.option("--subset", multiple=True, help="Keep this subset (may be repeated).")
@click.option("--where", default="", metavar="CONDITION", help="Keep items for which this holds: 'tag.n > 4'.")
@click.option("--without", multiple=True, metavar="CODE", help="Drop items with this finding of `data check`.")
@click.option("--drop-duplicates", is_flag=True, help="Drop items that repeat an earlier one of their subset.")
@click.option("--head", type=int, metavar="N", help="Keep the first N items of every subset.")
@click.option("--sample", type=int, metavar="N", help="Keep N items drawn at random, in their order.")
@click.option("--seed", default=0, show_default=True, help="For --sample.")
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip, tar or Parquet file.")
@click.option("--copy-images", is_flag=True, help="Put the images into the new folder, too.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace the folder if it is there.")
@as_one("changes", "creperie.bench:Edit")
@answers
def edit(bench: str, images: str | None, copy_images: bool, out: Path, force: bool, changes: Edit) -> CommandResult:
    """A new benchmark from an old one. Changes are made in the order in which the options are listed here."""
    from creperie.bench import edit as change
    from creperie.bench import load, save

    old = load(bench, images=images)
    new = save(change(old, changes, progress=bar), out, copy_images=copy_images, force=force, progress=bar)
    return _written(new, out, len(old))


@click.command()
@click.argument("benches", nargs=-1, required=True, metavar="BENCH BENCH...")
@click.option("--name", default="", help="What to call it; the folder's name if not given.")
@click.option("--prefix", is_flag=True, help="Rename subsets to BENCH/SUBSET, so that ids cannot clash.")
@click.option("--images", metavar="DIR", help="Where the images of all of them are.")
@click.option("--copy-images", is_flag=True, help="Put the images into the new folder, too.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace the folder if it is there.")
@answers
def concat(
    benches: Sequence[str], name: str, prefix: bool, images: str | None, copy_images: bool, out: Path, force: bool
) -> CommandResult:
    """Several benchmarks as one, item after item."""
    from creperie.bench import concatenate, load, save

    parts = [load(bench, images=images) for bench in benches]
    joined = concatenate(name or out.resolve().name, parts, prefix=prefix)
    new = save(joined, out, copy_images=copy_images, force=force, progress=bar)
    return _written(new, out, sum(len(part) for part in parts))


@click.command()
@click.argument("bench")
@click.option("--count", type=click.IntRange(1), default=4, show_default=True, help="Demonstrations per subset.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draw and of the captions' order.")
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip, tar or Parquet file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@answers
def shots(bench: str, count: int, seed: int, images: str | None, out: Path) -> CommandResult:
    """Draw demonstrations from every subset of a benchmark; the rest becomes the benchmark to test on.

    \b
    creperie data shots out/world --count 4 --out out/four
    creperie score out/four --model "vlm:NAME?score=choice&shots=out/four/shots.toml"
    """
    from creperie.bench import load
    from creperie.scoring import SHOTS_FILE, draw_shots

    old = load(bench, images=images)
    done = _written(draw_shots(old, count, out, seed=seed, progress=bar), out, len(old))
    return CommandResult({**done.document, "shots": str(out / SHOTS_FILE)}, done.show)


def _written(bench: Benchmark, out: Path, before: int) -> CommandResult:
    document = {
        "name": bench.name,
        "folder": str(out),
        "items": len(bench),
        "before": before,
        "subsets": bench.subsets,
        "hash": bench.hash,
    }
    return CommandResult(document, lambda: say(f"{len(bench):,} of {before:,} items written to {out}"))
