"""Numbers from (match, scores): outcomes, accuracies, ties, intervals, paired tests, agreement. Pure functions on
arrays, which need only numpy. `evaluate` takes a `Layout` of match matrices and a flat array of scores, and returns one
`Result` per subset; `outcomes` returns what `compare` takes.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
