"""Batches against what the examples say, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from creperie.training import TrainingSettings, train_set
from creperie.training import pictures as store
from creperie.training.examples import TrainingExample, TrainSet
from creperie.training.feed import Feed

SETTINGS = TrainingSettings(batch=8, steps=4, warmup=0, seed=5)


def texts_of(feed: Feed, batch: Any) -> list[str]:
    """The words that a batch's ids stand for."""
    words = feed.student.words
    return [
        " ".join(words.vocabulary[i] for i in row if i > words.end or i == words.unknown) for row in batch.ids.tolist()
    ]


def as_words(text: str) -> str:
    from creperie.training.architecture import split_words

    return " ".join(split_words(text))


def test_a_batch_holds_captions_then_foils_and_their_pictures(data: Any, small: Any) -> None:
    feed = Feed(data, small(), SETTINGS)
    for number in (0, 3, 7):
        batch = feed.batch(number)
        examples = [data.examples[k] for k in feed.rows(number)]
        assert texts_of(feed, batch) == [
            as_words(t) for t in (*(e.caption for e in examples), *(e.foils[0] for e in examples))
        ]
        assert (batch.size, batch.foils, batch.paraphrases) == (8, 8, 0)
        for picture, example in zip(batch.pixels.numpy(), examples, strict=True):
            assert (picture == feed.student.prepare_image(data.open(example.image))).all()
    feed.close()


def test_every_epoch_shows_every_example_once_in_an_order_of_its_own(data: Any, small: Any) -> None:
    feed = Feed(data, small(), replace(SETTINGS, batch=9))
    first, second = ([k for b in range(4 * e, 4 * e + 4) for k in feed.rows(b).tolist()] for e in (0, 1))
    assert sorted(first) == sorted(second) == list(range(36))
    assert first != second
    feed.close()


def test_alternative_pictures_stand_behind_and_only_for_negclip(data: Any, small: Any) -> None:
    a, b, c = (e.image for e in data.examples[:3])
    examples = (
        TrainingExample("0", a, "a cat", "a pet", ("a dog",), (b, c)),
        TrainingExample("1", b, "a dog", "a hound", ("a cat", "a cow")),
    )
    two = TrainSet("two", examples, data.open)
    from creperie.training import SmallConfig
    from creperie.training.student import new_small

    student = new_small(SmallConfig(size=32, channels=(8, 8), text_width=16, heads=2, joint=16), two.captions(), 0)
    for objective, pictures, texts in (("negclip", 4, 4), ("clip", 2, 2), ("triple", 2, 6)):
        feed = Feed(two, student, replace(SETTINGS, objective=objective, batch=2))
        batch = feed.batch(0)
        assert (len(batch.pixels), len(batch.ids)) == (pictures, texts)
        feed.close()


def test_foils_are_drawn_from_all_of_an_example(data: Any, small: Any) -> None:
    many = replace(data, examples=tuple(replace(e, foils=("a cat", "a dog", "the cat")) for e in data.examples))
    feed = Feed(many, small(), SETTINGS)
    drawn = {text for number in range(8) for text in texts_of(feed, feed.batch(number))[8:]}
    assert drawn == {as_words(t) for t in ("a cat", "a dog", "the cat")}
    feed.close()


@pytest.mark.parametrize("room", [0, 5 * 32 * 32 * 3])
def test_pictures_that_do_not_fit_are_prepared_again(data: Any, small: Any, room: int, monkeypatch: Any) -> None:
    kept = Feed(data, small(), SETTINGS)
    monkeypatch.setattr(store, "ROOM", room)
    cramped = Feed(data, small(), SETTINGS)
    for number in range(6):
        assert np.array_equal(cramped.batch(number).pixels, kept.batch(number).pixels)
    for feed in (kept, cramped):
        feed.close()


def test_the_stream_is_the_batches_in_order_and_ends_when_left(data: Any, small: Any) -> None:
    feed = Feed(data, small(), SETTINGS)
    assert [b.number for b in feed.stream(2, 9)] == list(range(2, 9))
    stream = feed.stream(0, 1000)
    next(stream)
    stream.close()
    feed.close()


def test_paraphrases_come_from_triples() -> None:
    from creperie.world import World, make_world

    data = train_set(make_world(World(items=3, kinds=("dative",), forms=("triple",), split="train", size=32)))
    assert all(e.paraphrase and len(e.foils) == 1 for e in data.examples)
