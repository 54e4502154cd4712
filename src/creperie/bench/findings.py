"""What a check of a benchmark says: one finding, with its code and how serious it is."""

from __future__ import annotations

from dataclasses import dataclass

ERROR = "error"
INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `subset` and `item` are empty where it is about more than one item."""

    code: str
    severity: str
    subset: str
    item: str
    message: str
