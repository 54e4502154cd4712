"""From the vectors of a batch to its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from creperie.training.feed import Batch
from creperie.training.losses import negclip_loss, paraphrase_pull, triple_loss
from creperie.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch


def batch_loss(
    settings: TrainingSettings, batch: Batch, images: torch.Tensor, texts: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """The objective, and the paraphrase pull where it has a weight."""
    n, second = batch.size, batch.paraphrases
    shown, alternatives = images[:n], images[n:]
    captions, paraphrases, foils = texts[:n], texts[n : n + second], texts[n + second :]
    if settings.objective == "triple":
        loss = triple_loss(shown, captions, paraphrases, foils, scale)
    else:
        loss = negclip_loss(shown, captions, foils, scale, alternatives)
    if settings.pull > 0:
        loss = loss + settings.pull * paraphrase_pull(captions, paraphrases)
    return loss
