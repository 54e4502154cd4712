"""Workers that write: the same files whoever works; the driver's books when workers die, start late or never."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.core import DataError
from creperie.engine import Held, Local, Numbered, Pieces, Stage, all_parts, open_captions, write_parts
from creperie.engine.driver import AHEAD, run_on_workers
from creperie.engine.engines import _Process
from creperie.engine.parts import Writing
from creperie.engine.pieces import LIVES, WorkerLostError


@dataclass(frozen=True)
class Far:
    """An engine whose workers do not see this machine's folders."""

    workers: int = 1

    def run(self, stage: Stage, pieces: Pieces, numbers: Iterable[int]) -> Numbered:
        assert isinstance(stage, Writing)
        return Local().run(replace(stage, sign="/nowhere/sign"), pieces, numbers)


def test_workers_write_the_same_files_and_killed_ones_cost_only_their_pieces(
    captions: pa.Table, tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("".join(f"a dog chases {i} red cats\n" for i in range(50)))
    held, marks = Held(captions, 7), tmp_path / "marks"
    marks.mkdir()
    dying = Shout(marks=str(marks), dies_at="3,17,31,45")
    jobs = {
        "one": (Shout(), held, Local()),
        "two": (dying, held, Local(2)),
        "far": (Shout(), held, Far()),
        "read": (Shout(), open_captions(str(tmp_path / "c.txt"), size=7), Local(2)),
    }
    files = {}
    for name, (stage, pieces, engine) in jobs.items():
        done = dict(write_parts(stage, pieces, range(len(pieces)), tmp_path / name, engine=engine))
        assert done == {k: 7 if k < 7 else 1 for k in range(8)}
        files[name] = {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()}
        assert sorted(files[name]) == [f"part-{k:06d}.parquet" for k in range(8)]
    assert files["one"] == files["two"] == files["far"]
    texts = [pa.concat_tables(all_parts(tmp_path / name, 8)).column("text") for name in ("one", "read")]
    assert texts[0] == texts[1] == Shout()(captions).column("text")
    assert len(list(marks.glob("died-*"))) == 4
    (tmp_path / "one" / "part-000003.parquet").unlink()
    with pytest.raises(DataError, match="part 3 is missing or was damaged"):
        list(all_parts(tmp_path / "one", 8))


class LostError(Exception):
    """A worker died."""


class Crew:
    """Workers of a test. `deadly` pieces kill who is at them, as often as they are named; `sleepers` never start."""

    def __init__(self, deadly: Sequence[int] = (), sleepers: Sequence[int] = ()) -> None:
        self.deadly, self.sleepers, self.most = list(deadly), sleepers, 0
        self.hands: list[Hand] = []

    def hire(self) -> Hand:
        self.hands.append(Hand(self, len(self.hands) in self.sleepers))
        return self.hands[-1]

    def run_on_workers(self, workers: int, numbers: Iterable[int]) -> list[int]:
        """The numbers in order of completion, while a thread lets every worker do what it was given first."""
        found: list[int] = []
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                for hand in list(self.hands):
                    hand.step()

        threading.Thread(target=work, daemon=True).start()
        try:
            for number, answer in run_on_workers(self.hire, workers, numbers, LostError):
                assert number == answer
                found.append(number)
        finally:
            over.set()
        return found


class Hand:
    def __init__(self, crew: Crew, sleeps: bool) -> None:
        self.crew, self.sleeps, self.ended = crew, sleeps, False
        self.given: deque[tuple[int | None, Future[Any]]] = deque()

    def begin(self, number: int | None) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append((number, future))
        self.crew.most = max(self.crew.most, len(self.given))
        return future

    def step(self) -> None:
        if self.sleeps or not self.given:
            return
        number, future = self.given[0]
        if number in self.crew.deadly:
            self.crew.deadly.remove(number)
            self.sleeps = True
            for _, lost in self.given:
                lost.set_exception(LostError())
        else:
            self.given.popleft()
            future.set_result(number)

    def end(self) -> None:
        self.ended = True


def test_pieces_of_a_dead_worker_go_to_others_and_only_the_one_it_was_at_is_blamed() -> None:
    crew = Crew(deadly=[3, 3, 5], sleepers=[1])
    assert sorted(crew.run_on_workers(3, range(12))) == list(range(12)), "each once"
    assert crew.most == AHEAD, "several in flight, and never more"
    assert crew.hands[1].ended
    assert {number for hand in crew.hands if hand.ended for number, _ in hand.given} <= {None}, (
        "a piece was given before a start"
    )
    assert len(crew.hands) == 3 + 3


def test_a_piece_that_kills_every_worker_is_given_up() -> None:
    with pytest.raises(WorkerLostError, match="fewer `workers=`"):
        Crew(deadly=[0] * LIVES).run_on_workers(1, [0])


def test_a_process_that_has_died_fails_what_it_is_asked_and_not_who_asks(captions: pa.Table) -> None:
    process = _Process(Shout(dies_at="3"), Held(captions, 1))
    try:
        with pytest.raises(BrokenProcessPool):
            process.begin(3).result(timeout=60)
        asked = process.begin(4)
        with pytest.raises(BrokenProcessPool):
            asked.result(timeout=60)
    finally:
        process.end()
