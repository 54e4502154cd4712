"""An option is declared once: its flag, its keyword, its recipe key and its help are derived from one field."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner

import creperie
from creperie.cli.make import make as make_command
from creperie.cli.options import options_of
from creperie.core import CreperieError, as_flags, option, options_from, options_in, with_options
from creperie.making import MakerOptions
from creperie.recipes import read_recipe
from creperie.recipes.steps import STEPS, StageKind


@pytest.mark.parametrize("field", fields(MakerOptions), ids=lambda f: f.name)
def test_an_option_of_makers_is_a_flag_a_keyword_and_a_recipe_key(field: Any) -> None:
    about = options_in(MakerOptions)[field.name]
    (flag,) = [p for p in make_command.params if p.name == field.name]
    assert isinstance(flag, click.Option)
    assert str(flag.help).startswith(as_flags(about.help))
    assert flag.get_default(click.Context(make_command)) == field.default
    assert inspect.signature(creperie.make).parameters[field.name].default == field.default
    assert f"{field.name}: {about.help}" in str(creperie.make.__doc__)
    assert STEPS["make"].options[field.name] == field.default


@dataclass(frozen=True)
class Baking:
    """An example with an option of every kind."""

    minutes: int = option(20, "How long.", minimum=1)
    heat: float | None = option(None, "How hot, in degrees.")
    sweet: bool = option(False, "With sugar.")
    flat: bool = option(True, "Thin, as it should be.", flags="--flat/--thick")
    flour: Literal["wheat", "buckwheat"] = option("wheat", "Of what.")
    fillings: tuple[str, ...] = option(("butter",), "Names, by comma.", flags="--filling -f")
    models: tuple[str, ...] = option((), "Model URIs.", flags="--model", whole=True)
    out: Path | None = option(None, "Where it goes.", metavar="DIR")


@with_options(baking=Baking)
def bake(dough: str, *, baking: Baking) -> tuple[str, Baking]:
    """Bake it."""
    return dough, baking


def cli(*args: str) -> Any:
    values: list[Baking] = []
    command = click.command()(options_of("baking", Baking)(lambda baking: values.append(baking)))
    answer = CliRunner().invoke(command, args)
    return values[0] if values else answer


def test_a_new_field_is_a_flag_a_keyword_and_a_recipe_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = Baking(5, 180.0, True, False, "buckwheat", ("egg", "ham", "leek"), ("a:b?c=1,2",), Path("x"))
    flags = (
        "--minutes 5 --heat 180 --sweet --thick --flour buckwheat -f egg,ham --filling leek --model a:b?c=1,2 --out x"
    )
    assert cli(*flags.split()) == wanted
    assert cli() == Baking()
    given = {"minutes": 5, "heat": 180, "sweet": True, "flat": False, "flour": "buckwheat", "out": "x"}
    assert bake("dough", **given, fillings=["egg,ham", "leek"], models="a:b?c=1,2") == ("dough", wanted)
    assert bake("dough", baking=wanted, minutes=9)[1].minutes == 9
    monkeypatch.setattr("creperie.making.Baking", Baking, raising=False)
    monkeypatch.setitem(STEPS, "make", StageKind("", "making", {}, ("making:Baking",), takes=0))
    recipe = tmp_path / "r.yaml"
    text = "recipe: r\nstages:\n  - name: one\n    does: make\n    with:\n      "
    recipe.write_text(f"{text}fillings: [egg, ham, leek]\n      minutes: 5\n")
    (stage,) = read_recipe(recipe).stages
    assert options_from(Baking, stage.options) == Baking(5, fillings=("egg", "ham", "leek"))
    recipe.write_text(f"{text}minuts: 5\n")
    with pytest.raises(CreperieError, match=r"r\.yaml:6.*did you mean 'minutes'"):
        read_recipe(recipe)
    recipe.write_text(f"{text}minutes: 0\n")
    with pytest.raises(CreperieError, match=r"r\.yaml:6.*a whole number of at least 1"):
        read_recipe(recipe)


def test_help_shows_defaults_choices_and_what_is_taken() -> None:
    text = " ".join(cli("--help").output.split())
    for line in (
        "--minutes N How long. [default: 20]",
        "--heat X How hot, in degrees.",
        "--sweet With sugar.",
        "--flat / --thick Thin, as it should be. [default: on]",
        "--flour [wheat|buckwheat] Of what. [default: wheat]",
        "-f, --filling NAMES Names, by comma. [default: butter]",
        "--out DIR Where it goes.",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"minuts": 3}, "unknown keyword of bake 'minuts'; did you mean 'minutes'"),
        ({"minutes": "3"}, "`minutes='3'`: expected a whole number of at least 1"),
        ({"minutes": True}, "expected a whole number"),
        ({"minutes": 0}, "of at least 1"),
        ({"minutes": None}, "expected a whole number"),
        ({"sweet": 1}, "expected True or False"),
        ({"flour": "buckweat"}, "unknown flour 'buckweat'; did you mean 'buckwheat'"),
        ({"fillings": 3}, "expected a list of names"),
        ({"models": [3]}, "expected a list of names"),
    ],
)
def test_a_wrong_keyword_or_value_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CreperieError) as e:
        bake("dough", **given)
    assert message in str(e.value)
