"""Checks by models and by the truth layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from creperie.bench import Item, from_items, load, save
from creperie.cli.app import cli
from creperie.core import ModelError, UsageError
from creperie.making import Candidate, MakerOptions, SourceCaption, make
from creperie.making.checks import NotEntailed, entailment
from creperie.making.judges import JudgedByModel
from creperie.making.rules import gaps
from creperie.testing.tiny import tiny_bert

SOURCE = SourceCaption("1", "a man rides a brown horse")


def candidate(text: str, role: str = "negative") -> Candidate:
    return Candidate("1", text, role, "replace", "m", "")  # type: ignore[arg-type]


def classifier(folder: Path, labels: tuple[str, ...]) -> Path:
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    base = tiny_bert(folder / "base", seed=1)
    config = AutoConfig.from_pretrained(base)
    config.num_labels, config.id2label = len(labels), dict(enumerate(labels))
    config.label2id = {name: i for i, name in enumerate(labels)}
    torch.manual_seed(0)
    model = BertForSequenceClassification(config)
    torch.nn.init.normal_(model.classifier.weight, std=4.0)  # so that probabilities differ
    model.save_pretrained(folder / "nli")
    AutoTokenizer.from_pretrained(base).save_pretrained(folder / "nli")
    return folder / "nli"


def test_a_judge_decides_what_rules_leave_open(chat: Any, tmp_path: Path) -> None:
    """It is asked only about foils that no rule decides; without it, the note says what it would add."""
    answers = {"a horse rides a man": ("no", "yes"), "a man rides an animal": ("yes", "no")}

    def script(q: Any) -> str:
        photograph, false = answers.get(q.given["other"], ("yes", "yes"))
        return json.dumps({"reason": "r", "photograph": photograph, "false": false})

    chat.script = script
    texts = (*answers, "a man grooms a horse", "two men ride")
    tags = [{}, {}, {"evidence": "unchecked"}, {"evidence": "likely"}]
    pairs = [(SOURCE, replace(candidate(text), tags=tag)) for text, tag in zip(texts, tags)]
    reasons = ["the judge sees no photograph in it", "the judge does not find it false", None, None]
    assert JudgedByModel(chat.uri).review(pairs) == reasons
    assert {q.given["other"] for q in chat.asked} == set(texts[:3])
    source = ["A monk rings a bell in a tower."]
    plain = make("rules:replace", source)
    assert "--judge URI" in plain.report["note"]
    judged = make("rules:replace", source, judge=chat.uri)
    assert judged.report["made"] > plain.report["made"]
    assert any(str(item.tags["because"]).startswith("found false by") for item in judged.items)


def test_foils_that_follow_from_their_source_are_rejected(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder = classifier(tmp_path, ("contradiction", "Entailment", "neutral"))
    texts = ["a man rides a horse", "a dog sleeps", "nobody rides", "a man rides a brown horse"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertForSequenceClassification.from_pretrained(folder)
    expected = [
        model.eval()(**tokenizer(SOURCE.text, t, return_tensors="pt")).logits.softmax(-1)[0, 1].item() for t in texts
    ]
    found = entailment(f"hf:{folder}").probabilities([(SOURCE.text, t) for t in texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    between = float(np.sort(expected)[1:3].mean())
    pairs = [(SOURCE, candidate(t)) for t in texts] + [(SOURCE, candidate(texts[int(np.argmax(expected))], "positive"))]
    reasons = NotEntailed(f"hf:{folder}", between).review(pairs)
    assert reasons == [*("entailed by the source" if p > between else None for p in expected), None]


def test_a_classifier_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = classifier(tmp_path, ("good", "bad"))
    with pytest.raises(ModelError, match="none of the model's labels is 'entailment': good, bad"):
        NotEntailed(f"hf:{folder}").review([(SOURCE, candidate("a cat"))])


def test_a_model_that_does_not_score_texts_is_refused(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")
    with pytest.raises(UsageError, match="does not score texts"):
        gaps("a dog", ["a cat"], f"hf:{folder}")


def test_options_name_the_checks() -> None:
    assert MakerOptions(nli="hf:y").model_checks == (NotEntailed("hf:y"),)
    assert MakerOptions().model_checks == ()


def test_validate_by_the_truth_layer(tmp_path: Path) -> None:
    """`creperie validate --truth` finds symmetric swaps and contradicting positives without a model."""
    pytest.importorskip("spacy")
    pair, triple = ((True, False),), ((True, True, False),)
    items = [
        Item("1", "s", (), ("A man hugs a woman.", "A woman hugs a man."), pair),
        Item("2", "s", (), ("A man chases a woman.", "A woman chases a man."), pair),
        Item("3", "s", (), ("Two dogs bark.", "Three dogs bark.", "A cat sleeps."), triple),
    ]
    save(from_items("b", items), tmp_path / "b")
    result = CliRunner().invoke(cli, ["validate", str(tmp_path / "b"), "--truth", "--json"], standalone_mode=False)
    document = json.loads(result.stdout)
    assert [(f["item"], f["code"]) for f in document["findings"]] == [
        ("1", "negative-equivalent"),
        ("3", "not-equivalent"),
    ]
    assert "it holds both ways: hugs" in document["findings"][0]["message"]


def test_validate_by_entailment(tmp_path: Path) -> None:
    """`creperie validate --nli`: a verdict per pair by the classifier's probabilities, in both directions."""
    uri = f"hf:{classifier(tmp_path, ('contradiction', 'entailment', 'neutral'))}"
    texts = ("a man rides a horse", "a dog sleeps", "nobody rides a horse", "two dogs sleep")
    triple, crossed = ((True, True, False),), ((True, False), (False, True))
    items = [
        Item("1", "s", (), texts[:3], triple),
        Item("2", "t", ("a", "b"), (texts[1], texts[3]), crossed, {"evidence": "likely"}),
    ]
    save(from_items("b", items), tmp_path / "b")
    command = ["validate", str(tmp_path / "b"), "--nli", uri, "--out", str(tmp_path / "out"), "--json"]
    document = json.loads(CliRunner().invoke(cli, command).stdout)
    pairs = [(texts[0], texts[1]), (texts[0], texts[2]), (texts[1], texts[3])]
    judge = entailment(uri)
    forth, back = judge.probabilities(pairs), judge.probabilities([(b, a) for a, b in pairs])
    wrong = [min(forth[0], back[0]) < 0.5, forth[1] >= 0.5, max(forth[2], back[2]) >= 0.5]
    assert document["pairs"] == 3
    assert [(f["first"], f["second"]) for f in document["findings"]] == [p for p, bad in zip(pairs, wrong) if bad]
    rows = pq.read_table(tmp_path / "out" / "verdicts.parquet").to_pylist()
    assert [r["wanted"] for r in rows] == ["same", "different", "crossed"]
    (twin,) = [item for item in load(str(tmp_path / "out" / "weighed")) if item.subset == "t"]
    assert twin.tags["evidence"] == ("unchecked" if wrong[2] else "likely")  # not to entail says nothing
    assert rows[0]["reason"] == f"P(entailment) {forth[0]:.2f} forth, {back[0]:.2f} back"
