"""Properties of the two captions in a comparison: their length, their construction, and which of them a
scorer prefers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from creperie.auditing import TextAttacker
from creperie.core import ModelError, Progress, UsageError, silent

#: The construction of the first and of the second caption of an item, by the names that makers and formats use.
ALTERNATIONS: Mapping[str, tuple[str, str]] = {
    name: (first, second)
    for first, second in (("active", "passive"), ("ditransitive", "dative"), ("with", "against"))
    for name in (first, second, f"{first}/{second}", f"{first}-{second}")
}
LINK_GRAMMAR = "link-grammar"


@dataclass(frozen=True)
class WordingPreference:
    """A text scorer for comparing two captions. Scores that differ by at most `equal` count as equal."""

    score: Callable[[Sequence[str]], np.ndarray]
    name: str
    equal: float = 0.0
    batch: int = 1024


def load_preference(name: str, *, equal: float = 0.0) -> WordingPreference:
    """Return a scorer by its name: `link-grammar`, or the URI of any model that scores captions."""
    if equal < 0:
        raise UsageError(f"`equal={equal}` is negative", hint="give 0 or more")
    if name == LINK_GRAMMAR:
        from creperie.lang import grammaticalities

        return WordingPreference(grammaticalities, name, equal, batch=8192)
    from creperie.models import TextScorer, load_model

    model = load_model(name)
    if not isinstance(model, TextScorer):
        raise UsageError(
            "this model does not score captions", where=name, hint=f"name {LINK_GRAMMAR}, lm:MODEL or blind:grammar"
        )
    return WordingPreference(model.score_texts, name, equal)


def preferred(
    captions: pa.ChunkedArray, foils: pa.ChunkedArray, preference: WordingPreference, progress: Progress = silent
) -> pa.Array:
    """Return "caption", "foil" or "equal" for every pair; null if a text is missing. Each distinct text
    is scored once.
    """
    both = pa.chunked_array([*captions.chunks, *foils.chunks], pa.string()).combine_chunks().dictionary_encode()
    texts = both.dictionary.to_pylist()
    scores = TextAttacker(preference.name, preference.score, batch=preference.batch).scores(texts, progress)
    if np.isnan(scores).any():
        missing = texts[int(np.flatnonzero(np.isnan(scores))[0])]
        raise ModelError(
            f"the scorer returned NaN for the caption {missing[:60]!r}",
            where=preference.name,
            hint="a score is a finite number for every caption",
        )
    code = both.indices.fill_null(0).to_numpy()
    present = ~np.asarray(both.indices.is_null())
    n = len(captions)
    apart = scores[code[:n]] - scores[code[n:]]
    answer = np.where(np.abs(apart) <= preference.equal, "equal", np.where(apart > 0, "caption", "foil"))
    return pa.array(answer, mask=~(present[:n] & present[n:]))


def words_of(texts: pa.Array) -> np.ndarray:
    """Return the number of words of each text."""
    return np.array([len((text or "").split()) for text in texts.to_pylist()], np.int64)


def construction_columns(
    constructions: Sequence[str | None], slots: tuple[np.ndarray, np.ndarray] | None
) -> dict[str, pa.Array]:
    """Return two columns. The first is the construction of each caption, such as active or passive (null if unknown).
    The second says whether the caption and its foil mention the two participants in the same order.

    `slots` has the position of the caption among the image's true captions, and the position of the foil among its
    false ones. A foil exchanges the roles of the participants. A foil in the same construction as its caption mentions
    them in the opposite order. A foil in the other construction mentions them in the same order: "a ball is hit by a
    player" has the foil "a ball hits a player".
    """
    types: list[str | None] = []
    orders: list[str | None] = []
    for k, name in enumerate(constructions):
        pair = ALTERNATIONS.get(name or "")
        if pair is None or slots is None or max(slots[0][k], slots[1][k]) > 1:
            types.append(name)
            orders.append(None)
            continue
        types.append(pair[int(slots[0][k])])
        orders.append("different" if slots[0][k] == slots[1][k] else "alike")
    return {"type": pa.array(types, pa.string()), "order": pa.array(orders, pa.string())}
