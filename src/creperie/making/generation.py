"""`creperie.make`: foils and second positives from captions in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from creperie.bench import Benchmark
from creperie.core import Progress, UsageError, silent
from creperie.making.options import MakerOptions
from creperie.making.registry import build_maker
from creperie.making.run import Made, make, preview
from creperie.making.source import Captions, SourceCaption, captions_of, read_captions


class MakerChoices(TypedDict, total=False):
    """Keyword arguments of `creperie.make`: the fields of MakerOptions, which are the options of the command."""

    seed: int
    parser: str
    as_published: bool
    matched: bool
    tidy: bool
    foils: int
    others: str
    grammar: str
    fluency: str
    margin: float
    lm: str
    band: float
    corpus: str
    reversible_only: bool
    nli: str
    model: str
    prompts: str
    demonstrations: int
    assemble: bool


def generate(
    maker: str,
    captions: str | Path | Sequence[str] | Benchmark | Captions,
    *,
    out: str | Path | None = None,
    limit: int | None = None,
    force: bool = False,
    progress: Progress = silent,
    **options: Unpack[MakerChoices],
) -> Made:
    """Make foils or second positives from captions, as `creperie make` does.

    `captions` is a list of captions, a file, a benchmark spec or a benchmark. Without `out` nothing is written.

    >>> made = generate("rules:swap", ["A dog chases a cat."])
    >>> made.items[0].captions
    ('A dog chases a cat.', 'A cat chases a dog.')
    """
    sources = read_sources(captions)
    if limit is not None:
        sources = replace(sources, sources=sources.sources[:limit])
    chosen = build_maker(maker, MakerOptions(**options), sources)
    return preview(chosen, sources) if out is None else make(chosen, sources, out, force=force, progress=progress)


def read_sources(captions: str | Path | Sequence[str] | Benchmark | Captions) -> Captions:
    """Captions from whatever names or holds them; a string is a file or a spec, never a caption."""
    if isinstance(captions, Captions):
        return captions
    if isinstance(captions, Benchmark):
        return captions_of(captions)
    if isinstance(captions, (str, Path)):
        if " " in str(captions) and ":" not in str(captions) and not Path(captions).exists():
            hint = "pass a list, `captions=['A dog barks.']`, for a single caption"
            raise UsageError(f"there is no file or benchmark {str(captions)!r}", hint=hint)
        return read_captions(captions)
    return Captions("captions", tuple(SourceCaption(str(k), text) for k, text in enumerate(captions, 1)))
