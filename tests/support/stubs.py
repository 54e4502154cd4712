"""The stubs of `creperie` and `creperie.plugin`: every public name written out, so that type checkers and editors read
these two files and nothing else of creperie, nor the large libraries that it uses.

`python tests/support/stubs.py` writes them anew; a test compares. The comment above a definition says where its source
is; a new public name is such a comment, added by hand. A type that is not public but occurs in a public signature is
written with an underscore. Types of large libraries become `Any`.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2] / "src"
STUBS = {door: ROOT.joinpath(*door.split("."), "__init__.pyi") for door in ("creperie", "creperie.plugin")}
#: a line that names where something is defined
HOME = re.compile(r"^(?:# )?from (\S+) import (\w+) as (\w+)$", re.MULTILINE)
#: libraries whose types a checker needs many seconds to read
LARGE = {"httpx", "matplotlib", "openai", "pandas", "pyarrow", "ray", "sqlalchemy", "torch", "transformers"}
#: decorators that say something to a type checker
KEPT = {"abstractmethod", "classmethod", "contextmanager", "dataclass", "overload", "property", "runtime_checkable"}
KEPT |= {"staticmethod", "setter"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Place = tuple[str, str]


@cache
def source(module: str) -> tuple[dict[str, Place], dict[str, list[ast.stmt]]]:
    """What a module imports (its name → module and name there, "" for a module) and what it defines."""
    origin = Path(str(importlib.util.find_spec(module).origin))  # type: ignore[union-attr]
    door = origin.with_suffix(".pyi")
    if door.exists():
        return {public: (home, name) for home, name, public in HOME.findall(door.read_text("utf-8"))}, {}
    imported: dict[str, Place] = {}
    defined: dict[str, list[ast.stmt]] = {}
    for node in _unfolded(ast.parse(origin.read_text("utf-8")).body):
        if isinstance(node, ast.ImportFrom):
            imported |= {a.asname or a.name: (str(node.module), a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            imported |= {a.asname or a.name: (a.name, "") for a in node.names}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        for target in targets:
            if name := getattr(target, "name", "") or getattr(target, "id", ""):
                defined.setdefault(name, []).append(node)
    return imported, defined


def _unfolded(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, with those under `if TYPE_CHECKING:` and the like."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _unfolded(node.body)
        else:
            yield node


def home(module: str, name: str) -> Place:
    """Where a name is defined: followed through imports within creperie."""
    found = source(module)[0].get(name) if module.split(".")[0] == "creperie" else None
    return home(*found) if found and found[0] != module else (module, name)


class Writer:
    """Collects the text of both stubs."""

    def __init__(self, listed: dict[str, dict[Place, str]]) -> None:
        self.imports: dict[str, set[str]] = {door: set() for door in listed}
        self.texts: dict[str, dict[str, str]] = {door: {} for door in listed}
        self.names: dict[Place, Place] = {}  # where it is defined → its stub and its name there
        for door, places in reversed(listed.items()):
            self.names |= {place: (door, public) for place, public in places.items()}
        for door, places in listed.items():
            for place, public in places.items():
                if self.names[place][0] == door:
                    self.write(place)
                else:
                    self.imports[door].add(f"from {self.names[place][0]} import {public} as {public}")

    def name(self, place: Place, door: str) -> str:
        """How a stub calls something of creperie; it is written out somewhere, too."""
        if place not in self.names:
            name = "_" + place[1].lstrip("_")
            if ("creperie", name) in self.names.values():
                name = f"_{place[0].rsplit('.', 1)[1].title().replace('_', '')}{place[1].lstrip('_')}"
            self.names[place] = ("creperie", name)
            self.write(place)
        where, name = self.names[place]
        if where != door:
            self.imports[door].add(f"from {where} import {name}")
        return name

    def write(self, place: Place) -> None:
        door, name = self.names[place]
        self.texts[door][name] = ""
        nodes = source(place[0])[1].get(place[1])
        if nodes is None:
            raise SystemExit(f"{place[0]} does not define {place[1]}")
        types = Types(self, place[0], door)
        public = not name.startswith("_") or name.endswith("__")
        if place[1] == "__version__":
            text = "__version__: str\n"
        elif isinstance(nodes[0], ast.ClassDef):
            text = types.written_class(nodes[0], name, public)
        elif isinstance(nodes[0], FUNCTIONS):
            text = "".join(types.functions(nodes, name, public))
            options = getattr(getattr(import_module(place[0]), place[1]), "options", None)
            if options:
                text = types.with_options(nodes[-1], name, options)
        else:
            text = types.alias(nodes[0], name)
        self.texts[door][name] = f"# from {place[0]} import {place[1]} as {name}\n" * public + text

    def stubs(self) -> dict[str, str]:
        found = {}
        for door, texts in self.texts.items():
            imports = {line for line in self.imports[door] if f"{line} as {line.split()[-1]}" not in self.imports[door]}
            private = [text for name, text in texts.items() if name.startswith("_")]
            rest = [text for name, text in sorted(texts.items()) if not name.startswith("_")]
            found[door] = formatted("\n".join([*sorted(imports), *private, *rest]), STUBS[door])
        return found


class Types(ast.NodeTransformer):
    """Writes the definitions of one module as they stand in a stub."""

    def __init__(self, writer: Writer, module: str, door: str) -> None:
        self.writer, self.module, self.door = writer, module, door
        self.imported, self.defined = source(module)

    def any(self) -> ast.Name:
        self.needs("typing", "Any")
        return ast.Name("Any")

    def class_any(self) -> str:
        self.needs("typing", "ClassVar")
        return f"ClassVar[{ast.unparse(self.any())}]"

    def needs(self, module: str, name: str, called: str = "") -> None:
        line = f"from {module} import {name}" if name else f"import {module}"
        self.writer.imports[self.door].add(line + (f" as {called}" if called and called != (name or module) else ""))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.defined:
            return ast.Name(self.writer.name((self.module, node.id), self.door))
        if node.id not in self.imported:
            return node
        module, name = home(*self.imported[node.id])
        if module.split(".")[0] == "creperie":
            return ast.Name(self.writer.name((module, name), self.door))
        if module.split(".")[0] in LARGE:
            return self.any()
        self.needs(module, name, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        return value if isinstance(value, ast.Name) and value.id == "Any" else ast.Attribute(value, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.visit(node.value)
        name = getattr(value, "id", "")
        if name == "Any":
            return value  # type: ignore[no-any-return]
        if name == "Annotated":
            return self.visit(node.slice.elts[0])  # type: ignore[attr-defined, no-any-return]
        return ast.Subscript(value, node.slice if name == "Literal" else self.visit(node.slice))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def kind(self, node: ast.expr | None) -> str:
        return ast.unparse(self.visit(copy.deepcopy(node))) if node is not None else "Any"

    def alias(self, node: ast.stmt, name: str) -> str:
        value = copy.deepcopy(node.value)  # type: ignore[attr-defined]
        if isinstance(value, ast.Call):  # a TypeVar
            self.visit(value.func)
            bound = [f", {k.arg}={self.kind(k.value)}" for k in value.keywords]
            return f'{name} = {ast.unparse(value.func)}("{name}"{"".join(bound)})\n'
        self.needs("typing", "TypeAlias")
        return f"{name}: TypeAlias = {self.kind(value)}\n"

    def decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = getattr(called, "id", "") or getattr(called, "attr", "")
            if name == "cached_property":
                yield "@property\n"
            elif name in KEPT:
                self.visit(copy.deepcopy(called))
                yield f"@{ast.unparse(decorator)}\n"

    def functions(self, nodes: list[Any], name: str, words: bool) -> Iterator[str]:
        """One function, or all its overloads without the implementation."""
        several = [n for n in nodes if "@overload\n" in self.decorators(n)]
        for node in several or nodes:
            arguments = copy.deepcopy(node.args)
            for a in [
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ]:
                if a is not None and a.annotation is not None:
                    a.annotation = self.visit(a.annotation)
            arguments.defaults = [shown(d) for d in arguments.defaults]
            arguments.kw_defaults = [d and shown(d) for d in arguments.kw_defaults]
            star = "async " * isinstance(node, ast.AsyncFunctionDef)
            head: str = f"{star}def {name}({ast.unparse(arguments)}) -> {self.kind(node.returns)}:"
            yield "".join(self.decorators(node)) + f"{head}{body_of(node, words)}"

    def with_options(self, node: Any, name: str, options: dict[str, type]) -> str:
        """A function with options, which are keywords."""
        from creperie.core import options_in

        own = node.args
        given = dict(zip([a.arg for a in own.args][::-1], own.defaults[::-1], strict=False))
        given |= {a.arg: d for a, d in zip(own.kwonlyargs, own.kw_defaults, strict=True) if d is not None}
        lines, known = [], {a.arg for a in [*own.args, *own.kwonlyargs]}
        for a in [*own.args, *([own.vararg] if own.vararg else [None] * bool(own.kwonlyargs)), *own.kwonlyargs]:
            if a is None:
                lines.append("*")
                continue
            default = "..." if a.arg in options else a.arg in given and ast.unparse(shown(given[a.arg]))
            star = "*" * (a is own.vararg)
            lines.append(f"{star}{a.arg}: {self.kind(a.annotation)}" + f" = {default}" * bool(default))
        for kind in options.values():
            for option, about in options_in(kind).items():
                if option not in known:
                    known.add(option)
                    plain = about.default is None or isinstance(about.default, (bool, int, float, str))
                    lines.append(f"{option}: {self.accepted(about)} = {repr(about.default) if plain else '...'}")
        return f"def {name}({', '.join(lines)}) -> {self.kind(node.returns)}:{body_of(node, True)}"

    def accepted(self, about: Any) -> str:
        """The type that a keyword accepts."""
        path = about.kind is Path or (about.kind is str and about.metavar)
        if about.kind is tuple:
            self.needs("collections.abc", "Sequence")
            kind: str = "str | Sequence[str]"
        elif about.choices:
            self.needs("typing", "Literal")
            kind = f"Literal[{', '.join(map(repr, about.choices))}]"
        elif path:
            self.needs("pathlib", "Path")
            kind = "str | Path"
        else:
            kind = about.kind.__name__
        return kind + " | None" * about.optional

    def written_class(self, node: ast.ClassDef, name: str, words: bool) -> str:
        bases = [base for b in node.bases if (base := self.kind(b)) not in ("Any", "object")]
        bases += [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords]
        enumerated = any("Enum" in base for base in bases)
        docstring = ast.get_docstring(node)
        parts = [f'"""{first(docstring)}"""\n'] if words and docstring else []
        methods: dict[str, list[Any]] = {}
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                parts.append(self.attribute(statement))
            elif isinstance(statement, ast.Assign):
                plain = enumerated or isinstance(statement.value, ast.Constant)
                public = [target for t in statement.targets if not (target := ast.unparse(t)).startswith("_")]
                given = f" = {ast.unparse(statement.value)}" if plain else f": {self.class_any()}"
                parts += [target + given for target in public]
            elif isinstance(statement, FUNCTIONS):
                methods.setdefault(statement.name, []).append(statement)
        known = {part.split(":")[0] for part in parts} | set(methods)
        parts += self.set_in_init(methods.get("__init__", []), known)
        for method, nodes in methods.items():
            if (method.startswith("__") and method != "__post_init__") or not method.startswith("_"):
                parts += self.functions(nodes, method, words and not method.startswith("_"))
        head = "".join(self.decorators(node)) + f"class {name}({', '.join(bases)}):".replace("()", "")
        return f"{head}\n{textwrap.indent(chr(10).join(parts) or '...', '    ')}\n"

    def attribute(self, node: ast.AnnAssign) -> str:
        value = node.value and ast.unparse(node.value)
        given = "" if value is None else " = ..."
        if value and "init=False" in value:
            self.needs("dataclasses", "field")
            given = " = field(init=False)"
        elif value and "kw_only=True" in value:
            self.needs("dataclasses", "field")
            given = " = field(default=..., kw_only=True)"
        return f"{ast.unparse(node.target)}: {self.kind(node.annotation)}{given}"

    def set_in_init(self, init: list[Any], known: set[str]) -> Iterator[str]:
        """Public attributes that `__init__` sets, with the types of the parameters that they get."""
        for function in init:
            given = {a.arg: a.annotation for a in [*function.args.args, *function.args.kwonlyargs]}
            for node in ast.walk(function):
                pairs: list[tuple[ast.expr, ast.expr | None]] = []
                if isinstance(node, ast.AnnAssign):
                    pairs = [(node.target, node.annotation)]
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                    values = getattr(node.value, "elts", [None] * len(node.targets[0].elts))
                    pairs = [
                        (t, given.get(getattr(v, "id", ""))) for t, v in zip(node.targets[0].elts, values, strict=True)
                    ]
                elif isinstance(node, ast.Assign):
                    pairs = [(t, given.get(getattr(node.value, "id", ""))) for t in node.targets]
                for target, kind in pairs:
                    name = getattr(target, "attr", "_")
                    if ast.unparse(target) == f"self.{name}" and not name.startswith("_") and name not in known:
                        known.add(name)
                        yield f"{name}: {self.kind(kind) if kind else ast.unparse(self.any())}"


def first(docstring: str) -> str:
    """The first paragraph, within the lines of the house."""
    return textwrap.fill(" ".join(docstring.split("\n\n")[0].split()), 106, subsequent_indent="    ")


def body_of(node: Any, words: bool) -> str:
    docstring = ast.get_docstring(node)
    return f'\n    """{first(docstring)}"""\n' if words and docstring else " ...\n"


def shown(default: ast.expr) -> ast.expr:
    return default if isinstance(default, ast.Constant) else ast.Constant(...)


def stubs() -> dict[str, str]:
    """Both stubs anew, by the public names that they list today."""
    listed: dict[str, dict[Place, str]] = {}
    for door, path in STUBS.items():
        found = HOME.findall(path.read_text("utf-8"))
        listed[door] = {home(module, name): public for module, name, public in found}
    return Writer(listed).stubs()


def formatted(text: str, path: Path) -> str:
    """The text as ruff writes it, with its imports in order."""
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for door, text in stubs().items():
        STUBS[door].write_text(text, encoding="utf-8")
