"""What models can do is said in one table; nothing that a model can do is left out of planning, checks or docs."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import creperie
from creperie.metrics import INPUTS
from creperie.models import ABILITIES, ChoiceQuestion, Chosen, Fingerprint, Model, Prompt, abilities_of, check_model
from creperie.models import check as check_module
from creperie.scoring.handle import handle_of
from creperie.scoring.store import KINDS

ROOT = Path(creperie.__file__).parent
DOCS = ROOT.parents[1] / "docs"


def protocols() -> set[str]:
    """Every protocol of the house that a model can have, by its definition."""
    found = set()
    for path in (ROOT / "models").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            bases = {b.id for b in node.bases if isinstance(b, ast.Name)} if isinstance(node, ast.ClassDef) else set()
            if isinstance(node, ast.ClassDef) and bases == {"Model", "Protocol"}:
                found.add(node.name)
    return found


class Everything:
    """A model that can do all there is, and writes down what it was asked for."""

    asks, order = ("match",), "all"

    def __init__(self, broken: str = "") -> None:
        self.fingerprint = Fingerprint("test:everything", "everything", "0")
        self.broken, self.asked = broken, set[str]()

    def _numbers(self, method: str, texts: Sequence[str]) -> np.ndarray:
        self.asked.add(method)
        values = np.array([sum(map(ord, text)) / 1000 for text in texts], np.float32)
        return values * np.nan if self.broken == method else values

    def _vectors(self, method: str, numbers: Sequence[float]) -> np.ndarray:
        self.asked.add(method)
        angle = np.array(numbers, np.float32)
        vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return vectors * 2 if self.broken == method else vectors

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        return self._vectors("encode_images", [image.width for image in images])

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors("encode_texts", [len(text) for text in texts])

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return self._numbers("score_pairs", texts)

    def encode_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return self._vectors("encode_pairs", [len(text) for text in texts])

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._numbers("score_texts", texts)

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        both = self._numbers("score_text_pairs", first) + self._numbers("score_text_pairs", second)
        return both * 2 - self._numbers("score_text_pairs", first) if self.broken == "direction" else both

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        self.asked.add("choose")
        share = 2.0 if self.broken == "choose" else 0.25
        return [Chosen(np.full(len(q.options), share, np.float32)) for q in questions]

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.asked.add("generate")
        return ["yes"] * (len(prompts) - (self.broken == "generate"))


def test_every_protocol_of_a_model_is_in_the_table_and_nothing_else() -> None:
    assert {ability.protocol.__name__ for ability in ABILITIES.values()} == protocols()
    for ability in ABILITIES.values():
        assert hasattr(ability.protocol, ability.method)
        assert ability.beside in ("", *ABILITIES)
        assert ability.column in ("", *INPUTS)


def test_every_ability_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Everything()
    assert isinstance(model, Model)
    assert abilities_of(model) == set(ABILITIES)
    monkeypatch.setattr(check_module, "load_model", lambda *_, **__: model)
    report = check_model("test:everything")
    assert model.asked == {ability.method for ability in ABILITIES.values()}
    assert report.ok, [c for c in report.checks if c.ok is False]
    assert report.roles == [ability.label for ability in ABILITIES.values()]


@pytest.mark.parametrize("broken", [*(ability.method for ability in ABILITIES.values()), "direction"])
def test_a_check_fails_where_the_ability_is_broken(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "load_model", lambda *_, **__: Everything(broken))
    assert not check_model("test:everything").ok


def test_planning_and_the_store_read_the_table() -> None:
    handle = handle_of(Everything())
    assert handle.abilities == {name for name, ability in ABILITIES.items() if ability.column}
    assert handle.inputs == set(INPUTS)
    assert handle.compares_captions
    assert set(KINDS) | {"choice"} == handle.abilities


def test_the_docs_name_every_ability() -> None:
    page = (DOCS / "scoring.md").read_text(encoding="utf-8")
    missing = [a.method for a in ABILITIES.values() if a.column and f"`{a.method}`" not in page]
    assert missing == []


def test_the_roles_of_real_adapters_are_in_the_table() -> None:
    """An adapter's public method that reads like an ability must be one, or no score will ever use it."""
    known: set[str] = {a.method for a in ABILITIES.values()}
    adapters: list[Any] = [importlib.import_module(f"creperie.models.{m}") for m in ("hf.dual", "hf.bertscore", "st")]
    methods = {n for m in adapters for c in vars(m).values() if isinstance(c, type) for n in vars(c)}
    assert {n for n in methods if n.startswith(("encode_", "score_"))} <= known
