"""An option that is given twice is refused, or both values are used: none is dropped in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from creperie.bench import load
from creperie.cli.app import cli
from creperie.core import UsageError
from creperie.engine import split_spec
from creperie.models import parse_uri


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def test_every_option_that_takes_one_value_is_refused_when_it_is_repeated(tmp_path: Path) -> None:
    """click takes the last one; `make --captions a --captions b` read half of the captions."""
    checked = 0
    for path, command in commands(cli):
        for option in command.params:
            if not isinstance(option, click.Option) or option.multiple or option.is_flag:
                continue
            value = str(next(iter(getattr(option.type, "choices", ())), 1))
            given = [option.opts[0], value] * 2
            with pytest.raises(UsageError, match=f"{option.opts[0]} is given 2 times"):
                cli.main([*path, *given], standalone_mode=False)
            checked += 1
    assert checked > 300


def test_contrary_flags_are_refused_and_repeated_ones_are_not(tmp_path: Path, command: Any) -> None:
    both = [
        (path, o) for path, c in commands(cli) for o in c.params if isinstance(o, click.Option) and o.secondary_opts
    ]
    assert both
    for path, option in both:
        with pytest.raises(UsageError, match="is given 2 times"):
            cli.main([*path, option.opts[0], option.secondary_opts[0]], standalone_mode=False)
    assert command("table", "list", "--json", "--json")[0] == 0


def test_captions_of_several_files_are_all_read(tmp_path: Path, command: Any) -> None:
    (tmp_path / "a.txt").write_text("A dog chases a cat.\nA man holds a red cup.\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("A cow licks a horse.\n", encoding="utf-8")
    both = ("--captions", tmp_path / "a.txt", "--captions", tmp_path / "b.tsv")
    code, out, _ = command("make", "rules:swap", *both, "--out", tmp_path / "o", "--json")
    assert (code, json.loads(out)["sources"]) == (0, 3)
    assert {item.captions[0] for item in load(tmp_path / "o")} >= {"A dog chases a cat.", "A cow licks a horse."}
    card = (tmp_path / "o" / "README.md").read_text(encoding="utf-8")
    assert "from the captions of a.txt, b.tsv" in card  # ids say which file by its number
    parts = [tmp_path / f"p{k}" for k in (1, 2)]
    for k, part in enumerate(parts, 1):  # a shard opens the files again
        assert command("make", "rules:swap", *both, "--out", part, "--shard", f"{k}/2")[0] == 0
    assert command("merge", tmp_path / "m", *parts)[0] == 0
    assert load(tmp_path / "m").hash == load(tmp_path / "o").hash
    code, _, err = command("make", "rules:swap", *both, "--captions", tmp_path / "o", "--out", tmp_path / "p")
    assert (code, "creperie data concat" in err) == (2, True)


@pytest.mark.parametrize(
    "read",
    [
        lambda: parse_uri("hf:x?pool=mean&pool=cls"),
        lambda: split_spec("c.tsv?text=0&text=1"),
        lambda: load("valse:somewhere?valid=all&valid=yes"),
        lambda: load("csv:my.csv?positive=a&positive=b"),
    ],
)
def test_options_of_uris_and_specs_are_given_once(read: Any) -> None:
    with pytest.raises(UsageError, match="is given twice"):
        read()


def test_equal_ids_of_captions_are_an_error_of_their_file(tmp_path: Path, command: Any) -> None:
    rows = [json.dumps({"caption": f"A dog chases a cat {k}.", "key": "same"}) for k in range(3)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows), encoding="utf-8")
    captions = f"{tmp_path / 'c.jsonl'}?text=caption&id=key"
    code, _, err = command("make", "rules:swap", "--captions", captions, "--out", tmp_path / "o")
    assert (code, "c.jsonl?text=caption&id=key: 3 captions have the id 'same'" in err) == (2, True)
    assert not (tmp_path / "o").exists()
