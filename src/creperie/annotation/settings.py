"""What an owner can set about a study besides its questions: consent, crowds, qualification, exclusion, language."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from creperie.core import UsageError

PLATFORMS = ("", "prolific", "mturk")
LANGUAGES = ("en", "de")


@dataclass(frozen=True)
class StudySettings:
    """Everything here can be changed while a study runs; each change is an event."""

    consent: str = ""  #: accepted before anything is stored
    information: str = ""  #: who runs the study, what for, what is kept
    contact: str = ""
    retention_days: int | None = None  #: after that many days personal data are erased by `annotate retain`
    language: str = "en"
    # crowds
    open_link: str = ""  #: hash of the token of the self-service link; empty where there is none
    platform: str = ""
    cap: int | None = None  #: participants at most
    completion_url: str = ""  #: where the page sends a participant; {code} is replaced
    codes: dict[str, str] = field(default_factory=dict)  #: by outcome: completed, screened, timed-out
    minutes: float | None = None  #: time to finish; then the participant is timed out
    pay: float = 0.0  #: for a completed participation
    currency: str = ""
    # qualification
    screening: Sequence[dict[str, Any]] = ()  #: {"ask": text, "options": [text], "accept": [number]}
    pass_practice: int | None = None  #: right practice answers needed
    gold: int = 0  #: how many questions were added from adjudicated ones
    # exclusion
    max_attention_failures: float | None = None  #: share of attention and gold questions answered wrongly or skipped
    min_median_seconds: float | None = None
    min_agreement: float | None = None  #: with the other annotators

    def __post_init__(self) -> None:
        if self.platform not in PLATFORMS:
            raise UsageError(f"unknown platform {self.platform!r}", hint="use prolific, mturk or nothing")
        if self.language not in LANGUAGES:
            raise UsageError(f"unknown language {self.language!r}", hint=f"use {' or '.join(LANGUAGES)}")
        if self.completion_url and urlsplit(self.completion_url).scheme != "https":
            raise UsageError("the completion URL must start with https://", where=self.completion_url[:80])
        for name in ("cap", "retention_days", "minutes"):
            if (value := getattr(self, name)) is not None and not 0 < value < 1e7:
                raise UsageError(f"{name} must be above 0, not {value}")
        for name in ("max_attention_failures", "min_agreement"):
            if (value := getattr(self, name)) is not None and not 0 <= value <= 1:
                raise UsageError(f"{name} is a share from 0 to 1, not {value}")
        for one in self.screening:
            if not one.get("ask") or len(one.get("options", ())) < 2 or not one.get("accept"):
                raise UsageError("a screening question needs 'ask', two or more 'options', and 'accept'")

    @property
    def consent_version(self) -> str:
        """Names the text that was accepted; empty where no consent is asked for."""
        return hashlib.sha256(self.consent.encode()).hexdigest()[:12] if self.consent else ""


def settings_of(stored: dict[str, Any]) -> StudySettings:
    """Settings as they are stored. Unknown names are those of a later version and are left out."""
    known = {f.name for f in fields(StudySettings)}
    return StudySettings(**{k: v for k, v in stored.items() if k in known})


def changed(stored: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Stored settings with changes, checked."""
    known = {f.name for f in fields(StudySettings)}
    if wrong := sorted(set(changes) - known):
        raise UsageError(f"there is no setting {wrong[0]!r}", hint=f"settings: {', '.join(sorted(known))}")
    return asdict(replace(settings_of(stored), **changes))
