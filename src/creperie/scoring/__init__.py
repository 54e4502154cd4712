"""Score models on benchmarks. Each image and caption is encoded once and cached, scores are computed, and runs are
written to folders. A run can be resumed, compared and reported.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
