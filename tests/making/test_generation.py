"""`creperie.make`, prompts of one's own, and what servers accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import creperie
from creperie.bench import Item, from_items
from creperie.core import CreperieError, UsageError
from creperie.lang import default_parser
from creperie.making import Candidate, SourceCaption
from creperie.making.checks import vocabulary_followed
from creperie.making.llm import prompts
from creperie.making.llm.prompts import read_template
from creperie.models import Prompt, load_model
from creperie.testing.scripted_writer import DETAILS

DOGS = ["A dog chases a cat.", "A dog sleeps."]


@pytest.fixture(scope="module", autouse=True)
def parser() -> str:
    try:
        return default_parser()
    except CreperieError as e:
        pytest.skip(f"no parser: {e}")


def test_make_takes_a_list_a_file_and_a_benchmark(tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("\n".join(DOGS))
    bench = from_items("dogs", [Item("1", "s", ("a.jpg",), (DOGS[0],), ((True,),))])
    made = [creperie.make("rules:swap", what) for what in (DOGS, tmp_path / "captions.txt", bench)]
    for one in made:
        assert one.items[0].captions == ("A dog chases a cat.", "A cat chases a dog.")
    assert made[2].items[0].images == ("a.jpg",)
    with pytest.raises(UsageError, match="pass a list"):
        creperie.make("rules:swap", DOGS[0])


def test_made_is_readable_in_a_notebook(tmp_path: Path) -> None:
    held = creperie.make("rules:swap", DOGS)
    written = creperie.make("rules:swap", DOGS, out=tmp_path / "out", seed=0, foils=1)
    for made in (held, written):
        assert repr(made) == "Made('rules:swap': 2 captions, 1 candidate, 1 swap-object)"
        assert "A cat chases a dog." in made._repr_html_()
        frame = made.to_pandas()
        assert list(frame["source"]) == [DOGS[0]]
        assert list(frame["text"]) == ["A cat chases a dog."]
        assert frame["reversible"].all()
    assert len(creperie.make("rules:swap", DOGS[1:]).to_pandas()) == 0


def test_limit_and_wrong_names() -> None:
    assert creperie.make("rules:swap", DOGS, limit=1).report["sources"] == 1
    with pytest.raises(CreperieError, match="did you mean 'rules:swap'"):
        creperie.make("rules:swpa", DOGS)


# -- prompts ---------------------------------------------------------------------------------------------------------


def test_prompts_of_ones_own_replace_the_shipped_ones(tmp_path: Path) -> None:
    shipped = read_template("swap-object")
    text = (Path(str(prompts.__file__)).parent / "swap-object.toml").read_text()
    (tmp_path / "swap-object.toml").write_text(text.replace("two noun phrases", "two phrases"))
    own = read_template("swap-object", str(tmp_path))
    assert own.digest != shipped.digest
    assert "two phrases of the caption" in own["swap"].head
    assert read_template("swap-attribute", str(tmp_path)).digest == read_template("swap-attribute").digest
    with pytest.raises(UsageError, match="expected a folder"):
        read_template("swap-object", str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("source", "foil", "ok"),
    [
        (
            "Old sailors are holding ropes while standing next to a man in a coat.",
            "A man in a coat is holding ropes while standing next to old sailors.",
            True,
        ),
        ("An owl watches two dogs.", "Two dogs watch an owl.", True),
        ("He gives her a book.", "She gives him a book.", True),
        ("A dog chases a cat.", "A cat chases a big dog.", False),
        ("A dog chases a cat.", "A cat follows a dog.", False),
    ],
)
def test_agreement_articles_and_case_may_follow_a_swap(source: str, foil: str, ok: bool) -> None:
    found = vocabulary_followed(SourceCaption("1", source), Candidate("1", foil, "negative", "swap", "m", ""))
    assert (found is None) is ok


def test_the_scripted_writer_enriches_captions_and_nothing_else() -> None:
    """The stand-in of SADE's small profile: no language model, but the maker's whole way."""
    uri = "lm:pkg:creperie.testing.scripted_writer"
    both = ("A dog sees a cat.", "A cat sees a dog.")
    two = Item("1", "wino", ("a.png", "b.png"), both, ((True, False), (False, True)))
    made = creperie.make("llm:enrich", from_items("both", [two]), model=uri)
    (item,) = [item for item in made.items if item.subset.endswith("-enriched")]  # beside the original
    assert item.match == two.match
    for before, after in zip(two.captions, item.captions, strict=True):
        assert after == f"{before[:-1]}{DETAILS}."
    writer: Any = load_model(uri)
    with pytest.raises(CreperieError, match="only enriches captions"):
        writer.generate([Prompt((("user", "Write a poem."),))])


def test_enriching_keeps_two_by_two_items_and_their_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Echo:
        """Says every caption with one more word."""

        def generate(self, prompts: list[Any]) -> list[str]:
            asked = [p.messages[0][1].rsplit("Input: ", 1)[1].removesuffix("\nOutput:") for p in prompts]
            return [json.dumps({"enriched": json.loads(a)["caption"] + " here"}) for a in asked]

    monkeypatch.setattr("creperie.making.llm.maker.generator", lambda uri: Echo())
    two = Item("7", "wino", ("a.jpg", "b.jpg"), ("a dog on a cat", "a cat on a dog"), ((True, False), (False, True)))
    one = Item("8", "sugar", ("c.jpg",), ("a red cup", "a blue cup"), ((True, False),))
    made = creperie.make("llm:enrich", from_items("both", [two, one]), model="lm:echo", tidy=False)
    assert made.report["skipped"] == {}  # every caption is enriched; some were said to be left out
    assert {i.subset: i.captions for i in made.items} == {
        "wino-original": two.captions,
        "wino-enriched": ("a dog on a cat here", "a cat on a dog here"),
        "sugar-original": one.captions,
        "sugar-enriched": ("a red cup here", "a blue cup here"),
    }
    assert all(i.match == (two if "wino" in i.subset else one).match for i in made.items)
