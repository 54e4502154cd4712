"""`creperie data import` and `creperie data export`: conversion between the formats of published benchmarks and
creperie's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from creperie.bench import (
    NO_IMAGES,
    TABLE_KINDS,
    Benchmark,
    Format,
    ImageOptions,
    Item,
    NamingOptions,
    PartOptions,
    Roles,
    export_image_parquet,
    export_webdataset,
    find_format,
    image_keys,
    is_image_parquet,
    kind_of_file,
    list_formats,
    load_part,
    open_store,
    read_format,
    read_table,
    save,
    write_format,
)
from creperie.cli.app import removed_name
from creperie.cli.data_show import describe
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, echo, print_table, say, show_notes
from creperie.core import Json, UsageError, counted, option, unknown

_PREVIEW = 3


@dataclass(frozen=True)
class ImportOptions:
    """Options of `data import`: how a file is read, and where the benchmark is written."""

    format: str = option("", "csv, tsv, jsonl, parquet, or a published format.")
    copy_images: bool = option(False, "Copy the images into the benchmark.")
    out: str | None = option(None, "Where to write the benchmark; without it, only a preview is shown.", metavar="DIR")
    force: bool = option(False, "Replace an existing benchmark.")
    delimiter: str = option("", "What separates the cells of a csv file.", metavar="CHARACTER")
    quotes: bool = option(True, "Treat quotation marks around a cell as quoting.")


@click.command("import")
@click.argument("path")
@options_of("options", ImportOptions)
@options_of("roles", Roles)
@options_of("place", ImageOptions)
@options_of("naming", NamingOptions)
@answers
def import_(
    path: str, options: ImportOptions, roles: Roles, place: ImageOptions, naming: NamingOptions
) -> CommandResult:
    """Convert a table of captions, or a benchmark in its published form, to a creperie benchmark.

    \b
    creperie data import my.csv --image file --positive caption \\
        --negative foil,foil2 --subset kind --out out/mine
    creperie data import data/valse --format valse --out out/valse

    Columns with common names (image, caption, negative, foil, subset, id …) are recognised without options. Rows
    without a caption are counted but not imported. An image may have a crop box: 7.jpg#xywh=10,20,64,48.
    """

    bench = naming.named(_read(path, options, roles, place.images))
    unseen = _images_not_found(bench)
    if options.out is not None:
        bench = save(bench, options.out, copy_images=options.copy_images, force=options.force, progress=bar)
    document = _describe(bench) | {"out": options.out, "notes": [unseen] if unseen else []}

    def show() -> None:
        counts = ((document["items"], "item"), (len(document["subsets"]), "subset"), (document["images"], "image"))
        say("[bold]{}[/bold]: {}", document["name"], ", ".join(counted(n, what) for n, what in counts))
        if document["columns"]:
            named = (f"{role} = {', '.join(names)}" for role, names in document["columns"].items())
            say("columns: {}", "; ".join(named))
        for reason, n in document["reasons"].items():
            example = next(s.id for s in bench.skipped if s.reason == reason)
            say("[yellow]{:,} left out[/yellow] (such as {}): {}", n, example, reason)
        show_notes(document["notes"])
        rows = [row for item in _first(bench) for row in _item_rows(item)]
        print_table(["subset", "id", "image", "true", "caption"], rows)
        if document["out"] is None:
            say("Nothing was written. To keep it, add: --out out/{}", document["name"])
        else:
            say("Written to {0}. Next: creperie data check {0}", document["out"])

    return CommandResult(document, show)


def _images_not_found(bench: Benchmark) -> str:
    """Return an error message if none of the first hundred images can be found. Otherwise return an empty string."""

    keys = sorted(image_keys(bench))
    if not keys:
        return ""
    if bench.images is NO_IMAGES:
        return f"it names {len(keys):,} images, but not where they are: add --images DIR"
    if any(key in bench.images for key in keys[:100]):
        return ""
    return f"none of its images was found in {bench.images.location} (such as {keys[0]}): check --images"


def _read(path: str, options: ImportOptions, roles: Roles, images: str | None) -> Benchmark:
    """Return the benchmark in a file or folder. `roles` names the columns of a table that hold images, captions, ids
    and so on.
    """

    if options.format in FOR_TOOLS[2:]:
        hint = "`runs import` reads its logs; export as datasets or webdataset (with images) or jsonl to read it back"
        raise UsageError(f"the format {options.format} can only be written, not read", where=path, hint=hint)
    store = open_store(images) if images is not None else None
    name = find_format(options.format).name if options.format else "datasets" if is_image_parquet(Path(path)) else ""
    if name and name not in TABLE_KINDS:
        if roles != Roles():
            raise UsageError(
                f"the format {name!r} defines its own columns", hint="leave out --image, --positive and the like"
            )
        return read_format(find_format(name), path, images=store)
    if Path(path).is_dir():
        hint = f"give the {name} file in it" if name else "pass --format NAME, or give one file"
        raise UsageError("expected a file, found a folder", where=path, hint=hint)
    if not Path(path).is_file():
        raise UsageError("there is no such file", where=path, hint="check the path")
    kind = name or kind_of_file(Path(path))
    cells: Any = {"delimiter": options.delimiter, "quotes": options.quotes}
    bench = read_table(Path(path), kind, roles, **cells, progress=bar)
    return bench if store is None else replace(bench, images=store)


def _describe(bench: Benchmark) -> Json:
    described = describe(bench)
    return described | {
        "reasons": described["skipped_reasons"],
        "columns": bench.provenance[-1].args.get("columns", {}) if bench.provenance else {},
        "preview": [asdict(item) | {"tags": dict(item.tags)} for item in _first(bench)],
    }


def _first(bench: Benchmark) -> list[Item]:
    return list(islice(bench, _PREVIEW))


def _item_rows(item: Item) -> Iterator[list[str]]:
    """Yield the rows that show an item in the table, one per caption. For an item with several images, each row names
    the images that its caption is true of.
    """
    for j, caption in enumerate(item.captions):
        true = [image for i, image in enumerate(item.images or ("",)) if item.match[i][j]]
        shown = ", ".join(true) if len(item.images) > 1 else (item.images[0] if item.images and not j else "")
        yield ["" if j else item.subset, "" if j else item.id, shown, "yes" if true else "no", caption]


#: formats for other tools, with images
FOR_TOOLS = ("datasets", "webdataset", "lmms-eval", "inspect")
#: the command that runs an exported task
NEXT = {
    "inspect": "cd {out} && inspect eval task.py --model MODEL",
    "lmms-eval": "lmms_eval --model MODEL --include_path {out} --tasks {task} --log_samples --output_path logs",
}


@dataclass(frozen=True)
class ExportOptions(PartOptions):
    """Options of `data export`: what is written, and where."""

    format: str = option("", f"A published format, csv, tsv, jsonl, parquet; or {', '.join(FOR_TOOLS)} (required).")
    out: str = option("", "The folder to write; or a file, if the format is one file (required).", metavar="PATH")
    force: bool = option(False, "Overwrite files of the same names.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.format or not self.out:
            raise UsageError("--format or --out is missing", hint="pass --format NAME and --out PATH")


@click.command()
@click.argument("bench")
@options_of("options", ExportOptions)
@answers
def export(bench: str, options: ExportOptions) -> CommandResult:
    """Write a benchmark in a published format.

    Tables, and the formats of Winoground and of the five papers that creperie reproduces, contain no images; `data
    import` reads them back. The formats for other tools contain the images. `datasets` writes Parquet for
    `datasets.load_dataset`, and `webdataset` writes tar files. `lmms-eval` and `inspect` write a folder with a task for
    these tools, which asks one question for every image and every order of its captions; `runs import` reads the logs
    of such tasks.

    \b
    creperie data export out/mine --format sugarcrepe --out out/as-sugarcrepe
    creperie data export out/mine --format inspect --out out/task
    creperie runs import logs/….eval --bench out/mine
    """
    from creperie.scoring import export_inspect, export_lmms

    if gone := removed_name(f"data export --format {options.format}"):
        raise gone
    chosen = load_part(bench, options)
    if options.format == "datasets":
        files = export_image_parquet(chosen, options.out, force=options.force, progress=bar)
    elif options.format == "webdataset":
        files = export_webdataset(chosen, options.out, force=options.force, progress=bar)
    elif options.format in FOR_TOOLS:
        task = export_lmms if options.format == "lmms-eval" else export_inspect
        files = task(chosen, options.out, force=options.force)
    else:
        files = write_format(_writable(options.format), chosen, options.out, force=options.force)
    written = {"format": options.format, "items": len(chosen), "out": options.out}
    document = {**written, "files": [str(file) for file in files]}

    def show() -> None:
        say(f"{counted(len(chosen), 'item')} in {counted(len(files), 'file')}:")
        shown = sorted(files, key=lambda file: file.parent.name == "images")[:20]  # what to start comes first
        for file in shown:
            echo(f"  {file}")
        if len(files) > len(shown):
            echo(f"  … and {len(files) - len(shown)} more")
        if options.format in NEXT:
            say(
                "Next: {}; then creperie runs import LOG --bench {}",
                NEXT[options.format].format(
                    out=options.out, task=next((f.stem for f in files if f.suffix == ".yaml"), "")
                ),
                bench,
            )

    return CommandResult(document, show)


def _writable(name: str) -> Format:
    """Return the format with this name. Raise an error that lists the writable formats if it cannot be written."""
    try:
        return find_format(name)
    except UsageError:
        if name == "croissant":
            hint = "`creperie data import … --out DIR` writes DIR/croissant.json beside the items"
            raise UsageError(
                "Croissant metadata is written only with a saved benchmark", where=name, hint=hint
            ) from None
        raise unknown("format to write", name, [*FOR_TOOLS, *(f.name for f in list_formats() if f.write)]) from None
