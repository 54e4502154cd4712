"""Numbers from (match, scores): outcomes, accuracies, ties, intervals, paired tests, agreement.

Pure functions on arrays; imports numpy only, and no other room. The way through it: a `Layout` of match matrices and a
flat column of scores go into `evaluate`, which gives `Result`s; `outcomes` gives what `compare` takes.
"""

from creperie.metrics.agreement import (
    Agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from creperie.metrics.compare import Comparison, McNemar, compare, compare_all, holm, mcnemar
from creperie.metrics.correlation import Correlation, Ranking, aligned, pearson, rank_table, spearman
from creperie.metrics.detection import auroc
from creperie.metrics.intervals import wilson
from creperie.metrics.layout import INPUTS, Input, Layout, clusters_of, layout_of
from creperie.metrics.measured import Measured, measure, of_outcomes
from creperie.metrics.ranking import ranked
from creperie.metrics.results import (
    ARO_ATTRIBUTES,
    MacroRule,
    Result,
    accuracy,
    aro_relations,
    evaluate,
    macro,
    summarise,
)
from creperie.metrics.rules import HIT, MISS, TIE, VOID
from creperie.metrics.settings import MetricSettings, Ties
from creperie.metrics.tasks import (
    FAMILIES,
    TASKS,
    Task,
    applicable,
    applies,
    chances,
    margins,
    outcomes,
    second_is_nearer,
    task,
)

__all__ = [
    "ARO_ATTRIBUTES",
    "FAMILIES",
    "HIT",
    "INPUTS",
    "MISS",
    "TASKS",
    "TIE",
    "VOID",
    "Agreement",
    "Comparison",
    "Correlation",
    "Input",
    "Layout",
    "MacroRule",
    "McNemar",
    "Measured",
    "MetricSettings",
    "Ranking",
    "Result",
    "Task",
    "Ties",
    "accuracy",
    "aligned",
    "applicable",
    "applies",
    "aro_relations",
    "auroc",
    "chances",
    "clusters_of",
    "cohen_kappa",
    "compare",
    "compare_all",
    "evaluate",
    "fleiss_kappa",
    "holm",
    "krippendorff_alpha",
    "layout_of",
    "macro",
    "margins",
    "mcnemar",
    "measure",
    "of_outcomes",
    "outcomes",
    "pearson",
    "percent_agreement",
    "rank_table",
    "ranked",
    "second_is_nearer",
    "spearman",
    "summarise",
    "task",
    "wilson",
]  # fmt: skip
