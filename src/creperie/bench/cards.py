"""The documents that come with a saved benchmark: README.md, DATASHEET.md, croissant.json.

README.md has the YAML head by which `datasets.load_dataset(folder)` finds the items; DATASHEET.md is a datasheet with
what creperie knows filled in and the rest left as questions to its authors; croissant.json is Croissant 1.0 metadata.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, Parquet, ProvenanceStep
from creperie.bench.catalog.places import MANIFEST_FILE
from creperie.bench.images import REFERENCE_ENDING
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX
from creperie.bench.shapes import MatchShape, match_chance, match_shapes
from creperie.bench.stores import FolderStore
from creperie.core import packaged, packaged_toml, read_json, render, sha256_of, write_json, write_text

_TABLES: dict[str, dict[str, str]] = packaged_toml("creperie.bench", "cards.toml")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def write_cards(bench: Benchmark, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the three documents beside the saved items."""
    kinds = match_shapes(bench)
    pictures = write_metadata(bench, folder) if manifest["images"] == "images" else []
    (folder / "README.md").write_text(readme(bench, manifest, kinds, pictures), encoding="utf-8")
    (folder / "DATASHEET.md").write_text(datasheet(bench, manifest, kinds), encoding="utf-8")
    files = {f.relative_to(folder).as_posix(): sha256_of(f) for f in sorted((folder / "data").glob("*.parquet"))}
    document = croissant(bench, files, _TABLES["columns"], licence_id(bench.info.licence))
    (folder / "croissant.json").write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


#: The last audit of a saved benchmark, beside its items; the cards state its verdict between two marks.
AUDIT_FILE = "audit.json"
_AUDIT = re.compile(r"(<!-- audit -->\n).*?(<!-- end of audit -->)", re.DOTALL)


def recorded_audit(bench: Benchmark) -> dict[str, Any] | None:
    """Return the audit that was recorded beside a saved benchmark; None where there is none of this content."""
    if not isinstance(bench.source, Parquet) or not bench.source.files:
        return None
    path = bench.source.files[0].parent.parent / AUDIT_FILE
    document = read_json(path) if path.is_file() else None
    return document if isinstance(document, dict) and document.get("hash") == bench.hash else None


def record_audit(folder: Path, audit: Mapping[str, Any]) -> bool:
    """Write an audit beside a saved benchmark and its verdict into the cards; True if that was done.

    Nothing is written where the folder holds another content, an audit by more attackers, or cannot be written.
    """
    manifest = folder / MANIFEST_FILE
    if not manifest.is_file() or read_json(manifest).get("hash") != audit["hash"]:
        return False
    old = read_json(folder / AUDIT_FILE) if (folder / AUDIT_FILE).is_file() else {}
    if old.get("hash") == audit["hash"] and len(old.get("attackers", ())) > len(audit["attackers"]):
        return False
    how = f"{audit['items']:,} items, seed {audit['seed']}, creperie {audit['version']}; figures in `{AUDIT_FILE}`"
    stated = f"{audit['text']}.\n\n{audit['power']} ({how}).\n\nNext: `{audit['next']}`\n"
    try:
        write_json(folder / AUDIT_FILE, audit)
        for card in (folder / "README.md", folder / "DATASHEET.md"):
            if card.is_file():
                write_text(card, _AUDIT.sub(lambda m: m[1] + stated + m[2], card.read_text(encoding="utf-8")))
    except OSError:  # a read-only folder: the audit is right all the same
        return False
    return True


def licence_id(licence: str) -> str:
    """Return the short name of a licence.

    >>> licence_id("CC BY 4.0"), licence_id("ask the authors"), licence_id("")
    ('cc-by-4.0', 'other', 'unknown')
    """
    if not licence:
        return "unknown"
    return _TABLES["licences"].get(re.sub(r"[^a-z0-9]", "", licence.lower()), "other")


def size_category(items: int) -> str:
    """
    >>> size_category(7511)
    '1K<n<10K'
    """
    return next((name for limit, name in SIZES if items < limit), "n>10M")


#: the name and the endings by which `datasets` knows a table of items and the pictures that lie beside it
METADATA_FILE = "metadata.parquet"
ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


def write_metadata(bench: Benchmark, folder: Path) -> list[str]:
    """Write the items once more with the paths of their copied images; the files that `datasets` then reads.

    Nothing is written where an image is missing or has an ending that `datasets` does not know. A picture is whole
    there; where items mean a part of it, the column `references` says which.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    offsets, references = bench.ragged("images")
    paths = pc.replace_substring_regex(references, REFERENCE_ENDING, "")
    keys, copied = set(pc.unique(paths).to_pylist()), set(FolderStore(folder / "images").keys())
    if not keys or not keys <= copied or not all(Path(key).suffix.lower() in ENDINGS for key in keys):
        return []
    table, place = bench.table, bench.table.column_names.index("images")
    if not paths.equals(references):
        table = table.append_column("references", table.column("images"))
    paths = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pc.binary_join_element_wise("images", paths, "/"))
    pq.write_table(table.set_column(place, "images_file_names", paths), folder / METADATA_FILE, compression="zstd")
    return [METADATA_FILE, "images/**"]


# -- README.md -------------------------------------------------------------------------------------------------------


def readme(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape], pictures: Sequence[str] = ()) -> str:
    """Return the card; `pictures` are the files that `datasets` reads where images are part of the folder."""
    import yaml

    head = yaml.safe_dump(_head(bench, kinds, pictures), allow_unicode=True, sort_keys=False)
    columns = {name: _TABLES["columns"].get(name, "") for name in bench.columns}
    return _filled("README.md", bench, manifest, kinds, head=head, columns=columns, opened=bool(pictures))


def _filled(template: str, bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape], **more: Any) -> str:
    values = {"bench": bench, "info": bench.info, "manifest": manifest, "kinds": kinds, "levels": match_chance(bench)}
    functions = {"step_text": step_text, "shape_text": _shape_text, "cell": _cell, "line": _line, "tag": _tag_name}
    return render("bench", template, title=_line(bench.info.title or bench.name), **values, **functions, **more)


def _head(bench: Benchmark, kinds: list[MatchShape], files: Sequence[str]) -> dict[str, Any]:
    licence = licence_id(bench.info.licence)
    paraphrases = any(sum(row) > 1 for s in kinds for row in s.match)
    pictures = any(s.images for s in kinds)
    head: dict[str, Any] = {"license": licence}
    if licence == "other":
        head["license_name"] = _line(bench.info.licence)
    data = [{"split": "test", "path": files or "data/test-*.parquet"}]
    tasks = (["zero-shot-image-classification"] if pictures else []) + (["sentence-similarity"] if paraphrases else [])
    return head | {
        "pretty_name": _line(bench.info.title or bench.name),
        "task_categories": tasks or ["other"],
        "size_categories": [size_category(len(bench))],
        "tags": ["compositionality", "vision-language", "hard-negatives", "creperie"],
        "configs": [{"config_name": "default", "data_files": data, "default": True}],
    }


def _shape_text(shape: MatchShape) -> str:
    """
    >>> _shape_text(MatchShape(1, 3, ((True, True, False),), 5))
    '1 image, 3 captions, match `[[1,1,0]]`'
    """
    pictures = f"{shape.images or 'no'} image{'' if shape.images == 1 else 's'}"
    matrix = f", match `{shape.text}`" if len(shape.text) <= 60 else ""
    return f"{pictures}, {shape.captions} caption{'' if shape.captions == 1 else 's'}{matrix}"


def step_text(step: ProvenanceStep) -> str:
    """Return one step of the provenance in a line.

    >>> step_text(ProvenanceStep("sample", {"n": 100, "seed": 0}, ("ab12" * 16,)))
    'sample (n=100, seed=0) of ab12ab12ab12'
    """
    shown = ", ".join(f"{k}={_short(v)}" for k, v in step.args.items() if v not in ("", None) and k != "history")
    inputs = " and ".join(h[:12] for h in step.inputs)
    return step.op + (f" ({shown})" if shown else "") + (f" of {inputs}" if inputs else "")


def _short(value: Any) -> str:
    if isinstance(value, Mapping):  # checksums of files, say: the names will do
        names = list(map(str, value))
        value = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    text = _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 120 else text[:117] + "…"


def _tag_name(column: str) -> str:
    return column.removeprefix(TAG_PREFIX)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|") or "(no name)"


# -- DATASHEET.md ----------------------------------------------------------------------------------------------------


def datasheet(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape]) -> str:
    """Questions and answers; what creperie cannot know stays a question."""
    steps = _all_steps(bench.provenance)
    types = {pa.string(): "text", pa.float64(): "a number", pa.bool_(): "yes or no"}
    tags = {_tag_name(f.name): types.get(f.type, str(f.type)) for f in bench.schema if f.name not in CORE_COLUMNS.names}
    skipped = Counter(record.reason for record in bench.skipped).most_common()
    return _filled("DATASHEET.md", bench, manifest, kinds, tags=tags, skipped=skipped, steps=steps, short=_short)


def _all_steps(steps: Iterable[ProvenanceStep]) -> list[ProvenanceStep]:
    """Return the steps in order, with those of benchmarks that were joined on the way."""
    flat: list[ProvenanceStep] = []
    for step in steps:
        for part in step.args.get("history", ()):
            flat += _all_steps(ProvenanceStep(s["op"], s["args"], tuple(s["inputs"])) for s in part)
        flat.append(step)
    return flat


CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

#: the standard's terms (cr:); everything else is schema.org's
CONTEXT: dict[str, Any] = json.loads(packaged("creperie.bench", "croissant.json"))

LICENCE_URLS: dict[str, str] = packaged_toml("creperie.bench", "cards.toml")["licence_urls"]


def croissant(bench: Benchmark, files: Mapping[str, str], columns: Mapping[str, str], licence: str) -> dict[str, Any]:
    """Return the JSON-LD document. `files` are the Parquet files with their sha256, `columns` what the columns mean."""
    info = bench.info
    title = " ".join((info.title or bench.name).split())
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": _identifier(bench.name),
        "alternateName": title,
        "description": info.description or f"{title}: a vision-language compositionality benchmark.",
        "conformsTo": CONFORMS_TO,
        "citeAs": info.citation or f"{title}, content hash {bench.hash}",
        "license": LICENCE_URLS.get(licence) or info.licence or "unknown",
        **_url(info.source),
        "version": "1.0.0",
        "datePublished": _today(),
        "distribution": [_file(path, digest) for path, digest in files.items()],
        "recordSet": [_records(bench, next(iter(files)), columns)],
    }


def _file(path: str, digest: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _records(bench: Benchmark, file: str, columns: Mapping[str, str]) -> dict[str, Any]:
    schema = bench.schema
    return {
        "@type": "cr:RecordSet",
        "@id": "items",
        "name": "items",
        "description": "One record an item: its images, its captions, and which caption is true of which image.",
        "key": [{"@id": "items/subset"}, {"@id": "items/id"}],
        "field": [_field(schema.field(name), id_, file, columns.get(name, "")) for name, id_ in _ids(bench).items()],
    }


def _ids(bench: Benchmark) -> dict[str, str]:
    """Return column names with ids for them, which may hold no blanks."""
    ids: dict[str, str] = {}
    for i, name in enumerate(bench.columns):
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
        ids[name] = f"items/{plain}" if plain == name else f"items/{plain}-{i}"
    return ids


def _field(column: pa.Field, id_: str, file: str, text: str) -> dict[str, Any]:
    repeated = pa.types.is_list(column.type)
    kind = column.type.value_type if repeated else column.type
    data_type = "sc:Boolean" if pa.types.is_boolean(kind) else "sc:Text" if pa.types.is_string(kind) else "sc:Float"
    return {
        "@type": "cr:Field",
        "@id": id_,
        "name": column.name,
        "description": text or f"The tag {column.name.removeprefix(TAG_PREFIX)}.",
        "dataType": data_type,
        **({"repeated": True} if repeated else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }


def _identifier(name: str) -> str:
    """Return a name without the characters that the standard forbids.

    >>> _identifier("sugarcrepe++ (mine)")
    'sugarcrepe-mine'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "benchmark"


def _url(source: str) -> dict[str, str]:
    address = re.search(r"https?://[^\s,;)]+", source)
    return {"url": address.group()} if address else {}


def _today() -> str:
    """Return the day of writing; builds that must come out the same twice set SOURCE_DATE_EPOCH."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.fromtimestamp(int(fixed), dt.UTC) if fixed.isdigit() else dt.datetime.now(dt.UTC)
    return now.date().isoformat()
