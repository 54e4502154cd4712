"""`creperie data show` and `creperie data check`: the contents of a benchmark and the problems in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import click

from creperie.bench import (
    CODES,
    NO_IMAGES,
    TAG_PREFIX,
    Benchmark,
    Finding,
    Item,
    PartOptions,
    ProvenanceStep,
    image_keys,
    load_part,
    match_chance,
    match_shapes,
    step_text,
)
from creperie.bench import check as run_checks
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UNCHECKED, Json, UsageError, counted, cut


@click.command()
@click.argument("bench")
@options_of("part", PartOptions)
@click.option("--item", "items", multiple=True, metavar="ID", help="Show the items with this id (may be repeated).")
@click.option("--sample", default=3, show_default=True, help="How many items to show.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@answers
def show(bench: str, part: PartOptions, items: Sequence[str], sample: int, seed: int) -> CommandResult:
    """Show what is in a benchmark: items, subsets, images, tags and chance levels, and where it comes from."""
    chosen = load_part(bench, part)
    samples = _items(chosen, items) if items else list(chosen.sample(sample, seed))
    document = describe(chosen) | {"sample": [(asdict(item) | {"tags": dict(item.tags)}) for item in samples]}
    return CommandResult(document, lambda: _show(document, samples, short=bool(items)))


def describe(bench: Benchmark) -> Json:
    """Return the description of a benchmark as a JSON document."""
    levels = match_chance(bench)
    total = sum(levels[name] * n for name, n in bench.subsets.items()) / max(len(bench), 1)
    return {
        "name": bench.name,
        "items": len(bench),
        "subsets": bench.subsets,
        "images": len(image_keys(bench)),
        "hash": bench.hash,
        "unchecked": bench.unchecked,
        "records": len(bench) + len(bench.skipped),
        "skipped": len(bench.skipped),
        "skipped_reasons": dict(Counter(s.reason for s in bench.skipped)),
        "images_at": None if bench.images is NO_IMAGES else bench.images.location,
        "chance": levels | {"all": total},
        "shapes": [
            {"images": s.images, "captions": s.captions, "match": s.text, "items": s.items} for s in match_shapes(bench)
        ],
        "captions": len(bench.ragged("captions")[1]),
        "unique_captions": len(bench.ragged("captions")[1].unique()),
        "tags": _tags(bench),
        "info": asdict(bench.info),
        "provenance": [asdict(step) for step in bench.provenance],
    }


def _tags(bench: Benchmark) -> dict[str, Json]:
    """Return, for each tag, its type and the number of items that have it. The values are included if there are only a
    few.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {pa.string(): "text", pa.bool_(): "yes/no"}
    tags = {}
    for name in bench.columns:
        if not name.startswith(TAG_PREFIX):
            continue
        column = bench.column(name)
        counts = pc.value_counts(column.drop_null()).to_pylist()
        frequent = sorted(counts, key=lambda c: -c["counts"])
        tags[name.removeprefix(TAG_PREFIX)] = {
            "kind": kinds.get(column.type, "number"),
            "items": len(column) - column.null_count,
            "distinct": len(counts),
            "values": {_value(c["values"]): c["counts"] for c in frequent[:8]},
        }
    return tags


def _items(bench: Benchmark, ids: Sequence[str]) -> list[Item]:
    import pyarrow.compute as pc

    chosen = list(bench.filter(pc.field("id").isin(list(ids))))
    for id_ in ids:
        if not any(item.id == id_ for item in chosen):
            raise UsageError(
                f"no item has the id {id_!r}", where=bench.name, hint="--sample 5 shows some items with ids"
            )
    return chosen


def _show(document: Json, samples: Sequence[Item], *, short: bool) -> None:
    if not short:
        info = document["info"]
        title = document["name"] + (f": {info['title']}" if info["title"] not in ("", document["name"]) else "")
        say("[bold]{}[/bold]  [dim]{}[/dim]", title, info["licence"])
        if info["description"]:
            say("{}", info["description"])
        _show_counts(document)
        _show_subsets(document)
        _show_tags(document)
        if info["source"] or document["provenance"]:
            say()
        if info["source"]:
            say("[dim]source:[/dim] {}", info["source"])
        for step in document["provenance"]:
            say("[dim]step:[/dim]   {}", step_text(ProvenanceStep(step["op"], step["args"], tuple(step["inputs"]))))
    for item in samples:
        say()
        tags = "  ".join(f"{k}={cut(_value(v), 40)}" for k, v in item.tags.items())
        say("[bold]{}/{}[/bold]  {}  [dim]{}[/dim]", item.subset, item.id, "  ".join(item.images), tags)
        for caption, *truths in zip(item.captions, *item.match, strict=True):
            marks = "".join("[green]✓[/green]" if true else "[red]✗[/red]" for true in truths)
            say(f"  {marks} {{}}", caption)


def _show_counts(document: Json) -> None:
    captions = f"{document['captions']:,} captions ({document['unique_captions']:,} different)"
    say(f"{document['items']:,} items, {document['images']:,} images, {captions}")
    if document["images"]:
        say("[dim]images:[/dim] {}", document["images_at"] or "not given (--images DIR)")
    say(f"[dim]hash:[/dim]   {document['hash']}")
    if document["unchecked"]:
        say("[yellow]{}[/yellow]", UNCHECKED)
    for reason, n in document["skipped_reasons"].items():
        say("[dim]left out:[/dim] {:,} of {:,} records: {}", n, document["records"], reason)


def _show_subsets(document: Json) -> None:
    say()
    levels = document["chance"]
    rows = [[name, n, f"{levels[name]:.1%}"] for name, n in document["subsets"].items()]
    if len(rows) != 1:
        rows.append(["all", document["items"], f"{levels['all']:.1%}"])
    print_table(["subset", "items", "guessing"], rows)
    say()
    shapes = document["shapes"]
    rows = [[s["items"], s["images"], s["captions"], cut(s["match"], 60)] for s in shapes[:6]]
    print_table(["items", "images", "captions", "match"], rows)
    if len(shapes) > 6:
        say(f"[dim]… and {len(shapes) - 6} more shapes[/dim]")


def _show_tags(document: Json) -> None:
    if not document["tags"]:
        return
    rows = []
    for name, tag in document["tags"].items():
        values = ", ".join(f"{cut(v, 20)} ({n:,})" for v, n in list(tag["values"].items())[:3])
        more = ", …" if tag["distinct"] > 3 else ""
        rows.append([name, tag["kind"], tag["items"], tag["distinct"], values + more])
    say()
    print_table(["tag", "kind", "items", "values", "most frequent"], rows)


def _value(value: object) -> str:
    """Return a tag's value as text. Whole numbers are written without `.0`."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


# -- check -----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("bench")
@options_of("part", PartOptions)
@click.option("--no-images", is_flag=True, help="Do not open the images.")
@click.option("--examples", default=5, show_default=True, help="How many findings of each kind to print.")
@answers
def check(bench: str, part: PartOptions, no_images: bool, examples: int) -> CommandResult:
    """Find items that are repeated, contradictory or empty, items that no model can get right, and images that cannot
    be opened.

    The exit code is 1 if a finding has the severity `error`. Notes (severity `info`) do not change the exit code.
    """
    loaded = load_part(bench, part)
    findings = run_checks(loaded, images=not no_images, progress=bar)
    errors = sum(f.severity == "error" for f in findings)
    document = {
        "name": loaded.name,
        "hash": loaded.hash,
        "items": len(loaded),
        "errors": errors,
        "counts": dict(Counter(f.code for f in findings)),
        "findings": [asdict(f) for f in findings],
    }

    def show() -> None:
        by_code: dict[str, list[Finding]] = {}
        for finding in findings:
            by_code.setdefault(finding.code, []).append(finding)
        for code, group in by_code.items():
            mark = "[red]✗[/red]" if group[0].severity == "error" else "[yellow]·[/yellow]"
            say(f"{mark} [bold]{code}[/bold] ({len(group):,})  [dim]{{}}[/dim]", CODES.get(code, ""))
            for finding in group[:examples]:
                key = "/".join(filter(None, (finding.subset, finding.item)))
                say(f"    [cyan]{{}}[/cyan]{'  ' if key else ''}{{}}", key, finding.message)
            if len(group) > examples:
                say(f"    [dim]… and {len(group) - examples:,} more (--examples {len(group)}, or --json)[/dim]")
        say(
            ("\n" if findings else "") + f"{loaded.name}: {len(loaded):,} items, {counted(errors, 'error')}, "
            f"{counted(len(findings) - errors, 'note')}"
        )

    return CommandResult(document, show, ok=errors == 0)
