"""`creperie data edit` and `creperie data concat`: new benchmarks from old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from creperie.bench import Benchmark, Edit, ImageOptions, concatenate, load, save
from creperie.bench import edit as change
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, say
from creperie.core import UsageError, option


@dataclass(frozen=True)
class Target:
    """Options that say where a new benchmark is written, and what it may replace."""

    out: Path | None = option(None, "The folder to write (required).", metavar="DIR")
    copy_images: bool = option(False, "Copy the images into the new folder.")
    force: bool = option(False, "Replace the folder if it exists.")

    @property
    def folder(self) -> Path:
        if self.out is None:
            raise UsageError("no output folder given", hint="pass --out DIR")
        return self.out

    def write(self, bench: Benchmark, before: int) -> CommandResult:
        new = save(bench, self.folder, copy_images=self.copy_images, force=self.force, progress=bar)
        return _edit_result(new, self.folder, before)


@click.command()
@click.argument("bench")
@options_of("changes", Edit)
@options_of("place", ImageOptions)
@options_of("target", Target)
@answers
def edit(bench: str, changes: Edit, place: ImageOptions, target: Target) -> CommandResult:
    """Write a changed copy of a benchmark. The changes are made in the order in which their options are listed here."""
    old = load(bench, images=place.images)
    return target.write(change(old, changes, progress=bar), len(old))


@dataclass(frozen=True)
class ConcatOptions:
    """Options of `data concat`: the name of the result, and whether subsets get a prefix."""

    name: str = option("", "The name of the result; by default that of the folder.")
    prefix: bool = option(False, "Rename subsets to BENCH/SUBSET, so that ids cannot clash.")


@click.command()
@click.argument("benches", nargs=-1, required=True, metavar="BENCH BENCH...")
@options_of("options", ConcatOptions)
@options_of("place", ImageOptions)
@options_of("target", Target)
@answers
def concat(benches: Sequence[str], options: ConcatOptions, place: ImageOptions, target: Target) -> CommandResult:
    """Join several benchmarks into one with all their items."""
    parts = [load(bench, images=place.images) for bench in benches]
    joined = concatenate(options.name or target.folder.resolve().name, parts, prefix=options.prefix)
    return target.write(joined, sum(len(part) for part in parts))


@dataclass(frozen=True)
class ShotOptions:
    """Options of `data shots`: how many demonstrations are drawn, and where they are written."""

    count: int = option(4, "Demonstrations per subset.", minimum=1)
    seed: int = option(0, "Seed of the draw and of the captions' order.")
    out: Path | None = option(None, "The folder to write (required).", metavar="DIR")


@click.command()
@click.argument("bench")
@options_of("options", ShotOptions)
@options_of("place", ImageOptions)
@answers
def shots(bench: str, options: ShotOptions, place: ImageOptions) -> CommandResult:
    """Draw demonstrations (solved examples) from every subset of a benchmark; the other items form the test set.

    \b
    creperie data shots out/world --count 4 --out out/four
    creperie score out/four --model "vlm:NAME?score=choice&shots=out/four/shots.toml"
    """
    from creperie.scoring import SHOTS_FILE, draw_shots

    old, out = load(bench, images=place.images), Target(options.out).folder
    done = _edit_result(draw_shots(old, options.count, out, seed=options.seed, progress=bar), out, len(old))
    return CommandResult({**done.document, "shots": str(out / SHOTS_FILE)}, done.show)


def _edit_result(bench: Benchmark, out: Path, before: int) -> CommandResult:
    document = {
        "name": bench.name,
        "folder": str(out),
        "items": len(bench),
        "before": before,
        "subsets": bench.subsets,
        "hash": bench.hash,
    }
    return CommandResult(document, lambda: say(f"{len(bench):,} of {before:,} items written to {out}"))
