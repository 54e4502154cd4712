"""Finding the largest part of a benchmark that blind attackers cannot solve."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
