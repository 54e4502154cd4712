"""The report in a real browser, opened from disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from foils import foil_bench
from tests.reporting.conftest import Dual
from tests.reporting.test_search import ITEMS, SEARCHES

from creperie.auditing import atlas_page, audit, audit_document, write_audit_page
from creperie.bench import Benchmark, Item, choice, from_items, save
from creperie.cli.make import make
from creperie.metrics import HIT, MISS, TIE, MetricSettings
from creperie.reporting import Contents, export_site, gather_runs, report_page, runs_in, study_page
from creperie.reporting.studio.items import ItemIndex
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring import ScoreOptions, compare, load_run, score, score_all
from creperie.training import TrainingStudy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(room: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    out.write_text(report_page(gather_runs(runs_in([room / "runs"])), Contents(figures=False)).html, "utf-8")
    return out.as_uri()


def until(page: Any, expression: str) -> None:
    """Wait for a condition; `wait_for_function` needs `eval`, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"not true after a minute: {expression}")


class Watched:
    """A page that remembers what went wrong and what it asked for."""

    def __init__(self, browser: Any, address: str, **how: Any) -> None:
        self.trouble: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda m: self.trouble.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.goto(address)
        until(self.page, "document.getElementById('count').textContent !== ''")


@pytest.fixture
def opened(chromium: Any, address: str) -> Iterator[Watched]:
    watched = Watched(chromium, address, viewport={"width": 1280, "height": 900})
    yield watched
    watched.context.close()
    assert watched.trouble == []
    assert [a for a in watched.asked if not a.startswith(("file:", "data:"))] == []


def test_a_portrait_is_shown_whole(opened: Watched) -> None:
    """A thumbnail that is cut to a square hides what captions are about: heads, feet, the sky."""
    assert (
        opened.page.locator("#items .pic img, .pic img").first.evaluate("i => getComputedStyle(i).objectFit")
        == "contain"
    )


def test_a_link_to_a_part_leads_there(chromium: Any, address: str) -> None:
    watched = Watched(chromium, f"{address}#comparisons", viewport={"width": 1280, "height": 500})
    until(watched.page, "scrollY > 0")
    assert watched.page.url.endswith("#comparisons")
    bar, heading = (watched.page.locator(one).bounding_box() for one in (".top", "#comparisons > h2"))
    assert bar["y"] + bar["height"] <= heading["y"] < 300
    watched.context.close()


def test_the_address_of_the_items_leads_to_them(chromium: Any, address: str) -> None:
    """The filter wrote its state into the address while the page was still opening: it stayed at the top."""
    watched = Watched(chromium, f"{address}#items", viewport={"width": 1280, "height": 500})
    until(watched.page, "scrollY > 0")
    assert watched.page.locator("#items").bounding_box()["y"] < 300
    watched.context.close()


def test_an_opened_item_has_an_address_and_marks_what_differs(chromium: Any, address: str) -> None:
    watched = Watched(chromium, f"{address}#items?item=swap%2F7")
    assert watched.page.inner_text("#detail h2") == "swap · 7"
    marked = watched.page.eval_on_selector_all("#detail li.no mark", "marks => marks.map((m) => m.textContent)")
    assert [words.strip() for words in marked] == ["cat 7", "a dog"]
    watched.page.keyboard.press("ArrowRight")
    assert "item=swap%2F8" in watched.page.url
    watched.page.keyboard.press("Escape")
    until(watched.page, "!location.hash.includes('item=')")
    watched.context.close()


def test_no_line_of_an_item_is_cut_off(chromium: Any, room: Path, tmp_path: Path) -> None:
    """With six models, half of the fifth was to be seen, and those of the chosen task may have been below it."""
    models: list[Any] = ["blind:length", "blind:surface", "blind:negation", *map(Dual, ("a", "b", "c"))]
    runs = score_all([room / "bench"], models, out=tmp_path / "runs")
    out = tmp_path / "report.html"
    out.write_text(report_page(gather_runs(list(runs)), Contents(figures=False)).html, "utf-8")
    watched = Watched(chromium, f"{out.as_uri()}#items", viewport={"width": 1280, "height": 900})
    marks = watched.page.locator(".marks").first
    assert marks.locator(".who").all_inner_texts() == ["a", "b", "c", "and 3 more"]
    assert marks.evaluate("marks => marks.scrollHeight <= marks.clientHeight")
    watched.context.close()


def test_axe_finds_no_violation(
    chromium: Any, address: str, room: Path, bench: Benchmark, study: TrainingStudy, tmp_path: Path
) -> None:
    """axe-core on every kind of page that is written as a file, in light and dark, at the width of a phone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    document = audit_document(audit(bench, ["length-words", "surface"]))
    shades = [{**document["results"][0], "subset": f"s{k}", "accuracy": 0.5 + k / 20} for k in range(11)]
    write_audit_page({**document, "results": shades}, tmp_path / "audit.html")
    (tmp_path / "atlas.html").write_text(atlas_page([{**document, "results": shades}]), "utf-8")
    export_site(room / "runs", tmp_path / "site")
    captions = tmp_path / "captions.txt"
    captions.write_text("A black dog chases a white cat on the grass.\nTwo men sit on a red bench.\n", "utf-8")
    sheet = ["--out", str(tmp_path / "made"), "--html", str(tmp_path / "sheet.html")]
    CliRunner().invoke(make, ["all", "--captions", str(captions), *sheet])
    (tmp_path / "study.html").write_text(study_page(study), "utf-8")
    places = [address, *sorted(path.as_uri() for path in tmp_path.rglob("*.html"))]
    assert len(places) > 7
    context = chromium.new_context(bypass_csp=True, viewport={"width": 390, "height": 800})
    for place in places:
        page = context.new_page()
        page.goto(place)
        for mode, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            page.emulate_media(color_scheme=mode)
            assert [v["id"] for v in axe.run(page, options=options).response["violations"]] == [], f"{place} {mode}"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, place
        looks = page.locator("td").evaluate_all("cells => cells.map((cell) => getComputedStyle(cell).display)")
        assert set(looks) <= {"table-cell"}, place  # long texts with marked words, too
        page.close()
    context.close()


def count(page: Any) -> int:
    return int(page.inner_text("#count").split(" of ")[0].replace(",", ""))


def test_tables_sort(opened: Watched) -> None:
    page = opened.page
    heading = page.locator("#summary th", has_text="accuracy")
    column = heading.evaluate("h => h.cellIndex")

    def values() -> list[float]:
        found = page.eval_on_selector_all(
            "#summary tbody tr", f"rows => rows.map(r => Number(r.cells[{column}].dataset.v))"
        )
        return [float(v) for v in found]

    heading.locator("button").click()
    assert values() == sorted(values(), reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").click()
    assert values() == sorted(values())


def test_filters_count_what_the_runs_say(opened: Watched, room: Path) -> None:
    page = opened.page
    runs = {r.model: r for r in map(load_run, runs_in([room / "runs"]))}
    alpha, beta = runs["fake:alpha"], runs["fake:beta"]
    assert count(page) == 38
    page.select_option("#subset", "swap")
    assert count(page) == 24
    page.click("#clear")
    itt, tot = alpha.outcomes("itt"), alpha.outcomes("tot")
    page.click("#presets button:has-text('itt ✓ tot ✗'):has-text('alpha')")
    assert count(page) == int(((itt == HIT) & np.isin(tot, [MISS, TIE])).sum())
    page.click("#presets button:has-text('itt ✓ tot ✗'):has-text('alpha')")
    assert count(page) == 38
    page.click("#presets button:has-text('itt: models disagree')")
    assert count(page) == int((np.isin(itt, [HIT]) != np.isin(beta.outcomes("itt"), [HIT])).sum())
    page.click("#clear")
    page.fill("#q", "CHASES CAT 7")
    until(page, "document.getElementById('count').textContent.startsWith('1 ')")
    page.fill("#q", "")
    page.select_option("#tag", "animal")
    page.select_option("#value", "cat")
    assert count(page) == 8


@pytest.mark.parametrize("ties", ["wrong", "right"])
def test_chips_count_ties_by_the_tie_rule_as_comparisons_and_the_studio_do(
    chromium: Any, tmp_path: Path, ties: Any
) -> None:
    captions = [("a b", "a b c"), ("a b c", "a b"), ("aa b", "a b"), ("a b", "aa b"), ("a bb", "b aa")]
    bench = save(foil_bench(captions, "few"), tmp_path / "few")
    uris = [f"blind:length-{unit}" for unit in ("words", "chars")]
    how = ScoreOptions(tasks=("blind",), settings=MetricSettings(ties=ties))
    runs = [score(bench, uri, options=how, out=tmp_path / "runs") for uri in uris]
    words, chars = (run.outcomes("blind") for run in runs)
    right = (HIT, TIE) if ties == "right" else (HIT,)
    a, b = np.isin(words, right), np.isin(chars, right)
    assert TIE in words
    assert not np.array_equal(a, b)
    found = compare(runs, tasks=["blind"], ties=ties).rows[0].comparison
    out = tmp_path / "few.html"
    out.write_text(report_page(gather_runs(runs, benches=[bench]), Contents(figures=False)).html, "utf-8")
    watched = Watched(chromium, out.as_uri())
    told = watched.page.locator("#presets button").evaluate_all(
        "all => all.map(c => [...c.childNodes].map(n => n.textContent))"
    )
    watched.context.close()
    chips = {name: int(n) for name, n in told}
    one, other = "length-words", "length-chars"
    apart = [int((a & ~b).sum()), int((b & ~a).sum())]
    assert [chips.get(f"blind: {x} ✓ {y} ✗", 0) for x, y in ((one, other), (other, one))] == apart
    assert [found.mcnemar.only_a, found.mcnemar.only_b] == apart
    assert chips.get("blind: every model wrong", 0) == int((~a & ~b).sum())
    assert chips["blind: models disagree"] == sum(apart)
    index, shelf = ItemIndex(bench), Shelf(tmp_path)
    shown = index.shown(shelf, "blind")
    assert [int(shown[name].sum()) for name in ("disagree", "wrong")] == [sum(apart), int((~a & ~b).sum())]


def test_words_find_in_a_report_what_they_find_in_the_studio(chromium: Any, tmp_path: Path) -> None:
    bench = from_items("some", ITEMS)
    out = tmp_path / "some.html"
    groups = gather_runs([score(bench, "blind:length")], benches=[bench])
    out.write_text(report_page(groups, Contents(figures=False)).html, "utf-8")
    watched = Watched(chromium, out.as_uri(), viewport={"width": 1280, "height": 900})
    for typed, ids in SEARCHES.items():
        if "model" not in typed:
            watched.page.fill("#q", "nothing like it")
            until(watched.page, "document.getElementById('count').textContent.startsWith('0 ')")
            watched.page.fill("#q", typed)
            until(watched.page, f"document.getElementById('count').textContent.startsWith('{len(ids)} ')")
            shown = watched.page.locator("#list .row small").all_inner_texts()
            assert "".join(text.rpartition(" · ")[2] for text in shown) == ids, typed
    watched.context.close()
    assert watched.trouble == []


def test_margins_bound_and_sort(opened: Watched, room: Path) -> None:
    page = opened.page
    page.click("#add")
    page.select_option("#conditions select[aria-label=Model]", label="alpha")
    page.select_option("#conditions select[aria-label=Outcome]", label="right")
    page.select_option("#sort", "close")
    shown = page.eval_on_selector_all(
        "#list .row",
        """rows => rows.map(r => {
            const mark = [...r.querySelectorAll('.mark')].find(m => m.querySelector('.who').textContent === 'alpha');
            return Number(mark.querySelector('.lead').textContent);
        })""",
    )
    assert shown == sorted(shown)
    assert all(v >= 0 for v in shown)
    before = count(page)
    page.fill("#mfrom", "0.5")
    until(page, f"!document.getElementById('count').textContent.startsWith('{before} ')")
    assert count(page) < before


def test_an_item_opens_by_keys_and_shows_everything(opened: Watched) -> None:
    page = opened.page
    page.fill("#q", "onerror")
    until(page, "document.getElementById('count').textContent.startsWith('10 ')")
    page.focus("#list")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#item").evaluate("d => d.open")
    assert '</script><img src=x onerror="document.title=1">' in page.inner_text("#detail .captions li >> nth=0")
    assert page.locator("#detail .captions li.yes").count() == 1
    assert page.locator("#detail article.model").count() == 3
    assert page.locator("#detail .pictures img").evaluate("i => i.decode().then(() => i.naturalWidth)") > 100
    assert page.inner_text("#place") == "2 of 10"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#place") == "3 of 10"
    page.keyboard.press("Escape")
    assert not page.locator("#item").evaluate("d => d.open")
    assert page.title() == "Report on bench (mine)"


def test_a_view_can_be_sent_as_an_address(opened: Watched, chromium: Any) -> None:
    page = opened.page
    page.click("#presets button:has-text('models disagree')")
    page.select_option("#subset", "swap")
    there = Watched(chromium, page.url)
    assert count(there.page) == count(page) > 0
    there.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(chromium: Any, address: str, scheme: str) -> None:
    phone = Watched(chromium, address, viewport={"width": 390, "height": 844}, color_scheme=scheme, has_touch=True)
    # a foil often differs at its end: captions have two lines, and no row runs into the next
    first = phone.page.locator("#list .row").first
    first.evaluate("r => r.querySelectorAll('.cap').forEach(c => { c.textContent = 'a long caption '.repeat(5); })")
    assert first.evaluate("r => [...r.querySelectorAll('.cap')].slice(0, 2).every(c => c.scrollWidth <= c.clientWidth)")
    assert first.evaluate("r => r.scrollHeight <= r.clientHeight")
    paper = phone.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(x) for x in paper[4:-1].split(",")) > 384) is (scheme == "light")
    phone.page.locator("#list .row").first.tap()
    assert phone.page.locator("#item").evaluate("d => d.open && d.scrollWidth <= d.clientWidth")
    assert phone.trouble == []
    phone.context.close()


def test_several_benchmarks_share_a_page(chromium: Any, room: Path, tmp_path: Path) -> None:
    from creperie.bench import load

    part = load(room / "bench").only(["two", "pairs"])
    groups = gather_runs([*runs_in([room / "runs"]), score(part, "blind:length")], benches=[room / "bench"])
    assert [len(g) for g in groups] == [38, 14]
    out = tmp_path / "two.html"
    out.write_text(report_page(groups, Contents(figures=False)).html, "utf-8")
    both = Watched(chromium, out.as_uri())
    assert count(both.page) == 38
    both.page.select_option("#bench", "1")
    assert count(both.page) == 14
    both.page.select_option("#subset", "two")
    both.page.click("#list .row >> nth=0")
    assert both.page.locator("#detail .pictures img").count() == 2
    assert "TRUE OF 1" in both.page.inner_text("#detail .captions").upper()
    assert both.trouble == []
    both.context.close()


def test_the_list_draws_only_what_is_seen(chromium: Any, tmp_path: Path, room: Path) -> None:

    items = [Item(str(i), f"s{i % 5}", (), (f"true {i}", f"false caption {i}"), choice(1, 1)) for i in range(10_000)]
    bench = from_items("big", items)
    out = tmp_path / "big.html"
    page = report_page(gather_runs([score(bench, "blind:length")], benches=[bench]), Contents(figures=False))
    out.write_text(page.html, "utf-8")
    big = Watched(chromium, out.as_uri(), viewport={"width": 1280, "height": 900})
    assert count(big.page) == 10_000
    assert big.page.locator("#list .row").count() < 40
    big.page.focus("#list")
    big.page.keyboard.press("End")
    big.page.wait_for_selector("#row-9999")
    assert "true 9999" in big.page.inner_text("#row-9999")
    assert big.page.locator("#list .row").count() < 40
    took = big.page.evaluate("""() => { const q = document.getElementById('q'), start = performance.now();
        document.getElementById('subset').value = 's3';
        document.getElementById('subset').dispatchEvent(new Event('change'));
        return performance.now() - start; }""")
    assert count(big.page) == 2000
    assert took < 5000  # a few milliseconds on an idle core
    big.context.close()
