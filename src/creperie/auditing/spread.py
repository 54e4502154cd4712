"""Attackers that look at one caption at a time, sent from many workers at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from creperie.auditing.attackers import Attacker, TextAttacker
from creperie.auditing.battery import AttackerModels, make_attackers
from creperie.engine import Engine, Held, Work, gather

#: Captions of a piece: slow attackers, such as language models, take a minute for so many.
PIECE = 1024


@dataclass(frozen=True)
class AttackStage:
    """Captions in, a column of scores for every attacker out. Models are loaded once a worker."""

    names: tuple[str, ...]
    models: AttackerModels
    name: str = "attack"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"attackers": self.names, **asdict(self.models)}

    def open(self) -> Work:
        attackers = [a for a in make_attackers(self.names, self.models) if isinstance(a, TextAttacker)]

        def work(batch: pa.Table) -> pa.Table:
            texts = batch.column("text").to_pylist()
            return pa.table({a.name: pa.array(a.scores(texts), pa.float32()) for a in attackers})

        return work

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self.open()(batch)


def score_ahead(attackers: Sequence[Attacker], models: AttackerModels, texts: Sequence[str], engine: Engine) -> None:
    """Let the engine's workers score all captions, and tell the attackers, which then have nothing left to do."""
    single = [a for a in attackers if isinstance(a, TextAttacker)]
    distinct = sorted(set(texts), key=lambda t: (len(t), t))
    if not single or not distinct:
        return
    stage = AttackStage(tuple(a.name for a in single), replace(models))  # a copy, without the models already loaded
    found = gather(stage, Held(pa.table({"text": distinct}), PIECE), engine=engine)
    for attacker in single:
        attacker.tell(dict(zip(distinct, found.column(attacker.name).to_pylist(), strict=True)))
