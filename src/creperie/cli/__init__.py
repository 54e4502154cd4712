"""The command line: every command parses its options, calls one function and prints the result."""

from creperie.cli.app import main

__all__ = ["main"]
