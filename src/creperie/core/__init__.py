"""The lowest layer: errors, progress reporting, the version, where files are stored. It imports no other room."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
