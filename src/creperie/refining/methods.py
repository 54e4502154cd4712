"""The registry of refinement methods by name."""

from __future__ import annotations

from creperie.refining import cells, coin, optimal, pair, syntaxbias, words
from creperie.refining.select import RefinementMethod

METHODS: dict[str, RefinementMethod] = {
    module.METHOD.name: module.METHOD for module in (cells, optimal, coin, syntaxbias, pair, words)
}
#: The reason of a removal → its meaning.
REASONS = {
    "unsolvable": "a true caption of the item is also a false one: no model can get it right",
    **{method.reason: method.why for method in METHODS.values()},
}
