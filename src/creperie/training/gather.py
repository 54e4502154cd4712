"""One batch over several processes: its vectors come together, so that everything is contrasted with everything.

Every process computes the same loss of the whole batch. The gradients of gathered vectors are summed over the
processes, and those of the weights averaged, so that a step is that of one process with the whole batch.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.distributed.nn.functional import all_gather
from torch.nn.functional import pad

from creperie.training.feed import Batch


def gather_batch(batch: Batch, images: torch.Tensor, texts: torch.Tensor) -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """Return the whole batch and its vectors, from the share that this process has."""
    own = torch.cat([images.float(), texts.float()])
    most = max(part.rows for part in batch.parts)
    rows = all_gather(pad(own, (0, 0, 0, most - len(own))))
    cut = [rows[k][: part.rows].split(part.lengths) for k, part in enumerate(batch.parts)]
    shown, others, captions, paraphrases, foils = (torch.cat(same) for same in zip(*cut, strict=True))
    whole = replace(batch, size=len(captions), paraphrases=len(paraphrases), foils=len(foils))
    return whole, torch.cat([shown, others]), torch.cat([captions, paraphrases, foils])
