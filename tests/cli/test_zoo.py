"""A zoo in one command: models × benchmarks, one of them damaged and one not installed, killed and resumed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.bench import Item, from_items, save
from creperie.cli import main
from creperie.core import CreperieError
from creperie.recipes import read_zoo
from creperie.scoring import load_run, rank_runs
from creperie.scoring.standings import letter_groups

WORDS = ("dog", "cat", "bird", "horse", "cup", "ball", "tree", "boat")


def bench_at(folder: Path, seed: int, items: int = 24) -> Path:
    """(P1, P2, N) without images: between captions and blindly, every model can be scored."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(items):
        a, b, c = rng.permutation(WORDS)[:3]
        texts = (f"a {a} near a {b}", f"there is a {a} next to the {b}", f"a {c} near a {b}" + " indeed" * (i % 3))
        made.append(Item(str(i), ("swap", "add")[i % 2], (), texts, ((True, True, False),)))
    save(from_items(folder.name, made), folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture(autouse=True)
def _cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(place / "cache"))
    monkeypatch.chdir(place)


BLIND = ("length", "length-chars", "surface", "negation", "frequency")


@pytest.fixture(scope="module")
def zoo(place: Path) -> Path:
    """12 models × 4 benchmarks: 5 blind rules, 5 tiny encoders, one with damaged weights, one not installed."""
    from creperie.testing.tiny import tiny_bert

    models = [f"blind:{name}" for name in BLIND]
    for seed in range(5):
        models.append(f"hf:{tiny_bert(place / f'bert{seed}', seed)}")
    damaged = tiny_bert(place / "damaged", 99)
    (weights,) = damaged.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    models[3:3] = [f"hf:{damaged}"]
    models[7:7] = ["st:pkg:no_such_weights"]
    benches = [bench_at(place / f"bench{k}", k) for k in range(4)]
    lines = ["models:", f"  - {{model: '{models[0]}', name: shortest, tags: {{family: blind}}}}"]
    lines += [f"  - '{m}'" for m in models[1:]]
    lines += ["benchmarks:", *(f"  - {b}" for b in benches[:-1]), f"  - {{bench: {benches[-1]}, name: last, limit: 5}}"]
    (place / "zoo.yaml").write_text("\n".join(lines), encoding="utf-8")
    return place / "zoo.yaml"


@pytest.fixture(scope="module")
def result(zoo: Path, place: Path) -> tuple[int, dict[str, Any], str]:
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    command = [sys.executable, "-m", "creperie", "score", str(zoo)]
    environment = {**os.environ, "CREPERIE_CACHE": str(place / "cache")}
    with subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("model 1 of 12") for line in process.stderr)
        process.send_signal(signal.SIGKILL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREPERIE_CACHE", str(place / "cache"))
        patch.chdir(place)
        patch.setattr("creperie.reporting.page.page_figures", lambda group: "")  # drawn in tests of their own
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as e:
            main(["score", str(zoo), "--table", "zoo.tex", "--site", "site", "--json"])
    return int(e.value.code or 0), json.loads(out.getvalue()), err.getvalue()


@pytest.mark.slow
def test_one_command_fills_10_by_4_cells(result: tuple[int, dict[str, Any], str], place: Path) -> None:
    code, document, err = result
    assert code == 2
    assert (document["cells"]["all"], document["cells"]["failed"]) == (48, 8)
    assert 4 <= document["cells"]["resumed"] < 40  # what was done before it was killed
    assert len(document["runs"]) == len(list((place / "runs").glob("*/scores.parquet"))) == 40
    why = {f["model"]: f["error"] for f in document["failed"]}
    assert len(why) == 2
    assert "no installed package 'no_such_weights'" in why["st:pkg:no_such_weights"]
    assert "damaged" in next(e for m, e in why.items() if m != "st:pkg:no_such_weights")
    assert "model 12 of 12, cell 48 of 48, 0.0 s left" in err
    assert err.index("cells stay empty: st:pkg:no_such_weights") < err.index("model 1 of 12")
    assert document["tags"] == {"blind:length": {"family": "blind"}}


@pytest.mark.slow
def test_the_same_command_writes_a_leaderboard_and_a_table(
    result: tuple[int, dict[str, Any], str], place: Path
) -> None:
    assert result[1]["written"] == ["zoo.tex", "site"]
    lines = (place / "zoo.tex").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.endswith(r"\\")][1:]
    assert len(rows) == 12
    assert any(line.startswith(r"\begin{tabular}{l") for line in lines[:4])
    width = rows[0].count(" & ")
    assert {row.count(" & ") for row in rows} == {width}
    blind, encoder, *failed = (
        next(row for row in rows if row.startswith(name)) for name in ("shortest", "hf:", "st:pkg:no")
    )
    assert "failed" not in blind + encoder  # a task that does not apply has not failed
    assert failed[0].count("failed") == width - 2
    assert sum("failed" in row for row in rows) == 2
    notes = [line for line in lines if line.startswith(r"\par")]
    assert sum(r"no\_such\_weights" in line or "damaged" in line for line in notes) == 2
    assert any(r"\textbf{" in row for row in rows)
    board = (place / "site" / "index.html").read_text(encoding="utf-8")
    assert {f"bench{k}" for k in range(3)} | {"last"} <= set(re.findall(r"\b(?:bench\d|last)\b", board))
    assert ">shortest</a>" in board  # the name that the zoo gives it
    assert "no installed package" in board  # a model that failed is not lost
    pages = {path.name for path in (place / "site").rglob("*.html")}
    assert pages == {"index.html", "matrix.html", "last.html", *(f"bench{k}.html" for k in range(3))}


@pytest.mark.slow
def test_the_table_has_ranks_groups_and_an_honest_mean(result: tuple[int, dict[str, Any], str]) -> None:
    ranked = result[1]["standings"]
    assert len(ranked["models"]) == 10
    assert {"shortest"} <= {m["model"] for m in ranked["models"]}
    assert "last" in {c["benchmark"] for c in ranked["columns"]}
    # blind rules have no vectors and encoders no blind score: nobody has all columns, so nobody has a mean
    assert all(m["mean"] is None for m in ranked["models"])
    column = next(c for c in ranked["columns"] if c["task"] == "blind")
    standings = column["models"].values()
    assert min(s["rank"] for s in standings) == 1
    best = max(standings, key=lambda s: s["accuracy"])
    assert best["rank"] == 1
    assert "a" in best["groups"]


@pytest.mark.slow
def test_a_second_call_takes_every_cell_from_the_folder(
    result: tuple[int, dict[str, Any], str], zoo: Path, command: Any
) -> None:
    code, out, err = command("score", zoo)
    assert code == 2
    assert "40 of 48 cells scored, 40 of them earlier" in out
    assert "shortest" in out
    assert re.search(r"creperie: hf:.*damaged on all benchmarks: ", err)


@pytest.mark.slow
def test_a_row_is_an_array_job(zoo: Path, place: Path, command: Any) -> None:
    code, _, _ = command("score", zoo, "--slurm", "array.sh", "--out", "elsewhere")
    script = (place / "array.sh").read_text(encoding="utf-8")
    assert code == 0
    assert "#SBATCH --array=1-12" in script
    assert subprocess.run(["bash", "-n", "array.sh"], check=False).returncode == 0
    code, out, _ = command("score", zoo, "--row", "2", "--out", "elsewhere", "--json")
    assert code == 0
    assert {run["model"] for run in json.loads(out)["runs"]} == {"blind:length-chars"}


@pytest.mark.slow
def test_fail_fast_stops_and_the_plan_says_what_cannot_run(zoo: Path, command: Any) -> None:
    code, out, err = command("score", zoo, "--fail-fast", "--out", "fast")
    assert (code, out) == (2, "")
    assert "no_such_weights" in err
    assert not Path("fast").exists()  # packages are checked before the first model is run
    code, out, _ = command("score", zoo, "--dry-run", "--json")
    plan = json.loads(out)
    assert code == 2
    assert (plan["cells"], len(plan["plan"]), len(plan["failed"])) == (48, 10, 2)
    assert plan["seconds"] == 0  # all of it is in the store


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("models: [a]\nbenches: [b]\n", ":2", "did you mean 'benchmarks'"),
        ("models: [a]\n", "", "has no benchmarks"),
        ("models:\n - a\n - a\nbenchmarks: [b]\n", ":3", "named twice"),
        ("models:\n - {model: a, dtpye: x}\nbenchmarks: [b]\n", ":2", "did you mean 'dtype'"),
        ("models: [a]\nbenchmarks:\n - {bench: b, limit: many}\n", ":3", "expected a number"),
        ("models: [a]\nbenchmarks: b\n", ":2", "is not a list"),
        ("- a\n", "", "is not a zoo"),
        ("models: [", ":1", "is not YAML"),
    ],
)
def test_mistakes_in_a_zoo_name_the_line(place: Path, text: str, where: str, says: str) -> None:
    (place / "wrong.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(CreperieError) as e:
        read_zoo(place / "wrong.yaml")
    assert f"wrong.yaml{where}" in str(e.value)
    assert says in str(e.value)


def test_what_does_not_fit_costs_only_its_own_place(place: Path, command: Any) -> None:
    """A task that a model cannot do, a mistyped benchmark, several models after one flag, a share of the items."""
    bench = bench_at(place / "own", 7)
    lines = ["models: ['blind:length', 'blind:negation']", f"benchmarks: [{bench}, {bench}w]"]
    lines += ["defaults: {tasks: [itt, blind], limit: 0.5}"]
    (place / "habits.yaml").write_text("\n".join(lines), encoding="utf-8")
    code, out, err = command("score", "habits.yaml", "--out", place / "habits", "--json")
    document = json.loads(out)
    assert (code, [f["benchmark"] for f in document["failed"]]) == (2, [f"{bench}w"])
    assert "its column is left out" in err
    assert [(r["tasks"], r["results"][0]["n"]) for r in document["runs"]] == [(["blind"], 6)] * 2
    assert "run" not in document
    code, _, err = command("score", bench, "-m", "blind:length,blind:negation")
    assert (code, "repeat --model" in err) == (2, True)
    assert "neither a number of items nor a share" in command("score", bench, "-m", "blind:length", "--limit", 1.5)[2]


def test_groups_share_a_letter_exactly_when_nothing_tells_them_apart() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 8))
        differ = np.triu(rng.random((n, n)) < 0.4, 1)
        differ |= differ.T
        letters = letter_groups(rng.random(n).tolist(), differ)
        for a in range(n):
            for b in range(a):
                assert bool(set(letters[a]) & set(letters[b])) is not bool(differ[a, b])


@pytest.mark.slow
def test_ranks_agree_with_pairwise_tests(result: tuple[int, dict[str, Any], str], place: Path) -> None:
    """`compare` tests each pair by itself; ranks come from one bootstrap for all."""
    from creperie.scoring import compare

    runs = [load_run(p) for p in sorted((place / "runs").glob("bench0.blind*"))]
    column = next(c for c in rank_runs(runs).columns if c.task == "blind")
    rows = [r.comparison for r in compare(runs, tasks=["blind"]).rows if r.subset == "all"]
    assert len(rows) == 10
    for row in rows:
        a, b = column.models[row.a], column.models[row.b]
        if row.p * len(rows) < 0.03:
            assert not set(a.groups) & set(b.groups)
        elif row.p > 0.07:
            assert set(a.groups) & set(b.groups)


@pytest.mark.slow
def test_a_matrix_on_ray_gives_the_same_results(place: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("ray")
    from creperie.testing.tiny import tiny_bert

    good, damaged = tiny_bert(place / "ray-bert", 3), tiny_bert(place / "ray-damaged", 4)
    (weights,) = damaged.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    listed = {"models": [f"hf:{good}", f"hf:{damaged}"], "benchmarks": [str(bench_at(place / "asked", 30))]}
    (place / "ray.yaml").write_text(json.dumps(listed), encoding="utf-8")
    found, threads = {}, torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker of Ray has: sums over several threads have other last bits
    for engine in ("ray", "local"):
        monkeypatch.setenv("CREPERIE_CACHE", str(place / f"cache-{engine}"))
        words = ("ray.yaml", "--engine", engine, "--workers", "1", "--out", engine, "--json")
        code, out, _ = command("score", *words)
        assert (code, json.loads(out)["cells"]) == (2, {"all": 2, "failed": 1, "resumed": 0})
        runs = [load_run(run) for run in (place / engine).glob("*/run.json")]
        found[engine] = {r.name: r.table.to_pydict() for r in runs}
    torch.set_num_threads(threads)
    assert found["ray"] == found["local"]  # every score, to the bit
    assert len(found["ray"]) == 1
