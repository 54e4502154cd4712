"""Plain text encoders, which pool the hidden states of a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from creperie.core import ModelError

if TYPE_CHECKING:
    import torch

    from creperie.models.hf.dual import EmbedTexts

#: architectures that read text only
ENCODERS = (
    "albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "eurobert", "gte",
    "modernbert", "mpnet", "mt5", "nomic_bert", "roberta", "t5", "umt5", "xlm-roberta", "xlm-roberta-xl",
)  # fmt: skip
#: decoders that are used as encoders (such as E5-Mistral), by the state of their last token
DECODERS = ("gemma", "gemma2", "gemma3_text", "gpt2", "llama", "mistral", "opt", "phi3", "qwen2", "qwen3")
T5_CLASSES = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}


def encoder_class(model_type: str) -> Any:
    import transformers

    return getattr(transformers, T5_CLASSES.get(model_type, "AutoModel"))


def positions(config: Any) -> int | None:
    """Return the maximum number of tokens. Return None if there is no limit because the model uses relative
    positions.
    """
    if config.model_type in T5_CLASSES:
        return None
    count = getattr(config, "max_position_embeddings", None)
    if count and config.model_type in ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet"):
        return int(count) - int(config.pad_token_id) - 1  # positions start after the padding index
    return int(count) if count else None


def pooling(pool: str) -> EmbedTexts:
    """Return a function that runs a text encoder and pools its hidden states by the method `pool`, a key of `POOLS`.
    Batches are padded on the right.
    """
    if pool not in POOLS:
        raise ModelError(f"unknown pooling {pool!r}", hint=f"choose one of: {', '.join(POOLS)}")

    def embed(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        import torch

        shown = torch.ones_like(ids) if mask is None else mask
        return POOLS[pool](model(input_ids=ids, attention_mask=shown).last_hidden_state, shown)

    return embed


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).float()
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1)


def _first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return states[:, 0]


def _last(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    import torch

    return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]


POOLS = {"mean": _mean, "cls": _first, "last": _last}
