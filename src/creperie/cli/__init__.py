"""The command line: thin. Parse, call one function, print."""

from creperie.cli.app import main

__all__ = ["main"]
