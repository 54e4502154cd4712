"""Reading a model's folder with transformers: configuration, weights, tokenizer, image processor."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import ModelError
from creperie.models.device import Place

#: buffers that old checkpoints hold and newer code computes, or the other way round
COMPUTED = ("position_ids", "embeddings.token_type_ids", "logit_scale", "logit_bias")


@dataclass(frozen=True)
class Folder:
    """A model's folder, and whether code in it may run."""

    path: Path
    uri: str
    trust: bool = False

    def config(self) -> Any:
        from transformers import AutoConfig

        with self._readable("configuration"), quiet_libraries():
            return AutoConfig.from_pretrained(self.path, trust_remote_code=self.trust, local_files_only=True)

    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with self._readable("tokenizer"), quiet_libraries():
            return AutoTokenizer.from_pretrained(self.path, trust_remote_code=self.trust, local_files_only=True)

    def image_processor(self) -> Any:
        """Always Pillow's resizing: torchvision's gives other pixels, and is not everywhere."""
        from transformers import AutoImageProcessor

        with self._readable("image processor"), quiet_libraries():
            return AutoImageProcessor.from_pretrained(
                self.path, trust_remote_code=self.trust, local_files_only=True, backend="pil"
            )

    def model(self, model_class: Any, place: Place, **settings: Any) -> Any:
        """The model with its weights. Weights that are not in the files would be random: that is an error."""
        with self._readable("weights"), quiet_libraries():
            model, report = model_class.from_pretrained(
                self.path,
                dtype=place.torch_dtype,
                local_files_only=True,
                trust_remote_code=self.trust,
                output_loading_info=True,
                **settings,
            )
        missing = sorted(k for k in report["missing_keys"] if not k.endswith(COMPUTED))
        wrong = [str(k) for k in report.get("mismatched_keys") or []]
        if missing or wrong:
            lacking = f"{len(missing) + len(wrong)} of the weights ({(missing + wrong)[0]} …)"
            hint = "name a checkpoint that was saved from this architecture"
            raise ModelError(f"the checkpoint lacks {lacking} of {model_class.__name__}", where=self.uri, hint=hint)
        return model.to(place.torch_device).eval()

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as e:
            raise ModelError(
                f"the {what} cannot be read from {self.path}: {_short(e)}",
                where=self.uri,
                hint="set CREPERIE_TRACEBACK=1 for the traceback",
            ) from e


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep load reports and progress bars of libraries off the terminal: what matters is raised instead."""
    from transformers.utils import logging as reports

    level, bars = logging.root.manager.disable, reports.is_progress_bar_enabled()
    logging.disable(logging.WARNING)
    reports.disable_progress_bar()
    try:
        yield
    finally:
        logging.disable(level)
        if bars:
            reports.enable_progress_bar()


def _short(error: Exception) -> str:
    line = " ".join((str(error).strip() or type(error).__name__).split())
    return line if len(line) <= 200 else line[:200] + "…"
