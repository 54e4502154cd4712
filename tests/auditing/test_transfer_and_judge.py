"""Attackers that learn nothing from the benchmark at hand: trained elsewhere, or asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from creperie import models as rooms
from creperie.auditing import AttackerModels, LlmJudge, TransferAttacker, audit, make_attackers, pairs_of
from creperie.bench import Benchmark, Item, from_items, save
from creperie.core.errors import CreperieError, UsageError
from creperie.models import Fingerprint, Prompt

NOUNS = ["dog", "cat", "man", "horse", "bird", "train", "bus", "child", "boat", "cow"]


def swapped(name: str, n: int, mark: str, start: int = 0) -> Benchmark:
    """Nouns exchanged; foils end in a mark of their maker's."""
    items = []
    for i in range(start, start + n):
        a, b = NOUNS[i % 10], NOUNS[(i // 10 + i + 1) % 10]
        true, false = f"the {a} sees a {b} at house {i}", f"the {b} sees a {a} at house {i}{mark}"
        items.append(Item(str(i), "swap", (f"{name}{i}.jpg",), (true, false), ((True, False),)))
    return from_items(name, items)


class Asked:
    """Answers by a rule, and counts the questions."""

    fingerprint = Fingerprint("lm:asked", "rule", "0")

    def __init__(self, word: str) -> None:
        self.word, self.questions = word, 0

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.questions += len(prompts)
        lines = [p.messages[0][1].splitlines() for p in prompts]
        return ["(1)" if not self.word or self.word in line[1] else "(2)" for line in lines]


def test_transfer_finds_the_same_makers_mark_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    save(swapped("there", 80, " ."), tmp_path / "there")
    save(swapped("clean", 80, ""), tmp_path / "clean")
    here = pairs_of(swapped("here", 60, " .", start=500))
    assert (TransferAttacker((str(tmp_path / "there"),)).margins(here) > 0).all()
    other = TransferAttacker((str(tmp_path / "clean"), str(tmp_path / "there")))
    assert (other.margins(here) > 0).mean() > 0.9


def test_transfer_leaves_out_captions_of_the_benchmark_at_hand(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    save(swapped("same", 60, " ."), tmp_path / "same")
    with pytest.raises(CreperieError, match="only 0 pairs"):
        TransferAttacker((str(tmp_path / "same"),)).margins(pairs_of(swapped("same", 60, " .")))


def test_transfer_says_the_same_about_a_subset_whatever_is_asked_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    save(swapped("there", 200, " ."), tmp_path / "there")
    known = [replace(item, subset="known") for item in swapped("known", 100, "", start=20)]
    here = from_items("here", [*swapped("here", 60, " .", start=500), *known])
    pairs = pairs_of(here)
    transfer = TransferAttacker((str(tmp_path / "there"),))
    alone = transfer.margins(pairs.of_subset("swap"))
    assert np.array_equal(transfer.margins(pairs)[pairs.subset[pairs.item] == 0], alone)


def test_transfer_knows_a_caption_in_another_style(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    tidy = [replace(i, captions=tuple(f"{c.capitalize()}." for c in i.captions)) for i in swapped("same", 60, "")]
    save(from_items("tidy", tidy), tmp_path / "tidy")
    with pytest.raises(CreperieError, match="only 0 pairs"):
        TransferAttacker((str(tmp_path / "tidy"),)).margins(pairs_of(swapped("same", 60, "")))


def test_transfer_in_an_audit_needs_no_wider_interval(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    save(swapped("there", 80, " ."), tmp_path / "there")
    found = audit(
        swapped("here", 60, " .", start=500), "transfer", AttackerModels(transfer=str(tmp_path / "there"), lm="none")
    )
    assert found.verdict == "leaks"
    assert "transfer" in found.text
    with pytest.raises(UsageError, match="benchmark to learn from"):
        make_attackers(["transfer"], AttackerModels())


def test_a_judge_is_asked_in_both_orders() -> None:
    pairs = pairs_of(swapped("here", 30, ""))
    always_first = Asked("")
    assert (LlmJudge(always_first).margins(pairs) == 0).all()
    assert always_first.questions == 60
    liking = LlmJudge(Asked("the dog sees"))
    wanted = [
        (("the dog sees" in pairs.texts[a]) - ("the dog sees" in pairs.texts[b]))
        for a, b in zip(pairs.left, pairs.right)
    ]
    assert np.array_equal(np.sign(liking.margins(pairs)), wanted)
    with pytest.raises(UsageError, match="chat model"):
        make_attackers(["judge"], AttackerModels())


def test_a_judge_that_chooses_by_place_has_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    told: dict[str, str] = {}
    for likes in ("", "the dog sees"):
        monkeypatch.setattr(rooms, "load_model", lambda uri, likes=likes: Asked(likes))
        models = AttackerModels(judge="lm:any", lm="none")
        told[likes] = audit(swapped("here", 60, ""), ["length-words", "judge"], models).text
    assert told[""].startswith("clean against length: ")
    assert "the LLM judge says nothing" in told[""]
    assert "judge may reach" in told["the dog sees"]
    assert "says nothing" not in told["the dog sees"]
