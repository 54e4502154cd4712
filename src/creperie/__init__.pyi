from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from creperie.annotation.database import open_database as open_database
from creperie.annotation.links import invite as invite
from creperie.annotation.plans import StudyPlan as StudyPlan
from creperie.annotation.study import store_study as store_study
from creperie.auditing.battery import AttackerModels as AttackerModels
from creperie.auditing.document import audit_document as audit_document
from creperie.auditing.options import AuditOptions as AuditOptions
from creperie.auditing.result import Audit as Audit
from creperie.bench import BenchmarkSpec
from creperie.bench.benchmark import Benchmark as Benchmark
from creperie.bench.catalog.entries import catalog_entries as catalog_entries
from creperie.bench.catalog.entries import list_benchmarks as list_benchmarks
from creperie.bench.catalog.get import DownloadOptions as DownloadOptions
from creperie.bench.catalog.get import get_benchmark as get_benchmark
from creperie.bench.checks import check as check
from creperie.bench.formats.registry import find_format as find_format
from creperie.bench.formats.registry import write_format as write_format
from creperie.bench.item import Item as Item
from creperie.bench.roles import Roles
from creperie.bench.storage import save as save
from creperie.core import Progress
from creperie.core.errors import CreperieError as CreperieError
from creperie.core.errors import UsageError as UsageError
from creperie.core.plugins import register_attacker as register_attacker
from creperie.core.plugins import register_format as register_format
from creperie.core.plugins import register_maker as register_maker
from creperie.core.plugins import register_model as register_model
from creperie.core.version import __version__ as __version__
from creperie.engine import Engine
from creperie.lang.logic import truth as truth
from creperie.making.options import JobOptions as JobOptions
from creperie.making.options import MakerOptions as MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.registry import WriteFoils
from creperie.making.run import Made as Made
from creperie.making.source import Captions
from creperie.metrics import Judge
from creperie.metrics.layout import clusters_of as clusters_of
from creperie.metrics.layout import layout_of as layout_of
from creperie.metrics.results import evaluate as evaluate
from creperie.metrics.settings import MetricSettings as MetricSettings
from creperie.metrics.tasks import outcomes as outcomes
from creperie.models.registry import load_model as load_model
from creperie.models.wrapping import wrap as wrap
from creperie.recipes.preflight import cook as cook
from creperie.refining.plan import RefinePlan as RefinePlan
from creperie.refining.refinement import Refined as Refined
from creperie.reporting.continuous import against_baseline as against_baseline
from creperie.reporting.continuous import markdown_summary as markdown_summary
from creperie.reporting.figures.accuracy import Levels as Levels
from creperie.reporting.figures.accuracy import Series as Series
from creperie.reporting.figures.accuracy import accuracy_by_subset as accuracy_by_subset
from creperie.reporting.figures.style import save_figure as save_figure
from creperie.reporting.notebook import figure as figure
from creperie.reporting.notebook import table as table
from creperie.reporting.page import report as report
from creperie.reporting.tables.filled import fill_table as fill_table
from creperie.reporting.tables.published import published_table as published_table
from creperie.scoring.callbacks import BenchmarkCallback as BenchmarkCallback
from creperie.scoring.compare_runs import CompareOptions as CompareOptions
from creperie.scoring.compare_runs import Comparisons as Comparisons
from creperie.scoring.compare_runs import RunSpec
from creperie.scoring.options import ScoreOptions as ScoreOptions
from creperie.scoring.run import Run as Run
from creperie.scoring.run import load_run as load_run
from creperie.scoring.standings import rank_runs as rank_runs
from creperie.statistics.analyse import AnalysisExtras as AnalysisExtras
from creperie.statistics.analyse import fit_study as fit_study
from creperie.statistics.contamination import Overlap as Overlap
from creperie.statistics.contamination import OverlapOptions as OverlapOptions
from creperie.statistics.declare import Analysis as Analysis
from creperie.statistics.declare import terms as terms
from creperie.statistics.items import ItemOptions as ItemOptions
from creperie.statistics.items import ItemStudy as ItemStudy
from creperie.statistics.planning import PowerEstimate as PowerEstimate
from creperie.statistics.planning import PowerOptions as PowerOptions
from creperie.statistics.rankings import Robustness as Robustness
from creperie.statistics.rankings import RobustOptions as RobustOptions
from creperie.statistics.table import long_table as long_table
from creperie.training.architecture import SmallConfig
from creperie.training.loop import Trained as Trained
from creperie.training.options import TowerOptions as TowerOptions
from creperie.training.options import TrainOptions as TrainOptions
from creperie.training.options import TuneOptions as TuneOptions
from creperie.training.settings import TrainingSettings as TrainingSettings
from creperie.training.towers import TowersConfig
from creperie.training.tuning_study import TuningComparison as TuningComparison
from creperie.world.make import World as World
from creperie.world.make import make_world as make_world
from creperie.world.make import training_pairs as training_pairs

# from creperie.auditing.run import audit as audit
def audit(
    bench: BenchmarkSpec,
    attackers: Sequence[str] | str = ...,
    *,
    options: AuditOptions = ...,
    models: AttackerModels = ...,
    engine: Engine | None = None,
    progress: Progress | None = ...,
    announce: Callable[[str], object] = ...,
    threshold: float = 0.55,
    full: bool = False,
    syntax: bool = False,
    parser: str | Path = "",
    lm: str | Path = "",
    encoder: str | Path = "",
    image_encoder: str | Path = "",
    plausibility: str | Path = "",
    grammar: str | Path = "",
    corpus: str | Path = "",
    seed: int = 0,
    cache: bool = True,
) -> Audit:
    """Attack a benchmark without its images, and return the verdict and the cues through which it leaks. `bench` is
    a benchmark, a spec or a path."""

# from creperie.scoring.compare_runs import compare as compare
def compare(
    *runs: RunSpec | Sequence[RunSpec],
    options: CompareOptions = ...,
    settings: MetricSettings = ...,
    against: str | Path | None = None,
    column: str = "",
    key: str = "model",
    tasks: str | Sequence[str] = ...,
    common: bool = False,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> Comparisons:
    """Compare runs, given one by one or as a list."""

# from creperie.statistics.items import difficulty as difficulty
def difficulty(
    runs: Sequence[Run | str | Path],
    *,
    options: ItemOptions = ...,
    settings: MetricSettings = ...,
    task: str = "",
    response: Literal["auto", "2pl", "1pl", "none"] = "auto",
    short: float = 0.1,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> ItemStudy:
    """Analyse the items of a benchmark, given the runs of at least three models on it."""

# from creperie.bench.frames import from_pandas as from_pandas
def from_pandas(
    frame: Any,
    *,
    images: str | Path | None = None,
    name: str = "frame",
    roles: Roles = ...,
    image: str | Sequence[str] = ...,
    positive: str | Sequence[str] = ...,
    negative: str | Sequence[str] = ...,
    subset: str | Sequence[str] = ...,
    id: str | Sequence[str] = ...,
    tag: str | Sequence[str] = ...,
) -> Benchmark:
    """Return a benchmark made from a table in memory, which has one row per item and columns with true and false
    captions."""

# from creperie.bench.spec import load as load
def load(
    spec: BenchmarkSpec,
    *,
    images: str | Path | None = None,
    roles: Roles = ...,
    image: str | Sequence[str] = ...,
    positive: str | Sequence[str] = ...,
    negative: str | Sequence[str] = ...,
    subset: str | Sequence[str] = ...,
    id: str | Sequence[str] = ...,
    tag: str | Sequence[str] = ...,
) -> Benchmark:
    """Load a benchmark: by its name in the catalog, from a folder that creperie wrote, from `FORMAT:PATH`, from a
    table of captions, or from anything that `from_pandas` takes."""

# from creperie.making.generation import make as make
def make(
    maker: str | Maker | WriteFoils,
    captions: str | Path | Sequence[str] | Benchmark | Captions,
    out: str | Path | None = None,
    *,
    options: MakerOptions = ...,
    job: JobOptions = ...,
    engine: Engine | None = None,
    progress: Progress | None = ...,
    seed: int = 0,
    foils: int = 1,
    apart: bool = False,
    as_published: bool = False,
    matched: bool = True,
    tidy: bool = True,
    parser: str | Path = "",
    others: str | Path = "",
    model: str | Path = "",
    prompts: str | Path = "",
    duplicates: Literal["context", "again"] = "context",
    evidence: Literal["certain", "likely", "unchecked"] = "likely",
    lm: str | Path = "lm:pkg:pocketsphinx?reduce=sum",
    band: float = 6.0,
    corpus: str | Path = "",
    plausible: Literal["yes", "no"] = "yes",
    taste: bool = True,
    nli: str | Path = "",
    judge: str | Path = "",
    images: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    shard: str | Path | None = None,
    force: bool = False,
) -> Made:
    """Make foils or second positives from captions, and return them."""

# from creperie.statistics.contamination import overlap as overlap
def overlap(
    bench: Benchmark | str | Path,
    corpus: Benchmark | str | Path,
    *,
    options: OverlapOptions = ...,
    progress: Progress = ...,
    near: float = 0.7,
) -> Overlap:
    """Find the captions of a benchmark that occur in a corpus, and the number of items that have them."""

# from creperie.statistics.planning import power as power
def power(
    claim: str,
    runs: Sequence[Run] = ...,
    *,
    options: PowerOptions = ...,
    items: int | None = None,
    per_image: int = 1,
    icc: float = 0.1,
    accuracy: float | None = None,
    difference: float | None = None,
    discordant: float | None = None,
    width: float = 0.02,
    threshold: float = 0.55,
    attackers: str | Sequence[str] = ...,
    through: str | Path = "cues",
    raters: int = 3,
    kappa: float = 0.75,
    least: float = 0.6,
    target: float = 0.8,
    simulations: int = 1000,
    seed: int = 0,
) -> PowerEstimate:
    """Return how often simulated studies show the claim, and how many items they need to reach the target power."""

# from creperie.refining.refinement import refine as refine
def refine(
    bench: BenchmarkSpec,
    *,
    plan: RefinePlan = ...,
    models: AttackerModels = ...,
    engine: Engine | None = None,
    progress: Progress | None = ...,
    method: Literal["grid", "optimal", "coin", "syntaxbias", "pair", "words"] = "grid",
    attackers: str | Sequence[str] = ...,
    held_out: str | Sequence[str] = ...,
    bins: int | None = None,
    repair: bool = False,
    together: bool = False,
    threshold: float | None = None,
    p_value: float | None = None,
    time_limit: float = 60.0,
    audit: bool = True,
    lm: str | Path = "",
    encoder: str | Path = "",
    image_encoder: str | Path = "",
    plausibility: str | Path = "",
    grammar: str | Path = "",
    corpus: str | Path = "",
    seed: int = 0,
    cache: bool = True,
) -> Refined:
    """Refine a benchmark and audit the result. As in the papers, subsets are refined separately unless `together` is
    set."""

# from creperie.statistics.rankings import robustness as robustness
def robustness(
    runs: Sequence[Run | str | Path],
    *,
    options: RobustOptions = ...,
    settings: MetricSettings = ...,
    margin: float = 0.02,
    wrong: str | Path = "",
    blind: str | Sequence[str] = ...,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> Robustness:
    """Return how the ranking of runs on one benchmark changes with the choices of the analysis."""

# from creperie.scoring.matrix import score as score
def score(
    bench: BenchmarkSpec,
    model: Any,
    *,
    options: ScoreOptions = ...,
    tasks: str | Judge | Sequence[str | Judge] = ...,
    cache: bool | str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = ...,
    device: str | Path = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
) -> Run:
    """Score one model on one benchmark and return the run. With `out`, the run is also saved in that folder."""

# from creperie.training.fit import train as train
def train(
    data: BenchmarkSpec,
    model: str | TowersConfig | SmallConfig | None,
    out: str | Path,
    *,
    options: TrainOptions = ...,
    settings: TrainingSettings = ...,
    towers: TowerOptions = ...,
    engine: Engine | None = None,
    progress: Progress | None = ...,
    device: str | Path = "auto",
    negatives: str | Sequence[str] = ...,
    refined: bool = False,
    tuning: Literal["frozen", "full", "text", "lora"] = "full",
    rank: int = 2,
    targets: str | Sequence[str] = ...,
    truncate: bool = False,
    force: bool = False,
    objective: Literal["clip", "negclip", "triple"] = "negclip",
    epochs: int = 30,
    steps: int | None = None,
    batch: int = 256,
    lr: float = 0.0001,
    weight_decay: float = 0.1,
    warmup: int = 1000,
    clip_norm: float = 0.0,
    accumulate: int = 1,
    precision: Literal["float32", "bfloat16"] = "float32",
    save_every: int = 0,
    seed: int = 0,
    image_tower: str | Path = "",
    text_tower: str | Path = "",
    head: Literal["linear", "mlp", "residual"] = "residual",
    train_towers: str | Sequence[str] = ...,
) -> Trained:
    """Train a model on a benchmark with images and return the result, whose `uri` names the trained model."""

# from creperie.training.tuning_study import tune as tune
def tune(
    bench: Benchmark,
    model: str,
    out: str | Path,
    *,
    options: TuneOptions = ...,
    settings: TrainingSettings = ...,
    progress: Progress = ...,
    device: str | Path = "auto",
    ways: str | Sequence[str] = ...,
    share: float = 0.4,
    train_on: str | Sequence[str] = ...,
    rank: int = 2,
    pairs: int = 500,
    lora_rate: float = 10.0,
    objective: Literal["clip", "negclip", "triple"] = "negclip",
    epochs: int = 30,
    steps: int | None = None,
    batch: int = 256,
    lr: float = 0.0001,
    weight_decay: float = 0.1,
    warmup: int = 1000,
    clip_norm: float = 0.0,
    accumulate: int = 1,
    precision: Literal["float32", "bfloat16"] = "float32",
    save_every: int = 0,
    seed: int = 0,
) -> TuningComparison:
    """Tune a model by several methods on the same examples, test each on the same items, and return the comparison."""
