"""Mixed models that explain the outcomes of runs by properties of items, models and captions: from runs to a long
table, and from the table to fitted effects.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
