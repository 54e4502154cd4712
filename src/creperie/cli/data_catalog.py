"""`creperie data list` and `creperie data get`: the catalog on the command line."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from creperie.bench import (
    CatalogEntry,
    DownloadOptions,
    catalog_entries,
    data_home,
    find_entry,
    how_to_get,
    installed_benchmarks,
    size_text,
)
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import Json, counted, packaged_toml, percent

if TYPE_CHECKING:
    from creperie.bench import DownloadPlan


@click.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--taxonomy", is_flag=True, help="What each benchmark tests.")
@click.option("--long", "details", is_flag=True, help="Everything that is known about each benchmark.")
@answers
def list_(names: tuple[str, ...], taxonomy: bool, details: bool) -> CommandResult:
    """List the benchmarks of the catalog: size, licence, chance level, and whether they are on this machine.

    With one or more NAMEs, show everything that is known about these benchmarks.
    """
    chosen = [find_entry(name) for name in names] or list(catalog_entries())
    texts = packaged_toml("creperie.bench", "formats", "formats.toml")  # the formats would import pyarrow
    formats = [{"name": name, "title": about["title"]} for name, about in texts.items()]
    document = {"home": str(data_home()), "benchmarks": [entry_document(e) for e in chosen], "formats": formats}

    def show() -> None:
        if names or details:
            for entry in chosen:
                _show_details(entry)
        elif taxonomy:
            _show_taxonomy(chosen)
        else:
            _show_list(chosen, list(texts))

    return CommandResult(document, show)


@click.command()
@click.argument("name")
@options_of("wish", DownloadOptions)
@click.option("--dry-run", is_flag=True, help="Show what would be fetched, and stop.")
@answers
def get(name: str, dry_run: bool, wish: DownloadOptions) -> CommandResult:
    """Fetch the benchmark NAME with the images it needs, or use a copy of it that you have.

    Downloads are verified, resumed where they stopped, and never repeated. Run the command again to complete a
    download.
    """
    from creperie.bench import get_benchmark, plan_download

    if dry_run:
        planned = plan_download(name, wish)
        return CommandResult({"plan": planned.document}, lambda: _show_plan(planned))
    got = get_benchmark(name, wish=wish, progress=bar)
    pictures = got.pictures
    document = {
        "name": got.entry.name,
        "folder": str(got.folder),
        "items": len(got.benchmark),
        "subsets": got.benchmark.subsets,
        "hash": got.benchmark.hash,
        "files": [dict(f) for f in got.text.files],
        "images": {"needed": pictures.needed, "here": pictures.here, "fetched": pictures.fetched},
        "missing": [dict(m) for m in pictures.missing],
        "notes": list(got.notes),
    }

    def show() -> None:
        subsets, files = got.benchmark.subsets, got.text.files
        size = f"{counted(len(got.benchmark), 'item')} in {counted(len(subsets), 'subset')}"
        click.echo(f"{got.entry.title}: {size}, in {got.folder}")
        checked = sum(bool(f.get("same", f["pinned"])) for f in files)
        sums = "all as pinned" if checked == len(files) else f"{checked} as pinned" if checked else "no checksum known"
        click.echo(f"text: {counted(len(files), 'file')}, {size_text(sum(f['bytes'] for f in files))}, {sums}")
        if pictures.needed:
            click.echo(f"images: {pictures.here:,} of {pictures.needed:,} here, {pictures.fetched:,} fetched now")
        for line in got.notes:
            click.echo(f"note: {line}")
        for gone in pictures.missing[:10]:
            click.echo(f"missing: {gone['image']} ({gone['why']}), needed by {counted(len(gone['items']), 'item')}")
        if len(pictures.missing) > 10:
            click.echo(f"missing: {len(pictures.missing) - 10:,} more, all listed with --json")

    return CommandResult(document, show, ok=got.complete)


# -- what is known of a benchmark ------------------------------------------------------------------------------------


def entry_document(entry: CatalogEntry) -> Json:
    """Return the catalog entry of a benchmark for `--json`."""
    here = installed_benchmarks(entry)
    return {
        "name": entry.name,
        "title": entry.title,
        "items": entry.items,
        "items_counted": entry.counted,
        "subsets": dict(entry.subsets),
        "shape": entry.shape,
        "licence": entry.licence,
        "chance": dict(entry.chance),
        "format": entry.format,
        "source": {
            "repository": entry.source.repository,
            "page": entry.source.page,
            "commit": entry.source.commit or None,
            "pinned": bool(entry.source.commit),
            "fetched_from": entry.source.mirror or entry.source.repository,
        },
        "how": entry.how,
        "own_copy": entry.own_copy,
        "files": len(entry.files),
        "files_checked": sum(f.sha256 is not None for f in entry.files),
        "bytes": entry.size,
        "images": {
            "count": entry.images.count,
            "sources": [s.name for s in entry.images.sources],
            "by_hand": entry.images.by_hand,
            "inside": entry.images.inside,
        },
        "installed": str(here) if here else None,
        "paper": entry.paper,
        "notes": list(entry.notes),
        "taxonomy": {
            "property": {kind: list(what) for kind, what in entry.taxonomy.properties.items()},
            "difference": entry.taxonomy.difference,
            "type": entry.taxonomy.type,
            "phenomena": list(entry.taxonomy.phenomena),
            "from_table": entry.taxonomy.tabulated,
            "size": entry.taxonomy.size,
            "fine_tuned": entry.taxonomy.tuned,
        },
    }


def _show_list(chosen: list[CatalogEntry], formats: list[str]) -> None:
    here = {"download": "get", "own copy": "own", "import": "–"}
    rows = [
        [e.name, _items(e), e.licence, chance_text(e.chance), "yes" if installed_benchmarks(e) else here[e.how]]
        for e in chosen
    ]
    print_table(["name", "items", "licence", "chance %", "here"], rows)
    click.echo(
        f"""
items: ~ as the authors state
here:  get = `creperie data get NAME`, own = the same with your copy
More:  `creperie data list NAME` shows all about one, `--taxonomy` what each tests

{textwrap.fill("Formats to read as FORMAT:PATH: " + ", ".join(formats), 80, break_on_hyphens=False)}"""
    )


def _show_taxonomy(chosen: list[CatalogEntry]) -> None:
    rows = [
        [e.name, t.tested, t.difference, ", ".join(t.phenomena), t.type, t.size or "", TUNED[t.tuned]]
        for e in chosen
        for t in [e.taxonomy]
    ]
    heads = ["name", "compositional property", "minimal difference", "phenomena", "type", "size", "tuned on"]
    print_table(heads, rows)
    say("\nsize and tuned on: as Hit or Be Hit (Table 1) states them, of the whole family; models fine-tuned on it.")


TUNED = {True: "yes", False: "no", None: ""}


def _show_details(entry: CatalogEntry) -> None:
    lines = {
        "what": entry.shape,
        "items": f"{_items(entry)}" + ("" if entry.counted else " (as the authors state)" if entry.items else ""),
        "subsets": ", ".join(f"{name} {n:,}" for name, n in entry.subsets.items()),
        "chance": "; ".join(f"{m} {_chance(v)}" for m, v in entry.chance.items()),
        "licence": entry.licence,
        "source": _source_text(entry),
        "text": _files_text(entry),
        "images": _images_text(entry),
        "format": entry.format or "none: `creperie data import` takes tables",
        "paper": entry.paper,
        "tests": entry.taxonomy.tested,
        "difference": entry.taxonomy.difference,
        "phenomena": f"{', '.join(entry.taxonomy.phenomena)} ({entry.taxonomy.type})",
        "notes": " ".join(entry.notes),
        "here": str(installed_benchmarks(entry) or f"no; {how_to_get(entry)}"),
    }
    width = max(80, min(120, shutil.get_terminal_size((100, 24)).columns))
    click.echo(f"{entry.title} ({entry.name})")
    for label, text in lines.items():
        if text:
            click.echo(
                textwrap.fill(f"  {label:<12}  {text}", width, subsequent_indent=" " * 16, break_on_hyphens=False)
            )
    click.echo()


def _source_text(entry: CatalogEntry) -> str:
    source = entry.source
    if not source.page:
        return "not public"
    pin = f"commit {source.commit}" if source.commit else "not pinned"
    mirror = f"; fetched from github.com/{source.mirror}" if source.mirror else ""
    return f"{source.page}{mirror} ({pin})"


def _items(entry: CatalogEntry) -> str:
    return "?" if entry.items is None else f"{'' if entry.counted else '~'}{entry.items:,}"


def _chance(value: float | None) -> str:
    return percent(value, missing="varies").removesuffix(".0")


def chance_text(chance: Mapping[str, float | None]) -> str:
    """Return chance levels in percent as text. If the level is the same for all metrics, the text is one number.
    Otherwise, the text lists two or three numbers, or gives a range if there are more.

    >>> chance_text({"itt": 0.3333, "tot": 0.3333}), chance_text({"text": 0.25, "image": 0.25, "group": 0.1667})
    ('33.3', '25, 25, 16.7')
    """
    values = [_chance(v) for v in chance.values()]
    if len(set(values)) == 1:
        return values[0]
    return ", ".join(values) if len(values) <= 3 else f"{min(values, key=float)} to {max(values, key=float)}"


def _files_text(entry: CatalogEntry) -> str:
    if not entry.files:
        return ""
    size = f", {size_text(entry.size)}" if entry.size else ""
    checked = sum(f.sha256 is not None for f in entry.files)
    sums = "all with checksum" if checked == len(entry.files) else f"{checked} with checksum"
    return f"{counted(len(entry.files), 'file')}{size}, {sums}"


def _images_text(entry: CatalogEntry) -> str:
    images = entry.images
    if images.inside:
        return "come with the text"
    parts = []
    if images.sources:
        size = f", about {size_text(images.bytes_of(images.count))}" if images.count else ""
        parts.append(f"{f'{images.count:,} ' if images.count else ''}fetched one by one{size}")
    if images.by_hand:
        parts.append(f"by hand: {images.by_hand}")
    return "; ".join(parts)


# -- getting one -----------------------------------------------------------------------------------------------------


def _show_plan(planned: DownloadPlan) -> None:
    text = "size not known" if planned.file_bytes is None else size_text(planned.file_bytes)
    click.echo(f"{planned.entry.name}: {counted(len(planned.files), 'file')} to fetch ({text})")
    if planned.images is None:
        click.echo("images: to fetch too; how many is known once the text is here")
    elif planned.images:
        most = "at most " if planned.files else ""
        click.echo(f"images: {most}{planned.images:,} to fetch, about {size_text(planned.image_bytes or 0)}")
    for file in planned.files:
        click.echo(f"  {file.urls[0]}")
