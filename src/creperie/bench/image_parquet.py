"""A benchmark for the Hugging Face hub: Parquet files that hold the images, or a dataset repository in one commit."""

from __future__ import annotations

import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from creperie.bench.benchmark import Benchmark
from creperie.bench.images import open_image, split_reference
from creperie.bench.item import Item
from creperie.bench.storage import new_folder, save
from creperie.core import CreperieError, DataError, Progress, UsageError, __version__, missing_module, silent

#: items in a file: some hundred megabytes of photographs
TOGETHER = 1000
_TEXT = {"dtype": "string", "_type": "Value"}
FEATURES = {
    "subset": _TEXT,
    "id": _TEXT,
    "images": {"feature": {"_type": "Image"}, "_type": "Sequence"},
    "captions": {"feature": _TEXT, "_type": "Sequence"},
    "match": {"feature": {"feature": {"dtype": "bool", "_type": "Value"}, "_type": "Sequence"}, "_type": "Sequence"},
    "tags": _TEXT,
}
_PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SCHEMA = pa.schema(
    [
        ("subset", pa.string()),
        ("id", pa.string()),
        ("images", pa.list_(_PICTURE)),
        ("captions", pa.list_(pa.string())),
        ("match", pa.list_(pa.list_(pa.bool_()))),
        ("tags", pa.string()),  # JSON: tags differ from benchmark to benchmark
    ],
    metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
)


def export_image_parquet(
    bench: Benchmark, out: str | Path, *, force: bool = False, progress: Progress = silent
) -> list[Path]:
    """Write `data/test-*.parquet`; `datasets.load_dataset(DIR)` opens the images."""
    if not bench.images.location:
        raise UsageError("the files need the images", where=bench.name, hint="say where they are with `images=`")
    folder = Path(out)
    count = max(1, -(-len(bench) // TOGETHER))
    with new_folder(folder, replace_old=force) as draft, progress("items", len(bench), "items") as advance:
        (draft / "data").mkdir()
        for k in range(count):
            numbers = range(k * TOGETHER, min(len(bench), (k + 1) * TOGETHER))
            rows = [_row(bench, bench[n]) for n in numbers]
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), draft / "data" / f"test-{k:05d}-of-{count:05d}.parquet")
            advance(len(rows))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _row(bench: Benchmark, item: Item) -> dict[str, Any]:
    return {
        "subset": item.subset,
        "id": item.id,
        "images": [{"bytes": _bytes(bench, reference), "path": None} for reference in item.images],
        "captions": list(item.captions),
        "match": [list(row) for row in item.match],
        "tags": json.dumps(dict(item.tags), ensure_ascii=False),
    }


def _bytes(bench: Benchmark, reference: str) -> bytes:
    """The file as it is; a crop is cut out and stored without loss."""
    key, box = split_reference(reference)
    if box is None:
        return bench.images.read(key)
    data = io.BytesIO()
    open_image(bench.images, reference).save(data, "PNG")
    return data.getvalue()


@dataclass(frozen=True)
class PushedBenchmark:
    """What was sent where: bytes by file, and the commit's address, which is empty in a dry run."""

    repo: str
    licence: str
    files: dict[str, int]
    commit: str = ""


def push_benchmark(
    bench: Benchmark,
    repo: str,
    *,
    private: bool = False,
    copy_images: bool = False,
    message: str = "",
    dry_run: bool = False,
    progress: Progress = silent,
) -> PushedBenchmark:
    """Save the benchmark and upload it to `repo` (OWNER/NAME). Files that the hub has already are not sent again."""
    if not bench.info.licence:
        hint = "pass --licence, if you have the right to publish it"
        raise UsageError("states no licence, and others may not use what has none", where=bench.name, hint=hint)
    with tempfile.TemporaryDirectory(prefix="creperie.") as place:
        folder = Path(place) / "bench"
        save(bench, folder, copy_images=copy_images, progress=progress)
        files = {f.relative_to(folder).as_posix(): f.stat().st_size for f in sorted(folder.rglob("*")) if f.is_file()}
        said = message or f"{bench.name}: {len(bench):,} items, content {bench.hash[:12]}"
        return PushedBenchmark(repo, bench.info.licence, files, "" if dry_run else _sent(folder, repo, private, said))


def _sent(folder: Path, repo: str, private: bool, said: str) -> str:
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
    except ImportError as e:
        raise missing_module(e) from e
    api = HfApi(library_name="creperie", library_version=__version__)
    try:
        api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo, folder_path=folder, repo_type="dataset", commit_message=said))
    except HFValidationError:
        raise UsageError(f"{repo!r} is not a name on the hub", hint="write OWNER/NAME") from None
    except OfflineModeIsEnabled:
        raise UsageError("HF_HUB_OFFLINE is set, so nothing can be sent", where=repo, hint="unset it") from None
    except CreperieError:
        raise
    except Exception as e:  # refused, or no connection, in the many ways that this shows
        code = e.response.status_code if isinstance(e, HfHubHTTPError) and e.response is not None else 0
        if code in (401, 403):
            hint = "log in with `hf auth login`, or set HF_TOKEN to a token that may write"
            raise DataError("the hub does not let you write", where=repo, hint=hint) from None
        what = f"sending it to the hub failed ({str(e).strip().splitlines()[0][:200] or type(e).__name__})"
        raise DataError(
            what, where=repo, hint="run the same command again: what has arrived is not sent twice"
        ) from None
