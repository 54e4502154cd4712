"""Results computed from match matrices and scores: outcomes, accuracies, ties, intervals, paired tests and agreement.

All functions are pure, take arrays, and need only numpy. `evaluate` takes a `Layout` of match matrices and a flat array
of scores, and returns one `Result` per subset. `outcomes` returns the arrays that `compare` takes.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
