"""Where batches run: in this process, in worker processes, or on a Ray cluster, with the same output. A *stage* maps a
table to a table, *pieces* are a source cut into numbered tables, and an *engine* applies a stage to pieces.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
