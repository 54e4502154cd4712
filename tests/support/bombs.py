"""Pictures that are not what they say."""

from __future__ import annotations

import struct
import zlib


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header claims this size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    header = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + header + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
