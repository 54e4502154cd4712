"""Natural twins: what is one, what is not, and how sure it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from creperie.bench import PAIRED, Item, from_items, load, open_store
from creperie.core import UnknownNameError
from creperie.making import MakerOptions, build_maker, captions_of, make, twins_match
from creperie.making.twins_match import ORDER, PHRASE, CrossedCell, Edge, matched, neighbours, weigh
from creperie.making.twins_words import Contrast, table_contrast, words_of

pytest.importorskip("spacy")
pytest.importorskip("networkx")


def corpus(*images, images_at=None):
    """A benchmark of images with true captions; a caption that begins with "not " is false."""
    items = []
    for number, captions in enumerate(images):
        texts = tuple(c.removeprefix("not ") for c in captions)
        match = (tuple(not c.startswith("not ") for c in captions),)
        items.append(Item(str(number), "all", (f"{number}.png",), texts, match))
    bench = from_items("corpus", items, **({"images": open_store(images_at)} if images_at else {}))
    return captions_of(bench)


def mined(captions, **options):
    return make(build_maker("mine:twins", MakerOptions(**options), captions), captions)


def reasons(captions, **options):
    return Counter(v.reason for o in mined(captions, **options).outcomes for v in o.verdicts)


BLACK = ("A black dog trots along the pier .", "Something black on the sand , maybe a dog .", "A dog by the sea")
WHITE = ("a white dog trotting along a pier", "It is white", "Waves and an animal far away from us")


def test_two_captions_that_differ_in_one_word_become_a_two_image_item():
    (item,) = mined(corpus(BLACK, WHITE)).items
    assert item.subset == "replace_att"
    assert item.images == ("0.png", "1.png")
    assert item.captions == ("A black dog trots along the pier.", "A white dog trotting along a pier.")  # tidied
    assert item.match == PAIRED
    assert item.tags["evidence"] == "certain"
    assert item.tags["edit"] == "black ↔ white"
    assert "colour" in item.tags["basis"]


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("A boy plays with a kite .", "A girl plays with a kite .", "replace_obj"),
        ("A goat runs on the grass .", "A goat runs in the snow .", "replace_obj"),
        ("Two dogs run in the dirt .", "Three dogs run in the dirt .", "number"),
        ("A large goat sits in the grass .", "A large goat swims in the grass .", "replace_rel"),
        ("A man walks up the stairs .", "A man walks down the stairs .", "spatial"),
        ("A brown dog chases a black dog .", "A black dog chases a brown dog .", "swap_att"),
        ("The cat is above the bed.", "The bed is above the cat.", "swap_obj"),
        ("The cat is beneath the bowl.", "The cat is on top of the bowl.", "spatial"),
    ],
)
def test_kinds(one, two, kind):
    others = ("Somebody was here .", "It is a nice day .")
    (item,) = mined(corpus((one, *others), (two, *others))).items
    assert item.subset == kind


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        ("A man runs along a road .", "A person runs along a road .", "both may be true"),
        ("Dogs play in a field .", "Dogs play in the grass .", "both may be true"),
        ("A man takes a photo .", "A man takes a picture .", "both may be true"),
        ("A black dog runs .", "A dog runs .", "one caption says more than the other"),
        (
            "A man jumps in the lake with a rope .",
            "A man jumps with a rope in the lake .",
            "the order changes, not who",
        ),
        ("The cat is touching the dog.", "The dog is touching the cat.", "it holds both ways"),
        ("The cat is beneath the dog.", "The cat is touching the dog.", "both may hold"),
        ("The cat is left of the dog.", "The dog is left of the cat.", "depends on the point of view"),
        ("A child runs on the sidewalk .", "A man sits on the sidewalk .", "more than one phrase"),
        ("Brown dogs run in the snow .", "A brown dog runs in the grass .", "a noun also differs in number"),
        ("A man holds an idea .", "A man holds a lamp .", "not known to exclude"),
    ],
)
def test_what_only_looks_like_twins_is_told_with_a_reason(one, two, reason):
    found = reasons(corpus((one, "Here", "There"), (two, "Here", "There")))
    assert sum(n for why, n in found.items() if why.startswith(reason)) == 1, found
    assert "" not in found


def test_inflection_alone_joins_nothing():
    assert not reasons(corpus(("A dog runs .",), ("Dogs are running",)))


def test_another_caption_that_says_the_twins_word_ends_it():
    spotted = (*BLACK, "A white and black dog .")
    assert reasons(corpus(spotted, WHITE)) == {"another caption of the image says the twin's word": 1}


def test_levels_follow_the_other_captions_and_the_option():
    alone = corpus(BLACK[:1], WHITE[:1])
    assert reasons(alone) == {"evidence below likely": 1}
    (item,) = mined(alone, evidence="unchecked").items
    assert item.tags["evidence"] == "unchecked"
    silent = corpus((BLACK[0], "A day out", "By the sea"), (WHITE[0], "A day out", "By the sea"))
    (item,) = mined(silent).items
    assert item.tags["evidence"] == "likely"
    assert reasons(silent, evidence="certain") == {"evidence below certain": 1}
    with pytest.raises(UnknownNameError, match="evidence level"):
        mined(alone, evidence="sure")


def test_labels_are_the_strongest_evidence_either_way():
    left, right = "The cat is near the dog.", "The cat is touching the dog."
    both_false = corpus((left, f"not {right}"), (right, f"not {left}"))
    (item,) = mined(both_false).items
    assert (item.subset, item.tags["evidence"]) == ("spatial", "certain")
    assert "labels of both" in item.tags["basis"]
    opposite = "The cat is below the dog."
    above = "The cat is above the dog."
    assert not mined(corpus((above, opposite), (opposite,))).items  # people found both true of the first image


def test_every_image_is_used_once_within_a_kind():
    rest = {
        "black": ("All black", "Here"),
        "white": ("White it is", "There"),
        "red": ("Red", "I"),
        "blue": ("Blue", "It"),
    }
    images = [(f"A {c} dog trots along the pier .", *others) for c, others in rest.items()]
    found = mined(corpus(*images))
    assert len(found.items) == 2
    assert sorted(i for item in found.items for i in item.images) == ["0.png", "1.png", "2.png", "3.png"]
    used = "an image or caption is used by another twin of the kind"
    assert found.report["reasons"] == {used: 4}


def test_bad_input_is_counted_and_makes_no_item():
    no_images = captions_of(from_items("text", [Item("1", "s", (), ("A black dog",), ((True,),))]))
    assert mined(no_images).report["skipped"] == {"no image": 1}
    one_image = corpus(("A black dog runs", "A white dog runs", "A red dog runs"))
    assert not mined(one_image).items
    assert not set(mined(one_image).report["reasons"]) - {"captions of the same image"}
    names = corpus(("IMG_0001.jpg",), ("IMG_0002.jpg",))
    assert mined(names).report["skipped"] == {"a file name, not a caption": 2}
    same = corpus(*[("A black dog trots along the pier .",)] * 50)
    assert mined(same).report["skipped"] == {"the same caption belongs to several images": 50}


def test_near_duplicate_photographs_are_no_twins(tmp_path):
    rng = np.random.default_rng(0)
    scene = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(scene).resize((256, 256)).save(tmp_path / "0.png")
    Image.fromarray(np.clip(scene.astype(int) + 4, 0, 255).astype(np.uint8)).resize((240, 240)).save(tmp_path / "1.png")
    assert reasons(corpus(BLACK, WHITE, images_at=tmp_path)) == {"near-duplicate images": 1}
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "1.png")
    assert len(mined(corpus(BLACK, WHITE, images_at=tmp_path)).items) == 1
    (tmp_path / "1.png").write_bytes(b"no picture")
    assert reasons(corpus(BLACK, WHITE, images_at=tmp_path)) == {"an image cannot be read": 1}


def test_a_made_folder_loads_as_two_image_items(tmp_path):
    captions = corpus(BLACK, WHITE)
    make(build_maker("mine:twins", MakerOptions(), captions), captions, tmp_path / "out")
    (item,) = load(tmp_path / "out")
    assert item.match == PAIRED
    assert item.id == "all/0#0.0+all/1#0.0"


# -- the join against brute force ------------------------------------------------------------------------------------


def brute_force(texts):
    """All pairs that differ in one span of one or two words, or in order: every pair is compared."""
    tokens = [tuple(w.base for w in words_of(t)) for t in texts]
    found = set()
    for i, a in enumerate(tokens):
        for j in range(i + 1, len(tokens)):
            b = tokens[j]
            if a == b or min(len(a), len(b)) < 2:
                continue
            if sorted(a) == sorted(b):
                found.add((i, j, ORDER))
            spans = {(a[:p], a[p + n :]) for n in (1, 2) for p in range(len(a) - n + 1) if len(a) > n}
            if spans & {(b[:p], b[p + n :]) for n in (1, 2) for p in range(len(b) - n + 1) if len(b) > n}:
                found.add((i, j, PHRASE))
    return found


def test_the_join_finds_what_brute_force_finds(monkeypatch):
    rng = np.random.default_rng(3)
    words = ["dog", "cat", "red", "runs", "on", "grass", "two", "in front of"]
    texts = ["A " + " ".join(rng.choice(words, rng.integers(2, 6))) + " ." for _ in range(150)]
    monkeypatch.setattr(twins_match, "PER_FILLER", 1000)
    assert set(neighbours(texts)) == brute_force(texts)


def test_a_crowded_key_is_cut(monkeypatch):
    colours = ["red", "blue", "green", "black", "white"]
    texts = [f"a {c} dog runs" for c in colours for _ in range(4)]
    monkeypatch.setattr(twins_match, "PER_FILLER", 2)
    monkeypatch.setattr(twins_match, "PER_KEY", 10)
    assert 0 < len(neighbours(texts)) < 40 < len(brute_force(texts))


def test_an_empty_corpus_joins_nothing():
    assert neighbours(["", "  ", "."]) == neighbours([]) == []


# -- parts -----------------------------------------------------------------------------------------------------------


def test_matching_prefers_many_to_good_and_good_to_bad():
    assert matched([Edge("b", "c"), Edge("a", "b", 1), Edge("c", "d", 1)]) == [1, 2]
    assert matched([Edge("a", "b", 2), Edge("a", "b", 0), Edge("a", "a")]) == [1]
    assert matched([]) == []


class Salted(str):
    """A name whose hash differs from process to process, as those of strings do."""

    salt = 0

    def __hash__(self):
        return hash((Salted.salt, str(self)))


def test_matching_is_the_same_in_every_process(monkeypatch):
    names = [Salted(f"{n:02d}.jpg") for n in range(80)]
    rings = [(k + one, k + two) for k in range(0, 80, 4) for one, two in ((0, 1), (0, 3), (2, 1), (2, 3))]
    found = []
    for salt in range(4):
        monkeypatch.setattr(Salted, "salt", salt)
        found.append(matched([Edge(names[a], names[b]) for a, b in rings]))  # two ways round each ring of four
    assert found[0] == found[1] == found[2] == found[3]


def test_matching_is_as_large_as_brute_force_says():
    rng = np.random.default_rng(1)
    for _ in range(20):
        edges = [Edge(*map(int, rng.choice(7, 2, replace=False))) for _ in range(8)]
        best = max(bin(mask).count("1") for mask in range(1 << 8) if _free(edges, mask))
        assert len(matched(edges)) == best


def _free(edges, mask):
    nodes = [n for k, e in enumerate(edges) if mask >> k & 1 for n in (e.left, e.right)]
    return len(nodes) == len(set(nodes))


def test_a_label_that_says_true_outweighs_every_table():
    contrast = table_contrast("black", "white")
    assert isinstance(contrast, Contrast)
    silent = CrossedCell(None, (frozenset({"black"}),) * 4)
    assert weigh(contrast, (CrossedCell(True, ()), silent)).reason.startswith("people found")


def test_real_captions_hold_twins(shared_data: Path):
    """The whole of Flickr8k takes half a minute; an eighth of it shows that real captions hold twins."""
    lines = (shared_data / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()[:4000]
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, text = line.partition("\t")
        found.setdefault(name.partition("#")[0], []).append(text)
    items = [Item(n, "f", (n,), tuple(dict.fromkeys(c)), ((True,) * len(dict.fromkeys(c)),)) for n, c in found.items()]
    made = mined(captions_of(from_items("part", items)))
    assert len(made.items) >= 10
    assert all(item.match == PAIRED and item.images[0] != item.images[1] for item in made.items)
