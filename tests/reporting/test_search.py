"""The language of the search fields, in the studio and in reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from creperie.bench import Item, choice, from_items, save
from creperie.metrics import MetricSettings
from creperie.reporting.studio.items import ItemFilter, ItemIndex
from creperie.reporting.studio.shelf import Shelf

ITEMS = [
    Item("1", "swap_obj", (), ("A zebra sees a lion", "A lion sees a zebra"), choice(1, 1)),
    Item("2", "swap_obj", (), ("Two zebras, one LION.", "Two lions"), choice(1, 1)),
    Item("3", "add", (), ("a woman near a category", "a man near a category"), choice(1, 1)),
    Item("4", "add", (), ("Écureuil (roux) -5°", "猫在桌子上"), choice(1, 1)),
]
#: what is typed → the ids that it finds
SEARCHES = {
    "zebra lion": "12",  # any order, in any caption of the item; the beginning of a word is enough
    "lion ZEBRA -two": "1",
    '"zebra sees"': "1",
    '"zebra"': "1",  # whole words
    '-"a lion"': "234",
    "man": "3",
    "cat": "3",
    '"cat"': "",
    "subset:SWAP zebras": "2",
    "-subset:swap": "34",
    "écur (roux) -5°": "",
    "écur (roux)": "4",
    "桌子": "4",  # no spaces between words
    "3": "3",
    '  " ': "1234",
    "-": "1234",  # nothing is asked for
    "lion - --": "12",
    "subset:": "1234",
    '"-5°"': "4",
    "model:length -lion": "34",
    "-model:length": "12",
    "model:none": "",
}


@pytest.mark.parametrize("typed", SEARCHES)
def test_all_words_in_any_order(typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(from_items("some", ITEMS), tmp_path / "some")
    shelf = Shelf(tmp_path)
    index = ItemIndex(shelf.bench("some"))
    run = type("R", (), {"model": "blind:length", "settings": MetricSettings()})
    monkeypatch.setattr(index, "labelled", lambda shelf: [(run, "length")])
    monkeypatch.setattr(index, "outcomes", lambda run, task: index.bench.column("subset").to_numpy() == "add")
    rows = index.rows(ItemFilter("some", words=typed), shelf)
    assert "".join(item.id for item in index.items(rows)) == SEARCHES[typed]
