"""What mkdocs adds when it builds the site: the references of commands and of the Python API, from the code itself."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parents[1] / "src"


def on_files(files: Files, config: Any) -> Files:
    from creperie.cli.app import cli

    pages = ["# Command line\n", *_pages(cli, click.Context(cli, info_name="creperie"), 2)]
    files.append(File.generated(config, "cli.md", content="\n".join(pages)))
    files.append(File.generated(config, "api.md", content="\n".join(_api())))
    if twice := clashes(files):
        raise PluginError(f"several files would be written to {', '.join(twice)}: rename all but one")
    return files


def clashes(files: Files) -> list[str]:
    """The places of the site to which more than one file would be written."""
    return [place for place, n in Counter(file.dest_uri for file in files).items() if n > 1]


def on_post_build(config: Any) -> None:
    if broken := list(broken_links(Path(config.site_dir))):
        raise PluginError("links that lead nowhere: " + "; ".join(broken))


def broken_links(site: Path) -> Iterator[str]:
    """Every link and image of the built pages whose file, or whose anchor on a page, is not there."""
    pages = {page: page.read_text(encoding="utf-8") for page in site.glob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    for page, text in pages.items():
        for target, anchor in re.findall(r'(?:href|src)="([^"#:?]*)(?:\?[^"#:]*)?(?:#([^":]*))?"', text):
            there = page.parent / target if target else page
            if not there.exists() or (anchor and there in anchors and anchor not in anchors[there]):
                yield f"{page.name}: {target}{'#' if anchor else ''}{anchor}"


def _pages(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """The help of a command and of all below it."""
    with context:
        yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below is not None and not below.hidden:
                    yield from _pages(below, click.Context(below, info_name=name, parent=context), min(level + 1, 4))


def _api() -> Iterator[str]:
    """The functions of `creperie` in full, then every room's front door with one line per name."""
    yield "# API reference\n\nThe functions of `creperie`, in full; below them, what each room offers.\n"
    for name, (module, defined) in sorted(_door(SOURCE / "creperie").items()):
        if not name.startswith("_"):
            yield f"\n## creperie.{name}\n\n::: {module}.{defined}\n    options: {{show_root_heading: false}}\n"
    for stub in sorted(SOURCE.glob("creperie/*/__init__.pyi")):
        room = stub.parent
        about = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        yield f"\n## creperie.{room.name}\n\n{about}\n\n| name | |\n|---|---|"
        for name, (module, defined) in sorted(_door(room).items(), key=lambda found: found[0].lower()):
            yield f"| `{name}` | {_summary(module, defined)} |"


def _door(folder: Path) -> dict[str, tuple[str, str]]:
    """A front door's public names, with the module and name that define them."""
    nodes = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body
    imports = [(str(n.module), a) for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
    return {alias.asname or alias.name: (module, alias.name) for module, alias in imports}


def _summary(module: str, name: str) -> str:
    """The first line of a definition's docstring."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            paragraph = (ast.get_docstring(node) or "").split("\n\n")[0]
            return " ".join(paragraph.split()).replace("|", "\\|")
    return "a constant or type"
