"""The retry policy of every HTTP client: which responses are retried, and how long to wait first."""

from __future__ import annotations

import random
import time

#: Status codes of responses that are retried.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def retry_after(value: str) -> float | None:
    """Return how many seconds a `Retry-After` header asks to wait. The header is a number or a date; return None for
    any other value.

    >>> retry_after("3"), retry_after(""), retry_after("Thu, 01 Jan 1970 00:00:00 GMT")
    (3.0, None, 0.0)
    """
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return None


FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  #: seconds


def backoff(attempt: int) -> float:
    """Return the seconds to wait after failed attempt number `attempt`. They grow exponentially, with jitter."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + random.random() / 2)
