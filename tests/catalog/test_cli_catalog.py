"""`creperie data list` and `creperie data get`, as a user types them."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import catalog_entries, find_entry
from creperie.bench.catalog.entries import File

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(command: Run, home: Path) -> Run:
    def call(*args: str) -> tuple[int, str, str]:
        code, out, err = command("data", *args)
        return code, re.sub(r"\x1b\[[0-9;]*m", "", out), err  # bold headers

    return call


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make rich believe in a terminal of 100 columns, without colours."""
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("view", [[], ["--taxonomy"], ["--long"]])
def test_the_list_fits_a_terminal(view: list[str], run: Run) -> None:
    code, out, err = run("list", *view)
    assert (code, err) == (0, "")
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 100
    for entry in catalog_entries():
        assert entry.name in out


@pytest.mark.usefixtures("terminal")
def test_a_row_says_size_licence_chance_and_whether_it_is_here(run: Run) -> None:
    _, out, _ = run("list")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["sugarcrepe"] == ["sugarcrepe", "7,511", "MIT", "50", "get"]
    assert rows["winoground"][1:] == ["400", "research", "only", "25,", "25,", "16.7", "own"]
    assert "sugarcrepe++" in out.split("Formats to read as FORMAT:PATH:")[1]


def test_json_has_every_field_of_every_benchmark(run: Run) -> None:
    code, out, _ = run("list", "--json")
    document = json.loads(out)
    assert code == 0
    rows = {b["name"]: b for b in document["benchmarks"]}
    assert list(rows) == [e.name for e in catalog_entries()]
    scpp = rows["sugarcrepe++"]
    assert (scpp["items"], scpp["chance"], scpp["installed"]) == (4757, {"itt": 0.3333, "tot": 0.3333}, None)
    assert scpp["source"]["commit"] == "c083bbf"
    assert rows["winoground"]["taxonomy"]["property"] == {
        "prerequisite": ["word order"],
        "effect": ["differentiation"],
    }
    assert rows["crepe-productivity"]["source"]["fetched_from"] != rows["crepe-productivity"]["source"]["repository"]
    assert "valse" in {f["name"] for f in document["formats"]}


def test_one_benchmark_in_full(run: Run) -> None:
    code, out, _ = run("list", "vg_relation")
    assert code == 0
    assert out.startswith("ARO, Visual Genome Relation (aro-vg-relation)\n")
    assert "prerequisite (word order); effect (differentiation)" in out
    assert "~23,937 (as the authors state)" in out
    assert "81fdd20" in out


@pytest.mark.parametrize("word", ["list", "get"])
def test_a_wrong_name_is_one_line_and_exit_2(word: str, run: Run) -> None:
    code, out, err = run(word, "winogrund")
    assert (code, out) == (2, "")
    assert err.startswith("creperie: unknown benchmark 'winogrund'; did you mean 'winoground'?")
    assert err.count("\n") == 1


def test_a_gated_set_is_one_line_and_exit_2(run: Run) -> None:
    code, _, err = run("get", "winoground")
    assert code == 2
    assert err.startswith("creperie: winoground: Winoground cannot be fetched automatically; accept the conditions at")
    assert err.count("\n") == 1


def test_a_removed_option_says_what_to_use(run: Run) -> None:
    code, _, err = run("get", "sugarcrepe", "--no-images")
    assert (code, err) == (2, "creperie: `creperie data get --no-images` was removed; pass --images none\n")


def test_a_dry_run_says_how_much(run: Run, home: Path) -> None:
    code, out, _ = run("get", "sugarcrepe", "--dry-run")
    assert code == 0
    assert out.startswith("sugarcrepe: 7 files to fetch (1.7 MB)\nimages: at most 1,560 to fetch, about 254.3 MB\n")
    assert "https://raw.githubusercontent.com/RAIVNLab/sugar-crepe/0047054" in out
    _, out, _ = run("get", "sugarcrepe", "--dry-run", "--images", "none", "--json")
    assert json.loads(out)["plan"]["images"] == 0
    assert not home.exists()


@pytest.fixture
def served(site: Any, jpeg: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A catalog whose SugarCrepe is one file of two items, on the server with one of its two images."""
    records = {
        str(i): {"filename": f"{i:012d}.jpg", "caption": f"dog {i}", "negative_caption": f"cat {i}"} for i in (1, 2)
    }
    site.files["/raw.example.org/swap_obj.json"] = json.dumps(records).encode()
    site.files["/images.cocodataset.org/val2017/000000000001.jpg"] = jpeg(1)
    entry = replace(
        find_entry("sugarcrepe"), files=(File(("https://raw.example.org/swap_obj.json",), "swap_obj.json"),)
    )
    module = importlib.import_module("creperie.bench.catalog.entries")
    monkeypatch.setattr(module, "_catalog", lambda: {"sugarcrepe": entry})
    return site


def test_get_tells_what_is_missing_and_exits_1(served: Any, run: Run, home: Path) -> None:
    code, out, _ = run("get", "sugarcrepe", "--mirror", served.url)
    assert code == 1
    assert f"SugarCrepe: 2 items in 1 subset, in {home / 'data' / 'sugarcrepe'}" in out
    size = len(served.files["/raw.example.org/swap_obj.json"])
    assert f"text: 1 file, {size} bytes, no checksum known" in out
    assert "images: 1 of 2 here, 1 fetched now" in out
    assert "missing: 000000000002.jpg (the server answered 404 Not Found), needed by 1 item" in out


def test_get_json_is_one_document(served: Any, run: Run) -> None:
    code, out, _ = run("get", "sugarcrepe", "--mirror", served.url, "--json")
    document = json.loads(out)
    assert code == 1
    assert (document["items"], document["subsets"]) == (2, {"swap_obj": 2})
    assert document["images"] == {"needed": 2, "here": 1, "fetched": 1}
    assert document["missing"][0]["items"] == ["swap_obj/2"]
    assert document["files"][0]["pinned"] is False


def test_after_get_the_list_says_yes(served: Any, run: Run, home: Path) -> None:
    assert run("get", "sugarcrepe", "--mirror", served.url, "--images", "none")[0] == 0
    _, out, _ = run("list")
    assert next(line for line in out.splitlines() if line.startswith("sugarcrepe ")).split()[-1] == "yes"
    _, out, _ = run("list", "sugarcrepe", "--json")
    assert json.loads(out)["benchmarks"][0]["installed"] == str(home / "data" / "sugarcrepe")
