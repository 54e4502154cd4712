"""The command line: parse into options, call one function, print."""

from creperie.cli.app import main

__all__ = ["main"]
