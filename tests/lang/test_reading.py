"""One reading of a caption, and truth as the comparison of two: a table of pairs, and references nobody here wrote."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from creperie.lang import decidability, parse, read, truth

pytest.importorskip("spacy")
ROOT = Path(__file__).parents[2]
PROBES = [line.split(" | ") for line in (Path(__file__).parent / "probes.txt").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("caption", "other", "words"), PROBES)
def test_the_verdict_on_a_pair(caption: str, other: str, words: str) -> None:
    verdict = truth(caption, other)
    assert verdict.word in words.split("/"), verdict
    assert truth(caption, caption).word == truth(other, other).word == "entailed"


@pytest.mark.parametrize("sheet", [1, 2])
def test_no_pair_of_a_stranger_has_the_opposite_verdict(sheet: int) -> None:
    """Pairs with labels, 240 by each of two writers who knew no rule: modals, exceptions, double denials, what is only
    tried. Of the first sheet 17 verdicts were wrong with the rules that it met, of the second 2.
    """
    sure = {"entailed": ("contradicted",), "contradicted": ("entailed",), "open": ("entailed", "contradicted")}
    with (ROOT / "research" / "readings" / f"truth-probes-{sheet}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = Counter(row["label"] for row in rows)
    assert found == {"entailed": 80, "contradicted": 80, "open": 80}
    assert [row["n"] for row in rows if truth(row["first"], row["second"]).word in sure[row["label"]]] == []


@pytest.mark.parametrize(
    "captions",
    [
        (
            "A girl pushes a boy.",
            "A boy is pushed by a girl.",
            "A boy has been pushed by a girl.",
            "A girl will push a boy.",
        ),
        ("A man gives a dog a bone.", "A man gives a bone to a dog.", "A dog is given a bone by a man."),
        (
            "A dog chased by a cat.",
            "A cat is chasing a dog.",
            "There is a cat chasing a dog.",
            "A dog that a cat is chasing.",
        ),
    ],
)
def test_forms_of_one_sentence_have_one_reading(captions: tuple[str, ...]) -> None:
    readings = []
    for doc in parse(captions):
        reading = read(doc)
        readings.append([(f.name, sorted((r, reading.entities[i].head) for r, i in f.roles)) for f in reading.facts])
    assert all(reading == readings[0] for reading in readings), readings


def test_every_part_points_to_its_words_and_what_is_not_read_is_listed() -> None:
    caption = "A small dog is not chasing two black cats, alas."
    (doc,) = parse([caption])
    reading = read(doc)
    assert all(doc[i].text in thing.words for i, thing in reading.entities.items())
    (chase,) = (f for f in reading.facts if f.name == "chase")
    assert doc[chase.token].text == chase.words == "chasing"
    assert doc[chase.denied].text == "not"
    assert "alas" in reading.unread
    assert truth("A small dog is chasing two black cats.", caption).word == "contradicted"


def test_the_reason_quotes_the_words() -> None:
    assert truth("A red car waits.", "A blue car waits.").reason == (
        "two attributes that exclude each other: red car → blue car"
    )
    assert "A girl / a boy" in truth("A girl pushes a boy.", "A boy pushes a girl.").reason


# -- references from outside -----------------------------------------------------------------------------------------
# Rules were mended while looking at errors in these sets: the tests guard what was reached, on no unseen captions.


@pytest.fixture(scope="module")
def sick(shared_data: Path) -> dict[str, Counter[str]]:
    lines = (shared_data / "outside" / "sick" / "sick.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [row for row in (line.split("\t") for line in lines) if int(row[0]) % 4 == 3]
    counts: dict[str, Counter[str]] = {}
    for row in Random(0).sample(rows, 700):
        counts.setdefault(row[4], Counter())[truth(row[1], row[2]).word] += 1
    return counts


def test_sick(sick: dict[str, Counter[str]]) -> None:
    """Labels by people. The whole set and what remains wrong: research/results/truth.md."""
    entailments, contradictions = sick["ENTAILMENT"], sick["CONTRADICTION"]
    assert contradictions["entailed"] == 0
    assert entailments["contradicted"] <= 0.02 * entailments.total()
    assert entailments["entailed"] >= 0.48 * entailments.total()
    assert contradictions["contradicted"] >= 0.82 * contradictions.total()


@pytest.mark.parametrize("part", ["swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel"])
def test_released_triplets(part: str, shared_data: Path) -> None:
    """SugarCrepe++: the second positive is not contradicted by the first, the negative not entailed."""
    rows = json.loads((shared_data / "sugarcrepe_pp" / f"{part}.json").read_text(encoding="utf-8"))
    rows = [r for r in rows if r["caption"] != r["negative_caption"]]  # two released rows have no difference
    wrong = Counter[str]()
    for row in Random(0).sample(rows, 50):
        wrong["P2"] += truth(row["caption"], row["caption2"]).word == "contradicted"
        wrong["N"] += truth(row["caption"], row["negative_caption"]).word == "entailed"
    assert wrong["P2"] <= 1
    assert wrong["N"] == 0


def test_released_spatial_triplets(shared_data: Path) -> None:
    """VISLA: text alone decides most of the spatial triplets."""
    lines = (shared_data / "visla" / "Spatial_VISLA.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [row for row in (line.split("\t") for line in lines) if len(row) > 3 and row[3].strip()]
    words = Counter(decidability(row[1:3], [row[3]])[0] for row in Random(0).sample(rows[1::2], 100))
    assert words["decidable"] >= 80
