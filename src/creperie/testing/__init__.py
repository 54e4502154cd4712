"""Helpers for tests and demos: tiny model checkpoints in the layout of a model hub, made on demand, and a scripted
model.
"""
