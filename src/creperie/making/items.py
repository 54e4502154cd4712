"""From accepted candidates to items: the source's caption first, then what is true too, then what is false."""

from __future__ import annotations

from collections.abc import Sequence

from creperie.bench import Item, Tag, choice
from creperie.lang import tidy_together
from creperie.making.candidate import Candidate
from creperie.making.source import SourceCaption


def with_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """An item for each group of candidates, beginning with the source's own caption."""
    return [_item(source, name, (source.text,), members) for name, members in grouped(accepted).items()]


def without_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """An item for each group that has a true candidate of its own; the source's caption stays out."""
    groups = grouped(accepted).items()
    return [_item(source, name, (), members) for name, members in groups if any(c.role == "positive" for c in members)]


def grouped(candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Candidates by the item that they belong to, in order."""
    groups: dict[str, list[Candidate]] = {}
    for c in candidates:
        groups.setdefault(c.subset, []).append(c)
    return groups


def _item(source: SourceCaption, subset: str, first: tuple[str, ...], members: Sequence[Candidate]) -> Item:
    positives = [*first, *(c.text for c in members if c.role == "positive")]
    negatives = [c.text for c in members if c.role == "negative"]
    tags: dict[str, Tag] = {"maker": members[0].maker, "edit": "; ".join(c.edit for c in members if c.edit)}
    if source.subset:
        tags["source"] = source.subset
    for c in members:
        tags.update(c.tags)
    match = choice(len(positives), len(negatives))
    return Item(source.id, subset, source.images, (*positives, *negatives), match, tags)


def tidied(item: Item) -> Item:
    """The item with all its captions in one surface style."""
    return Item(item.id, item.subset, item.images, tuple(tidy_together(item.captions)), item.match, item.tags)


def is_sound(item: Item) -> bool:
    """No false caption equals a true one, and no caption is empty."""
    return not set(item.positives) & set(item.negatives) and all(c.strip() for c in item.captions)
