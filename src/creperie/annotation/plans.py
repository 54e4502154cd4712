"""The options for creating, serving and applying a study. The command line takes its options from these classes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from creperie.core import UsageError, check_options, option

TASK_NAMES = (
    "foil-check",
    "positive-check",
    "triplet-check",
    "find-negative",
    "choose-caption",
    "better-foil",
    "bias-rating",
)
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class StudyPlan:
    """The setup of a study: the task, the number of answers per question, the numbers of practice questions and
    attention checks, and how many questions may be skipped.
    """

    task: str = option("", "What people are asked.", choices=TASK_NAMES)
    overlap: int = option(2, "Answers per question.", minimum=1)
    per_annotator: int | None = option(None, "Questions per annotator; all by default.", minimum=1)
    subsets: tuple[str, ...] = option((), "Only these subsets.", flags="--subset")
    sample: int | None = option(None, "Only that many items, drawn at random.", minimum=1)
    practice: int | None = option(None, "Questions with feedback at the start [up to 3].", minimum=0)
    attention: int = option(0, "Checks with a known answer for each annotator, at random places.", minimum=0)
    attention_every: int = option(10, "One check in each block of at most this many questions.", minimum=1)
    skips: int | None = option(None, "Skips per annotator [5, plus 1 per 5 answers].", minimum=0)
    with_image: bool = option(
        True, "--no-image: find-negative from the captions alone (TOT).", flags="--with-image/--no-image"
    )
    lease: float = option(900.0, "Seconds until an abandoned question is given to someone else.", flags="--timeout")
    seed: int = option(0, "Seed of the sample of items.")  #: what annotators could exploit uses a secret instead

    def __post_init__(self) -> None:
        if not self.task:
            raise UsageError("a study needs a task", hint=f"pass `task=`, one of: {', '.join(TASK_NAMES)}")
        check_options(self)
        if not 1 <= self.lease <= 30 * 86400:
            what = f"`lease={self.lease:g}` is out of range"
            raise UsageError(what, hint="give seconds, from 1 to thirty days (2592000)")

    def skips_allowed(self, answered: int) -> int:
        """Return how many questions an annotator who has given `answered` answers may have skipped: `skips` if it is
        set, otherwise 5 + answered // 5.

        >>> StudyPlan("foil-check").skips_allowed(20), StudyPlan("foil-check", skips=3).skips_allowed(20)
        (9, 3)
        """
        return 5 + answered // 5 if self.skips is None else self.skips


@dataclass(frozen=True)
class ApplyPlan:
    """The options for applying a study: what to do with undecided items, which annotators' answers count, and where
    to write the result.
    """

    undecided: Literal["keep", "drop"] = option("keep", "What becomes of undecided items.")
    verdict: Literal["majority", "weighted"] = option("majority", "weighted: by the competence of the annotators.")
    as_is: bool = option(False, "Apply the answers of people who break the study's rules, too, and say so.")
    out: Path | None = option(None, "The folder of the new version.")
    runs: Path = option(Path("runs"), "The folder for human runs.")
    force: bool = option(False, "Replace the folder if it exists.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Address:
    """The address on which the server listens, and the address that people use to reach it."""

    host: str = option("127.0.0.1", "0.0.0.0 to be reached from other machines.")
    port: int = option(8765, "The port to listen on.")
    url: str = option("", "The address people use, if it differs from host and port.")
    proxies: tuple[str, ...] = option((), "Trust X-Forwarded headers from these addresses.", flags="--proxy")
    trusted_header: str = option("", "Header in which --proxy names the caller, as X-Forwarded-User.")
    certificate: Path | None = option(None, "TLS certificate (PEM).")
    key: Path | None = option(None, "Private key of the certificate (PEM).")

    def __post_init__(self) -> None:
        if self.url and not re.fullmatch(r"https?://[^/\s]+/?", self.url):
            raise UsageError(
                f"{self.url[:80]!r} must be an address without a path", hint="write it like https://people.example"
            )
        if self.trusted_header and not self.proxies:
            raise UsageError("a trusted header is given without the proxy that sets it", hint="pass `proxies=`")
        if self.trusted_header and not re.fullmatch(r"[A-Za-z0-9-]{1,64}", self.trusted_header):
            raise UsageError(
                f"{self.trusted_header[:60]!r} is not the name of a header", hint="write it like X-Forwarded-User"
            )
        for proxy in self.proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError:
                raise UsageError(
                    f"{proxy[:60]!r} is not an IP address or network", hint="write it like 10.0.0.5 or 10.0.0.0/8"
                ) from None

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url.rstrip("/") or f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def names(self) -> tuple[str, ...]:
        """The host names that the server accepts; if empty, it accepts any."""
        if self.url:
            return (urlsplit(self.url).hostname or "", *LOOPBACK)
        if self.host in ("0.0.0.0", "::"):
            return ()
        return (self.host, *LOOPBACK)
