"""A cache of audits, keyed by the content of the benchmark, the options, and the version of creperie."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creperie.core import __version__, cache_home, read_json, write_json


def keep_audit(document: Mapping[str, Any], folder: Path | None = None) -> None:
    """Store an audit's document in a folder, or in the cache; a cache that cannot be written is not an error."""
    path = _place(document["benchmark"], document["hash"], document["options"], document["version"], folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, document)
    except OSError:
        if folder is not None:
            raise


def kept_audit(
    name: str, content: str, options: Mapping[str, Any], folder: Path | None = None
) -> dict[str, Any] | None:
    """Return the stored audit of this content, with these options, by this version; None if there is none."""
    path = _place(name, content, options, __version__, folder)
    document = read_json(path) if path.is_file() else None
    return document if isinstance(document, dict) and document.get("hash") == content else None


def _place(name: str, content: str, options: Mapping[str, Any], version: str, folder: Path | None) -> Path:
    key = json.dumps([content, version, dict(options)], sort_keys=True, default=str)
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    place = folder if folder is not None else cache_home() / "audits"
    return place / f"{plain}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
