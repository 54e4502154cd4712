"""Models of the transformers library, by hub name or folder."""

from creperie.models.hf.load import load

__all__ = ["load"]
