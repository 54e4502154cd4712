"""The stub of `creperie`: the names that it lists, with the signatures that options give to its functions.

`python tests/support/stubs.py` writes it anew; a test compares. A function that takes options is written out, as type
checkers cannot see the keywords that `with_options` adds; the comment above it says where it is defined.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

STUB = Path(__file__).parents[2] / "src" / "creperie" / "__init__.pyi"
#: a line that names where something is defined; the comment is the home of a function that is written out
HOME = re.compile(r"^(?:# )?from (\S+) import (\w+)(?: as (\w+))?$", re.MULTILINE)


@cache
def homes(module: str) -> dict[str, str]:
    """Names that a module imports, also for type checkers only, or defines, each with the module that has it."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: str(node.module) for alias in node.names}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        found |= {name: module for t in targets if (name := getattr(t, "name", "") or getattr(t, "id", ""))}
    return found


def annotation(about: Any) -> str:
    """The type that a keyword accepts."""
    if about.kind is tuple:
        kind = "str | Sequence[str]"
    elif about.choices:
        kind = f"Literal[{', '.join(map(repr, about.choices))}]"
    else:
        path = about.kind is Path or (about.kind is str and about.metavar)
        kind = "str | Path" if path else about.kind.__name__
    return kind + " | None" * about.optional


def shown(default: Any) -> str:
    plain = default is None or isinstance(default, (bool, int, float, str))
    return (repr(default).replace("'", '"') if "'" in repr(default) else repr(default)) if plain else "..."


def signature(name: str, function: Any, needed: dict[str, str]) -> str:
    """The stub of a function with options; the names that it needs are added to `needed`."""
    from creperie.core import options_in

    plain = function.__wrapped__
    where = homes(plain.__module__)

    def typed(text: str) -> str:
        needed.update({word: where[word] for word in re.findall(r"\w+", text) if word in where})
        return text

    lines, starred = [], False
    for p in inspect.signature(plain).parameters.values():
        star = "*" * (p.kind is p.VAR_POSITIONAL)
        if p.kind is p.KEYWORD_ONLY and not starred:
            lines.append("*,")
        starred = starred or p.kind is p.KEYWORD_ONLY or bool(star)
        given = " = ..." if p.name in function.options else "" if p.default is p.empty else f" = {shown(p.default)}"
        lines.append(f"{star}{p.name}: {typed(str(p.annotation))}{given},")
    own = inspect.signature(plain).parameters
    for kind in function.options.values():
        for option, about in options_in(kind).items():
            if option not in own and not any(line.startswith(f"{option}:") for line in lines):
                lines.append(f"{option}: {annotation(about)} = {shown(about.default)},")
    returns = typed(str(inspect.signature(plain).return_annotation))
    words = " ".join((plain.__doc__ or "").split("\n\n")[0].split())
    about = textwrap.fill(words, 110, subsequent_indent="    ")
    body = "\n".join(f"    {line}" for line in lines)
    return f'def {name}(\n{body}\n) -> {returns}:\n    """{about}"""\n'


def stub(text: str) -> str:
    """The stub anew, from the homes that its present text lists."""
    listed = {public or name: (module, name) for module, name, public in HOME.findall(text) if public}
    written, imports, needed = [], [], {"Path": "pathlib", "Sequence": "collections.abc", "Literal": "typing"}
    for public, (module, name) in sorted(listed.items()):
        found = None if module == "creperie" else getattr(import_module(module), name)
        line = f"from {module} import {name} as {public}"
        if hasattr(found, "options") and hasattr(found, "__wrapped__"):
            written.append(f"\n# {line}\n{signature(public, found, needed)}")
        else:
            imports.append(line)
    known = {public for public in listed if public not in {w.split("def ")[1].split("(")[0] for w in written}}
    body = "".join(written)
    imports += [
        f"from {module} import {name}"
        for name, module in needed.items()
        if name not in known and re.search(rf"\b{name}\b", body)
    ]
    return formatted("\n".join(imports) + "\n" + body)


def formatted(text: str) -> str:
    """The text as ruff writes it, with its imports in order."""
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(STUB.read_text(encoding="utf-8")), encoding="utf-8")
