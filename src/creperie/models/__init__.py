"""Adapters to real models behind a few small protocols.

`load_model("hf:openai/clip-vit-base-patch32")` returns an object that encodes images or texts, scores pairs or texts,
or generates text. Its `fingerprint` identifies it: weights, architecture, preprocessing and options.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
