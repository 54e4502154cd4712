"""What an owner can set about a study besides its questions: consent, crowds, exclusion."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any
from urllib.parse import urlsplit

from creperie.core import UsageError

PLATFORMS = ("", "prolific", "mturk")
LONGEST_TEXT = 20_000
#: Bounds of the numbers; all of them but `pay` may also be None.
BOUNDS: dict[str, tuple[type, float, float]] = {
    "expected": (int, 1, 100_000),
    "cap": (int, 1, 100_000),
    "pay": (float, 0, 1e6),
    "max_attention_failures": (float, 0, 1),
    "min_median_seconds": (float, 0, 86_400),
}


@dataclass(frozen=True)
class StudySettings:
    """Everything here can be changed while a study runs; each change makes a new revision."""

    consent: str = ""  #: accepted before anything is stored
    information: str = ""  #: who runs the study, what for, what is kept
    contact: str = ""
    expected: int | None = None  #: people who will take part; None: as many as are invited or listed, or the cap
    # crowds
    crowd_address: str = ""  #: hash of the token of the address that all workers share; empty where there is none
    platform: str = ""
    cap: int | None = None  #: participants at most
    completion_url: str = ""  #: where the last page sends a participant; it holds the code of the platform
    pay: float = 0.0  #: for a completed participation
    currency: str = ""
    # exclusion, beside what `creperie.annotation.quality` finds by itself
    max_attention_failures: float | None = None  #: share of attention checks answered wrongly or skipped
    min_median_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.platform not in PLATFORMS:
            raise UsageError(f"unknown platform {self.platform!r}", hint="use prolific, mturk or nothing")
        for one in fields(self):
            if isinstance(one.default, str):
                _check_text(one.name, getattr(self, one.name))
        if self.completion_url and urlsplit(self.completion_url).scheme != "https":
            raise UsageError("the completion URL must start with https://", where=self.completion_url[:80])
        for name, (kind, low, high) in BOUNDS.items():
            value = getattr(self, name)
            if value is not None or name == "pay":
                _check_number(name, value, kind, low, high)

    @property
    def consent_version(self) -> str:
        """Names the text that was accepted; empty where no consent is asked for."""
        return hashlib.sha256(self.consent.encode()).hexdigest()[:12] if self.consent else ""


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value:
        raise UsageError(f"{name} must be text of at most {LONGEST_TEXT:,} characters")


def _check_number(name: str, value: Any, kind: type, low: float, high: float) -> None:
    """Refuse what is not a finite number within its bounds: nan, -5, 1e400."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not low <= value <= high or (kind is int and value != int(value)):
        word = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} must be {word} from {low:g} to {high:g}, not {str(value)[:40]}")


def settings_of(stored: dict[str, Any]) -> StudySettings:
    """Settings as they are stored. Unknown names are those of another version and are left out."""
    known = {f.name for f in fields(StudySettings)}
    return StudySettings(**{k: v for k, v in stored.items() if k in known})


def changed(stored: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Stored settings with changes, checked."""
    known = {f.name for f in fields(StudySettings)}
    if wrong := sorted(set(changes) - known):
        raise UsageError(f"there is no setting {wrong[0]!r}", hint=f"settings: {', '.join(sorted(known))}")
    return asdict(replace(settings_of(stored), **changes))
