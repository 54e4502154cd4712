"""`creperie data`: getting, viewing, checking, changing and writing benchmarks."""

from __future__ import annotations

import click

from creperie.cli.app import LazyGroup, listed_commands


class DataGroup(LazyGroup):
    """The group of the commands of `creperie data`."""

    listed = listed_commands("data")


@click.group(cls=DataGroup)
def data() -> None:
    """Benchmarks: download, read, look at, check, change and write them.

    A BENCH is a catalog name (`creperie data list`), a folder that creperie wrote, or FORMAT:PATH.
    """
