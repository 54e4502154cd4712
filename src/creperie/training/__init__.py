"""Hard-negative training and fine-tuning, to see whether a gain survives an honest benchmark."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
