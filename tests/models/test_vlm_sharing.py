"""What is read once: text before the image for all images, images for all prompts, questions for all answers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny_vlm import by_family
from vlm_reference import Reference

from creperie.core import CreperieError
from creperie.models import ChoiceQuestion, Chooser, Prompt, find_prompt, load_model
from creperie.models.vlm.families import FAMILIES as RULES
from creperie.models.vlm.rows import Rest, fewest_rows

CAPTIONS = ["a dog", "A man rides a {red} horse. ", "the small brown dog chases a cat"]
QUESTION = find_prompt("one-sentence", "caption").text
SYSTEM = "A man looks at the picture and says in one sentence what the dog and the cat on the green lawn are doing."
CHATS = ["llava", "llava_next", "llava_onevision", "internvl", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "smolvlm"]
CHATS += ["idefics3", "idefics2", "gemma3", "glm4v_moe"]
#: where the tower of each family is, as the library names it
TOWERS = {
    "qwen": "model.visual",
    "glm4v": "model.visual",
    "gemma3": "model.vision_tower",
    "llava": "model.vision_tower",
    "internvl": "model.vision_tower",
}
TOWERS |= {"paligemma": "model.vision_tower", "blip": "vision_model", "instructblip": "vision_model"}
TOWERS |= {"glm46v": "model.visual", "deepseek_vl": "model.vision_model"}
TOWERS |= {"smolvlm": "model.vision_model", "idefics": "model.vision_model"}


def load(folder: Path, more: str = "") -> Any:
    return load_model(f"vlm:{folder}?{more}", device="cpu")


# -- text before the image -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", by_family(pytest.mark.slow, CHATS))
def test_long_text_before_the_image_equals_the_librarys_loss(
    name: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image]
) -> None:
    """Two images of one shape in one batch and one of another."""
    model = load(vlm_folders[name], f"prompt=one-sentence&system={quote(SYSTEM)}")
    reference = Reference(name, vlm_folders[name], [("system", SYSTEM)])
    shown = [pictures[0], pictures[0].transpose(Image.Transpose.ROTATE_180), pictures[1]]
    texts = model.prepare_texts(CAPTIONS)
    scores = model.forward_groups([model.prepare_image(p) for p in shown], [texts, texts, texts[:1]])
    for own, picture in zip(scores, shown, strict=True):
        expected = [-reference.loss(picture, QUESTION, caption) for caption in CAPTIONS[: len(own)]]
        np.testing.assert_allclose(own, expected, atol=1e-4, rtol=0)
    if name == CHATS[0]:
        assert model.fingerprint.key != load(vlm_folders[name], "prompt=one-sentence").fingerprint.key


def test_what_looks_both_ways_is_never_read_in_parts() -> None:
    assert not [name for name, rule in RULES.items() if rule.interleaves and (rule.whole or not rule.placeholder)]


@pytest.mark.parametrize("name", ["paligemma", "blip2-opt", "blip-vqa"])
def test_a_system_turn_needs_a_template(name: str, vlm_folders: Mapping[str, Path]) -> None:
    with pytest.raises(CreperieError, match="needs a chat template"):
        load(vlm_folders[name], "system=Look")


SHOTS = """
[[demonstration]]
scene = "The picture shows a bird on a fence."
captions = ["a bird sits on a fence", "a fence sits on a bird"]
answer = 1
"""


def by_loss(model: Any, reference: Reference, picture: Image.Image, text: str, question: ChoiceQuestion) -> np.ndarray:
    """Shares of two options by the likelihoods of all labels, one by one, through the library's loss."""
    logs = []
    for label in model.form.answers(question):
        (line,) = model.engine.lines([(text, label)])
        logs.append(-reference.loss(picture, text, label) * (len(line.ids) - line.start))
    return (np.exp(logs) / np.exp(logs).sum())[:2]


@pytest.mark.parametrize("name", ["llava", "qwen2_5_vl", "blip2-t5"])
def test_demonstrations_are_turns_before_the_image(
    name: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image], tmp_path: Path
) -> None:
    """Likelihoods of the labels one by one, through the library's loss; models that do not chat get them as text."""
    file = tmp_path / "shots.toml"
    file.write_text(SHOTS, encoding="utf-8")
    model = load(vlm_folders[name], f"score=choice&order=given&shots={quote(str(file))}")
    question = ChoiceQuestion(pictures[0], ("a dog", "a cat"), "match")
    prompt = find_prompt("which-fits", "choice")
    asked, answered, _ = model.form.turns(question)[0]
    reference = Reference(name, vlm_folders[name], [("user", asked), ("assistant", answered)])
    text = prompt.offering(question.options)
    if name == "blip2-t5":
        text = f"{asked}\n{answered}\n\n{text}"
    (chosen,) = model.choose([question])
    expected = by_loss(model, reference, pictures[0], text, question)
    np.testing.assert_allclose(chosen.shares, expected, atol=1e-4, rtol=0)


PICTURED = """
[[demonstration]]
subset = "s"
image = "one.png"
captions = ["a bird sits on a fence", "a fence sits on a bird"]
fits = [1]
[[demonstration]]
subset = "s"
image = "two.png"
captions = ["a cat on a dog", "a dog on a cat"]
fits = [2]
[[demonstration]]
subset = "other"
image = "two.png"
captions = ["never", "shown"]
fits = [1]
"""


@pytest.mark.parametrize("name", by_family(pytest.mark.slow, CHATS))
def test_demonstrations_with_images_come_first_each_with_its_own(
    name: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image], tmp_path: Path
) -> None:
    """The library reads the whole chat, image by image; ours is the same number, and another without the pictures."""
    shown = [pictures[1], pictures[0].transpose(Image.Transpose.ROTATE_180)]
    for picture, file in zip(shown, ("one.png", "two.png"), strict=True):
        picture.convert("RGB").save(tmp_path / file)
    (tmp_path / "shots.toml").write_text(PICTURED, encoding="utf-8")
    model = load(vlm_folders[name], f"score=choice&shots={quote(str(tmp_path / 'shots.toml'))}")
    questions = [
        ChoiceQuestion(pictures[0], ("a dog", "a cat"), "match", "s"),
        ChoiceQuestion(pictures[0], ("a dog", "a cat"), "match", "nowhere"),
    ]
    turns = model.form.turns(questions[0])
    assert [(t.answered, t.image.size) for t in turns] == [("(1)", shown[0].size), ("(2)", shown[1].size)]
    said = [part for t in turns for part in (("user", t.asked), ("assistant", t.answered))]
    reference = Reference(name, vlm_folders[name], said, [p.convert("RGB") for p in shown])
    text = find_prompt("which-fits", "choice").offering(questions[0].options)
    chosen, bare = model.choose(questions)
    expected = by_loss(model, reference, pictures[0].convert("RGB"), text, questions[0])
    np.testing.assert_allclose(chosen.shares, expected, atol=1e-4, rtol=0)
    assert not np.allclose(chosen.shares, bare.shares, atol=1e-5)


@pytest.mark.parametrize("name", ["blip2-opt", "paligemma"])
def test_models_of_one_image_refuse_demonstrations_with_images(
    name: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image], tmp_path: Path
) -> None:
    for file in ("one.png", "two.png"):
        pictures[0].save(tmp_path / file)
    (tmp_path / "shots.toml").write_text(PICTURED, encoding="utf-8")
    with pytest.raises(CreperieError, match="one image at a time"):
        load(vlm_folders[name], f"score=choice&shots={quote(str(tmp_path / 'shots.toml'))}")


# -- the tower -------------------------------------------------------------------------------------------------------


def looks(model: Any, name: str) -> list[int]:
    """How many pictures the tower is shown in each of its passes, filled as they happen."""
    tower = model.engine.model
    for step in next(path for start, path in TOWERS.items() if name.startswith(start)).split("."):
        tower = getattr(tower, step)
    seen: list[int] = []

    def note(_: Any, given: tuple[Any, ...], settings: dict[str, Any], ___: Any) -> None:
        pixels = given[0] if given else settings.get("pixel_values", settings.get("hidden_states"))
        seen.append(len(pixels))

    tower.register_forward_hook(note, with_kwargs=True)
    return seen


@pytest.mark.parametrize(
    "score", [*(pytest.param(way, marks=pytest.mark.slow) for way in ("visualgpt", "yesno", "vqa")), "choice"]
)
@pytest.mark.parametrize("name", by_family(pytest.mark.slow))
def test_every_image_is_looked_at_once(
    name: str, score: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image]
) -> None:
    """In every way of scoring: one pass over the tower for one image, whatever is asked about it; and for two images
    as many rows of pixels as they have."""
    if name == "blip-captioner" and score != "visualgpt":
        pytest.skip("a captioner answers no questions")
    model = load(vlm_folders[name], f"score={score}")
    seen = looks(model, name)
    if isinstance(model, Chooser):
        orders = list(itertools.permutations(CAPTIONS))[::2]
        questions = [ChoiceQuestion(p, order, "match") for order in orders for p in pictures[:2]]
        model.choose([q for q in questions if q.image is pictures[0]])
    else:
        model.score_pairs(pictures[0], CAPTIONS)
    assert len(seen) == 1
    rows = sum(seen)
    seen.clear()
    if isinstance(model, Chooser):
        model.choose([q for q in questions if q.image is pictures[1]])
        rows += sum(seen)
        seen.clear()
        model.choose(questions)
    else:
        texts = model.prepare_texts(CAPTIONS)
        model.score_pairs(pictures[1], CAPTIONS[:1])
        rows += sum(seen)
        seen.clear()
        model.forward_groups([model.prepare_image(p) for p in pictures[:2]], [texts, texts])
    assert sum(seen) == rows
    assert len(seen) <= 2


ANSWERED = ["llava", "llava_next", "internvl", "qwen2_5_vl", "qwen3_vl", "idefics3", "paligemma", "blip2-opt"]
ANSWERED += ["instructblip-t5", "blip-vqa"]


@pytest.mark.parametrize("temperature", [0.0, 2.0])
@pytest.mark.parametrize("name", by_family(pytest.mark.slow, ANSWERED))
def test_answers_in_batches_are_those_of_the_library_one_by_one(
    name: str, temperature: float, vlm_folders: Mapping[str, Path], pictures: list[Image.Image]
) -> None:
    """Three images, one of another shape, with three questions each, of several lengths: the tower is shown each image
    once."""
    model = load(vlm_folders[name], "score=choice&by=generate")
    generator, seen = model.generator, looks(model.generator, name)
    questions = ["What is it?", "What is this? Say it in a few words.", "Is it a dog?"]
    prompts = [
        Prompt((("user", question),), images=(picture,), max_tokens=4 + 2 * k, temperature=temperature, seed=k)
        for picture in (pictures[0], pictures[0].transpose(Image.Transpose.ROTATE_180), pictures[1])
        for k, question in enumerate(questions)
    ]
    together = generator.generate(prompts)
    rows = sum(seen)
    seen.clear()
    assert generator.generate(prompts[::-1]) == together[::-1]
    assert [generator.generate([prompt])[0] for prompt in prompts] == together
    if RULES[generator.engine.model.config.model_type].interleaves:
        assert sum(seen) == 4 * rows  # once per image, then nine prompts one by one
    engine, prompt = generator.engine, prompts[1]
    inputs = engine.question_inputs(engine.see(prompt.images[0]), prompt.messages[0][1])
    ids = engine.model.generate(**inputs, max_new_tokens=prompt.max_tokens, do_sample=False)[0]
    written = engine.reader.tokenizer.decode(ids, skip_special_tokens=True)
    assert written.endswith(together[1]) or temperature
    if temperature or name == "blip-vqa":  # its end token cannot be chosen
        return
    assert together[1].cut  # a tiny model does not end by itself
    engine.model.generation_config.eos_token_id = int(ids[-2])
    (ended,) = generator.generate([prompt])
    assert not ended.cut
    assert together[1].startswith(ended)


# -- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llava", "qwen2_vl", "paligemma", "blip2-opt", "instructblip-t5", "blip-vqa"])
def test_scores_depend_neither_on_the_batch_nor_on_the_order(
    name: str, vlm_folders: Mapping[str, Path], pictures: list[Image.Image]
) -> None:
    model = load(vlm_folders[name], "score=vqa")
    shown = [pictures[i % 4].rotate(7 * i) for i in range(32)]
    seen = [model.prepare_image(p) for p in shown]
    texts = model.prepare_texts([*CAPTIONS, "a cat"])
    own = [[texts[i % 4], texts[(i + 1) % 4]] for i in range(32)]

    def scores(size: int, order: list[int]) -> np.ndarray:
        found = np.zeros((32, 2), np.float32)
        for at in range(0, 32, size):
            part = order[at : at + size]
            found[part] = model.forward_groups([seen[i] for i in part], [own[i] for i in part])
        return found

    one = scores(1, list(range(32)))
    for size in (7, 32):
        np.testing.assert_allclose(scores(size, list(range(32))), one, atol=1e-5, rtol=0)
    shuffled = np.random.default_rng(0).permutation(32).tolist()
    np.testing.assert_allclose(scores(7, shuffled), one, atol=1e-5, rtol=0)


# -- rows ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 2), min_size=1, max_size=4)), max_size=12))
def test_every_line_is_in_its_row_and_no_row_is_too_many(lines: list[tuple[int, list[int]]]) -> None:
    rows = fewest_rows([Rest(owner, np.array(ids), 0) for owner, ids in lines])
    for (owner, ids), row in zip(lines, rows.of, strict=True):
        assert rows.owners[row] == owner
        assert rows.ids[row][: len(ids) - 1].tolist() == ids[:-1]
    kept = list(zip(rows.owners, (tuple(ids.tolist()) for ids in rows.ids), strict=True))
    for (a, first), (b, second) in itertools.permutations(kept, 2):
        assert a != b or second[: len(first)] != first
