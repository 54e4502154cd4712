"""CLIP's own tokenizer, for checkpoints that come without one."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from creperie.core import ModelError
from creperie.models.hf.folder import Folder, quiet_transformers
from creperie.models.hub import model_folder

#: the hub's copy of the vocabulary that OpenAI released
OFFICIAL = "openai/clip-vit-base-patch32"
MERGES = 49152 - 256 - 2
CONTEXT = 77


def clip_tokenizer(name: str | None, *, uri: str) -> Any:
    """The tokenizer of a named model or folder; without a name the official one, from wherever it can be had."""
    if name:
        return Folder(model_folder(name, uri=uri), uri).tokenizer()
    merges = _installed_merges()
    if merges is not None:
        return _from_merges(merges)
    try:
        return Folder(model_folder(OFFICIAL, uri=uri), uri).tokenizer()
    except ModelError as e:
        raise ModelError(
            f"CLIP's vocabulary is needed and {OFFICIAL!r} cannot be fetched from the hub",
            where=uri,
            hint="name a CLIP folder that has it: ?tokenizer=/path/to/folder",
        ) from e


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
    with quiet_transformers():
        return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=CONTEXT)


def _byte_letters() -> list[str]:
    """The letters that stand for the 256 bytes, in CLIP's order: printable ones as they are, the others shifted."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [chr(n) for n in plain] + [chr(256 + n) for n in range(256 - len(plain))]
