"""The published formats: each is read into items, and some are written back with the same content."""

from __future__ import annotations

from creperie.bench.formats.format import Format, FormatSource
from creperie.bench.formats.registry import find_format, list_formats, read_format, write_format

__all__ = ["Format", "FormatSource", "find_format", "list_formats", "read_format", "write_format"]
