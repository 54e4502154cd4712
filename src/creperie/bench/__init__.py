"""What a benchmark is: items with match matrices, the published formats, images, cards, the catalog."""

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, concatenate, from_items
from creperie.bench.images import NO_IMAGES, ImageError, ImageStore, open_image
from creperie.bench.item import PAIRED, Item, Match, choice
from creperie.bench.spec import load
from creperie.bench.storage import load_folder, save

__all__ = [
    "NO_IMAGES",
    "PAIRED",
    "Benchmark",
    "ImageError",
    "ImageStore",
    "Info",
    "Item",
    "Match",
    "ProvenanceStep",
    "SkippedRecord",
    "choice",
    "concatenate",
    "from_items",
    "load",
    "load_folder",
    "open_image",
    "save",
]
