"""The owner's pages: German, live progress, roles, archive and delete, pictures in the instructions."""

from __future__ import annotations

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}
