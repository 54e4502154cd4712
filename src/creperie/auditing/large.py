"""Audits of benchmarks that are too large for memory. Attackers learn and are measured on a random sample of items, and
the result states its size. Attackers that do not learn are also measured on every item, one row group at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.auditing.attackers import Attacker, TextAttacker
from creperie.auditing.battery import AttackerModels, make_attackers
from creperie.auditing.pairs import item_gaps, item_wins, pairs_of
from creperie.bench import CORE_COLUMNS, Benchmark
from creperie.core import Progress, silent
from creperie.engine import Engine, Held, Work, all_parts, gather, item_pieces, write_parts

#: Of a benchmark with more items, a random sample of as many is attacked: accuracies are then known to ± 0.2 %.
SAMPLE = 250_000


def attacked_part(bench: Benchmark, seed: int, *, full: bool = False) -> Benchmark:
    """Return the items that an audit attacks. These are all items or, if there are many and `full` is not set, a random
    sample.
    """
    return bench if full or len(bench) <= SAMPLE else bench.sample(SAMPLE, seed)


@dataclass(frozen=True)
class ExactCount:
    """An attacker's result on all items of one subset. The accuracy is that of the attacker's own preference
    (`Attacker.prefers`), even if the opposite preference is right more often.
    """

    subset: str
    attacker: str
    n: int
    accuracy: float  #: ties count half
    ties: int  #: pairs


@dataclass(frozen=True)
class GapStage:
    """An engine stage that returns one row per item. A row says whether the item can be attacked, and whether it is
    unsolvable (one text is both a true and a false caption).

    For every attacker that scores captions one by one, the row also holds the item's gap (see `item_gaps`), its win
    (see `item_wins`) and the number of ties among its pairs.
    """

    names: tuple[str, ...]
    models: AttackerModels

    def open(self) -> Work:
        attackers = [a for a in make_attackers(self.names, self.models) if isinstance(a, TextAttacker)]

        def work(batch: pa.Table) -> pa.Table:
            pairs = pairs_of(Benchmark("piece", batch))
            columns = {"asked": pa.array(pairs.per_item > 0), "unsolvable": pa.array(pairs.unsolvable)}
            for attacker in attackers:
                margins = attacker.margins(pairs)
                attacker.forget()
                columns[f"gap {attacker.name}"] = pa.array(np.nan_to_num(item_gaps(pairs, np.nan_to_num(margins))))
                columns[f"win {attacker.name}"] = pa.array(item_wins(pairs, margins).astype(np.float32))
                ties = np.bincount(pairs.item, weights=margins == 0, minlength=pairs.n_items)
                columns[f"ties {attacker.name}"] = pa.array(ties.astype(np.int32))
            return pa.table({"subset": batch.column("subset").combine_chunks(), **columns})

        return work


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """The features of every item, stored on disk in one part per row group."""

    folder: Path
    parts: int
    names: tuple[str, ...]

    def column(self, name: str) -> np.ndarray:
        """Return one feature of all items."""
        return self._stored(name).to_numpy()

    def subsets(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return each item's subset as an index into the names of the subsets, and these names in order of first
        appearance.
        """
        coded = self._stored("subset").dictionary_encode().combine_chunks()
        return coded.indices.to_numpy(), tuple(coded.dictionary.to_pylist())

    def _stored(self, name: str) -> pa.ChunkedArray:
        return pa.concat_tables(all_parts(self.folder, self.parts, [name])).column(name)

    def counts(self) -> tuple[ExactCount, ...]:
        """Return every attacker's result on each subset. Only one column of features is in memory at a time."""
        subset, names = self.subsets()
        asked = self.column("asked")
        n = np.bincount(subset[asked], minlength=len(names))
        counts = []
        for attacker in self.names:
            won = np.bincount(subset[asked], self.column(f"win {attacker}")[asked], len(names))
            ties = np.bincount(subset, self.column(f"ties {attacker}"), len(names))
            counts += [
                ExactCount(s, attacker, int(n[k]), float(won[k] / n[k]), int(ties[k]))
                for k, s in enumerate(names)
                if n[k]
            ]
        return tuple(counts)


@contextmanager
def item_features(
    bench: Benchmark,
    attackers: Sequence[Attacker],
    models: AttackerModels,
    engine: Engine | None,
    progress: Progress | None,
) -> Iterator[ItemFeatures]:
    """Compute the features of every item on the engine, whose workers write them to files. The function is a context
    manager that removes the files at the end of the `with` block.
    """
    names = tuple(a.name for a in attackers if isinstance(a, TextAttacker))
    pieces = item_pieces(bench, CORE_COLUMNS.names)
    with tempfile.TemporaryDirectory(prefix="creperie-features-") as scratch:
        folder, stage = Path(scratch), GapStage(names, replace(models))  # a copy, without models already loaded
        with (progress or silent)("count on all items", len(bench), "items") as advance:
            for _, rows in write_parts(stage, pieces, range(len(pieces)), folder, engine=engine):
                advance(rows)
        yield ItemFeatures(folder, len(pieces), names)


#: Captions per task of a worker: slow attackers, such as language models, take a minute for them.
PIECE = 1024


@dataclass(frozen=True)
class AttackStage:
    """An engine stage that takes captions and returns one column of scores per attacker. Models are loaded once per
    worker.
    """

    names: tuple[str, ...]
    models: AttackerModels

    def open(self) -> Work:
        attackers = [a for a in make_attackers(self.names, self.models) if isinstance(a, TextAttacker)]

        def work(batch: pa.Table) -> pa.Table:
            texts = batch.column("text").to_pylist()
            return pa.table({a.name: pa.array(a.scores(texts), pa.float32()) for a in attackers})

        return work


def score_ahead(attackers: Sequence[Attacker], models: AttackerModels, texts: Sequence[str], engine: Engine) -> None:
    """Score all captions on the engine's workers. The scores are stored in the attackers, which then need not compute
    any.
    """
    single = [a for a in attackers if isinstance(a, TextAttacker) and a.remembers]  # others take microseconds
    distinct = sorted(set(texts)) if single else []
    if not distinct:
        return
    stage = AttackStage(tuple(a.name for a in single), replace(models))  # a copy, without the models already loaded
    scores = gather(stage, Held(pa.table({"text": distinct}), PIECE), engine=engine)
    for attacker in single:
        attacker.tell(dict(zip(distinct, scores.column(attacker.name).to_pylist(), strict=True)))
