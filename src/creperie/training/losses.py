"""Losses as pure functions of vectors.

Vectors are rows of any norm; every function normalises them. `scale` multiplies the cosines before the softmax (CLIP's
exp(logit_scale)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from creperie.training.feed import Batch
from creperie.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch

    from creperie.training.architecture import TrainedNetwork


def negclip_loss(
    images: torch.Tensor,
    texts: torch.Tensor,
    foils: torch.Tensor | None,
    scale: torch.Tensor | float,
    alternatives: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return NegCLIP's loss. It is CLIP's loss with more wrong candidates: `foils` for each image, and `alternatives`
    for each caption. The similarities are multiplied by `scale`.

    >>> import torch
    >>> apart = torch.eye(2)
    >>> round(float(negclip_loss(apart, apart, None, 1.0)), 4)       # log(1 + e⁻¹)
    0.3133
    """
    import torch

    candidates = texts if foils is None else torch.cat([texts, foils])
    pictures = images if alternatives is None else torch.cat([images, alternatives])
    return (ranking_loss(images, candidates, scale) + ranking_loss(texts, pictures, scale)) / 2


def ranking_loss(anchors: torch.Tensor, candidates: torch.Tensor, scale: torch.Tensor | float) -> torch.Tensor:
    """Return the multiple-negatives ranking loss. Candidate i is the only correct one for anchor i."""
    import torch
    from torch.nn.functional import cross_entropy

    logits = scale * unit(anchors) @ unit(candidates).T
    return cross_entropy(logits.float(), torch.arange(len(anchors), device=logits.device))


def triple_loss(
    images: torch.Tensor, first: torch.Tensor, second: torch.Tensor, foils: torch.Tensor, scale: torch.Tensor | float
) -> torch.Tensor:
    """Return the loss for items with two true captions (P1 and P2) and a false one (N). It is the mean of three ranking
    losses: from image to P1, from image to P2, and from P1 to P2.

    In the first loss, the candidates are all P1 and all N of the batch. In the other two, they are all P2 and all N.
    """
    import torch

    parts = (
        ranking_loss(images, torch.cat([first, foils]), scale),
        ranking_loss(images, torch.cat([second, foils]), scale),
        ranking_loss(first, torch.cat([second, foils]), scale),
    )
    return torch.stack(parts).mean()


def unit(vectors: torch.Tensor) -> torch.Tensor:
    from torch.nn.functional import normalize

    return normalize(vectors.float(), dim=-1)


def batch_loss(
    settings: TrainingSettings, batch: Batch, images: torch.Tensor, texts: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """Return the loss of a batch. `settings` names the objective."""
    n, second = batch.size, batch.paraphrases
    shown, alternatives = images[:n], images[n:]
    captions, paraphrases, foils = texts[:n], texts[n : n + second], texts[n + second :]
    if settings.objective == "triple":
        return triple_loss(shown, captions, paraphrases, foils, scale)
    return negclip_loss(shown, captions, foils, scale, alternatives)


def train_mode(network: torch.nn.Module) -> None:
    """Put a network into training mode. Frozen parts stay in eval mode and keep their running statistics."""
    network.train()
    for part in network.modules():
        own = list(part.parameters(recurse=False))
        if own and not any(w.requires_grad for w in own):
            part.eval()


def make_optimiser(network: TrainedNetwork, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return an AdamW optimiser. As in CLIP, it applies no weight decay to gains, biases and the temperature."""
    import torch

    named = [(name, w) for name, w in network.named_parameters() if w.requires_grad]
    groups = []
    for rate in sorted({network.rate_of(name) for name, _ in named}, reverse=True):
        own = [w for name, w in named if network.rate_of(name) == rate]
        decayed, others = [w for w in own if w.ndim >= 2], [w for w in own if w.ndim < 2]
        groups.append({"params": decayed, "weight_decay": settings.weight_decay, "share": rate})
        groups.append({"params": others, "weight_decay": 0.0, "share": rate})
    if not named:  # frozen: an optimiser needs at least one parameter
        groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "weight_decay": 0.0, "share": 1.0}]
    fused = all(w.is_cuda for w in network.parameters())
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=1e-6, fused=fused)
