"""Tables, figures, HTML reports and leaderboards of runs, with the papers' published results beside them."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
