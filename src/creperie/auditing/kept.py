"""A cache of audits. The key of an audit is a digest of everything that its result depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from creperie.auditing.battery import ENSEMBLE, INSTALLED, MAKERS, AttackerModels, runnable_attackers
from creperie.auditing.options import AuditOptions
from creperie.auditing.registry import entry_of
from creperie.bench import Benchmark
from creperie.core import (
    DataError,
    Document,
    Json,
    __version__,
    cache_home,
    digest_of,
    plugins_digest,
    read_json,
    write_json,
)
from creperie.models import named_content
from creperie.scoring import benchmark_digest

#: digits of the digest in the name of a stored audit
SHOWN = 16


def audit_origin(bench: Benchmark, options: AuditOptions, models: AttackerModels, changed: Mapping[str, Any]) -> Json:
    """Return everything that the result of an audit depends on, and a digest of it. `changed` holds the options that
    differ from their defaults.

    A result depends on the items, the options, the available attackers, the files of their models, plug-ins, and the
    version of creperie. It also depends on the images if an attacker sees them.
    """
    origin = {
        "items": benchmark_digest(bench) if models.image_encoder else bench.checked_hash,
        "options": dict(changed),
        "attackers": attackers_origin(options.attackers, models),
        "parser": named_content(options.parser),
        "version": __version__,
    }
    return {"digest": digest_of(origin), **origin}


def attackers_origin(asked: Sequence[str], models: AttackerModels) -> Json:
    """Return everything that the attackers' answers depend on, except the captions: which attackers can be run, and the
    files of their models.
    """
    names, not_run = runnable_attackers(asked, models)
    needed = {entry_of(name).model for name in names if name in MAKERS}
    uris = {models.plausibility, models.grammar, models.image_encoder, models.corpus}
    uris |= {getattr(models, f"{which}_uri") for which in INSTALLED if which in needed or getattr(models, which)}
    if ENSEMBLE not in not_run:
        names = [*names, ENSEMBLE]
    files = {uri: named_content(uri) for uri in sorted(uris) if uri}
    return {"run": names, "not_run": sorted(not_run), "models": files, "plugins": plugins_digest()}


def keep_audit(document: Document, origin: Document, folder: Path | None = None) -> None:
    """Store an audit's document together with its `origin` (see `audit_origin`). It is stored in `folder` or, if that
    is None, in the cache. If the cache cannot be written, do nothing.
    """
    path = _place(document["benchmark"], origin["digest"][:SHOWN], folder)
    try:
        write_json(path, {**document, "computed_from": dict(origin)})
    except OSError:
        if folder is not None:
            raise


def kept_audit(name: str, origin: Document, folder: Path | None = None) -> Json | None:
    """Return the stored audit of the benchmark `name` with this `origin` (see `audit_origin`). Return None if no such
    audit is stored or its file is damaged.
    """
    try:
        document = read_json(_place(name, origin["digest"][:SHOWN], folder))
    except DataError:
        return None
    stated = document.get("computed_from", {}) if isinstance(document, dict) else {}
    return document if stated.get("digest") == origin["digest"] else None


def kept_audits(name: str) -> list[Path]:
    """Return the files of all stored audits of benchmarks with this name, including outdated ones."""
    places = _place(name, "[0-9a-f]" * SHOWN, None)
    return sorted(places.parent.glob(places.name))


def _place(name: str, digest: str, folder: Path | None) -> Path:
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return (folder or cache_home() / "audits") / f"{plain}-{digest}.json"
