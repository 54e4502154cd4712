"""Wrong arguments of public functions: the error names the argument; none ends as an AttributeError or a TypeError."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import creperie as cr
from creperie.core import explained
from creperie.core.arguments import fits

LAYOUT = cr.layout_of([[[1, 0]]])
BENCH = cr.load([{"id": "a", "positive": "A dog.", "negative": "A cat."}])
JUNK: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "number": lambda: 0.5,
    "nan": lambda: float("nan"),
    "numbers": lambda: [1, 2],
    "dictionary": lambda: {"a": 1},
    "generator": lambda: (k for k in [1]),
    "object": object,
    "array": lambda: np.zeros((2, 2)),
    "frame": lambda: pa.table({"a": [1]}),
    "bytes": lambda: b"x",
    "class": lambda: int,
}
#: calls with one argument that can be wrong
CALLS: dict[str, Callable[[Any], Any]] = {
    "audit": lambda x: cr.audit(x, ["length-words"]),
    "check": cr.check,
    "compare": cr.compare,
    "difficulty": cr.difficulty,
    "evaluate": lambda x: cr.evaluate("itt", x, np.zeros(2)),
    "fill_table": cr.fill_table,
    "find_format": cr.find_format,
    "load": cr.load,
    "load_model": cr.load_model,
    "load_run": cr.load_run,
    "make": lambda x: cr.make("rules:shuffle", x),
    "outcomes": lambda x: cr.outcomes(x, LAYOUT, np.zeros(2)),
    "power": cr.power,
    "rank_runs": cr.rank_runs,
    "robustness": cr.robustness,
    "save": lambda x: cr.save(BENCH, x),
    "save_figure": lambda x: cr.save_figure(x, "a.png"),
    "score": lambda x: cr.score(BENCH, len, tasks=x),
    "training_pairs": lambda x: list(cr.training_pairs(x)),
    "truth": lambda x: cr.truth(x, "A dog."),
    "item": lambda x: cr.Item("a", "s", (), ("a", "b"), x),
    "only": lambda x: BENCH.only(x),
    "sample": lambda x: BENCH.sample(x),
    "by index": lambda x: BENCH[x],
}


@pytest.mark.parametrize("name", CALLS)
def test_no_wrong_argument_ends_in_an_error_of_python(name: str) -> None:
    for junk in JUNK.values():
        with suppress(cr.CreperieError):  # anything else fails the test; some junk is right for some calls
            CALLS[name](junk())


def test_the_argument_is_named_with_what_it_should_be() -> None:
    with pytest.raises(cr.UsageError, match=r"truth: `text=` is float, expected str|truth: `.*=` is float"):
        cr.truth(0.5, "A dog.")
    with pytest.raises(cr.UsageError, match=r"load_model: got an unexpected keyword argument 'devise'; see help"):
        cr.load_model("blind:length-words", devise="cpu")
    with pytest.raises(cr.UsageError, match=r"load_model: missing a required argument: 'uri'"):
        cr.load_model()


def test_errors_that_are_not_about_an_argument_stay_as_they_are() -> None:
    @explained
    def broken(count: int) -> int:
        return {}[count]

    with pytest.raises(KeyError):
        broken(3)
    with pytest.raises(cr.UsageError, match="`count=` is str, expected int"):
        broken("3")


@pytest.mark.parametrize(
    ("value", "hint", "fit"),
    [
        (np.int64(3), int, True),
        (3, float, True),
        ("a", list[str], False),
        (["a", None], list[str], False),
        ("b", Callable[..., Any], False),
        (None, int | None, True),
        (b"a", list[int], False),
        ({"a": 1}, dict[str, int], True),
    ],
)
def test_types_that_fit(value: Any, hint: Any, fit: bool) -> None:
    assert fits(value, hint) is fit


def test_public_functions_can_be_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(cr.truth)) is cr.truth
