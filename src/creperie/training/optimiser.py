"""What is updated in a step, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from creperie.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch

    from creperie.training.networks import TrainedNetwork


def train_mode(network: torch.nn.Module) -> None:
    """As torch's, but parts that are not trained keep their running statistics too."""
    network.train()
    for part in network.modules():
        own = list(part.parameters(recurse=False))
        if own and not any(w.requires_grad for w in own):
            part.eval()


def recompute(model: Any) -> None:
    """Gradient checkpointing, as transformers or open_clip call it; a small model has none and needs none."""
    if hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable()
    elif hasattr(model, "set_grad_checkpointing"):
        model.set_grad_checkpointing(True)


def make_optimiser(network: TrainedNetwork, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW; gains, biases and the temperature do not decay, as in CLIP."""
    import torch

    named = [(name, w) for name, w in network.named_parameters() if w.requires_grad]
    groups: list[dict[str, Any]] = []
    for rate in sorted({network.rate_of(name) for name, _ in named}, reverse=True):
        own = [w for name, w in named if network.rate_of(name) == rate]
        decayed, others = [w for w in own if w.ndim >= 2], [w for w in own if w.ndim < 2]
        groups.append({"params": decayed, "weight_decay": settings.weight_decay, "share": rate})
        groups.append({"params": others, "weight_decay": 0.0, "share": rate})
    if not named:  # frozen: an optimiser must hold something
        groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "weight_decay": 0.0, "share": 1.0}]
    fused = all(w.is_cuda for w in network.parameters())
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=1e-6, fused=fused)
