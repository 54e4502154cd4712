"""An item that is whole or nothing is never kept in part."""

from __future__ import annotations

from creperie.making import Candidate
from creperie.making.pipeline import CandidateVerdict, _consistent


def verdict(text: str, group: str, reason: str = "") -> CandidateVerdict:
    return CandidateVerdict(Candidate("1", text, "negative", "swap", "test", "", group), reason)


def test_one_reject_takes_the_rest_of_its_item_along() -> None:
    given = [verdict("a dog", "one"), verdict("a cat", "one", "not fluent"), verdict("a cow", "two")]
    assert [v.reason for v in _consistent(given, whole=True)] == ["incomplete item", "not fluent", ""]
    assert [v.reason for v in _consistent(given, whole=False)] == ["", "not fluent", ""]


def test_a_duplicate_breaks_an_item_too() -> None:
    given = [verdict("a dog", "one"), verdict("A dog.", "one")]
    assert [v.reason for v in _consistent(given, whole=True)] == ["incomplete item", "duplicate"]
