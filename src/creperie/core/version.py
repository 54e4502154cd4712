"""The version of creperie, defined only here."""

__version__ = "1.0.0rc1"
