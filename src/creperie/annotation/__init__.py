"""Studies with people: web pages on which annotators check, correct, rate and choose, and functions that apply their
answers to the benchmark.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
