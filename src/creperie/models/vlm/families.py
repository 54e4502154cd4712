"""What differs between families of generative models: data, read by one path for all decoders and one for the rest."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import packaged_toml


@dataclass(frozen=True)
class VlmFamily:
    """How a family reads its prompt.

    `placeholder`: whether the prompt's text holds a token where the image goes (else image tokens come first).
    `fallback`: the prompt where the checkpoint has no chat template; `plain` the one when nothing is asked.
    `spaced`: the processor puts a blank between the image and a word that follows it.
    `appends`: what the processor puts behind every prompt.
    `whole`: image and prompt must be read in one piece, because they look at each other both ways or because the
    image's features depend on the prompt.
    `interleaves`: text and images may follow each other, so that demonstrations can have images. Never with `whole`.
    """

    note: str
    placeholder: bool = True
    fallback: str = "{image}\n{question}\n"
    plain: str = "{image}\n"
    spaced: bool = False
    appends: str = ""
    whole: bool = False
    interleaves: bool = False
    describes: str = "one-sentence"  #: the prompt before a caption, by id, where none is chosen


DEFAULT = VlmFamily("not tested here: read like the others")
FAMILIES = {name: VlmFamily(**record) for name, record in packaged_toml("creperie.models.vlm", "families.toml").items()}
