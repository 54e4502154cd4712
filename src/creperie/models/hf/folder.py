"""Load the parts of a model with transformers: configuration, weights, tokenizer, image processor."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import ModelError, UsageError, one_line, packaged_toml
from creperie.models.device import Place
from creperie.models.weights import hash_files, weight_files

#: buffers that are in old checkpoints but computed by newer code, or the reverse
COMPUTED = ("position_ids", "embeddings.token_type_ids", "logit_scale", "logit_bias")

REMOVED_ARCHITECTURES: dict[str, str] = packaged_toml("creperie.models", "kinds.toml")["removed_architectures"]


@dataclass(frozen=True)
class Folder:
    """A folder that contains a model. `trust` says whether Python code in the folder may be run."""

    path: Path
    uri: str
    trust: bool = False

    def _part(self, what: str, library_class: str, **settings: Any) -> Any:
        import transformers

        auto = getattr(transformers, library_class)
        with self._readable(what), quiet_libraries():
            return auto.from_pretrained(self.path, trust_remote_code=self.trust, local_files_only=True, **settings)

    def config(self) -> Any:
        return self._part("configuration", "AutoConfig")

    def tokenizer(self) -> Any:
        return self._part("tokenizer", "AutoTokenizer")

    def image_processor(self) -> Any:
        """Return the image processor that uses Pillow."""
        # torchvision gives different pixels and may not be installed.
        return self._part("image processor", "AutoImageProcessor", backend="pil")

    def model(self, model_class: Any, place: Place, **settings: Any) -> Any:
        """Return the model with its weights. Raise a ModelError if weights are missing: they would be random."""
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
            raise ModelError(
                f"the checkpoint lacks {lacking} of {model_class.__name__}",
                where=self.uri,
                hint="name a checkpoint that was saved from this architecture",
            )
        return model.to(place.torch_device).eval()

    def weights(self) -> str:
        """Return the hash of the files that hold the weights."""
        return hash_files(weight_files(self.path))

    def processor(self, model_type: str) -> Any:
        """Return the model's own processor of images and text, with an image processor that uses Pillow."""
        # A processor that can also read video is created without its video part, which needs torchvision.
        import transformers
        from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

        name = PROCESSOR_MAPPING_NAMES.get(model_type)
        if name is None:
            raise ModelError(f"transformers has no processor for {model_type!r}: install a newer one", where=self.uri)
        known: Any = getattr(transformers, name)
        without_video: Any = type(name, (_Without, known), {"__init__": known.__init__})
        parts = [self._processor_part(attribute) for attribute in known.get_attributes()]
        with self._readable("processor"), quiet_libraries():
            settings, _ = known.get_processor_dict(self.path, local_files_only=True)
            return without_video.from_args_and_dict(parts, settings)

    def _processor_part(self, attribute: str) -> Any:
        if attribute == "image_processor":
            return self.image_processor()
        if attribute == "tokenizer":
            return self.tokenizer()
        if attribute == "qformer_tokenizer":
            return Folder(self.path / attribute, self.uri, self.trust).tokenizer()
        return None

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as e:
            raise ModelError(
                f"the {what} cannot be read from {self.path}: {one_line(e) or type(e).__name__}",
                where=self.uri,
                hint="set CREPERIE_TRACEBACK=1 for the traceback",
            ) from e


class _Without:
    """A mixin for a processor class. The processor is created without a part that creperie does not use, such as the
    part for videos.
    """

    def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
        return None if argument is None else super().check_argument_for_proper_class(name, argument)  # type: ignore[misc]


@dataclass(frozen=True)
class InMemory:
    """A model in memory, with the same interface as `Folder`. Adapters get copies of the parts that they modify."""

    network: Any
    uri: str
    content: str  #: the hash of weights, configuration and preprocessing
    whole: Any = None  #: a processor of images and text
    text: Any = None  #: a tokenizer
    images: Any = None  #: an image processor

    def config(self) -> Any:
        config = copy.deepcopy(self.network.config)
        base = getattr(self.network, "get_base_model", lambda: self.network)()
        config.architectures = [type(base).__name__]
        return config

    def tokenizer(self) -> Any:
        own = self.text or getattr(self.whole, "tokenizer", None) or self.whole
        if not hasattr(own, "model_input_names") or not hasattr(own, "get_vocab"):
            raise self._missing("tokenizer")
        return copy.deepcopy(own)

    def image_processor(self) -> Any:
        own = self.images or getattr(self.whole, "image_processor", None) or self.whole
        if not hasattr(own, "image_mean") and not hasattr(own, "preprocess"):
            raise self._missing("image processor")
        return own

    def processor(self, _: str) -> Any:
        if not hasattr(self.whole, "tokenizer") or not hasattr(self.whole, "image_processor"):
            raise self._missing("processor")
        return self.whole

    def _missing(self, part: str) -> UsageError:
        hint = "pass it too: `creperie.wrap(model, processor=…)` or `tokenizer=…`"
        return UsageError(f"the model's {part} is missing", where=self.uri, hint=hint)

    def model(self, model_class: Any, place: Place, **_: Any) -> Any:
        """Return the network, or the part of it that is of the class `model_class`."""
        name = model_class.__name__
        if name.startswith("Auto") or isinstance(self.network, model_class):
            return self.network
        inner = next((part for part in self.network.modules() if isinstance(part, model_class)), None)
        if inner is None:
            raise UsageError(
                f"{type(self.network).__name__} neither is nor contains a {name}",
                where=self.uri,
                hint="pass the whole model, or another ?score=",
            )
        return inner

    def weights(self) -> str:
        return self.content


ModelSource = Folder | InMemory


def no_adapter(model_type: str, what: str, known: Iterable[str], uri: str) -> ModelError:
    """Return the error for an architecture without an adapter. If the adapter was removed, the hint says what replaces
    it.
    """
    gone = REMOVED_ARCHITECTURES.get(model_type)
    hint = gone or f"known: {', '.join(known)}; for others see docs/plugin.md"
    return ModelError(f"architecture {model_type!r} {'was removed' if gone else what}", where=uri, hint=hint)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """During the block, silence the loading reports and progress bars of libraries. Errors are still raised."""
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
