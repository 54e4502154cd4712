"""The studio: what its pages show, what they refuse, and its routes in a real browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from fastapi.testclient import TestClient

from creperie.bench import Benchmark, Item, choice, from_items, load, save
from creperie.core.errors import UsageError
from creperie.reporting.leaderboard import STATIC, RunsFolder, board_html, remember_zoo
from creperie.reporting.studio.app import listen, make_studio
from creperie.reporting.studio.items import ItemFilter, ItemIndex
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring.run import Run

TOKEN = "the-token"
ORIGIN = {"Origin": "http://testserver"}


@pytest.fixture
def folder(room: Path, tmp_path: Path) -> Path:
    """A folder with a benchmark with pictures and its runs."""
    shutil.copytree(room / "bench", tmp_path / "mine")
    shutil.copytree(room / "runs", tmp_path / "runs")
    return tmp_path


@pytest.fixture
def client(folder: Path) -> TestClient:
    client = TestClient(make_studio(folder, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    assert client.get("/", params={"token": TOKEN}).url.path == "/benchmarks"
    return client


# -- the leaderboard -------------------------------------------------------------------------------------------------


def test_headers_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = RunsFolder(folder / "runs")
    first = here.look()
    monkeypatch.setattr("creperie.reporting.leaderboard.read_entry", lambda path: pytest.fail("read again"))
    assert here.look() == first


def test_runs_are_ordered_by_what_most_have(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    html = board_html(board, STATIC)
    values = {e.name: e.result("itt") for e in board.entries}
    ranked = sorted((n for n, r in values.items() if r), key=lambda n: -values[n]["accuracy"])  # type: ignore[index]
    places = [html.index(f'data-run="{name}"') for name in ranked]
    assert places == sorted(places)


def test_weights_are_shown_in_thousands_or_millions(room: Path) -> None:
    board = RunsFolder(room / "runs").look()
    for count, shown in ((4_242, "4 k"), (151_277_313, "151.3 M"), (None, "")):
        for entry in board.entries:
            entry.document["model"]["parameters"] = count
        html = board_html(board, STATIC)
        assert ("0.0 M" in html, not shown or f">{shown}<" in html) == (False, True), shown


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
            listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UsageError, match="no such folder"):
        make_studio(tmp_path / "none")


# -- pages -----------------------------------------------------------------------------------------------------------


def test_items_are_filtered_by_the_server(client: TestClient) -> None:
    assert "38 of 38 items" in client.get("/items?name=mine").text
    assert "8 of 38 items" in client.get("/items?name=mine&tag=animal=cat").text
    swap = client.get("/items?name=mine&subset=swap&words=CAT 7").text
    assert "1 of 38 items" in swap
    assert "<mark>" in swap
    assert "&lt;img src=x" in client.get("/items?name=mine&subset=pairs").text
    assert client.get("/picture?name=mine&image=2.png").content[8:12] == b"WEBP"


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
    client.post("/item", data={**key, "action": "correct", "caption-2": "a horse", "comment": "was <odd>"})
    corrected = load(folder / "mine-edited-2")
    assert corrected.item("swap", "7").captions[2] == "a horse"
    assert corrected.item("swap", "7").tags["comment"] == "was <odd>"
    assert corrected.provenance[-1].op == "correct"
    assert corrected.provenance[-1].inputs == (before,)
    assert load(folder / "mine").hash == before
    assert client.post("/item", data={**key, "action": "correct"}).status_code == 400


def test_two_models_side_by_side(client: TestClient, folder: Path) -> None:
    runs = {r.model: r for r in (Shelf(folder).run(p.name) for p in (folder / "runs").iterdir())}
    alpha, beta = runs["fake:alpha"], runs["fake:beta"]
    page = client.get("/compare", params={"a": alpha.name, "b": beta.name}).text
    first = alpha.tasks[0]
    only = int(((alpha.outcomes(first) == 1) & ~((beta.outcomes(first) == 1) | (beta.outcomes(first) == -1))).sum())
    assert f"{only} item" in page.split("Only fake:alpha is right")[1][:60]
    report = client.get("/report", params={"run": alpha.name})
    assert report.status_code == 200
    assert "← all runs" in report.text


def test_blind_twins_have_a_table_of_their_own(twins: list[Run], tmp_path: Path) -> None:
    client = TestClient(make_studio(tmp_path, TOKEN, hosts=("testserver",)), headers=ORIGIN)
    client.get("/", params={"token": TOKEN})
    page = client.get("/runs").text
    assert 'href="/report?bench=mine#picture">What does the picture add on mine?' in page
    boards = {part.partition('"')[0]: part for part in page.split('data-bench="')[1:]}
    for run in twins:
        own = "mine-noise" if "~" in run.benchmark else "mine"
        assert [name for name, part in boards.items() if f'data-run="{run.name}"' in part] == [own]
    assert "<h2>What the picture adds</h2>" in client.get("/report", params={"bench": "mine"}).text


SLEEPS = [(f"Dog {k} sleeps.", f"Dog {k} does not sleep.") for k in range(60)]
PAIRS = [pair if k % 4 else pair[::-1] for k, pair in enumerate(SLEEPS)]  # "not" tells three of four
NEGATED = "caption,foil,kind\n" + "".join(f"{true},{false},negate\n" for true, false in PAIRS)


def test_a_table_becomes_a_benchmark(client: TestClient, folder: Path) -> None:
    form = {"table": NEGATED, "name": "pasted", "subset": "kind", "image": "", "pictures": ""}
    assert "60 of 60 items" in client.post("/import", data=form).text
    columns = {"positive": "caption", "negative": "odd"}
    tabbed = {**form, **columns, "name": "tabbed", "table": NEGATED.replace(",", "\t").replace("foil", "odd")}
    assert client.post("/import", data=tabbed).url.params["name"] == "tabbed"
    assert load(folder / "tabbed").item("negate", "7").captions == ("Dog 7 sleeps.", "Dog 7 does not sleep.")
    wrong = ({"table": "a,b\n1,2\n"}, {"table": ""}, {"pictures": "../.."}, {"name": "../out"}, {"name": "pasted"})
    for change in wrong:
        refused = client.post("/import", data={**form, "name": "other", **change})
        assert refused.status_code == 400, change
        assert "/tmp" not in refused.text


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


def test_an_audit_is_watched_and_refined(client: TestClient) -> None:
    client.post("/audit", data={"name": "mine", "attackers": "length-words"})
    until = time.monotonic() + 60
    while "done in" not in (part := client.get("/audit?name=mine&part=1").text) and time.monotonic() < until:
        time.sleep(0.1)
    assert '<td class="text">length-words</td>' in part
    page = client.get("/audit?name=mine").text
    assert "Blind accuracy" in page
    assert "creperie audit mine" in page
    assert "not audited" not in client.get("/benchmarks").text


def test_accepted_foils_become_a_benchmark_and_a_study(client: TestClient, folder: Path) -> None:
    one = {"of-0": "0", "role-0": "negative", "kind-0": "swap", "text-0": "a cat sees a dog", "keep-0": "yes"}
    two = {"of-1": "0", "role-1": "negative", "kind-1": "swap", "text-1": "no <b>dog</b>"}  # not accepted
    form = {"source-0": "a dog sees a cat", "name": "pasted", "then": "study", **one, **two}
    page = client.post("/save", data=form).text
    assert "The study is ready" in page
    assert page.count("/join/") >= 2
    (item,) = load(folder / "pasted")
    assert (item.captions, item.subset) == (("a dog sees a cat", "a cat sees a dog"), "swap")
    assert "pasted" in client.get("/studies").text
    assert client.post("/save", data=form).status_code == 400  # the name is taken
    assert client.post("/save", data={**form, "name": "../out"}).status_code == 400


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    """`creperie studio` on a free port, ended as a user would end it."""
    command = [sys.executable, "-m", "creperie", "studio", str(folder), "--port", "0", "--json"]
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
def test_the_routes_of_the_studio(served: str, folder: Path, chromium: Any) -> None:
    pytest.importorskip("spacy", reason="the makers need a parser")
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(240_000)
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: trouble.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    page.goto(served)
    # an item by its address; markup in captions is text
    page.click("a:has-text('mine')")
    page.select_option("select[name=subset]", "pairs")
    page.wait_for_selector("text=10 of 38 items")
    page.click(".card header a >> nth=0")
    assert page.locator(".card mark").count() > 0
    assert page.evaluate("document.title") != "1"
    # a table: imported, audited, its leaking items, refined, both verdicts
    (folder / "table.csv").write_text(NEGATED, "utf-8")
    page.click("nav a:has-text('Benchmarks')")
    page.click("summary:has-text('Import a table')")
    page.set_input_files("[data-into]", folder / "table.csv")
    page.wait_for_selector("input[name=name]:valid")
    page.fill("input[name=subset]", "kind")
    page.click("button:has-text('Import')")
    page.click("main a:has-text('audit')")
    page.click("button:has-text('Audit')")
    page.click("li:has-text('negation chooses') a")
    page.wait_for_selector("text=45 of 60 items")
    page.go_back()
    page.click("button:has-text('Refine')")
    page.wait_for_selector("h2:has-text('table-refined')")
    assert page.locator(".verdict").count() == 2
    # two runs: the items on which they disagree, and the choices that the ranking withstands
    page.click("nav a:has-text('Runs')")
    page.click("button:has-text('Compare')")
    page.wait_for_selector("text=is right")
    assert page.locator(".beside .card mark").count() > 0
    page.click("nav a:has-text('Runs')")
    page.click("a:has-text('hold?')")
    page.wait_for_selector("[aria-label='Ranks under every choice']")
    # captions to foils to a study
    page.click("nav a:has-text('Make')")
    page.fill("textarea", "\n".join(f"A dog number {k} chases a cat on the grass." for k in range(40)))
    page.click("button:has-text('Show foils')")
    page.wait_for_selector(".candidate")
    page.keyboard.press("j")
    page.keyboard.press("r")
    assert not page.locator(".candidate [type=checkbox] >> nth=0").is_checked()
    page.fill("input[name=name]", "pasted")
    page.click("button:has-text('start a study')")
    page.wait_for_selector("text=The study is ready")
    assert page.locator("a[href*='/join/']").count() == 2
    assert len(load(folder / "pasted")) > 20
    assert trouble == []
    assert all(a.startswith((served.split("?")[0], "data:")) for a in asked), asked
    context.close()


@pytest.mark.slow
def test_every_page_is_accessible_and_fits(served: str, folder: Path, chromium: Any) -> None:
    """In the dark only the colours are others."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    _, alpha, beta = sorted(path.name for path in (folder / "runs").iterdir())
    context = chromium.new_context(bypass_csp=True)  # axe brings its own script
    page = context.new_page()
    page.goto(served)
    asked = ["benchmarks", "items?name=mine", "item?name=mine&subset=swap&id=7", "audit?name=mine", "make", "runs"]
    asked += [f"compare?a={alpha}&b={beta}", "robust?bench=mine&wrong=2/50", f"report?run={alpha}", "studies", "none"]
    for address in asked:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(served.split("?")[0] + address)
        for mode, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            page.emulate_media(color_scheme=mode)
            assert [v["id"] for v in axe.run(page, options=options).response["violations"]] == [], f"{address} {mode}"
        for width in (390, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} at {width}"
    context.close()
