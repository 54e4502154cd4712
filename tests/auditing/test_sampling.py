"""Slow attackers: asked about as many items as the verdict needs, with a correction for looking early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import current_thread
from zlib import crc32

import numpy as np
import pytest
from foils import foil_bench
from scipy import stats

from creperie.auditing import (
    EARLY,
    STEPS,
    Attacker,
    AttackerModels,
    LearnedAttacker,
    TextAttacker,
    audit,
    battery,
    calibrated,
    corrected,
    entry_of,
    last_look,
    looks_of,
    make_attackers,
    measure_attacker,
    pairs_of,
)
from creperie.auditing.attackers import scored
from creperie.auditing.model_attackers import Ensemble
from creperie.auditing.run import Attack
from creperie.auditing.sampling import FEW, drawn, sample_for
from creperie.bench import Benchmark, concatenate
from creperie.core import CreperieError, silent

Planted = Callable[..., Benchmark]
#: Clusters stay whole: a step may take some more items.
ROOM = 12


def fair(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return true, false


def longer(true: str, false: str, rng: np.random.Generator) -> tuple[str, ...]:
    return true, false[:-1] + " over there."


def by_role(right: float) -> Callable[[Sequence[str]], np.ndarray]:
    """A score that is a coin per caption; it prefers captions with "over there" in a share of the cases."""

    def score(texts: Sequence[str]) -> np.ndarray:
        coins = np.array([np.random.default_rng(crc32(t.encode())).random() for t in texts])
        return np.where([("over" in t) for t in texts], coins * (1 - right) * 2 - 1, coins)

    return score


def slow(right: float = 0.5) -> TextAttacker:
    return TextAttacker("lm-mean", by_role(right))


def test_steps_hold_one_another_and_keep_clusters_whole(planted: Planted) -> None:
    bench = concatenate("two", [planted(fair, 700, subset="large"), planted(fair, 60, subset="small")], prefix=True)
    pairs = pairs_of(bench)
    sizes = (*STEPS, 1000)
    masks = [drawn(pairs, dict.fromkeys(pairs.subsets, size), 3) for size in sizes]
    assert (masks[0] <= masks[1]).all()
    assert (masks[1] <= masks[2]).all()
    counts = [[int(m[pairs.subset == s].sum()) for s in range(2)] for m in masks]
    assert [c[1] for c in counts] == [60, 60, 60]
    assert all(size <= c[0] < size + ROOM for size, c in zip(sizes[:2], counts))
    assert counts[2][0] == 700
    large = pairs.subset == 0
    assert not set(pairs.cluster[masks[0] & large]) & set(pairs.cluster[~masks[0] & large])
    assert (masks[0] == drawn(pairs, dict.fromkeys(pairs.subsets, 100), 3)).all()
    assert (masks[0] != drawn(pairs, dict.fromkeys(pairs.subsets, 100), 4)).any()


def test_what_is_decided_is_asked_once(planted: Planted) -> None:
    pairs = pairs_of(planted(longer, 900))
    leaks = sample_for(pairs, [slow(1.0)], set(), 20, 0.55, 0)
    assert leaks.keep("lm-mean").sum() < STEPS[0] + ROOM
    assert leaks.p_factors["planted"] == 1 / EARLY  # as strict as the look that ended it
    fair_pairs = pairs_of(planted(fair, 2400))
    known = sample_for(fair_pairs, [slow()], {"planted"}, 20, 0.55, 0)
    assert FEW <= known.keep("lm-mean").sum() < FEW + ROOM


def test_each_attacker_gets_as_many_items_as_it_can_take(planted: Planted) -> None:
    """An early look cannot exclude 55 %; each slow attacker then gets its share, and its own n is shown."""
    pairs = pairs_of(planted(fair, 2400))
    drawn_for = sample_for(pairs, [slow(), TextAttacker("learned-embedding", by_role(0.5))], set(), 20, 0.55, 0)
    most = {name: entry_of(name).sampled for name in ("lm-mean", "ensemble", "learned-embedding")}
    assert most["lm-mean"] < 2400 < most["ensemble"] == most["learned-embedding"]
    counts = {name: int(drawn_for.keep(name).sum()) for name in most}
    assert most["lm-mean"] <= counts["lm-mean"] < most["lm-mean"] + ROOM
    assert counts["learned-embedding"] == counts["ensemble"] == 2400
    assert (drawn_for.keep("lm-mean") <= drawn_for.keep("learned-embedding")).all()
    assert drawn_for.p_factors == {"planted": pytest.approx(1 / 0.96), "all": 3}


def test_others_learn_beside_a_language_model_what_they_learn_alone(planted: Planted) -> None:
    pairs, threads = pairs_of(planted(fair, 90)), dict[str, str]()

    def score(texts: Sequence[str]) -> np.ndarray:
        threads["lm-mean"] = current_thread().name
        return by_role(0.5)(texts)

    def made() -> list[Attacker]:
        linear = make_attackers(["learned-linear"], AttackerModels())[0]
        lm = TextAttacker("lm-mean", score)
        return [lm, linear, LearnedAttacker("ensemble", Ensemble((lm, linear)))]

    together, alone = made(), made()
    sample_for(pairs, together, {"planted"}, 20, 0.55, 0)
    assert threads == {"lm-mean": "MainThread"}  # where an interrupt reaches it
    trained = len(together[1].learner._known)  # type: ignore[attr-defined]
    before = dict(together[0]._known)  # type: ignore[attr-defined]
    answers = together[2].learner._answers([together[0]], pairs, silent)  # type: ignore[attr-defined]
    assert 0 < (answers == 0).sum() < len(pairs)  # a larger sample: the slow member is not run on more than its own
    assert before == together[0]._known  # type: ignore[attr-defined]
    some = pairs.of_items(drawn(pairs, {"planted": FEW}, 0))
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.margins(some), other.margins(some))
    assert len(together[1].learner._known) == trained == 4  # type: ignore[attr-defined]  # all, and without each fold


def test_looking_several_times_is_corrected_for(planted: Planted) -> None:
    """The p-value times the factor of the look, and the interval of that level."""
    pairs = pairs_of(planted(fair, 400))
    answers = calibrated(pairs, np.where(np.arange(len(pairs)) % 20 < 11, 1.0, -1.0), directed=False)
    once, thrice = measure_attacker(answers), measure_attacker(answers, 3)
    assert thrice.p == pytest.approx(min(1.0, 3 * once.p))
    width = 2.3940 / 1.9600  # normal quantiles at 1 − 0.05/6 and 1 − 0.05/2
    assert (thrice.high - thrice.low) / (once.high - once.low) == pytest.approx(width, rel=0.02)
    assert [looks_of(n) for n in (100, 101, 501)] == [1, 2, 3]
    for looks in (1, 2, 3):  # what all looks may spend together is the whole error
        assert (looks - 1) * EARLY + 1 / last_look(looks) == pytest.approx(1)


def test_the_correction_holds_the_level_where_every_look_may_stop() -> None:
    """Coins, looked at after 100, 500 and 2000: a false alarm at any of three looks at most 5 % of the time."""
    rng, n = np.random.default_rng(0), np.array([*STEPS, 2000])
    wins = rng.integers(0, 2, size=(2000, 2000), dtype=np.int8).cumsum(axis=1, dtype=np.int64)[:, n - 1]
    p = np.minimum(1, 2 * stats.binom.cdf(np.minimum(wins, n - wins), n, 0.5))
    factors = np.array([1 / EARLY, 1 / EARLY, last_look(3)])
    assert ((factors * p).min(axis=1) < 0.05).mean() < 0.055
    assert (p.min(axis=1) < 0.05).mean() > 0.08  # without it


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Captions that the slow attacker was asked about."""
    seen: list[str] = []

    def score(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return by_role(0.5)(texts)

    for name in ("lm-mean", "lm-sum"):
        monkeypatch.setitem(battery.MAKERS, name, lambda models, name=name: TextAttacker(name, score))
    for name in ("learned", "learned-linear", "learned-boosted", "neural-lm"):
        monkeypatch.delitem(battery.REGISTRY, name)
    return seen


@pytest.mark.slow
def test_the_default_audit_names_its_sample_and_full_takes_all(planted: Planted, asked: list[str]) -> None:
    bench, early = planted(longer, 400), list[str]()
    found = audit(bench, models=AttackerModels(lm="lm:fake", encoder="none"), announce=early.append)
    rows = {r.attacker: r.measure.n for r in found.rows if r.subset == "planted"}
    assert (rows["length-words"], rows["lm-mean"]) == (400, found.whole.measured.sample[0][0])
    assert FEW <= rows["lm-mean"] < FEW + ROOM
    asked_about = f"lm-mean, lm-sum, ensemble on {rows['lm-mean']} of 400 items"
    assert f"{asked_about} (--full takes all: about 30 seconds more)" in found.text  # 0.085 s for each of 325
    assert early == ["attackers that answer in seconds: it leaks; the strongest is length-words on planted, 100.0 %"]
    assert len(set(asked)) <= 2 * 2 * rows["lm-mean"]  # and the captions in one style
    all_of_them = audit(bench, models=AttackerModels(lm="lm:fake", encoder="none"), full=True)
    assert {r.measure.n for r in all_of_them.rows} == {400}
    assert all_of_them.whole.measured.sample == ()
    by_name = audit(bench, ["lm-mean"], models=AttackerModels(lm="lm:fake"))
    assert {r.measure.n for r in by_name.rows} == {400}


def test_an_installed_model_is_loaded_when_it_is_asked_and_a_named_one_at_once(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quick attackers report before the language model and the encoder are loaded."""
    monkeypatch.setattr(battery, "INSTALLED", {"lm": ("json", "lm:/none"), "encoder": ("json", "st:/none")})
    monkeypatch.setenv(battery.DEFAULT_MODELS, "")
    early: list[str] = []
    with pytest.raises(CreperieError, match="/none"):
        audit(planted(longer, 80), announce=early.append)
    assert len(early) == 1
    for name, models in (
        ("lm-mean", AttackerModels(lm="lm:/none")),
        ("learned-embedding", AttackerModels(encoder="st:/none")),
    ):
        with pytest.raises(CreperieError, match="/none"):
            battery.make_attackers([name], models)


@pytest.mark.parametrize(("ending", "again"), [(" over there", False), (" .", True)])
def test_slow_attackers_see_repaired_captions_only_where_something_depends_on_them(ending: str, again: bool) -> None:
    """Where a longer foil stays after repair, the subset's fix is known; where a stray mark goes, it is not."""
    pairs = [(f"A dog number {k} runs.", f"A cat number {k} runs{ending}.") for k in range(120)]
    bench = foil_bench(pairs, images="{}.png")
    seen: list[str] = []

    def score(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([float("dog" in text) for text in texts])

    attackers = (TextAttacker("length-chars", scored(len)), TextAttacker("gruen", score))
    attack = Attack(attackers, 0, 0.55, silent)
    rows = corrected(attack.on(pairs_of(bench))[0], 0.55)
    assert all(row.leaks for row in rows)
    before = len(seen)
    fixed = {row.attacker: row.fix for row in attack.with_fixes(rows, bench)}
    assert (len(seen) > before) == again
    assert fixed["length-chars"] == ("repairable" if again else "structural")
    assert fixed["gruen"] == "structural"


def test_the_fix_of_every_leak_is_that_of_its_own_share_of_kept_items() -> None:
    """SADE's lm-mean had "structural" (less than a tenth would be left), of a cue of length, beside its 80.0 % kept."""
    pairs = [(f"A dog number {k} runs.", f"A cat number {k} runs over there.") for k in range(120)]
    bench = foil_bench(pairs, images="{}.png")

    def score(texts: Sequence[str]) -> np.ndarray:  # right in 84 of 120, so that 72 of 120 items can be balanced
        return np.array([float(("dog" in text) == (int(text.split()[3]) < 84)) for text in texts])

    attack = Attack((TextAttacker("length-chars", scored(len)), TextAttacker("gruen", score)), 0, 0.55, silent)
    fixed = attack.with_fixes(corrected(attack.on(pairs_of(bench))[0], 0.55), bench)
    of = {row.attacker: (row.kept, row.fix) for row in fixed}
    assert of == {"length-chars": (0.0, "structural"), "gruen": (0.6, "removable")}
