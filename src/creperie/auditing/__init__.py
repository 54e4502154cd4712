"""Can a benchmark be solved without its images, and through which cues? Attackers that see only text, their accuracy,
and a verdict.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
