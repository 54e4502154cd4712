"""Time-based one-time codes (RFC 6238: SHA-1, six digits, thirty seconds), as authenticator apps make them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import time
from urllib.parse import quote

STEP, DIGITS = 30, 6


def new_secret() -> str:
    return base64.b32encode(secrets.token_bytes(20)).decode()


def code_at(secret: str, moment: float) -> str:
    """The code of a moment.

    >>> code_at(base64.b32encode(b"12345678901234567890").decode(), 59)  # RFC 6238, appendix B, last six digits
    '287082'
    """
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", int(moment) // STEP), hashlib.sha1)
    start = digest[-1] & 15
    number = struct.unpack(">I", digest[start : start + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def is_code(secret: str, given: str, now: float | None = None) -> bool:
    """Whether a code is that of now, or of the step before or after."""
    now = time.time() if now is None else now
    steps = [code_at(secret, now + shift * STEP) for shift in (-1, 0, 1)]
    return any(hmac.compare_digest(code.encode(), given.strip().encode()) for code in steps)


def address_of(secret: str, account: str) -> str:
    """What an authenticator app reads."""
    return f"otpauth://totp/creperie:{quote(account)}?secret={secret}&issuer=creperie"
