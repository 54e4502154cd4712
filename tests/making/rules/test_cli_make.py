"""`creperie make` as a script uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from creperie.bench import load


@pytest.fixture
def make(command: Any) -> Any:
    return partial(command, "make")


@pytest.fixture
def captions(tmp_path: Path, parser: str, dictionary: None) -> str:
    file = tmp_path / "captions.txt"
    file.write_text("A player hits a ball.\n\nA dog sleeps.\n")
    return str(file)


def test_a_preview_shows_candidates_and_writes_nothing(captions: str, make: Any, tmp_path: Path) -> None:
    code, out, _ = make("grammar:passive", "--captions", captions, "--limit", "2", "--show", "--json", "--as-published")
    document: dict[str, Any] = json.loads(out)
    assert code == 0
    assert (document["made"], document["rejected"], document["reasons"], document["calls"]) == (6, 0, {}, 0)
    assert document["skipped"] == {"empty": 1}
    first = document["candidates"][0]
    wanted = {
        "source": "A player hits a ball.",
        "text": "A ball is hit by a player.",
        "role": "positive",
        "kind": "passive",
    }
    assert wanted.items() <= first.items()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["captions.txt"]


def test_a_folder_is_written_with_all_that_happened(captions: str, make: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, _ = make("grammar:passive", "--captions", captions, "--out", out, "--seed", "7", "--as-published")
    assert code == 0
    assert "skipped: empty" in shown
    bench = load(out)
    assert bench.subsets == {"passive": 1, "passive-simplified": 1}
    assert bench.provenance[-1].args["settings"]["seed"] == 7
    rows = pq.read_table(out / "candidates.parquet").to_pylist()
    assert [r["status"] for r in rows] == ["made"] * 6 + ["skipped"] * 2
    code, _, err = make("grammar:passive", "--captions", captions, "--out", out)
    assert (code, "not empty" in err) == (2, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["grammar:pasive", "--show"], "did you mean 'grammar:passive'"),
        (["grammar:passive"], "--out"),
        (["grammar:passive", "--show", "--parser", "en_none"], "'en_none' is not installed"),
    ],
)
def test_mistakes_are_told_in_one_line(args: list[str], words: str, captions: str, make: Any) -> None:
    code, out, err = make(*args, "--captions", captions)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_where_nothing_comes_out_it_is_told_why_and_what_to_do(captions: str, make: Any) -> None:
    code, out, _ = make("rules:swap", "--captions", captions, "--limit", "5", "--show")
    assert code == 3
    assert "no two things that could change places" in out
    assert "creperie make all" in out
    assert "rules do not vouch for" in " ".join(out.split())


def test_all_kinds_are_made_with_reasons_for_those_that_are_not(captions: str, make: Any, tmp_path: Path) -> None:
    Path(captions).write_text("A goat chases a girl.\nA man eats a chip.\nA red cup stands on a blue table.\n")
    code, out, _ = make("all", "--captions", captions, "--show", "--json")
    document = json.loads(out)
    assert code == 0
    rows = document["candidates"]
    made = {(c["source"], c["kind"]): c["text"] for c in rows if "text" in c}
    assert made["A goat chases a girl.", "swap-object"] == "A girl chases a goat."
    assert made["A red cup stands on a blue table.", "swap-attribute"] == "A blue cup stands on a red table."
    why = {(c["source"], c["kind"]): c["missing"] for c in rows if "missing" in c}
    assert "roles cannot be exchanged" in why["A man eats a chip.", "grammar:passive"]
    folder = tmp_path / "all"
    assert make("all", "--captions", captions, "--out", folder)[0] == 0
    items = {(i.id, i.subset): i for i in load(folder)}
    assert items["2", "passive"].captions == ("A man eats a chip.", "A chip is eaten by a man.")
    assert items["2", "passive"].match == ((True, True),)  # a second positive, no foil
    assert len(items["1", "passive"].negatives) == 2


def test_a_missing_file_is_told(make: Any, tmp_path: Path) -> None:
    code, _, err = make("rules:swap", "--captions", tmp_path / "none.txt", "--show")
    assert code == 2
    assert "none.txt" in err


def test_missing_wordnet_is_told_with_the_way_to_get_it(
    captions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    from creperie.lang import open_wordnet

    monkeypatch.setenv("CREPERIE_WORDNET", str(tmp_path))
    open_wordnet.cache_clear()
    try:
        code, _, err = make("rules:replace", "--captions", captions, "--show")
    finally:
        open_wordnet.cache_clear()
    assert code == 2
    assert "apt-get install wordnet-base" in err


@pytest.mark.slow
def test_killed_and_started_again_it_loses_and_doubles_nothing(
    tmp_path: Path, parser: str, dictionary: None, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "captions.txt"
    file.write_text(
        "".join(f"A {c} dog chases a white cat over {n} fences.\n" for n in range(2, 42) for c in ("black", "brown"))
    )
    small = "from creperie.making.pipeline import Maker; Maker.chunk = 20; from creperie.cli import main; main()"
    monkeypatch.setattr("creperie.making.pipeline.Maker.chunk", 20)
    words = ["rules:swap", "--captions", str(file), "--workers", "1"]
    out, parts = tmp_path / "out", tmp_path / ".out.making"
    start = [sys.executable, "-c", small, "make", *words, "--out", str(out)]
    process = subprocess.Popen(start, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(parts.glob("part-*.parquet")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    kept = {p.name: p.read_bytes() for p in parts.glob("part-*.parquet")}
    assert 0 < len(kept) < 4
    assert not out.exists()
    for folder in (out, tmp_path / "whole"):
        code, _, said = make(*words, "--out", folder)
        assert code == 0, said
    first, second = (pq.read_table(f / "candidates.parquet") for f in (out, tmp_path / "whole"))
    assert first.equals(second)
    assert load(out).hash == load(tmp_path / "whole").hash
    assert not parts.exists()


def test_a_contact_sheet_shows_what_was_made(tmp_path: Path, parser: str, dictionary: None, make: Any) -> None:
    captions, page = tmp_path / "captions.txt", tmp_path / "sheet.html"
    captions.write_text("A dog chases a cat.\nA dog sleeps.\nA cat watches a dog & a cow.\n")
    code, _, err = make("rules:swap", "--captions", captions, "--sample", "3", "--html", page)
    assert code == 0, err
    text = page.read_text()
    assert re.sub(r"</?mark>", "", text).count("A cat chases a dog.") == 1
    assert "<mark>" in text
    assert "Made(" not in text
    assert "<h1>Foils and positives by rules:swap</h1>" in text
    assert "lm gap" in text
    assert re.search("A dog sleeps.</td><td>swap-object: no two things", text)
    assert "<mark>A dog sleeps" not in text


def test_why_nothing_was_made_is_written_and_names_the_words(tmp_path: Path, parser: str, make: Any) -> None:
    captions, out = tmp_path / "captions.txt", tmp_path / "out"
    captions.write_text("A woman hugs a man.\nA cup is on a table.\nA dog chases a cat.\n")
    _, text, _ = make("rules:swap", "--captions", captions, "--out", out, "--json")
    nothing = {row["source"]: row["why"] for row in json.loads(text)["nothing"]}
    assert "*woman* and *man* could change places, but it holds both ways" in nothing["A woman hugs a man."]
    assert "*cup* and *table* could change places" in nothing["A cup is on a table."]
    assert len(nothing) == 2
    rows = pq.read_table(out / "candidates.parquet").to_pylist()
    why = [r["reason"] for r in rows if r["source_text"] == "A cup is on a table." and r["status"] == "missing"]
    assert any("*cup* and *table* could change places" in reason for reason in why)
    _, text, _ = make("rules:swap", "--captions", captions, "--show", "--plausible", "no", "--json")
    made = [c["text"] for c in json.loads(text)["candidates"] if c["kind"] == "swap-absurd" and "text" in c]
    assert made == ["A table is on a cup."]
