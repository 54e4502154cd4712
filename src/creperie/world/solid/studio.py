"""Rendering rooms with Mitsuba, which the extra `render` installs.

Scenes, captions and labels need no renderer and are the same everywhere. A variant of Mitsuba gives the same pixels
each time. Between LLVM and scalar, pixels differ by 3 to 5 of 255 on average, and 99 % of them by less than 35.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import Progress, UsageError, cache_home, missing_extra, option, silent, write_bytes
from creperie.world.solid.develop import can_denoise, defocus, denoised, expose
from creperie.world.solid.furnish import plane, surroundings
from creperie.world.solid.meshes import Patches, build, fuzz, joined, turned
from creperie.world.solid.models import SOLIDS, drawn_of
from creperie.world.solid.paints import LIGHTS, SHADE, Surface, linear, surface
from creperie.world.solid.scene import Room, Solid
from creperie.world.solid.space import VIEW, camera_of, points_of, pose_of

VARIANTS = {"cuda": "cuda_ad_rgb", "llvm": "llvm_ad_rgb", "scalar": "scalar_rgb"}
SAMPLES = 4  #: per pixel
_LIBRARY = "DRJIT_LIBLLVM_PATH"
_LIBRARIES = (
    "usr/lib/*/libLLVM*.so*",
    "usr/lib/llvm-*/lib/libLLVM*.so*",
    "usr/lib64/libLLVM*.so*",
    "opt/homebrew/opt/llvm*/lib/libLLVM.dylib",
)
_OLDEST = 17  #: older libraries abort while they generate code


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to render rooms. Rendered pictures are cached, so an interrupted run can be resumed."""

    samples: int = option(SAMPLES, "Samples per pixel of rendered pictures.", minimum=1)
    variant: str = option("auto", "How to render: the fastest that works, or this one.", choices=("auto", *VARIANTS))
    workers: int = option(1, "Processes that render.", minimum=1)

    def photograph(self, room: Room, size: int) -> bytes:
        """Return the picture of a room as the content of a PNG file. It is read from the cache or, if it is not there,
        rendered.
        """
        file = self.file_of(room.code, size)
        if not file.is_file():
            out = BytesIO()
            Image.fromarray(render_room(room, size, samples=self.samples, variant=self.variant)).save(out, "PNG")
            file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(file, out.getvalue())
        return file.read_bytes()

    def file_of(self, code: str, size: int) -> Path:
        """Return where the picture of the room with this code is cached."""
        return cache_home() / "rooms-16" / f"{size}-{self.samples}" / f"{code}.png"

    def photograph_all(self, rooms: Sequence[Room], size: int, progress: Progress = silent) -> None:
        """Render the rooms into the cache, in `workers` processes."""
        variant = find_variant(self.variant)
        studio = replace(self, variant=variant)
        tell = f"render with {variant}" + (
            " (slow: no LLVM library that works was found)" if variant == "scalar" else ""
        )
        tell += "" if can_denoise() else " (grainy: mitsuba-oidn is not installed)"
        with progress(tell, len(rooms), "pictures") as advance:
            if self.workers == 1:
                for room in rooms:
                    studio.photograph(room, size)
                    advance(1)
                return
            with ProcessPoolExecutor(self.workers, get_context("spawn"), _use_one_thread, (variant,)) as pool:
                for _ in pool.map(studio.photograph, rooms, [size] * len(rooms), chunksize=4):
                    advance(1)


def _use_one_thread(variant: str) -> None:
    """Let this process render with one thread: the threads of several processes would wait for each other."""
    if variant == "llvm":
        import_module("mitsuba").set_variant(VARIANTS[variant])
        import_module("drjit").set_thread_count(1)


def find_variant(wanted: str = "auto") -> str:
    """Return the wanted Mitsuba variant or, for `auto`, the fastest that works on this machine: cuda, llvm or scalar.

    Each variant is tried in a separate process, because an LLVM library of the wrong version aborts the process.
    """
    _mitsuba_or_error()
    if wanted == "scalar":
        return wanted
    return _find(wanted)


def _mitsuba_or_error() -> None:
    try:
        import_module("mitsuba")
    except ImportError:
        raise missing_extra("mitsuba", "render") from None


@cache
def _find(wanted: str) -> str:
    if wanted in ("auto", "cuda") and any(Path("/dev").glob("nvidia[0-9]*")) and _can_render("cuda"):
        return "cuda"
    if wanted in ("auto", "llvm"):
        for library in [os.environ[_LIBRARY]] if _LIBRARY in os.environ else llvm_libraries():
            if _can_render("llvm", library):
                os.environ[_LIBRARY] = library
                return "llvm"
    if wanted != "auto":
        llvm = f"install LLVM {_OLDEST} or newer (Debian: libllvm19), or name it in {_LIBRARY}"
        hint = llvm if wanted == "llvm" else "use the variant `auto`, which finds one that works"
        raise UsageError(f"Mitsuba cannot render with {wanted} on this machine", hint=hint)
    return "scalar"


def llvm_libraries() -> list[str]:
    """Return the paths of the LLVM libraries on this machine that are new enough, newest first."""
    found = {str(path.resolve()) for pattern in _LIBRARIES for path in Path("/").glob(pattern)}
    versions = [(int(m.group(1)), path) for path in found if (m := re.search(r"(?:so\.|llvm-|LLVM-|@)(\d+)", path))]
    return [path for version, path in sorted(versions, reverse=True) if version >= _OLDEST]


def _can_render(variant: str, library: str = "") -> bool:
    """Return whether a test picture can be rendered with this variant, tried in a separate process."""
    code = f"import creperie.world.solid.studio as s; s.render_room(s.Room(()), 16, samples=1, variant={variant!r})"
    env = os.environ | ({_LIBRARY: library} if library else {})
    try:
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def render_room(
    room: Room, size: int = 224, *, samples: int = SAMPLES, variant: str = "auto", turn: float = 0
) -> np.ndarray:
    """Return the picture of a room: (size, size, 3) uint8. `turn` is the angle, in degrees, by which the camera is
    moved around the things.
    """
    mi: Any = import_module("mitsuba")

    mi.set_variant(VARIANTS[variant if variant in VARIANTS else find_variant(variant)])
    camera = _camera(mi, room, size, samples, turn)
    parts = _parts(room)
    light, guide = _light_in(mi, room, camera, parts)
    things = [points_of(thing, 40) - camera_of(room)[0] for thing in room.things]
    last = max((float(np.linalg.norm(points, axis=1).max()) for points in things), default=math.inf)
    return expose(defocus(light, guide, last))


def _light_in(
    mi: Any, room: Room, camera: dict[str, Any], parts: Sequence[tuple[Patches, Surface]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return each pixel's light, and the colour, normal and depth of its visible surface."""
    made: dict[str, Any] = {"type": "scene", "sensor": camera, "sky": _sky(mi, room)}
    made["things"] = _painted_mesh(mi, [part for part in parts if not part[1].light and not part[1].glass])
    made["glass"] = _glass_mesh(mi, [part for part in parts if part[1].glass])
    lamps: dict[Surface, list[Patches]] = {}
    for patches, look in parts:
        if look.light:
            lamps.setdefault(look, []).append(patches)
    for k in range(3 - len(lamps)):  # always as many lights: another number would be compiled anew
        lamps[Surface((k, 0, 0), light=(0, 0, 0))] = [plane((0, 0, -900), (0.1, 0, 0), (0, 0.1, 0))]
    for k, (look, patches_of) in enumerate(lamps.items()):
        made[f"light{k}"] = _glowing_mesh(mi, look, patches_of)
    scene, seed = mi.load_dict(made), zlib.crc32(room.code.encode()) >> 1
    path = {"type": "path", "max_depth": 6, "rr_depth": 3}
    aovs = {"type": "aov", "aovs": "al:albedo,nn:sh_normal,dd:depth"}
    light = np.array(mi.render(scene, integrator=mi.load_dict(path), seed=seed))
    samples = 4 * camera["sampler"]["sample_count"]  # cheap, and little noise here keeps edges and textures sharp
    guide = np.array(mi.render(scene, integrator=mi.load_dict(aovs), seed=seed, spp=samples))[..., -7:]
    return denoised(light, guide), guide


def _sky(mi: Any, room: Room) -> dict[str, Any]:
    """Return the light from all sides. A large window is beside the camera, and the sun is farther to the side, so that
    shadows are seen. Some light comes from above and from the sides, and less from below. The view through the window
    in the wall is also part of this light.
    """
    where, half, colour, above, beside = (np.array(v) for v in LIGHTS[room.light])
    up = np.cos(np.linspace(0, np.pi, 128))[:, None, None]
    level = np.where(up > 0, up * above + (1 - up) * beside, beside * (1 + 0.7 * up)) + np.zeros((128, 256, 3))
    view = np.where(up > -0.2, 1.6 + 0.4 * up, 0.6 + 0.2 * np.sin(np.arange(256) * 1.7)[:, None])
    level *= np.where((np.sin(np.arange(256)[:, None] * 0.3) > 0.1) | (up > 0.75), 1.12, 0.5)  # furniture, for metal
    level[:, np.r_[:48, -48:0]] = view[:, np.r_[:48, -48:0]] * np.where(up > -0.2, (0.92, 0.97, 1.05), (0.5, 0.6, 0.42))
    wide = round(32 * float(half))
    panes = np.array([k for k in range(-wide, 1 + wide) if abs(k) > 1])
    level[_towards(where, panes)] = colour
    for axis in (0, 1):  # no hard edges, which glass would show
        level = np.mean([np.roll(level, k, axis) for k in range(-2, 3)], axis=0)
    level[_towards(where * (1.1, 0.3, 1), np.arange(-2, 3))] = 75 * colour
    upright = mi.ScalarTransform4f().rotate([1, 0, 0], 90)
    return {"type": "envmap", "bitmap": mi.Bitmap(level.astype(np.float32)), "to_world": upright}


def _towards(where: np.ndarray, at: np.ndarray) -> Any:
    """Return a NumPy index that selects pixels in the image of the sky, around the pixel in the direction of the point
    `where`. `at` holds their offsets from this pixel, both down and across.
    """
    x, y, z = where / np.linalg.norm(where)
    row, column = round(128 * math.acos(z) / math.pi), round(256 * math.atan2(x, y) / (2 * math.pi))
    return np.ix_(row + at, (column + at) % 256)


def _parts(room: Room) -> list[tuple[Patches, Surface]]:
    parts = surroundings(room)
    for k, thing in enumerate(room.things):
        for paint, patches in drawn_of(thing.kind, thing.state, bool(thing.pattern), k + room.wall):
            look, own = surface(paint, thing.colour, thing.material, thing.pattern), patches
            if paint in _HANDS:  # no two clocks tell the same time
                own = own.moved(np.eye(3), (0, 0, -10)).moved(turned("y", _HANDS[paint] * k), (0, 0, 10))
            if look.texture == "fur" and paint == "main":
                own = joined([own, _outside_light_fur(fuzz(own, 24000, 0.45), thing)])
            if (thing.kind, paint, look.pattern) == ("bottle", "main", "") and thing.colour in _BOTTLES:
                red, green, blue = (v // 2 for v in look.rgb)
                look = replace(look, rgb=(red, green, blue), roughness=0.02, glass=True)
            if paint == "cream":
                own = joined([own, fuzz(own, 5000, 0.25)])
            if (
                paint == "main"
                and thing.material == "plastic"
                and SOLIDS[thing.kind].place[0] == "floor"
                and SOLIDS[thing.kind].plain
            ):
                look = replace(look, texture="painted", tiles=3.5)
            elif paint == "main" and not (look.pattern or look.light):  # nor are two things quite of one tone
                red, green, blue = (round(v * (0.94 + 0.08 * (k * 0.618 % 1))) for v in look.rgb)
                look = replace(look, rgb=(red, green, blue))
            parts.append((own.moved(*pose_of(thing)), look))
    return parts


def _outside_light_fur(hair: Patches, bear: Solid) -> Patches:
    """Return the hairs without those that would pierce the bear's light parts, such as its muzzle."""
    light = dict(drawn_of(bear.kind, bear.state))["cream"].points.reshape(
        -1, len(build("ball", (0, 0, 0, 1, 1, 1)).points) * 4, 3
    )
    low, high = light.min(1), light.max(1)
    off = (hair.points[:, None, 0] - (low + high) / 2) / ((high - low) / 2)
    free = ((off**2).sum(2) > 1.15).all(1)
    return Patches(hair.points[free], hair.normals[free], hair.uv[free])


_BOTTLES = ("red", "orange", "yellow", "green", "blue", "purple", "brown")  #: colours of bottles of dyed glass
_HANDS = {"hour": 35, "minute": 80}  #: degrees by which hands of the next clock are turned


def _camera(mi: Any, room: Room, size: int, samples: int, turn: float) -> dict[str, Any]:
    eye, aim = camera_of(room)
    moved = aim + turned("z", turn) @ (eye - aim)
    return {
        "type": "perspective",
        "fov": VIEW,
        "to_world": mi.ScalarTransform4f().look_at(moved.tolist(), aim.tolist(), [0, 0, 1]),
        "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "box"}},
        "sampler": {"type": "multijitter", "sample_count": samples},
    }


def _cell(k: int) -> tuple[int, int, int]:
    """Return the left, top and width of cell `k` in the image that holds all textures: two large cells, then small
    ones.
    """
    return (1024 * k, 0, 1024) if k < 2 else (256 * ((k - 2) % 8), 1024 + 256 * ((k - 2) // 8), 256)


def _painted_mesh(mi: Any, parts: Sequence[tuple[Patches, Surface]]) -> Any:
    """Return all surfaces that emit no light as one mesh with one texture. With more meshes or materials, rendering
    would take longer.
    """
    cells: dict[Surface, int] = {}
    picture = np.zeros((1536, 2048, 3), np.uint8)
    shine = np.zeros((2, 192, 256, 1), np.float32)  # roughness and metallic, one value per 8 × 8 pixels
    placed: list[Patches] = []
    for patches, look in parts:
        if look.plain:
            x, y, side = (v + w for v, w in zip(_cell(17), (8 * (len(placed) % 30), 8 * (len(placed) // 30), -248)))
            at = np.full(patches.uv.shape, 0.5)
            picture[y : y + side, x : x + side] = look.rgb
        else:
            x, y, side = _cell(min(cells.setdefault(look, len(cells)), 16))
            repeats = 2 if side == 1024 or look.texture == "wood" else 4
            patches = patches.split(look.tiles * (repeats - 1.2))
            at = (patches.uv / look.tiles - np.floor(patches.uv / look.tiles).min(1, keepdims=True) + 0.1) / repeats
            drawn = Image.fromarray(look.picture()).resize((side // repeats,) * 2, Image.Resampling.BOX)
            picture[y : y + side, x : x + side] = np.tile(np.asarray(drawn), (repeats, repeats, 1))
        own = np.reshape((look.roughness, look.metallic), (2, 1, 1))
        shine[:, y // 8 : (y + side) // 8, x // 8 : (x + side) // 8, 0] = own
        placed.append(Patches(patches.points, patches.normals, (at * side + (x, y)) / (2048, 1536)))
    body: dict[str, Any] = {  # textures: attributes of the mesh would nearly double the time
        name: {"type": "bitmap", "bitmap": mi.Bitmap(values), "raw": True, "filter_type": "nearest"}
        for name, values in zip(("roughness", "metallic"), shine)
    }
    body |= {"type": "principled", "specular": 0.5, "base_color": {"type": "bitmap", "bitmap": mi.Bitmap(picture)}}
    props = mi.Properties()
    props["bsdf"] = mi.load_dict({"type": "twosided", "bsdf": body})
    return _mesh(mi, joined(placed), props)


def _glass_mesh(mi: Any, parts: Sequence[tuple[Patches, Surface]]) -> Any:
    """Return all surfaces of glass as one mesh. Its texture holds the colour of each piece."""
    colours = np.ones((1, 16, 3), np.float32)
    dot = plane((0, 0, -900), (0.1, 0, 0), (0, 0.1, 0))
    placed = [dot]
    for k, (patches, look) in enumerate(parts):
        own = linear(look.rgb)
        colours[0, k % 16] = (own / own.max()) ** 0.5 if own.max() > 0.016 else (0.95, 0.98, 0.975)
        placed.append(replace(patches, uv=np.full(patches.uv.shape, (k % 16 + 0.5) / 16)))
    bitmap = {"type": "bitmap", "bitmap": mi.Bitmap(colours), "raw": True, "filter_type": "nearest"}
    props = mi.Properties()
    props["bsdf"] = mi.load_dict({"type": "dielectric", "int_ior": 1.5, "specular_transmittance": bitmap})
    return _mesh(mi, joined(placed), props)


def _glowing_mesh(mi: Any, look: Surface, pieces: Sequence[Patches]) -> Any:
    """Return one mesh of all surfaces that emit light. Meshes and textures always have the same size, because another
    size would make the renderer compile its code again.

    The renderer samples the starting points of light from the texture, so every piece has its own part of the texture.
    Lampshades are an exception, because enough paths of light reach them by chance.
    """
    maps: dict[str, Any] = {}
    for name, values in (
        ("radiance", look.shine()),
        ("reflectance", linear(look.picture()) * (0.3 if look.shade else 1)),
    ):
        rows, columns = (np.arange(n) * m // n for n, m in zip((512, 64), values.shape))
        bitmap = mi.Bitmap(values[np.ix_(rows, columns)].astype(np.float32))
        maps[name] = {"type": "bitmap", "bitmap": bitmap, "raw": True}
    placed = []
    for k, piece in enumerate(pieces):
        low, high = piece.uv.min((0, 1)), piece.uv.max((0, 1))
        own = ((piece.uv - low) / (high - low) + (k, 0)) / (len(pieces), 1)
        placed.append(replace(piece, uv=piece.uv / (look.tiles, SHADE) if look.shade else own))
    props = mi.Properties()
    props["bsdf"] = mi.load_dict({"type": "diffuse", "reflectance": maps["reflectance"]})
    weight = float(any(look.light) and not look.shade)
    props["emitter"] = mi.load_dict({"type": "area", "radiance": maps["radiance"], "sampling_weight": weight})
    dot = plane((0, 0, -900), (0.1, 0, 0), (0, 0.1, 0))
    spare = -(sum(len(piece.points) for piece in placed) + 2) % 4096
    blank = Patches(*(np.repeat(field[:1], spare, 0) for field in (0 * dot.points, dot.normals, dot.uv)))
    return _mesh(mi, joined([dot, *placed, blank, dot]), props)


def _mesh(mi: Any, patches: Patches, props: Any) -> Any:
    n = len(patches.points) * 4
    made = mi.Mesh("", n, n // 2, props=props, has_vertex_normals=True, has_vertex_texcoords=True)
    first = np.arange(0, n, 4)[:, None]
    params = mi.traverse(made)
    for key, value in (("positions", patches.points), ("normals", patches.normals), ("texcoords", patches.uv)):
        params[f"vertex_{key}"] = _aligned(value)
    params["faces"] = np.concatenate([first + [0, 1, 2], first + [0, 2, 3]]).astype(np.uint32).ravel()
    params.update()
    return made


def _aligned(values: np.ndarray) -> np.ndarray:
    """Return the values as float32, flat, at an address for which Dr.Jit always compiles the same code."""
    room = np.empty(values.size + 16, np.float32)
    first = -room.ctypes.data % 64 // 4
    room[first : first + values.size] = values.ravel()
    return room[first : first + values.size]
