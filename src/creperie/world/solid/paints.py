"""Colours, materials and textures of solid things, as Mitsuba's principled surfaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

Rgb = tuple[int, int, int]
COLOURS: dict[str, Rgb] = {
    "red": (196, 30, 34),
    "orange": (240, 116, 16),
    "yellow": (246, 200, 30),
    "green": (40, 132, 58),
    "blue": (30, 84, 190),
    "purple": (112, 48, 158),
    "pink": (244, 138, 176),
    "black": (26, 26, 30),
    "white": (238, 238, 234),
    "brown": (122, 74, 40),
}
#: Paints that do not depend on the thing: colour, roughness, metallic.
FIXED: dict[str, tuple[Rgb, float, float]] = {
    "coffee": ((52, 28, 14), 0.15, 0),
    "orange": ((242, 126, 20), 0.4, 0),
    "apple": ((186, 24, 24), 0.25, 0),
    "paper": ((240, 236, 224), 0.8, 0),
    "dark": ((34, 34, 38), 0.4, 0),
    "ink": ((24, 24, 28), 0.6, 0),
    "metal": ((206, 206, 210), 0.25, 1),
    "steel": ((176, 178, 184), 0.3, 1),
    "stem": ((70, 130, 50), 0.6, 0),
    "leaf": ((48, 116, 44), 0.45, 0),
    "petal": ((232, 96, 130), 0.6, 0),
    "sun": ((246, 204, 60), 0.5, 0),
    "ribbon": ((240, 236, 226), 0.5, 0),
    "bark": ((92, 58, 34), 0.6, 0),
    "night": ((40, 48, 60), 0.08, 0),
    "soil": ((56, 40, 30), 1, 0),
    "cream": ((244, 226, 196), 0.9, 0),
    "sky": ((150, 196, 232), 0.7, 0),
    "red cloth": ((150, 44, 44), 0.8, 0),
    "green cloth": ((62, 104, 72), 0.8, 0),
    "blue cloth": ((58, 82, 128), 0.8, 0),
}
#: Material → roughness, metallic, what the texture multiplies.
MATERIALS: dict[str, tuple[float, float, str]] = {
    "ceramic": (0.15, 0, ""),
    "plastic": (0.35, 0, ""),
    "fruit": (0.28, 0, ""),
    "wax": (0.5, 0, ""),
    "wood": (0.45, 0, "wood"),
    "metal": (0.22, 1, ""),
    "cloth": (0.9, 0, "weave"),
    "fur": (1, 0, "fur"),
    "wicker": (0.8, 0, "wicker"),
    "glass": (0.02, 0, ""),
    "clay": (0.8, 0, ""),
}
#: What a thing of this material looks like if it has no colour of its own.
NATURAL: dict[str, Rgb] = {
    "wood": (178, 122, 70),
    "metal": (200, 202, 208),
    "wicker": (186, 140, 84),
    "glass": (226, 240, 236),
    "clay": (176, 92, 58),
}


@cache
def _noise(size: int, cells: int, seed: int, stretch: int = 1) -> np.ndarray:
    """Return smooth noise in 0 to 1 that repeats at its edges."""
    raw = np.random.PCG64(np.random.SeedSequence([size, cells, seed])).random_raw(cells * max(1, cells // stretch))
    grid = (raw >> np.uint64(40)).astype(np.float64).reshape(-1, cells) / 2**24
    rows, columns = (np.arange(size) * n / size for n in grid.shape)
    y, x = rows.astype(int), columns.astype(int)
    fy, fx = (3 * f**2 - 2 * f**3 for f in (rows - y, columns - x))
    wrapped = np.pad(grid, ((0, 1), (0, 1)), mode="wrap")
    top = wrapped[y][:, x] * (1 - fx) + wrapped[y][:, x + 1] * fx
    low = wrapped[y + 1][:, x] * (1 - fx) + wrapped[y + 1][:, x + 1] * fx
    return np.asarray(top * (1 - fy[:, None]) + low * fy[:, None])


def _grain() -> np.ndarray:
    """Return wood: rings that run along x, with fibres."""
    y = np.arange(256)[:, None] / 256
    rings = np.sin(2 * np.pi * (5 * y + 0.9 * _noise(256, 4, 1).T + 0.25 * _noise(256, 16, 2, 2).T)) * 0.5 + 0.5
    return 0.66 + 0.26 * rings + 0.14 * (_noise(256, 128, 3, 16).T - 0.5)


def _texture(name: str) -> np.ndarray:
    """Return a texture (n, n) that multiplies a colour."""
    y, x = np.mgrid[:64, :64]
    if name == "wood":
        return _grain()
    if name == "weave":
        return 0.86 + 0.14 * np.where((x // 4 + y // 4) % 2, np.sin(x * np.pi / 4) ** 2, np.sin(y * np.pi / 4) ** 2)
    if name == "wicker":
        over = (x // 16 + y // 8) % 2
        return 0.5 + 0.5 * np.where(over, np.sin(y * np.pi / 8), np.abs(np.sin(x * np.pi / 16)) * 0.75)
    if name == "fur":
        return 0.72 + 0.28 * _noise(64, 32, 5)
    return np.ones((1, 1))


def _marks(pattern: str) -> np.ndarray:
    """Return the share of the second colour over a tile of a pattern."""
    y, x = (np.mgrid[:64, :64] + 0.5) / 64
    if pattern == "striped":
        return (y < 0.42).astype(float)
    if pattern == "checked":
        return 0.5 * (x < 0.5) + 0.5 * (y < 0.5)
    near = [np.hypot((x - a + 0.5) % 1 - 0.5, (y - b + 0.5) % 1 - 0.5) for a, b in ((0.25, 0.25), (0.75, 0.75))]
    return np.clip((0.17 - np.minimum(*near)) * 40, 0, 1)


@cache
def bitmap(colour: Rgb, texture: str, pattern: str) -> np.ndarray:
    """Return the picture (n, n, 3) uint8 on the surface of a thing."""
    base = np.array(colour, float)
    shade = _texture(texture)
    if pattern:
        mark = np.array((244, 242, 236) if base.mean() < 190 else (112, 112, 118), float)
        share = _marks(pattern)[..., None]
        base = base * (1 - share) + mark * share
        shade = np.kron(np.ones((64 // len(shade),) * 2), shade) if len(shade) < 64 else shade[:64, :64]
    return np.clip(base * shade[..., None], 0, 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Surface:
    """How a surface looks: its colour, what is drawn on it, how rough and metallic it is; glass and lights differ."""

    rgb: Rgb
    roughness: float = 0.5
    metallic: float = 0.0
    texture: str = ""
    pattern: str = ""
    tiles: float = 1.0  #: width of the picture on the surface
    glass: bool = False
    light: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        return not (self.texture or self.pattern or self.glass or self.light)

    def picture(self) -> np.ndarray:
        """Return what is drawn on the surface: (n, n, 3) uint8."""
        if self.texture.startswith("large "):
            return large_picture(self.rgb, self.texture[6:])
        drawn = bitmap(self.rgb, self.texture, self.pattern)
        return (
            np.tile(drawn, (512 // len(drawn),) * 2 + (1,))
            if len(drawn) == 1
            else drawn.repeat(512 // len(drawn), 0).repeat(512 // len(drawn), 1)
        )


def surface(paint: str, colour: str, material: str, pattern: str) -> Surface:
    """Return the look of a part of a thing."""
    if paint == "wood":
        return Surface(NATURAL["wood"], 0.45, texture="wood", tiles=6)
    if paint in _GLOWING:
        return Surface((255, 240, 220), light=_GLOWING[paint])
    if paint != "main":
        rgb, roughness, metallic = FIXED[paint]
        return Surface(rgb, roughness, metallic)
    roughness, metallic, texture = MATERIALS[material]
    rgb = COLOURS[colour] if colour else NATURAL[material]
    tiles = 6 if texture == "wood" else 0.5 if texture == "weave" and not pattern else 1
    return Surface(rgb, roughness, metallic, texture, pattern, tiles, material == "glass")


_GLOWING = {"flame": (60.0, 34.0, 10.0), "glow": (7.0, 5.4, 3.4)}
_WALLS: tuple[tuple[Rgb, str], ...] = (
    ((226, 220, 206), ""), ((188, 200, 208), ""), ((196, 206, 186), ""), ((214, 196, 172), ""), ((222, 204, 200), ""),
    ((216, 208, 192), "stripes"), ((214, 214, 210), "tiles"), ((168, 104, 84), "bricks"),
)  # fmt: skip
_GROUNDS: tuple[tuple[Rgb, str], ...] = (
    ((176, 124, 76), "planks"), ((122, 82, 54), "planks"), ((206, 172, 130), "planks"), ((150, 148, 144), "tiles"),
    ((214, 206, 190), "cloth"), ((122, 138, 158), "cloth"), ((158, 168, 142), "cloth"), ((190, 178, 160), "tiles"),
)  # fmt: skip


def wall_look(number: int, tiles: float) -> Surface:
    """Return the look of a wall; textures repeat after so many tiles."""
    rgb, style = _WALLS[number]
    return Surface(rgb, 0.9, texture=f"large {style}", tiles=tiles)


def ground_look(number: int, tiles: float) -> Surface:
    """Return the look of a floor or a table."""
    rgb, style = _GROUNDS[number]
    return Surface(rgb, 0.9 if style == "cloth" else 0.5, texture=f"large {style}", tiles=tiles)


@cache
def large_picture(colour: Rgb, style: str) -> np.ndarray:
    """Return the texture of a wall, a floor or a table."""
    y, x = np.mgrid[:512, :512]
    shade = 0.97 + 0.06 * (_noise(512, 64, 7) - 0.5)
    if style == "stripes":
        shade = shade * np.where(x // 64 % 2, 1.0, 0.92)
    if style == "tiles":
        shade = shade * np.where((x % 128 < 4) | (y % 128 < 4), 0.72, 0.96 + 0.08 * _noise(512, 8, 8))
    if style == "bricks":
        shifted = x + 64 * (y // 64 % 2)
        joint = (shifted % 128 < 8) | (y % 64 < 8)
        tone = 0.8 + 0.35 * _noise(512, 16, 9)
        return np.clip(
            np.where(joint[..., None], np.array([190, 182, 172.0]), np.array(colour, float) * tone[..., None]), 0, 255
        ).astype(np.uint8)
    if style == "planks":
        row = y // 64
        grain = np.tile(_grain(), (2, 2))
        moved = np.take_along_axis(grain, (x + row * 137) % 512, 1)
        tone = np.array([1, 0.9, 1.06, 0.95, 0.88, 1.03, 0.93, 1.0])[row]
        seam = (y % 64 < 2) | ((x + row * 190) % 512 < 2)
        shade = (0.55 + 0.45 * moved) * tone * np.where(seam, 0.55, 1)
    if style == "cloth":
        shade = shade * (0.93 + 0.07 * np.sin(x * np.pi / 2) * np.sin(y * np.pi / 2))
    return np.clip(np.array(colour, float) * shade[..., None], 0, 255).astype(np.uint8)
