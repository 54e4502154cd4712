"""Comparing runs: pairing, macro means, refusals, ranks, correlations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import creperie
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import DataError, UsageError
from creperie.models import Fingerprint
from creperie.scoring import Run, compare, rank_runs, score


def bench_of(n: int, name: str = "b", subsets: int = 2) -> Benchmark:
    items = [
        Item(str(i), f"s{i % subsets}", (), (f"true {i}", f"false {i}", f"other {i}"), choice(1, 2)) for i in range(n)
    ]
    return from_items(name, items)


class Guesser:
    """A blind model that is right on the items it is told."""

    def __init__(self, name: str, right: set[int]) -> None:
        self.fingerprint = Fingerprint(uri=f"guess:{name}", architecture="Guess", weights=f"{name} {sorted(right)}")
        self.right = right

    def score_texts(self, texts: Any) -> np.ndarray:
        return np.array([(t.startswith("true")) == (int(t.split()[1]) in self.right) for t in texts], np.float32)


def run_of(name: str, right: Any, n: int = 60, bench: Benchmark | None = None) -> Run:
    return score(bench or bench_of(n), Guesser(name, set(right)))


def test_two_runs_item_by_item() -> None:
    a, b = run_of("a", range(0, 50)), run_of("b", range(20, 60))
    found = compare([a, b])
    frame = creperie.compare(a, b).to_pandas()  # two runs, as one writes them in a notebook
    own = frame[frame["subset"] == "all"].iloc[0]
    assert (own["a"], own["b"], own["n"]) == ("guess:a", "guess:b", 60)
    assert (own["difference"], own["accuracy_a"]) == pytest.approx((10 / 60, 50 / 60))
    assert own["low"] < own["difference"] < own["high"]
    rows = {r.subset: r.comparison for r in found.rows}
    assert list(rows) == ["s0", "s1", "all", "macro"]
    whole = rows["all"]
    assert (whole.accuracy_a, whole.accuracy_b) == (pytest.approx(50 / 60), pytest.approx(40 / 60))
    assert (whole.mcnemar.only_a, whole.mcnemar.only_b) == (20, 10)
    assert whole.mcnemar.p == pytest.approx(stats.binomtest(10, 30).pvalue)
    assert whole.low < 10 / 60 < whole.high
    corrected = multipletests([r.p for r in rows.values()], method="holm")[1]  # all tests of a task are one family
    assert [r.p_holm for r in rows.values()] == pytest.approx(corrected.tolist())
    macro = rows["macro"]
    assert macro.difference == pytest.approx((rows["s0"].difference + rows["s1"].difference) / 2)
    assert macro.low < macro.difference < macro.high


def test_the_macro_mean_weighs_subsets_not_items() -> None:
    items = [
        Item(str(i), "big" if i < 90 else "small", (), (f"true {i}", f"false {i}"), choice(1, 1)) for i in range(100)
    ]
    bench = from_items("uneven", items)
    a, b = run_of("a", range(90), bench=bench), run_of("b", range(90, 100), bench=bench)
    rows = {r.subset: r.comparison for r in compare([a, b]).rows}
    assert rows["all"].difference == pytest.approx(0.8)
    assert rows["macro"].difference == pytest.approx(0.0)
    assert rows["macro"].p == 1.0


def test_equal_runs_do_not_differ() -> None:
    a, b = run_of("a", range(0, 60, 2)), run_of("b", range(0, 60, 2))
    for row in compare([a, b]).rows:
        assert (row.comparison.difference, row.comparison.p) == (0.0, 1.0)


def test_runs_on_different_items_are_refused_unless_common() -> None:
    a, b = run_of("a", range(30), n=60), run_of("b", range(30), n=40)
    with pytest.raises(UsageError, match=r"different items .*; pass `common=True`"):
        compare([a, b])
    found = compare([a, b], common=True)
    assert found.notes == ["compared on the 40 items that all runs have; the runs have 60, 40"]
    assert next(r for r in found.rows if r.subset == "all").comparison.n == 40


def test_items_with_another_match_matrix_are_not_common() -> None:
    items = [Item("0", "s0", (), ("true 0", "false 0"), choice(1, 1))]
    with pytest.raises(UsageError, match="no item with the same subset, id and match matrix"):
        compare([run_of("a", range(9)), run_of("b", range(9), bench=from_items("x", items))], common=True)


def test_one_run_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match="one run"):
        compare([run_of("a", range(9))] * 2)
    with pytest.raises(UsageError, match="no text_text"):
        compare([run_of("a", range(9))] * 2, tasks=("tot",))


def test_three_models_are_ranked_over_two_benchmarks() -> None:
    first, second = bench_of(60, "first"), bench_of(50, "second")
    runs = [run_of(m, range(n), bench=first) for m, n in (("a", 50), ("b", 40), ("c", 30))]
    runs += [run_of(m, range(n), bench=second) for m, n in (("a", 20), ("b", 40), ("c", 30))]
    found = compare(runs)
    assert found.columns == ["first blind", "second blind"]
    assert {r.name: r.ranks for r in found.ranks} == {"guess:a": (1, 3), "guess:b": (2, 1), "guess:c": (3, 2)}
    kinds = {c.correlation.kind: c.correlation for c in found.correlations}
    x, y = [50 / 60, 40 / 60, 30 / 60], [20 / 50, 40 / 50, 30 / 50]
    assert kinds["pearson"].value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert kinds["spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert len({(r.comparison.a, r.comparison.b) for r in found.rows}) == 3


def test_ranks_pair_items_by_their_names_not_their_places() -> None:
    """The second model is right on nothing that the first is not: on eight items, the first one alone."""
    a, b = run_of("a", range(50)), run_of("b", range(42))
    for other in (b, Run(b.document, b.table.take(list(range(60))[::-1]))):
        found = rank_runs([a, other]).columns[0].models
        assert not set(found["guess:a"].groups) & set(found["guess:b"].groups)


def test_an_external_column(tmp_path: Path) -> None:
    runs = [run_of(m, range(n)) for m, n in (("a", 50), ("b", 40), ("c", 30))]
    path = tmp_path / "imagenet.csv"
    path.write_text("model,imagenet\nguess:a,70.1\nguess:b,68\nguess:c,50\nother,1\n")
    found = compare(runs, against=path, column="imagenet")
    (linear,) = [c for c in found.correlations if c.b == "imagenet" and c.correlation.kind == "pearson"]
    assert linear.models == ["guess:a", "guess:b", "guess:c"]
    assert linear.correlation.value == pytest.approx(stats.pearsonr([5, 4, 3], [70.1, 68, 50]).statistic)
    with pytest.raises(UsageError, match="did you mean 'imagenet'"):
        compare(runs, against=path, column="imagnet")
    path.write_text("model,imagenet\nguess:a,seventy\n")
    with pytest.raises(DataError, match=r"imagenet\.csv:2: 'seventy' in column 'imagenet' is not a number"):
        compare(runs, against=path, column="imagenet")
