"""Where batches run: in this process, in worker processes, or on a Ray cluster, always with the same output.

A source is cut into numbered tables, its *pieces*. A *stage* is a function from a table to a table. An *engine* applies
a stage to pieces.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
