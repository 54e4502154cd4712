"""`creperie validate --with`: a model that sees looks at every cell; and NLI beside it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import invoked
import numpy as np
import pyarrow.parquet as pq
import pytest
from loopback import Request, serving
from PIL import Image
from tiny_rare import tiny_blip

from creperie.bench import Item, from_items, load, open_store, save
from creperie.core import CreperieError
from creperie.making import CaptionPair
from creperie.making.llm.validate import entailed
from creperie.scoring import look
from creperie.scoring.looking import seeing
from creperie.testing.tiny import tiny_clip
from creperie.testing.tiny_llava import tiny_llava

COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
CROSSED = ((True, False), (False, True))


CERTAIN = {"evidence": "certain", "basis": "labels"}


class Seer:
    """A chat server that sees the colour of a picture and says whether the caption names it, `limit` times."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.limit = 1_000
        self.url = ""

    @property
    def uri(self) -> str:
        return f"api:seer?base_url={self.url}&concurrency=1&retries=1&price_in=1&price_out=2"

    def answer(self, request: Request) -> None:
        parts = {p["type"]: p for p in request.read()["messages"][-1]["content"]}
        if len(self.asked) >= self.limit:
            return request.reply(json.dumps({"error": {}}), 401)
        data = parts["image_url"]["image_url"]["url"].split(",", 1)[1]
        pixel = np.array(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))[0, 0].astype(int)
        seen = min(COLOURS, key=lambda c: np.abs(pixel - COLOURS[c]).sum())
        text = parts["text"]["text"]
        self.asked.append((seen, text))
        return request.say("Perhaps." if "odd" in text else "Yes." if seen in text else "No.", prompt_tokens=90)


@pytest.fixture
def seer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seer]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    server = Seer()
    with serving(server.answer) as server.url:
        yield server


@pytest.fixture
def bench(tmp_path: Path) -> str:
    for name, colour in COLOURS.items():
        (tmp_path / "pictures").mkdir(exist_ok=True)
        Image.new("RGB", (32, 32), colour).save(tmp_path / "pictures" / f"{name}.png")
    items = [
        Item("1", "good", ("red.png",), ("a red wall", "a blue wall"), ((True, False),)),
        Item("2", "bad", ("green.png",), ("a green door", "the green of a door"), ((True, False),)),
        Item("3", "bad", ("blue.png",), ("a grey sea", "a red sea"), ((True, False),)),
        Item("4", "twins", ("red.png", "blue.png"), ("a red kite", "a blue kite"), CROSSED, {"evidence": "unchecked"}),
        Item("5", "twins", ("red.png", "green.png"), ("a red, not a green kite", "a green kite"), CROSSED, CERTAIN),
        Item("6", "odd", ("red.png",), ("an odd red hat", "a green hat"), ((True, False),)),
    ]
    made = from_items("b", items, images=open_store(str(tmp_path / "pictures")))
    save(made, tmp_path / "b", copy_images=True)
    return str(tmp_path / "b")


run = partial(invoked.run, "validate")


def test_every_cell_is_looked_at_and_doubts_are_for_people(seer: Seer, bench: str, tmp_path: Path) -> None:
    code, plan = run(bench, "--with", seer.uri, "--dry-run")
    assert (code, plan["estimate"]["questions"], len(seer.asked)) == (0, 16, 0)
    assert plan["estimate"]["cost"] == pytest.approx((16 * 860 * 1 + 16 * 2) / 1e6)
    code, document = run(bench, "--with", seer.uri, "--out", str(tmp_path / "out"))
    assert (code, len(seer.asked), document["failed"]) == (1, 16, 3)
    found = [(f["item"], f["image"], f["caption"], f["code"]) for f in document["findings"]]
    assert found == [
        ("2", 0, 1, "false-looks-true"),
        ("3", 0, 0, "true-looks-false"),
        ("5", 1, 0, "false-looks-true"),  # a crossed cell of a twin
        ("6", 0, 0, "not-seen"),
    ]
    assert document["cells"]["false"] == {"cells": 8, "false-looks-true": 2}
    assert pq.read_table(tmp_path / "out" / "looks.parquet").num_rows == 16
    assert [item.id for item in load(str(tmp_path / "out" / "people"))] == ["2", "3", "5", "6"]
    weighed = {item.id: item.tags for item in load(str(tmp_path / "out" / "weighed"))}
    assert [weighed[k].get("evidence") for k in "456"] == ["likely", "likely", None]
    assert weighed["5"]["basis"].startswith("labels; ")
    assert weighed["5"]["basis"].endswith(" doubts it")


def test_a_look_that_was_cut_off_goes_on(seer: Seer, bench: str) -> None:
    seer.limit = 5
    with pytest.raises(CreperieError):
        run(bench, "--with", seer.uri)
    seer.limit = 1_000
    run(bench, "--with", seer.uri)
    assert len(seer.asked) == len(set(seer.asked)) == 16  # nothing is asked twice


def test_a_matching_head_looks_and_vectors_are_no_probabilities(bench: str, tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match="are not probabilities"):
        look(bench, f"hf:{tiny_clip(tmp_path / 'clip')}")
    rows = look(bench, f"hf:{tiny_blip(tmp_path / 'blip')}?score=itm").rows
    assert {row["code"] for row in rows if (row["p"] >= 0.5) == row["truth"]} == {""}
    wrong = [row for row in rows if (row["p"] >= 0.5) != row["truth"]]
    assert all(row["code"] == ("true-looks-false" if row["truth"] else "false-looks-true") for row in wrong)


def test_a_generative_model_looks_by_its_probability_of_yes(bench: str, tmp_path: Path) -> None:
    uri = f"vlm:{tiny_llava(tmp_path / 'llava')}"
    assert seeing(uri).endswith("?score=yesno")
    p = [row["p"] for row in look(bench, uri).rows]
    assert len(p) == 16
    assert all(0 < one < 1 for one in p)


def test_entailment_says_what_follows() -> None:
    """Second positives follow both ways; a foil must not follow; captions of two images must not, either way."""
    codes = {}
    for wanted in ("same", "different", "crossed"):
        pair = CaptionPair("s", "1", "a dog runs", "an animal runs", wanted)  # type: ignore[arg-type]
        codes[wanted] = [entailed(pair, *p).code for p in ((0.9, 0.9), (0.9, 0.1), (0.1, 0.9), (0.1, 0.1))]
    assert codes == {
        "same": ["", "not-equivalent", "not-equivalent", "not-equivalent"],
        "different": ["negative-equivalent", "negative-equivalent", "", ""],
        "crossed": ["negative-equivalent", "negative-equivalent", "negative-equivalent", ""],
    }
