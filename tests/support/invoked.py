"""Commands of creperie in this process, with their errors as they were raised."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from creperie.cli.app import cli


def run(*args: str) -> tuple[int, Any]:
    """The exit code of a command, and its document."""
    result = CliRunner().invoke(cli, [*args, "--json"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), json.loads(result.stdout)
