"""A page for the eye: captions, what was made of them, how they compare, and their images where there are any."""

from __future__ import annotations

import base64
import io
from difflib import SequenceMatcher

from creperie.bench import ImageStore, decode_image
from creperie.core import CreperieError, render
from creperie.making.candidate import Candidate
from creperie.making.run import Made

#: Pixels of the longer side of a picture.
SIDE = 240


def sheet_of(made: Made, images: ImageStore) -> str:
    """The page as HTML: one block per caption that something was made of."""
    blocks = [
        {
            "images": [uri for key in source.images if (uri := _picture(images, key))],
            "text": source.text,
            "made": [(c.role, _marked(source.text, c.text), _note(c)) for c in outcome.accepted],
        }
        for source, outcome in zip(made.sources, made.outcomes, strict=True)
        if outcome.accepted
    ]
    return render("making", "sheet.html", title=made.maker, about=repr(made), blocks=blocks)


def _marked(source: str, text: str) -> list[tuple[str, bool]]:
    """The words of a text, each with whether the source has it not, or elsewhere."""
    old, new = source.lower().split(), text.split()
    matcher = SequenceMatcher(None, old, [w.lower() for w in new], autojunk=False)
    same = {k for block in matcher.get_matching_blocks() for k in range(block.b, block.b + block.size)}
    return [(word, k not in same) for k, word in enumerate(new)]


def _note(candidate: Candidate) -> str:
    known = [name for name in ("lm_gap", "frequency_gap") if name in candidate.tags]
    evidence = [str(candidate.tags["evidence"])] if "evidence" in candidate.tags else []
    compared = [f"{name.replace('_', ' ')} {float(candidate.tags[name]):+.2f}" for name in known]
    return " · ".join([candidate.kind, candidate.edit, *evidence, *compared])


def _picture(images: ImageStore, key: str) -> str:
    """A small picture as a data URI; empty where the image is not at hand."""
    try:
        picture = decode_image(images.read(key))
    except (CreperieError, OSError):
        return ""
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, format="JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
