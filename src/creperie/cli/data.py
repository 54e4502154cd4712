"""`creperie data`: benchmarks, from getting them to changing them."""

from __future__ import annotations

import click

from creperie.cli.app import LazyGroup

#: command → (module, attribute, help). Modules are imported when their command is called.
COMMANDS = {
    "list": ("creperie.cli.data_catalog", "list_", "Every benchmark that creperie knows by name."),
    "get": ("creperie.cli.data_catalog", "get", "Download a benchmark, or take your own copy."),
    "import": ("creperie.cli.data_io", "import_", "Read published files, or a table, into a benchmark."),
    "show": ("creperie.cli.data_show", "show", "Items, subsets, images, tags, chance, samples, history."),
    "check": ("creperie.cli.data_show", "check", "Find repeated, contradictory, empty and unwinnable items."),
    "edit": ("creperie.cli.data_edit", "edit", "Filter, sample, drop duplicates, add tags."),
    "shots": ("creperie.cli.data_edit", "shots", "Draw demonstrations for few-shot questions."),
    "concat": ("creperie.cli.data_edit", "concat", "Several benchmarks as one."),
    "export": ("creperie.cli.data_io", "export", "Write a benchmark in a published format."),
    "push": ("creperie.cli.data_io", "push", "Upload a benchmark to the Hugging Face hub."),
}


class DataGroup(LazyGroup):
    """The commands of `creperie data`."""

    listed = COMMANDS


@click.group(cls=DataGroup)
def data() -> None:
    """Benchmarks: get, read, look at, check, change and write them.

    A BENCH is a catalog name (`creperie data list`), a folder that creperie wrote, or FORMAT:PATH.
    """
