"""Helpers for tests and demos: tiny model checkpoints in the layout of a model hub, and a scripted model."""
