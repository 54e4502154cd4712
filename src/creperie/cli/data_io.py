"""`creperie data import` and `creperie data export`: between published files and creperie's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.bench import ImageOptions, NamingOptions
from creperie.cli.app import removed_name
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, echo, print_table, say
from creperie.core import UsageError, counted, option

if TYPE_CHECKING:
    from creperie.bench import Benchmark, Item

_PREVIEW = 3


@dataclass(frozen=True)
class ColumnChoice:
    """What was said about the columns of a table."""

    image: tuple[str, ...] = option((), "Column with the image file; two for two images.", whole=True)
    positive: tuple[str, ...] = option((), "Columns with true captions: caption,caption2.", whole=True)
    negative: tuple[str, ...] = option((), "Columns with false captions: foil,foil2.", whole=True)
    subset: tuple[str, ...] = option((), "Column with the subset; else there is one subset.", whole=True)
    id: tuple[str, ...] = option((), "Column with the id; else rows are numbered from 0.", whole=True)
    tag: tuple[str, ...] = option((), "Columns to keep as tags; * for all.", whole=True)
    delimiter: str = option("", "What separates the cells of a csv file.", metavar="CHARACTER")
    quotes: bool = option(True, "Treat quotation marks around a cell as quoting.")


@click.command("import")
@click.argument("path")
@click.option("--format", "format_name", metavar="NAME", help="csv, tsv, jsonl, parquet, or a published format.")
@options_of("columns", ColumnChoice)
@options_of("place", ImageOptions)
@click.option("--copy-images", is_flag=True, help="Copy the images into the benchmark.")
@options_of("naming", NamingOptions)
@click.option("--out", metavar="DIR", help="Where to write the benchmark; without it, only a preview is shown.")
@click.option("--force", is_flag=True, help="Replace a benchmark that is there.")
@answers
def import_(
    path: str,
    format_name: str | None,
    columns: ColumnChoice,
    place: ImageOptions,
    copy_images: bool,
    naming: NamingOptions,
    out: str | None,
    force: bool,
) -> CommandResult:
    """Read a table of captions, or a benchmark as published, as a creperie benchmark.

    \b
    creperie data import my.csv --image file --positive caption \\
        --negative foil,foil2 --subset kind --out out/mine
    creperie data import data/valse --format valse --out out/valse

    Columns with plain names (image, caption, negative, foil, subset, id …) are found without being named. Rows that
    lack a caption are counted, not imported. An image may have a crop box: 7.jpg#xywh=10,20,64,48.
    """
    from creperie.bench import save

    bench = naming.named(_read(path, format_name, columns, place.images))
    unseen = _images_not_found(bench)
    if out is not None:
        bench = save(bench, out, copy_images=copy_images, force=force, progress=bar)
    document = _describe(bench) | {"out": out, "notes": [unseen] if unseen else []}
    return CommandResult(document, lambda: _show_import(document, bench))


def _images_not_found(bench: Benchmark) -> str:
    """What is wrong with the images, where none of the first hundred can be found; empty where one can."""
    from creperie.bench import NO_IMAGES, image_keys

    keys = sorted(image_keys(bench))
    if not keys:
        return ""
    if bench.images is NO_IMAGES:
        return f"it names {len(keys):,} images, but not where they are: add --images DIR"
    if any(key in bench.images for key in keys[:100]):
        return ""
    return f"none of its images was found in {bench.images.location} (such as {keys[0]}): check --images"


def _read(path: str, format_name: str | None, columns: ColumnChoice, images: str | None) -> Benchmark:
    """The benchmark in a file or folder; tables with the columns that were named."""
    from dataclasses import replace

    from creperie.bench import (
        TABLE_KINDS,
        Roles,
        find_format,
        is_image_parquet,
        kind_of_file,
        open_store,
        read_format,
        read_table,
    )

    store = open_store(images) if images is not None else None
    name = find_format(format_name).name if format_name else "datasets" if is_image_parquet(Path(path)) else ""
    roles = Roles(columns.image, columns.positive, columns.negative, columns.subset, columns.id, columns.tag)
    if name and name not in TABLE_KINDS:
        if roles != Roles():
            raise UsageError(
                f"the format {name!r} has its own columns", hint="leave out --image, --positive and the like"
            )
        return read_format(find_format(name), path, images=store)
    if Path(path).is_dir():
        raise UsageError("this is a folder", where=path, hint="say what it holds: --format NAME, or give one file")
    if not Path(path).is_file():
        raise UsageError("there is no such file", where=path)
    kind = name or kind_of_file(Path(path))
    delimiter, quotes = columns.delimiter, columns.quotes
    bench = read_table(Path(path), kind, roles, delimiter=delimiter, quotes=quotes, progress=bar)
    return bench if store is None else replace(bench, images=store)


def _describe(bench: Benchmark) -> dict[str, Any]:
    from creperie.bench import image_keys

    return {
        "name": bench.name,
        "items": len(bench),
        "subsets": bench.subsets,
        "images": len(image_keys(bench)),
        "hash": bench.hash,
        "skipped": len(bench.skipped),
        "reasons": dict(Counter(s.reason for s in bench.skipped)),
        "columns": bench.provenance[-1].args.get("columns", {}) if bench.provenance else {},
        "preview": [_item_document(item) for item in _first(bench)],
    }


def _first(bench: Benchmark) -> list[Item]:
    return [bench[i] for i in range(min(_PREVIEW, len(bench)))]


def _item_document(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "subset": item.subset,
        "images": list(item.images),
        "captions": list(item.captions),
        "match": [list(row) for row in item.match],
        "tags": dict(item.tags),
    }


def _show_import(document: dict[str, Any], bench: Benchmark) -> None:
    from rich.markup import escape

    subsets, images = len(document["subsets"]), document["images"]
    counts = ((document["items"], "item"), (subsets, "subset"), (images, "image"))
    told = ", ".join(counted(n, what) for n, what in counts)
    say(f"[bold]{escape(document['name'])}[/bold]: {told}")
    if document["columns"]:
        said = "; ".join(f"{role} = {', '.join(names)}" for role, names in document["columns"].items())
        say(f"columns: {escape(said)}")
    for reason, n in document["reasons"].items():
        example = next(s.id for s in bench.skipped if s.reason == reason)
        say(f"[yellow]{n:,} left out[/yellow] (such as {escape(example)}): {escape(reason)}")
    for note in document["notes"]:
        say(f"[yellow]note[/yellow]: {escape(note)}")
    rows = [row for item in _first(bench) for row in _item_rows(item)]
    print_table("", ["subset", "id", "image", "true", "caption"], rows)
    if document["out"] is None:
        say(f"Nothing was written. To keep it, add: --out out/{escape(document['name'])}")
    else:
        say(f"Written to {escape(document['out'])}. Next: creperie data check {escape(document['out'])}")


def _item_rows(item: Item) -> list[list[str]]:
    """An item for people: one line per caption; of several images, those that the caption is true of."""
    rows = []
    for j, caption in enumerate(item.captions):
        true = [image for i, image in enumerate(item.images or ("",)) if item.match[i][j]]
        shown = ", ".join(true) if len(item.images) > 1 else (item.images[0] if item.images and not j else "")
        rows.append(["" if j else item.subset, "" if j else item.id, shown, "yes" if true else "no", caption])
    return rows


#: other evaluation tools that a benchmark can be written for, with its images
HARNESSES = ("datasets", "lmms-eval")


def _export_for(name: str, bench: Benchmark, out: str, force: bool) -> list[Path]:
    from creperie.bench import export_image_parquet
    from creperie.scoring import export_lmms

    if name == "datasets":
        return export_image_parquet(bench, out, force=force, progress=bar)
    return export_lmms(bench, out, force=force)


@click.command()
@click.argument("bench")
@click.option(
    "--format",
    "format_name",
    required=True,
    metavar="NAME",
    help="A published format, csv, tsv, jsonl, parquet; or datasets, lmms-eval.",
)
@click.option("--out", required=True, metavar="PATH", help="The folder to write; or a file, where there is only one.")
@click.option("--subset", "subsets", multiple=True, help="Only this subset (may be repeated).")
@click.option("--force", is_flag=True, help="Overwrite files of the same names.")
@answers
def export(bench: str, format_name: str, out: str, subsets: tuple[str, ...], force: bool) -> CommandResult:
    """Write a benchmark in a published format.

    These are the formats of the five papers, Winoground's and tables. Images are not written, except for other tools:
    `datasets` writes Parquet that `datasets.load_dataset` opens with images, `lmms-eval` a task folder that asks about
    every image in every order of its captions.

    \b
    creperie data export out/mine --format sugarcrepe --out out/as-sugarcrepe
    creperie data export out/mine --format lmms-eval --out out/task
    creperie runs import logs/…_samples_creperie_mine.jsonl --bench out/mine --model MODEL
    """
    from creperie.bench import find_format, load, write_format

    if gone := removed_name(f"data export --format {format_name}"):
        raise gone
    loaded = load(bench)
    chosen = loaded.only(subsets) if subsets else loaded
    if format_name in HARNESSES:
        files = _export_for(format_name, chosen, out, force)
    else:
        files = write_format(find_format(format_name), chosen, out, force=force)
    document = {"format": format_name, "items": len(chosen), "out": out, "files": [str(file) for file in files]}

    def show() -> None:
        say(f"{counted(len(chosen), 'item')} in {counted(len(files), 'file')}:")
        for file in files[:20]:
            echo(f"  {file}")
        if len(files) > 20:
            echo(f"  … and {len(files) - 20} more")

    return CommandResult(document, show)


@click.command()
@click.argument("bench")
@click.argument("repo", metavar="OWNER/NAME")
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option("--copy-images", is_flag=True, help="Send the images, too: make sure that you may.")
@click.option("--licence", default="", help="Its licence, where the benchmark states none.")
@click.option("--message", default="", help="The message of the commit.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and stop.")
@answers
def push(
    bench: str, repo: str, private: bool, copy_images: bool, licence: str, message: str, dry_run: bool
) -> CommandResult:
    """Upload a benchmark with its card, datasheet and Croissant file to a dataset repository of the hub.

    Images are not sent unless you ask. The same command again sends only what has changed.

    \b
    creperie data push out/mine me/mine --dry-run
    creperie data push out/mine me/mine --private
    """
    from dataclasses import replace

    from creperie.bench import load, push_benchmark

    found = load(bench)
    named = replace(found, info=replace(found.info, licence=licence or found.info.licence))
    ways = {"private": private, "copy_images": copy_images, "message": message, "dry_run": dry_run}
    done = push_benchmark(named, repo, **ways, progress=bar)  # type: ignore[arg-type]

    def show() -> None:
        print_table("", ["file", "bytes"], [[n, f"{size:,}"] for n, size in done.files.items()][:20], right=["bytes"])
        say(f"{len(done.files)} files, {sum(done.files.values()):,} bytes; {done.commit or 'nothing was sent'}")

    return CommandResult(vars(done), show)
