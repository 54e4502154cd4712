"""Pack lines of tokens into as few rows of a batch as possible, and read log-probabilities from the logits.

The last token of a line is predicted and need not be read. For example, the log-probabilities of "yes" and "no" after
the same question are read from one row. A line that is a prefix of another line needs no row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from creperie.models.protocols import Tokens
from creperie.models.tokens import batches_by_length, pad_tokens

if TYPE_CHECKING:
    import torch

#: rows × tokens whose logits are in memory at once: with 32,000 words and 4 bytes each, 0.5 GB
LOGITS = 4096


@dataclass(frozen=True)
class Rest:
    """The tokens of a line after its prefix. Those in `ids[start:]` are scored. `owner` is the index of the prefix."""

    owner: int
    ids: np.ndarray
    start: int


@dataclass(frozen=True)
class Rows:
    """The rows of tokens to read. `owners` has the index of each row's prefix. `of` has, for each line, the index of
    the row that contains it.
    """

    owners: list[int]
    ids: list[np.ndarray]
    of: list[int]


def fewest_rows(rests: Sequence[Rest]) -> Rows:
    """Return as few rows as possible. Each line, without its last token, must be the beginning of a row. The last token
    of a line is only predicted, not read.

    >>> lines = [[7, 8, 1], [7, 8, 2], [7]]
    >>> rows = fewest_rows([Rest(0, np.array(ids), 0) for ids in lines])
    >>> [ids.tolist() for ids in rows.ids], rows.of
    ([[7, 8]], [0, 0, 0])
    """
    read = [(rest.owner, *rest.ids[:-1].tolist()) for rest in rests]
    rows = Rows([], [], [0] * len(rests))
    longer: tuple[int, ...] = ()
    # in this order a longer line comes right before the lines that it begins with
    for k in sorted(range(len(rests)), key=read.__getitem__, reverse=True):
        if longer[: len(read[k])] != read[k]:
            rows.owners.append(rests[k].owner)
            rows.ids.append(rests[k].ids[:-1])
        rows.of[k] = len(rows.ids) - 1
        longer = read[k]
    return rows


def read_rests(
    rests: Sequence[Rest],
    pad_id: int,
    logits_of: Callable[[list[int], torch.Tensor, bool], torch.Tensor],
    most: int = 1 << 30,
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the index of each rest, and the log-probabilities of its scored tokens as `read_chunk` returns them.

    At most `most` rows are read at a time, or fewer if their logits would not fit into memory. `logits_of` takes the
    rows' prefixes, their tokens, and whether they are the last rows. The tokens are padded on the right, so that no
    token of a row attends to padding.
    """
    rows = fewest_rows(rests)
    chunks = list(batches_by_length([len(ids) for ids in rows.ids], LOGITS, most))
    for chunk in chunks:
        at = {row: n for n, row in enumerate(chunk)}
        members = [k for k, row in enumerate(rows.of) if row in at]
        logs: list[np.ndarray] = [np.zeros(0, np.float32)] * len(members)
        if any(len(rows.ids[row]) for row in chunk):
            ids, _ = pad_tokens([Tokens(rows.ids[row]) for row in chunk], pad_id=pad_id)
            logits = logits_of([rows.owners[row] for row in chunk], ids, chunk is chunks[-1])
            logs = read_chunk(logits, [rests[k] for k in members], [at[rows.of[k]] for k in members])
        yield from zip(members, logs, strict=True)


def read_first(last: torch.Tensor, rests: Sequence[Rest]) -> np.ndarray:
    """Return the log-probability of the first token of each rest. A rest is the part of a line after the prefix. `last`
    are the logits at the end of the prefixes.
    """
    return picked(last, [[rest.owner for rest in rests]], [int(rest.ids[0]) for rest in rests])


def read_chunk(logits: torch.Tensor, rests: Sequence[Rest], of: Sequence[int]) -> list[np.ndarray]:
    """Return the log-probabilities of the scored tokens of each rest. A rest is the part of a line after the prefix;
    its first token is left out, because the prefix predicts it. `of` has, for each rest, the row of `logits` that
    contains it.
    """
    spans = [np.arange(max(rest.start, 1), len(rest.ids)) for rest in rests]
    rows = np.repeat(np.array(of, np.int64), [len(span) for span in spans])
    tokens = [rest.ids[span] for rest, span in zip(rests, spans, strict=True)]
    places = [rows.tolist(), (np.concatenate(spans) - 1).tolist()]
    logs = picked(logits, places, np.concatenate(tokens).tolist())
    return np.split(logs, np.cumsum([len(span) for span in spans])[:-1])


def picked(logits: torch.Tensor, places: Sequence[Sequence[int]], tokens: Sequence[int]) -> np.ndarray:
    """Return the log-probability of each of `tokens`, computed in float32. `places` are the indices of the logits that
    predict these tokens, with one list per leading dimension.
    """
    import torch

    at = tuple(torch.tensor(index, device=logits.device) for index in places)
    wide = logits[at].float()
    chosen = wide.gather(-1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0]
    return (chosen - wide.logsumexp(-1)).cpu().numpy()
