"""Words and marks are attackers: what the table of cues shows, the verdict knows."""

from __future__ import annotations

import numpy as np
import pytest
from foils import foil_bench
from scipy import stats

from creperie.auditing import audit, cues
from creperie.auditing.cues import MARK_NAMES

#: The attackers of the tour and the tutorials.
BATTERY = ("length-words", "surface", "negation")
ITEMS = 300
WORDS = {
    "colour": ("red", "blue", "green", "black", "white", "brown", "grey", "pink"),
    "animal": ("horse", "sheep", "bear", "goat", "duck", "crow", "frog", "mouse"),
    "place": ("table", "bench", "road", "field", "boat", "roof", "hill", "stage"),
}


def fair(n: int, seed: int) -> list[tuple[str, str]]:
    """Two captions that swap their colours; chance decides which is true."""
    rng = np.random.Generator(np.random.PCG64(seed))
    pairs = []
    for _ in range(n):
        c, d = rng.choice(WORDS["colour"], 2, replace=False)
        a, p = rng.choice(WORDS["animal"]), rng.choice(WORDS["place"])
        pairs.append((f"A {c} {a} on a {d} {p}.", f"A {d} {a} on a {c} {p}."))
    return pairs


def named(pairs: list[tuple[str, str]]) -> list[cues.Cue]:
    return [cue for cue, _ in audit(foil_bench(pairs, images="{}.jpg"), ["negation"]).cues["s"]]


@pytest.mark.parametrize("names", [("surface",), BATTERY])
def test_two_cues_of_opposite_sign_do_not_hide_each_other(names: tuple[str, ...]) -> None:
    """True captions end in " .", false ones in no period: one untidy mark each, and every item tied."""
    found = audit(foil_bench([(true[:-1] + " .", false[:-1]) for true, false in fair(600, 0)]), names)
    assert (found.verdict, found.code) == ("leaks", 1)
    surface = next(r for r in found.rows if r.attacker == "surface")
    assert (surface.measure.accuracy, surface.measure.low > 0.99) == (1.0, True)
    assert surface.cue in ("no final period", "blank before punctuation")
    assert surface.choice.endswith(surface.cue)
    assert f"surface: {surface.cue} (100.0 %, repairable)" in found.text


def strongest(cue: str, text: str) -> str:
    """The caption with a cue: a mark of the table of cues, or words."""
    marked = {
        "no final period": text[:-1],
        "lower-case start": text[0].lower() + text[1:],
        "trailing blank": text + " ",
        "leading blank": " " + text,
        "blank before punctuation": text[:-1] + " .",
        "double blank": text.replace(" on", "  on"),
        "word in capitals": text.upper(),
        "quotation mark": f'"{text}"',
        "digit": text.replace("A ", "1 ", 1),
        "not ASCII": text.replace(" on ", " ön "),
        "comma": text.replace(" on ", ", on "),
        "hyphen": text.replace(" on ", " on - "),
        "two sentences": text.replace(" on", ". It is on"),
    }
    return marked[cue] if cue in marked else f"{text[:-1]} {cue}."


def counts_for(n: int, carried: float, tests: int) -> tuple[int, int]:
    """How many of the pairs with a cue must have it in the false caption, for an exact test to have 90 % power."""
    k = round(n * carried)
    enough = next(c for c in range(k // 2, k) if stats.binom.sf(c - 1, k, 0.5) < 0.05 / tests / 2)
    share = next(q for q in np.arange(0.5, 1, 0.005) if stats.binom.sf(enough - 1, k, q) >= 0.9)
    return round(k * share), k


@pytest.mark.parametrize("cue", [*MARK_NAMES, "there", "in the sun"])
def test_a_planted_cue_is_named_by_the_verdict(cue: str) -> None:
    """Four attackers, and no more than 30 cues in so many pairs."""
    false, k = counts_for(ITEMS, 0.5, 4 * 30)
    pairs = [
        (strongest(cue, t) if false <= i < k else t, strongest(cue, f) if i < false else f)
        for i, (t, f) in enumerate(fair(ITEMS, 1))
    ]
    found = audit(foil_bench(pairs, images="{}.jpg"), BATTERY)
    listed = {c.text: c for c, _ in found.cues["s"]}
    planted = max(0.5 + (2 * false - k) / 2 / ITEMS, 0.55)
    assert found.verdict == "leaks"
    named = [r for r in found.judgements[0].through if r.cue and r.measure.accuracy >= planted - 1e-9]
    assert any(f"{r.attacker}: {r.cue} (" in found.text for r in named)
    if cue in MARK_NAMES:
        assert listed[cue].accuracy == pytest.approx(planted)
    else:
        assert any(
            c.accuracy == pytest.approx(planted) and set(c.text.split()) <= {*cue.split()} for c in listed.values()
        )


def test_a_word_in_some_items_is_seen() -> None:
    """“there” in 40 % of the items, 70 : 30 in foils; in the false captions it is as long as in the true ones."""
    rng, pairs = np.random.Generator(np.random.PCG64(7)), []
    for true, false in fair(600, 2):
        word, other = ("there", "again") if rng.random() < 0.7 else ("again", "there")
        one = (f"{true[:-1]} {other}.", f"{false[:-1]} {word}.")
        pairs.append(one if rng.random() < 0.4 else (true, false))
    found = audit(foil_bench(pairs, images="{}.jpg"), BATTERY)
    assert found.verdict == "leaks"
    (row,) = found.judgements[0].through
    assert (row.attacker, row.choice) == (
        "cues",
        f"the caption {'without' if 'there' in row.cue else 'with'} {row.cue}",
    )
    assert row.cue in ("“there”", "“again”")


def test_no_leak_and_no_contradiction_where_there_is_no_cue() -> None:
    """30 fair sets: at 5 % for all attackers and cues together, more than four alarms have a chance of 1 in 60."""
    alarms = 0
    for seed in range(30):
        found = audit(foil_bench(fair(150, 100 + seed), images="{}.jpg"), BATTERY)
        alarms += found.verdict == "leaks"
        assert found.whole.bound >= max([c.accuracy for c, _ in found.cues["s"]], default=0.5)
    assert alarms <= 4


def test_what_the_table_lists_above_the_threshold_leaks() -> None:
    """From no cue to a sure one, step by step: the verdict follows the table, and its bound includes every cue."""
    seen = set()
    for false in range(40, 80, 3):
        pairs = [
            (f"{t[:-1]} now." if false <= i < 80 else t, f"{f[:-1]} now." if i < false else f)
            for i, (t, f) in enumerate(fair(200, 3))
        ]
        found = audit(foil_bench(pairs, images="{}.jpg"), ["negation"])
        listed = max([c.accuracy for c, _ in found.cues["s"]], default=0.5)
        assert (found.verdict == "leaks") >= (listed > found.threshold)
        assert listed <= found.whole.bound
        seen.add(found.verdict)
    assert seen == {"not shown", "leaks"}


def test_a_tolerated_cue_is_listed_and_bounds_the_verdict() -> None:
    pairs = [(t, f"{f[:-1]} now." if i % 12 == 0 else f) for i, (t, f) in enumerate(fair(2000, 4))]
    found = audit(foil_bench(pairs, images="{}.jpg"), ["negation"])
    cue = found.cues["s"][0][0]
    assert (cue.text, found.verdict) == ("now", "clean")
    assert max(c.accuracy for c, _ in found.cues["s"]) == cue.accuracy == pytest.approx(0.5 + 167 / 4000)
    assert cue.accuracy < found.whole.bound < found.threshold


def test_cues_to_test_are_chosen_without_the_roles() -> None:
    """Exchanging all roles leaves the same cues with the same p-values."""
    pairs = [(t, f"{f[:-1]} now." if i % 3 == 0 else f) for i, (t, f) in enumerate(fair(200, 5))]
    there, back = named(pairs), named([(f, t) for t, f in pairs])
    assert [(c.text, c.p, c.accuracy, c.positives) for c in there] == [
        (c.text, c.p, c.accuracy, c.negatives) for c in back
    ]
    assert there


def test_cues_do_not_depend_on_how_many_pairs_are_cut_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [(f"a dog sees {i % 7} cats by house {i}", f"no dog, sees {i} cats") for i in range(60)]
    plain = named(pairs)
    assert {"no", "a"} <= {c.text for c in plain}
    monkeypatch.setattr(cues, "PIECE", 7)
    assert named(pairs) == plain


def test_the_example_is_a_pair_that_the_cue_tells() -> None:
    """Also where the first pair that shows the cue shows it in the other role."""
    captions = [("a", "one"), *[("one", "a")] * 40]
    found = {c.text: c for c in named([(f"{a} {i}", f"{b} {i}") for i, (a, b) in enumerate(captions)])}
    assert (found["one"].positives, found["one"].negatives, found["one"].example) == (40, 1, 1)
    assert (found["a"].positives, found["a"].negatives, found["a"].example) == (1, 40, 1)
