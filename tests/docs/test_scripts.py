"""The scripts that the docs name as the source of figures run: each is started here with its smallest size."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("research", "benchmarks")
PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

#: script → its arguments; {} is a folder with the made files below
SMALLEST = {
    "benchmarks/cpu_speed.py": "--smallest",
    "benchmarks/encoder_speed.py": "--smallest --threads 1 --data {}/sugarcrepe",
    "benchmarks/engine_speed.py": "--n 8 --workers 1",
    "benchmarks/gpu_speed.py": "--smallest",
    "benchmarks/growth.py": "--sizes 10,20 --stages stream",
    "benchmarks/parse_speed.py": "--n 8 --turns 1 --makers grammar:passive",
    "benchmarks/people_load.py": "--seconds 1 --annotators 2 --questions 20 --think 0.1",
    "benchmarks/process_speed.py": "--smallest",
    "benchmarks/train_speed.py": "--smallest",
    "benchmarks/vlm_speed.py": "--smallest",
    "research/attacker_nulls.py": "--captions {}/sugarcrepe --sets 0",
    "research/audit_power.py": "--captions {}/sugarcrepe --sets 0 --few 0 --only 'a word'",
    "research/calibration.py": "--draws 2 --every 400",
    "research/cook_times.py": "{}/cooked",
    "research/first_minute.py": "--check --turns 1 --only models",
    "research/foil_signals.py": "--help",  # needs the weights of a language model
    "research/foil_quality.py": "--draw {}/captions.txt --sample 4 --figures {}/foils.json",
    "research/fresh_draws.py": "--by-design world=choice --seeds 1 --out {}/fresh --results {}/fresh.json",
    "research/items.py": "--draws 1",
    "research/judgements.py": "{}/flickr8k --images {}/flickr8k --out {}/judged.json length=blind:length",
    "research/million.py": "--items 300 --steps audit",
    "research/mutants.py": "--help",  # needs mutmut
    "research/new_corpora.py": "",
    "research/people_cheats.py": "--seeds 1",
    "research/people_faults.py": "--only 'sqlite clock' --seconds 1 --annotators 2",
    "research/people_siege.py": "--smallest",
    "research/photographs_study.py": "--help",  # needs photographs and the weights of a tower
    "research/presets.py": "--tables 2 --preset foils",
    "research/world_study.py": "items --rounds 1 --worlds drawings --out {}/world-study",
    "research/world_3d.py": "--help",  # needs the extra `render`
    "research/world_gallery.py": "--help",  # needs the extra `render`
    "research/world_images.py": "--help",  # needs the extra `render` and the weights of a tower
    "research/text_encoders.py": "--sugarcrepe-pp {} --visla {} --out {}/encoders.json",  # no encoder: it needs weights
    "research/train_binding.py": "--smallest",
    "research/tuned_lm.py": "sugarcrepe:{}/sugarcrepe --attackers learned-linear",  # the other one needs weights
}


def named() -> set[str]:
    """Return the scripts that a page names, with or without their folder."""
    words = {name for page in PAGES for name in re.findall(r"\b\w+\.py\b", page.read_text(encoding="utf-8"))}
    return {f"{folder}/{name}" for folder in FOLDERS for name in words if (ROOT / folder / name).is_file()}


def test_every_script_that_a_page_names_is_started() -> None:
    assert named() <= set(SMALLEST)
    assert all((ROOT / script).is_file() for script in SMALLEST)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few captions, SugarCrepe's files, judgements of Flickr8k, and a recipe run; all made up."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "captions.txt").write_text(
        "A dog chases a red cat.\nTwo men carry a table.\nA girl eats.\nA bus stops.\n"
    )
    (folder / "sugarcrepe").mkdir()
    for kind in ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj"):
        row = {"filename": "1.jpg", "caption": "A dog chases a cat.", "negative_caption": "A cat chases a dog."}
        rows = {str(k): row | {"filename": f"{k % 8}.jpg", "caption": f"A dog chases {k} cats."} for k in range(24)}
        (folder / "sugarcrepe" / f"{kind}.json").write_text(json.dumps(rows))
    (folder / "flickr8k").mkdir()
    lines = [f"{k}.jpg#0\ta dog and {'another ' * k}cat" for k in range(4)]
    (folder / "flickr8k" / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    judged = "".join(f"{k}.jpg\t{j}.jpg#0\t{1 + j % 4}\t{1 + k % 4}\t1\n" for k in range(4) for j in range(4))
    for name in ("ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"):
        (folder / "flickr8k" / name).write_text(judged)
    for k in range(4):
        Image.new("RGB", (8, 8), (k, 0, 0)).save(folder / "flickr8k" / f"{k}.jpg")
    (folder / "cooked" / "01-make").mkdir(parents=True)
    for name, document in (
        ("recipe.json", {"recipe": "r", "profile": "small", "stages": ["01-make"]}),
        ("01-make/stage.json", {"stage": "make", "summary": {}}),
        ("01-make/time.json", {"seconds": 1.0, "processor": 1.0}),
    ):
        (folder / "cooked" / name).write_text(json.dumps(document))
    return folder


@pytest.fixture
def as_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Leave no trace of a script in this process: its modules, paths, environment and threads."""
    import torch

    known, threads, variables = set(sys.modules), torch.get_num_threads(), dict(os.environ)
    monkeypatch.setattr(sys, "path", list(sys.path))
    os.environ["CREPERIE_CACHE"] = str(tmp_path / "cache")
    yield
    os.environ.clear()
    os.environ.update(variables)
    torch.set_num_threads(threads)
    for name in set(sys.modules) - known:
        if any((ROOT / folder / f"{name}.py").is_file() for folder in FOLDERS):
            del sys.modules[name]


@pytest.mark.usefixtures("as_started")
@pytest.mark.parametrize("script", SMALLEST)
def test_a_script_runs(script: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / script
    words = [str(path), *shlex.split(SMALLEST[script].replace("{}", str(place)))]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.syspath_prepend(path.parent)
    code: object = 0
    with redirect_stdout(io.StringIO()):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    assert code in (None, 0, 1)  # 1: it ran, but a goal of speed was missed
