"""Can a benchmark be solved without its images, and through which cues? An audit runs attackers that see only the text,
measures their accuracy and gives a verdict.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
