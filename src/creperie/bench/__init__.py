"""Benchmarks: items with their match matrices, images, cards, the published formats, and the catalog of benchmarks by
name. `load` reads any of them, and `save` writes a folder that `datasets.load_dataset` can read.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
