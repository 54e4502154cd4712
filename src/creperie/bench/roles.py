"""Which columns of a table hold images, captions, ids and so on."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import option


@dataclass(frozen=True)
class Roles:
    """The columns of a table, by role. A role may have several columns, such as one for each foil. With two image
    columns there are two columns of true captions, one for each image.
    """

    image: tuple[str, ...] = option((), "Column with the image file; two for two images.", whole=True)
    positive: tuple[str, ...] = option((), "Columns with true captions: caption,caption2.", whole=True)
    negative: tuple[str, ...] = option((), "Columns with false captions: foil,foil2.", whole=True)
    subset: tuple[str, ...] = option((), "Column with the subset; else there is one subset.", whole=True)
    id: tuple[str, ...] = option((), "Column with the id; else rows are numbered from 0.", whole=True)
    tag: tuple[str, ...] = option((), "Columns to keep as tags; * for all.", whole=True)

    @property
    def columns(self) -> list[str]:
        """The names of all columns, without duplicates."""
        return list(dict.fromkeys(name for names in vars(self).values() for name in names))

    def document(self) -> dict[str, list[str]]:
        """Return the columns of each role, for the roles that have any."""
        return {role: list(names) for role, names in vars(self).items() if names}
