"""Generative models of every family against a slow reference: one caption at a time through the library's own loss."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny_vlm import FAMILIES, by_family
from vlm_reference import Reference

from creperie.core import CreperieError
from creperie.models import PairScorer, TextScorer, find_prompt, load_model

CAPTIONS = ["a dog", "A man rides a {red} horse. ", "the small brown dog chases a cat across the green lawn"]
QUESTION = find_prompt("one-sentence", "caption").text
#: families whose answer is a part of one sequence of tokens
ONE_SEQUENCE = [n for n in FAMILIES if n not in ("blip2-t5", "instructblip-t5", "blip-captioner", "blip-vqa")]


@pytest.fixture(scope="module")
def folders(vlm_folders: Mapping[str, Path]) -> Mapping[str, Path]:
    return vlm_folders


@pytest.fixture(scope="module", params=by_family(pytest.mark.slow))
def family(request: pytest.FixtureRequest, folders: Mapping[str, Path]) -> tuple[str, Path]:
    return request.param, folders[request.param]


@cache
def asked(name: str, folder: Path, more: str = "") -> Any:
    """The model with the prompt of the reference; PaliGemma's own loss counts the end token."""
    prompt = "nothing" if name == "blip-captioner" else "one-sentence"
    end = "&end=true" if name == "paligemma" else ""
    return load_model(f"vlm:{folder}?prompt={prompt}{end}{more}", device="cpu")


def test_equals_the_librarys_loss(family: tuple[str, Path], pictures: list[Image.Image]) -> None:
    name, folder = family
    model, reference = asked(name, folder), Reference(name, folder)
    assert isinstance(model, PairScorer)
    assert not isinstance(model, TextScorer)
    for picture in pictures[:2]:
        scores = model.score_pairs(picture, CAPTIONS)
        assert scores.dtype == np.float32
        expected = [-reference.loss(picture, QUESTION, c) for c in CAPTIONS]
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=0)


def test_answers_equal_the_librarys_loss(family: tuple[str, Path], pictures: list[Image.Image]) -> None:
    """VQAScore: the prompt differs from caption to caption, and shares the image all the same."""
    name, folder = family
    if name == "blip-captioner":
        pytest.skip("a captioner answers no questions")
    end = "&end=true" if name in ("paligemma", "blip2-t5", "instructblip-t5", "blip-vqa") else ""
    model, reference = load_model(f"vlm:{folder}?score=vqa{end}", device="cpu"), Reference(name, folder)
    assert isinstance(model, PairScorer)
    prompt = find_prompt("vqascore", "vqa")
    assert prompt.about("a dog") == 'Does this figure show "a dog"? Please answer yes or no.'
    scores = model.score_pairs(pictures[0], CAPTIONS)
    expected = [-reference.loss(pictures[0], prompt.about(c), "Yes") for c in CAPTIONS]
    np.testing.assert_allclose(np.log(scores), expected, atol=1e-4, rtol=0)


def test_batches_of_images_change_nothing(family: tuple[str, Path], pictures: list[Image.Image]) -> None:
    name, folder = family
    model = asked(name, folder)
    shown = [pictures[0], pictures[1], pictures[0], pictures[3]]
    captions = [CAPTIONS, CAPTIONS[:1], CAPTIONS[1:], CAPTIONS]
    apart = [model.score_pairs(p, c) for p, c in zip(shown, captions, strict=True)]
    seen = [model.prepare_image(p) for p in shown]
    together = model.forward_groups(seen, [model.prepare_texts(c) for c in captions])
    for one, many in zip(apart, together, strict=True):
        np.testing.assert_allclose(one, many, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", by_family(pytest.mark.slow, ONE_SEQUENCE))
def test_located_tokens_are_the_caption(name: str, folders: Mapping[str, Path]) -> None:
    model = asked(name, folders[name])
    odd = [*CAPTIONS, "", " leading blank", "two  blanks", "ends in a line break\n", "Ünï çødé 🙂", "ASSISTANT: a dog"]
    reader = model.engine.reader
    for caption, tokens in zip(odd, model.prepare_texts(odd), strict=True):
        (line,) = tokens.lines
        located = reader.tokenizer.decode(line.ids[line.start :], skip_special_tokens=True)
        wanted = reader.frame(QUESTION).gap + caption
        # a Llama-like tokenizer drops one blank at the beginning when it decodes
        assert located in (wanted, wanted.removeprefix(" "), caption.removeprefix(" ")), name
        assert np.array_equal(line.ids[: line.start], model.prepare_texts(["x"])[0].lines[0].ids[: line.start])


def test_merge_at_the_boundary_leaves_the_prompt_whole(folders: Mapping[str, Path]) -> None:
    """Where the tokenizer would join prompt and answer into one token, the prompt keeps its own."""
    from creperie.models.vlm.reader import Frame

    reader = asked("qwen2_vl", folders["qwen2_vl"]).engine.reader
    context = reader._behind_image(" do")
    joined = reader._behind_image(" dog")
    assert joined[: len(context)] != context  # " dog" is one token of its own
    ids = reader.answer_ids(Frame("", " do"), context, "g")
    assert reader.tokenizer.decode(ids) == "g"


def test_many_captions_are_read_in_chunks(folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.models.vlm import causal, rows

    model = asked("qwen2_5_vl", folders["qwen2_5_vl"])
    picture = Image.new("RGB", (40, 24), (10, 200, 30))
    many = [f"{c} {n}" for n in range(5) for c in CAPTIONS]
    whole = model.score_pairs(picture, many)
    monkeypatch.setattr(rows, "LOGITS", 40)
    monkeypatch.setattr(causal, "CACHE_BYTES", {"cpu": 1})
    np.testing.assert_allclose(model.score_pairs(picture, many), whole, atol=1e-5)


@pytest.mark.parametrize("name", ["llava", "qwen2_5_vl"])
def test_an_image_and_its_captions_are_one_pass(name: str, folders: Mapping[str, Path], pictures: Any) -> None:
    """The decoder is called once for two images; with captions behind a cache the scores are the same."""
    model: Any = load_model(f"vlm:{folders[name]}", device="cpu")
    engine, calls = model.engine, []
    engine.model.get_decoder().register_forward_hook(lambda *_: calls.append(1))
    shown = [model.prepare_image(p) for p in (pictures[0], pictures[0].rotate(90))]
    texts = [model.prepare_texts(CAPTIONS)] * 2
    once = model.forward_groups(shown, texts)
    assert len(calls) == 1
    engine.packs = False
    np.testing.assert_allclose(once, model.forward_groups(shown, texts), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_compiled_layers_change_nothing(
    folders: Mapping[str, Path], pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One graph serves all layers, images and lengths. (It is traced, and run as it is: code for it takes long.)"""
    from torch.compiler import set_stance
    from torch.nn import Module

    trace = Module.compile
    monkeypatch.setattr(Module, "compile", lambda self, **settings: trace(self, backend="eager", **settings))
    plain, compiled = asked("llava", folders["llava"]), asked("llava", folders["llava"], "&compile=true")
    np.testing.assert_allclose(
        compiled.score_pairs(pictures[0], CAPTIONS), plain.score_pairs(pictures[0], CAPTIONS), atol=1e-5, rtol=0
    )
    assert plain.fingerprint.key != compiled.fingerprint.key
    with set_stance("fail_on_recompile"):
        compiled.score_pairs(pictures[1], CAPTIONS)


def test_sum_is_mean_times_tokens(folders: Mapping[str, Path], pictures: list[Image.Image]) -> None:
    mean, total = asked("llava", folders["llava"]), asked("llava", folders["llava"], "&reduce=sum")
    counts = [len(t.lines[0].ids) - t.lines[0].start for t in mean.prepare_texts(CAPTIONS)]
    np.testing.assert_allclose(
        total.score_pairs(pictures[0], CAPTIONS), mean.score_pairs(pictures[0], CAPTIONS) * counts, rtol=1e-5
    )
    assert mean.fingerprint.key != total.fingerprint.key


def test_debiased_score(folders: Mapping[str, Path], pictures: list[Image.Image]) -> None:
    """log P(t|I) − α log mean P(t|noise), from the parts computed one by one."""
    from creperie.models.vlm.load import null_images

    plain = asked("llava", folders["llava"], "&reduce=sum")
    model = asked("llava", folders["llava"], "&reduce=sum&alpha=0.5&nulls=2&null=noise")
    assert isinstance(model, TextScorer)
    given = plain.score_pairs(pictures[0], CAPTIONS).astype(float)
    nothing = np.stack([plain.score_pairs(n, CAPTIONS).astype(float) for n in null_images("noise", 2)])
    marginal = np.log(np.exp(nothing).mean(axis=0))
    np.testing.assert_allclose(model.score_texts(CAPTIONS), marginal, rtol=1e-5)
    np.testing.assert_allclose(model.score_pairs(pictures[0], CAPTIONS), given - 0.5 * marginal, rtol=1e-5)


def test_yes_and_no(folders: Mapping[str, Path], pictures: list[Image.Image]) -> None:
    soft = load_model(f"vlm:{folders['llava']}?score=yesno", device="cpu")
    hard = load_model(f"vlm:{folders['llava']}?score=yesno&value=decision", device="cpu")
    assert isinstance(soft, PairScorer)
    assert isinstance(hard, PairScorer)
    prompt = find_prompt("match-1", "yesno")
    reference = Reference("llava", folders["llava"])
    expected = []
    for caption in CAPTIONS:
        total = {}
        for word in (*prompt.yes, *prompt.no):
            count = len(reference.processor.tokenizer(" " + word, add_special_tokens=False)["input_ids"])
            total[word] = np.exp(-count * reference.loss(pictures[0], prompt.about(caption), word))
        yes = sum(total[w] for w in prompt.yes)
        expected.append(yes / (yes + sum(total[w] for w in prompt.no)))
    scores = soft.score_pairs(pictures[0], CAPTIONS)
    np.testing.assert_allclose(scores, expected, rtol=1e-3)
    assert hard.score_pairs(pictures[0], CAPTIONS).tolist() == [float(s > 0.5) for s in scores]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("score=vqa&reduce=sum", "does not apply to score=vqa"),
        ("score=visualgtp", "did you mean 'visualgpt'"),
        ("prompt=one-sentense", "did you mean 'one-sentence'"),
        ("alpha=much", "not a number"),
        ("score=vqa&value=prob", "does not apply to score=vqa"),
        ("compile=perhaps", "compile"),
    ],
)
def test_wrong_options_are_said(more: str, said: str, folders: Mapping[str, Path]) -> None:
    with pytest.raises(CreperieError, match=said):
        load_model(f"vlm:{folders['llava']}?{more}", device="cpu")


def test_a_model_of_another_kind_is_refused(clip_folder: Path) -> None:
    with pytest.raises(CreperieError, match="not a generative image-text model"):
        load_model(f"vlm:{clip_folder}", device="cpu")
