"""Prompt texts as data, orders of options, and choices read from likelihoods or from what a model says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny_vlm import tiny_blip2_t5, tiny_blip_captioner, tiny_blip_vqa, tiny_llava

from creperie.core import CreperieError
from creperie.models import (
    ChoiceQuestion,
    Chooser,
    Fingerprint,
    PairScorer,
    Prompt,
    PromptText,
    find_prompt,
    load_model,
    order_pattern,
    orders_of,
    parse_uri,
    prompt_name,
    prompts_of,
    read_form,
    with_prompts,
)
from creperie.models.api.adapter import messages_of
from creperie.models.choice import read_demonstrations
from creperie.models.generated_choice import GeneratedChooser, GeneratedYesNo
from creperie.models.prompts import built_in, read_prompts

GREY = Image.new("RGB", (40, 32), (120, 120, 120))
OPTIONS = ("a dog chases a cat", "a cat chases a dog", "the cat is chased by a dog")


class Scripted:
    """A generator that says what it was told to."""

    def __init__(self, *answers: str) -> None:
        self.answers_given = list(answers)
        self.asked: list[str] = []

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint("test:scripted", "scripted", "none")

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.asked += [p.messages[0][1] for p in prompts]
        return [self.answers_given.pop(0) for _ in prompts]


# -- data ------------------------------------------------------------------------------------------------------------


def test_built_in_prompts_are_complete() -> None:
    """Five yes/no paraphrases in two families; three designs for the odd one, two of them paraphrases."""
    families = [p.family for p in prompts_of("yesno")]
    assert (families.count("match"), families.count("describe")) == (3, 2)
    odd = prompts_of("choice", "odd")
    assert [bool(p.none) for p in odd] == [True, True, False, False, False]
    assert odd[0].family == odd[1].family != odd[2].family
    assert len({p.text for p in built_in().values()}) == len(built_in())


def test_braces_in_captions_are_characters() -> None:
    prompt = find_prompt("which-fits", "choice")
    assert "(2) {labels} {options}" in prompt.offering(("a {caption}", "{labels} {options}"))


def test_options_stand_in_one_line_or_in_several() -> None:
    """The prompts for the odd one have SugarCrepe++'s form, one's own file may have another."""
    for prompt in prompts_of("choice", "odd"):
        assert f"? (1) {OPTIONS[0]}; (2) {OPTIONS[1]}; (3) {OPTIONS[2]}; " in prompt.offering(OPTIONS)
    own = PromptText("own", "choice", "{options}", asks="odd", labels=("A", "B"), separator=" / ")
    assert own.offering(("x", "y")) == "A x / B y"


@pytest.mark.parametrize("change", [{"yes": ("right",)}, {"no": ("wrong",)}])
def test_other_answers_are_another_run(change: dict[str, tuple[str, ...]]) -> None:
    asked = find_prompt("match-1", "yesno")
    keys = [GeneratedYesNo(Scripted(), p).fingerprint.key for p in (asked, replace(asked, **change))]
    assert keys[0] != keys[1]


def test_other_labels_are_another_run() -> None:
    asked = find_prompt("odd-forced", "choice")
    ways = [asked, replace(asked, labels=("A", "B", "C")), replace(asked, none="none"), replace(asked, separator=" ")]
    assert len({p.described for p in ways}) == len(ways)


def test_files_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[prompt]]\nid="a"\nkind="yesno"\ntext="{caption}?"\nyes=["ja"]\nno=["nein"]\n'
        '[[prompt]]\nid="b"\nkind="vqa"\ntext="So: {caption}"\nanswers=["Ja"]\n',
        encoding="utf-8",
    )
    assert find_prompt(str(path), "yesno").yes == ("ja",)
    assert find_prompt(f"{path}#b", "vqa").about("x") == "So: x"
    with pytest.raises(CreperieError, match="unknown vqa prompt 'a'"):
        find_prompt(f"{path}#a", "vqa")


def test_a_folder_of_ones_own_replaces_shipped_prompts_and_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "yesno.toml").write_text(
        '[[prompt]]\nid = "match-1"\nkind = "yesno"\ntext = "Mine: {caption}"\nyes = ["yes"]\nno = ["no"]\n'
    )
    assert find_prompt(f"{folder}/", "yesno", default="match-1").text == "Mine: {caption}"
    assert find_prompt(f"{folder}/#match-2", "yesno").text == find_prompt("match-2", "yesno").text
    choice = next(p for p in prompts_of("choice") if p.asks == "match")
    assert (
        read_form(f"{folder}/", None, where="x").prompts["match"] == read_form(None, None, where="x").prompts["match"]
    )
    (folder / "choice.toml").write_text(
        f'[[prompt]]\nid = "{choice.id}"\nkind = "choice"\ntext = "{{options}}"\nasks = "match"\nlabels = ["A", "B"]\n'
    )
    asked = [read_form(name, None, where="x") for name in (None, f"{folder}/")]
    keys = {GeneratedChooser(Scripted(), form, "given").fingerprint.key for form in asked}
    assert len(keys) == 2
    uri = with_prompts("api:gpt-4o?score=yesno", folder)
    assert parse_uri(uri).options["prompt"] == f"{folder}/"
    mine = parse_uri(with_prompts("vlm:x?score=yesno&prompt=match-1", folder))
    assert mine.options["prompt"] == f"{folder}/#match-1"
    assert prompt_name(mine) == ("match-1", True)
    assert prompt_name(parse_uri("vlm:x?score=yesno&prompt=match-2")) == ("match-2", False)
    for other in (
        "vlm:x?score=yesno&prompt=match-2",
        "st:x",
        "api:gpt-4o",
        "api:m?score=likelihood",
        "vlm:x?prompt=mine.toml%23a",
    ):
        assert with_prompts(other, folder) == other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[prompt", "is not TOML"),
        ("", r"no \[\[prompt\]\] in this file"),
        ('[[prompt]]\nid="a"\nkind="yesno"\ntext="x"\nyes=["y"]\nno=["n"]', "must contain {caption} exactly once"),
        ('[[prompt]]\nid="a"\nkind="yesno"\ntext="{caption}"\nyes=["y"]', "needs 'no'"),
        ('[[prompt]]\nid="a"\nkind="yesnoo"\ntext="x"', "did you mean 'yesno'"),
        ('[[prompt]]\nid="a"\nkind="caption"\ntext="x"\ntxet="y"', "did you mean 'text'"),
        ('[[prompt]]\nid="a"\nkind="caption"\ntext=3', "'text' is missing or not text"),
        ('[[prompt]]\nid="a"\nkind="caption"\ntext="x"\n[[prompt]]\nid="a"\nkind="caption"\ntext="x"', "two prompts"),
    ],
)
def test_wrong_files_are_said(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CreperieError, match=said) as caught:
        read_prompts(path)
    assert "wrong.toml" in str(caught.value)


# -- orders ----------------------------------------------------------------------------------------------------------


def test_orders() -> None:
    match = (True, True, False)
    assert [order_pattern(orders_of(p, match)[0], match) for p in ("NPP", "PNP", "PPN")] == ["NPP", "PNP", "PPN"]
    assert sorted(orders_of("all", match)) == sorted(itertools.permutations(range(3)))
    assert orders_of("all", (True, False)) == [(0, 1), (1, 0)]
    assert orders_of("given", match) == [(0, 1, 2)]
    with pytest.raises(CreperieError, match="does not fit an item with captions PN"):
        orders_of("NPP", (True, False))


def test_demonstrations(tmp_path: Path) -> None:
    path = tmp_path / "shots.toml"
    path.write_text(
        '[[demonstration]]\nscene="A bird sits on a fence."\ncaptions=["a bird", "a fish", "birds"]\nanswer=2\n'
        '[[demonstration]]\ncaptions=["one", "two", "three"]\nanswer=0\n',
        encoding="utf-8",
    )
    assert [s.answer for s in read_demonstrations(path)] == [1, -1]
    prompt = read_form("odd-or-none", str(path), where="").asked(ChoiceQuestion(GREY, OPTIONS, "odd"))
    (_, first), (_, one), _, (_, two), (role, question) = prompt.messages
    assert first.startswith("A bird sits on a fence.\n")
    assert (one, two, role) == ("(2)", "none", "user")
    assert "(3) the cat is chased by a dog" in question
    assert (len(prompt.images), prompt.shows) == (1, (0, 0, 1))  # the image is shown with the question, not before
    sent = [m["content"] for m in messages_of(prompt)]
    assert [isinstance(c, list) for c in sent] == [False, False, False, False, True]
    with pytest.raises(CreperieError, match="the prompt does not offer this answer"):
        read_form("odd-forced", str(path), where="").asked(ChoiceQuestion(GREY, OPTIONS, "odd"))


# -- choices ---------------------------------------------------------------------------------------------------------


def test_what_is_said_becomes_shares() -> None:
    generator = Scripted("(2)", "none", "(1) or (2)", "all of them match")
    chooser = GeneratedChooser(generator, read_form(None, None, where=""), "given")
    assert isinstance(chooser, Chooser)
    found = chooser.choose([ChoiceQuestion(GREY, OPTIONS, "odd")] * 4)
    assert found[0].shares.tolist() == [0, 1, 0]
    assert found[1].shares.tolist() == found[3].shares.tolist() == [0, 0, 0]
    assert np.isnan(found[2].shares).all()
    assert (found[2].answer, found[2].position) == ("(1) or (2)", None)
    assert "(1) a dog chases a cat; (2) a cat chases a dog; (3)" in generator.asked[0]


def test_yes_and_no_as_said() -> None:
    model = GeneratedYesNo(Scripted("Yes.", "no", "perhaps"), find_prompt("match-1", "yesno"))
    assert isinstance(model, PairScorer)
    scores = model.score_pairs(GREY, OPTIONS)
    assert scores[:2].tolist() == [1, 0]
    assert math.isnan(scores[2])


@pytest.mark.parametrize("make", [tiny_llava, tiny_blip_vqa, tiny_blip2_t5])
def test_labels_by_likelihood(make: Any, tmp_path: Path) -> None:
    """Shares are those of the labels' likelihoods, each read by itself."""
    folder = make(tmp_path)
    chooser: Any = load_model(f"vlm:{folder}?score=choice&prompt=odd-forced", device="cpu")
    assert isinstance(chooser, Chooser)
    questions = [ChoiceQuestion(GREY, OPTIONS, "odd"), ChoiceQuestion(GREY, OPTIONS[::-1], "odd")]
    found = chooser.choose(questions)
    for question, chosen in zip(questions, found, strict=True):
        assert chosen.shares.sum() == pytest.approx(1, abs=1e-5)
        ((_, text),) = chooser.form.asked(question).messages
        logs = []
        for label in ("(1)", "(2)", "(3)"):
            lines = chooser.engine.lines([(text, label)])
            logs.append(chooser.engine.log_probabilities([chooser.engine.see(GREY)], [lines])[0][0].sum())
        shares = np.exp(logs) / np.exp(logs).sum()
        np.testing.assert_allclose(chosen.shares, shares, rtol=1e-4)
    assert not np.array_equal(found[0].shares, found[1].shares)


@pytest.mark.parametrize("make", [tiny_llava, tiny_blip_vqa, tiny_blip2_t5])
def test_generated_answers_are_kept(make: Any, tmp_path: Path) -> None:
    """A random model babbles: nothing is guessed from it, and what it said is there."""
    chooser: Any = load_model(f"vlm:{make(tmp_path)}?score=choice&by=generate", device="cpu")
    (chosen,) = chooser.choose([ChoiceQuestion(GREY, OPTIONS, "odd")])
    assert chosen.parsed.option is not None or not np.nan_to_num(chosen.shares).any()
    assert "a dog chases a cat\n" not in chosen.answer  # the prompt is not given back as the answer
    again: Any = chooser.choose([ChoiceQuestion(GREY, OPTIONS, "odd")])
    assert again[0].answer == chosen.answer


def test_a_captioner_is_not_asked(tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match="cannot answer questions"):
        load_model(f"vlm:{tiny_blip_captioner(tmp_path)}?score=choice", device="cpu")


def test_too_many_options_are_said() -> None:
    form = read_form(None, None, where="")
    with pytest.raises(CreperieError, match="8 labels, but an item has 9 options"):
        form.asked(ChoiceQuestion(GREY, tuple("abcdefghi"), "match"))
    assert isinstance(form.prompts["match"], PromptText)


# -- over HTTP -------------------------------------------------------------------------------------------------------


def test_an_endpoint_without_a_score_takes_no_prompt() -> None:
    with pytest.raises(CreperieError, match="option 'prompt' does not apply to a model without"):
        load_model("api:talker?prompt=match-1")
