"""Where creperie keeps what can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """$CREPERIE_CACHE, else $XDG_CACHE_HOME/creperie, else ~/.cache/creperie."""
    if own := os.environ.get("CREPERIE_CACHE"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).expanduser() / "creperie"
    return Path.home() / ".cache" / "creperie"
