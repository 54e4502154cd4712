"""Files from strangers: nothing in them runs, nothing leaves its folder, nothing fills the memory."""

from __future__ import annotations

import ast
import pickle
import re
import zipfile
from pathlib import Path

import pytest
from sources import ROOT as SOURCE
from sources import calls

from creperie.bench import ImageError, decode_image, open_store
from creperie.core import CreperieError

#: calls that run what they are given, or unpack to wherever an archive says
DANGEROUS = {"eval", "exec", "compile", "__import__", "system", "popen", "extractall", "unsafe_load", "full_load"}
#: (file, call) that are allowed, each with a reason
ALLOWED = {
    ("engine/cluster.py", "pickle.loads"): "an error that our own worker pickled in the same Ray session",
    ("training/checkpoints.py", "torch.load"): "weights_only",
}


def test_nothing_is_evaluated_unpickled_or_unpacked_blindly() -> None:
    bad = []
    for file, name, node in calls():
        last = name.rsplit(".", 1)[-1]
        built_in = "." not in name
        if last in DANGEROUS and (built_in or last not in ("eval", "compile")):  # model.eval(), re.compile() are others
            bad.append((file, node.lineno, name))
        loads = name in ("pickle.load", "pickle.loads", "torch.load", "torch.jit.load", "np.load", "numpy.load")
        if loads and (file, name) not in ALLOWED and "allow_pickle=False" not in ast.unparse(node):
            bad.append((file, node.lineno, name))
    assert not bad


def test_yaml_is_loaded_safely() -> None:
    loaders = [(f, n.lineno, ast.unparse(n)) for f, name, n in calls() if name in ("yaml.load", "yaml.load_all")]
    for file, line, text in loaders:
        source = (SOURCE / file).read_text(encoding="utf-8")
        assert "Loader=" in text, f"{file}:{line}"
        assert re.search(r"C?SafeLoader", source), f"{file}:{line}: which loader?"


def test_code_of_models_runs_only_when_asked() -> None:
    for file, _, node in calls():
        for keyword in node.keywords:
            if keyword.arg in ("trust_remote_code", "allow_pickle"):
                constant = isinstance(keyword.value, ast.Constant)
                assert not constant or not keyword.value.value, f"{file}:{node.lineno}"  # type: ignore[attr-defined]
            if keyword.arg == "weights_only" and isinstance(keyword.value, ast.Constant) and not keyword.value.value:
                assert (file, ast.unparse(node.func)) in ALLOWED, f"{file}:{node.lineno}"


def test_secrets_are_never_put_into_messages() -> None:
    """A key is read from the environment by name; no message is formatted with it."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(print|log\w*\.\w+|echo|say)\([^)]*\b(endpoint\.key|api_key)\b(?!_env)", text), path


class Boom:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path(self.place),))

    def __init__(self, place: str) -> None:
        self.place = place


def test_a_pickle_among_a_models_files_does_not_run(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from creperie.models import load_model
    from creperie.testing.tiny import tiny_clip

    marker, folder = tmp_path / "ran", tiny_clip(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Boom(str(marker))}))
    with pytest.raises(CreperieError):
        load_model(f"hf:{folder}", device="cpu")
    assert not marker.exists()


NAMES = ["../evil.jpg", "/tmp/evil.jpg", "a/../../evil.jpg", "..\\evil.jpg"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_archives_lead_nowhere(tmp_path: Path, name: str) -> None:
    data = b"not a picture"
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)
        archive.writestr("ok.jpg", data)
    store = open_store(str(path))
    assert store.read("ok.jpg") == data
    outside = tmp_path.parent / "evil.jpg"
    assert not outside.exists()
    assert not Path("/tmp/evil.jpg").exists()


def test_a_folder_of_images_is_not_left(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(b"x")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    store = open_store(str(tmp_path / "images"))
    for key in ("../secret.jpg", str(tmp_path / "secret.jpg"), "a/../../secret.jpg"):
        with pytest.raises(ImageError):
            store.read(key)


def test_a_picture_that_unpacks_to_gigabytes_is_a_finding(tmp_path: Path) -> None:
    """A PNG of 50,000 × 50,000 pixels in some kilobytes: refused by its header, before it is unpacked."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0" * 100_000)) + chunk(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)
    store = open_store(str(tmp_path))
    with pytest.raises(ImageError, match="pixels"):
        decode_image(store.read("bomb.png"))
