"""The speed of a model on this machine, stored to forecast how long later runs will take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from creperie.core import CreperieError, read_json, write_json
from creperie.scoring.batch_size import Timings, device_of
from creperie.scoring.handle import Handle
from creperie.scoring.store import ResultStore

#: below this count the start-up takes longer than the work, and the rate is meaningless
ENOUGH = 64


@dataclass(frozen=True)
class Rates:
    """The speed of one model on one device: how many images, captions and pairs it processes per second, and how many
    images and captions per batch. A number is 0 if it was not measured.
    """

    device: str
    images: float = 0.0
    captions: float = 0.0
    pairs: float = 0.0
    tokens_per_caption: float = 0.0
    images_per_batch: float = 0.0
    captions_per_batch: float = 0.0


def rates_of(timings: Timings, device: str, enough: int = ENOUGH) -> Rates:
    """Return how many images, captions and pairs were processed per second, and the average sizes: tokens per
    caption, images per batch, and captions per batch. A speed is 0 if fewer than `enough` inputs were processed.
    """

    def per_second(what: str) -> float:
        count, seconds = timings.counts[what], timings.seconds.get(f"encode {what}", 0.0)
        return count / seconds if count >= enough and seconds else 0.0

    def each(what: str, by: str) -> float:
        return timings.counts[what] / timings.counts[by] if timings.counts[by] else 0.0

    return Rates(
        device,
        per_second("images"),
        per_second("captions"),
        per_second("pairs"),
        each("tokens", "captions"),
        each("images", "images batches"),
        each("captions", "tokens batches"),
    )


def _path(store: ResultStore, handle: Handle) -> Path:
    return store.home / "rates" / f"{handle.fingerprint.key}.json"


def remember_rates(store: ResultStore, handle: Handle, timings: Timings) -> None:
    """Store the rates measured in `timings`; kinds of work that were not measured keep their older rates."""
    new = rates_of(timings, device_of(handle.model))
    old = recall_rates(store, handle)
    if old and old.device == new.device:
        new = Rates(new.device, *(asdict(new)[k] or v for k, v in asdict(old).items() if k != "device"))
    if new.images or new.captions or new.pairs:
        try:
            write_json(_path(store, handle), asdict(new))
        except OSError:
            return  # only the forecast is lost


def recall_rates(store: ResultStore, handle: Handle) -> Rates | None:
    try:
        return Rates(**read_json(_path(store, handle)))
    except (CreperieError, TypeError):
        return None
