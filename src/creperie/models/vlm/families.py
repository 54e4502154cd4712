"""How families of generative models differ, as data for the engines."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import packaged_toml


@dataclass(frozen=True)
class VlmFamily:
    """How a family reads its prompt.

    `placeholder`: the prompt's text has a token where the image goes. If False, the image tokens come before the text.
    `fallback`: the prompt format if the checkpoint has no chat template.
    `plain`: the format of a prompt that has no question.
    `spaced`: the processor puts a blank between the image and a word that follows it.
    `appends`: the text that the processor appends to every prompt.
    `whole`: image and prompt must be read together, because their tokens attend to each other in both directions or
    because the image's features depend on the prompt.
    `both_ways`: the tokens of an image attend to each other in both directions.
    `interleaves`: text and images may alternate, so that demonstrations can have images; always False with `whole`.
    """

    note: str
    placeholder: bool = True
    fallback: str = "{image}\n{question}\n"
    plain: str = "{image}\n"
    spaced: bool = False
    appends: str = ""
    whole: bool = False
    both_ways: bool = False
    interleaves: bool = False
    describes: str = "one-sentence"  #: id of the default prompt before a caption


DEFAULT = VlmFamily("untested: read like the other families")
FAMILIES = {name: VlmFamily(**record) for name, record in packaged_toml("creperie.models.vlm", "families.toml").items()}
