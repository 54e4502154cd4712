"""Repair before removing: give all captions of an item the same surface style.

A final period, a capital, a stray blank tell true from false captions in published sets. Those cues can be mended
instead of thrown away with their items: every caption of an item gets one style, whoever wrote it. It is the style
that the audit tries when it calls a leak *repairable*.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from creperie.bench import Benchmark
from creperie.lang import tidy_together


def repair(bench: Benchmark) -> Benchmark:
    """The benchmark with the captions of every item in one style. Words stay; no item leaves."""
    offsets, flat = bench.ragged("captions")
    old = flat.to_pylist()
    new = [text for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()) for text in tidy_together(old[a:b])]
    changed = sum(a != b for a, b in zip(old, new))
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(new, pa.string()))
    index = bench.table.schema.get_field_index("captions")
    table = bench.table.set_column(index, bench.table.schema.field(index), column)
    # The published files cannot be written back from captions that are no longer theirs.
    return replace(bench.with_table(table, "repair", captions_changed=changed), layout={})
