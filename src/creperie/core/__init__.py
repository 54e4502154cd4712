"""The lowest layer: errors, options, files, progress reporting. It imports no other package of creperie."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
