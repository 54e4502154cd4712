"""Answers are read strictly; prompt files hold what they promise."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import CreperieError
from creperie.making import template_names
from creperie.making.llm.prompts import (
    LEAST_DEMONSTRATIONS,
    MOST_CHARACTERS,
    MalformedError,
    parse_template,
    read_answer,
    read_template,
    schema_of,
)

TEXT = {"new": "text"}
GATE = {"possible": "yesno", "sentence": "text-or-na"}

READABLE = [
    ('{"new": "owl"}', TEXT, {"new": "owl"}),
    (' \n{"new": " An owl. "}\n', TEXT, {"new": " An owl. "}),
    ('```json\n{"new": "owl"}\n```', TEXT, {"new": "owl"}),
    ('```\n{"new": "owl"}```', TEXT, {"new": "owl"}),
    ('Sure! {"new": "owl"} I hope this helps.', TEXT, {"new": "owl"}),
    ('{"new": "a {curly} \\"owl\\""}', TEXT, {"new": 'a {curly} "owl"'}),
    ('{"concepts": []}', {"concepts": "texts"}, {"concepts": []}),
    ('{"concepts": ["dog", "cat"]}', {"concepts": "texts"}, {"concepts": ["dog", "cat"]}),
    ('{"possible": "No", "sentence": "NA"}', GATE, {"possible": "no", "sentence": "NA"}),
    ('{"possible": "Yes, they can", "sentence": "x"}', GATE, {"possible": "yes", "sentence": "x"}),
]
MALFORMED = [
    ("", TEXT, "no JSON object"),
    ("owl", TEXT, "no JSON object"),
    ('["owl"]', TEXT, "no JSON object"),
    ('{"new": "owl"', TEXT, "broken JSON"),
    ("{'new': 'owl'}", TEXT, "broken JSON"),
    ('{"new": "owl"} or {"new": "cat"}', TEXT, "more than one"),
    ('[{"new": "owl"}, {"new": "cat"}]', TEXT, "more than one"),
    ('{"new": "owl", "new": "cat"}', TEXT, "gives the field 'new' twice"),
    ('{"word": "owl"}', TEXT, "lacks the field 'new'"),
    ('{"new": "owl", "why": "fun"}', TEXT, "has the field 'why', which was not asked for"),
    ('{"new": 3}', TEXT, "not text"),
    ('{"new": null}', TEXT, "not text"),
    ('{"new": NaN}', TEXT, "not text"),
    ('{"new": " "}', TEXT, "empty"),
    ('{"new": "NA"}', TEXT, "is NA"),
    ('{"new": "two\\nlines"}', TEXT, "line breaks"),
    ('{"new": "half \\ud800"}', TEXT, "control characters"),
    ('{"new": "%s"}' % ("x" * (MOST_CHARACTERS + 1)), TEXT, "too long"),
    ('{"concepts": "dog"}', {"concepts": "texts"}, "not a list"),
    ('{"concepts": ["dog", 1]}', {"concepts": "texts"}, "not text"),
    ('{"possible": "perhaps", "sentence": "NA"}', GATE, "neither yes nor no"),
    ('{"possible": "nothing", "sentence": "NA"}', GATE, "neither yes nor no"),
    ('{"new": ' + "[" * 100_000, TEXT, "broken JSON"),
]


@pytest.mark.parametrize(("text", "wanted", "fields"), READABLE)
def test_readable_answers(text: str, wanted: dict[str, str], fields: dict[str, Any]) -> None:
    assert read_answer(text, wanted) == fields


@pytest.mark.parametrize(("text", "wanted", "why"), MALFORMED)
def test_malformed_answers(text: str, wanted: dict[str, str], why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        read_answer(text, wanted)


@given(st.text() | st.text(alphabet='{}[]":,\\ aneywosNA`\n').map(lambda s: '{"new": "' + s))
def test_any_text_is_read_or_malformed(text: str) -> None:
    with contextlib.suppress(MalformedError):
        fields = read_answer(text, TEXT)
        assert list(fields) == ["new"]
        assert fields["new"].strip()
        assert json.dumps(fields["new"])[1:-1] in text or fields["new"] in text or "\\" in text


_LINE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=50).filter(
    lambda s: s.strip() and s.strip().rstrip(".").casefold() not in ("na", "n/a")
)


@given(_LINE, st.lists(_LINE, max_size=4), st.sampled_from(["", "Here: ", "```json\n"]), st.booleans())
def test_what_was_written_comes_back(text: str, several: list[str], before: str, ascii_only: bool) -> None:
    said = {"new": text, "concepts": several}
    after = "\n```" if before.startswith("```") else ""
    raw = before + json.dumps(said, ensure_ascii=ascii_only) + after
    assert read_answer(raw, {"new": "text", "concepts": "texts"}) == said


def test_schemas_ask_for_every_field_and_no_other() -> None:
    schema = schema_of(GATE)
    assert schema["required"] == ["possible", "sentence"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["possible"]["enum"] == ["yes", "no"]


@pytest.mark.parametrize("name", template_names())
def test_prompt_files(name: str) -> None:
    """Every demonstration is an answer that our own parser takes, and changes what it was given."""
    for step in read_template(name).steps.values():
        assert len(step.demonstrations) >= LEAST_DEMONSTRATIONS
        assert len({json.dumps(i) for i, _ in step.demonstrations}) == len(step.demonstrations)
        for shown, said in step.demonstrations:
            assert read_answer(json.dumps(said), step.answer) == said
            told = {str(v).strip().lower() for v in shown.values()}
            assert not told & {v.strip().lower() for v in said.values() if isinstance(v, str)}
        text = step.text({**step.demonstrations[0][0], "caption": 'a "quoted" {brace}'})
        assert text.count("Input: ") == len(step.demonstrations) + 1


@pytest.mark.parametrize("name", [n for n in template_names() if n.startswith(("replace", "add", "swap"))])
def test_published_temperatures(name: str) -> None:
    temperatures = {s.name: s.temperature for s in read_template(name).steps.values()}
    assert temperatures.pop("propose", 1.5) == 1.5
    assert set(temperatures.values()) == {0.0}


def test_swap_demonstrations_keep_their_words_and_show_both_answers() -> None:
    from creperie.making import Candidate, SourceCaption
    from creperie.making.checks import vocabulary_followed

    for name in ("swap-object", "swap-attribute"):
        shown = read_template(name)["swap"].demonstrations
        assert {said["possible"] for _, said in shown} == {"yes", "no"}
        for given_, said in shown:
            if said["possible"] == "yes":
                foil = Candidate("1", said["sentence"], "negative", name, "", "")
                assert vocabulary_followed(SourceCaption("1", given_["caption"]), foil) is None, said


def test_addition_demonstrations_are_of_matched_length() -> None:
    for name in ("add-object", "add-attribute"):
        for given_, said in read_template(name)["compose-matched"].demonstrations:
            apart = abs(len(given_["caption"].split()) - len(said["matched"].split()))
            assert apart <= 2, said


def test_additions_are_asked_to_make_a_clearly_different_scene() -> None:
    """Something usual may be in the picture, and then the foil is true."""
    for name in ("add-object", "add-attribute"):
        step = read_template(name)["propose"]
        for word in ("clearly different scene", "nobody would expect", "anybody would notice"):
            assert word in step.head
        for given_, said in step.demonstrations:
            assert said["new"] not in given_["caption"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("role = [", "not TOML"),
        ('role = "x"\nrules = []', "lacks 'step'"),
        (
            'role = "x"\nrules = []\ndemonstration = []\n[[step]]\nname = "a"\ninstruction = "b"\ntemperature = 0\n'
            'max_tokens = 9\ngiven = ["caption"]\nanswer = { x = "text" }',
            "0 demonstrations",
        ),
        (
            'role = "x"\nrules = []\ndemonstration = []\n[[step]]\nname = "a"\ninstruction = "b"\ntemperature = 0\n'
            'max_tokens = 9\ngiven = ["caption"]\nanswer = { x = "txt" }',
            "did you mean 'text'",
        ),
    ],
)
def test_bad_prompt_files_are_told(text: str, why: str) -> None:
    with pytest.raises(CreperieError, match=why):
        parse_template("mine", text)
