"""creperie: a workshop for vision-language compositionality benchmarks.

The functions below mirror the commands; each is imported when it is first used. What a plug-in needs is in
`creperie.plugin`, parts for tests in `creperie.testing`; all other packages are internal and change without notice.
"""

from creperie.core.doors import front_door
from creperie.core.version import __version__ as __version__

__all__, __getattr__, __dir__ = front_door(__name__, public=True)
