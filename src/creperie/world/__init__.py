"""A rendered world of scenes with true captions and certified foils: a benchmark, and training data, without a
download.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
