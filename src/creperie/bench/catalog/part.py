"""A file that is still coming in: `NAME.part`, and what is needed to resume it in `NAME.part.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass
class PartialDownload:
    """The part of a file that has come in so far, and the server's name for its version."""

    target: Path
    url: str
    validator: str = ""
    resumed: bool = False

    @property
    def path(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def note(self) -> Path:
        return self.target.with_name(self.target.name + ".part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def recall(self) -> None:
        """Take up what an earlier run left."""
        try:
            left = json.loads(self.note.read_text(encoding="utf-8"))
            self.validator = str(left["validator"]) if left["url"] == self.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            self.validator = ""

    def remember(self, validator: str) -> None:
        self.validator = validator
        self.note.write_text(json.dumps({"url": self.url, "validator": validator}), encoding="utf-8")

    def drop(self) -> int:
        """Forget what has come in; the number of bytes that were thrown away."""
        lost = self.size
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
        self.validator, self.resumed = "", False
        return lost

    def finish(self, sync: bool) -> None:
        if sync:
            with self.path.open("rb") as f:
                os.fsync(f.fileno())
        self.path.replace(self.target)
        self.note.unlink(missing_ok=True)
