"""`creperie.make`: foils and second positives from captions in one call, by the name of a maker or by a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from creperie.bench import Benchmark, as_benchmark
from creperie.core import Progress, UsageError, automatic, silent, with_options
from creperie.engine import Engine, parse_shard
from creperie.making.facts import annotated_captions
from creperie.making.options import JobOptions, MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.registry import WriteFoils, as_maker, build_maker
from creperie.making.run import Made, make_folder, preview
from creperie.making.shards import MakeRequest, make_shard
from creperie.making.source import Captions, SourceCaption, captions_of, first_or_drawn, read_captions

#: The prefix of an annotation file (COCO instances, Visual Genome, VRD, GQA), whose facts become captions.
ANNOTATIONS = "annotations:"


@with_options(options=MakerOptions, job=JobOptions)
def make(
    maker: str | Maker | WriteFoils,
    captions: str | Path | Sequence[str] | Benchmark | Captions,
    out: str | Path | None = None,
    *,
    options: MakerOptions,
    job: JobOptions,
    engine: Engine | None = None,
    progress: Progress | None = automatic,
) -> Made:
    """Make foils or second positives from captions, and return them.

    `maker` is a name, a maker, or a function that takes a caption and returns one foil, several, or None. `captions` is
    a list of captions, a file, a benchmark or its name, or a data frame. Without `out` nothing is written. If the job
    is interrupted, the same call resumes it.

    >>> made = make("rules:swap", ["A dog chases a cat."])
    >>> made.items[0].captions
    ('A dog chases a cat.', 'A cat chases a dog.')
    """
    progress = progress or silent
    sources = read_sources(captions, job, options.seed)
    chosen = build_maker(maker, options, sources) if isinstance(maker, str) else as_maker(maker, options)
    if out is None:
        if job.shard:
            raise UsageError("`shard=` requires `out=`", hint="pass a folder, or leave out `shard=` for a preview")
        return preview(chosen, sources)
    if not job.shard:
        return make_folder(chosen, sources, out, engine=engine, force=job.force, progress=progress)
    if not sources.spec:
        raise UsageError("a shard needs captions from a file or a benchmark", hint="pass its name as `captions=`")
    request = MakeRequest(chosen.name, sources.spec, options, job)
    shard = parse_shard(job.shard)
    return make_shard(request, sources, shard, out, engine=engine, force=job.force, progress=progress)


def read_sources(
    captions: str | Path | Sequence[str] | Benchmark | Captions, job: JobOptions, seed: int = 0
) -> Captions:
    """Return captions from a file, benchmark, data frame or list. A string is the name of a file or of a benchmark.

    An instance of `Captions` is returned unchanged, because its captions were already chosen.
    """
    if isinstance(captions, Captions):
        return captions
    if isinstance(captions, Benchmark):
        captions = captions_of(captions)
    elif isinstance(captions, str) and captions.startswith(ANNOTATIONS):
        captions = annotated_captions(captions.removeprefix(ANNOTATIONS), job.images)
    elif isinstance(captions, (str, Path)):
        if " " in str(captions) and ":" not in str(captions) and not Path(captions).exists():
            hint = "pass a list, `captions=['A dog barks.']`, for a single caption"
            raise UsageError(f"there is no file or benchmark {str(captions)!r}", hint=hint)
        captions = read_captions(captions, images=job.images)
    else:
        texts = [] if hasattr(captions, "columns") or hasattr(captions, "features") else list(captions)
        if not all(isinstance(text, str) for text in texts) or not texts:  # a data frame, dictionaries, items
            captions = captions_of(as_benchmark(captions))
        else:
            captions = Captions("captions", tuple(SourceCaption(str(k), text) for k, text in enumerate(texts, 1)))
    return first_or_drawn(captions, job.limit, job.sample, seed)
