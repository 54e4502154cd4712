"""Folders as older versions wrote them, or users who edited them: without checksums."""

from __future__ import annotations

import json
from pathlib import Path

from creperie.core.checksums import CHECKSUMS


def without_checksums(folder: Path) -> Path:
    """Remove the checksums from all JSON documents in a folder; return the folder."""
    for path in folder.rglob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and document.pop(CHECKSUMS, None):
            path.write_text(json.dumps(document), encoding="utf-8")
    return folder
