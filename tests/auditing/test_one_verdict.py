"""One verdict: audit, refine's last lines, the report, the card, the datasheet and the files of CI say the same."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import creperie
from creperie.auditing import (
    EXIT_CODES,
    AttackerMargins,
    AttackerModels,
    AuditOptions,
    AuditRow,
    Judgement,
    Measurements,
    audit,
    audit_answer,
    audit_document,
    blind_rows,
    calibrated,
    changed_options,
    entry_of,
    judge,
    judge_validation,
    make_attackers,
    measure_attacker,
    next_command,
    pairs_of,
    runnable_attackers,
)
from creperie.auditing.verdict import judge_all
from creperie.bench import PAIRED, Benchmark, Item, choice, concatenate, from_items, load, record_audit, save
from creperie.lang import linkgrammar
from creperie.reporting import badge_svg, junit_xml, markdown_summary, standing_audit
from creperie.reporting.html_tables import part
from creperie.world import World, make_world

CHEAP = "length-words,surface,negation"


def scene(rng: np.random.Generator) -> tuple[str, str]:
    first, second = rng.choice(["dog", "cat", "man", "girl", "horse", "bird", "boat", "lamp"], 2, replace=False)
    verb, place = rng.choice(["sees", "holds", "finds", "follows"]), rng.choice(["park", "street", "field", "yard"])
    return f"The {first} {verb} the {second} in the {place}.", f"The {second} {verb} the {first} in the {place}."


def null(n: int, seed: int, subset: str = "null", longer: float = 0.0, untidy: float = 0.0) -> list[Item]:
    """Pairs whose roles are drawn by a coin; then a share of the foils is longer, or ends without a period."""
    rng = np.random.default_rng(seed)
    items = []
    for k in range(n):
        true, false = rng.permutation(list(scene(rng))).tolist()
        false = false.replace(" in ", " and a hat in ") if rng.random() < longer else false
        false = false.rstrip(".") if rng.random() < untidy else false
        items.append(Item(str(k), subset, (f"{k}.jpg",), (true, false), choice(1, 1)))
    return items


def twins(n: int) -> list[Item]:
    rng = np.random.default_rng(n)
    return [Item(str(k), "twins", (f"{k}a", f"{k}b"), scene(rng), PAIRED) for k in range(n)]


def same(n: int) -> list[Item]:
    return [*null(n, 3), Item("same", "null", ("s.jpg",), ("A dog runs.", "A dog runs."), choice(1, 1))]


def released(name: str, folder: str, subset: str) -> list[Item]:
    place = Path(__file__).parents[3] / "shared" / "data" / folder
    if not place.exists():
        pytest.skip("the real benchmark files (../shared/data) are not here")
    return [item for item in load(f"{name}:{place}") if item.subset == subset][:150]


def world(kind: str, form: str) -> list[Item]:
    return list(make_world(World(items=60, kinds=(kind,), forms=(form,))))


def made() -> list[Item]:
    """Foils by a rule, from captions."""
    captions = [f"A {a} dog sits near the {b} cat." for a in ("red", "small", "old") for b in ("black", "young")]
    found = creperie.make("rules:negate", captions)
    return list(found.items)


def refined() -> list[Item]:
    return list(creperie.refine(from_items("b", null(200, 2, untidy=0.4)), attackers="surface", audit=False).bench)


#: Twenty small benchmarks: null, leaking in several ways and sizes, twins, unsolvable, several subsets and positives;
#: released, made, refined and from the world.
BENCHES: dict[str, Callable[[], list[Item]]] = {
    **{f"null-{n}": lambda n=n: null(n, n) for n in (8, 60, 1500)},
    **{f"longer-{s:g}": lambda s=s: null(200, 1, longer=s) for s in (0.05, 0.3, 1.0)},
    **{f"untidy-{s:g}": lambda s=s: null(200, 2, untidy=s) for s in (0.3, 1.0)},
    "released": lambda: released("sugarcrepe", "sugarcrepe", "swap_obj"),
    "released-pp": lambda: released("sugarcrepe++", "sugarcrepe_pp", "swap_att"),
    "world": lambda: world("swap_obj", "choice"),
    "world-twins": lambda: world("swap_obj", "winoground"),
    "made": made,
    "refined": refined,
    "twins": lambda: twins(40),
    "unsolvable": lambda: same(200),
    "two-subsets": lambda: [*null(400, 5, "fair"), *null(80, 6, "long", longer=1.0)],
    "mixed": lambda: [*null(200, 5, "fair"), *twins(20)],
    "cues": lambda: null(300, 7, longer=0.2, untidy=0.4),
    "paraphrases": lambda: [replace(i, captions=(*i.captions, "A b."), match=choice(2, 1)) for i in null(100, 8)],
}
#: Takes seconds: a parser is loaded.
MARKED = [pytest.param(name, marks=pytest.mark.slow) if name == "made" else name for name in BENCHES]


@cache
def built(name: str) -> Benchmark:
    return from_items(name, BENCHES[name]())


def stated(folder: Path, text: str) -> None:
    """Every page about the benchmark in a folder holds the sentence, word for word."""
    document = standing_audit(load(folder))
    assert document["text"] == text
    for card in ("README.md", "DATASHEET.md"):
        assert f"{text}.\n" in (folder / card).read_text(encoding="utf-8")
        assert "run `creperie audit`" not in (folder / card).read_text(encoding="utf-8").lower()
    pages = [
        part("audit", document, blind_rows(document), audit_answer(document)),
        markdown_summary(document),
        junit_xml(document),
    ]
    plain = [html.unescape(re.sub("</?strong>", "", str(p))).lower() for p in pages]  # a page capitalises the verdict
    assert [text.lower() in page for page in plain] == [True] * 3
    assert document["verdict"] in badge_svg(document)
    assert f'name="verdict" value="{document["verdict"]}"' in pages[2]


@pytest.mark.parametrize("name", MARKED)
def test_all_state_the_same_verdict(name: str, tmp_path: Path, command: Any) -> None:
    save(built(name), tmp_path / "b")
    code, out, _ = command("audit", tmp_path / "b", "--attackers", CHEAP)
    verdict, step = out.splitlines()[-2:]
    text = verdict.removeprefix("verdict: ")
    assert step.startswith("next: creperie ")
    stated(tmp_path / "b", text)
    files = ("--junit", tmp_path / "junit.xml", "--sarif", tmp_path / "ci.sarif", "--badge", tmp_path / "badge.svg")
    ci = ("--json", "--strict", *files, "--attackers", CHEAP, "--markdown", tmp_path / "ci.md")  # as in action.yml
    again, answer, _ = command("audit", tmp_path / "b", *ci)
    document = json.loads(answer)
    assert (again, document["text"], document["code"]) == (code, text, code)
    assert code == EXIT_CODES[document["verdict"]]
    assert text in (tmp_path / "ci.md").read_text(encoding="utf-8")
    assert f'value="{document["verdict"]}"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert document["verdict"] in (tmp_path / "badge.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MARKED)
def test_refine_ends_with_the_audit_of_what_it_kept(name: str, tmp_path: Path, command: Any) -> None:
    save(built(name), tmp_path / "b")
    how = ("--attackers", "surface", "--held-out", "length-words,negation", "--out", tmp_path / "out")
    code, out, _ = command("refine", tmp_path / "b", *how)
    last = out.splitlines()[-2:]
    text = last[0].removeprefix("verdict: ")
    if text.startswith("nothing left"):  # every foil has the cue
        assert (name, code, (tmp_path / "out").exists()) == ("untidy-1", 1, False)
        return
    stated(tmp_path / "out", text)
    audited, shown, _ = command("audit", tmp_path / "out", "--attackers", "surface,length-words,negation")
    assert shown.splitlines()[-2:] == last
    assert audited == code
    if name == "longer-0.3":  # the cue that was not selected against
        assert (code, text.split()[0]) == (1, "leaks")


def test_a_refinement_without_an_audit_is_not_run(tmp_path: Path, command: Any) -> None:
    save(from_items("b", null(60, 0)), tmp_path / "b")
    code, out, _ = command("refine", tmp_path / "b", "--attackers", "surface", "--no-audit", "--out", tmp_path / "o")
    assert code == 3
    assert out.splitlines()[-2:] == [
        "verdict: not run: no audit was run",
        f"next: creperie audit {tmp_path / 'o'}",
    ]
    assert "Not audited yet" in (tmp_path / "o" / "README.md").read_text(encoding="utf-8")
    _, out, _ = command("refine", tmp_path / "b", "--no-audit", "--dry-run", "--images", tmp_path, "--subset", "null")
    assert out.splitlines()[-1] == f"next: creperie audit {tmp_path / 'b'} --images {tmp_path} --subset null"


def test_a_narrower_audit_does_not_replace_a_fuller_one(tmp_path: Path) -> None:
    bench = save(from_items("b", null(60, 0)), tmp_path / "b")
    full, narrow = (audit_document(audit(bench, names), "b") for names in (CHEAP.split(","), ["surface"]))
    for one in (narrow, full, narrow, {**full, "hash": "of another content"}):
        record_audit(tmp_path / "b", one)
    assert standing_audit(load(tmp_path / "b"))["attackers"] == full["attackers"]
    sheet = (tmp_path / "b" / "DATASHEET.md").read_text(encoding="utf-8")
    assert f"60 items, {len(full['attackers'])} attackers" in sheet  # on which the smallest leak that is seen depends


def figures(bench: Benchmark, margins: np.ndarray, *, directed: bool = False) -> AttackerMargins:
    return calibrated(pairs_of(bench), margins, directed=directed)


def row(name: str, answers: AttackerMargins, **more: float) -> AuditRow:
    measure = replace(measure_attacker(answers), **more)  # type: ignore[arg-type]
    return AuditRow("null", "", name, "", measure, p_holm=measure.p)


def judged(items: int, *rows: AuditRow) -> Judgement:
    return judge(Measurements("all", items, rows))


@pytest.mark.parametrize("broken", ["high", "low", "accuracy"])
def test_a_bound_that_is_no_number_is_never_clean(broken: str) -> None:
    bench = from_items("b", null(2000, 0))
    fair = figures(bench, np.where(np.arange(2000) % 2, 1.0, -1.0))
    fine = judged(2000, row("length-words", fair))
    assert fine.verdict == "clean"
    lost = judged(2000, row("length-words", fair), row("surface", fair, **{broken: float("nan")}))
    assert lost.verdict == "not shown"
    whole = judge_all(fine, [judged(2000, row("surface", fair)), lost])
    assert whole.verdict == "not shown"
    assert EXIT_CODES[whole.verdict] == 3


def test_the_sentence_names_the_widest_limit_beside_a_subset_that_no_attacker_could_measure() -> None:
    few = judged(20, row("surface", figures(from_items("b", null(20, 0)), np.tile([1.0, -1.0], 10))))
    none = judged(20)
    for subsets in ([few, none], [none, few]):
        assert re.search(r"surface may reach \d\d\.\d % on null", judge_all(few, subsets).text)


def test_the_headline_is_never_weaker_than_its_best_member() -> None:
    bench = from_items("b", null(200, 0))
    strong, weak = figures(bench, np.where(np.arange(200) % 50, 1.0, -1.0)), figures(bench, np.tile([1.0, -1.0], 100))
    found = judged(200, row("length-words", strong), row("ensemble", weak))
    assert found.headline.attacker == "length-words"
    assert "(98.0 % [" in replace(found, verdict="clean").text
    assert "by length-words)" in replace(found, verdict="clean").text


def test_an_attacker_that_learned_nothing_was_not_run() -> None:
    """Below 60 pairs the ensemble was shown as "50.0 % [45.8, 54.2] by all attackers together"."""
    found = audit(from_items("b", null(44, 0, longer=1.0)), ["length-words", "surface", "ensemble"])
    assert found.verdict == "leaks"
    assert "ensemble" not in {r.attacker for r in found.rows}
    assert found.not_sent == {"ensemble": "needs about 60 pairs with different captions"}
    assert found.text.endswith("; not run: ensemble (needs about 60 pairs with different captions)")
    assert "all attackers together" not in found.text


def test_what_an_audit_could_have_seen_lies_above_what_it_tolerates() -> None:
    found = Judgement(
        Measurements("all", 200_000, threshold=0.6, sample=((100, ("learned",)),)), "not shown", needed=5000
    )
    powers = [replace(found, measured=replace(found.measured, detectable=d)).power for d in (0.5509, 0.9999)]
    assert powers[0] == "an attacker right on 55.1 % would be found in 4 of 5 cases"
    assert "too few items" in powers[1]
    few = replace(found.measured, detectable=0.9999)  # "could stay unseen" stood beneath a leak of 100.0 % on 14 items
    assert {replace(found, measured=few, verdict=word).power for word in ("leaks", "anti-learned")} == {""}
    repeated = replace(found, measured=replace(few, repeated=0.5), verdict="leaks").power
    assert repeated == "items that share a pair of captions with another: 50 % in the same roles"
    assert "exclude 60 % (no attacker could be measured); about 5,000 items would decide, with --full" in found.text
    assert "would decide: --full takes as many" in replace(found, full=True).text


def test_the_spread_of_an_attacker_widens_its_interval_and_its_test() -> None:
    answers = figures(from_items("b", null(400, 0)), np.where(np.arange(400) % 20 < 11, 1.0, -1.0))
    plain, wide = (measure_attacker(replace(answers, spreads=np.full(400, s))) for s in (1.0, 1.5))
    assert (wide.high - wide.low) / (plain.high - plain.low) == pytest.approx(1.5, rel=0.02)
    assert wide.p > plain.p + 0.1
    looked = measure_attacker(answers, p_factor=2)
    assert (looked.p, looked.accuracy) == (pytest.approx(min(1, 2 * plain.p)), plain.accuracy)
    assert looked.low < plain.low < plain.high < looked.high


@pytest.mark.parametrize(
    ("items", "failed", "unanswered", "word", "code"),
    [(10, 0, 0, "valid", 0), (10, 2, 0, "in doubt", 1), (10, 0, 3, "not shown", 3), (0, 0, 0, "not shown", 3)],
)
def test_a_validation_is_judged_in_the_same_place(
    items: int, failed: int, unanswered: int, word: str, code: int
) -> None:
    found = judge_validation(items, failed, unanswered, "my bench")
    assert (found["verdict"], found["code"]) == (word, code)
    assert found["text"].startswith(f"{word}: ")
    assert "'my bench'" in found["next"]


ADVICE = """
leaks {"fix": "repairable"} creperie refine b --limit 9 --repair --out b-refined
leaks {"fix": "removable"} creperie refine b --limit 9 --method optimal --out b-refined
leaks {"fix": "structural"} creperie make rules:replace --captions b --foils 8 --unmatched --apart --out b-foils
anti-learned {} creperie make rules:replace --captions b --foils 8 --unmatched --apart --out b-foils
nothing left {} creperie make rules:replace --captions b --foils 8 --unmatched --apart --out b-foils
incomplete {"extras": ["lang", "llm"]} pip install 'creperie[lang]' 'creperie[llm]'
incomplete {"missing":{"x": "no model"}} creperie audit b --limit 9 --lm lm:MODEL --encoder st:MODEL
incomplete {"missing":{"x": "left out of a quick audit"}} creperie audit b --limit 9
not shown {"full": true} creperie audit b --limit 9 --full
not shown {"before": 100} creperie make all --captions b --out b-more
not shown {"before": 101} creperie make rules:replace --captions a:c --foils 8 --unmatched --apart --out c-foils
unsolvable {} creperie data check b --limit 9
clean {} creperie score b --limit 9 --model URI
not run {} creperie audit b --limit 9
"""


@pytest.mark.parametrize("line", ADVICE.strip().splitlines())
def test_every_verdict_has_an_exit_code_a_sentence_and_its_advice(line: str) -> None:
    word, facts, command = re.split(r" (?={)|(?<=}) ", line, maxsplit=2)
    given = {"extras": (), "missing": {}, "before": 0} | json.loads(facts)
    seen, before = (
        Measurements("all", 10, extras=given.pop("extras"), missing=given.pop("missing")),
        given.pop("before"),
    )
    judged = Judgement(seen, word, **given)
    assert judged.text.startswith("clean" if word == "unsolvable" else word)
    assert next_command(judged, "b", " --limit 9", original="a:c", before=before) == command
    assert judged.document("")["code"] == EXIT_CODES[word]


def test_a_repaired_benchmark_no_longer_leaks_in_the_atlas(tmp_path: Path, command: Any) -> None:
    """Kept audits were found by the words of the command: a repaired benchmark still leaked."""
    how = ("--attackers", CHEAP, "--keep", tmp_path / "kept", "--out", tmp_path / "atlas.md")
    save(from_items("b", null(200, 1, longer=1.0)), tmp_path / "b")
    _, first, _ = command("atlas", tmp_path / "b", *how, "--json")
    _, again, _ = command("atlas", tmp_path / "b", *how, "--json")
    save(from_items("b", null(1500, 1)), tmp_path / "b", force=True)
    _, mended, _ = command("atlas", tmp_path / "b", *how, "--json")
    verdicts = [json.loads(x)["benchmarks"]["b"] for x in (first, again, mended)]
    assert verdicts == ["leaks", "leaks", "clean"]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_the_recorded_command_holds_every_option(tmp_path: Path, command: Any) -> None:
    save(from_items("b", null(30, 0)), tmp_path / "b")
    trees = ["--syntax"] if linkgrammar.available() else []
    given = ("--attackers", "surface", "--limit", "20", "--seed", "3", "--threshold", "0.6", *trees)
    _, out, _ = command("audit", tmp_path / "b", *given, "--json")
    command = json.loads(out)["command"]
    assert command[:3] == ["creperie", "audit", str(tmp_path / "b")]
    assert set(command[3:]) == set(given)
    assert changed_options(AuditOptions(parser="pcfg:trees")) == {"parser": "pcfg:trees"}


def test_a_part_of_a_benchmark_is_not_recorded_as_the_whole(tmp_path: Path, command: Any) -> None:
    parts = [from_items("a", null(60, 1, "one")), from_items("b", null(60, 2, "two", longer=1.0))]
    save(concatenate("both", parts), tmp_path / "b")
    command("audit", tmp_path / "b", "--subset", "one", "--attackers", CHEAP)
    assert "Not audited yet" in (tmp_path / "b" / "README.md").read_text(encoding="utf-8")


def _cell(subset: str, accuracy: float, low: float, high: float, n: int, **more: object) -> dict[str, object]:
    figures = {"accuracy": accuracy, "low": low, "high": high, "n": n, "leaks": False, "choice": "", "bits": 0.0}
    return {"subset": subset, "attacker": "length-chars", **figures, **more}


def test_an_answer_names_the_strongest_finding_and_not_one_item() -> None:
    """One item of one kind was the headline, while 88.9 % of 18 stood in the table."""
    rows = [_cell("active", 0.5, 0.0, 1.0, 1), _cell("count", 0.889, 0.67, 0.97, 18), _cell("swap", 0.5, 0.05, 0.95, 3)]
    found = {"verdict": "not shown", "text": "", "strongest": rows[0], "results": rows, "threshold": 0.55}
    found["attackers"] = [{"name": "length-chars"}]
    assert audit_answer(found).endswith("length-chars is right in 88.9 % of count (n = 18)")
    found["results"] = rows[::2]
    assert audit_answer(found).endswith("length-chars may be right in up to 95.0 % of swap (n = 3)")
    # what decides is an attacker whose interval includes the threshold, on the most items
    found["results"] = [_cell("all", 0.507, 0.487, 0.527, 71), _cell("all", 0.528, 0.41, 0.643, 71), rows[0]]
    found["results"][0]["attacker"] = "surface"
    assert audit_answer(found).endswith("length-chars may be right in up to 64.3 % of all items (n = 71)")


def test_a_cell_where_nothing_is_known_is_neither_clean_nor_a_leak_and_leaks_come_first() -> None:
    view = _cell("all", 0.7, 0.6, 0.8, 90, view="P2-N", leaks=True)
    rows = [_cell("few", 0.5, 0.05, 0.95, 3), _cell("many", 0.5, 0.48, 0.52, 900), _cell("odd", 0.89, 0.67, 0.97, 18)]
    found = {"attackers": [{"name": "length-chars"}], "results": rows, "views": [view], "threshold": 0.55}
    shown = {row[0]: row[2]["unknown"] for row in blind_rows(found)}
    assert shown == {"all P2-N": False, "few": True, "many": False, "odd": False}
    assert next(iter(shown)) == "all P2-N"
    found["results"] = [_cell("all", 0.7, 0.6, 0.8, 90, leaks=True), *rows]
    drawn = part("blind_table", found, blind_rows(found))
    assert re.findall(r'<tr( class="whole")?><td class="text" data-v="(\w+)">', drawn)[-1] == (' class="whole"', "all")


def test_a_view_has_a_row_where_it_differs_from_its_subset() -> None:
    """With two passives of 264 items, every other subset stood in the table twice, far apart."""
    subsets = ("count", "object", "passive", "all")
    views = [_cell(s, 0.6, 0.5, 0.7, 60, view="P1-N") for s in subsets]
    views += [_cell(s, 0.5, 0.2, 0.8, 2, view="P2-N") for s in ("passive", "all")]
    found = {"attackers": [{"name": "length-chars"}], "results": [_cell(s, 0.6, 0.5, 0.7, 60) for s in subsets]}
    found |= {"views": views, "threshold": 0.55}
    below = ["passive", "passive P1-N", "passive P2-N", "all", "all P1-N", "all P2-N"]
    assert [row[0] for row in blind_rows(found)] == ["count", "object", *below]
    views[1] |= {"leaks": True}
    assert [row[0] for row in blind_rows(found)] == ["object", "object P1-N", "count", *below]
    found["results"][1] |= {"leaks": True}
    assert [row[0] for row in blind_rows(found)] == ["object", "count", *below]


def test_every_attacker_that_is_run_says_what_it_chooses() -> None:
    """The page on which attackers are ticked had "by corpus" and "by ensemble"."""
    names, _ = runnable_attackers((), AttackerModels())
    for attacker in make_attackers(names, AttackerModels()):
        entry = entry_of(attacker.name)
        assert (attacker.prefers, attacker.otherwise) == (entry.prefers, entry.otherwise)
        assert entry.prefers
