"""Rendering rooms with Mitsuba, which the extra `render` installs.

Scenes, captions and labels need no renderer and are the same everywhere. Pixels differ between Mitsuba's variants by
sampling noise; how much has not been measured.
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
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import Progress, UsageError, cache_home, missing_extra, option, silent, write_bytes
from creperie.world.solid.meshes import TILE, Patches, build, joined, turned
from creperie.world.solid.models import parts_of
from creperie.world.solid.paints import LIGHTS, RUGS, Surface, lab, large_look, surface
from creperie.world.solid.scene import Room
from creperie.world.solid.space import VIEW, WALL, box_of, camera_of, pose_of

VARIANTS = {"cuda": "cuda_ad_rgb", "llvm": "llvm_ad_rgb", "scalar": "scalar_rgb"}
SAMPLES = 16  #: per pixel
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
        file = cache_home() / "rooms-6" / f"{size}-{self.samples}" / f"{room.code}.png"
        if not file.is_file():
            out = BytesIO()
            Image.fromarray(render_room(room, size, samples=self.samples, variant=self.variant)).save(out, "PNG")
            file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(file, out.getvalue())
        return file.read_bytes()

    def photograph_all(self, rooms: Sequence[Room], size: int, progress: Progress = silent) -> None:
        """Render the rooms into the cache, in `workers` processes."""
        variant = find_variant(self.variant)
        studio = replace(self, variant=variant)
        tell = f"render with {variant}" + (
            " (slow: no LLVM library that works was found)" if variant == "scalar" else ""
        )
        with progress(tell, len(rooms), "pictures") as advance:
            if self.workers == 1:
                for room in rooms:
                    studio.photograph(room, size)
                    advance(1)
                return
            with ProcessPoolExecutor(self.workers, mp_context=get_context("spawn")) as pool:
                for _ in pool.map(studio.photograph, rooms, [size] * len(rooms), chunksize=4):
                    advance(1)


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
    """Return whether a first picture can be rendered with this variant, tried in a separate process."""
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
    """Return the picture of a room: (size, size, 3) uint8. `turn` moves the camera around the things by so many
    degrees.
    """
    mi: Any = import_module("mitsuba")

    mi.set_variant(VARIANTS[variant if variant in VARIANTS else find_variant(variant)])
    camera = _camera(mi, room, size, samples, turn)
    light, guide = _light_in(mi, room, camera, True)
    if any(look.glass for _, look in _parts(room)):
        beyond, clear = _light_in(mi, room, camera, False)
        eye, aim = camera_of(room)
        facing = np.abs(guide[..., 3:6] @ (turned("z", turn) @ (aim - eye))) / np.linalg.norm(aim - eye)
        glass = np.abs(guide[..., 6] - clear[..., 6]) > 0.003 * clear[..., 6]
        share = np.where(glass, 0.26 + 0.74 * (1 - np.minimum(facing, 1)) ** 1.2, 0.55)[..., None]  # 0.55 of its shadow
        light = share * light + (1 - share) * beyond * np.where(glass[..., None], _TINT, 1)
    return expose(light)


_TINT = (0.72, 0.87, 0.84)  #: of light that passes through glass


def _light_in(mi: Any, room: Room, camera: dict[str, Any], glass: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with a value per pixel: the light, and the colour, normal and depth of the visible surface.
    Without `glass`, things of glass are left out.
    """
    made: dict[str, Any] = {"type": "scene", "sensor": camera, "sky": _sky(mi, room), "sun": _sun(mi, room)}
    parts = [part for part in _parts(room) if glass or not part[1].glass]
    made["things"] = _painted_mesh(mi, [part for part in parts if not part[1].light])
    shining: dict[Surface, list[Patches]] = {}
    for patches, look in parts:
        if look.light:
            shining.setdefault(look, []).append(patches)
    for k in range(2 - len(shining)):  # always as many lights: another number would be compiled anew
        shining[Surface((k, 0, 0), light=(0, 0, 0))] = [_plane((0, 0, -900), (0.1, 0, 0), (0, 0.1, 0))]
    dull = mi.load_dict({"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.2}})
    for k, (look, patches_of) in enumerate(shining.items()):
        made[f"light{k}"] = _glowing_mesh(mi, look, joined(patches_of), dull)
    scene, seed = mi.load_dict(made), zlib.crc32(room.code.encode()) >> 1
    _keep_variable(mi, scene.sensors()[0], ("aperture_radius", "focus_distance"))
    light = mi.render(scene, integrator=mi.load_dict({"type": "path", "max_depth": 5, "rr_depth": 3}), seed=seed)
    aovs = mi.load_dict({"type": "aov", "aovs": "al:albedo,nn:sh_normal,dd:depth"})
    guide = np.array(mi.render(scene, integrator=aovs, seed=seed, spp=16))[..., -7:]
    return smooth(np.array(light), guide), guide


def _keep_variable(mi: Any, part: Any, names: Sequence[str]) -> None:
    """Keep the named parameters variable in the compiled code, so that it need not be compiled again for
    other values.
    """
    if not mi.variant().startswith("scalar"):
        params = mi.traverse(part)
        for name in names:
            import_module("drjit").make_opaque(params[name])


def _sky(mi: Any, room: Room) -> dict[str, Any]:
    """Return the light that comes from all sides: a bright window, some light from above and the sides, and less from
    below.
    """
    where, half, colour, above, beside = (np.array(v) for v in LIGHTS[room.light])
    up = np.cos(np.linspace(0, np.pi, 64))[:, None, None]
    level = np.where(up > 0, up * above + (1 - up) * beside, beside * (1 + 0.7 * up)) + np.zeros((64, 128, 3))
    x, y, z = where / np.linalg.norm(where)
    row, column = round(64 * math.acos(z) / math.pi), round(128 * math.atan2(x, y) / (2 * math.pi))
    wide = np.arange(-round(16 * float(half)), 1 + round(16 * float(half)))
    level[np.ix_(row + wide, (column + wide) % 128)] = colour
    upright = mi.ScalarTransform4f().rotate([1, 0, 0], 90)
    return {"type": "envmap", "bitmap": mi.Bitmap(level.astype(np.float32)), "to_world": upright}


def _sun(mi: Any, room: Room) -> dict[str, Any]:
    """Return the sunlight: a bright patch on the things and on the wall behind them."""
    eye, aim = camera_of(room)
    where, _, colour, *_ = LIGHTS[room.light]
    wide = float(np.linalg.norm(aim - eye)) * math.tan(math.radians(VIEW / 2))
    at = aim + 4 * wide * np.array(where)
    y, x = (np.mgrid[:64, :64] - 31.5) / 32
    pool = np.clip(3.2 * (1 - np.hypot(x, y)), 0, 1)  # wide enough for all things, darker towards its rim
    far = float(np.linalg.norm(at - aim))
    picture = (pool[..., None] * np.array(colour) * 0.16 * far**2).astype(np.float32)
    return {
        "type": "projector",
        "irradiance": {"type": "bitmap", "bitmap": mi.Bitmap(picture), "raw": True},
        "fov": 2 * math.degrees(math.atan(3.3 * wide / far)),
        "to_world": mi.ScalarTransform4f().look_at(at.tolist(), aim.tolist(), [0, 0, 1]),
    }


def _parts(room: Room) -> list[tuple[Patches, Surface]]:
    parts = _surroundings(room)
    for thing in room.things:
        for paint, patches in parts_of(thing.kind, thing.state):
            parts.append((patches.moved(*pose_of(thing)), surface(paint, thing.colour, thing.material, thing.pattern)))
    return parts


def _camera(mi: Any, room: Room, size: int, samples: int, turn: float) -> dict[str, Any]:
    eye, aim = camera_of(room)
    moved = aim + turned("z", turn) @ (eye - aim)
    far = float(np.linalg.norm(aim - eye))
    return {
        "type": "thinlens",  # the wall behind is a little out of focus, the things are not
        "aperture_radius": 0.0025 * far,
        "focus_distance": far,
        "fov": VIEW,
        "to_world": mi.ScalarTransform4f().look_at(moved.tolist(), aim.tolist(), [0, 0, 1]),
        "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "box"}},
        "sampler": {"type": "multijitter", "sample_count": samples},
    }


def _plane(corner: tuple[float, ...], u: tuple[float, ...], v: tuple[float, ...]) -> Patches:
    a, u_, v_ = (np.array(p, float) for p in (corner, u, v))
    points = np.array([[a, a + u_, a + u_ + v_, a + v_]])
    normal = np.cross(u_, v_) / np.linalg.norm(np.cross(u_, v_))
    wide, high = np.linalg.norm(u_) / TILE, np.linalg.norm(v_) / TILE
    return Patches(points, np.broadcast_to(normal, (1, 4, 3)), np.array([[[0, 0], [wide, 0], [wide, high], [0, high]]]))


def _surroundings(room: Room) -> list[tuple[Patches, Surface]]:
    """Return the surfaces around the things: the ground or table with a rug or runner on it, and the wall with its
    panels and skirting board.
    """
    back, wide, table = WALL[room.setting], 1400.0, room.setting == "table"
    paper = large_look("walls", room.wall, 14)
    below = large_look("grounds", room.ground, 10 if table else 24)
    parts = [(_plane((-wide / 2, back, 0), (wide, 0, 0), (0, 0, 600)), paper)]
    if table:
        look = replace(below, texture=_TOPS.get(below.texture, below.texture))
        front, edge = _front_edge(room), 0.35  # rounded a little
        outline = [(front, -3.2), (front, -edge), (front + edge, 0.0), (back, 0.0)]
        for (y, z), (y1, z1) in pairwise(outline):
            parts.append((_plane((-250, y, z), (500, 0, 0), (0, y1 - y, z1 - z)), look))
        parts.append((_plane((-wide / 2, -500, -72), (wide, 0, 0), (0, 500 + back, 0)), Surface((116, 98, 84), 0.8)))
    else:
        parts.append((_plane((-wide / 2, -500, 0), (wide, 0, 0), (0, 500 + back, 0)), below))
    if (room.wall + room.ground) % 2:
        parts += _rug(room)
    if not table:
        board = _plane((-wide / 2, back - 0.8, 0), (wide, 0, 0), (0, 0, 9))
        parts += [(p, Surface((206, 198, 182), 0.4)) for p in ([board] if room.wall % 2 else [board, *_panels(back)])]
    return parts


#: Floors, and what table tops are made of instead.
_TOPS = {"large planks": "large board", "large tiles": "large terrazzo"}


def _front_edge(room: Room) -> float:
    """Return the y position of the table's front edge: just inside the picture, and nearer to the camera than all
    things.
    """
    eye, aim = camera_of(room)
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    low = ahead - 0.92 * math.tan(math.radians(VIEW / 2)) * np.cross([1.0, 0, 0], ahead)
    seen = eye[1] - eye[2] / low[2] * low[1] if low[2] < 0 else math.inf
    return min(seen, *(box_of(thing)[1] - 1.5 for thing in room.things))


def _panels(back: float) -> list[Patches]:
    """Return painted panels for the lower part of a wall, with a rail above them."""
    wall = _plane((-700, back - 0.1, 9), (1400, 0, 0), (0, 0, 57))
    boxes = [build("box", (-700, back - 1.2, 66, 700, back + 1, 69, 0.4))]
    for x in range(-240, 240, 60):
        boxes += [build("box", (x + a, back - 0.6, 14, x + a + 3, back + 1, 62, 0.2)) for a in (4, 53)]
        boxes += [build("box", (x + 4, back - 0.6, z, x + 56, back + 1, z + 3, 0.2)) for z in (14, 59)]
    return [wall, joined(boxes)]


def _rug_looks() -> list[Surface]:
    return [large_look("rugs", k, 1.0) for k in range(RUGS)]


def _rug(room: Room) -> list[tuple[Patches, Surface]]:
    """Return a rug under the things in a room, or a runner on a table, in the colour that contrasts most with the
    things.
    """
    boxes = np.array([box_of(thing) for thing in room.things])
    things = np.array([lab(surface("main", x.colour, x.material, "").rgb) for x in room.things])
    best = max(_rug_looks(), key=lambda rug: float(np.linalg.norm(things - lab(rug.rgb), axis=1).min()))
    (x0, y0), (x1, y1), table = boxes[:, :2].min(0), boxes[:, 3:5].max(0), room.setting == "table"
    border = 3.0 if table else 14.0
    x0, x1 = (-300.0, 300.0) if table else (x0 - 2 * border, x1 + 2 * border)
    y0, y1 = y0 - 2 * border, min(y1 + 2 * border, WALL[room.setting] - 4)
    y0 = max(y0, _front_edge(room) + 1) if table else y0
    red, green, blue = (round(0.55 * v) for v in best.rgb)
    trim = replace(best, rgb=(red, green, blue), texture="weave")
    stripes = [(0.0, best), (0.45 * border, trim), (0.75 * border, best)]
    return [
        (_plane((x0 + s, y0 + s, 0.05 + 0.02 * k), (x1 - x0 - 2 * s, 0, 0), (0, y1 - y0 - 2 * s, 0)), look)
        for k, (s, look) in enumerate(stripes)
    ]


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
    placed: list[tuple[Patches, Surface]] = []
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
        placed.append((Patches(patches.points, patches.normals, (at * side + (x, y)) / (2048, 1536)), look))
    names = ("roughness", "metallic")
    body: dict[str, Any] = {name: {"type": "mesh_attribute", "name": f"vertex_{name}"} for name in names}
    body |= {"type": "principled", "specular": 0.5, "base_color": {"type": "bitmap", "bitmap": mi.Bitmap(picture)}}
    props = mi.Properties()
    props["bsdf"] = mi.load_dict({"type": "twosided", "bsdf": body})
    data = {
        name: np.concatenate([np.full(p.points[..., 0].size, getattr(look, name), np.float32) for p, look in placed])
        for name in names
    }
    return _mesh(mi, joined([p for p, _ in placed]), props, data)


def _glowing_mesh(mi: Any, look: Surface, patches: Patches, dull: Any) -> Any:
    """Return surfaces that emit light as a mesh. `dull` is the material that determines how they reflect
    other light.
    """
    radiance = {"type": "bitmap", "bitmap": mi.Bitmap(look.shine().astype(np.float32)), "raw": True}
    weight = 1.0 if any(look.light) else 0.001
    props = mi.Properties()
    props["bsdf"] = dull
    props["emitter"] = mi.load_dict({"type": "area", "radiance": radiance, "sampling_weight": weight})
    return _mesh(mi, Patches(patches.points, patches.normals, patches.uv / look.tiles), props, {})


def _mesh(mi: Any, patches: Patches, props: Any, data: dict[str, np.ndarray]) -> Any:
    n = len(patches.points) * 4
    made = mi.Mesh("", n, n // 2, props=props, has_vertex_normals=True, has_vertex_texcoords=True)
    for name, values in data.items():
        made.add_attribute(f"vertex_{name}", 1, values)
    first = np.arange(0, n, 4)[:, None]
    params = mi.traverse(made)
    for key, value in (("positions", patches.points), ("normals", patches.normals), ("texcoords", patches.uv)):
        params[f"vertex_{key}"] = np.ascontiguousarray(value, np.float32).ravel()
    params["faces"] = np.concatenate([first + [0, 1, 2], first + [0, 2, 3]]).astype(np.uint32).ravel()
    params.update()
    return made


def smooth(light: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Return the light with less noise, by averaging within each surface. `guide` holds the colour, normal and depth at
    each pixel.
    """
    light, guide = (np.nan_to_num(layer, posinf=0, neginf=0) for layer in (light, guide))  # a ray that went astray
    albedo, normal, depth = guide[..., -7:-4], guide[..., -4:-1], guide[..., -1:]
    albedo = np.clip(albedo, 0.04, 1)
    light = _despeckled(np.minimum(light / albedo, 60))
    likeness = np.concatenate([4 * albedo, 3 * normal, depth / np.maximum(depth.mean() * 0.04, 1e-3)], 2)
    for step in (1, 2, 4, 8):
        light = _averaged(light, likeness, step)
    return np.asarray(light * albedo)


def expose(light: np.ndarray) -> np.ndarray:
    """Return the light as a picture. Very bright parts glow, corners are darkened, and highlights are softened. The
    exposure is longer for dark pictures, and shorter for bright ones and those with large white parts.
    """
    high, wide = light.shape[:2]
    level = light.max(2, keepdims=True)
    glow = light * np.clip(1 - 3 / np.maximum(level, 1e-6), 0, 1)
    for axis, n in ((0, high), (1, wide)):
        far = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n
        spread = 0.8 * np.exp(-((far / 0.012) ** 2)) + 0.2 * np.exp(-((far / 0.05) ** 2))
        glow = np.moveaxis(np.tensordot(spread / spread.sum(1).max(), glow, (1, axis)), 0, axis)
    y, x = np.mgrid[-1 : 1 : high * 1j, -1 : 1 : wide * 1j]
    grey = light.mean(2)
    middle, bright = np.exp(np.log(grey + 0.01).mean()), np.percentile(grey, 98)
    time = min(float(np.clip(math.sqrt(0.48 / middle), 0.8, 1.35)), max(0.9, 1.6 / bright))
    seen = 0.57 * time * (light / np.maximum(level / 4, 1) + 0.25 * glow) * (1 - 0.1 * (x**2 + y**2))[..., None]
    mapped = seen * (2.51 * seen + 0.03) / (seen * (2.43 * seen + 0.59) + 0.14)
    coded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-6) ** (1 / 2.4) - 0.055)
    return (np.clip(coded, 0, 1) * 255 + 0.5).astype(np.uint8)


def _despeckled(light: np.ndarray) -> np.ndarray:
    """Return the light without speckles: each pixel is clipped to lie between its second-darkest and its
    third-brightest neighbour.
    """
    wide = np.pad(light, ((1, 1), (1, 1), (0, 0)), mode="edge")
    high, across = light.shape[:2]
    around = [wide[y : y + high, x : x + across] for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    ranked = np.partition(np.stack(around), (1, 5), axis=0)
    return np.clip(light, ranked[1], ranked[5])


def _blurred(level: np.ndarray) -> np.ndarray:
    """Return each value averaged with those of the eight pixels around it; nearer ones have more weight."""
    for axis in (0, 1):
        wide = np.pad(level, [(int(k == axis),) * 2 for k in range(3)], mode="edge")
        below, same, above = (np.take(wide, np.arange(k, k + level.shape[axis]), axis) for k in range(3))
        level = (below + 2 * same + above) / 4
    return level


def _averaged(light: np.ndarray, guide: np.ndarray, step: int) -> np.ndarray:
    """Return the light averaged over neighbours `step` pixels away. Neighbours on the same surface and of similar
    brightness have the most weight.
    """
    pad = ((step, step), (step, step), (0, 0))
    wide, near = np.pad(light, pad, mode="edge"), np.pad(guide, pad, mode="edge")
    total, weights = np.zeros_like(light), np.zeros_like(light[..., :1])
    grey = light.mean(2, keepdims=True)
    level = np.log(grey + 0.05) / 2 + np.log(_blurred(grey) + 0.05) / 2  # noise alone makes edges ragged
    levels = np.pad(level, pad, mode="edge")
    high, across = light.shape[:2]
    for dy in (0, step, 2 * step):
        for dx in (0, step, 2 * step):
            other = wide[dy : dy + high, dx : dx + across]
            apart = ((near[dy : dy + high, dx : dx + across] - guide) ** 2).sum(2, keepdims=True)
            apart = apart + 18.0 / step**0.8 * (levels[dy : dy + high, dx : dx + across] - level) ** 2
            weight = np.exp(-apart) * (2 - (dy != step)) * (2 - (dx != step))
            total += weight * other
            weights += weight
    return total / weights
