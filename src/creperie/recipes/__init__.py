"""The papers as recipes. A recipe is a sequence of stages, from captions to tables, that can be planned, run and
resumed.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
