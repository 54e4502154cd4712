"""Scoring end to end: scores by hand, the store, findings, ties, all tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from older import without_checksums
from PIL import Image

from creperie.bench import Benchmark, Item, choice, concatenate, from_items, open_store
from creperie.core import DataError, UsageError
from creperie.metrics import MetricSettings
from creperie.scoring import ResultStore, Run, ScoreOptions, forecast_all, load_run, score, score_all
from creperie.scoring.findings import LISTED, Findings, UnscoredItem


def by_hand(model: Any, bench: Benchmark) -> tuple[list[list[float]], list[list[float]]]:
    """images × captions and captions × captions of every item, one image and one caption at a time."""
    image_text, text_text = [], []
    for item in bench:
        images = [
            model.encode_images([Image.open(Path(bench.images.location) / i).convert("RGB")])[0] for i in item.images
        ]
        texts = [model.encode_texts([c])[0] for c in item.captions]
        image_text.append([float(i @ t) for i in images for t in texts])
        text_text.append([float(a @ b) for a in texts for b in texts])
    return image_text, text_text


def column(run: Run, name: str) -> np.ndarray:
    return np.array(run.table.column(name).to_pylist(), dtype=np.float64)


@pytest.mark.parametrize("which", ["triples", "paired"])
def test_scores_are_those_of_the_plain_loop(
    which: str, request: pytest.FixtureRequest, dual_model: Callable[..., Any]
) -> None:
    bench = request.getfixturevalue(which)
    run = score(bench, dual_model(), tasks=["itt"])
    image_text, _ = by_hand(dual_model(), bench)
    np.testing.assert_allclose(column(run, "image_text"), image_text, atol=1e-6)
    assert run.table.column("text_text").null_count == len(run), "not asked for, not written"


def test_caption_scores_are_those_of_the_plain_loop(triples: Benchmark, texts_model: Callable[..., Any]) -> None:
    run = score(triples, texts_model())
    assert run.tasks == ("tot",)
    vectors = {c: texts_model().encode_texts([c])[0] for item in triples for c in item.captions}
    expected = [[float(vectors[a] @ vectors[b]) for a in i.captions for b in i.captions] for i in triples]
    np.testing.assert_allclose(column(run, "text_text"), expected, atol=1e-6)


def test_each_image_and_caption_is_encoded_once_over_benchmarks(
    triples: Benchmark, paired: Benchmark, dual_model: Callable[..., Any]
) -> None:
    model = dual_model()
    first, second = score_all([triples, paired], [model])
    assert len(model.images_seen) == 8
    assert len(model.texts_seen) == len({c for b in (triples, paired) for i in b for c in i.captions})
    assert first.tasks == ("itt", "tot")
    assert second.tasks == ("itt", "t2i", "group")


def test_a_second_run_computes_nothing_and_has_the_same_scores(
    triples: Benchmark, dual_model: Callable[..., Any]
) -> None:
    first = score(triples, dual_model())
    model = dual_model()
    second = score(triples, model)
    assert len(model.texts_seen) <= 3, "no more than the probe"
    assert len(model.images_seen) <= 3
    assert second.table.equals(first.table)
    assert second.document["work"]["image"] == {"needed": 8, "stored": 8, "failed": 0, "computed": 0}
    assert score(triples, dual_model("other")).document["work"]["image"]["stored"] == 0, "another model shares nothing"


# -- findings --------------------------------------------------------------------------------------------------------


def test_an_image_that_cannot_be_decoded_is_a_finding_of_its_items(
    pictures: Path, triples: Benchmark, dual_model: Callable[..., Any], tmp_path: Path
) -> None:
    (pictures / "3.png").write_bytes(b"not a picture")
    (pictures / "5.png").unlink()
    run = score(triples, dual_model(), tasks=["itt"])
    found = {(f["code"], f["subset"], f["item"]) for f in run.findings}
    assert found == {("undecodable-image", "swap", str(i)) for i in range(3, 40, 8)} | {
        ("missing-image", "swap", str(i)) for i in range(5, 40, 8)
    }
    assert run.document["coverage"] == {"items": 40, "image_text": 30}
    total = next(r for r in run.results if r["subset"] == "all")
    assert (total["n"], total["void"]) == (30, 10)
    scored = run.table.column("image_text").is_valid().to_pylist()
    assert scored == [i % 8 not in (3, 5) for i in range(40)]
    again = score(triples, dual_model(), tasks=["itt"], out=tmp_path / "runs")
    assert again.findings == run.findings, "what was wrong is said again though nothing was computed"


def test_findings_of_parts_are_counted_and_the_first_are_listed() -> None:
    findings = Findings()
    for k in range(LISTED + 1):
        findings.add(UnscoredItem("nan-score", "s", str(k), ""))
    assert (len(findings.listed), findings.counts) == (LISTED, {"nan-score": LISTED + 1})


def test_a_model_that_answers_nan_is_a_finding(triples: Benchmark, dual_model: Callable[..., Any]) -> None:
    model = dual_model()
    whole = model.forward_texts
    bad = model.prepare_texts(["a cat 2 chases a dog"])[0].ids.tobytes()

    def forward(prepared: Any) -> np.ndarray:
        vectors = whole(prepared)
        vectors[[t.ids.tobytes() == bad for t in prepared]] = np.nan
        return vectors

    model.forward_texts = forward
    run = score(triples, model, tasks=["itt", "tot", "p1-vs-n"])
    assert run.document["finding_counts"] == {"not-a-number": 8}
    assert {f["item"] for f in run.findings} == {str(i) for i in range(2, 40, 5)}
    assert "'a cat 2 chases a dog'" in run.findings[0]["message"]
    totals = {r["task"]: (r["n"], r["void"]) for r in run.results if r["subset"] == "all"}
    assert totals == {"itt": (32, 8), "tot": (32, 8), "p1-vs-n": (32, 8)}


def test_a_caption_longer_than_the_context_is_a_finding_and_counts(
    triples: Benchmark, dual_model: Callable[..., Any]
) -> None:
    for _ in range(2):  # computed, then from the store
        run = score(triples, dual_model(context=6), tasks=["itt"])
        assert run.document["finding_counts"] == {"caption-cut": 40}
        assert run.findings[0]["message"].startswith("1 tokens do not fit the model and are cut off: 'cat ")
        assert run.document["coverage"]["image_text"] == 40


def test_a_store_that_cannot_be_written_is_noted(
    triples: Benchmark, dual_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from creperie.scoring.segments import Writer

    def full(self: object, *args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Writer, "append", full)
    run = score(triples, dual_model())
    assert run.document["coverage"]["image_text"] == 40
    assert all("No space left on device" in note for note in run.document["notes"])
    assert len(run.document["notes"]) == 2


# -- ties ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tied(pictures: Path) -> Benchmark:
    """Captions that a model which lower-cases cannot tell apart."""
    items = [
        Item("0", "a", ("0.png",), ("A dog", "a dog"), choice(1, 1)),
        Item("1", "a", ("1.png",), ("a dog", "a dog"), choice(1, 1)),
    ]
    return from_items("tied", items, images=open_store(str(pictures)))


@pytest.mark.parametrize(("ties", "expected"), [("wrong", 0.0), ("half", 0.5), ("right", 1.0)])
def test_ties_are_counted_and_the_rule_can_be_changed_afterwards(
    tied: Benchmark, dual_model: Callable[..., Any], ties: Any, expected: float
) -> None:
    run = score(tied, dual_model(), tasks=["itt"])
    (row,) = [r for r in run.evaluate(settings=MetricSettings(ties=ties)) if r.subset == "all"]
    assert (row.n, row.hits, row.ties, row.accuracy) == (2, 0, 2, expected)
    asked = score(tied, dual_model(), tasks=["itt"], options=ScoreOptions(settings=MetricSettings(ties=ties)))
    assert asked.results[0]["accuracy"] == expected


# -- other kinds of models -------------------------------------------------------------------------------------------


def test_matching_heads_see_an_image_once(triples: Benchmark, paired: Benchmark, pairs_model: Any) -> None:
    first, second = score_all([triples, paired], [pairs_model])
    assert len(pairs_model.calls) == 8
    pairs = {(i, c) for b in (triples, paired) for item in b for i in item.images for c in item.captions}
    assert sum(pairs_model.calls) == len(pairs)
    item = paired[3]
    folder = Path(paired.images.location)
    expected = [
        pairs_model.score_pairs(Image.open(folder / i).convert("RGB"), [c])[0]
        for i in item.images
        for c in item.captions
    ]
    np.testing.assert_allclose(second.table.column("image_text")[3].as_py(), expected)
    calls = len(pairs_model.calls)
    again = score_all([triples], [pairs_model])[0]
    assert again.table.equals(first.table)
    assert pairs_model.calls[calls:] == [1, 1, 1], "the probe"


def test_matching_heads_with_a_broken_image(triples: Benchmark, pairs_model: Any, pictures: Path) -> None:
    (pictures / "3.png").write_bytes(b"no")
    run = score(triples, pairs_model)
    assert run.document["finding_counts"] == {"undecodable-image": 5}
    assert run.document["coverage"]["image_text"] == 35


def test_vectors_that_have_seen_the_image(triples: Benchmark, joint_model: Any) -> None:
    run = score(triples, joint_model)
    assert run.tasks == ("tot",)
    item = triples[9]
    image = Image.open(Path(triples.images.location) / item.images[0]).convert("RGB")
    vectors = joint_model.encode_pairs(image, item.captions)
    np.testing.assert_allclose(run.table.column("text_text")[9].as_py(), (vectors @ vectors.T).ravel(), atol=1e-6)


# -- what is refused -------------------------------------------------------------------------------------------------


def test_tasks_that_the_model_or_the_benchmark_cannot_do_are_refused(
    triples: Benchmark, texts_model: Callable[..., Any], dual_model: Callable[..., Any]
) -> None:
    with pytest.raises(
        UsageError, match="'itt' needs image_text scores, which this model does not give; choose among: tot"
    ):
        score(triples, texts_model(), tasks=["itt"])
    with pytest.raises(UsageError, match="'t2i' has nothing to compare in any item; choose among: itt, tot, blind"):
        score(triples, dual_model(), tasks=["t2i"])
    with pytest.raises(UsageError, match="did you mean 'itt'"):
        score(triples, dual_model(), tasks=["itts"])
    bare = from_items("bare", list(triples))
    with pytest.raises(UsageError, match="'itt' needs the images; load the benchmark with `images='DIR'`"):
        score(bare, dual_model(), tasks=["itt"])
    assert score(bare, dual_model()).tasks == ("tot",)
    with pytest.raises(UsageError, match="no items"):
        score(from_items("none", []), dual_model())


def test_benchmarks_with_and_without_images_together(triples: Benchmark, dual_model: Callable[..., Any]) -> None:
    bare = from_items("bare", list(triples))
    with_images, without = score_all([triples, bare], [dual_model()])
    assert with_images.tasks == ("itt", "tot")
    assert without.tasks == ("tot",)
    assert without.document["finding_counts"] == {}


# -- runs ------------------------------------------------------------------------------------------------------------


def test_runs_are_written_whole_and_read_back(
    triples: Benchmark, dual_model: Callable[..., Any], tmp_path: Path
) -> None:
    tasks, store = ["itt", "tot-near-vs-n"], ResultStore(tmp_path / "store")
    (run,) = score_all([triples], [dual_model()], ScoreOptions(tasks=tasks), out=tmp_path / "runs", store=store)
    assert list((tmp_path / "store").rglob("*.seg"))
    assert {"statistics", "total"} <= run.document["timings"].keys()
    assert sorted(p.name for p in run.path.iterdir()) == ["run.json", "scores.parquet"]
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [run.name]
    back = load_run(run.path)
    assert back.table.equals(run.table)
    assert back.hash == triples.hash
    assert [r.as_dict() for r in back.evaluate()] == back.results
    again = score(triples, dual_model(), tasks=tasks, out=tmp_path / "runs")
    assert again.path == run.path, "the same work has the same name"
    document = json.loads((run.path / "run.json").read_text())
    assert document["model"]["fingerprint"]["architecture"] == "Fake"
    assert document["versions"]["numpy"] == np.__version__


def test_runs_that_are_none_say_so(tmp_path: Path, triples: Benchmark, dual_model: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"has no run\.json"):
        load_run(tmp_path)
    run = score(triples, dual_model(), out=tmp_path)
    assert run.path is not None
    (run.path / "scores.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="does not match its checksum"):
        load_run(run.path)
    with pytest.raises(DataError, match="cannot be read"):
        load_run(without_checksums(run.path))
    (run.path / "run.json").write_text("{}")
    with pytest.raises(DataError, match=r"run\.json: is not a complete run"):
        load_run(run.path)
    with pytest.raises(UsageError, match="has no text scores, which task 'blind' needs"):
        run.evaluate("blind")


def test_a_folder_that_is_no_run_is_not_replaced(
    tmp_path: Path, triples: Benchmark, dual_model: Callable[..., Any]
) -> None:
    name = score(triples, dual_model()).name
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="holds something other than a run"):
        score(triples, dual_model(), out=tmp_path)
    assert (tmp_path / name / "thesis.tex").read_text() == "years of work"


# -- the forecast ----------------------------------------------------------------------------------------------------


def test_the_plan_says_what_is_missing(triples: Benchmark, dual_model: Callable[..., Any]) -> None:
    (before,) = forecast_all([triples], [dual_model()])
    assert (before.images.needed, before.images.stored, before.captions.needed) == (8, 0, 15)
    assert before.basis == "a probe"
    assert before.seconds > 0
    assert not list(ResultStore().root.rglob("*.seg")), "a plan keeps nothing"
    score(triples, dual_model())
    (after,) = forecast_all([triples], [dual_model()])
    assert (after.images.missing, after.captions.missing, after.seconds) == (0, 0, 0.0)


def test_the_plan_counts_the_pairs_that_a_run_computes(triples: Benchmark, paired: Benchmark, joint_model: Any) -> None:
    """Captions are seen together with one image: items with two were counted, and missing for ever."""
    mixed = concatenate("mixed", [triples, paired])
    score(mixed, joint_model, tasks=["tot"])
    (found,) = forecast_all([mixed], [joint_model], ScoreOptions(tasks=("tot",)))
    assert (found.pairs.needed, found.pairs.missing) == (40 * 3, 0)


def test_every_way_into_scoring_is_one(triples: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python, the command line, a zoo file and workers of an engine score through the rows of a matrix, and agree."""
    from click.testing import CliRunner

    from creperie.bench import save
    from creperie.cli.app import cli
    from creperie.engine import Local
    from creperie.scoring import Matrix, load_run

    rows: list[str] = []
    own = Matrix.row
    monkeypatch.setattr(Matrix, "row", lambda self, number: rows.append(self.rows[number].label) or own(self, number))
    save(triples, tmp_path / "bench")
    zoo = tmp_path / "zoo.yaml"
    zoo.write_text(f"models: ['blind:length']\nbenchmarks: ['{tmp_path / 'bench'}']\n")
    one = score(tmp_path / "bench", "blind:length")
    assert rows == ["blind:length"]
    seen: dict[str, Any] = {"python": one}
    for name, args in (("command", [str(tmp_path / "bench"), "-m", "blind:length"]), ("zoo", [str(zoo)])):
        rows.clear()
        done = CliRunner().invoke(cli, ["score", *args, "--out", str(tmp_path / name)], standalone_mode=False)
        assert done.exception is None
        assert rows == ["blind:length"]
        seen[name] = load_run(next((tmp_path / name).iterdir()))
    rows.clear()
    (seen["engine"],) = score_all([tmp_path / "bench"], ["blind:length"], engine=Local(1))
    assert rows == ["blind:length"] * (1 + min(4, len(triples)))
    for run in seen.values():
        assert (run.name, run.results, run.table) == (one.name, one.results, one.table)
