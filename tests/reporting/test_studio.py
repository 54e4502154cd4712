"""The studio: what its pages show, what they refuse, and its routes in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from fastapi.testclient import TestClient
from foils import foil_bench, foil_items
from PIL import Image
from tests.reporting.conftest import Dual

from creperie.auditing import audit, audit_answer, audit_document
from creperie.bench import Benchmark, Item, choice, from_items, load, open_store, record_audit, save
from creperie.core import UsageError
from creperie.making import NOT_CHOSEN
from creperie.reporting import Contents, gather_runs, listen, make_studio, remember_zoo, report_page, runs_in
from creperie.reporting.gather import covered
from creperie.reporting.leaderboard import STATIC, RunsFolder, board_html
from creperie.reporting.sections import robust_part
from creperie.reporting.studio.browse import FIRST
from creperie.reporting.studio.items import ItemFilter, ItemIndex
from creperie.reporting.studio.making import Proposed, propose
from creperie.reporting.studio.plots import PlotAxis, scatter_of
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring import Run, load_run, score, score_all
from creperie.scoring.answer_log import WRITTEN
from creperie.scoring.replies import answered_run

TOKEN = "the-token"
ORIGIN = {"Origin": "http://testserver"}


# -- the leaderboard -------------------------------------------------------------------------------------------------


def test_headers_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = RunsFolder(folder / "runs")
    first = here.look()
    monkeypatch.setattr("creperie.reporting.leaderboard.read_entry", lambda path: pytest.fail("read again"))
    assert here.look() == first


def test_each_task_has_its_own_ranking_with_what_was_covered(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    parts = board_html(board, STATIC).split("<h3><code>")[1:]
    assert {part.partition("<")[0] for part in parts} == {
        r["task"] for e in board.entries for r in e.document["results"]
    }
    for part in parts:
        name, table = part.partition("<")[0], part.partition("<details")[0]
        own = {e.name: r for e in board.entries if (r := e.result(name))}
        places = [table.index(f'data-run="{n}"') for n in sorted(own, key=lambda n: -own[n]["accuracy"])]
        assert places == sorted(places)
        assert table.count("data-run=") == len(own)  # a model without the task has no place in it
        assert f">{covered(*[next(iter(own.values()))[k] for k in ('n', 'void')])}</td>" in table
        assert name != "tot" or ("24 of 38" in table and ">=1</td>" in table)  # two models, no difference shown


@pytest.mark.parametrize("low", [0.4, 0.6])
def test_nobody_is_best_who_is_not_better_than_chance(room: Path, low: float) -> None:
    board = RunsFolder(room / "runs").look()
    entries = []
    for e in board.entries:
        results = [{**r, "low": low, "chance": 0.5} for r in e.document["results"]]
        entries.append(replace(e, document={**e.document, "results": results}))
    heads = re.findall("<h3>.*?</h3>", board_html(replace(board, entries=tuple(entries)), STATIC))
    told = {("better than chance" in head, "best" in head) for head in heads if "without the image" not in head}
    assert told == {(low < 0.5, low > 0.5)}  # without the image there is one run, which is not ranked


def test_people_published_results_and_chance_stand_unranked_in_the_board(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    entry = next(e for e in board.entries if e.model == "fake:alpha")
    mieb = ("Salesforce/blip-itm-base-coco", "best published: mieb/1")  # where ties count as right
    for name, ties, expected in (("sugarcrepe", 0, mieb), ("sugarcrepe", 5, ()), ("mine", 0, ())):
        result = {**entry.result("itt"), "n": 7511, "void": 0, "accuracy": 0.765, "ties": ties}
        document = {**entry.document, "results": [result], "benchmark": {**entry.document["benchmark"], "name": name}}
        html = board_html(replace(board, entries=(replace(entry, document=document),)), STATIC)
        ranking = html.partition("<details")[0]
        printed = re.findall(r'<td class="text" data-v="">–</td><td class="name text" data-v="([^"]*)">', ranking)
        assert printed == [*expected[:1], "alpha", "chance"], name  # in order; one run alone has no rank either
        assert all(words in ranking for words in expected)
        assert ("▶ alpha" in html) is (name == "sugarcrepe")  # among all results of its definition, marked


def test_the_board_keeps_names_and_failures_of_a_zoo(folder: Path) -> None:
    remember_zoo(folder / "runs", {"fake:alpha": "my model"}, [("hf:broken", "mine", "weights are <b>damaged</b>")])
    html = board_html(RunsFolder(folder / "runs").look(), STATIC)
    assert ">my model</a>" in html
    assert "hf:broken" in html
    assert "weights are &lt;b&gt;damaged" in html
    assert 'href="bench/mine.html"' in html  # not a hash


def test_the_board_keeps_up_and_names_broken_runs(client: TestClient, folder: Path) -> None:
    shown = client.get("/runs").text
    version = shown.split("/runs?version=")[1].split('"')[0]
    assert client.get("/runs", params={"version": version}).text == ""
    (folder / "runs" / "<b>odd").mkdir()
    (folder / "runs" / "<b>odd" / "run.json").write_text('{"creperie": 1, "na', encoding="utf-8")
    later = client.get("/runs", params={"version": version}).text
    assert "&lt;b&gt;odd: run.json cannot be read" in later
    assert "<b>odd" not in later


# -- who is let in ---------------------------------------------------------------------------------------------------


def test_only_the_link_lets_in(folder: Path) -> None:
    app = make_studio(folder, TOKEN, hosts=("testserver",))
    stranger = TestClient(app, headers=ORIGIN)
    for path in ("/", "/benchmarks", "/items?name=mine", "/static/page.css", "/picture?name=mine&image=1.png"):
        assert stranger.get(path).status_code == 403
    assert stranger.get("/?token=other").status_code == 403
    assert stranger.get("/benchmarks", params={"token": TOKEN}).status_code == 403  # the token is for the door only
    assert stranger.post("/make", data={"captions": "x"}).status_code == 403


def test_other_hosts_and_other_sites_are_refused(client: TestClient) -> None:
    assert client.get("/benchmarks", headers={"Host": "evil.example"}).status_code == 400
    for origin in ("http://evil.example", "", "null"):
        assert client.post("/make", data={"captions": "a dog"}, headers={"Origin": origin}).status_code == 403
    page = client.get("/items?name=mine")
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "<script>" not in page.text
    assert "http-equiv" not in page.text  # a second policy would forbid the studio's own files
    assert ' style="' not in page.text


@pytest.mark.parametrize(
    "path",
    ["/items?name=..", "/items?name=/etc", "/item?name=mine&subset=swap&id=none", "/picture?name=mine&image=../../x"]
    + ["/static/../app.py", "/report?run=none", "/other", "/openapi.json", "/audit?name=../runs"],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_taken_port_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="cannot listen"):
            listen(taken.getsockname()[1])
    with pytest.raises(UsageError, match="no such folder"):
        make_studio(tmp_path / "none")


# -- pages -----------------------------------------------------------------------------------------------------------


def test_items_are_filtered_by_the_server(client: TestClient) -> None:
    assert "38 of 38 items" in client.get("/items?name=mine").text
    assert "8 of 38 items" in client.get("/items?name=mine&tag=animal=cat").text
    swap = client.get("/items?name=mine&subset=swap&words=CAT 7").text
    assert "1 of 38 items" in swap
    assert "38 of 38" in client.get("/items?name=mine&words=").text
    assert "<mark>" in swap
    assert "&lt;img src=x" in client.get("/items?name=mine&subset=pairs").text
    assert client.get("/picture?name=mine&image=2.png").content[8:12] == b"WEBP"
    found = client.get("/search?words=chases cat").text  # in all benchmarks, each with its first items
    assert "24 items of mine" in found
    assert found.count('<article class="card">') == FIRST == found.count("data-item=")


def test_people_who_disagree_are_no_models_and_thoughts_are_shown(client: TestClient, folder: Path) -> None:
    bench = load(folder / "mine")
    scores = np.concatenate([np.array(item.match, np.float32).ravel() for item in bench])
    start = len(bench[0].captions)  # the first item
    for who, sign in (("human:s/ann", 1), ("human:s/bob", -1), ("human:s/everybody", -1), ("vlm:tiny?score=yesno", 0)):
        own = scores.copy()
        own[:start] *= sign
        run = answered_run(bench, own, who)
        if who.startswith("vlm"):
            answers = [[{"asked": "caption 1", "answer": "yes", "thought": "I <see> it", "cut": False}]] * len(bench)
            run = replace(run, table=run.table.append_column("answers", pa.array(answers, pa.list_(WRITTEN))))
        run.save(folder / "runs")
    page = client.get("/items?name=mine&show=people&at=swap/0").text
    assert "1 of 38 items" in page
    assert "thought: I &lt;see&gt; it" in page
    assert "of 3 models right" in page  # alpha, beta and tiny
    assert "surer than on 0 % of the items" in page  # the tie of tiny
    assert "0 of 38 items" in client.get("/items?name=mine&show=people&subset=two").text


def test_two_measures_are_drawn_against_each_other(client: TestClient, twins: list[Run], tmp_path: Path) -> None:
    axes = re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)<', client.get("/plot").text)
    by_label = {label: unescape(key) for key, label in axes}
    both = {"x": by_label["alpha on mine, itt"], "y": by_label["beta on mine, itt"]}
    results = Shelf(tmp_path).run(both["x"].partition(" ")[0]).results
    subsets = [r for r in results if r["task"] == "itt" and r["subset"] not in ("all", "macro")]
    drawn = client.get("/plot", params=both).text
    assert drawn.count("<circle") == len(subsets)
    assert all(f"{r['subset']}: {100 * r['accuracy']:.1f} and " in drawn for r in subsets)
    assert f"{subsets[0]['subset']},{100 * subsets[0]['accuracy']}" in drawn  # the numbers to download
    seeing = {"x": by_label["mine~noise, itt without the image"], "y": by_label["mine, itt"]}
    two = client.get("/plot", params=seeing).text
    assert (two.count("<circle"), "r = " in two, "n = 2 models" in two) == (2, False, True)  # two dots are on a line
    same = {"a": (50.0, "40"), "b": (50.0, "40"), "c": (80.0, "40")}
    numbered = scatter_of(*(PlotAxis(name, name, "", "subset", same) for name in "xy"))["named"]
    assert numbered == {(80.0, 80.0): ["1"], (50.0, 50.0): ["2", "3"]}  # not written over each other
    mixed = client.get("/plot", params={**both, "y": seeing["y"]})
    assert (mixed.status_code, "in common" in mixed.text) == (404, True)


def test_filters_read_columns_and_only_the_items_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [
        Item(str(i), f"s{i % 9}", (), (f"a dog sees cat {i}", f"cat {i} sees a dog"), choice(1, 1)) for i in range(4000)
    ]
    save(from_items("many", items), tmp_path / "many")
    shelf = Shelf(tmp_path)
    index = ItemIndex(shelf.bench("many"))
    monkeypatch.setattr(Benchmark, "__iter__", None)
    rows = index.rows(ItemFilter("many", subset="s3", words="CAT 99"), shelf)
    expected = [item for item in items if "cat 99" in item.captions[0] and item.subset == "s3"]
    assert [item.id for item in index.items(rows)] == [item.id for item in expected]


def test_a_change_is_a_new_version(client: TestClient, folder: Path) -> None:
    before = load(folder / "mine").hash
    key = {"name": "mine", "subset": "swap", "id": "7"}
    assert "37 of" not in client.get("/items?name=mine").text
    gone = client.post("/item", data={**key, "action": "exclude"})
    assert gone.url.params["name"] == "mine-edited"
    assert len(load(folder / "mine-edited")) == 37
    client.post("/item", data={**key, "action": "correct", "caption-2": "a horse\r\nruns", "comment": "was <odd>"})
    corrected = load(folder / "mine-edited-2")
    assert corrected.item("swap", "7").captions[2] == "a horse\nruns"  # browsers send other line breaks
    assert corrected.item("swap", "7").tags["comment"] == "was <odd>"
    assert corrected.provenance[-1].op == "correct"
    assert corrected.provenance[-1].inputs == (before,)
    assert load(folder / "mine").hash == before
    assert client.post("/item", data={**key, "action": "correct"}).status_code == 400


def test_a_pair_that_cannot_be_compared_keeps_the_choice(client: TestClient, folder: Path) -> None:
    """It was an error page without the two lists."""
    first = max((folder / "runs").iterdir())
    part = load(folder / "mine").only(["swap"])
    other, _ = (score(part, model).save(folder / "runs") for model in ("blind:length", "blind:surface"))
    page = client.get("/compare", params={"a": first.name, "b": other.name})
    assert page.status_code == 200
    assert "These two have no benchmark in common" in page.text
    for name in (first.name, other.name):
        assert re.search(f'<option value="{re.escape(name)}" data-group="[^"]+" selected>', page.text)


def test_the_task_with_most_items_comes_first(tmp_path: Path) -> None:
    """Of 33 items, three have two true captions, which is what `tot` needs. The start page named the best of `tot`, the
    robustness of its ranking was shown, and two blind runs were compared unless others were chosen.
    """
    (tmp_path / "pictures").mkdir()
    for k in range(30):
        Image.new("RGB", (8, 8), (k, 99, 99)).save(tmp_path / "pictures" / f"{k}.png")
    items = foil_items([(f"true {k}", f"false {k}") for k in range(30)], subset="one", images="{}.png")
    items += [Item(str(k), "two", ("0.png",), (f"true {k}", f"so {k}", f"false {k}"), choice(2, 1)) for k in range(3)]
    save(from_items("made", items, images=open_store(tmp_path / "pictures")), tmp_path / "made", copy_images=True)
    texts = Dual("a text encoder")
    models: list[Any] = [Dual("alpha"), Dual("beta"), Dual("gamma"), "blind:length", "blind:surface"]
    models.append(SimpleNamespace(encode_texts=texts.encode_texts, fingerprint=texts.fingerprint))
    score_all([tmp_path / "made"], models, out=tmp_path / "runs")
    studio = TestClient(make_studio(tmp_path, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    reached = {
        run.name: r["accuracy"]
        for run in map(load_run, runs_in([tmp_path / "runs"]))
        for r in run.results
        if (r["task"], r["subset"]) == ("itt", "all")
    }
    start = studio.get("/", params={"token": TOKEN}).text
    assert "task itt: " in start
    assert "n 33)" in start
    assert re.findall("<h3><code>(.*?)</code>", studio.get("/runs").text) == ["itt", "tot", "blind"]
    compared = studio.get("/compare").text
    assert "made · itt: " in compared
    chosen = re.findall('<option value="([^"]*)"[^>]* selected', compared)[:2]
    assert sorted(chosen) == sorted(sorted(reached, key=lambda name: -reached[name])[:2])
    assert "of 3 models right" in studio.get("/items?name=made").text
    robust = studio.get("/robust?bench=made").text
    assert [f'<button type="button">{head}</button>' in robust for head in ("itt", "tot (n = 3)")] == [True, True]
    assert all("itt" in axis for axis in re.findall("<option[^>]* selected>([^<]*)", studio.get("/plot").text))
    two = {key: path.name for path in (tmp_path / "runs").iterdir() for key in ("text", "length") if key in path.name}
    page = studio.get("/compare", params={"a": two["text"], "b": two["length"]}).text
    assert "These two have no task in common: a text encoder has tot, length has blind." in page


def test_a_search_that_finds_nothing_offers_its_parts_and_chips_count_what_is_found(client: TestClient) -> None:
    page = client.get("/search", params={"words": "dog beta"}).text
    assert "all words must be in one" in page
    assert '<a href="/search?words=beta">beta</a> (1 model)' in page
    assert '<a href="/search?words=dog">dog</a> (24 items)' in page
    phrases = unescape(client.get("/search", params={"words": '"a dog" "zebra lion"'}).text)
    assert '>"a dog"</a> (24 items)' in phrases
    assert '"zebra lion"</a>' not in phrases  # nothing is found by it
    phrase = client.get("/search", params={"words": '"zebra lion"'}).text
    assert "What each word finds alone" not in phrase
    assert "items of" not in client.get("/search", params={"words": '"'}).text
    found = client.get("/items", params={"name": "mine", "words": "dog"}).text
    assert re.search(r'aria-current="true">all <small>24</small>', found)
    assert not re.search(r">pairs <small>", found)


def test_a_search_finds_studies_and_names_in_any_order_and_says_what_asks_for_nothing(client: TestClient) -> None:
    client.post("/studies", data={"name": "mine"})
    page = client.get("/search", params={"words": "MI"}).text
    assert '<h2>1 study</h2><ul class="facts"><li><a href="/studies#study-mine">mine</a>' in page
    assert '<h2>1 benchmark</h2><ul class="facts"><li><a href="/items?name=mine">mine</a>' in page
    assert 'id="study-mine"' in client.get("/studies").text
    assert ">alpha</a>" in client.get("/search", params={"words": "pha -beta al"}).text
    for signs in ("-", '"', "subset:"):
        page = unescape(client.get("/search", params={"words": signs}).text)
        assert f"“{signs}” has no word to search for" in page
        assert "<h2>" not in page


def test_a_benchmark_is_called_by_its_folder_everywhere(room: Path, tmp_path: Path) -> None:
    """The folder out/biased holds a benchmark that calls itself `mine`, as two folders may."""
    shutil.copytree(room / "bench", tmp_path / "out" / "biased")
    shutil.copytree(room / "runs", tmp_path / "runs")
    found = audit(load(tmp_path / "out" / "biased"), ["length-words"])
    record_audit(tmp_path / "out" / "biased", audit_document(found, tmp_path / "out" / "biased"))
    studio = TestClient(make_studio(tmp_path, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    studio.get("/", params={"token": TOKEN})
    studio.post("/studies", data={"name": "out/biased"})
    named = "out/biased (mine)"
    assert f"<title>Audit of {named}</title>" in studio.get("/share?name=out/biased").text
    assert f"foil-check on {named}<" in studio.get("/studies").text
    assert f"Report on {named}</title>" in studio.get("/report?bench=out-biased").text
    run = next(path.name for path in (tmp_path / "runs").iterdir() if "alpha" in path.name)
    assert f"<title>alpha on {named}</title>" in studio.get("/report", params={"run": run}).text
    assert "<h1>Does the ranking on out/biased hold?</h1>" in studio.get("/robust?bench=out-biased").text


def test_a_card_names_the_attacker_that_leaks(client: TestClient, folder: Path) -> None:
    """Over all items it is at chance: where the longer caption is true is balanced by where it is false."""
    pairs = [(f"dog {k} runs", f"a very very big dog {k}")[:: 1 if k % 2 else -1] for k in range(80)]
    items = [Item(str(k), f"s{k % 2}", (), pair, choice(1, 1)) for k, pair in enumerate(pairs)]
    found = audit(save(from_items("apart", items), folder / "apart"), ["length-words"])
    record_audit(folder / "apart", audit_document(found, folder / "apart"))
    card = client.get("/benchmarks").text.split(">apart</a>")[1].split("</article>")[0]
    assert re.search(r"length-words 100\.0 % on s[01]<", card)
    assert "50.0" not in card


def test_the_page_of_studies_asks_how_many_people(client: TestClient) -> None:
    assert ">Studies</a>" in client.get("/studies").text  # none is open
    made = client.post("/studies", data={"name": "mine", "people": "5"}).text
    assert made.count("/join/") == 2 * 5  # a link and its words
    assert re.search(r">Studies<b>1</b></a>", client.get("/runs").text)
    assert re.search(r"foil-check: \d+ questions?, each for two people", made)


def test_two_models_side_by_side(client: TestClient, folder: Path) -> None:
    runs = {r.model: r for r in (Shelf(folder).run(p.name) for p in (folder / "runs").iterdir())}
    alpha, beta = runs["fake:alpha"], runs["fake:beta"]
    page = client.get("/compare", params={"a": alpha.name, "b": beta.name}).text
    first = alpha.tasks[0]
    only = int(((alpha.outcomes(first) == 1) & ~((beta.outcomes(first) == 1) | (beta.outcomes(first) == -1))).sum())
    assert f"only alpha is right <small>{only}</small>" in page
    assert "hold after correction for" in page.split('class="vs"')[1].replace("holds", "hold")  # the answer comes first
    report = client.get("/report", params={"run": alpha.name})
    assert report.status_code == 200
    assert "← all runs" in report.text


@pytest.mark.parametrize("here", ["", "renamed"])
def test_blind_twins_have_a_table_of_their_own(here: str, twins: list[Run], room: Path, tmp_path: Path) -> None:
    if here:  # the benchmark lies in the folder, under a name of its own
        shutil.copytree(room / "bench", tmp_path / here)
    here = here or "mine"
    client = TestClient(make_studio(tmp_path, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    client.get("/", params={"token": TOKEN})
    page = client.get("/runs").text
    assert f'href="/report?bench={here}#picture">What does the picture add?' in page
    boards = {part.partition('"')[0]: part for part in page.split('data-bench="')[1:]}
    assert list(boards) == [here, f"{here}-noise"]
    assert f"{here} · itt" in client.get("/compare").text  # what is compared first saw the images
    for run in twins:
        own = f"{here}-noise" if "~" in run.benchmark else here
        assert [name for name, part in boards.items() if f'data-run="{run.name}"' in part] == [own]
    assert "<h2>What the picture adds</h2>" in client.get("/report", params={"bench": here}).text


SLEEPS = [(f"Dog {k} sleeps.", f"Dog {k} does not sleep.") for k in range(60)]
PAIRS = [pair if k % 4 else pair[::-1] for k, pair in enumerate(SLEEPS)]  # "not" tells three of four
NEGATED = "caption,foil,kind\n" + "".join(f"{true},{false},negate\n" for true, false in PAIRS)


def test_the_ranking_is_shown_under_every_choice(client: TestClient, folder: Path) -> None:
    from creperie.statistics import robustness

    assert 'href="/robust?bench=mine"' in client.get("/runs").text
    page = client.get("/robust", params={"bench": "mine", "wrong": "2/50"}).text
    blind, *seeing = (str(path) for path in sorted((folder / "runs").iterdir()))
    expected = robustness(seeing, wrong="2/50", blind=[blind])
    assert all(f'<button type="button">{name}</button>' in page for name in expected.choices)
    assert f"would reach {100 * expected.accuracies[0].corrected:.1f} %" in page
    assert f"--blind runs/{Path(blind).name}" in page
    assert client.get("/robust", params={"bench": "mine", "wrong": "many"}).status_code == 404
    assert "place 1" in page  # the rank of other pages counts only significant differences
    names = {"fake:alpha": "alpha"}
    far = replace(expected, pairs=[replace(expected.pairs[0], low=0.1, high=0.3, different=True, equivalent=False)])
    assert "known to differ</td>" in robust_part(far, {})
    assert "alpha: 3 of 38 items." in robust_part(replace(expected, notes=("fake:alpha: 3 of 38 items",)), names)


def test_an_audit_is_watched_and_refined(client: TestClient, folder: Path) -> None:
    client.post("/audit", data={"name": "mine", "attack-length-words": "yes"})
    until = time.monotonic() + 60
    while "done in" not in (part := client.get("/audit?name=mine&part=1").text) and time.monotonic() < until:
        time.sleep(0.1)
    assert '<td class="text">length-words</td>' in part
    page = client.get("/audit?name=mine").text
    assert "Blind accuracy" in page
    assert "creperie audit mine" in page
    assert "not audited" not in client.get("/benchmarks").text
    assert '<td data-v="38">38</td>' in page  # n stands beside the numbers
    shutil.copytree(folder / "mine", folder / "moved" / "mine")  # with the audit, which names where it was
    moved = TestClient(make_studio(folder / "moved", TOKEN, hosts=("testserver",)), headers=ORIGIN)
    moved.get("/", params={"token": TOKEN})
    for one in (client, moved):
        shared = one.get("/share?name=mine").text
        assert "Next: <code>creperie" in shared
        assert str(folder) not in shared  # whoever gets the page has other folders
    client.post("/audit", data={"name": "mine", "action": "refine", "attack-length-chars": "yes"})
    until = time.monotonic() + 120
    while (part := client.get("/jobs?part=1").text).count("done in") < 2:
        assert time.monotonic() < until, part
        time.sleep(0.1)
    sides = [json.loads((folder / name / "audit.json").read_text("utf-8")) for name in ("mine", "mine-refined")]
    run = [{attacker["name"] for attacker in side["attackers"]} for side in sides]
    assert all("[" not in " ".join(side["command"]) for side in sides)  # it can be typed
    assert run[0] == run[1] >= {"length-words", "length-chars"}  # or a leak that was always there looks like a new one
    assert [bool(side["options"].get("attackers")) for side in sides] in ([True, True], [False, False])
    both = client.get("/audit?name=mine&beside=mine-refined").text
    assert 'value="refine">Make it honest</button><label' in both  # below, but no longer beside each answer
    assert both.count("Make it honest") == 1
    leak = {"attacker": "lm-sum", "fix": "removable", "choice": "the likelier caption", "accuracy": 0.8}
    sides[1]["subsets"][0]["through"] = [leak]
    record_audit(folder / "mine-refined", {key: v for key, v in sides[1].items() if key != "creperie_checksums"})
    still = client.get("/audit?name=mine&beside=mine-refined").text
    assert "mine-refined still leaks through lm-sum. To leave out more items, tick lm-sum, too, and make mine" in still
    document = {**json.loads((folder / "mine" / "audit.json").read_text("utf-8")), "verdict": "not shown"}
    document["text"] = audit_answer(document)  # one sentence, and nothing below it
    runs = gather_runs(sorted((folder / "runs").iterdir()), benches=[load(folder / "mine")])
    mailed = report_page(runs, Contents(figures=False, audits={document["hash"]: document})).html
    assert "Next: <code>creperie" in mailed
    assert str(folder) not in mailed
    assert '"soft">.' not in mailed
    assert ". .</p>" not in mailed


def test_accepted_foils_become_a_benchmark_and_a_study(client: TestClient, folder: Path) -> None:
    one = {"of-0": "0", "role-0": "negative", "kind-0": "swap", "text-0": "a cat sees a dog", "keep-0": "yes"}
    two = {"of-1": "0", "role-1": "negative", "kind-1": "swap", "text-1": "no <b>dog</b>"}  # not accepted
    form = {"source-0": "a dog sees a cat", "name": "pasted", "then": "study", **one, **two}
    page = client.post("/save", data=form).text
    assert "The study is ready" in page
    assert page.count("/join/") >= 2
    assert "open on this computer only" in page  # they begin with 127.0.0.1
    assert '<select name="task"><option value="">' in page  # unless somebody chooses, a task that fits
    (item,) = load(folder / "pasted")
    assert (item.captions, item.subset) == (("a dog sees a cat", "a cat sees a dog"), "swap")
    assert "pasted" in client.get("/studies").text
    assert client.post("/save", data=form).status_code == 400  # the name is taken
    assert client.post("/save", data={**form, "name": "../out"}).status_code == 400


@pytest.mark.parametrize(("name", "study"), [("Forty captions", "forty-captions"), ("عربي", "study")])
def test_every_benchmark_can_become_a_study(client: TestClient, folder: Path, name: str, study: str) -> None:
    """Names of studies are part of links, those of benchmarks are free."""
    shutil.copytree(folder / "mine", folder / name)
    answer = client.post("/studies", data={"name": name})
    assert answer.status_code == 200
    assert f">{study}</a></h2>" in answer.text


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    client = TestClient(make_studio(tmp_path, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    client.get("/", params={"token": TOKEN})
    said = {"benchmarks": "Make foils from them", "runs": "<code>creperie score</code>", "studies": "make a benchmark"}
    for page, words in (said | {"audit": "Make one", "search?words=a+dog": "“a dog”"}).items():
        text = client.get(f"/{page}").text
        assert words in text, page
        assert "<code></code>" not in text  # nothing stands for a command that does not exist
    assert "same on the command line" not in client.get("/compare").text


def test_a_folder_that_vanishes_while_runs_are_listed_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a benchmark is written, its draft is renamed: between the listing of a folder and that of what is in it."""
    draft, listed = folder / "draft", os.scandir
    draft.mkdir()

    def scandir(path: Any) -> Any:
        if Path(path) == draft:
            draft.rmdir()
        return listed(path)

    monkeypatch.setattr("os.scandir", scandir)
    assert len(RunsFolder(folder).look().entries) == 3


# -- what must not go wrong ------------------------------------------------------------------------------------------


def test_a_damaged_benchmark_takes_no_page_away(client: TestClient, folder: Path, monkeypatch: Any) -> None:
    shutil.copytree(folder / "mine", folder / "broken")
    (folder / "broken" / "creperie.json").write_text("{", "utf-8")
    for path in ("/benchmarks", "/runs", "/search?words=cat", "/compare", "/audit"):
        assert client.get(path).status_code == 200, path
    refused = client.get("/items?name=broken")
    assert (refused.status_code, 'aria-label="Studio"' in refused.text, 'href="/studies"' in refused.text) == (
        404,
        True,
        True,
    )
    assert "<option>broken" not in client.get("/studies").text
    page = client.get("/benchmarks").text
    assert "<b>broken</b> cannot be read" in page
    assert "38 items in 3 subsets" in page
    # a folder that vanishes between the listing and the reading
    monkeypatch.setattr(Shelf, "benches", lambda self: {"gone": folder / "gone", "mine": folder / "mine"})
    assert "38 items" in client.get("/benchmarks").text
    assert client.get("/items?name=gone").status_code == 409


MALFORMED = [
    "/items?name=mine&from=x",
    "/items?name=mine&from=-1",
    "/items?name=mine&task=none&show=disagree",
    "/items",
    "/item",
    "/picture",
    "/items?name=mine&at=swap",
    "/item?name=mine",
    "/picture?name=mine",
    "/compare?a=x&b=y",
    "/items?name=mine&right=none",
    "/items?name=mine&tag=x",
    "/items?name=mine&attacker=x",
    "/share?name=none",
    "+/item?",
    "+/item?name=mine",
    "+/save?",
    "+/audit?",
    "+/save?name=x&keep-0=yes",
    "+/studies?",
    "+/import?name=a%00b&table=a",
    "+/import?name=x&table=a,b&pictures=%00",
    "+/jobs?job=x",
    "+/verdict?keep-1=y",
    "+/item?name=mine&subset=swap&id=7&action=none",
]


def test_malformed_requests_are_explained(client: TestClient) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for asked in (*MALFORMED, "+/import?name=" + 300 * "n"):
        address, _, body = asked.removeprefix("+").partition("?")
        answer = client.post(address, content=body, headers=kind) if asked.startswith("+") else client.get(asked)
        assert answer.status_code in (400, 404, 409), asked
        assert "`" not in answer.text.split('class="note"')[1].split("</p>")[0], asked  # explained, and not in Python


def test_two_edits_at_once_are_both_kept(client: TestClient, folder: Path) -> None:
    edits = [{"name": "mine", "subset": "swap", "id": str(k), "action": "exclude"} for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda edit: client.post("/item", data=edit), edits))
    assert [answer.status_code for answer in answers] == [200] * 4
    left = [{item.id for item in load(path) if item.subset == "swap"} for path in folder.glob("mine-edited*")]
    assert sorted(min({"0", "1", "2", "3"} - own) for own in left) == ["0", "1", "2", "3"]


def test_an_audit_with_attackers_that_abstained_can_be_shared(client: TestClient, folder: Path) -> None:
    found = audit(folder / "mine", ["length-words", "ngram-3"])
    document = record_audit(folder / "mine", audit_document(found, folder / "mine"))
    stored = json.loads((folder / "mine" / "audit.json").read_text("utf-8"))
    assert None in [shape["scale"] for shapes in stored["gaps"].values() for shape in shapes.values()], document
    assert "Blind accuracy" in client.get("/share?name=mine").text


def test_two_studios_on_one_host_do_not_share_a_cookie(folder: Path) -> None:
    names = []
    for port in (8766, 8767):
        client = TestClient(make_studio(folder, TOKEN), base_url=f"http://127.0.0.1:{port}")
        names += client.get("/", params={"token": TOKEN}, follow_redirects=False).cookies.keys()
    assert len(set(names)) == 2


def test_pictures_elsewhere_are_shown_only_if_allowed(room: Path, tmp_path: Path) -> None:
    """A manifest could name private files: its pictures, and links among them, are not followed out of the folder."""
    outside, here = tmp_path / "photographs", tmp_path / "here"
    shutil.copytree(room / "pictures", outside)
    (outside / "1.png").unlink()
    (outside / "1.png").symlink_to(room / "pictures" / "1.png")
    (outside / "3.png").write_bytes(b"no picture")
    here.mkdir()
    bench = save(replace(load(room / "bench"), images=open_store(outside)), here / "mine")
    shown = {}
    for images in ((), (outside,)):
        client = TestClient(make_studio(here, TOKEN, hosts=("testserver",), images=images), headers=ORIGIN)
        client.get("/", params={"token": TOKEN})
        page = client.get("/items?name=mine").text
        codes = [client.get(f"/picture?name=mine&image={k}.png").status_code for k in range(4)]
        shown[bool(images)] = ("/picture?name=mine" in page, f"--images {outside}" in page, codes)
    assert shown == {False: (False, True, [404] * 4), True: (True, False, [200, 404, 200, 404])}
    runs = sorted((room / "runs").iterdir())
    (hidden,), (given,) = gather_runs(runs, benches=[bench]), gather_runs(runs, benches=[bench], images=outside)
    assert "images=DIR" in hidden.hidden
    assert hidden.hidden in report_page([hidden], Contents(figures=False)).html
    assert not given.hidden
    page = report_page([given], Contents(figures=False))
    assert (page.pictures, page.missing) == (4, 2)
    assert "a link that leads out" in page.html


def test_the_studies_are_those_of_the_usual_database(
    client: TestClient, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/studies", data={"name": "mine"})
    assert ">mine</a></h2>" in client.get("/studies").text
    monkeypatch.setenv("CREPERIE_PEOPLE_DB", str(tmp_path_factory.mktemp("people") / "all.db"))
    assert ">mine</a></h2>" not in client.get("/studies").text
    client.post("/studies", data={"name": "mine"})
    assert ">mine</a></h2>" in client.get("/studies").text
    assert "all.db" in client.get("/studies").text


def test_foils_that_leak_are_not_accepted_in_advance(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"dog {k} sees cat {k}", f"cat {k} sees dog {k}")[:: 1 if k % 2 else -1] for k in range(40)]
    made = [
        Proposed(k, text, "negative", kind, "")
        for k, (true, false) in enumerate(pairs)
        for kind, text in (("negate", true.replace("sees", "does not see")), ("swap", false))
    ]
    monkeypatch.setattr("creperie.reporting.studio.making._candidates", lambda captions, makers: (made, [], {}))
    page = client.post("/make", data={"captions": "\n".join(true for true, _ in pairs)}).text
    assert 'name="all" value="yes" checked' in page
    boxes = re.findall(r'aria-label="accept: ([^"]*)"( checked)?', page)
    assert {("not" in text, bool(mark)) for text, mark in boxes} == {(True, False), (False, True)}
    names = re.findall(r'name="((?:source|of|role|kind)-\d+)" value="([^"]*)"', page)
    names += re.findall(r'name="(text-\d+)"[^>]*>([^<]*)<', page)
    for chosen, word in ((range(0, 80, 2), "leaks"), (range(1, 80, 2), "not shown")):
        answer = client.post("/verdict", data={**dict(names), **{f"keep-{k}": "yes" for k in chosen}}).text
        assert (f'pill {word.replace(" ", "-")}"' in answer, "40 foils accepted" in answer) == (True, True)


def test_few_items_are_said_in_plain_words_and_drawn_pale(client: TestClient, folder: Path) -> None:
    """One right of one is not drawn as 40 right of 40 are."""
    found = audit(
        save(foil_bench([(f"a dog {k}", f"a longer dog {k}") for k in range(2)], "two", subset="few"), folder / "two"),
        ["length-words", "length-chars"],
    )
    record_audit(folder / "two", audit_document(found, folder / "two"))
    page = client.get("/audit?name=two").text
    assert re.search("with so few items, choosing the caption with fewer .* may be right in up to 100.0 % of ", page)
    assert found.whole.text[10:] in page
    assert re.search(r'class="hu"[^>]*><b>100.0</b><small>(\d+)–100', page)  # hatched: neither red nor green


def test_second_captions_that_leak_are_not_accepted_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passives have more words than active foils: with them the length tells what is true."""
    pairs = [(f"dog {k} sees cat {k}", f"cat {k} sees dog {k}")[:: 1 if k % 2 else -1] for k in range(80)]
    made = [Proposed(k, false, "negative", "swap", "") for k, (_, false) in enumerate(pairs)]
    for k, (true, _) in enumerate(pairs):
        kind, text = "passive", "{2} is seen by {0}".format(*re.split(" (sees) ", true))
        if k >= 40:
            kind, text = "other", true.replace(str(k), str(119 - k))
        made.append(Proposed(k, text, "positive", kind, ""))
    monkeypatch.setattr("creperie.reporting.studio.making._candidates", lambda captions, makers: (made, [], {}))
    proposed, *_ = propose([true for true, _ in pairs], ["all"])
    assert {(p.kind, p.leak) for p in proposed} == {
        ("swap", ""),
        ("other", ""),
        ("passive", "this kind leaks: the caption with more words is right in 100.0 % of 40 pairs"),
    }


def test_of_several_second_captions_one_is_offered_and_one_is_used(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        Proposed(0, "a cat sees a dog", "negative", "swap", ""),
        Proposed(0, "a cat is seen by a dog", "positive", "passive", ""),
        Proposed(0, "there is a cat that a dog sees", "positive", "there-is", ""),
    ]
    monkeypatch.setattr("creperie.reporting.studio.making._candidates", lambda captions, makers: (made, [], {}))
    page = client.post("/make", data={"captions": "a dog sees a cat"}).text
    assert "1 foil (✗, false) and 1 second caption (✓, still true) are offered, 2 are ticked; 1 more" in page
    assert "1 more to choose from" in page
    form = {"source-0": "a dog sees a cat"}
    for k, one in enumerate(made):
        form |= {
            f"of-{k}": "0",
            f"text-{k}": one.text,
            f"role-{k}": one.role,
            f"kind-{k}": one.kind,
            f"keep-{k}": "yes",
        }
    answer = client.post("/verdict", data=form).text
    assert "1 foil and 1 second caption accepted" in answer
    assert "1 second caption left out: each caption takes one, beside a foil" in answer
    del form["keep-2"]
    assert "left out" not in client.post("/verdict", data=form).text


def test_what_nothing_was_made_of_says_why_and_the_same_foil_is_offered_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        Proposed(0, "a cat sees a dog", "negative", "swap", ""),
        Proposed(0, "A cat sees a dog", "negative", "active", ""),
        Proposed(0, "a dog is seen", "positive", "passive", ""),
        Proposed(0, "a dog is seen", "negative", "replace", NOT_CHOSEN),
        Proposed(0, "a cat", "negative", "cut", "not a sentence"),
    ]
    why = {1: "nothing to change <here>"}
    monkeypatch.setattr("creperie.reporting.studio.making._candidates", lambda captions, makers: (made, [], why))
    page = client.post("/make", data={"captions": "a dog sees a cat\nfour sheep"}).text
    assert page.count('aria-label="accept: ') == 2
    assert "active: the same as swap" in page
    assert "replace: the same as passive" in page
    assert re.search(r"four sheep</span> <small>nothing to change &lt;here&gt;</small>", page)
    assert "1 foil (✗, false) and 1 second caption" in page


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(room: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the browser sees."""
    return shutil.copytree(room, tmp_path_factory.mktemp("shown") / "here", ignore=shutil.ignore_patterns("cache"))


@pytest.fixture(scope="module")
def served(shown: Path) -> Iterator[str]:
    """`creperie studio` on a free port, ended as a user would end it."""
    (shown / "bench").rename(shown / "mine")
    command = [sys.executable, "-m", "creperie", "studio", str(shown), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    killer = threading.Timer(400, process.kill)
    killer.start()
    try:
        yield json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
    finally:
        killer.cancel()
        process.kill()


@pytest.mark.slow
def test_every_page_is_accessible_and_fits(served: str, shown: Path, chromium: Any) -> None:
    """In the dark only the colours are others."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    _, alpha, beta = sorted(path.name for path in (shown / "runs").iterdir())
    context = chromium.new_context(bypass_csp=True)  # axe brings its own script
    page = context.new_page()
    page.set_default_timeout(90_000)
    page.goto(served)
    asked = ["benchmarks", "items?name=mine&at=swap/7", "item?name=mine&subset=swap&id=7", "audit?name=mine", "make"]
    asked += [f"compare?a={alpha}&b={beta}", "robust?bench=mine&wrong=2/50", f"report?run={alpha}", "studies", "none"]
    asked += ["runs", "jobs", "search?words=cat", "plot"]
    for address in asked:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(served.split("?")[0] + address)
        for mode, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            page.emulate_media(color_scheme=mode)
            assert [v["id"] for v in axe.run(page, options=options).response["violations"]] == [], f"{address} {mode}"
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for width in (360, 768, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            if address.startswith("item?"):
                page.click("[name=comment]", timeout=5000)  # nothing covers the form
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} at {width}"
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(served.split("?")[0] + "jobs")
    assert page.locator(".rail [aria-current]").bounding_box()["x"] < 300  # where I am is seen on a phone, too
    context.close()


@pytest.mark.slow
def test_the_second_list_moves_only_with_the_first(served: str, shown: Path, chromium: Any) -> None:
    """It offers models on the first one's benchmark; a pair that an address names stays until somebody chooses."""
    _, a, b = sorted(path.name for path in (shown / "runs").iterdir())
    few = load(shown / "mine").only(["swap"])
    part, other = (score(few, model).save(shown / "runs") for model in ("blind:length", "blind:surface"))
    page = chromium.new_page()
    page.set_default_timeout(90_000)
    page.goto(served)
    page.goto(served.split("?")[0] + f"compare?a={a}&b={part.name}")
    first, second = page.locator("[data-pair]").all()
    assert [first.input_value(), second.input_value()] == [a, part.name]
    first.select_option(b)
    offered = second.locator("option:not([disabled])").evaluate_all("all => all.map((one) => one.value)")
    assert (second.input_value(), offered) == (a, [a])
    for run in (part, other):
        shutil.rmtree(shown / "runs" / run.name)
    page.close()


@pytest.mark.slow
def test_the_routes_of_the_studio(served: str, shown: Path, chromium: Any) -> None:
    pytest.importorskip("spacy", reason="the makers need a parser")
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(90_000)
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: trouble.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    page.goto(served)
    # an item by its address; markup in captions is text
    page.click("h2 a:has-text('mine')")
    page.click(".chip:has-text('pairs')")
    page.wait_for_selector("text=10 of 38 items")
    page.fill("[data-search]", "caption plain -7")  # results while typing
    page.wait_for_selector("text=9 of 38 items")
    page.locator(".card [data-item]").first.focus()
    assert page.evaluate("'item' in document.activeElement.dataset")  # by keyboard alone
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel mark")
    first = page.url
    page.wait_for_selector("#panel:focus")  # or on a phone the focus would be behind it
    assert not page.locator(".rail").is_visible()  # and Tab would leave the item for it
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel:has-text('2 of 9')")
    page.wait_for_selector("#panel [data-step=previous]:not(:focus) ~ [data-step=next]:focus")
    page.keyboard.press("Escape")
    page.wait_for_selector("#panel", state="detached")
    page.wait_for_selector(".card [data-item]:focus")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.wait_for_selector("#panel")
    page.keyboard.press("j")
    page.wait_for_selector("#panel:has-text('2 of 9')")
    assert page.url != first
    page.goto(page.url)  # every state has an address
    page.wait_for_selector("#panel:has-text('2 of 9'):focus")
    assert page.evaluate("document.title") != "1"
    page.set_viewport_size({"width": 390, "height": 400})
    page.evaluate("document.getElementById('panel').scrollTo(0, 9999)")
    assert page.locator("#panel [data-close]").bounding_box()["y"] >= 0  # stays in sight
    page.set_viewport_size({"width": 390, "height": 844})
    page.keyboard.press("Escape")  # on a phone the item covers the page
    # a table: imported, audited, its leaking items, refined, both verdicts
    (shown / "dropped").mkdir()
    (shown / "dropped" / "table.csv").write_text(NEGATED, "utf-8")
    shutil.copy(shown / "mine" / "images" / "2.png", shown / "dropped")
    page.click("nav a:has-text('Benchmarks')")
    page.click("summary:has-text('Drop a table')")
    page.set_input_files("[data-folder]", shown / "dropped")
    page.wait_for_selector("text=table.csv and 1 picture")
    page.wait_for_selector("#preview th:has-text('foil')")
    page.fill("input[name=subset]", "kind")
    page.click("button:has-text('Import')")
    page.wait_for_url("**/items?name=table&imported=1")
    page.click("main a:has-text('audited')")
    page.click("button:has-text('Audit')")
    page.click(".heat.leak a[href*='attacker=negation'] >> nth=0")
    page.wait_for_selector("text=45 of 60 items")
    page.go_back()
    page.click(".verdict button:has-text('honest')")
    page.wait_for_selector("h2:has-text('table-refined')")
    assert page.locator(".verdict").count() == 2
    # two runs: the items on which they disagree, and the choices that the ranking withstands
    page.click("nav a:has-text('Runs')")
    page.click("button:has-text('Compare')")
    page.wait_for_selector("text=is right")
    assert page.locator(".cards .card mark").count() > 0
    page.click("nav a:has-text('Runs')")
    page.click("a:has-text('hold?')")
    page.wait_for_selector("[aria-label='Places under every choice']")
    # two models against each other, as files
    page.click("nav a:has-text('Runs')")
    page.click("a:has-text('Plot two measures')")
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"model,")):
        with page.expect_download() as download:
            page.click(f"[data-save={kind}]")
        assert Path(download.value.path()).read_bytes().startswith(start)
    # captions to foils to a study
    page.click("nav a:has-text('Make')")
    page.fill("textarea", "\n".join(f"A dog number {k} chases a cat on the grass." for k in range(40)))
    page.click("button:has-text('Show foils')")
    page.wait_for_selector(".candidate:visible")
    page.keyboard.press("j")
    marks = page.locator(".candidate:focus mark").all_text_contents()
    page.keyboard.press("e")
    page.keyboard.type(" gone")
    page.keyboard.press("Escape")  # discards
    assert page.locator("[data-text]:has-text('gone')").count() == 0
    assert page.locator(".candidate:focus mark").all_text_contents() == marks != []  # nothing was changed
    page.keyboard.press("e")  # edited in place, as wide as the caption was
    assert page.locator("textarea:focus").bounding_box()["width"] > 200
    page.keyboard.type(" tonight ")  # after the last word
    page.keyboard.press("Enter")
    assert re.search(r"[a-z]\. tonight$", page.locator(".candidate:focus [data-text]").text_content())
    page.fill("input[name=name]", "no/name")  # refused: the page stays, with what was chosen
    page.click("button:has-text('Save') >> nth=0")
    page.wait_for_selector(".problem:has-text('needs a name')")
    assert page.locator("[data-text]:has-text('tonight')").count() == 1
    trouble.clear()  # the refusal
    page.locator(".candidate:visible").first.focus()
    page.keyboard.press("r")
    assert not page.locator(".candidate:visible").first.locator("[type=checkbox]").is_checked()
    for key in ("j", "a", "j", "a"):  # forty captions alike: kinds give themselves away and are not accepted unasked
        page.keyboard.press(key)
    page.fill("input[name=name]", "pasted")
    page.click("button:has-text('start a study')")
    page.wait_for_selector("text=The study is ready")
    assert page.locator("a[href*='/join/']").count() == 2
    assert 2 <= len(load(shown / "pasted")) < 80
    assert trouble == []
    assert all(a.startswith((served.split("?")[0], "data:")) for a in asked), asked
    context.close()
