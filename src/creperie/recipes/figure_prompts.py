"""The papers' own prompts, which are not part of creperie. The user provides them in one TOML file, by figure or table.

    ["sugarcrepe++ figure 3".paraphrase]
    rules = ["…"]

    ["sugarcrepe++ table 17".match-1]
    text = "… {caption} …"

    [odd-which]
    text = "… {options} …"

The keys of an entry replace those of creperie's own prompt of the same name, such as `paraphrase`. The figure or table
in a heading may be left out; it only serves as a check of the name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from creperie.core import (
    DataError,
    Json,
    UsageError,
    cache_home,
    packaged_toml,
    parse_toml,
    read_text,
    unknown,
    write_text,
)
from creperie.making import template_names
from creperie.models import find_prompt
from creperie.reporting import published_tables


def papers() -> list[Json]:
    """Return the contents of papers.toml: one record for each of the five papers, which lists what its tables and
    figures need.
    """
    return packaged_toml("creperie.recipes", "cookbook", "papers.toml")["paper"]


def main_tables(recipe: str) -> list[str]:
    """Return the keys of the main tables of the paper that a recipe reproduces, in the paper's order. The list is empty
    if the recipe reproduces no paper.

    >>> main_tables("sugarcrepe")
    ['sugarcrepe/4', 'sugarcrepe/5', 'sugarcrepe/6']
    """
    return [f"{paper['name']}/{number}" for paper in papers() if paper["recipe"] == recipe for number in paper["main"]]


def prompt_places() -> dict[str, tuple[str, ...]]:
    """Return the figures and tables of the papers that depend on prompts, each with creperie's names of these
    prompts.
    """
    places = {
        f"{paper['name']} {kind} {entry['number']}": tuple(entry["prompts"])
        for paper in papers()
        for kind in ("figure", "table")
        for entry in paper[f"{kind}s"]
        if "prompts" in entry
    }
    return places | {f"{t.paper} table {t.number}": t.prompts for t in published_tables() if t.prompts}


def prompt_folder(place: str) -> tuple[Path, tuple[str, ...]]:
    """Return a folder of prompts, and the names of the prompts that were written to it. If `place` is a file, its
    prompts are written to a new folder. If `place` is a folder, return it with an empty tuple of names.
    """
    path = Path(place).expanduser()
    if path.is_file():
        return read_prompt_file(path)
    if not path.is_dir():
        raise UsageError("expected a folder or a file of prompts", where=f"--prompts {place}", hint="check the path")
    return path, ()


def read_prompt_file(file: Path) -> tuple[Path, tuple[str, ...]]:
    """Read a file with the prompts of papers, and write them as prompt files. Return the folder of these files and the
    names of the prompts.
    """
    text = read_text(file)
    known = prompt_places()
    names = {name for own in known.values() for name in own}
    given: dict[str, Json] = {}
    for place, prompts in parse_toml(text, file).items():
        if place not in known and place not in names:
            raise unknown("figure, table or prompt", place, [*known, *names], where=file)
        own = {place: prompts} if place in names else prompts
        for name, parts in own.items() if isinstance(own, dict) else ():
            if name not in names or name not in known.get(place, names):
                raise unknown("prompt", name, known[place], where=f"{file}: {place}")
            if not isinstance(parts, dict):
                raise DataError(
                    "is not a prompt, which needs keys such as `text`", where=f"{file}: {name}", hint='write text = "…"'
                )
            given.setdefault(name, {}).update(parts)
    folder = cache_home() / "prompts" / hashlib.sha256(text.encode()).hexdigest()[:16]
    asked: dict[str, list[Json]] = {}
    for name, parts in given.items():
        if name in template_names():
            shipped = packaged_toml("creperie.making.llm.prompts", f"{name}.toml")
            write_text(folder / f"{name}.toml", _toml_lines(shipped | parts))
        else:
            prompt = find_prompt(name, "")
            asked.setdefault(prompt.kind, []).append({k: v for k, v in asdict(prompt).items() if v} | parts)
    for kind, records in asked.items():
        write_text(folder / f"{kind}.toml", _toml_lines({"prompt": records}))
    return folder, tuple(given)


def _toml_lines(document: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(name)} = {_toml(value)}\n" for name, value in document.items())


def _toml(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> _toml([{"a": "x", "b": 0.5}])
    '[{ "a" = "x", "b" = 0.5 }]'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
