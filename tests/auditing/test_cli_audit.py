"""`creperie audit` as scripts and people meet it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from foils import foil_bench

from creperie.bench import Benchmark, save

Planted = Callable[..., Benchmark]


@pytest.fixture
def audit(command: Any) -> Any:
    return partial(command, "audit")


@pytest.fixture
def leaky(tmp_path: Path, planted: Planted) -> str:
    bench = planted(lambda true, false, rng: (true, false[:-1] + " <b>over</b> there.  "), 60)
    save(bench, tmp_path / "leaky")
    return str(tmp_path / "leaky")


@pytest.fixture
def fair(tmp_path: Path, planted: Planted) -> str:
    save(planted(lambda true, false, rng: (true, false), 12), tmp_path / "fair")
    return str(tmp_path / "fair")


def test_json_contract_and_exit_code_of_a_leak(audit: Any, leaky: str) -> None:
    code, out, _ = audit(leaky, "--attackers", "length-words,surface", "--json")
    found = json.loads(out)
    assert (code, found["verdict"]) == (1, "leaks")
    row = next(r for r in found["results"] if (r["subset"], r["attacker"]) == ("planted", "length-words"))
    assert (row["n"], row["accuracy"], row["ties"], row["fix"]) == (60, 1.0, 0, "structural")
    assert row["low"] <= row["accuracy"] <= row["high"]
    assert {"raw", "direction", "bits", "p", "p_holm", "leaks", "kept", "chance"} <= row.keys()
    assert {r["subset"] for r in found["results"]} == {"planted", "all"}
    assert found["subsets"][0]["through"][0]["choice"] == "the caption with fewer words"
    assert {"cue", "positives", "negatives", "example"} <= found["cues"]["planted"][0].keys()
    assert found["likeness"][0]["couples"]["P1-N"]["levenshtein"]["n"] == 60
    assert len(found["gaps"]["planted"]["length-words"]["histogram"]) == 20


def test_text_names_the_cue(audit: Any, leaky: str) -> None:
    code, out, _ = audit(leaky, "--attackers", "length-words,negation")
    assert code == 1
    assert "verdict: leaks through length-words (100.0 %, structural)" in out
    assert re.search(r"planted\s+60\s+100\.0\*\s+50\.0", out)
    assert re.search(r"“.*\b(over|there)\b.*”\s+0\s+60", out)


@pytest.mark.slow
def test_plus_adds_to_the_standard_battery(audit: Any, leaky: str) -> None:
    _, out, _ = audit(leaky, "--attackers", "+length-tokens", "--json")
    names = [a["name"] for a in json.loads(out)["attackers"]]
    assert {"length-words", "learned", "length-tokens"} <= set(names)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--attackers", "lenght-words"), "unknown attacker 'lenght-words'; did you mean 'length-words'?"),
        (("--attackers", "lm-mean", "--lm", "none"), "needs a language model; pass --lm"),
        (("--threshold", "0.3"), "--threshold 0.3 is out of range; choose 0.5"),
        (("--subset", "nope"), "unknown subset 'nope'"),
    ],
)
def test_mistakes_are_one_line(audit: Any, fair: str, args: tuple[str, ...], said: str) -> None:
    code, out, err = audit(fair, *args)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_three_benchmarks_are_too_many(audit: Any, fair: str) -> None:
    code, _, err = audit(fair, fair, fair)
    assert (code, err.strip()) == (2, "creperie: expected one or two benchmarks, got 3; audit one, or compare two")


class Tags(HTMLParser):
    """Which tags a page opens, whether all are closed, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        named = [value or "" for name, value in attrs if name in ("src", "href", "action")]
        self.fetched += [value for value in named if not value.startswith(("#", "data:"))]
        if tag not in ("meta", "link", "br", "rect", "line", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line"):
            assert self.open.pop() == tag


def test_the_page_stands_alone_and_escapes(audit: Any, leaky: str, tmp_path: Path) -> None:
    path = tmp_path / "out" / "audit.html"
    audit(leaky, "--attackers", "length-words,surface", "--html", path)
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert tags.fetched == []
    assert "default-src 'none'; script-src 'sha256-" in text
    assert "unsafe" not in text
    assert ' style="' not in text
    assert "url(" not in text
    assert "<b>over</b>" not in text
    assert "&lt;b&gt;" in text
    assert "␣␣" in text
    assert "color-scheme: light dark" in text
    assert text.index("<strong>Yes</strong>") < text.index("Leaks") < text.index("Blind accuracy")  # the answer first


def pair_bench(name: str, foils: list[str], folder: Path) -> str:
    sources = [f"A dog number {i} sleeps." for i in range(len(foils))]
    save(foil_bench(zip(sources, foils), name, subset="swap_obj", images="{}"), folder / name)
    return str(folder / name)


def test_two_benchmarks_are_compared_pairwise(audit: Any, tmp_path: Path) -> None:
    worse = pair_bench("worse", ["one two three", "one two", "one"], tmp_path)
    better = pair_bench("better", ["one", "one two", "one two", "extra"], tmp_path)
    code, out, _ = audit(worse, better, "--attackers", "length-words", "--json")
    (row,) = json.loads(out)["results"]
    assert code == 0
    assert (row["kind"], row["attacker"], row["n"], row["ties"]) == ("swap", "length-words", 3, 1)
    assert (row["first"], row["second"]) == (pytest.approx(-2.0), pytest.approx(-5 / 3))
    assert row["better"] == pytest.approx(0.5)  # one better, one equal, one worse


def test_benchmarks_of_different_captions_cannot_be_compared(audit: Any, tmp_path: Path, fair: str) -> None:
    other = pair_bench("other", ["one"], tmp_path)
    code, _, err = audit(fair, other, "--attackers", "length-words")
    assert code == 2
    assert "share no true caption" in err


def test_the_atlas_puts_audits_on_one_page(audit: Any, command: Any, leaky: str, tmp_path: Path) -> None:
    """Every figure of the page is one of the document's; what leaks is starred, the simplest cue is named."""
    _, out, _ = audit(leaky, "--attackers", "length-words,length-chars,surface", "--json")
    (tmp_path / "a.json").write_text(out)
    written = ["--out", tmp_path / "a.md", "--html", tmp_path / "a.html"]
    assert command("atlas", tmp_path / "a.json", *written)[0] == 0
    page = (tmp_path / "a.md").read_text(encoding="utf-8")
    assert "| subset | n | length | style | single cues | verdict | fix | simplest cue | bits |" in page
    low = next(r["low"] for r in json.loads(out)["results"] if r["attacker"] == "length-words")
    assert re.search(rf"\| planted \| 60 \| 100\.0\* \[{100 * low:.1f}, 100\.0\] \|.*leaks \| structural", page)
    assert f"creperie audit {leaky} --attackers length-words,length-chars,surface" in page
    tags = Tags()
    tags.feed((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert (tags.open, tags.fetched) == ([], [])
    second = json.loads(out)  # with slow attackers, which were asked about a sample
    row = {**second["results"][0], "n": 30, "accuracy": 0.987}
    second["results"] = [*second["results"], {**row, "attacker": "ensemble"}, {**row, "attacker": "lm-mean"}]
    (tmp_path / "c.json").write_text(json.dumps(second))
    command("atlas", tmp_path / "c.json", "--out", tmp_path / "c.md", "--html", tmp_path / "c.html")
    page = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "\n1 benchmarks, 60 items; 1 leak." in page
    assert (
        "| subset | n | ensemble | length | style | single cues | language model | verdict |" in page
    )  # the headline first
    assert re.search(r"\| planted \| 60 \| 98\.7\* \[[\d., ]+\] n = 30 \| 100\.0\* \[93\.\d, 100\.0\] \|", page)
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "--attackers surface --subset planted" in page  # a cell's own command, where nothing was drawn
    assert "--attackers lm-mean" not in page
    second["results"] = [
        {**row, "subset": name, "bits": bits} for name, bits in (("a", 0.99), ("b", 0.4), ("all", 0.7))
    ]
    (tmp_path / "d.json").write_text(json.dumps(second))  # the overview shows the bits of all items, not the first's
    command("atlas", tmp_path / "d.json", "--out", tmp_path / "d.md")
    first_table = (tmp_path / "d.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.search(r"\| 1 of 1 \| structural \| [^|]+ \| 0.70 \|", first_table)
    (tmp_path / "b.json").write_text("{}")
    assert command("atlas", tmp_path / "b.json", "--out", tmp_path / "b.md")[0] == 2
