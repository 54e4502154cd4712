"""creperie: a workshop for vision-language compositionality benchmarks.

The functions below mirror the commands; each is imported when it is first used. `creperie.plugin` has what a plug-in
needs, and `creperie.testing` helps with tests. All other packages are internal and change without notice.
"""

from creperie.core.doors import front_door
from creperie.core.version import __version__ as __version__

__all__, __getattr__, __dir__ = front_door(__name__, public=True)
