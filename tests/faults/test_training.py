"""A training on a disk without room, on one that cannot be written, and twice at once."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from creperie.bench import save
from creperie.cli import main
from creperie.training import checkpoints
from creperie.world import World, make_world

Start = Callable[..., "subprocess.Popen[str]"]
Wait = Callable[[Callable[[], bool]], None]
Remount = Callable[[Path, str], None]

CONFIG = {"size": 32, "channels": [4, 8], "text_width": 16, "text_layers": 1, "heads": 2, "joint": 16}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command without its --out: six steps of a model of some thousand weights."""
    place = tmp_path_factory.mktemp("training")
    (place / "model.json").write_text(json.dumps(CONFIG))
    save(make_world(World(kinds=("swap_obj",), items=16, size=32)), place / "world", copy_images=True)
    sizes = ["--steps", "6", "--batch", "8", "--warmup", "2", "--save-every", "2", "--device", "cpu"]
    return ["train", "fit", "--model", str(place / "model.json"), "--data", str(place / "world"), *sizes]


def told(command: list[str]) -> tuple[int, str]:
    """A command in this process: exit code, stderr."""
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(command)
    return int(str(ended.value.code)), err.getvalue()


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_training_goes_on_after_a_full_disk_and_a_read_only_one(
    given: list[str], small_disk: Path, remount: Remount, tmp_path: Path
) -> None:
    assert told([*given, "--out", str(tmp_path / "calm")])[0] == 0
    size = sum(p.stat().st_size for p in (tmp_path / "calm" / "checkpoints").rglob("*") if p.is_file())
    remount(small_disk, f"size={size // 1024}k")  # room for a checkpoint or two, not for all
    run = small_disk / "run"
    code, said = told([*given, "--out", str(run)])
    assert code == 2
    assert "No space left on device" in said, said
    assert "Traceback" not in said
    assert not (run / "model").exists()
    kept = checkpoints.steps_kept(run)
    assert not list((run / "checkpoints").glob(".*")), "no draft is left behind"
    remount(small_disk, f"size={size // 1024}k,ro")
    code, said = told([*given, "--out", str(run)])
    assert code == 2
    assert "Read-only file system" in said
    remount(small_disk, "size=64m,rw")
    assert checkpoints.steps_kept(run) == kept
    assert told([*given, "--out", str(run)])[0] == 0
    assert weights(run) == weights(tmp_path / "calm")


@pytest.mark.slow
def test_a_second_process_is_kept_out_of_a_training(
    given: list[str], creperie: Start, wait_for: Wait, tmp_path: Path
) -> None:
    long = [part if part != "6" else "100000" for part in given]
    run = tmp_path / "run"
    first = creperie(*long, "--out", str(run))
    try:
        wait_for(lambda: first.poll() is not None or bool(run.is_dir() and checkpoints.steps_kept(run)))
        assert first.poll() is None, first.communicate()[1]
        code, said = told([*long, "--out", str(run)])
        assert (code, "another process is training this; wait for it, or write to another folder" in said) == (2, True)
    finally:
        first.kill()
        first.communicate(timeout=60)
    assert told([*given, "--out", str(run), "--force"])[0] == 0, "a killed one holds nothing"
