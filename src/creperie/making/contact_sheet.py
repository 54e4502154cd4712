"""A page for the eye: captions, what was made of them, how they compare, and their images where there are any."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from html import escape
from random import Random

from creperie.bench import ImageStore, decode_image
from creperie.core import CreperieError
from creperie.making.run import Made
from creperie.making.source import Captions

#: Pixels of the longer side of a picture.
SIDE = 240
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 62rem; padding: 0 1rem; color: #1c1c1c; }
article { display: flex; flex-wrap: wrap; gap: 1rem; padding: .8rem 0; border-top: 1px solid #ddd; }
img { width: 180px; height: auto; align-self: flex-start; border-radius: 4px; }
div { flex: 1 1 20rem; } p { margin: .15rem 0; } .edit { color: #666; font-size: .9em; }
.positive::before { content: "✓ "; color: #17803d; } .negative::before { content: "✗ "; color: #b3261e; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #eee; } .edit { color: #aaa; } }
"""


def sheet_of(made: Made, images: ImageStore) -> str:
    """The page as HTML: one block per caption that something was made of."""
    blocks = []
    for source, outcome in zip(made.sources, made.outcomes, strict=True):
        accepted = outcome.accepted
        if not accepted:
            continue
        lines = []
        for c in accepted:
            known = [name for name in ("lm_gap", "frequency_gap") if name in c.tags]
            compared = [f"{name.replace('_', ' ')} {float(c.tags[name]):+.2f}" for name in known]
            note = " · ".join([c.kind, c.edit, *compared])
            lines.append(f'<p class="{c.role}">{escape(c.text)}</p><p class="edit">{escape(note)}</p>')
        shown = "".join(_picture(images, key) for key in source.images)
        told = f'<p class="positive">{escape(source.text)}</p>{"".join(lines)}'
        blocks.append(f"<article>{shown}<div>{told}</div></article>")
    head = f"<title>{escape(made.maker)}</title><style>{_STYLE}</style>"
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = f"<h1>{escape(made.maker)}</h1><p>{escape(repr(made))}</p>{''.join(blocks)}"
    return f'<!doctype html><html lang="en"><head>{meta}{head}</head><body>{body}</body></html>\n'


def _picture(images: ImageStore, key: str) -> str:
    """A small picture inside the page; nothing where the image is not at hand."""
    try:
        picture = decode_image(images.read(key))
    except (CreperieError, OSError):
        return ""
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, format="JPEG", quality=80)
    return f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def sampled(captions: Captions, number: int, seed: int) -> Captions:
    """Captions drawn at random, in their order."""
    total = len(captions.sources)
    chosen = sorted(Random(seed).sample(range(total), min(number, total)))
    return replace(captions, sources=tuple(captions.sources[k] for k in chosen))
