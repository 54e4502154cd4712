"""Studies with people: web pages on which annotators check, correct, rate and choose, and the effect of their answers
on the benchmark.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
