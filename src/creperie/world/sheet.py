"""Contact sheets: images with their captions, for people to look at."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from creperie.bench import Benchmark, Item
from creperie.core import UsageError

_PAPER, _TRUE, _FALSE, _GREY = (255, 255, 255), (28, 122, 60), (190, 40, 40), (110, 110, 118)
_GAP = 10


def contact_sheet(bench: Benchmark, items: Sequence[Item], *, columns: int = 4, size: int = 200) -> Image.Image:
    """Return a picture of the items as tiles: each item's images, with its true captions in green and its false ones in
    red.
    """
    if not items:
        raise UsageError("there are no items to show", where=bench.name, hint="select at least one item")
    font = ImageFont.load_default(size=max(10, size // 15))
    tiles = [_tile(bench, item, size, font) for item in items]
    high = max(tile.height for tile in tiles)
    wide = max(tile.width for tile in tiles)
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * (wide + _GAP) + _GAP, rows * (high + _GAP) + _GAP), _PAPER)
    for k, tile in enumerate(tiles):
        sheet.paste(tile, (_GAP + k % columns * (wide + _GAP), _GAP + k // columns * (high + _GAP)))
    return sheet


def _tile(bench: Benchmark, item: Item, size: int, font: ImageFont.ImageFont | ImageFont.FreeTypeFont) -> Image.Image:
    pictures = bench.open(item)
    each = size // max(1, len(pictures))
    lines = _lines(item, 30)
    step = max(11, size // 13)
    tile = Image.new("RGB", (size, size + step * (len(lines) + 2)), _PAPER)
    for k, picture in enumerate(pictures):
        scaling = Image.Resampling.NEAREST if picture.width < each else Image.Resampling.LANCZOS
        tile.paste(picture.resize((each - 2, each - 2), scaling), (k * each, step))
    pen = ImageDraw.Draw(tile)
    pen.text((0, 0), item.subset, fill=_GREY, font=font)
    for k, (line, colour) in enumerate(lines):
        pen.text((0, step + each + k * step), line, fill=colour, font=font)
    return tile.crop((0, 0, size, step + each + step * len(lines) + step // 3))


def _lines(item: Item, width: int) -> list[tuple[str, tuple[int, int, int]]]:
    """Return (line, colour) for each line of the wrapped captions. If the item has two images, each caption begins
    with "left" or "right": the image of which it is true.
    """
    lines = []
    for column, caption in enumerate(item.captions):
        true = any(row[column] for row in item.match)
        mark = "+" if true else "x"
        if len(item.images) > 1:
            mark = "left:" if item.match[0][column] else "right:"
        lines += [(part, _TRUE if true else _FALSE) for part in textwrap.wrap(f"{mark} {caption}", width)]
    return lines
