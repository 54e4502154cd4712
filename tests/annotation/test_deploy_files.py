"""The files in deploy/: what can be checked of them without a container engine. nginx is run in test_deployment.py."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from creperie.cli.annotate import serve

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def serve_options(words: list[str]) -> dict[str, Any]:
    """What the command makes of words after `serve`; an error where it does not know one of them."""
    return dict(serve.make_context("serve", words, resilient_parsing=False).params)


def test_the_container_file_copies_what_exists_and_does_not_run_as_root() -> None:
    lines = [line for line in (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    for words in (shlex.split(line)[1:] for line in lines if line.startswith("COPY")):
        assert [name for name in words[:-1] if not (ROOT / name).exists()] == []
    copied = " ".join(line for line in lines if line.startswith("COPY"))
    assert "hatch_build.py" in copied  # which pyproject.toml names, and without which nothing is installed
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}
    assert said["USER"] == "creperie"
    assert f"install -d -o creperie {said['WORKDIR']}" in "\n".join(lines)  # Docker would make it root's
    assert said["ENTRYPOINT"] == '["creperie", "annotate"]'
    assert serve_options(yaml.safe_load(said["CMD"])[1:])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "creperie-people.service").read_text(encoding="utf-8")
    command = re.findall(r"(?m)^ExecStart=(.*)$", text)[0]
    assert serve_options(shlex.split(command.partition(" serve ")[2]))
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / "creperie-people.service"
    unit.write_text(text.replace(command.partition(" ")[0], "/bin/true"), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert "creperie-people.service" not in found.stderr, found.stderr
