"""How sure it is that each caption is false of the other's image: `certain`, `likely` or `unchecked`, and why.

What is looked at, in this order:

- labels: people who said of the very cell that it is false (VSR), or true, which ends it;
- exclusion: the two words cannot both be true (colours, numbers, opposites, disjoint classes);
- other captions of the image: none says the twin's word (*silent*), and some say its own (*confirmed*).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from creperie.making.twins_words import Contrast, told_by

#: So many other captions of each image must be silent before their silence says something.
WITNESSES = 2


@dataclass(frozen=True, slots=True)
class CrossedCell:
    """One caption against the other's image: what people said of it, and the other true captions of that image."""

    label: bool | None  #: people found it true or false; None: nobody was asked
    others: tuple[frozenset[str], ...]  #: the words of the image's other captions, by dictionary form


@dataclass(frozen=True, slots=True)
class Evidence:
    """A level with what it rests on, or the reason why the two are not twins."""

    level: str = ""
    basis: str = ""
    reason: str = ""


def weigh(contrast: Contrast | None, cells: Sequence[CrossedCell], shared: Collection[str] = ()) -> Evidence:
    """The evidence of two crossed cells: the right caption on the left image, then the left one on the right image.

    `shared` are the words that both captions have.
    """
    if any(cell.label for cell in cells):
        return Evidence(reason="people found a caption true of the other image")
    labelled = sum(cell.label is False for cell in cells)
    if contrast is None:
        return (
            Evidence("certain", "labels of both crossed cells") if labelled == 2 else Evidence("unchecked", "nothing")
        )
    by_logic = contrast.name.startswith(("exchanged", "opposite"))  # other captions would say it in other words
    basis = [f"{contrast.name}: {contrast.left} ↔ {contrast.right}"]
    if labelled:
        basis.append("labels of both crossed cells" if labelled == 2 else "the label of one crossed cell")
    silent = confirmed = 0
    for cell, own, twin in zip(cells, (contrast.left, contrast.right), (contrast.right, contrast.left)):
        if by_logic:
            continue
        ours, theirs = told_by(own, contrast.name), told_by(twin, contrast.name)
        if (theirs - ours) & set(shared):
            return Evidence(reason="the captions say the twin's word elsewhere")
        if any((theirs - ours) & said for said in cell.others):
            return Evidence(reason="another caption of the image says the twin's word")
        silent += len(cell.others) >= WITNESSES
        confirmed += any((ours - theirs) & said for said in cell.others)
    if silent == 2:
        basis.append(f"{len(cells[0].others)} + {len(cells[1].others)} other captions do not say it")
    if confirmed == 2:
        basis.append("other captions of both images confirm it")
    return Evidence(_level(labelled, silent == 2, confirmed == 2, by_logic), "; ".join(basis))


def _level(labelled: int, silent: bool, confirmed: bool, by_logic: bool) -> str:
    if labelled == 2 or (silent and confirmed):
        return "certain"
    return "likely" if labelled or silent or by_logic else "unchecked"
