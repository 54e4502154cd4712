"""The pipeline: verdicts, determinism, resuming, output. With a small maker of its own, without a parser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from creperie.bench import Item, from_items, load, save
from creperie.core import UsageError
from creperie.making import (
    Candidate,
    Captions,
    Maker,
    MakerOptions,
    Proposal,
    SourceCaption,
    captions_of,
    dice_for,
    make,
    read_captions,
)
from creperie.making.run import preview


@dataclass(frozen=True)
class Reverser(Maker):
    """Foils are the words in another order; says "stop" to a caption by raising."""

    name: str = "test:reverse"
    options: MakerOptions = field(default_factory=MakerOptions)
    tidies: bool = True
    chunk: int = 3
    stop_at: str = ""

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        for s in sources:
            if s.id == self.stop_at:
                raise KeyboardInterrupt
            words = s.text.split()
            dice_for(0, self.name, s.id).shuffle(words)
            texts = (" ".join(words), s.text.upper(), *s.others)
            yield Proposal(
                tuple(Candidate(s.id, t, "negative", "reverse", self.name, "shuffled") for t in texts), "", 1
            )


CAPTIONS = Captions("own", tuple(SourceCaption(str(i), f"a dog chases {i} red cats over there") for i in range(10)))


def test_rejects_are_kept_with_their_reasons(tmp_path: Path) -> None:
    made = make(Reverser(), CAPTIONS, tmp_path / "out")
    assert made.report["made"] == 10
    assert made.report["reasons"] == {"identical to the source": 10}
    assert made.report["calls"] == 10
    rows = pq.read_table(tmp_path / "out" / "candidates.parquet").to_pylist()
    assert [r["status"] for r in rows] == ["made", "rejected"] * 10
    assert json.loads((tmp_path / "out" / "making.json").read_text())["items"] == 10
    bench = load(tmp_path / "out")
    assert len(bench) == 10
    assert bench.provenance[-1].op == "make"
    assert all(c[0] == c[0].upper() and c.endswith(".") for item in bench for c in item.captions)


def test_a_known_true_caption_is_no_foil() -> None:
    source = SourceCaption("1", "A dog runs on grass", others=("a dog is in a field",))
    (outcome,) = preview(Reverser(), Captions("one", (source,))).outcomes
    assert [v.reason for v in outcome.verdicts][1:] == ["identical to the source", "a known true caption of the image"]


def test_a_killed_making_goes_on_and_loses_and_doubles_nothing(tmp_path: Path) -> None:
    whole = make(Reverser(), CAPTIONS, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        make(Reverser(stop_at="7"), CAPTIONS, tmp_path / "out")
    parts = tmp_path / ".out.making"
    assert len(list(parts.glob("part-*.parquet"))) == 2
    assert not (tmp_path / "out").exists()
    again = make(Reverser(stop_at="0"), CAPTIONS, tmp_path / "out")  # the first part is not made again
    assert again.outcomes == whole.outcomes
    assert load(tmp_path / "out").hash == load(tmp_path / "whole").hash
    assert not parts.exists()


def test_parts_of_another_job_are_in_the_way_unless_forced(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(Reverser(stop_at="7"), CAPTIONS, tmp_path / "out")
    other = Captions("other", CAPTIONS.sources[:4])
    with pytest.raises(UsageError, match="with other captions"):
        make(Reverser(), other, tmp_path / "out")
    assert make(Reverser(), other, tmp_path / "out", force=True).report["sources"] == 4


def test_a_finished_folder_is_replaced_only_when_forced(tmp_path: Path) -> None:
    make(Reverser(), CAPTIONS, tmp_path / "out")
    with pytest.raises(UsageError, match="not empty"):
        make(Reverser(), CAPTIONS, tmp_path / "out")
    make(Reverser(), CAPTIONS, tmp_path / "out", force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="did not write"):
        make(Reverser(), CAPTIONS, tmp_path / "mine", force=True)


def test_order_of_sources_changes_nothing() -> None:
    forward = preview(Reverser(), CAPTIONS)
    backward = preview(Reverser(), Captions("own", CAPTIONS.sources[::-1]))
    assert {o.source: o for o in forward.outcomes} == {o.source: o for o in backward.outcomes}


def test_captions_of_a_benchmark_are_taken_once_an_image(tmp_path: Path) -> None:
    match = ((True, True, False),)
    bench = from_items(
        "b",
        [
            Item("1", "s", ("a.jpg",), ("a dog ", "one dog", "a cat"), match),
            Item("2", "s", ("a.jpg",), ("a dog ", "the dog", "a cow"), match),
        ],
    )
    found = captions_of(bench)
    assert [(s.id, s.text) for s in found.sources] == [
        ("s/1#0.0", "a dog "),
        ("s/1#0.1", "one dog"),
        ("s/2#0.1", "the dog"),
    ]
    assert found.sources[0].others == ("one dog", "the dog")
    save(bench, tmp_path / "b")


def test_captions_of_a_text_file_are_lines_as_written(tmp_path: Path) -> None:
    file = tmp_path / "captions.txt"
    file.write_bytes("a dog \r\n\n  Two cats\u2028here".encode())
    assert [(s.id, s.text) for s in read_captions(file).sources] == [
        ("1", "a dog "),
        ("2", ""),
        ("3", "  Two cats\u2028here"),
    ]
    file.write_bytes(b"ok\n\xff\xfe")
    with pytest.raises(Exception, match=r"captions\.txt:2: is not UTF-8"):
        read_captions(file)


def test_a_table_of_captions_says_how_its_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text('{"key": "a", "cap": "A dog runs."}\n')
    with pytest.raises(UsageError, match=r"put \?text=COLUMN behind the name, one of: key, cap"):
        read_captions(file)
    assert [s.text for s in read_captions(f"{file}?text=cap").sources] == ["A dog runs."]
