"""Where batches run: in this process, in worker processes, or on a Ray cluster, always with the same output.

A *stage* is a function from a table to a table, *pieces* are the numbered tables into which a source is cut, and an
*engine* applies a stage to pieces.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
