"""What the studio shows of items: cards in a grid, filters with counts, and everything about one item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

import numpy as np
import pyarrow.compute as pc

from creperie.bench import Benchmark, Item
from creperie.core import Document, Json
from creperie.metrics import VOID
from creperie.reporting.studio.items import ItemFilter, ItemIndex, card_of, signed, tasks_by_item
from creperie.reporting.studio.shelf import Shelf

NO_PICTURES = "no picture here"

FIRST = 4  #: items of each benchmark among the results of a search
SHOWN = {"disagree": "models disagree", "wrong": "every model wrong", "people": "people disagree"}


@dataclass(frozen=True)
class Browser:
    """The items of one benchmark under one filter, as pages show them."""

    shelf: Shelf
    index: ItemIndex
    item_filter: ItemFilter

    @property
    def bench(self) -> Benchmark:
        return self.index.bench

    @property
    def hidden(self) -> str:
        """The reason why the pictures are not shown; empty if they are."""
        if not self.bench.images.location:
            return NO_PICTURES
        return "they are outside this folder" if self.shelf.roots.hidden(self.bench) else ""

    def cards(self, rows: np.ndarray) -> list[Json]:
        """Return the cards of the items with these row numbers."""
        answers = self.index.answers(self.shelf, self.item_filter.task)
        return [
            self.card(item, f"{answers.right[row]} of {answers.asked[row]} models right" if answers.asked[row] else "")
            for row, item in zip(rows, self.index.items(rows), strict=True)
        ]

    def card(self, item: Item, right: str = "") -> Json:
        """Return the card of an item: its address under this filter, pictures and captions. `right` says how many
        models are right.
        """
        key = f"{item.subset}/{item.id}"
        return {
            "key": key,
            "href": self.item_filter.address(at=key),
            "pictures": self.pictures(item),
            "hidden": self.hidden,
            "captions": card_of(item),
            "right": right,
        }

    def pictures(self, item: Item) -> list[str]:
        """Return the addresses of an item's pictures; each is empty if pictures are not shown."""
        name = quote(self.item_filter.name)
        return ["" if self.hidden else f"/picture?name={name}&image={quote(image)}" for image in item.images]

    def chips(self) -> list[tuple[str, list[tuple[str, int, str, bool]]]]:
        """Return the filters in two groups. A group is (name, filters). A filter is (label, number of matching items,
        address, active or not).
        """
        plain = replace(self.item_filter, subset="", attacker="", show="", tag="", right="", wrong="")
        rows = self.index.rows(plain, self.shelf)  # what the search leaves
        subsets = np.array(self.bench.column("subset").to_pylist())[rows] if self.item_filter.words else None
        chips = [("all", len(rows), plain.address(), plain == self.item_filter)]
        parts = []
        for subset, count in self.bench.subsets.items():
            left = count if subsets is None else int((subsets == subset).sum())
            parts.append((subset, left, replace(plain, subset=subset).address(), self.item_filter.subset == subset))
        for show, own in self.index.shown(self.shelf, self.item_filter.task).items():
            count = int(own[rows].sum())
            chips.append((SHOWN[show], count, replace(plain, show=show).address(), self.item_filter.show == show))
        for attacker, wins in self.index.ready().items():
            chosen, count = self.item_filter.attacker == attacker, int(wins[rows].sum())
            chips.append((f"{attacker} is right", count, replace(plain, attacker=attacker).address(), chosen))
        groups = (("Models and attackers", chips), ("Subsets", parts))
        return [(name, shown) for name, own in groups if (shown := [chip for chip in own if chip[1]])]

    def panel(self, key: str, rows: np.ndarray) -> Json:
        """Return everything about one item: captions, models, attackers, tags, history, and its neighbours in
        the list.
        """
        subset, _, name = key.partition("/")
        item = self.bench.item(subset, name)
        both = pc.and_(pc.equal(self.bench.column("subset"), subset), pc.equal(self.bench.column("id"), name))
        row = int(np.flatnonzero(np.asarray(both))[0])
        place = int(np.searchsorted(rows, row))
        inside = place < len(rows) and rows[place] == row
        near = {"previous": "", "next": ""}
        for which, at in (("previous", place - 1), ("next", place + 1)):
            if inside and 0 <= at < len(rows):
                (one,) = self.index.items(rows[at : at + 1])
                near[which] = self.item_filter.address(at=f"{one.subset}/{one.id}")
        about = {"name": self.item_filter.name, "subset": subset, "id": name}
        return {
            **self.card(item),
            "item": item,
            "place": f"{place + 1:,} of {len(rows):,}" if inside else "",
            "edit": f"/item?{urlencode(about)}",
            **near,
            "models": self._models(row),
            "attackers": [(attacker, bool(wins[row])) for attacker, wins in self.index.ready().items()],
            "history": _history(self.bench, item),
        }

    def _models(self, row: int) -> list[Json]:
        """Return each model's answer to an item, and its confidence. The confidence is the percentage of items on which
        the model's margin has a smaller absolute value than on this item.
        """
        found = []
        for run, label in self.index.labelled(self.shelf):
            own = tasks_by_item(run)
            name = self.item_filter.task if self.item_filter.task in own else own[0]
            outcome = int(self.index.outcomes(run, name)[row])
            one = {
                "label": label,
                "task": name,
                "right": bool(run.settings.right(np.array(outcome))),
                "void": outcome == VOID,
                "margin": "",
                "sure": 0,
            }
            places = self.index.rows_in(run)
            one["answers"] = run.answers.get(int(np.arange(len(run))[places][row]), [])
            values = self.index.margins(run, name)
            if values is not None and not np.isnan(values[row]):
                one["margin"] = signed(values[row])
                one["sure"] = round(100 * float(np.mean(np.abs(values[~np.isnan(values)]) < abs(values[row]))))
            found.append(one)
        return found


def _history(bench: Benchmark, item: Item) -> list[str]:
    """Return the steps by which the benchmark was made. Steps that changed this item say how."""
    steps = []
    for step in bench.provenance:
        args: Document = step.args
        mine = (args.get("subset"), args.get("id")) == (item.subset, item.id)
        before = ", ".join(map(str, args.get("before", ()))) if mine else ""
        comment = f" ({args['comment']})" if mine and args.get("comment") else ""
        steps.append(f"{step.op}{comment}{f': was {before}' if before else ''}")
    return steps


def searched(shelf: Shelf, words: str, index: Callable[[str], ItemIndex]) -> list[Json]:
    """Return a record for each benchmark with matching items. It has the benchmark's name, the number of these items,
    an address that lists them, and the first cards.
    """
    found = []
    for name in shelf.readable()[0]:
        item_filter = ItemFilter(name, words=words)
        if len(rows := index(name).rows(item_filter, shelf)):
            cards = Browser(shelf, index(name), item_filter).cards(rows[:FIRST])
            found.append({"name": name, "count": len(rows), "href": item_filter.address(), "cards": cards})
    return found
