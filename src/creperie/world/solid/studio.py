"""The studio: rendering of rooms with Mitsuba, which the extra `render` installs.

Scenes, captions and labels need no renderer and are the same everywhere. Pixels differ between Mitsuba's variants by
the noise of their samples; how much was not measured.
"""

from __future__ import annotations

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
from creperie.world.solid.meshes import TILE, Patches, joined, turned
from creperie.world.solid.models import parts_of
from creperie.world.solid.paints import Surface, ground_look, surface, wall_look
from creperie.world.solid.scene import Room
from creperie.world.solid.space import VIEW, WALL, camera_of, place

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
#: where the main light is, its half size, its colour; then the light from all sides
_LIGHTS = (
    ((-1.1, -0.8, 1.5), 0.55, (11, 10.4, 9.6), 0.42),
    ((1.2, -0.7, 1.4), 0.55, (11, 10.6, 10), 0.42),
    ((0.3, -0.5, 1.8), 0.4, (16, 13.5, 10.5), 0.3),
    ((-0.6, -1.3, 1.6), 0.9, (4.4, 4.5, 4.7), 0.55),
)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How rooms are rendered. Finished pictures are kept in creperie's cache, so that an interrupted run goes on."""

    samples: int = option(SAMPLES, "Samples per pixel of rendered pictures.", minimum=1)
    variant: str = option("auto", "How to render: the fastest that works, or this one.", choices=("auto", *VARIANTS))
    workers: int = option(1, "Processes that render.", minimum=1)

    def photograph(self, room: Room, size: int) -> bytes:
        """Return the picture of a room as a PNG file, from the cache if it is there."""
        file = cache_home() / "rooms" / f"{size}-{self.samples}" / f"{room.code}.png"
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
    """Return the fastest way to render that works here: cuda, llvm or scalar; or the wanted one.

    Each is tried in a process of its own, because a library of the wrong version aborts the process.
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
    if wanted in ("auto", "cuda") and any(Path("/dev").glob("nvidia[0-9]*")) and _works("cuda"):
        return "cuda"
    if wanted in ("auto", "llvm"):
        for library in [os.environ[_LIBRARY]] if _LIBRARY in os.environ else llvm_libraries():
            if _works("llvm", library):
                os.environ[_LIBRARY] = library
                return "llvm"
    if wanted != "auto":
        hint = (
            f"install LLVM {_OLDEST} or newer (Debian: libllvm19), or name it in {_LIBRARY}" if wanted == "llvm" else ""
        )
        raise UsageError(f"Mitsuba cannot render with {wanted} here", hint=hint)
    return "scalar"


def llvm_libraries() -> list[str]:
    """Return the LLVM libraries of this machine that are new enough, newest first."""
    found = {str(path.resolve()) for pattern in _LIBRARIES for path in Path("/").glob(pattern)}
    versions = [(int(m.group(1)), path) for path in found if (m := re.search(r"(?:so\.|llvm-|LLVM-|@)(\d+)", path))]
    return [path for version, path in sorted(versions, reverse=True) if version >= _OLDEST]


def _works(variant: str, library: str = "") -> bool:
    """Return whether a first picture comes out, in a process of its own."""
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
    """Return the picture of a room: (size, size, 3) uint8. `turn` moves the camera around the things, in degrees."""
    mi: Any = import_module("mitsuba")

    mi.set_variant(VARIANTS[variant if variant in VARIANTS else find_variant(variant)])
    made: dict[str, Any] = {"type": "scene", "sensor": _camera(mi, room, size, samples, turn)}
    made["sky"] = {"type": "constant", "radiance": _LIGHTS[room.light][3]}
    made |= {f"part{k}": mesh(mi, f"part{k}", parts) for k, parts in enumerate(_groups(room))}
    scene, seed = mi.load_dict(made), zlib.crc32(room.code.encode()) >> 1
    if variant != "scalar":  # lights as data: as constants, each would be compiled anew
        values = mi.traverse(scene)
        values.keep(".*radiance.*")
        for key in values.keys():  # noqa: SIM118  (no dict)
            import_module("drjit").make_opaque(values[key])
            values[key] = values[key]
        values.update()
    light = mi.render(scene, integrator=mi.load_dict({"type": "path", "max_depth": 5}), seed=seed)
    guide = mi.load_dict({"type": "aov", "aovs": "al:albedo,nn:sh_normal,dd:depth"})
    return develop(np.array(light), np.array(mi.render(scene, integrator=guide, seed=seed, spp=8)))


def _groups(room: Room) -> list[list[tuple[Patches, Surface]]]:
    """Return the parts of the picture by their look, those with plain looks together.

    Unseen parts are added until the number of groups is a usual one: every new number is compiled anew, for seconds.
    """
    groups: dict[Surface | None, list[tuple[Patches, Surface]]] = {}
    parts = [*_surroundings(room), _window(room)]
    for thing in room.things:
        for paint, patches in parts_of(thing.kind, thing.state):
            parts.append((patches.moved(*place(thing)), surface(paint, thing.colour, thing.material, thing.pattern)))
    nowhere = _plane((0, 0, -900), (0.1, 0, 0), (0, 0.1, 0))
    parts += [(nowhere, surface(*look, "")) for look in _ALWAYS]
    for patches, look in parts:
        groups.setdefault(None if look.plain else look, []).append((patches, look))
    drawn = [group for look, group in groups.items() if look and not (look.glass or look.light)]
    drawn += [[(nowhere, Surface((k, 0, 0), texture="wood"))] for k in range(-len(drawn) % 6)]
    return [
        *drawn,
        groups[None],
        *(group for look, group in sorted(groups.items(), key=str) if look and (look.glass or look.light)),
    ]


_ALWAYS = (("flame", "", ""), ("glow", "", ""), ("main", "", "glass"), ("main", "red", "plastic"))


def _camera(mi: Any, room: Room, size: int, samples: int, turn: float) -> dict[str, Any]:
    eye, aim = camera_of(room)
    moved = aim + turned("z", turn) @ (eye - aim)
    return {
        "type": "perspective",
        "fov": VIEW,
        "to_world": mi.ScalarTransform4f().look_at(moved.tolist(), aim.tolist(), [0, 0, 1]),
        "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "gaussian"}},
        "sampler": {"type": "independent", "sample_count": samples},
    }


def _window(room: Room) -> tuple[Patches, Surface]:
    """Return the main light: a bright square that faces the things, behind the camera."""
    where, half, colour, _ = _LIGHTS[room.light]
    beyond = 1.1 * float(np.linalg.norm(camera_of(room)[0]) / np.linalg.norm(where))
    far = max({"table": 110.0, "room": 380.0}[room.setting], beyond)
    at = far * np.array(where)
    across = np.cross(at, [0, 0, 1.0])
    across *= 2 * half * far / np.linalg.norm(across)
    along = np.cross(across, at) / np.linalg.norm(at)
    return _plane(tuple(at - (across + along) / 2), tuple(across), tuple(along)), Surface((255, 255, 255), light=colour)


def _plane(corner: tuple[float, ...], u: tuple[float, ...], v: tuple[float, ...]) -> Patches:
    a, u_, v_ = (np.array(p, float) for p in (corner, u, v))
    points = np.array([[a, a + u_, a + u_ + v_, a + v_]])
    normal = np.cross(u_, v_) / np.linalg.norm(np.cross(u_, v_))
    wide, high = np.linalg.norm(u_) / TILE, np.linalg.norm(v_) / TILE
    return Patches(points, np.broadcast_to(normal, (1, 4, 3)), np.array([[[0, 0], [wide, 0], [wide, high], [0, high]]]))


def _surroundings(room: Room) -> list[tuple[Patches, Surface]]:
    """Return the ground or the table, the wall behind and its skirting board."""
    back = WALL[room.setting]
    paper = wall_look(room.wall, 6 if room.setting == "table" else 10)
    below = ground_look(room.ground, 10 if room.setting == "table" else 24)
    low = -80.0 if room.setting == "table" else 0.0
    wall = _plane((-700, back, low), (1400, 0, 0), (0, 0, 600)), paper
    if room.setting == "table":
        top, edge = ((-90, -300, 0), (180, 0, 0), (0, 355, 0)), ((-90, 55, -5), (180, 0, 0), (0, 0, 5))
        return [wall, (_plane(*top), below), (_plane(*edge), below)]
    floor = _plane((-700, -500, 0), (1400, 0, 0), (0, 500 + back, 0)), below
    return [wall, floor, (_plane((-700, back - 0.4, 0), (1400, 0, 0), (0, 0, 9)), Surface((236, 236, 232)))]


def mesh(mi: Any, name: str, parts: Sequence[tuple[Patches, Surface]]) -> Any:
    """Return patches as one mesh of triangles; parts with plain looks keep their colours, others share the first look.

    Surfaces differ in data only, never in structure: the renderer compiles each structure anew, which takes seconds.
    """
    patches, look = joined([part for part, _ in parts]), parts[0][1]
    n = len(patches.points) * 4
    props = mi.Properties()
    props["bsdf"] = mi.load_dict(_bsdf(mi, look))
    if look.light:
        props["emitter"] = mi.load_dict({"type": "area", "radiance": {"type": "rgb", "value": list(look.light)}})
    made = mi.Mesh(name, n, n // 2, props=props, has_vertex_normals=True, has_vertex_texcoords=True)
    counts = [len(part.points) * 4 for part, _ in parts]
    for key, values in (
        ("color", [[((v / 255 + 0.055) / 1.055) ** 2.4 for v in each.rgb] for _, each in parts]),
        ("roughness", [[each.roughness] for _, each in parts]),
        ("metallic", [[each.metallic] for _, each in parts]),
    ):
        data = np.repeat(np.array(values, np.float32), counts, 0)
        made.add_attribute(f"vertex_{key}", data.shape[1], data.ravel())
    first = np.arange(0, n, 4)[:, None]
    params = mi.traverse(made)
    for key, value in (
        ("positions", patches.points),
        ("normals", patches.normals),
        ("texcoords", patches.uv / look.tiles),
    ):
        params[f"vertex_{key}"] = np.ascontiguousarray(value, np.float32).ravel()
    params["faces"] = np.concatenate([first + [0, 1, 2], first + [0, 2, 3]]).astype(np.uint32).ravel()
    params.update()
    return made


def _bsdf(mi: Any, look: Surface) -> dict[str, Any]:
    if look.glass:
        return {"type": "thindielectric", "specular_transmittance": {"type": "rgb", "value": [0.84, 0.94, 0.91]}}
    if look.light:
        return {"type": "diffuse"}
    names = {"base_color": "color", "roughness": "roughness", "metallic": "metallic"}
    body: dict[str, Any] = {key: {"type": "mesh_attribute", "name": f"vertex_{name}"} for key, name in names.items()}
    body |= {"type": "principled", "specular": 0.5}
    if not look.plain:
        body["base_color"] = {"type": "bitmap", "bitmap": mi.Bitmap(look.picture()), "wrap_mode": "repeat"}
    return {"type": "twosided", "bsdf": body}


def develop(light: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Return light as a picture, its noise smoothed within surfaces; the guide has albedo, normal and depth."""
    light, guide = (np.nan_to_num(layer, posinf=0, neginf=0) for layer in (light, guide))  # a ray that went astray
    albedo, normal, depth = guide[..., -7:-4], guide[..., -4:-1], guide[..., -1:]
    albedo = np.clip(albedo, 0.04, 1)
    light = np.minimum(light / albedo, 12)
    for step in (1, 2, 4):
        light = _smooth(
            light, np.concatenate([4 * albedo, 3 * normal, depth / np.maximum(depth.mean() * 0.04, 1e-3)], 2), step
        )
    seen = 1.35 * light * albedo
    mapped = seen * (1 + seen / 9) / (1 + seen * 0.55)  # a soft shoulder for bright parts
    coded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-6) ** (1 / 2.4) - 0.055)
    return (np.clip(coded, 0, 1) * 255 + 0.5).astype(np.uint8)


def _smooth(light: np.ndarray, guide: np.ndarray, step: int) -> np.ndarray:
    """Return the light averaged over neighbours `step` pixels away that lie on the same surface and are as bright."""
    pad = ((step, step), (step, step), (0, 0))
    wide, near = np.pad(light, pad, mode="edge"), np.pad(guide, pad, mode="edge")
    total, weights = np.zeros_like(light), np.zeros_like(light[..., :1])
    level = np.log(light.mean(2, keepdims=True) + 0.05)
    high, across = light.shape[:2]
    for dy in (0, step, 2 * step):
        for dx in (0, step, 2 * step):
            other = wide[dy : dy + high, dx : dx + across]
            apart = ((near[dy : dy + high, dx : dx + across] - guide) ** 2).sum(2, keepdims=True)
            apart = apart + 3.0 / step * (np.log(other.mean(2, keepdims=True) + 0.05) - level) ** 2
            weight = np.exp(-apart) * (2 - (dy != step)) * (2 - (dx != step))
            total += weight * other
            weights += weight
    return total / weights
