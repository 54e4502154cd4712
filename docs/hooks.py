"""What mkdocs adds when it builds the site: the command-line reference, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    from creperie.cli.app import cli

    pages = ["# Command line\n", *_pages(cli, click.Context(cli, info_name="creperie"), 2)]
    files.append(File.generated(config, "cli.md", content="\n".join(pages)))
    return files


def _pages(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """The help of a command and of all below it."""
    with context:
        yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below is not None and not below.hidden:
                    yield from _pages(below, click.Context(below, info_name=name, parent=context), min(level + 1, 4))
