"""Words, style, distances, inflection, grammar and parse trees. There is one module per library, imported when it is
used.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
