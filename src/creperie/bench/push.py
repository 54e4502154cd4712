"""A benchmark in a dataset repository of the Hugging Face hub, sent in one commit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.storage import save
from creperie.core import CreperieError, DataError, Progress, UsageError, __version__, missing_module, silent


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
