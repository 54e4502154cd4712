"""A generated world of simple scenes with true captions and foils that are certain to be false. It serves as a
benchmark and as training data, without a download.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
