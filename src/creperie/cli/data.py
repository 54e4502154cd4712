"""`creperie data`: benchmarks, from getting them to changing them."""

from __future__ import annotations

from importlib import import_module

import click

from creperie.cli.app import CommandGroup
from creperie.core import unknown

#: command → (module, attribute, help). Modules are imported when their command is called.
COMMANDS = {
    "list": ("creperie.cli.data_catalog", "list_", "Every benchmark that creperie knows by name."),
    "get": ("creperie.cli.data_catalog", "get", "Download a benchmark, or take your own copy."),
    "import": ("creperie.cli.data_io", "import_", "Read published files, or a table, into a benchmark."),
    "show": ("creperie.cli.data_show", "show", "Items, subsets, images, tags, chance, samples, history."),
    "check": ("creperie.cli.data_show", "check", "Find repeated, contradictory, empty and unwinnable items."),
    "edit": ("creperie.cli.data_edit", "edit", "Filter, sample, drop duplicates, add tags."),
    "concat": ("creperie.cli.data_edit", "concat", "Several benchmarks as one."),
    "export": ("creperie.cli.data_io", "export", "Write a benchmark in a published format."),
}


class DataGroup(CommandGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown(f"command of {ctx.info_name!r}", args[0], COMMANDS)
        return click.Group.resolve_command(self, ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=DataGroup)
def data() -> None:
    """Benchmarks: get, read, look at, check, change and write them.

    A BENCH is a catalog name (`creperie data list`), a folder that creperie wrote, or FORMAT:PATH.
    """
