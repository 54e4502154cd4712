"""Scores from choices: orders, unreadable answers, what is kept, and how much wording and order matter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from foils import foil_items
from PIL import Image

from creperie.bench import PAIRED, Benchmark, Item, choice, from_items, open_store
from creperie.core import CreperieError
from creperie.models import Fingerprint, Prompt, prompts_of, read_form
from creperie.models.generated_choice import GeneratedChooser
from creperie.scoring import draw_shots, score, sensitivity
from creperie.scoring.handle import handle_of

OFFERED = re.compile(r"\(\d\) (?!or |,)[^;\n,]+(?=;|\n)")  #: an option behind its label, in a question


class Talker:
    """Answers by a rule over the offered captions; counts how often it is asked."""

    def __init__(self, rule: str) -> None:
        self.rule, self.asked = rule, 0

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(f"test:{self.rule}", "Talker", self.rule)

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.asked += len(prompts)
        return [self._answer(p.messages[0][1]) for p in prompts]

    def _answer(self, text: str) -> str:
        options = OFFERED.findall(text)
        if self.rule == "knows":  # false captions hold the word "not"
            odd = "wrong" in text or "disagree" in text
            return next(o[:3] for o in options if ("not" in o) == odd)
        if self.rule == "first":
            return "(1)"
        if self.rule == "babbles when the false one is first":
            return "hm" if "not" in options[0] else "(2)"
        raise AssertionError(self.rule)


def chooser(rule: str, order: str = "all", prompt: str | None = None) -> GeneratedChooser:
    return GeneratedChooser(Talker(rule), read_form(prompt, None, where=""), order)


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(4):
        Image.new("RGB", (8, 6), (60 * n, 10, 10)).save(folder / f"{n}.png")
    triples = foil_items(
        [(f"a {n}", f"one {n}", f"not a {n}") for n in range(3)], subset="triple", images="{}.png", true=2
    )
    pairs = [Item("p", "pair", ("3.png",), ("a cat", "not a cat"), choice(1, 1), {})]
    return from_items("mine", [*triples, *pairs], images=open_store(folder))


def accuracy(bench: Benchmark, model: GeneratedChooser, subset: str) -> float:
    run = score(bench, model, tasks=["itt"])
    return next(float(r["accuracy"]) for r in run.results if r["subset"] == subset)


def test_a_habit_is_right_where_the_order_favours_it(bench: Benchmark) -> None:
    """Always the first: right for NPP, wrong for PPN, and a tie (so wrong) over all orders."""
    assert accuracy(bench.only(["triple"]), chooser("first", "NPP", "odd-forced"), "triple") == 1
    assert accuracy(bench.only(["triple"]), chooser("first", "PPN", "odd-forced"), "triple") == 0
    run = score(bench, chooser("first"), tasks=["itt"])
    assert all(r["hits"] == 0 and r["ties"] == r["n"] for r in run.results if r["subset"] != "macro")
    np.testing.assert_allclose(score(bench.only(["triple"]), chooser("first")).scores("image_text"), -1 / 3, rtol=1e-6)


def test_unreadable_answers_are_counted_kept_and_shown(bench: Benchmark) -> None:
    model = chooser("babbles when the false one is first")
    run = score(bench.only(["triple"]), model, tasks=["itt"])
    # two of six orders begin with the false caption, for each of three items
    assert run.document["finding_counts"] == {"unparsable-answer": 3}
    assert run.findings[0]["message"] == "no option is named: 'hm'"
    again = score(bench.only(["triple"]), model, tasks=["itt"])
    assert again.document["finding_counts"] == run.document["finding_counts"]


def test_what_is_answered_is_not_asked_again(bench: Benchmark) -> None:
    model = chooser("knows")
    assert all(r["accuracy"] == 1 for r in score(bench, model, tasks=["itt"]).results)
    asked = model.generator.asked
    assert asked == 3 * 6 + 2
    score(bench, model, tasks=["itt"])
    assert model.generator.asked <= asked + 3 * 6, "no more than three cases, to probe what is stored"
    before = model.generator.asked
    score(bench, handle_of(model), tasks=["itt"])
    assert model.generator.asked == before, "a model that was loaded by its URI is not probed"


def test_two_images_are_two_questions(bench: Benchmark) -> None:
    item = Item("w", "pairs", ("0.png", "1.png"), ("a cat", "a dog"), PAIRED, {})
    both = from_items("both", [item], images=bench.images)
    model = chooser("first", "given")
    run = score(both, model, tasks=["itt"])
    assert run.scores("image_text").tolist() == [1, 0, 1, 0]
    assert model.generator.asked == 2


def test_no_single_answer_is_a_finding(bench: Benchmark) -> None:
    item = Item("q", "quad", ("0.png",), ("a", "b", "not a", "not b"), choice(2, 2), {})
    run = score(from_items("quad", [item, bench[3]], images=bench.images), chooser("knows"), tasks=["itt"])
    assert run.document["finding_counts"] == {"no-single-answer": 1}
    assert np.isnan(run.scores("image_text")[:4]).all()


def test_a_lost_image_is_a_finding(bench: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "images" / "1.png").write_bytes(b"no picture")
    run = score(bench, chooser("knows"), tasks=["itt"])
    assert run.document["finding_counts"] == {"undecodable-image": 1}


def test_sensitivity_of_a_habit(bench: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Always the first: every prompt the same, orders a hundred points apart, all answers at one position."""
    from creperie.scoring import order_sensitivity as module

    class Opened:
        model = chooser("first")

    monkeypatch.setattr(module, "open_model", lambda *_, **__: Opened)
    found = sensitivity(bench.only(["triple"]), "vlm:x?score=choice")
    assert {r.prompt for r in found.rows} == {p.id for p in prompts_of("choice", "odd")}
    by_order = {r.order: r.accuracy for r in found.rows if r.prompt == "odd-forced" and r.subset == "triple"}
    assert by_order == {"NPP": 1, "PNP": 0, "PPN": 0}
    assert found.spread() == {"prompts": 0, "orders": 1, "all": 1}
    bias = found.biases[0]
    assert bias.chosen == (1, 0, 0)
    assert bias.right == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert bias.distance == pytest.approx(2 / 3)


def test_sensitivity_keeps_what_it_could_not_read(bench: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.scoring import order_sensitivity as module

    class Opened:
        model = chooser("babbles when the false one is first")

    monkeypatch.setattr(module, "open_model", lambda *_, **__: Opened)
    found = sensitivity(bench.only(["triple"]), "vlm:x?score=choice", prompts=["odd-forced"])
    assert sum(r.unread for r in found.rows if r.subset == "all") == len(found.unread) == 6
    assert found.unread[0]["answer"] == "hm"


def test_a_model_without_prompts_is_said(bench: Benchmark) -> None:
    with pytest.raises(CreperieError, match="no prompts to vary"):
        sensitivity(bench, "hf:openai/clip-vit-base-patch32")


# -- demonstrations --------------------------------------------------------------------------------------------------


def test_demonstrations_are_drawn_from_the_same_subset_and_not_tested(tmp_path: Path, own_cache: None) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(10):
        Image.new("RGB", (8, 6), (20 * n, 10, 10)).save(folder / f"{n}.png")
    items = [
        Item(str(n), "odd" if n % 2 else "even", (f"{n}.png",), (f"a {n}", f"one {n}", f"not a {n}"), choice(2, 1), {})
        for n in range(10)
    ]
    whole = from_items("ten", items, images=open_store(folder))
    rest = draw_shots(whole, 2, tmp_path / "two", seed=1)
    assert rest.subsets == {"even": 3, "odd": 3}
    asked: list[Prompt] = []

    class Watching(Talker):
        def generate(self, prompts: Sequence[Prompt]) -> list[str]:
            asked.extend(prompts)
            return ["(1)"] * len(prompts)

    model = GeneratedChooser(Watching("first"), read_form(None, str(tmp_path / "two" / "shots.toml"), where=""), "NPP")
    score(rest, model, tasks=["itt"])
    assert len(asked) == 6
    tested = {(item.id, item.subset) for item in rest}
    for prompt in asked:
        assert [role for role, _ in prompt.messages] == ["user", "assistant"] * 2 + ["user"]
        assert prompt.shows == (1, 1, 1)
        # what is said of an item is its number, what is seen its brightness
        said = [int(OFFERED.findall(text)[-1].split()[-1]) for role, text in prompt.messages if role == "user"]
        seen = [image.getpixel((0, 0))[0] // 20 for image in prompt.images]
        assert said == seen
        assert len({n % 2 for n in seen}) == 1  # the same subset
        assert (str(seen[-1]), "odd" if seen[-1] % 2 else "even") in tested
        assert not any(str(n) in {i for i, _ in tested} for n in seen[:-1])
        answers = [text for role, text in prompt.messages if role == "assistant"]
        for answer, (_, text) in zip(answers, prompt.messages[::2], strict=False):
            assert next(option for option in OFFERED.findall(text) if "not a" in option).startswith(answer)
    again = draw_shots(whole, 2, tmp_path / "again", seed=1)
    assert again.hash == rest.hash
    with pytest.raises(CreperieError, match="4 demonstrations are among the items"):
        score(whole, model, tasks=["itt"])
    with pytest.raises(CreperieError, match="5 items"):
        draw_shots(whole, 5, tmp_path / "all")
