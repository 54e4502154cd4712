"""Pieces for tests and demos: tiny checkpoints in the hub's folder layout, made on the spot, no download."""
