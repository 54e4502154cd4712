"""Score models on benchmarks: plan what to encode, encode each image and caption once, cache the results, compute the
scores, and write run folders, which can be resumed, compared and reported.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
