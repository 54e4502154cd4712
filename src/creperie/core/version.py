"""The version of creperie: the one place where it is written."""

__version__ = "1.0.0rc1"
