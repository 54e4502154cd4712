"""`creperie refine`, end to end, on benchmarks whose cues are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from foils import foil_bench

from creperie.auditing import grouped_folds, pairs_of
from creperie.bench import Item, choice, from_items, load
from creperie.core import CreperieError
from creperie.refining import RefinePlan, refine

QUICK = "length-chars,frequency"  #: held-out attackers that need no training


@pytest.fixture
def refined(command: Any) -> Callable[..., dict[str, Any]]:
    """Refine a benchmark; the document."""

    def run(*args: object) -> dict[str, Any]:
        code, out, _ = command("refine", *args, "--json")
        document = json.loads(out)
        assert isinstance(document, dict)
        assert code == document["code"]
        return document

    return run


def test_json_holds_what_scripts_rely_on(saved: Callable[..., Path], tmp_path: Path, refined: Any) -> None:
    out = tmp_path / "out"
    args = ("--method", "grid", "--attackers", "length-words,surface", "--held-out", QUICK, "--seed", "0")
    found = refined(saved(period=0.9), *args, "--out", out)
    assert found["kept"] + found["removed"] == 401
    assert [found[k] for k in ("method", "seed", "bins", "repair", "together")] == ["grid", 0, 50, False, False]
    assert found["input_hash"] != found["hash"] == load(out).hash
    assert [c["after"] for c in found["parts"][0]["curve"]] == ["all", "+ length-words", "+ surface"]
    assert found["reasons"]["unsolvable"]["meaning"]
    assert found["subsets"] == {"planted": found["kept"]}
    by_name = {a["name"]: a for a in found["attackers"]}
    assert [a["held_out"] for a in found["attackers"]] == [False, False, True, True]
    assert by_name["surface"]["before"] > 0.65
    assert by_name["surface"]["before_low"] > 0.6
    assert abs(by_name["surface"]["after"] - 0.5) < 0.1
    assert by_name["surface"]["leaks"] == []
    assert sum(r["items"] for r in found["reasons"].values()) == found["removed"]
    assert found["folder"] == str(out)


def test_every_item_is_kept_or_removed_with_a_reason(saved: Callable[..., Path], tmp_path: Path, refined: Any) -> None:
    folder, out = saved(period=0.8), tmp_path / "out"
    found = refined(folder, "--method", "optimal", "--held-out", QUICK, "--out", out)
    kept = [item.id for item in load(out)]
    removed = pq.read_table(out / "removed.parquet").to_pylist()
    everything = [item.id for item in load(folder)]
    assert sorted(kept + [r["id"] for r in removed]) == sorted(everything)
    assert kept == [i for i in everything if i in set(kept)]  # in their order
    reasons = {r["id"]: r["reason"] for r in removed}
    assert reasons.pop("bad") == "unsolvable"
    assert set(reasons.values()) == {"balance"}
    assert all(r["why"] for r in removed)
    step = load(out).provenance[-1]
    assert (step.op, step.args["method"], step.args["kept"]) == ("refine", "optimal", found["kept"])
    assert [step.args[k] for k in ("bins", "together", "threshold", "p_value", "time_limit")] == [
        10, False, None, None, 60
    ]  # fmt: skip
    assert sum(step.args["removed"].values()) == found["removed"]
    assert json.loads((out / "refine.json").read_text())["kept"] == found["kept"]


def signs(folder: Path) -> tuple[int, int]:
    """#(a final period on the false caption alone), #(on the true one alone)."""
    items = [item for item in load(folder) if item.captions[0].endswith(".") != item.captions[1].endswith(".")]
    on_false = sum(item.captions[1].endswith(".") for item in items)
    return on_false, len(items) - on_false


@pytest.mark.parametrize("method", ["grid", "optimal"])
def test_cues_balance_to_the_item(method: str, saved: Callable[..., Path], tmp_path: Path, refined: Any) -> None:
    folder = saved(period=0.9)
    before = signs(folder)
    assert before[0] > 3 * before[1]
    refined(folder, "--method", method, "--attackers", "surface", "--held-out", QUICK, "--out", tmp_path / "o")
    on_false, on_true = signs(tmp_path / "o")
    assert on_false == on_true == before[1]


def test_optimal_keeps_at_least_what_the_grid_keeps(saved: Callable[..., Path], refined: Any) -> None:
    folder = saved(period=0.8)
    how = ("--attackers", "length-chars,surface,frequency", "--held-out", "rarity", "--dry-run", "--bins", 10)
    by_grid = refined(folder, "--method", "grid", *how)
    by_programme = refined(folder, "--method", "optimal", *how)
    assert by_programme["kept"] >= by_grid["kept"]
    assert by_programme["parts"][0]["kept"] <= by_programme["parts"][0]["bound"]


def test_the_seed_decides(saved: Callable[..., Path], tmp_path: Path, refined: Any) -> None:
    folder = saved(period=0.9)
    how = ("--attackers", "surface", "--held-out", QUICK)
    hashes = [
        refined(folder, *how, "--seed", seed, "--out", tmp_path / f"{k}")["hash"] for k, seed in enumerate((3, 3, 4))
    ]
    assert hashes[0] == hashes[1] != hashes[2]
    assert hashes[0] == load(tmp_path / "0").hash


def test_repair_mends_style_and_then_nothing_has_to_go(
    saved: Callable[..., Path], tmp_path: Path, refined: Any
) -> None:
    how = ("--attackers", "surface", "--held-out", QUICK, "--repair", "--out", tmp_path / "out")
    found = refined(saved(period=0.9), *how)
    assert found["kept"] == 400
    surface = found["attackers"][0]
    assert surface["before"] > 0.65
    assert surface["repaired"] == 0.5
    assert all(c.endswith(".") for item in load(tmp_path / "out") for c in item.captions)
    assert [s.op for s in load(tmp_path / "out").provenance[-2:]] == ["repair", "refine"]


def test_a_cue_that_is_always_there_is_structural(
    saved: Callable[..., Path], tmp_path: Path, refined: Any, command: Any
) -> None:
    folder = saved(longer=True)
    how = ("--attackers", "length-words", "--held-out", QUICK)
    found = refined(folder, *how, "--out", tmp_path / "out")
    assert (found["kept"], found["verdict"], found["code"]) == (0, "nothing left", 1)
    assert [(s["subset"], s["attacker"], s["share"]) for s in found["structural"]] == [("planted", "length-words", 0.0)]
    assert not (tmp_path / "out").exists()
    code, text, _ = command("refine", folder, *how, "--dry-run")
    assert code == 1
    assert "structural" in text
    assert "foils of the same length" in text


def test_nothing_is_not_less_than_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A bound of -0.0 from the solver was shown as "-0"."""
    from types import SimpleNamespace as Made

    from creperie.cli.refine import _subsets

    choice = Made(selection=Made(bound=-0.0, proven=True), curve=[("length-words", 0)])
    _subsets(Made(outcomes=[Made(name="neg", items=100, kept=0, choice=choice)]))  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["neg", "100", "0", "0.0", "0"]


def test_syntaxbias_names_its_test(saved: Callable[..., Path], tmp_path: Path, refined: Any) -> None:
    how = ("--method", "syntaxbias", "--attackers", "surface", "--held-out", QUICK, "--out", tmp_path / "out")
    found = refined(saved(period=0.9), *how, "--threshold", -0.2)
    part = found["parts"][0]
    assert "sign test" in part["test"]
    assert part["balanced"] is False  # the model prefers the foils of what stays
    assert (found["verdict"], found["code"]) == ("leaks", 1)
    assert part["threshold"] == -0.2
    assert part["p"] < 0.05 == part["p_limit"]
    assert part["accuracy_low"] <= part["accuracy"] < part["accuracy_high"] < 0.5
    assert [c["after"] for c in part["curve"]] == ["all", "score ≤ -0.2000"]
    assert set(found["reasons"]) == {"unsolvable", "likelihood"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--out", "x", "--attackers", "lenght-words"], "did you mean 'length-words'"),
        ([], "pass --out DIR"),
        (["--rotate"], "`creperie refine --rotate` was removed"),
        (["--dry-run", "--threshold", "0.1"], "syntaxbias"),
        (["--dry-run", "--method", "syntaxbias"], "--lm"),
        (["--dry-run", "--attackers", "learned-embedding"], "--encoder"),
        (["--dry-run", "--bins", "0"], "--bins 0 is out of range"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(args: list[str], said: str, saved: Callable[..., Path], command: Any) -> None:
    code, _, line = command("refine", saved(n=20), "--held-out", QUICK, *args)
    assert code == 2
    assert said in line
    assert line.count("\n") == 1


def test_a_folder_that_is_there_stays_as_it_is(saved: Callable[..., Path], tmp_path: Path, command: Any) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert command("refine", saved(n=20), "--held-out", QUICK, "--out", tmp_path / "out")[0] == 2
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_two_image_items_stay(tmp_path: Path, refined: Any) -> None:
    from creperie.bench import PAIRED, from_items, save

    items = [
        Item(str(i), "s", (f"{i}a", f"{i}b"), (f"A dog {i}", f"A much longer cat {i}."), PAIRED) for i in range(30)
    ]
    save(from_items("paired", items), tmp_path / "b")
    found = refined(tmp_path / "b", "--held-out", QUICK, "--dry-run")
    assert found["kept"] == 30
    assert all(a["before"] == a["after"] == 0.5 for a in found["attackers"])


def test_the_python_api_takes_specs_and_plain_names(saved: Callable[..., Path]) -> None:
    import creperie

    folder = saved(period=0.9)
    for bench in (folder, str(folder)):
        found = creperie.refine(bench, method="optimal", attackers="surface", held_out=["length-words"], seed=1)
        assert [(s.name, s.held_out) for s in found.standings] == [("surface", False), ("length-words", True)]
    assert repr(found).startswith("Refined(")
    assert "<td>surface</td><td></td>" in found._repr_html_()
    frame = found.to_pandas()
    assert {"attacker", "stage", "accuracy"} <= set(frame.columns)
    options = RefinePlan(method="grid", audit=False)
    assert creperie.refine(folder, plan=options, attackers="surface").plan == replace(options, attackers=("surface",))
    with pytest.raises(CreperieError, match="unknown keyword of refine 'metod'; did you mean 'method'"):
        creperie.refine(folder, metod="grid")


def test_what_is_learned_is_judged_by_attackers_trained_on_the_other_refined_half() -> None:
    """Roles mean nothing here, and half the items are chosen by the answers of an attacker trained on them: judged by
    the same answers it is surely wrong (or right); trained on the other half it is at chance."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(60)]
    items = []
    for i in range(240):
        one, two = rng.choice(words, 5, replace=False), rng.choice(words, 5, replace=False)
        items.append(Item(str(i), "s", (f"{i}.jpg",), (" ".join(one), " ".join(two)), choice(1, 1)))
    found = refine(
        from_items("random", items),
        method="optimal",
        attackers=["learned-linear"],
        held_out=["length-words"],
        audit=False,
    )
    standing = next(s for s in found.standings if s.name == "learned-linear")
    assert {"s", "all"} <= standing.after.keys()
    assert standing.after["all"].n == len(found.bench)
    assert standing.after["all"].low <= 0.5 <= standing.after["all"].high


def test_halves_share_no_image_and_no_caption() -> None:
    items = [
        Item(str(i), "s", (f"{i // 2}.jpg",), (f"a {i % 7} b {i}", f"c {i % 5} d {i // 3}"), choice(1, 1))
        for i in range(60)
    ]
    pairs = pairs_of(from_items("b", items))
    half = grouped_folds(pairs.group, 2, 1)
    texts = [{t for i in np.flatnonzero(half == h) for t in items[i].captions} for h in (0, 1)]
    assert not texts[0] & texts[1]


def test_where_hardly_anything_is_left_the_foils_are_written_again_from_the_source(
    tmp_path: Path, refined: Any
) -> None:
    """2 of 300 items: no more items from two captions."""
    from creperie.bench import save

    pairs = [(f"A dog by tree {i}.", f"A dog by tree {i} {'now and then' if i > 1 else 'there'}.") for i in range(300)]
    pairs[:2] = [(f"A {a} dog.", f"A {b} dog.") for a, b in (("red", "big"), ("tan", "old"))]
    save(foil_bench(pairs, images="{}.jpg"), tmp_path / "b")
    args = ("--method", "optimal", "--attackers", "length-words", "--held-out", "negation")
    found = refined(tmp_path / "b", *args, "--out", tmp_path / "out")
    assert (found["kept"], found["verdict"]) == (2, "not shown")
    assert found["next"].startswith(f"creperie make rules:replace --captions {tmp_path / 'b'} --foils 8")
