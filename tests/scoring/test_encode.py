"""Encoding: each thing once, in whatever batches, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.core import ModelError
from creperie.models import Fingerprint, Tokens
from creperie.scoring.batch_size import BatchSize, out_of_memory, pace_for
from creperie.scoring.driver import Driver
from creperie.scoring.passes import encode_images, encode_texts, prepare_images, score_pairs
from creperie.scoring.sheet import PairJob, Sheet

CAPTIONS = [f"a {'very ' * (i % 7)}small dog number {i}" for i in range(60)]


def encoded(model: Any, texts: Sequence[str], pace: BatchSize | None = None, sheet: Sheet | None = None) -> Sheet:
    sheet = sheet or Sheet(len(texts))
    with Driver(model, pace or pace_for(model)) as driver:
        encode_texts(driver, texts, sheet)
    return sheet


def pace(tokens: int = 64, captions: int = 512, images: int = 4, in_flight: int = 1) -> BatchSize:
    return BatchSize("cpu", images=images, tokens=tokens, captions=captions, workers=2, in_flight=in_flight)


def test_batches_are_sorted_by_length_and_bounded(texts_model: Callable[..., Any]) -> None:
    model = texts_model()
    lengths: list[int] = []
    whole = model.forward_texts

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:
        assert len(prepared) * max(len(t.ids) for t in prepared) <= 40
        lengths.extend(len(t.ids) for t in prepared)
        return whole(prepared)

    model.forward_texts = forward
    encoded(model, CAPTIONS, pace(tokens=40))
    assert lengths == sorted(lengths, reverse=True)
    assert len(lengths) == 60


@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize("tokens", [8, 64, 4096])
def test_result_does_not_depend_on_batches(texts_model: Callable[..., Any], tokens: int, in_flight: int) -> None:
    expected = texts_model().encode_texts(CAPTIONS)
    sheet = encoded(texts_model(), CAPTIONS, pace(tokens=tokens, in_flight=in_flight))
    np.testing.assert_array_equal(sheet.vectors, expected)


def test_captions_the_model_reads_alike_are_encoded_once_and_tie(texts_model: Callable[..., Any]) -> None:
    model = texts_model()
    sheet = encoded(model, ["A Dog runs", "a dog runs", "a dog runs ", "a cat runs"])
    assert len(model.texts_seen) == 2
    assert sheet.done.all()
    assert (sheet.vectors[0] == sheet.vectors[1]).all()
    assert (sheet.vectors[0] == sheet.vectors[2]).all()


def test_captions_alike_tie_over_windows_of_tokens(texts_model: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("creperie.scoring.passes.WINDOW", 2)
    model, calls = texts_model(), iter(range(1, 100))
    whole = model.forward_texts

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:  # another result in every batch, as on a GPU
        turn = np.eye(whole(prepared).shape[1], dtype=np.float32)[next(calls)]
        moved = whole(prepared) + turn
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)

    model.forward_texts = forward
    captions = ["a dog", "a cat sits", "A dog", "a bird", "a cat sits", "a fish", "a dog"]
    vectors = encoded(model, captions, pace(in_flight=2)).vectors
    assert next(calls) > 2  # more than one batch
    for one, other in ((0, 2), (0, 6), (1, 4)):
        np.testing.assert_array_equal(vectors[one], vectors[other])


def test_what_is_done_is_left_alone_and_batches_stay_as_they_were(texts_model: Callable[..., Any]) -> None:
    first = texts_model()
    batches: list[list[bytes]] = []
    whole = first.forward_texts
    first.forward_texts = lambda p: (batches.append([t.ids.tobytes() for t in p]), whole(p))[1]
    full = encoded(first, CAPTIONS, pace(tokens=40))
    interrupted = Sheet(60)
    tokens = first.prepare_texts(CAPTIONS)
    kept = {ids for batch in batches[:3] for ids in batch}
    rows = np.array([i for i, t in enumerate(tokens) if t.ids.tobytes() in kept])
    interrupted.put(rows, full.vectors[rows])
    second = texts_model()
    again: list[list[bytes]] = []
    forward = second.forward_texts
    second.forward_texts = lambda p: (again.append([t.ids.tobytes() for t in p]), forward(p))[1]
    encoded(second, CAPTIONS, pace(tokens=40), interrupted)
    assert again == batches[3:]
    np.testing.assert_array_equal(interrupted.vectors, full.vectors)


def test_over_long_captions_say_how_much_was_cut(texts_model: Callable[..., Any]) -> None:
    sheet = encoded(texts_model(context=5), ["one two three", "one two three four five six seven"])
    assert sheet.cut.tolist() == [0, 2]


def test_a_model_that_must_not_be_trimmed_counts_whole_contexts(texts_model: Callable[..., Any]) -> None:
    model = texts_model(context=20)
    model.trims = False
    encoded(model, CAPTIONS, pace(tokens=60))
    assert max(model.batches) == 3


def test_out_of_memory_halves_the_batch_and_goes_on(texts_model: Callable[..., Any]) -> None:
    model = texts_model()
    whole = model.forward_texts
    tried: list[int] = []

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:
        tried.append(len(prepared))
        if len(prepared) > 5:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory: you tried…")
        return whole(prepared)

    model.forward_texts = forward
    own = pace(tokens=300)
    sheet = encoded(model, CAPTIONS, own)
    np.testing.assert_array_equal(sheet.vectors, texts_model().encode_texts(CAPTIONS))
    failed = [n for n in tried if n > 5]
    assert failed[:3] == [27, 13, 6]
    assert max(failed[3:], default=0) <= 6, "later batches are small from the start"
    assert own.tokens <= 3 * 11


def test_out_of_memory_halves_a_group_of_images_and_goes_on(texts_model: Callable[..., Any]) -> None:
    model, tried, own = texts_model(), [], pace()

    def forward(images: Sequence[int], texts: Sequence[Sequence[Tokens]]) -> list[np.ndarray]:
        tried.append(len(images))
        if len(images) > 2:
            raise MemoryError
        return [np.full(len(captions), image, np.float32) for image, captions in zip(images, texts, strict=True)]

    model.forward_groups, own.groups = forward, 8
    jobs = [PairJob(k, np.array([2 * k, 2 * k + 1]), ["a dog", "a cat " * 7]) for k in range(11)]
    sheet = Sheet(22)
    with Driver(model, own) as driver:
        score_pairs(driver, lambda row: row, jobs, sheet)
    assert sheet.vectors.tolist() == [k // 2 for k in range(22)]
    assert sheet.cut.tolist() == [0, 2] * 11  # 14 words, a context of 12
    assert tried == [8, 4, 2, 2, 2, 2, 2, 1]


def test_one_that_does_not_fit_is_an_error(texts_model: Callable[..., Any]) -> None:
    model = texts_model()

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:
        raise MemoryError

    model.forward_texts = forward
    with pytest.raises(ModelError, match="too little memory for one of the tokens"):
        encoded(model, CAPTIONS)


def test_memory_errors_are_told_from_others() -> None:
    assert out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


@pytest.mark.parametrize("answer", [np.nan, 0])
def test_nan_is_a_fault_of_its_row_only(texts_model: Callable[..., Any], answer: float) -> None:
    model = texts_model()
    whole = model.forward_texts

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:
        vectors = whole(prepared)
        vectors[[t.ids.tobytes() == model.prepare_texts([CAPTIONS[7]])[0].ids.tobytes() for t in prepared]] = answer
        return vectors

    model.forward_texts = forward
    sheet = encoded(model, CAPTIONS)
    assert [(f.row, f.code) for f in sheet.faults] == [(7, "not-a-number")]
    assert sheet.done.sum() == 59


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.ones((n, 4), np.float32), "not have unit length"),
        (lambda n: np.ones((n + 1, 4), np.float32), "an array of shape .* for \\d+ inputs"),
        (lambda n: np.ones((n, 4), np.int64), "int64"),
    ],
)
def test_answers_that_are_no_vectors_are_errors(
    texts_model: Callable[..., Any], answer: Callable[[int], np.ndarray], message: str
) -> None:
    model = texts_model()
    model.forward_texts = lambda prepared: answer(len(prepared))
    with pytest.raises(ModelError, match=message):
        encoded(model, CAPTIONS)


def test_a_failing_model_is_named(texts_model: Callable[..., Any]) -> None:
    model = texts_model()

    def forward(prepared: Sequence[Tokens]) -> np.ndarray:
        raise KeyError("index 77")

    model.forward_texts = forward
    with pytest.raises(ModelError, match="fake:fake: the model fails on a batch of 36: KeyError: 'index 77"):
        encoded(model, CAPTIONS)


class Plain:
    """A plug-in without stages."""

    fingerprint = Fingerprint(uri="plain:x", architecture="Plain", weights="x")

    def __init__(self, unit: Callable[..., np.ndarray]) -> None:
        self.unit = unit
        self.batches: list[int] = []

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(len(texts))
        return np.stack([self.unit(t.encode()) for t in texts])

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        self.batches.append(len(images))
        return np.stack([self.unit(np.asarray(i).tobytes()) for i in images])


def test_plain_models_get_batches_too(unit_vector: Callable[..., np.ndarray], pictures: Path) -> None:
    model = Plain(unit_vector)
    sheet = encoded(model, CAPTIONS, pace(captions=16))
    assert model.batches == [16, 16, 16, 12]
    np.testing.assert_array_equal(sheet.vectors, np.stack([unit_vector(t.encode()) for t in CAPTIONS]))
    images = Sheet(8)
    with Driver(model, pace(images=3)) as driver:
        ready = prepare_images(driver, lambda row: Image.open(pictures / f"{row}.png"), images)
        encode_images(driver, ready, images)
    assert images.done.all()
    assert model.batches[4:] == [3, 3, 2]


@pytest.mark.parametrize("in_flight", [1, 2])
def test_images_come_in_order_whatever_decodes_first(
    dual_model: Callable[..., Any], pictures: Path, in_flight: int
) -> None:
    import time

    def slow_first(row: int) -> Image.Image:
        time.sleep(0.02 * (row % 3 == 0))
        return Image.open(pictures / f"{row}.png").convert("RGB")

    model = dual_model()
    sheet = Sheet(8)
    with Driver(model, pace(images=3, in_flight=in_flight)) as driver:
        encode_images(driver, prepare_images(driver, slow_first, sheet), sheet)
    expected = model.encode_images([Image.open(pictures / f"{i}.png") for i in range(8)])
    np.testing.assert_array_equal(sheet.vectors, expected)


def test_preprocessing_that_fails_is_a_fault(dual_model: Callable[..., Any], pictures: Path) -> None:
    model = dual_model()
    prepare = model.prepare_image

    def picky(image: Image.Image) -> np.ndarray:
        if image.info.get("n") == 3:
            raise ValueError("height and width must be > 0")
        return prepare(image)

    def numbered(row: int) -> Image.Image:
        image = Image.open(pictures / f"{row}.png").convert("RGB")
        image.info["n"] = row
        return image

    model.prepare_image = picky
    sheet = Sheet(8)
    with Driver(model, pace()) as driver:
        encode_images(driver, prepare_images(driver, numbered, sheet), sheet)
    assert [(f.row, f.code) for f in sheet.faults] == [(3, "unprepared-image")]
    assert sheet.faults[0].message.endswith("preprocessing fails: ValueError: height and width must be > 0")
    assert sheet.done.sum() == 7
