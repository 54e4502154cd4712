"""From a line of text to a model or a mistake: URIs, options, caption rules, folders, devices."""

from __future__ import annotations

import sys
import tomllib
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import CreperieError, ModelError, UsageError
from creperie.models import (
    KINDS,
    OWN_KINDS,
    CaptionRule,
    ModelURI,
    check_uri,
    clean_caption,
    find_place,
    hash_files,
    load_model,
    model_folder,
    parse_uri,
)
from creperie.models.captions import caption_rule
from creperie.models.weights import weight_files

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="?\x00"), min_size=1)


@given(name=NAMES, options=st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), st.text(), max_size=4))
def test_uris_come_back(name: str, options: dict[str, str]) -> None:
    uri = ModelURI("hf", name, options)
    assert parse_uri(str(uri)) == uri


@pytest.mark.parametrize("text", ["", "clip", ":x", "hf:"])
def test_no_uri(text: str) -> None:
    with pytest.raises(UsageError, match="is not a model URI"):
        load_model(text)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("clip:/x.pt?activation=gelu", "open_clip:ARCHITECTURE//path/to/file"),
        ("hf:x?decode=fast", "leave the option out"),
    ],
)
def test_what_was_removed_says_what_to_use_instead(text: str, instead: str) -> None:
    for call in (load_model, check_uri):
        with pytest.raises(UsageError, match="was removed") as e:
            call(text)
        assert instead in str(e.value)


def test_a_folder_without_its_kind_is_told_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"for example hf:{tmp_path}"):
        load_model(str(tmp_path))


@given(text=st.text(), rule=st.sampled_from([CaptionRule(), CaptionRule(words=10_000)]))
def test_a_rule_that_asks_nothing_changes_nothing(text: str, rule: CaptionRule) -> None:
    assert rule(text) == text


@pytest.mark.parametrize(
    ("options", "caption", "shown"),
    [
        ({"lower": True}, "A Dog. ", "a dog. "),
        ({"words": 3}, "one two three four", "one two three"),
        ({"prefix": "query: "}, "a", "query: a"),
        ({"prompt": "e5-passage"}, "a", "passage: a"),
        ({"prompt": "instructor"}, "a", "Represent the sentence for cosine similarity matching.a"),
        ({"clean": "aro"}, 'He said: "Stop!" (twice); #1 ~ *ok*.', "he said stop twice 1 ok"),
        ({"clean": "aro"}, "a man's well-known, old dog ", "a man's well-known, old dog"),
        ({"clean": "aro"}, " ".join("w" * 40), " ".join("w" * 30)),
        ({"clean": "lavis"}, " ".join("w" * 60), " ".join("w" * 50)),
        ({"clean": "lavis", "words": 2, "prefix": "P "}, "A. B. C.", "P a b"),
    ],
)
def test_caption_rules(options: dict[str, object], caption: str, shown: str) -> None:
    assert caption_rule(options)(caption) == shown


@given(st.text())
def test_cleaning_is_stable(text: str) -> None:
    once = clean_caption(text, 50)
    assert clean_caption(once, 50) == once


def test_every_kind_is_whole() -> None:
    """The table that `models list` shows: loaders that exist, examples that parse, options with a help."""
    from importlib import import_module

    for name, kind in KINDS.items():
        assert parse_uri(kind.example).kind == name
        module, _, function = kind.load.partition(":")
        assert callable(getattr(import_module(module), function))
        assert all(option.help for option in kind.options)
        assert len({option.name for option in kind.options}) == len(kind.options)


def test_the_page_names_options_that_exist() -> None:
    """Every URI of docs/models.md parses, and its options are declared."""
    import re

    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    declared = {option.name for kind in KINDS.values() for option in kind.options}
    queries = re.findall(r"\?((?:[a-z_]+=[^`&\s]+)(?:&[a-z_]+=[^`&\s]+)*)", page)
    named = {pair.split("=")[0] for query in queries for pair in query.split("&")}
    assert len(named) > 12
    assert named - {"option"} <= declared  # the first line says option=value


# -- folders ---------------------------------------------------------------------------------------------------------


def test_hub_name_without_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        load_model("hf:openai/clip-vit-base-patch32", device="cpu")
    line = str(caught.value)
    assert line.startswith("hf:openai/clip-vit-base-patch32: the hub cannot be reached")
    assert line.endswith("give the model's folder: hf:/path/to/folder")
    assert "\n" not in line


@pytest.mark.parametrize("name", ["/no/such/folder", "./none", "~/none/at/all", "a/b/c"])
def test_folders_that_are_not_there(name: str) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        model_folder(name, uri=f"hf:{name}")


def test_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(ModelError, match="is a file, expected a model's folder"):
        model_folder(str(tmp_path / "model.bin"), uri="hf:x")


def test_package_with_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("package_with_weights")
    monkeypatch.setitem(sys.modules, "package_with_weights", package)
    with pytest.raises(ModelError, match=r"has no function get_model_path\(\)"):
        model_folder("pkg:package_with_weights", uri="st:x")
    package.get_model_path = lambda: str(tmp_path)  # type: ignore[attr-defined]
    assert model_folder("pkg:package_with_weights", uri="st:x") == tmp_path
    with pytest.raises(UsageError, match="no installed package 'no_such_package'"):
        model_folder("pkg:no_such_package", uri="st:x")


def test_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the configuration cannot be read"):
        load_model(f"hf:{tmp_path}", device="cpu")
    (tmp_path / "config.json").write_text('{"model_type": "clip"')
    with pytest.raises(CreperieError, match="the configuration cannot be read"):
        load_model(f"hf:{tmp_path}", device="cpu")


def test_remote_code_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "own", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.M"}}'
    )
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w').close()\n")
    with pytest.raises(ModelError):
        load_model(f"hf:{tmp_path}", device="cpu")
    assert not (tmp_path / "proof").exists()


# -- weights ---------------------------------------------------------------------------------------------------------


def test_weights_are_hashed_by_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.safetensors").write_bytes(b"weights")
        (tmp_path / name / "pytorch_model.bin").write_bytes(name.encode())  # the loaders do not read it
        (tmp_path / name / "onnx").mkdir()
        (tmp_path / name / "onnx" / "model.safetensors").write_bytes(name.encode())
    assert hash_files(weight_files(tmp_path / "a")) == hash_files(weight_files(tmp_path / "b"))
    (tmp_path / "b" / "2_Dense").mkdir()
    (tmp_path / "b" / "2_Dense" / "model.safetensors").write_bytes(b"more")
    assert hash_files(weight_files(tmp_path / "a")) != hash_files(weight_files(tmp_path / "b"))


def test_the_hubs_cache_names_files_by_their_hash(tmp_path: Path) -> None:
    """A link into the cache is not read: its target's name is the sha256 of its content."""
    import hashlib

    content = b"weights"
    blob = tmp_path / "blobs" / hashlib.sha256(content).hexdigest()
    blob.parent.mkdir()
    blob.write_bytes(content)
    linked, copied = tmp_path / "linked.safetensors", tmp_path / "copied.safetensors"
    linked.symlink_to(blob)
    copied.write_bytes(content)
    assert hash_files([linked]) == hash_files([copied])


def test_state_dicts_by_content() -> None:
    import torch

    from creperie.models import hash_state

    state = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
    again = {"b": state["b"].clone(), "a": torch.arange(6.0).reshape(3, 2).reshape(2, 3)}
    assert hash_state(state) == hash_state(again)
    assert hash_state(state) != hash_state({**state, "a": state["a"].reshape(3, 2)})
    assert hash_state(state) != hash_state({**state, "b": state["b"].float()})


# -- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "dtype", "message"),
    [
        ("cpu", "fp8", "unknown dtype 'fp8'"),
        ("gpu", "float32", "unknown device 'gpu'"),
        ("cuda:99", "float32", "there is no device 'cuda:99' on this machine"),
    ],
)
def test_places_that_are_not(device: str, dtype: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_place(device, dtype)


def test_automatic_place() -> None:
    import torch

    place = find_place()
    assert place.torch_device.type == ("cuda" if torch.cuda.is_available() else place.device)
    assert find_place("cpu", "fp16").torch_dtype == torch.float16


# -- the hub ---------------------------------------------------------------------------------------------------------


def test_hub_name_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clip_folder: Path) -> None:
    """Fetched once, a name works without a connection, and shares its embeddings with the folder."""
    import shutil

    import huggingface_hub.constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--owner--tiny-clip"
    shutil.copytree(clip_folder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    named = load_model("hf:owner/tiny-clip", device="cpu").fingerprint
    assert named.key == load_model(f"hf:{clip_folder}", device="cpu").fingerprint.key


@pytest.mark.parametrize(
    ("files", "onnx", "skipped", "kept"),
    [
        (["model.safetensors", "pytorch_model.bin"], False, "*.bin", "*.safetensors"),
        (["pytorch_model.bin"], False, "*.onnx*", "*.bin"),
        (["model.safetensors", "onnx/model.onnx"], True, "*.bin", "*.onnx*"),
    ],
)
def test_what_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: list[str], onnx: bool, skipped: str, kept: str
) -> None:
    import huggingface_hub

    siblings = [types.SimpleNamespace(rfilename=file) for file in files]
    asked: dict[str, object] = {}

    def fetch(name: str, **settings: object) -> str:
        asked.update(settings, name=name)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: types.SimpleNamespace(siblings=siblings))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert model_folder("owner/name", uri="st:owner/name", revision="v1", onnx=onnx) == tmp_path
    assert (asked["name"], asked["revision"], asked["local_files_only"]) == ("owner/name", "v1", False)
    patterns = asked["ignore_patterns"]
    assert isinstance(patterns, list)
    assert skipped in patterns
    assert kept not in patterns


def test_names_that_the_hub_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError

    def missing(*_: object, **__: object) -> None:
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", missing)
    with pytest.raises(ModelError, match="the hub has no public model 'owner/nmae'; to work without the hub, give"):
        model_folder("owner/nmae", uri="hf:owner/nmae")
    with pytest.raises(ModelError, match="the hub has no revision 'v9' of 'owner/name'"):
        model_folder("owner/name", uri="hf:owner/name", revision="v9")


def test_exact_leaves_things_as_they_were() -> None:
    import torch

    from creperie.models import exact_float32

    def fail() -> None:
        assert not torch.is_grad_enabled()
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32
        raise RuntimeError("inside")

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark
    try:
        torch.set_float32_matmul_precision("high")
        with pytest.raises(RuntimeError, match="inside"), exact_float32():
            fail()
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before[0])
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark) == before[1:]


def test_the_list_of_kinds_names_what_python_knows() -> None:
    """`creperie models list` reads texts, so that it need not import what they are about."""
    from creperie.models.hf.dual import FAMILIES
    from creperie.models.hf.matching import MATCHERS
    from creperie.models.hf.text import DECODERS, ENCODERS

    assert set(KINDS["hf"].families) == {*FAMILIES, *MATCHERS, ", ".join(ENCODERS), ", ".join(DECODERS)}
    declared = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8"))
    assert {name: kind.load for name, kind in OWN_KINDS.items()} == declared["project"]["entry-points"][
        "creperie.models"
    ]
