"""Colours, materials and textures of solid things, as parameters of Mitsuba's `principled` material."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from creperie.core import packaged_toml

Rgb = tuple[int, int, int]
_TABLES: dict[str, Any] = packaged_toml("creperie.world.solid", "paints.toml")
COLOURS: dict[str, Rgb] = {name: tuple(rgb) for name, rgb in _TABLES["colours"].items()}
MATERIALS: dict[str, tuple[float, float, str]] = _TABLES["materials"]
NATURAL: dict[str, Rgb] = {name: tuple(rgb) for name, rgb in _TABLES["natural"].items()}
LIGHTS: list[Any] = _TABLES["lights"]
RUGS = len(_TABLES["rugs"])
SHADE = 8  #: tiles of texture from the rim of a lamp's shade to its top and down inside


def linear(colour: Any) -> np.ndarray:
    """Return an sRGB colour (0 to 255) as linear amounts of light (0 to 1)."""
    return np.asarray(((np.asarray(colour) / 255 + 0.055) / 1.055) ** 2.4)


def lab(colour: Any) -> np.ndarray:
    """Return an sRGB colour (0 to 255) in CIELAB, where the distance between two colours corresponds to how different
    they look.
    """
    x, y, z = np.cbrt(_XYZ @ linear(colour))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


#: of linear red, green and blue, relative to daylight's
_XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]])


@cache
def _noise(size: int, cells: int, seed: int, stretch: int = 1) -> np.ndarray:
    """Return smooth random values from 0 to 1 that can be tiled without seams."""
    raw = np.random.PCG64(np.random.SeedSequence([size, cells, seed])).random_raw(cells * max(1, cells // stretch))
    grid = (raw >> np.uint64(40)).astype(np.float64).reshape(-1, cells) / 2**24
    rows, columns = (np.arange(size) * n / size for n in grid.shape)
    y, x = rows.astype(int), columns.astype(int)
    fy, fx = (3 * f**2 - 2 * f**3 for f in (rows - y, columns - x))
    wrapped = np.pad(grid, ((0, 1), (0, 1)), mode="wrap")
    top = wrapped[y][:, x] * (1 - fx) + wrapped[y][:, x + 1] * fx
    low = wrapped[y + 1][:, x] * (1 - fx) + wrapped[y + 1][:, x + 1] * fx
    return np.asarray(top * (1 - fy[:, None]) + low * fy[:, None])


def _grain(size: int = 256) -> np.ndarray:
    """Return a texture of wood: fibres along x between wavy rings, with fine pores."""
    broad, lines, fibres = (_noise(size, cells, k, cells // 2).T - 0.5 for k, cells in enumerate((8, 32, size // 2)))
    pores = np.clip(_noise(size, size // 2, 3, 16).T - 0.72, 0, 1)
    rings = np.sin(2 * np.pi * (9 * np.arange(size)[:, None] / size + 2.6 * _noise(size, 8, 4, 4).T))
    return np.asarray(0.87 + 0.16 * broad + 0.1 * lines + 0.12 * fibres - 0.5 * pores - 0.1 * np.clip(rings, 0, 1) ** 2)


def _texture(name: str) -> np.ndarray:
    """Return the texture with this name as an array (n, n) of factors for the colour."""
    if name == "wood":
        return _grain()
    if name == "painted":
        return 0.44 + 0.5 * _grain() + 0.08 * _noise(256, 8, 46)
    base, *layers = _TABLES["textures"].get(name, [1])
    shade = np.full((64, 64) if layers else (1, 1), float(base))
    for weight, turned, *noise in layers:
        shade += weight * (_noise(64, *noise).T if turned else _noise(64, *noise))
    return np.where(_noise(64, 64, 41) > 0.98, 0.74, 1) * shade if name == "glaze" else shade


def _marks(pattern: str) -> np.ndarray:
    """Return one tile of a pattern: the weight of the second colour, from 0 to 1, at each pixel."""
    y, x = (np.mgrid[:64, :64] + 0.5) / 64
    if pattern == "striped":
        return (y < 0.3).astype(float)
    if pattern == "checked":
        return 0.36 * (x < 0.5) + 0.36 * (y < 0.5)
    near = [np.hypot((x - a + 0.5) % 1 - 0.5, (y - b + 0.5) % 1 - 0.5) for a, b in ((0.25, 0.25), (0.75, 0.75))]
    return np.clip((0.17 - np.minimum(*near)) * 40, 0, 1)


@cache
def bitmap(colour: Rgb, texture: str, pattern: str) -> np.ndarray:
    """Return the image to put on the surface of a thing: (n, n, 3) uint8."""
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
    """How a surface looks: its colour, texture and pattern, how rough and metallic it is, and whether it is glass or
    emits light.
    """

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
        return not (self.texture or self.pattern)

    @property
    def shade(self) -> bool:
        """True for the cloth of a lampshade, which lets light through."""
        return bool(self.light) and self.texture == "weave"

    def shine(self) -> np.ndarray:
        """Return the light that the surface emits: (n, n, 3), in linear RGB. Lampshades are brightest near the bulb."""
        if self.texture == "flame":
            return np.array(_TABLES["flame"])[:, None, :]
        light = (0.03 + 0.97 * linear(self.picture())) * self.light
        if not self.shade:
            return light
        at = np.linspace(0, SHADE, len(light))[:, None, None]
        up = np.where(at < 3.9, at, 7.8 - at) / 3.9
        thread = 0.94 + 0.06 * np.cos(np.arange(len(light)) * 1.6)[:, None, None]
        return light * thread * (0.04 + 0.96 / (1 + (3.2 * (up - 0.62)) ** 2) ** 1.5)

    def picture(self) -> np.ndarray:
        """Return the image on the surface: (n, n, 3) uint8. For a lampshade, this is all of its cloth: first the
        outside, then the inside.
        """
        if self.shade:
            tile = bitmap(self.rgb, self.texture, self.pattern)
            cloth = np.tile(tile, (512 // len(tile), 1, 1))
            cloth[250:] = 146, 134, 112
            return cloth
        if self.texture == "canvas":
            return _landscape()
        if self.texture.startswith("large "):
            return large_picture(self.rgb, self.texture[6:])
        return bitmap(self.rgb, self.texture, self.pattern)


def surface(paint: str, colour: str, material: str, pattern: str) -> Surface:
    """Return the look of one part of a thing. `paint` is "main" or "lit" for the thing's own colour and material, or
    else the name of a fixed paint.
    """
    if paint == "wood":
        return Surface(NATURAL["wood"], 0.45, texture="wood", tiles=3.5)
    if paint == "canvas":
        return Surface((255, 255, 255), 0.6, texture="canvas", tiles=12)
    if paint == "kilim":
        return replace(large_look("rugs", 1, 10), texture="large kilim")
    if paint == "flame":
        return Surface((255, 240, 220), light=(1, 1, 1), texture="flame", tiles=1.2)
    if paint == "bulb":
        return Surface((255, 236, 206), light=(340, 255, 150))
    if paint not in ("main", "lit"):
        rgb, roughness, metallic = _TABLES["fixed"][paint]
        return Surface(tuple(rgb), roughness, metallic, paint if paint == "crust" else "", tiles=2)
    roughness, metallic, texture = MATERIALS[material]
    rgb = COLOURS[colour] if colour else NATURAL[material]
    tiles = 1.0 if pattern else {"wood": 3.5, "weave": 2.0, "wicker": 1.0, "fur": 1.0}.get(texture, 3.0)
    light = (3.4, 2.5, 1.5) if paint == "lit" else ()
    return Surface(rgb, roughness, metallic, texture, pattern, tiles, material == "glass", light)


@cache
def _landscape() -> np.ndarray:
    """Return a painting of hills by a lake: (256, 256, 3) uint8. The array begins at the painting's lowest row and at
    its middle column.
    """
    x, height = np.arange(256)[None], (np.arange(256)[:, None] * 48 / 256 - 8) / 24
    clouds = np.clip(2.6 * _noise(256, 16, 31, 2) + 0.8 * _noise(256, 64, 32) - 2, 0, 0.8)[..., None]
    sky = np.clip(height, 0, 1)[..., None] * (-130, -70, 0) + np.array((246, 214, 170))
    scene = sky * (1 - clouds) + clouds * np.array((246, 240, 230))
    for level, rough, k, colour in (
        (0.66, 0.3, 33, (112, 130, 158)),
        (0.52, 0.26, 34, (74, 104, 92)),
        (0.36, 0.02, 35, (168, 186, 190)),
        (0.2, 0.14, 36, (122, 112, 44)),
    ):
        ridge = level + rough * (_noise(256, 8, k)[0] - 0.5) + 0.04 * (_noise(256, 32, k + 5)[0] - 0.5)
        tone = 0.8 + 0.4 * _noise(256, 64, k + 9, 4)[..., None]
        scene = np.where((height < ridge[x])[..., None], np.array(colour) * tone, scene)
    return np.clip(scene * (0.9 + 0.16 * _noise(256, 128, 39)[..., None]), 0, 255).astype(np.uint8)


def large_look(table: str, number: int, tiles: float) -> Surface:
    """Return the look with this number in the table "walls", "grounds" or "rugs". Its image is repeated every 4 ×
    `tiles` cm.
    """
    rgb, style, roughness = _TABLES[table][number]
    return Surface(tuple(rgb), roughness, texture=f"large {style}", tiles=tiles)


def _spots(number: np.ndarray) -> np.ndarray:
    """Return a pseudo-random value from 0 to 1 for each number, always the same for the same number."""
    return np.asarray(number * 2654435761 % 4096 / 4096)


@cache
def large_picture(colour: Rgb, style: str) -> np.ndarray:
    """Return an image for a wall, a floor or the top of a table: (512, 512, 3) uint8."""
    y, x = np.mgrid[:512, :512]
    shade = 0.97 + 0.06 * (_noise(512, 64, 7) - 0.5)
    if style == "stripes":
        shade = shade * np.where(x // 64 % 2, 1.0, 0.92)
    if style in ("tiles", "terracotta"):
        shade = (shade + 0.14 * (_noise(512, 32, 17) - 0.5)) * np.where(
            (x % 128 < 4) | (y % 128 < 4), 0.72, 0.9 + 0.14 * _spots(x // 128 + 5 * (y // 128))
        )
    if style in ("bricks", "metro"):
        high, joint, rough = (32, 0.8, 0.22) if style == "bricks" else (64, 1.12, 0)
        row = y // high
        moved = (x + row % 2 * 64) % 512
        tone = 1 + rough * (_spots(row * 8 + moved // 128) + _noise(512, 128, 13) - 1)
        shade = shade * np.where((y % high < 3) | (moved % 128 < 3), joint, tone)
    if style == "boards":
        at = x % 64
        shade = shade * np.where(at < 3, 0.62, np.where(at > 61, 1.06, 1.0)) * (0.97 + 0.05 * _spots(x // 64))
    if style == "leaves":
        for k, (dx, dy) in enumerate(((0, 0), (64, 64))):
            u, v = (x + dx) % 128 - 64, (y + dy) % 128 - 64
            for turn in (-0.9, 0.9) if k else (-0.5, 0.5):
                a, b = u * np.cos(turn) + v * np.sin(turn), v * np.cos(turn) - u * np.sin(turn)
                inside = np.abs(a) < 11 * np.sqrt(np.clip(1 - ((b + 20) / 26) ** 2, 0, 1))
                shade = np.where(inside & (np.abs(a) > 1), shade * 1.14, shade)
    if style == "plaster":
        shade = 0.94 + 0.07 * _noise(512, 8, 11) + 0.04 * _noise(512, 64, 7) + 0.03 * _noise(512, 256, 8)
    if style == "checker":
        shade = shade * np.where((x // 128 + y // 128) % 2, 0.42, 1) * np.where((x % 128 < 3) | (y % 128 < 3), 0.8, 1)
    if style == "stone":
        shade = 0.86 + 0.1 * _noise(512, 8, 7) + 0.12 * _noise(512, 256, 12) + 0.06 * _noise(512, 64, 14)
    if style == "marble":
        veins = [np.abs(_noise(512, n, k) - 0.5 + 0.2 * (_noise(512, 32, k + 1) - 0.5)) for n, k in ((4, 21), (8, 23))]
        shade = 1.04 - 0.22 * np.exp(-25 * veins[0]) - 0.08 * np.exp(-40 * veins[1]) + 0.06 * (_noise(512, 8, 25) - 0.5)
    if style == "parquet":
        turned = (x // 128 + y // 128) % 2 == 1
        along, across = np.where(turned, y, x), np.where(turned, x, y)
        tone = 0.92 + 0.12 * _spots(across // 32 + 37 * (along // 128) + 11 * turned)
        seam = (across % 32 < 2) | (along % 128 < 2)
        shade = (0.3 + 0.76 * _grain()[across // 2 % 256, along // 2 % 256]) * tone * np.where(seam, 0.7, 1.04)
    if style == "gingham":
        shade = shade * (1.66 - 0.36 * (x // 32 % 2) - 0.36 * (y // 32 % 2))
    if style == "kilim":  # diamonds in steps
        u, v = (np.abs(a % 128 - 64) // 8 for a in (x, y))
        shade = shade * np.array([1.16, 0.78, 1, 1, 0.86, 1, 1.1, 0.8])[(u + v) // 2 % 8]
    if style in ("woven", "kilim"):
        over = (x // 8 + y // 8) % 2  # threads, and no long lines: they would look like boards
        thread = np.sin(np.where(over, x, y) * np.pi / 8) ** 2
        shade = shade * (0.9 + 0.1 * thread) * (0.98 + 0.1 * _noise(512, 64, 9))
    if style in ("planks", "board"):  # a board has no seams
        row = y // 64
        grain = _grain(512)
        moved = np.take_along_axis(np.roll(grain, 64, 0), (x + row * 137) % 512, 1)
        tone = np.array([1, 0.93, 1.04, 0.96, 0.9, 1.02, 0.95, 0.99])[row]
        seam = (y % 64 < 2) | ((x + row * 190) % 512 < 2)
        shade = (0.2 + 0.85 * moved) * tone * np.where(seam, 0.7 if style == "planks" else 0.96, 1.05)
    return np.clip(np.array(colour, float) * shade[..., None], 0, 255).astype(np.uint8)
