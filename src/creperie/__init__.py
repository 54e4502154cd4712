"""creperie: a workshop for vision-language compositionality benchmarks.

The functions below mirror the commands; each is imported when it is first used. The rooms (`creperie.bench`,
`creperie.annotation`, …) hold the rest.
"""

from creperie.core.doors import front_door
from creperie.core.version import __version__ as __version__

__all__, __getattr__, __dir__ = front_door(__name__)
