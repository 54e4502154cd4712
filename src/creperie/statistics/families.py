"""Families of models. Variants of one model make similar errors, so twelve models of four families are not twelve
independent observations.

A factor often affects all models of a family in a similar way. A mixed model then needs a random intercept per family
and level of the factor, besides the one per model and level. Without it, an effect in a few families is mistaken for an
effect in all models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from creperie.core import by_key
from creperie.statistics.declare import Analysis
from creperie.statistics.design import with_short_names

#: Families by the models' names; no families.
AUTO, NONE = "auto", "none"
COLUMN = "family"


@dataclass(frozen=True)
class FamilyStudy:
    """A table with a column of families, and the analyses with random terms for families. The notes list the
    families.
    """

    table: pa.Table
    analyses: Mapping[str, Analysis]
    notes: tuple[str, ...] = ()


def stem_of(uri: str) -> str:
    """Return the first word of a model's name in lower case. If the name does not begin with at least two letters,
    return the whole name. For open_clip, the name is that of the architecture.

    >>> [stem_of(m) for m in ("hf:openai/clip-vit-base-patch32", "open_clip:ViT-B-32/openai", "api:gpt-4o?seed=1")]
    ['clip', 'vit', 'gpt']
    """
    kind, _, name = uri.partition("?")[0].rpartition(":")
    parts = [part for part in name.split("/") if part and part != "model"]
    base = re.sub(r"^\d+-", "", (parts[0] if kind.endswith("open_clip") else parts[-1]) if parts else uri)
    word = re.match(r"[^\W\d_]{2,}", base)
    return (word[0] if word else base).lower()


def with_families(table: pa.Table, analyses: Mapping[str, Analysis], families: str, ours: bool) -> FamilyStudy:
    """Return the table and the analyses with families of models added. Every family gets a random intercept. Analyses
    with random intercepts for each model and level of a factor also get them for each family and level.

    `families` is the name of a column, `auto` (families are found by `stem_of`), `none`, or empty. Empty means `auto`
    for creperie's own presets (`ours`) and `none` for the analyses of a paper, which stay as published.
    """
    chosen = families or (AUTO if ours else NONE)
    if "model" not in table.column_names:
        return FamilyStudy(table, analyses)
    models = table.column("model").to_pylist()
    if chosen in (AUTO, NONE):
        known = {model: stem_of(model) for model in models if model is not None}
    else:
        column = with_short_names(table, [chosen]).column(chosen).cast(pa.string()).to_pylist()
        known = {model: family for model, family in zip(models, column, strict=True) if None not in (model, family)}
    members = by_key((family, model) for model, family in known.items())
    shared = [family for family, own in members.items() if len(own) > 1]
    if not shared:
        return FamilyStudy(table, analyses)
    if chosen == NONE:
        what = "not in this analysis: p-values hold for these models, not for others; `families='auto'` adds them"
        return FamilyStudy(table, analyses, (f"families of models by name ({', '.join(sorted(shared))}) are {what}",))
    if len(members) == 1:
        note = f"all models are of one family ({shared[0]}): p-values hold for it, not for other families"
        return FamilyStudy(table, analyses, (note,))
    listed = "; ".join(f"{family} ({len(own)})" for family, own in sorted(members.items()))
    column = pa.array([known.get(model) for model in models], pa.string())
    others = [name for name in table.column_names if name != COLUMN]
    grouped = {label: replace(one, random=_with_terms(one.random)) for label, one in analyses.items()}
    note = f"families of models, each with random effects: {listed}; other families: `families=`"
    return FamilyStudy(table.select(others).append_column(COLUMN, column), grouped, (note,))


def _with_terms(random: tuple[str, ...]) -> tuple[str, ...]:
    """Return the random terms. Each term that contains the model is followed by the same term for the family.

    >>> _with_terms(("item", "model:longer"))
    ('item', 'model:longer', 'family:longer')
    """
    own = (re.sub(r"\bmodel\b", COLUMN, term) for term in random if "model" in term.split(":"))
    return (*random, *(term for term in own if term not in random))
