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
    face = SOURCE / "creperie" / "core" / "templates"  # the variables and the mark of all other pages
    variables = re.search(r":root \{.*?\n\}", (face / "face.css").read_text(encoding="utf-8"), re.DOTALL)
    files.append(File.generated(config, "style/face.css", content=variables.group() if variables else ""))
    files.append(File.generated(config, "style/mark.svg", content=(face / "mark.svg").read_text(encoding="utf-8")))
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
    """The names of `creperie`, in full, and of `creperie.plugin` with one line each."""
    yield "# API reference\n\nThe names of `creperie`, in full; then what a plug-in needs. All else is internal.\n"
    for name, (module, defined) in sorted(_door(SOURCE / "creperie").items()):
        if not name.startswith("_"):
            yield f"\n## creperie.{name}\n\n::: {module}.{defined}\n    options: {{show_root_heading: false}}\n"
    yield "\n## creperie.plugin\n\n| name | |\n|---|---|"
    for name, (module, defined) in sorted(_door(SOURCE / "creperie" / "plugin").items(), key=lambda n: n[0].lower()):
        yield f"| `{name}` | {_summary(module, defined)} |"


def _door(folder: Path) -> dict[str, tuple[str, str]]:
    """A front door's public names, with the module and name that define them."""
    stub = (folder / "__init__.pyi").read_text(encoding="utf-8")
    listed = re.findall(r"^(?:# )?from (\S+) import (\w+) as (\w+)$", stub, re.MULTILINE)
    above = _door(folder.parent) if folder.name == "plugin" else {}
    return {public: above[name] if module == "creperie" else (module, name) for module, name, public in listed}


def _summary(module: str, name: str) -> str:
    """The first line of a definition's docstring."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            paragraph = (ast.get_docstring(node) or "").split("\n\n")[0]
            return " ".join(paragraph.split()).replace("|", "\\|")
    return "a constant or type"
