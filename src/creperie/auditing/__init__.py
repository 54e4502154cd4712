"""Can a benchmark be solved without its images, and through which cues? Attackers that see only text are run, their
accuracy is measured, and a verdict is given.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
