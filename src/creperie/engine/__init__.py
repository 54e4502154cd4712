"""Where batches run: in this process, in processes beside it, or on a Ray cluster. The output is the same.

A *stage* turns a table into a table; *pieces* are a source cut into numbered tables; an *engine* applies the one to
the others. `map_batches` keeps what comes of it as Parquet parts, each whole or not there, so that it can go on.
"""

from creperie.engine.engines import Engine, Local, choose_engine, session
from creperie.engine.pieces import Held, Pieces
from creperie.engine.run import Done, gather, map_batches
from creperie.engine.shard import Shard, parse_shard
from creperie.engine.stage import Stage

__all__ = [
    "Done",
    "Engine",
    "Held",
    "Local",
    "Pieces",
    "Shard",
    "Stage",
    "choose_engine",
    "gather",
    "map_batches",
    "parse_shard",
    "session",
]
