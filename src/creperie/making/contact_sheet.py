"""An HTML page that shows captions and the candidates made from them. The words that differ are marked, and images are
shown if there are any.
"""

from __future__ import annotations

import base64
import io

from creperie.bench import ImageStore, decode_image
from creperie.core import CreperieError, counted, render
from creperie.making.candidate import Candidate
from creperie.making.run import Made

#: Length in pixels of the longer side of a picture.
SIDE = 240


def sheet_of(made: Made, images: ImageStore) -> str:
    """Return the page as HTML: one card per caption with its accepted candidates, in which the differing words are
    marked. Captions without accepted candidates follow in a table, with the reasons.
    """
    cards, nothing = [], []
    for source, outcome in zip(made.sources, made.outcomes, strict=True):
        if outcome.accepted:
            pictures = [uri for key in source.images if (uri := _picture(images, key))]
            foils = [(c.role == "positive", c.text, source.text, _note(c)) for c in outcome.accepted]
            cards.append((source.id, pictures, [(True, source.text, "", "source"), *foils]))
        else:
            nothing.append((source.id, source.text, outcome.why_nothing))
    sources = counted(made.report["sources"], "caption")
    about = f"{counted(made.report['made'], 'candidate')} for {len(cards):,} of {sources}, made by {made.maker}"
    return render(
        "making", "sheet.html", title=f"Foils and positives by {made.maker}", about=about, cards=cards, nothing=nothing
    )


def _note(candidate: Candidate) -> str:
    known = [name for name in ("lm_gap", "frequency_gap") if name in candidate.tags]
    compared = [f"{name.replace('_', ' ')} {float(candidate.tags[name]):+.2f}" for name in known]
    evidence = [str(candidate.tags["evidence"])] if "evidence" in candidate.tags else []
    return " · ".join([candidate.kind, candidate.edit, *evidence, *compared])


def _picture(images: ImageStore, key: str) -> str:
    """Return a small picture as a data URI; empty if the image is not available."""
    try:
        picture = decode_image(images.read(key))
    except (CreperieError, OSError):
        return ""
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, format="JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
