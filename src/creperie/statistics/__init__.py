"""Mixed models over items, models and constructions: from runs to a long table to fitted effects."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
