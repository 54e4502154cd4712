"""Training and fine-tuning with hard negatives, to test whether the gain they bring persists on an unbiased
benchmark.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
