"""Real adapters on tiny checkpoints, and the one real model that a package brings."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_rare
from tiny_rare import tiny_blip

from creperie.bench import Benchmark, from_items
from creperie.engine import Shard
from creperie.scoring import ResultStore, Run, ScoreOptions, merged_run, score, score_all
from creperie.scoring.handle import open_model
from creperie.testing import tiny

CPU = ScoreOptions(device="cpu")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "clip": tiny.tiny_clip(root / "clip"),
        "siglip": tiny_rare.tiny_siglip(root / "siglip"),
        "blip": tiny_blip(root / "blip"),
        "st": tiny.tiny_sentence_encoder(root / "st"),
    }


def columns(run: Run) -> np.ndarray:
    found = [run.scores(needs) for needs in run.inputs]
    return np.concatenate(found)


def test_winograds_form_end_to_end(paired: Benchmark, folders: dict[str, Path], tmp_path: Path) -> None:
    run = score(paired, f"hf:{folders['clip']}", options=CPU, out=tmp_path / "runs")
    assert run.tasks == ("itt", "t2i", "group")
    totals = {r["task"]: r for r in run.results if r["subset"] == "all"}
    for name, chance in (("itt", 1 / 4), ("t2i", 1 / 4), ("group", 1 / 6)):
        assert totals[name]["n"] == 7
        assert totals[name]["chance"] == pytest.approx(chance)
    scores = run.scores("image_text").reshape(7, 2, 2)
    text = (scores[:, 0, 0] > scores[:, 0, 1]) & (scores[:, 1, 1] > scores[:, 1, 0])
    image = (scores[:, 0, 0] > scores[:, 1, 0]) & (scores[:, 1, 1] > scores[:, 0, 1])
    assert totals["itt"]["hits"] == text.sum()
    assert totals["t2i"]["hits"] == image.sum()
    assert totals["group"]["hits"] == (text & image).sum()


@pytest.mark.parametrize("name", ["clip", "siglip", "blip", "st"])
def test_a_run_says_how_many_weights_its_model_has(
    name: str, triples: Benchmark, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from the shapes in the file; buffers such as position ids are no weights. A second run loads nothing."""
    from safetensors import safe_open

    monkeypatch.setattr("creperie.core.digests.RACY_SECONDS", 0)  # files just written count as old
    with safe_open(folders[name] / "model.safetensors", framework="np") as file:
        shapes = [file.get_slice(k).get_shape() for k in file.keys() if not k.endswith("position_ids")]  # noqa: SIM118
    uri = f"{'st' if name == 'st' else 'hf'}:{folders[name]}"
    for _ in range(2):
        handle = open_model(uri, device="cpu")
        assert handle.parameters == sum(int(np.prod(shape)) for shape in shapes)
    assert not handle.loaded
    run = score(triples, handle, options=CPU)
    assert run.document["model"]["parameters"] == handle.parameters


@pytest.mark.parametrize("name", ["clip", "siglip", "blip", "st"])
def test_batch_size_and_order_do_not_matter(
    name: str, triples: Benchmark, folders: dict[str, Path], tmp_path: Path
) -> None:
    kind = "st" if name == "st" else "hf"
    uri = f"{kind}:{folders[name]}" + ("?score=itm" if name == "blip" else "")
    model = open_model(uri, device="cpu").model
    whole = score(triples, model, options=CPU)
    backwards = from_items("backwards", list(triples)[::-1], images=triples.images)
    for bench, size in ((triples, 1), (backwards, 5)):
        (run,) = score_all(
            [bench], [model], ScoreOptions(device="cpu", batch_size=size), store=ResultStore(tmp_path / f"{size}")
        )
        if bench is backwards:
            run = Run(run.document, run.table.take(list(range(len(run)))[::-1]))
        assert run.tasks == whole.tasks
        np.testing.assert_allclose(columns(run), columns(whole), atol=1e-6)


@pytest.mark.parametrize("name", ["clip", "siglip", "blip", "st"])
def test_shards_give_the_scores_of_one_job(
    name: str, triples: Benchmark, folders: dict[str, Path], tmp_path: Path, one_thread: None
) -> None:
    """Encoders on one thread of a CPU: to the bit, though captions and images meet others in their batches."""
    items = [
        replace(item, captions=(*item.captions[:2], item.captions[2] + " there" * int(item.id))) for item in triples
    ]
    bench = from_items("longer", items, images=triples.images)
    uri = f"{'st' if name == 'st' else 'hf'}:{folders[name]}" + ("?score=itm" if name == "blip" else "")
    model = open_model(uri, device="cpu").model
    whole = score(bench, model, options=CPU)
    parts = []
    for k in (1, 2):
        options, store = replace(CPU, shard=Shard(2, k)), ResultStore(tmp_path / str(k))
        parts += score_all([bench], [model], options, store=store)
    merged = merged_run(parts)
    np.testing.assert_allclose(columns(merged), columns(whole), rtol=0, atol=1e-6 if name == "blip" else 0)


def test_a_model_whose_scores_are_all_stored_is_not_loaded(triples: Benchmark, folders: dict[str, Path]) -> None:
    uri = f"hf:{folders['clip']}"
    first = open_model(uri, device="cpu")
    assert first.loaded
    again = open_model(uri, device="cpu")
    assert not again.loaded
    assert again.fingerprint.key == first.fingerprint.key
    assert again.abilities == first.abilities
    expected = score(triples, uri, options=CPU)
    code = (
        "import sys\nfrom creperie.bench import load\nfrom creperie.scoring import ScoreOptions, score\n"
        "run = score(sys.argv[1], sys.argv[2], options=ScoreOptions(device='cpu'))\n"
        "print(sum(s['computed'] for s in run.document['work'].values()), 'torch' in sys.modules)\n"
    )
    from creperie.bench import save

    saved = save(triples, folders["clip"].parent / "bench", force=True)
    assert saved.hash == triples.hash
    done = subprocess.run(
        [sys.executable, "-c", code, str(folders["clip"].parent / "bench"), uri],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "False"]
    assert expected.document["work"]["text"]["computed"] == 15


def test_a_changed_weight_file_is_another_model(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tiny.tiny_clip(tmp_path / "changing", seed=1)
    before = open_model(f"hf:{folder}", device="cpu").fingerprint
    tiny.tiny_clip(folder, seed=2)
    after = open_model(f"hf:{folder}", device="cpu")
    assert after.fingerprint.weights != before.weights


def test_the_world_end_to_end(folders: dict[str, Path]) -> None:
    from creperie.world import World, make_world

    bench = make_world(World(items=4, forms=("choice", "winoground"), size=32))
    run = score(bench, f"hf:{folders['clip']}", options=CPU)
    assert set(run.tasks) >= {"itt", "t2i", "group"}
    assert run.document["coverage"]["image_text"] == len(bench)
    assert run.document["finding_counts"] == {}
