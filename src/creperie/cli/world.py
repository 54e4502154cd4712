"""`creperie world`: the built-in world of generated scenes, which needs no download."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from PIL import Image

from creperie.bench import NamingOptions, load, save
from creperie.cli.app import CommandGroup
from creperie.cli.options import FILE, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, check_target, write_text
from creperie.world import (
    BIASED,
    CLEAN,
    ROOM_KINDS,
    ROOM_ONLY,
    RenderOptions,
    Room,
    World,
    check_world,
    make_world,
    render_room,
    scene_or_room,
)


@click.group(cls=CommandGroup)
def world() -> None:
    """A built-in world of generated scenes: true captions, foils that are certain to be false, no download.

    Clean kinds of foil cannot be solved from the text alone; biased kinds have the give-aways of older benchmarks.
    """


@world.command()
@click.option("--out", required=True, type=FILE, help="The folder to write.")
@options_of("settings", World)
@options_of("studio", RenderOptions)
@options_of("naming", NamingOptions)
@click.option("--force", is_flag=True, help="Replace the folder if it exists.")
@answers
def make(out: Path, settings: World, studio: RenderOptions, naming: NamingOptions, force: bool) -> CommandResult:
    """Write a benchmark of generated scenes with true captions and foils that are certain to be false.

    With `--render 3d` the scenes are rooms and tables with solid things, which Mitsuba renders. The folder then also
    has `scenes.jsonl`, with one scene per line, for `creperie world render`.

    \b
      creperie world make --out out/world
      creperie world make --out out/pairs --kinds clean --form winoground --items 500
      creperie world make --out out/rooms --render 3d --items 12 --kinds spatial
    """

    if not force:
        check_target(out, force, ())
    bench = naming.named(make_world(settings, bar, studio))
    rooms = {key: scene for item in bench for key in item.images if isinstance(scene := scene_or_room(key), Room)}
    if rooms:
        studio.photograph_all(list(rooms.values()), settings.size, bar)
    bench = save(bench, out, copy_images=True, force=force, progress=bar)
    if rooms:
        lines = (json.dumps({"image": key, **json.loads(room.to_json())}) for key, room in rooms.items())
        write_text(out / "scenes.jsonl", "".join(f"{line}\n" for line in lines))
    images = len({key for item in bench for key in item.images})
    document = {
        "folder": str(out),
        "items": len(bench),
        "subsets": bench.subsets,
        "images": images,
        "hash": bench.hash,
        "world": asdict(settings),
    }

    def show() -> None:
        print_table(["subset", "items"], list(bench.subsets.items()))
        say(f"{len(bench)} items, {images} pictures in {out}")
        say(f"Look at them: creperie data show {out}")

    return CommandResult(document, show)


@world.command()
@click.argument("scene")
@click.option("--out", required=True, type=FILE, help="The picture to write.")
@click.option(
    "--size", default=768, show_default=True, type=click.IntRange(32, 1024), help="Width and height in pixels."
)
@click.option("--turn", default=0.0, show_default=True, help="Degrees by which the camera goes around the things.")
@options_of("studio", RenderOptions)
@answers
def render(scene: str, out: Path, size: int, turn: float, studio: RenderOptions) -> CommandResult:
    """Render one scene in three dimensions again, for example larger or from another side.

    SCENE is a JSON file with a scene, or the name of a picture of `creperie world make --render 3d`.

    \b
      creperie world render out/rooms/images/3d-….png --size 1024 --samples 256 --out large.png
      creperie world render scene.json --turn 25 --out side.png
    """
    text = Path(scene).read_text(encoding="utf-8") if scene.endswith(".json") else ""
    room = Room.from_json(text) if text else scene_or_room(scene)
    if not isinstance(room, Room):
        raise UsageError(
            f"{scene!r} is a drawing, not a scene in three dimensions",
            hint="name a picture that `creperie world make --render 3d` made",
        )
    picture = render_room(room, size, samples=studio.samples, variant=studio.variant, turn=turn)
    Image.fromarray(picture).save(out)
    document = {"picture": str(out), "size": size, "turn": turn, "scene": json.loads(room.to_json())}
    return CommandResult(document, lambda: say(f"a picture of {len(room.things)} things in {out}"))


@world.command()
@click.argument("bench")
@answers
def check(bench: str) -> CommandResult:
    """Check generated captions against their scenes. Each caption is parsed again, and its truth in the scene is
    compared with the label in the benchmark. Scenes are found by the names of their pictures.
    """

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
    every = CLEAN | ROOM_ONLY
    worlds = {k: [w for w, has in (("2d", k in CLEAN), ("3d", k in ROOM_KINDS)) if has] for k in every}
    clean = [
        {"kind": k, "clean": True, "family": v.family, "says": v.says, "forms": v.forms, "worlds": worlds[k]}
        for k, v in every.items()
    ]
    biased = [
        {"kind": k, "clean": False, "family": v.family, "says": v.says, "forms": ("choice",), "cue": v.cue}
        for k, v in BIASED.items()
    ]
    document = {"kinds": [*clean, *biased]}

    def show() -> None:
        common = [f for f in next(iter(CLEAN.values())).forms if all(f in v.forms for v in CLEAN.values())]
        rows = [
            [k, ", ".join(worlds[k]), v.family, v.says, ", ".join(f for f in v.forms if f not in common)]
            for k, v in every.items()
        ]
        print_table(
            ["kind", "worlds", "family", "the foil", "also"], rows, title=f"Clean, in the forms {', '.join(common)}"
        )
        say()
        rows = [[k, v.family, v.says, v.cue] for k, v in BIASED.items()]
        print_table(["kind", "family", "the foil", "given away by"], rows, title="Biased")

    return CommandResult(document, show)
