"""The settings of a study other than its questions: consent, crowds, exclusion rules."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from creperie.core import Json, UsageError

#: The query parameter in which a platform passes the worker's id, by platform; without one it is `id`.
WORKER_PARAMETER = {"": "id", "prolific": "PROLIFIC_PID", "mturk": "workerId"}
#: What a platform replaces by the worker's id in the shared address.
PLACEHOLDER = {"prolific": "{{%PROLIFIC_PID%}}"}
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
    """The settings of a study. They can be changed while the study runs; each change creates a new revision."""

    consent: str = ""  #: accepted before anything is stored
    information: str = ""  #: who runs the study, why, and what is stored
    contact: str = ""
    expected: int | None = None  #: number of people who will take part; None: those invited or listed, or the cap
    # crowds
    crowd_address: str = ""  #: hash of the token of the shared address; empty if there is none
    platform: str = ""
    cap: int | None = None  #: most participants
    completion_url: str = ""  #: URL to which the last page leads, with the completion code of the platform
    pay: float = 0.0  #: payment for a completed participation
    currency: str = ""
    # exclusion, besides what `creperie.annotation.quality` always checks
    max_attention_failures: float | None = None  #: share of attention checks answered wrongly or skipped
    min_median_seconds: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value: Any = getattr(self, one.name)
            if isinstance(one.default, str):
                if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value:
                    raise UsageError(f"{one.name} must be text of at most {LONGEST_TEXT:,} characters")
            elif value is not None or one.name == "pay":
                kind, low, high = BOUNDS[one.name]
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if not number or not low <= value <= high or (kind is int and value != int(value)):
                    word = "a whole number" if kind is int else "a number"
                    raise UsageError(f"{one.name} must be {word} from {low:g} to {high:g}, not {str(value)[:40]}")
        if self.platform not in WORKER_PARAMETER:
            raise UsageError(f"unknown platform {self.platform!r}", hint="use prolific or mturk, or leave it empty")
        if self.completion_url and not self.completion_url.startswith("https://"):
            what = "the completion URL does not start with https://"
            raise UsageError(what, where=self.completion_url[:80], hint="copy it from the platform")

    @property
    def consent_version(self) -> str:
        """The version of the consent text; empty if the study asks for no consent."""
        return hashlib.sha256(self.consent.encode()).hexdigest()[:12] if self.consent else ""


NAMES = {f.name for f in fields(StudySettings)}


def settings_of(stored: Json) -> StudySettings:
    """Return stored settings as an object. Unknown names, which come from another version of creperie, are left out."""
    return StudySettings(**{k: v for k, v in stored.items() if k in NAMES})


def changed(stored: Json, changes: Json) -> Json:
    """Check the changes, and return the stored settings with the changes applied."""
    if wrong := sorted(set(changes) - NAMES):
        raise UsageError(f"unknown setting {wrong[0]!r}", hint=f"choose from: {', '.join(sorted(NAMES))}")
    return asdict(replace(settings_of(stored), **changes))
