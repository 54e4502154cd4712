"""The documents that come with a saved benchmark: README.md, DATASHEET.md and croissant.json.

README.md starts with the YAML header that `datasets.load_dataset(folder)` needs. DATASHEET.md is a datasheet: creperie
answers the questions that it can and leaves the others to the authors. croissant.json is Croissant 1.0 metadata.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, Parquet, ProvenanceStep
from creperie.bench.catalog.places import MANIFEST_FILE
from creperie.bench.images import REFERENCE_ENDING
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX
from creperie.bench.shapes import MatchShape, match_chance, match_shapes
from creperie.bench.stores import FolderStore
from creperie.core import (
    counted,
    listing,
    one_line,
    packaged,
    packaged_toml,
    read_json,
    render,
    sha256_of,
    write_json,
    write_parquet,
    write_text,
)

_TABLES: dict[str, dict[str, str]] = packaged_toml("creperie.bench", "cards.toml")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def write_cards(bench: Benchmark, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write README.md, DATASHEET.md and croissant.json beside the saved items."""
    kinds = match_shapes(bench)
    pictures = write_metadata(bench, folder) if manifest["images"] == "images" else []
    write_text(folder / "README.md", readme(bench, manifest, kinds, pictures))
    write_text(folder / "DATASHEET.md", datasheet(bench, manifest, kinds))
    files = {f.relative_to(folder).as_posix(): sha256_of(f) for f in sorted((folder / "data").glob("*.parquet"))}
    write_json(folder / "croissant.json", croissant(bench, files), plain=True)


#: The file with the last audit of a saved benchmark; the cards state its verdict between two HTML comments.
AUDIT_FILE = "audit.json"
_AUDIT = re.compile(r"(<!-- audit -->\n).*?(<!-- end of audit -->)", re.DOTALL)


def recorded_audit(bench: Benchmark) -> dict[str, Any] | None:
    """Return the audit stored beside a saved benchmark. Return None if there is no such audit, or if the items have
    changed since it was made.
    """
    if not isinstance(bench.source, Parquet) or not bench.source.files:
        return None
    path = bench.source.files[0].parent.parent / AUDIT_FILE
    document = read_json(path) if path.is_file() else None
    return document if isinstance(document, dict) and document.get("hash") == bench.hash else None


def record_audit(folder: Path, audit: Mapping[str, Any]) -> None:
    """Write an audit beside a saved benchmark, and the audit's verdict into README.md and DATASHEET.md.

    Nothing is written in three cases: the folder is read-only, its items are not the audited ones, or it already has an
    audit of these items with more attackers.
    """
    manifest = folder / MANIFEST_FILE
    if not manifest.is_file() or read_json(manifest).get("hash") != audit["hash"]:
        return
    old = read_json(folder / AUDIT_FILE) if (folder / AUDIT_FILE).is_file() else {}
    if old.get("hash") == audit["hash"] and len(old.get("attackers", ())) > len(audit["attackers"]):
        return
    of = f"{audit['items']:,} items, {counted(len(audit['attackers']), 'attacker')}, seed {audit['seed']}"
    how = f"{of}, creperie {audit['version']}; figures in `{AUDIT_FILE}`"
    power = f"{audit['power']} ({how})" if audit["power"] else how
    stated = f"{audit['text']}.\n\n{power}.\n\nNext: `{audit['next']}`\n"
    with suppress(OSError):  # a read-only folder: the audit itself is still valid
        write_json(folder / AUDIT_FILE, audit)
        for card in (folder / "README.md", folder / "DATASHEET.md"):
            if card.is_file():
                write_text(card, _AUDIT.sub(lambda m: m[1] + stated + m[2], card.read_text(encoding="utf-8")))


def licence_id(licence: str) -> str:
    """Return the identifier of a licence: "unknown" if the text is empty, "other" if the licence is not known.

    >>> licence_id("CC BY 4.0"), licence_id("ask the authors"), licence_id("")
    ('cc-by-4.0', 'other', 'unknown')
    """
    if not licence:
        return "unknown"
    return _TABLES["licences"].get(re.sub(r"[^a-z0-9]", "", licence.lower()), "other")


def size_category(items: int) -> str:
    """Return Hugging Face's size category for a data set with this number of items.

    >>> size_category(7511)
    '1K<n<10K'
    """
    return next((name for limit, name in SIZES if items < limit), "n>10M")


#: the file name under which `datasets` finds metadata of images, and the image file endings that it supports
METADATA_FILE = "metadata.parquet"
ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def write_metadata(bench: Benchmark, folder: Path) -> list[str]:
    """Write the items a second time, as metadata.parquet, with the paths of the copied images. Return the patterns of
    the files that `datasets` should read.

    If an image is missing, or `datasets` does not support its file type, write nothing and return an empty list. The
    images are not cropped; references to regions of images are in the column `references`.
    """
    import pyarrow.compute as pc

    offsets, references = bench.ragged("images")
    paths = pc.replace_substring_regex(references, REFERENCE_ENDING, "")
    keys, copied = set(pc.unique(paths).to_pylist()), set(FolderStore(folder / "images").keys())
    if not keys or not keys <= copied or not all(Path(key).suffix.lower() in ENDINGS for key in keys):
        return []
    table, place = bench.table, bench.table.column_names.index("images")
    if not paths.equals(references):
        table = table.append_column("references", table.column("images"))
    paths = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pc.binary_join_element_wise("images", paths, "/"))
    write_parquet(table.set_column(place, "images_file_names", paths), folder / METADATA_FILE)
    return [METADATA_FILE, "images/**"]


# -- README.md -------------------------------------------------------------------------------------------------------


def readme(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape], pictures: Sequence[str] = ()) -> str:
    """Return the text of README.md. `pictures` are the patterns of files that `write_metadata` returned; empty if no
    images are included.
    """
    import yaml

    head = yaml.safe_dump(_head(bench, kinds, pictures), allow_unicode=True, sort_keys=False)
    columns = {name: _TABLES["columns"].get(name, "") for name in bench.columns}
    return _filled("README.md", bench, manifest, kinds, head=head, columns=columns, opened=bool(pictures))


def _filled(template: str, bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape], **more: Any) -> str:
    values = {"bench": bench, "info": bench.info, "manifest": manifest, "kinds": kinds, "levels": match_chance(bench)}
    values["steps"] = _all_steps(bench.provenance)
    functions = {"step_text": step_text, "shape_text": _shape_text, "tag": _tag_name, "counted": counted}
    functions |= {"line": _joined_lines, "cell": lambda text: _joined_lines(text).replace("|", "\\|") or "(no name)"}
    return render("bench", template, title=_title(bench), **values, **functions, **more)


def _head(bench: Benchmark, kinds: list[MatchShape], files: Sequence[str]) -> dict[str, Any]:
    licence = licence_id(bench.info.licence)
    paraphrases = any(sum(row) > 1 for s in kinds for row in s.match)
    pictures = any(s.images for s in kinds)
    head: dict[str, Any] = {"license": licence}
    if licence == "other":
        head["license_name"] = _joined_lines(bench.info.licence)
    data = [{"split": "test", "path": files or "data/test-*.parquet"}]
    tasks = (["zero-shot-image-classification"] if pictures else []) + (["sentence-similarity"] if paraphrases else [])
    return head | {
        "pretty_name": _title(bench),
        "task_categories": tasks or ["other"],
        "size_categories": [size_category(len(bench))],
        "tags": ["compositionality", "vision-language", "hard-negatives", "creperie"],
        "configs": [{"config_name": "default", "data_files": data, "default": True}],
    }


def _shape_text(shape: MatchShape) -> str:
    """Return the shape of an item as a short phrase.

    >>> _shape_text(MatchShape(1, 3, ((True, True, False),), 5))
    '1 image, 3 captions, match `[[1,1,0]]`'
    """
    pictures = counted(shape.images, "image") if shape.images else "no images"
    matrix = f", match `{shape.text}`" if len(shape.text) <= 60 else ""
    return f"{pictures}, {counted(shape.captions, 'caption')}{matrix}"


def step_text(step: ProvenanceStep) -> str:
    """Return a one-line description of a provenance step.

    >>> step_text(ProvenanceStep("sample", {"n": 100, "seed": 0}, ("ab12" * 16,)))
    'sample (n=100, seed=0) of ab12ab12ab12'
    >>> step_text(ProvenanceStep("read", {"sha256": {"a.json": "ab12" * 16}}))
    'read (sha256=ab12ab12ab12 of a.json)'
    """
    args = {k: v for k, v in step.args.items() if v not in ("", None) and k != "history"}
    if isinstance(digests := args.get("sha256"), Mapping):
        args["sha256"] = listing(f"{digest[:12]} of {name}" for name, digest in digests.items())
    shown = ", ".join(f"{k}={_short_text(v)}" for k, v in args.items())
    inputs = " and ".join(h[:12] for h in step.inputs)
    return step.op + (f" ({shown})" if shown else "") + (f" of {inputs}" if inputs else "")


def _short_text(value: Any) -> str:
    if isinstance(value, Mapping):  # for example checksums by file name: show the names only
        value = listing(value)
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), 120)


def _tag_name(column: str) -> str:
    return column.removeprefix(TAG_PREFIX)


def _title(bench: Benchmark) -> str:
    return _joined_lines(bench.info.title or bench.name)


def _joined_lines(text: str) -> str:
    return " ".join(text.split())


# -- DATASHEET.md ----------------------------------------------------------------------------------------------------


def datasheet(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape]) -> str:
    """Return the text of DATASHEET.md. Questions that creperie cannot answer are left open."""
    types = {pa.string(): "text", pa.float64(): "a number", pa.bool_(): "yes or no"}
    tags = {_tag_name(f.name): types.get(f.type, str(f.type)) for f in bench.schema if f.name not in CORE_COLUMNS.names}
    skipped = Counter(record.reason for record in bench.skipped).most_common()

    def judged(task: str) -> int:  # of these items: the history counts those of the set that the study was about
        column = f"{TAG_PREFIX}people.{task}"
        return len(bench) - bench.column(column).null_count if column in bench.columns else 0

    return _filled("DATASHEET.md", bench, manifest, kinds, tags=tags, skipped=skipped, short=_short_text, judged=judged)


def _all_steps(steps: Iterable[ProvenanceStep]) -> list[ProvenanceStep]:
    """Return all provenance steps in order, including the steps of benchmarks that were concatenated."""
    flat: list[ProvenanceStep] = []
    for step in steps:
        for part in step.args.get("history", ()):
            flat += _all_steps(ProvenanceStep(s["op"], s["args"], tuple(s["inputs"])) for s in part)
        flat.append(step)
    return flat


CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

#: the JSON-LD context: terms of Croissant (cr:); all other terms are from schema.org
CONTEXT: dict[str, Any] = json.loads(packaged("creperie.bench", "croissant.json"))

LICENCE_URLS: dict[str, str] = _TABLES["licence_urls"]


def croissant(bench: Benchmark, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the Croissant metadata. `files` maps the name of each file to its sha256."""
    info, title = bench.info, _title(bench)
    address = re.search(r"https?://[^\s,;)]+", info.source)
    records = {
        "@type": "cr:RecordSet",
        "@id": "items",
        "name": "items",
        "description": "One record per item: its images, its captions, and which caption is true of which image.",
        "key": [{"@id": "items/subset"}, {"@id": "items/id"}],
        "field": [_field(column, i, next(iter(files))) for i, column in enumerate(bench.schema)],
    }
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": _identifier(bench.name),
        "alternateName": title,
        "description": info.description or f"{title}: a vision-language compositionality benchmark.",
        "conformsTo": CONFORMS_TO,
        "citeAs": info.citation or f"{title}, content hash {bench.hash}",
        "license": LICENCE_URLS.get(licence_id(info.licence)) or info.licence or "unknown",
        **({"url": address[0]} if address else {}),
        "version": "1.0.0",
        "datePublished": _today(),
        "distribution": [
            {
                "@type": "cr:FileObject",
                **dict.fromkeys(("@id", "name", "contentUrl"), path),
                "encodingFormat": "application/x-parquet",
                "sha256": digest,
            }
            for path, digest in files.items()
        ],
        "recordSet": [records],
    }


def _field(column: pa.Field, number: int, file: str) -> dict[str, Any]:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", column.name)
    repeated = pa.types.is_list(column.type)
    kind = column.type.value_type if repeated else column.type
    data_type = "sc:Boolean" if pa.types.is_boolean(kind) else "sc:Text" if pa.types.is_string(kind) else "sc:Float"
    return {
        "@type": "cr:Field",
        "@id": f"items/{plain}" if plain == column.name else f"items/{plain}-{number}",
        "name": column.name,
        "description": _TABLES["columns"].get(column.name) or f"The tag {_tag_name(column.name)}.",
        "dataType": data_type,
        **({"repeated": True} if repeated else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }


def _identifier(name: str) -> str:
    """Return a name without the characters that Croissant forbids.

    >>> _identifier("sugarcrepe++ (mine)")
    'sugarcrepe-mine'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "benchmark"


def _today() -> str:
    """Return the current date or, in a reproducible build, the date in SOURCE_DATE_EPOCH."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.fromtimestamp(int(fixed), dt.UTC) if fixed.isdigit() else dt.datetime.now(dt.UTC)
    return now.date().isoformat()
