"""The papers' own prompts, which are not part of creperie: the user gives them in one TOML file, by figure.

    ["sugarcrepe++ figure 3".paraphrase]
    rules = ["…"]

    ["sugarcrepe++ figure 7".odd-forced]
    text = "… {options} …"

The keys of a figure's prompt replace the same keys of the prompt of this name that comes with creperie.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from creperie.core import cache_home, packaged_toml, parse_toml, read_text, unknown, write_text
from creperie.making import template_names
from creperie.models import find_prompt


def papers() -> list[dict[str, Any]]:
    """Return the requirements of every table and figure of the five papers, one record per paper (papers.toml)."""
    return packaged_toml("creperie.recipes", "cookbook", "papers.toml")["paper"]


def prompt_figures() -> dict[str, tuple[str, ...]]:
    """Return the figures that print prompts, each with the names of these prompts in creperie."""
    entries = ((paper["name"], entry) for paper in papers() for entry in paper["figures"])
    return {f"{name} figure {e['number']}": tuple(e["prompts"]) for name, e in entries if "prompts" in e}


def read_figures(file: Path) -> tuple[Path, tuple[str, ...]]:
    """Write prompt files from a file of figures; return their folder and the names of the figures in the file."""
    text = read_text(file)
    document = parse_toml(text, file)
    known = prompt_figures()
    given: dict[str, dict[str, Any]] = {}
    for figure, prompts in document.items():
        if figure not in known:
            raise unknown("figure", figure, known, where=file)
        for name, parts in prompts.items() if isinstance(prompts, dict) else ():
            if name not in known[figure]:
                raise unknown("prompt", name, known[figure], where=f"{file}: {figure}")
            given.setdefault(name, {}).update(parts)
    folder = cache_home() / "prompts" / hashlib.sha256(text.encode()).hexdigest()[:16]
    asked: dict[str, list[dict[str, Any]]] = {}
    for name, parts in given.items():
        if name in template_names():
            shipped = packaged_toml("creperie.making.llm.prompts", f"{name}.toml")
            write_text(folder / f"{name}.toml", _toml_lines(shipped | parts))
        else:
            prompt = find_prompt(name, "")
            asked.setdefault(prompt.kind, []).append({k: v for k, v in asdict(prompt).items() if v} | parts)
    for kind, records in asked.items():
        write_text(folder / f"{kind}.toml", _toml_lines({"prompt": records}))
    return folder, tuple(document)


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
