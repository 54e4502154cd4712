"""What is held back from a budget: every part of a request, and what was spent on other jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from creperie.models.api.endpoint import BudgetError, Endpoint
from creperie.models.api.ledger import TOKENS_AN_IMAGE, SpendLedger, estimated_tokens

ANSWER = {"usage": {"prompt_tokens": 600_000, "completion_tokens": 0}}


def request(*parts: dict[str, Any], max_tokens: int = 0) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}], "max_tokens": max_tokens}


TEXT = {"type": "text", "text": "wörter"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture
def ledger() -> SpendLedger:
    """One dollar per million tokens read or written, one dollar to spend."""
    endpoint = Endpoint(
        uri="api:x", model="x", base_url="http://127.0.0.1:9/v1", price_in=1.0, price_out=1.0, budget=1.0
    )
    return SpendLedger(endpoint)


def test_text_counts_by_bytes_and_images_are_not_free() -> None:
    assert estimated_tokens(request(TEXT)) == 16 + 7
    assert estimated_tokens(request(TEXT, IMAGE, IMAGE)) == 16 + 7 + 2 * TOKENS_AN_IMAGE
    assert estimated_tokens({"messages": [{"role": "user", "content": "wörter"}]}) == 16 + 7


def test_a_request_with_images_can_pass_the_budget(ledger: SpendLedger) -> None:
    images = [IMAGE] * 400  # 1.2 million tokens
    assert ledger.reserve(request(TEXT)) < 0.001
    with pytest.raises(BudgetError, match=r"up to \$1\.20\d\d, which does not fit the budget of \$1: \$0\.0000 spent"):
        ledger.reserve(request(*images))


def test_what_is_in_flight_counts(ledger: SpendLedger) -> None:
    held = ledger.reserve(request(TEXT, max_tokens=700_000))
    with pytest.raises(BudgetError, match=r"\$0\.0000 spent in 0 calls, \$0\.7000 reserved for requests under way"):
        ledger.reserve(request(TEXT, max_tokens=700_000))
    ledger.release(held)
    assert ledger.reserve(request(TEXT, max_tokens=700_000)) == held


def test_what_other_jobs_spent_counts_too(ledger: SpendLedger, tmp_path: Path) -> None:
    ledger.paid("a", ANSWER)
    ledger.keep_in(tmp_path / "job" / "books.jsonl")
    assert (ledger.calls, ledger.cost) == (0, 0.0)  # a new job has new books …
    with pytest.raises(BudgetError, match=r"\$0\.6000 spent"):
        ledger.reserve(request(TEXT, max_tokens=700_000))  # … but the money is gone


def test_an_answer_is_booked_once(ledger: SpendLedger, tmp_path: Path) -> None:
    ledger.keep_in(tmp_path / "books.jsonl")
    for _ in range(2):
        ledger.paid("a", ANSWER)
    ledger.found("a", ANSWER)
    assert (ledger.calls, ledger.cached, ledger.tokens_in) == (1, 0, 600_000)


def test_books_are_read_again_as_they_were_written(ledger: SpendLedger, tmp_path: Path) -> None:
    ledger.keep_in(tmp_path / "books.jsonl")
    ledger.paid("a", ANSWER)
    ledger.found("b", ANSWER)  # paid for by somebody else
    ledger.tried_again()
    expected = {"calls": 1, "cached": 1, "retried": 1, "tokens_in": 600_000, "tokens_out": 0, "cost": 0.6}
    assert ledger.document() == expected
    again = SpendLedger(ledger.endpoint)
    again.keep_in(tmp_path / "books.jsonl")
    assert again.document() == expected
    again.found("a", {**ANSWER, "creperie_paid_by": again.making})
    assert again.document() == expected  # booked once, by whichever process
    again.found("c", {**ANSWER, "creperie_paid_by": again.making})  # kept before the process that paid could book it
    assert (again.calls, again.cached, again.tokens_in) == (2, 1, 1_200_000)
