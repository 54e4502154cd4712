"""Released CLIP-shaped checkpoints by path: OpenAI's own layout, open_clip's training files, fine-tunings of either.

A file of weights says how large its towers are but not which activation was between them, and the wrong one changes
every score a little. So the URI must say it.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import ModelError, UsageError
from creperie.models.captions import caption_rule
from creperie.models.clip_layout import CLIPShape, clip_config, clip_shape, convert_state
from creperie.models.device import Place
from creperie.models.hf.dual import DualEncoder
from creperie.models.hf.families import FAMILIES
from creperie.models.hf.folder import Folder, quiet_libraries
from creperie.models.hub import model_folder
from creperie.models.pixels import DirectPixels, Preprocessing
from creperie.models.protocols import Fingerprint, Model
from creperie.models.tokens import CaptionTokenizer
from creperie.models.uri import ModelURI
from creperie.models.weights import hash_files

if TYPE_CHECKING:
    import torch

#: the hub's copy of the vocabulary that OpenAI released
OFFICIAL = "openai/clip-vit-base-patch32"
MERGES = 49152 - 256 - 2
CONTEXT = 77


def clip_tokenizer(name: str | None, *, uri: str) -> Any:
    """The tokenizer of a named model or folder; without a name the official one, from wherever it is available."""
    if name:
        return Folder(model_folder(name, uri=uri), uri).tokenizer()
    merges = _installed_merges()
    if merges is not None:
        return _from_merges(merges)
    try:
        return Folder(model_folder(OFFICIAL, uri=uri), uri).tokenizer()
    except ModelError as e:
        what = f"CLIP's vocabulary is needed and {OFFICIAL!r} cannot be fetched from the hub"
        raise ModelError(what, where=uri, hint="name a CLIP folder that has it: ?tokenizer=/path/to/folder") from e


def _installed_merges() -> Path | None:
    """open_clip brings the vocabulary along; it is read without importing the library."""
    spec = find_spec("open_clip")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bpe_simple_vocab_16e6.txt.gz"
    return path if path.is_file() else None


def _from_merges(path: Path) -> Any:
    """Bytes, bytes that end a word, merges in their order, start, end: so the ids are those of CLIP."""
    from transformers import CLIPTokenizer

    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[1 : MERGES + 1]
    merges = [(left, right) for left, right in (line.split() for line in lines)]
    letters = _byte_letters()
    words = [*letters, *[f"{letter}</w>" for letter in letters], *["".join(merge) for merge in merges]]
    vocab = {word: i for i, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    with quiet_libraries():
        return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=CONTEXT)


def _byte_letters() -> list[str]:
    """The letters that stand for the 256 bytes, in CLIP's order: printable ones as they are, the others shifted."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [chr(n) for n in plain] + [chr(256 + n) for n in range(256 - len(plain))]


MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
BICUBIC = 3
#: what a released file may wrap its weights in
WRAPPERS = ("state_dict", "model", "model_state_dict")
#: what data-parallel training and wrapping classes put before every name
PREFIXES = ("module.", "model.", "clip.")


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    if not options["activation"]:
        raise UsageError(
            "a checkpoint does not say which activation it was trained with",
            where=str(uri),
            hint="add ?activation=quick_gelu (OpenAI's CLIP and its fine-tunings: NegCLIP, CLIP-SVLC, CyCLIP) or "
            "?activation=gelu (most models that were trained with open_clip)",
        )
    path = Path(uri.name).expanduser()
    state = read_state(path, uri=str(uri), unsafe=options["unsafe_pickle"])
    shape = clip_shape(state, uri=str(uri), vision_heads=options["vision_heads"], text_heads=options["text_heads"])
    model = _build(state, shape, options["activation"], str(uri)).to(place.torch_device, place.torch_dtype).eval()
    raw = clip_tokenizer(options["tokenizer"], uri=str(uri))
    if len(raw) > shape.vocabulary:
        what = f"the tokenizer has {len(raw)} tokens and the checkpoint {shape.vocabulary}"
        raise ModelError(what, where=str(uri), hint="name the right one by ?tokenizer=FOLDER")
    context = min(shape.context, options["max_length"] or shape.context)
    tokenizer = CaptionTokenizer(raw, caption_rule(options), context)
    recipe = Preprocessing(shape.image, (shape.image, shape.image), BICUBIC, 1 / 255, MEAN, STD, round_centre=True)
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture=f"CLIPModel(text: {options['activation']}, vision: {options['activation']}) {shape.described}",
        weights=hash_files([path]),
        preprocessing={"size": shape.image, "crop": "centre", "mean": MEAN, "std": STD, **tokenizer.described},
        dtype=place.dtype,
        context=context,
        prompt=tokenizer.rule.prefix,
        options=tokenizer.rule.described,
    )
    return DualEncoder(model, FAMILIES["clip"].towers, tokenizer, DirectPixels(recipe), place, fingerprint)


def read_state(path: Path, *, uri: str, unsafe: bool = False) -> dict[str, torch.Tensor]:
    """The named tensors of a checkpoint, whatever they are wrapped in."""
    if not path.is_file():
        raise ModelError(f"there is no file {str(path)!r}", where=uri)
    content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickle(path, uri, unsafe)
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not content:
        raise ModelError("the file holds no named weights", where=uri)
    state = dict(content)
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return {name: value for name, value in state.items() if hasattr(value, "shape")}


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    return load_file(path)


def _read_pickle(path: Path, uri: str, unsafe: bool) -> Any:
    """torch's file formats. Only tensors and plain containers, unless the URI says that the file is trusted."""
    import pickle

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that archived programs are an old format is not a news
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError) as e:
            if not unsafe:
                what = "the file holds more than weights (or is not a checkpoint), and reading the rest could run code"
                raise ModelError(what, where=uri, hint="if you trust the file add ?unsafe_pickle=true") from e
        return _read_anything(path, uri)


def _read_anything(path: Path, uri: str) -> Any:
    """An archived program, as OpenAI released its models, or any pickle."""
    import torch

    try:
        return torch.jit.load(path, map_location="cpu").state_dict()
    except RuntimeError:
        pass  # not an archived program, so a plain pickle
    try:
        content = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as e:
        raise ModelError(f"this is not a checkpoint that torch can read: {type(e).__name__}", where=uri) from e
    return content.state_dict() if hasattr(content, "state_dict") else content


def _build(state: Mapping[str, torch.Tensor], shape: CLIPShape, activation: str, uri: str) -> Any:
    from transformers import CLIPModel

    model = CLIPModel(clip_config(shape, activation))
    try:
        report = model.load_state_dict(convert_state(state, shape), strict=False)
    except RuntimeError as e:
        raise ModelError(f"the checkpoint's shapes are not those of a CLIP model: {str(e)[:200]}", where=uri) from e
    lacking = [k for k in report.missing_keys if not k.endswith(("position_ids", "logit_scale"))]
    if lacking or report.unexpected_keys:
        what = f"lacks {lacking[0]}" if lacking else f"has the unknown weight {report.unexpected_keys[0]}"
        raise ModelError(f"the checkpoint is not a CLIP model: it {what}", where=uri)
    return model
