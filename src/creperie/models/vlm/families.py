"""What differs between families of generative models: data, read by one path for all decoders and one for the rest."""

from __future__ import annotations

from dataclasses import dataclass

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
FAMILIES: dict[str, VlmFamily] = {
    "llava": VlmFamily("LLaVA 1.5, BakLLaVA", fallback="USER: {image}\n{question} ASSISTANT:", opening=PLAIN),
    "llava_next": VlmFamily("LLaVA-NeXT (1.6)", fallback="USER: {image}\n{question} ASSISTANT:", opening=PLAIN),
    "llava_onevision": VlmFamily("LLaVA-OneVision", opening=PLAIN),
    "internvl": VlmFamily("InternVL (the -hf checkpoints)", opening=PLAIN),
    "qwen2_vl": VlmFamily("Qwen2-VL", opening=GRID),
    "qwen2_5_vl": VlmFamily("Qwen2.5-VL", opening=GRID),
    "qwen3_vl": VlmFamily("Qwen3-VL", opening=GRID),
    "smolvlm": VlmFamily("SmolVLM", opening=PLAIN),
    "idefics": VlmFamily(
        "Idefics (the first)",
        fallback="User:{image}{question}{turn}\nAssistant:",
        plain="User:{image}{turn}\nAssistant:",
        crosses=True,
    ),
    "idefics2": VlmFamily("Idefics2", spaced=True, opening=PLAIN),
    "idefics3": VlmFamily("Idefics3", opening=PLAIN),
    "paligemma": VlmFamily(
        "PaliGemma",
        fallback="{image}{question}\n",
        plain="{image}caption en\n",
        appends="\n",
        whole=True,
        describes="nothing",
    ),
    "blip-2": VlmFamily(
        "BLIP-2", placeholder=False, fallback="Question: {question} Answer:", plain="", describes="nothing"
    ),
    "instructblip": VlmFamily("InstructBLIP", placeholder=False, fallback="{question}", plain="", whole=True),
    "blip": VlmFamily(
        "BLIP captioner and VQA", placeholder=False, fallback="{question}", plain="", whole=True, describes="nothing"
    ),
}
