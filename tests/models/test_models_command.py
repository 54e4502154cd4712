"""`creperie models list` and `check`, as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from creperie.cli.models import models
from creperie.core import CreperieError
from creperie.models import KINDS


def call(*arguments: str) -> tuple[Any, str]:
    result = CliRunner().invoke(models, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout


def test_list_names_every_kind() -> None:
    code, text = call("list")
    assert code == 0
    for name, kind in KINDS.items():
        assert f"{name}:" in text
        assert kind.example in text


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_list_of_a_kind_names_every_option(kind: str) -> None:
    _, text = call("list", kind)
    assert all(option.name in text for option in KINDS[kind].options)
    _, text = call("list", kind, "--json")
    (document,) = json.loads(text)["kinds"].values()
    assert [o["option"].split("=")[0] for o in document["options"]] == [o.name for o in KINDS[kind].options]


def test_list_of_an_unknown_kind() -> None:
    with pytest.raises(CreperieError, match="unknown model kind 'hff'; did you mean 'hf'"):
        call("list", "hff")


def test_check(clip_folder: Path) -> None:
    code, text = call("check", f"hf:{clip_folder}", "--device", "cpu")
    assert code == 0
    assert "can be scored" in text
    code, text = call("check", f"hf:{clip_folder}", "--device", "cpu", "--json")
    document = json.loads(text)
    assert document["ok"] is True
    assert document["roles"] == ["image encoder", "text encoder"]
    assert document["fingerprint"]["context"] == 77
    assert {c["name"] for c in document["checks"]} >= {"captions: trimmed = padded", "images: batch of 1 = batch of 4"}


@pytest.mark.slow
def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from creperie.cli import main; main()", "models", "check", f"hf:{tmp_path}/none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "there is no folder" in done.stderr
