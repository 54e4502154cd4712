"""Shards merge into what one job writes; gaps, overlaps and mixtures are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from older import without_checksums

from creperie.bench import Item, from_items, save
from creperie.cli.app import cli
from creperie.core import CreperieError, DataError, UsageError
from creperie.engine import Shard, parse_shard
from creperie.lang import default_parser
from creperie.making import MakeRequest, MakerOptions, build_maker, make, make_shard, merge_making
from creperie.metrics import MetricSettings
from creperie.scoring import ScoreOptions, load_run, merge_runs, score

TEXTS = [
    "A brown dog chases a white cat across the lawn.",
    "Two small children feed the grey ducks near a pond.",
    "x",
    "A tall man in a red shirt rides a black horse.",
    "The old woman sells ripe apples to a young boy.",
    "A green bus stops behind a yellow taxi.",
    "Some birds sit on a wooden fence beside a barn.",
    "A girl with a blue hat throws a ball to a dog.",
    "A cook slices fresh bread with a long knife.",
]


@given(st.integers(0, 300), st.integers(1, 40))
def test_every_thing_is_in_one_shard(n: int, count: int) -> None:
    shards = [Shard(count, k).range(n) for k in range(1, count + 1)]
    assert [i for own in shards for i in own] == list(range(n))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1.5/2", "٣/٤"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_shard(text)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> MakeRequest:
    try:
        default_parser()
    except CreperieError as e:
        pytest.skip(f"no parser: {e}")
    path = tmp_path_factory.mktemp("captions") / "captions.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return MakeRequest("rules:swap", str(path), MakerOptions(seed=3, matched=False))


@pytest.fixture(scope="module")
def shards(request_: MakeRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("shards")
    folders = [place / f"part-{k}" for k in range(1, 5)]
    for k, folder in enumerate(folders, 1):
        make_shard(request_, request_.read(), Shard(4, k), folder)
    return folders


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_merged_shards_are_the_benchmark_of_one_job(request_: MakeRequest, shards: list[Path], tmp_path: Path) -> None:
    captions = request_.read()
    whole = make(build_maker(request_.maker, request_.options, captions), captions, tmp_path / "one" / "mine")
    merged = merge_making(list(reversed(shards)), tmp_path / "four" / "mine")
    assert merged.report == whole.report
    assert whole.report["made"] > 2
    assert content(tmp_path / "four" / "mine") == content(tmp_path / "one" / "mine")


def test_gaps_overlaps_and_damage_are_refused(request_: MakeRequest, shards: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(DataError, match="2 of 4 shards are missing: 2, 4"):
        merge_making([shards[0], shards[2]], out)
    with pytest.raises(DataError, match="and so is"):
        merge_making([*shards, shards[1]], out)
    make_shard(request_, request_.read(), Shard(2, 1), tmp_path / "half")
    with pytest.raises(DataError, match=r"others are of a job of [24] shards"):
        merge_making([*shards, tmp_path / "half"], out)
    other = MakeRequest(request_.maker, request_.captions, MakerOptions(seed=4))
    make_shard(other, other.read(), Shard(4, 2), tmp_path / "seed4")
    with pytest.raises(DataError, match="different settings"):
        merge_making([shards[0], tmp_path / "seed4", *shards[2:]], out)
    torn = tmp_path / "torn"
    torn.mkdir()
    for name, data in content(shards[3]).items():
        (torn / name).write_bytes(data[:-9] if name == "outcomes.jsonl" else data)
    with pytest.raises(DataError, match=r"outcomes\.jsonl: checksum mismatch"):
        merge_making([*shards[:3], torn], out)
    assert not out.exists()


def test_changed_captions_are_noticed(tmp_path: Path, request_: MakeRequest) -> None:
    path = tmp_path / "captions.txt"
    path.write_text("\n".join(TEXTS))
    asked = MakeRequest(request_.maker, str(path), request_.options)
    for k in (1, 2):
        make_shard(asked, asked.read(), Shard(2, k), tmp_path / f"part-{k}")
    path.write_text("\n".join(TEXTS[::-1]))
    with pytest.raises(DataError, match="no longer those"):
        merge_making([tmp_path / "part-1", tmp_path / "part-2"], tmp_path / "out")


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    pairs = [(t, " ".join(reversed(t.split())) + " too" * (i % 3)) for i, t in enumerate(TEXTS)]
    items = [Item(str(i), "ab"[i % 2], (), pair, ((True, False),)) for i, pair in enumerate(pairs)]
    save(from_items("small", items), tmp_path / "small")
    return tmp_path / "small"


def run_shards(bench: Path, out: Path, count: int = 4) -> list[Path]:
    paths = []
    for k in range(1, count + 1):
        run = score(bench, "blind:length", options=ScoreOptions(shard=Shard(count, k)), out=out)
        assert run.path is not None
        paths.append(run.path)
    return paths


def test_merged_runs_are_the_run_of_one_job(bench: Path, tmp_path: Path) -> None:
    whole = score(bench, "blind:length", out=tmp_path / "one")
    paths = run_shards(bench, tmp_path / "shards")
    merged = merge_runs(paths[::-1], tmp_path / "four")
    assert merged.name == whole.name
    assert merged.results == whole.results
    assert whole.path is not None
    assert merged.path is not None
    assert pq.read_table(merged.path / "scores.parquet") == pq.read_table(whole.path / "scores.parquet")
    again = load_run(merged.path).document
    same = ("benchmark", "model", "tasks", "settings", "coverage", "findings", "finding_counts", "notes")
    assert {k: again[k] for k in same} == {k: load_run(whole.path).document[k] for k in same}


def test_scoring_on_an_engine_is_the_same_run(bench: Path, tmp_path: Path) -> None:
    from creperie.engine import Local
    from creperie.scoring import score_all

    whole = score(bench, "blind:length")
    engine = Local(1)
    (run,) = score_all([bench], ["blind:length"], engine=engine, out=tmp_path / "runs")
    assert run.name == whole.name
    assert run.results == whole.results
    assert run.table == whole.table


def test_runs_with_gaps_or_of_other_work_are_refused(bench: Path, tmp_path: Path) -> None:
    paths = run_shards(bench, tmp_path / "shards")
    whole = score(bench, "blind:length", out=tmp_path / "one")
    assert whole.path is not None
    with pytest.raises(DataError, match="1 of 4 shards are missing: 2"):
        merge_runs([paths[0], *paths[2:]], tmp_path / "out")
    with pytest.raises(UsageError, match="is not a shard of a run"):
        merge_runs([*paths, whole.path], tmp_path / "out")
    other = score(bench, "blind:surface", options=ScoreOptions(shard=Shard(4, 4)), out=tmp_path / "other")
    assert other.path is not None
    with pytest.raises(DataError, match="different model"):
        merge_runs([*paths[:3], other.path], tmp_path / "out")
    with pytest.raises(UsageError, match="use fewer shards"):
        score(bench, "blind:length", options=ScoreOptions(shard=Shard(99, 1)))


@pytest.mark.parametrize(
    "settings", [MetricSettings(ties="half"), MetricSettings(seed=7), MetricSettings(level=0.9)], ids=str
)
def test_shards_scored_under_other_settings_are_refused(bench: Path, tmp_path: Path, settings: MetricSettings) -> None:
    paths = run_shards(bench, tmp_path / "shards", 2)
    options = ScoreOptions(shard=Shard(2, 2), settings=settings)
    other = score(bench, "blind:length", options=options, out=tmp_path / "other")
    assert other.path is not None
    with pytest.raises(DataError, match="with different settings"):
        merge_runs([paths[0], other.path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_shards_that_hold_the_same_item_are_refused(bench: Path, tmp_path: Path) -> None:
    """The second share claims an item of the first: as many rows as there are items, one of them twice."""
    first, second = map(without_checksums, run_shards(bench, tmp_path / "shards", 2))
    table = pq.read_table(second / "scores.parquet")
    taken = pq.read_table(first / "scores.parquet").slice(0, 1)
    pq.write_table(pa.concat_tables([taken, table.slice(1)]), second / "scores.parquet")
    with pytest.raises(DataError, match="an item is in two shards"):
        merge_runs([first, second], tmp_path / "out")
    pq.write_table(table.slice(1), second / "scores.parquet")
    with pytest.raises(DataError, match="the shards have 8 of 9 items"):
        merge_runs([first, second], tmp_path / "out")


def test_the_commands(bench: Path, tmp_path: Path) -> None:
    for k in (1, 2):
        command = ["score", str(bench), "-m", "blind:length", "--shard", f"{k}/2", "--out", str(tmp_path / "runs")]
        assert CliRunner().invoke(cli, command, standalone_mode=False).exception is None
    parts = [str(p) for p in (tmp_path / "runs").iterdir()]
    both = ["score", str(bench), "-m", "blind:length", "--shard", "1/2", "--workers", "2"]
    with pytest.raises(UsageError, match="both split the work"):
        CliRunner().invoke(cli, both, standalone_mode=False, catch_exceptions=False)
    done = CliRunner().invoke(cli, ["merge", str(tmp_path / "all"), *parts, "--json"], standalone_mode=False)
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["merged"] == 2
    assert load_run(document["run"]).results == document["results"]
    with pytest.raises(UsageError, match=r"neither shard\.json nor run\.json"):
        CliRunner().invoke(cli, ["merge", "x", str(tmp_path)], standalone_mode=False, catch_exceptions=False)


def test_an_audit_on_an_engine_finds_the_same(bench: Path) -> None:
    from creperie.auditing import audit, audit_document
    from creperie.bench import load
    from creperie.engine import Local

    names = ["length-words", "surface"]
    plain = audit_document(audit(load(bench), names))
    assert audit_document(audit(load(bench), names, engine=Local(1))) == plain


def test_a_server_needs_no_engine(bench: Path) -> None:
    from creperie.bench import load
    from creperie.engine import Local
    from creperie.making import validate

    with pytest.raises(UsageError, match="gains nothing from more workers"):
        validate(load(bench), "api:gpt", engine=Local(2))
