"""What differs between families of generative models: data, read by one path for all decoders and one for the rest."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import packaged_toml

#: how text before the image may be read apart from it, once for all images (`Family.opening`)
PLAIN = "plain"  #: every token takes one position and sees only what is before it
GRID = "grid"  #: the image's positions lie in a grid; the library counts them over the whole prompt


@dataclass(frozen=True)
class VlmFamily:
    """How a family reads its prompt.

    `placeholder`: whether the prompt's text holds a token where the image goes (else image tokens come first).
    `fallback`: the prompt where the checkpoint has no chat template; `plain` the one when nothing is asked.
    `spaced`: the processor puts a blank between the image and a word that follows it.
    `appends`: what the processor puts behind every prompt.
    `whole`: image and prompt must be read in one piece, because they look at each other both ways or because the
    image's features depend on the prompt.
    `opening`: whether text before the image may be read once for all images: PLAIN, GRID, or empty where it may not.
    That is right where tokens see only what is before them, so never with `whole`; it is pointless where the image
    always comes first; and a family that is not tested here is read in one piece.
    `crosses`: the image is not a part of the sequence: layers between the decoder's look at it from every token behind
    its place.
    """

    note: str
    placeholder: bool = True
    fallback: str = "{image}\n{question}\n"
    plain: str = "{image}\n"
    spaced: bool = False
    appends: str = ""
    whole: bool = False
    opening: str = ""
    crosses: bool = False
    describes: str = "one-sentence"  #: the prompt before a caption, by id, where none is chosen


DEFAULT = VlmFamily("not tested here: read like the others")
FAMILIES = {name: VlmFamily(**record) for name, record in packaged_toml("creperie.models.vlm", "families.toml").items()}
