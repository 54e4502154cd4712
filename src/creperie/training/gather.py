"""One batch over several processes: its vectors come together, so that everything is contrasted with everything.

Every process computes the same loss of the whole batch. A vector's gradient is then the same wherever it is computed,
so nothing has to be sent back: each process takes its own rows, times the number of processes, since the gradients of
the weights are averaged over the processes afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.functional import pad

from creperie.training.feed import Batch


def gather_batch(
    batch: Batch, images: torch.Tensor, texts: torch.Tensor, index: int
) -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """The whole batch and its vectors, from the share that process `index` has."""
    parts = batch.parts
    own = torch.cat([images.float(), texts.float()])
    most = max(part.rows for part in parts)
    rows: torch.Tensor = _Gather.apply(pad(own, (0, 0, 0, most - len(own))), index, len(parts))  # type: ignore[no-untyped-call]
    cut = [rows[k, : part.rows].split(part.lengths) for k, part in enumerate(parts)]
    shown, others, captions, paraphrases, foils = (torch.cat(same) for same in zip(*cut, strict=True))
    whole = replace(batch, size=len(captions), paraphrases=len(paraphrases), foils=len(foils))
    return whole, torch.cat([shown, others]), torch.cat([captions, paraphrases, foils])


class _Gather(torch.autograd.Function):
    """Rows of all processes, (processes, rows, width)."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, index: int, count: int) -> torch.Tensor:
        ctx.index, ctx.count = index, count
        parts = [torch.empty_like(own) for _ in range(count)]
        distributed.all_gather(parts, own.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return grads[0][ctx.index] * ctx.count, None, None


class _Sum(torch.autograd.Function):
    """The sum over all processes. Each process's loss depends on every summand, so gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor) -> torch.Tensor:
        return _summed(own)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return _summed(grads[0])


def _summed(own: torch.Tensor) -> torch.Tensor:
    total = own.detach().clone(memory_format=torch.contiguous_format)
    distributed.all_reduce(total)
    return total


class SharedNorm(nn.BatchNorm2d):
    """A batch normalisation whose statistics are those of the whole batch, on any device."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return super().forward(x)
        values = x.float()
        n = torch.full((1,), float(values.numel() // values.shape[1]), device=x.device)
        own = torch.cat([values.sum((0, 2, 3)), values.square().sum((0, 2, 3)), n])
        total: torch.Tensor = _Sum.apply(own)  # type: ignore[no-untyped-call]
        sums, squares, count = total.split([self.num_features, self.num_features, 1])
        mean = sums / count
        variance = (squares / count - mean.square()).clamp(min=0)
        self._remember(mean.detach(), variance.detach() * count.detach() / (count.detach() - 1))
        shape = (1, -1, 1, 1)
        scaled = (values - mean.view(shape)) * (variance.view(shape) + self.eps).rsqrt()
        return scaled * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _remember(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.momentum is not None
        assert self.num_batches_tracked is not None
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)
        self.num_batches_tracked += 1


def share_norms(network: nn.Module) -> None:
    """Let every batch normalisation of a network see the whole batch. Weights and their names stay."""
    for part in network.modules():
        if type(part) is nn.BatchNorm2d:
            part.__class__ = SharedNorm
