"""`creperie world`: the rendered world, which needs no download."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.bench import NamingOptions, load, save
from creperie.cli.app import CommandGroup
from creperie.cli.options import FILE, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.world import BIASED, CLEAN, World, check_world, make_world

if TYPE_CHECKING:
    pass


@click.group(cls=CommandGroup)
def world() -> None:
    """A rendered world of scenes: true captions, certified foils, no download.

    Clean kinds cannot be solved from the text alone; biased kinds show the give-aways of older benchmarks.
    """


@world.command()
@click.option("--out", required=True, type=FILE, help="The folder to write.")
@options_of("wanted", World)
@options_of("naming", NamingOptions)
@click.option("--force", is_flag=True, help="Replace the folder if it exists.")
@answers
def make(out: Path, wanted: World, naming: NamingOptions, force: bool) -> CommandResult:
    """Write scenes, captions and certified foils as a benchmark.

    \b
      creperie world make --out out/world
      creperie world make --out out/pairs --kinds clean --form winoground --items 500 --size 224
    """

    bench = naming.named(make_world(wanted, bar))
    bench = save(bench, out, copy_images=True, force=force, progress=bar)
    images = len({key for item in bench for key in item.images})
    document = {
        "folder": str(out),
        "items": len(bench),
        "subsets": bench.subsets,
        "images": images,
        "hash": bench.hash,
        "world": asdict(wanted),
    }

    def show() -> None:
        rows = [[name, str(count)] for name, count in bench.subsets.items()]
        print_table(["subset", "items"], rows, right=["items"])
        say(f"{len(bench)} items, {images} pictures in {out}")
        say(f"Look at them: creperie data show {out}")

    return CommandResult(document, show)


@world.command()
@click.argument("bench")
@answers
def check(bench: str) -> CommandResult:
    """Parse every caption again and check it against the scene that its picture is named after."""

    source = load(bench)
    findings = check_world(source, bar)
    document = {"items": len(source), "findings": [asdict(finding) for finding in findings]}

    def show() -> None:
        for finding in findings[:20]:
            say(f"{finding.subset}/{finding.item}: {finding.message}")
        more = f" ({len(findings) - 20} more)" if len(findings) > 20 else ""
        say(f"{len(source)} items, {len(findings)} findings{more}")

    return CommandResult(document, show, ok=not findings)


@world.command()
@answers
def kinds() -> CommandResult:
    """List the kinds of items that the world can make."""
    clean = [{"kind": k, "clean": True, "family": v.family, "says": v.says, "forms": v.forms} for k, v in CLEAN.items()]
    biased = [
        {"kind": k, "clean": False, "family": v.family, "says": v.says, "forms": ("choice",), "cue": v.cue}
        for k, v in BIASED.items()
    ]
    document = {"kinds": [*clean, *biased]}

    def show() -> None:
        common = [f for f in next(iter(CLEAN.values())).forms if all(f in v.forms for v in CLEAN.values())]
        rows = [[k, v.family, v.says, ", ".join(f for f in v.forms if f not in common)] for k, v in CLEAN.items()]
        print_table(["kind", "family", "the foil", "also"], rows, title=f"Clean, in the forms {', '.join(common)}")
        say()
        rows = [[k, v.family, v.says, v.cue] for k, v in BIASED.items()]
        print_table(["kind", "family", "the foil", "given away by"], rows, title="Biased")

    return CommandResult(document, show)
