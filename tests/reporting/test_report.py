"""The report: which benchmark belongs to a run, what the browser is given, and that the page is whole and safe."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from foils import foil_bench

from creperie.bench import Benchmark, Item, choice, from_items, load, save
from creperie.cli.compare import compare as compare_command
from creperie.cli.report import report
from creperie.core import CreperieError, UsageError
from creperie.metrics import margins
from creperie.reporting import Contents, gather_runs, report_page, runs_in
from creperie.reporting.browser import browser_data
from creperie.reporting.gather import best_result
from creperie.reporting.html_tables import result_cell
from creperie.reporting.thumbnails import EDGES, thumbnails
from creperie.scoring import Run, ScoreOptions, rank_runs, score


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


class Parts(HTMLParser):
    """The scripts of a page, and every address in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, Any], str]] = []
        self.addresses: list[str] = []
        self._open: dict[str, Any] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "action", "data")]
        if tag == "script":
            self._open = dict(attrs)
            self.scripts.append((self._open, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.scripts[-1] = (self._open, self.scripts[-1][1] + data)

    def json(self) -> Any:
        return next(json.loads(text) for about, text in self.scripts if about.get("id") == "data")


# -- the benchmark of a run ------------------------------------------------------------------------------------------


def test_the_benchmark_is_found_beside_its_images(room: Path) -> None:
    (group,) = gather_runs(runs_in([room / "runs"]))
    assert group.bench is not None
    assert sorted(group.labels) == ["alpha", "beta", "length"]
    assert len(group) == 38
    assert group.notes == ()


def test_without_the_benchmark_the_report_says_so(runs: list[Run]) -> None:
    lost = [
        Run({**r.document, "benchmark": {**r.document["benchmark"], "images": "/nowhere/images"}}, r.table)
        for r in runs
    ]
    (group,) = gather_runs(lost)
    assert group.bench is None
    assert "name the benchmark" in group.notes[0]
    page = report_page([group], Contents(figures=False))
    assert "was not found" in page.html


def test_a_run_on_a_part_is_aligned_with_the_whole(bench: Benchmark, room: Path) -> None:
    part = bench.head(3)
    run = score(part, "blind:length")
    (group,) = gather_runs([run], benches=[bench])
    assert group.bench.column("id").to_pylist() == part.column("id").to_pylist()
    assert group.bench.column("captions").to_pylist() == part.column("captions").to_pylist()


def test_another_benchmark_is_refused(runs: list[Run]) -> None:
    other = from_items("other", [Item("1", "a", (), ("x", "y"), choice(1, 1))])
    with pytest.raises(UsageError, match="none of the runs"):
        gather_runs(runs, benches=[other])


# -- pictures --------------------------------------------------------------------------------------------------------


def test_pictures_stay_within_their_room(bench: Benchmark) -> None:
    references = bench.ragged("images")[1].to_pylist()
    roomy = thumbnails(bench.images, references, budget=10**6)
    assert roomy.edge == EDGES[0]
    assert len(roomy.pictures) == 6
    third = sum(map(len, roomy.pictures.values())) // 3
    tight = thumbnails(bench.images, references, budget=third)
    assert 0 < sum(map(len, tight.pictures.values())) <= third
    assert tight.edge < roomy.edge
    tiny = thumbnails(bench.images, references, budget=700)
    assert sum(map(len, tiny.pictures.values())) <= 700
    assert len(tiny.pictures) + tiny.left_out == 6
    assert thumbnails(bench.images, references, budget=0).pictures == {}


def test_pictures_that_cannot_be_read_are_counted(bench: Benchmark, tmp_path: Path, room: Path) -> None:
    shutil.copytree(room / "bench", tmp_path / "bench")
    (tmp_path / "bench" / "images" / "3.png").write_bytes(b"no picture")
    (tmp_path / "bench" / "images" / "4.png").unlink()
    found = thumbnails(load(tmp_path / "bench").images, [f"{i}.png" for i in range(6)])
    assert {name: bool(why) for name, why in found.failed.items()} == {"3.png": True, "4.png": True}
    assert len(found.pictures) == 4


# -- what the browser reads ------------------------------------------------------------------------------------------


def test_the_columns_are_the_run(runs: list[Run], bench: Benchmark) -> None:
    (group,) = gather_runs(runs, benches=[bench])
    data = browser_data(group, {"0.png": 0}, {})
    texts, codes = data["texts"], numbers(data["cap"], "<u4")
    flat = [c for item in bench for c in item.captions]
    assert [texts[k] for k in codes] == flat
    assert [data["images"][k] for k in numbers(data["image"], "<u4")] == [i for item in bench for i in item.images]
    assert numbers(data["line"], "<i4").tolist() == [0 if name == "0.png" else -1 for name in data["images"]]
    for run, shown in zip(group.runs, data["runs"], strict=True):
        assert [t["name"] for t in shown["tasks"]] == list(run.tasks)
        for about in shown["tasks"]:
            assert numbers(about["outcome"], "i1").tolist() == run.outcomes(about["name"]).tolist()
        if "image_text" in run.inputs:
            assert np.array_equal(
                numbers(shown["scores"]["image_text"], "<f4"), run.scores("image_text"), equal_nan=True
            )
            wanted = margins("itt", run.layout, run.scores("image_text")).astype(np.float32)
            assert np.array_equal(numbers(shown["tasks"][0]["margin"], "<f4"), wanted, equal_nan=True)
    size = next(t for t in data["tags"] if t["name"] == "animal")
    assert [size["values"][k] for k in numbers(size["codes"], "<i4") if k >= 0] == ["cat", "dog", "dog"] * 8


def test_captions_with_captions_are_the_upper_triangle(runs: list[Run]) -> None:
    run = next(r for r in runs if r.model == "fake:alpha")
    shown = next(r for r in browser_data(gather_runs([run])[0], {}, {})["runs"])
    got = numbers(shown["scores"]["text_text"], "<f4")
    cells = run.scores("text_text")[:9].reshape(3, 3)
    assert got[:3].tolist() == [cells[0, 1], cells[0, 2], cells[1, 2]]
    assert len(got) == 24 * 3 + 10 + 4


# -- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(room: Path) -> str:
    return report_page(gather_runs(runs_in([room / "runs"]))).html


def test_the_page_is_whole_by_itself(page: str) -> None:
    parts = Parts(page)
    assert all(a.startswith(("#", "data:")) for a in parts.addresses), parts.addresses
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", page)
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_awkward_captions_stay_captions(page: str, bench: Benchmark) -> None:
    parts = Parts(page)
    assert len(parts.scripts) == 3
    held = parts.json()["benches"][0]["texts"]
    assert set(held) == {c for item in bench for c in item.captions}
    assert "onerror=" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)


def test_numbers_of_the_page_are_those_of_the_runs(page: str, runs: list[Run]) -> None:
    for run in runs:
        for result in run.results:
            if result["n"]:
                assert f">{100 * result['accuracy']:.1f}</b>" in page


def test_a_result_without_interval_or_of_ranks_has_a_cell() -> None:
    base = {
        "task": "itt",
        "n": 2,
        "hits": 1,
        "ties": 0,
        "void": 0,
        "unit": "items",
        "accuracy": 0.5,
        "low": None,
        "high": None,
    }
    assert "50.0" in result_cell(base | {"chance": 0.5}).html
    rank = base | {"task": "mean-rank", "accuracy": 1.5, "low": 1.0, "high": 2.0, "chance": 1.5}
    assert "1.50" in result_cell(rank).html
    assert result_cell(base | {"n": 0, "accuracy": None, "chance": None}).html == "–"


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_page_and_says_what_is_in_it(room: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report.html"
    args = [str(room / "runs"), "--html", str(out), "--no-audit", "--no-figures", "--title", "A <title>", "--json"]
    done = CliRunner().invoke(report, args, standalone_mode=False)
    answer = json.loads(done.stdout)
    assert answer["items"] == 38
    assert len(answer["runs"]) == 3
    assert answer["pictures"] == {"shown": 6, "unreadable": 0, "left_out": 0}
    assert answer["bytes"] == out.stat().st_size
    assert "<title>A &lt;title&gt;</title>" in out.read_text(encoding="utf-8")
    assert [p.name for p in out.parent.iterdir()] == ["report.html"]


def test_an_audit_is_shown_or_given(room: Path, tmp_path: Path, bench: Benchmark) -> None:
    from creperie.auditing import audit, audit_answer, audit_document

    found = audit_document(audit(bench.only(["swap", "pairs"]), "quick"))
    given = tmp_path / "audit.json"
    given.write_text(json.dumps(found | {"hash": bench.hash}, allow_nan=True).replace("NaN", "null"), encoding="utf-8")
    out = tmp_path / "r.html"
    run = str(next((room / "runs").iterdir()))
    args = [run, "--html", str(out), "--no-figures", "--audit", str(given), "--json"]
    done = CliRunner().invoke(report, args, standalone_mode=False, catch_exceptions=False)
    assert json.loads(done.stdout)["verdicts"] == {"mine": found["verdict"]}
    page = out.read_text(encoding="utf-8")
    summary = page[page.index('id="summary"') : page.index('id="results"')]
    assert 'id="audit"' in page
    assert audit_answer(found) in unescape(summary)  # where the numbers are, not only below them
    assert f'class="pill {found["verdict"].replace(" ", "-")}" href="#audit">' in summary
    bare = [run, "--html", str(out), "--no-figures", "--no-audit"]
    CliRunner().invoke(report, bare, standalone_mode=False, catch_exceptions=False)
    assert "not audited</span>" in out.read_text("utf-8")
    assert "<code>creperie audit bench</code>, typed where <code>bench</code> lies" in out.read_text("utf-8")
    given.write_text("{}", encoding="utf-8")
    with pytest.raises(CreperieError, match="does not hold the result of an audit"):
        CliRunner().invoke(report, args, standalone_mode=False, catch_exceptions=False)


@pytest.mark.parametrize(("low", "best"), [(0.48, False), (0.6, True)])
def test_a_model_at_chance_is_not_called_best(low: float, best: bool) -> None:
    result = {"task": "blind", "subset": "all", "chance": 0.5, "n": 600, "void": 0, "high": 0.7, "ties": 0}
    runs = [
        (
            SimpleNamespace(
                model=name, document={"ties": "wrong", "results": [result | {"accuracy": value, "low": low}]}
            ),
            name,
        )
        for name, value in (("a", 0.65), ("b", 0.4))
    ]
    told = best_result(runs)  # type: ignore[arg-type]
    assert (told["label"], told["value"]) == ("a", "65.0 % is best" if best else "65.0 %")
    assert told["about"].startswith("task blind: every true caption")


@pytest.mark.parametrize(("rule", "told"), [("wrong", "; 549 ties of b count as wrong"), ("right", ""), ("half", "")])
def test_ties_that_keep_a_model_from_being_best_are_told(rule: str, told: str) -> None:
    """Were all ties of b right, it would reach 28 + 549 of 600, or 96 %."""
    result = {"task": "blind", "subset": "all", "chance": 0.5, "n": 600, "void": 0, "low": 0.6, "high": 0.7}
    ties = {"a": 0, "b": 549}
    runs = [
        (SimpleNamespace(model=name, document={"ties": rule, "results": [result | {"accuracy": v, "ties": t}]}), name)
        for (name, t), v in zip(ties.items(), (0.65, 28 / 600), strict=True)
    ]
    assert best_result(runs)["about"].partition(")")[2] == told  # type: ignore[arg-type]


def test_a_suggested_audit_names_the_folder_of_the_benchmark(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark in out/inner calls itself `mine`."""
    shutil.copytree(room / "bench", tmp_path / "out" / "inner")
    monkeypatch.chdir(tmp_path)
    for spec in ("out/inner", str(tmp_path / "out" / "inner")):
        run = score(spec, "blind:length", options=ScoreOptions(command=f"creperie score {spec}"))
        page = report_page(gather_runs([run]), Contents(figures=False)).html
        named = spec if spec == "out/inner" else "inner"  # whoever gets the page has other folders
        assert f"<code>creperie audit {named}</code>, typed where <code>{named}</code> lies" in page


@pytest.mark.slow
def test_the_report_and_the_audit_give_one_verdict_with_the_plainest_cue_first() -> None:
    """The two pages contradicted each other on the same data, and "learned" came before "negation words"."""
    from creperie.auditing import audit
    from creperie.reporting import standing_audit

    names = ("dog", "cat", "man", "girl", "horse", "bird")
    items = [
        Item(f"{a}-{b}-{n}", "neg", (), (f"the {a} sees {n} {b}s now", f"the {a} sees not {n} {b}s"), choice(1, 1))
        for a, b, n in itertools.product(names, names, range(3))
    ]
    bench = from_items("mine", items)
    whole, short = audit(bench), standing_audit(bench)
    assert whole.verdict == short["verdict"] == "leaks"
    for text in (whole.text, short["text"]):
        assert re.search(r"through negation \(100\.0 %, structural\), .*learned", text), text


def test_no_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match=r"no run\.json"):
        CliRunner().invoke(
            report, [str(tmp_path), "--html", str(tmp_path / "x.html")], standalone_mode=False, catch_exceptions=False
        )


def test_the_page_grows_with_what_is_shown_and_not_more(room: Path, tmp_path: Path) -> None:
    """2,000 items with two captions: the data take less than 200 bytes an item beside the captions."""
    big = save(
        foil_bench([(f"caption {i} is true", f"caption {i} is false") for i in range(2000)], "big", subset="a"),
        tmp_path / "big",
    )
    run = score(big, "blind:length")
    page = report_page(gather_runs([run], benches=[big]), Contents(figures=False)).html
    small = report_page(gather_runs([score(big.head(2), "blind:length")], benches=[big]), Contents(figures=False)).html
    assert (len(page) - len(small)) / 2000 < 200


# -- blind twins -----------------------------------------------------------------------------------------------------


def test_blind_twins_show_what_the_picture_adds_and_are_not_ranked(twins: list[Run]) -> None:
    page = report_page(gather_runs(twins), Contents(figures=False)).html
    section = page.partition('<section id="picture"><h2>What the picture adds</h2>')[2].partition("</section>")[0]
    right = {(run.model, "~" in run.benchmark): run.outcomes("itt") == 1 for run in twins}
    for model in ("alpha", "beta"):
        seeing, blind = (100 * right[f"fake:{model}", kind].mean() for kind in (False, True))
        row = section.partition(f">{model}<")[2].partition("</tr>")[0]
        assert re.findall(r">([^<]+)</td>", row)[:2] == [f"{blind:.1f}", f"{seeing:.1f}"]
        assert f">{seeing - blind:+.1f} [" in row
    # a model that guesses is right by chance: with two models, both must be right to say that half know the answer
    by_text, by_picture = (right["fake:alpha", kind] & right["fake:beta", kind] for kind in (True, False))
    counts = [by_text.sum(), (by_picture & ~by_text).sum(), (~by_picture & ~by_text).sum()]
    assert re.findall(r"<b>(\d+)</b> items? solved by (\w+)", section) == [
        (str(n), kind) for n, kind in zip(counts, ("text", "picture", "neither"))
    ]
    (bench,) = Parts(page).json()["benches"]
    assert (bench["name"], [run["label"] for run in bench["runs"]]) == ("bench (mine)", ["alpha", "beta"])
    assert 'id="picture"' not in report_page(gather_runs(twins[1::2]), Contents(figures=False)).html
    ranked = rank_runs(twins[::-1])
    assert {column.benchmark for column in ranked.columns} == {"mine"}
    assert "2 blind twins not ranked" in ranked.notes


def test_a_narrow_terminal_keeps_rows_together(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("compare", "output"):
        monkeypatch.setattr(f"creperie.cli.{module}.table_width", lambda: 80)
    runs = [str(path) for path in sorted((room / "runs").iterdir()) if "fake" in path.name]
    shown = CliRunner().invoke(compare_command, runs).output
    assert [len(line.split(" / ")) for line in shown.splitlines() if line.startswith(("swap ", "all "))] == [2] * 5
    assert max(map(len, shown.split("A − B in points")[0].splitlines()[1:])) <= 80
