from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
from PIL import Image

from creperie.plugin import (
    Attacker,
    AttackerModels,
    Candidate,
    Captions,
    Format,
    Maker,
    MakerOptions,
    Model,
    Pairs,
    Proposal,
    SourceCaption,
    TextScorer,
)

# from creperie.core.version import __version__ as __version__
__version__: str

_Family: TypeAlias = Literal["linear", "logistic"]

class _Framed:
    def frame(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...

@dataclass(frozen=True)
class _AuditRow:
    subset: str
    view: str
    attacker: str
    choice: str
    measure: _Measure
    p_holm: float = ...
    leaks: bool = ...
    kept: float = ...
    repaired: float | None = ...
    fix: str = ...
    cue: str = ...
    cues: tuple[_Cue, ...] = ...
    @property
    def title(self) -> str: ...
    @property
    def place(self) -> str: ...

@dataclass(frozen=True)
class _Measure:
    n: int
    pairs: int
    accuracy: float
    low: float
    high: float
    ties: int
    nans: int
    raw: float
    direction: int
    bits: float
    bits_low: float
    bits_high: float
    p: float

@dataclass(frozen=True)
class _Cue:
    kind: str
    text: str
    positives: int
    negatives: int
    accuracy: float
    example: int
    p: float = ...
    high: float = ...
    @property
    def z(self) -> float: ...
    @property
    def name(self) -> str: ...

@dataclass(frozen=True)
class _Judgement:
    measured: _Measurements
    verdict: str
    fix: str = ...
    through: tuple[_AuditRow, ...] = ...
    strongest: _AuditRow | None = ...
    headline: _AuditRow | None = ...
    bound: float = ...
    against: tuple[str, ...] = ...
    needed: int = ...
    full: bool = ...
    worst_subsets: tuple[int, int] | None = ...
    @property
    def subset(self) -> str: ...
    @property
    def code(self) -> int: ...
    @property
    def plainest(self) -> tuple[_AuditRow, ...]: ...
    @property
    def families(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def power(self) -> str: ...
    def document(self, next: str) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Measurements:
    subset: str
    items: int
    rows: tuple[_AuditRow, ...] = ...
    unsolvable: tuple[str, ...] = ...
    balanced: int = ...
    detectable: float = ...
    threshold: float = ...
    missing: Mapping[str, str] = ...
    extras: tuple[str, ...] = ...
    abstained: tuple[str, ...] = ...
    enough: int = ...
    sample: tuple[tuple[int, tuple[str, ...]], ...] = ...
    repeated: float = ...
    reversed: float = ...
    drawn: int = ...
    models: Mapping[str, str] = ...
    @property
    def all_balanced(self) -> bool: ...

@dataclass(frozen=True)
class _ExamplePair:
    id: str
    positive: str
    negative: str
    margin: float

@dataclass(frozen=True)
class _GapShape(_Distribution):
    positive: float
    zero: float
    negative: float
    scale: float
    histogram: tuple[int, ...]

@dataclass(frozen=True)
class _Distribution:
    n: int
    mean: float
    quantiles: tuple[float, ...]

@dataclass(frozen=True)
class _Likeness:
    subset: str
    couples: tuple[_Couple, ...]
    parsed: int = ...
    unparsed: int = ...

@dataclass(frozen=True)
class _Couple:
    kind: str
    measures: dict[str, _Distribution]

@dataclass(frozen=True)
class _Symmetry:
    subset: str
    items: int
    text: _SideBalance
    images: _SideBalance
    broken: tuple[str, ...] = ...
    @property
    def balanced(self) -> bool: ...
    @property
    def words(self) -> str: ...
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _SideBalance:
    pairs: int
    mirrored: int
    bound: float
    @property
    def balanced(self) -> bool: ...

@dataclass(frozen=True)
class _ExactCount:
    subset: str
    attacker: str
    n: int
    accuracy: float
    ties: int

@dataclass(frozen=True)
class _Parquet:
    files: tuple[Path, ...]
    digest: str
    checksums: Mapping[str, str] | None = ...
    again: str = ...
    @property
    def dataset(self) -> Any: ...
    @property
    def rows(self) -> int: ...
    def pieces(self, columns: list[str], rows: int) -> Iterator[Any]: ...
    def read(self, columns: list[str] | None = None, condition: Any | None = None) -> Any: ...

@runtime_checkable
class _ImageStore(Protocol):
    @property
    def location(self) -> str: ...
    def read(self, key: str) -> bytes: ...
    def __contains__(self, key: str) -> bool: ...
    def keys(self) -> Iterator[str]: ...

@dataclass(frozen=True)
class _Info:
    title: str = ...
    description: str = ...
    licence: str = ...
    source: str = ...
    citation: str = ...

@dataclass(frozen=True)
class _ProvenanceStep:
    op: str
    args: Mapping[str, Any] = ...
    inputs: tuple[str, ...] = ...

@dataclass(frozen=True)
class _SkippedRecord:
    subset: str
    id: str
    reason: str

_BenchmarkSpec: TypeAlias = Any

@dataclass(frozen=True)
class _ComparisonRow:
    benchmark: str
    task: str
    subset: str
    comparison: _Comparison
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Comparison:
    a: str
    b: str
    n: int
    clusters: int
    accuracy_a: float
    accuracy_b: float
    difference: float
    low: float
    high: float
    p: float
    mcnemar: _McNemar
    p_holm: float = ...

@dataclass(frozen=True)
class _McNemar:
    only_a: int
    only_b: int
    p: float
    method: str

@dataclass(frozen=True)
class _Ranking:
    name: str
    values: tuple[float, ...]
    ranks: tuple[int, ...]
    gains: tuple[int, ...]

@dataclass(frozen=True)
class _Correlated:
    a: str
    b: str
    models: list[str]
    correlation: _Correlation
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Correlation:
    value: float
    low: float
    high: float
    p: float
    n: int
    kind: str
    interval: str

_Match: TypeAlias = tuple[tuple[bool, ...], ...]

_Tag: TypeAlias = str | float | bool

@dataclass(frozen=True, eq=False)
class _Answers:
    right: np.ndarray
    outcomes: dict[str, np.ndarray]
    task: str
    first: Run
    chance: np.ndarray
    notes: tuple[str, ...] = ...
    @property
    def models(self) -> list[str]: ...
    def split(self, models: Sequence[str]) -> tuple[_Answers, np.ndarray]: ...

@dataclass(frozen=True, eq=False)
class _ResponseFit:
    ability: np.ndarray
    ability_se: np.ndarray
    difficulty: np.ndarray
    difficulty_se: np.ndarray
    discrimination: np.ndarray
    discrimination_se: np.ndarray
    flipped: np.ndarray
    expected: np.ndarray
    steps: int
    converged: bool

@dataclass(frozen=True, eq=False)
class _ShortForm:
    items: np.ndarray
    pairs: float
    error: float
    random_pairs: float
    random_error: float
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True, eq=False)
class _PictureGain:
    text: np.ndarray
    picture: np.ndarray
    chance: np.ndarray
    fit: _ResponseFit | None
    @property
    def solved_by(self) -> np.ndarray: ...

@dataclass(frozen=True)
class _PairAgreement:
    a: str
    b: str
    n: int
    agree: float
    expected: float
    kappa: float
    low: float
    high: float

@dataclass(frozen=True, slots=True)
class _SourceOutcome:
    source: str
    skipped: str = ...
    verdicts: tuple[_CandidateVerdict, ...] = ...
    calls: int = ...
    missing: Mapping[str, str] = ...
    @property
    def accepted(self) -> list[Candidate]: ...
    @property
    def why_nothing(self) -> str: ...

@dataclass(frozen=True, slots=True)
class _CandidateVerdict:
    candidate: Candidate
    reason: str = ...

@dataclass(frozen=True)
class _CaptionMatch:
    caption: str
    text: str
    line: int
    similarity: float

@dataclass(frozen=True)
class _RefinePlan:
    method: str = ...
    attackers: tuple[str, ...] = ...
    held_out: tuple[str, ...] = ...
    bins: int | None = ...
    repair: bool = ...
    together: bool = ...
    threshold: float | None = ...
    p_value: float | None = ...
    time_limit: float = ...
    audit: bool = ...
    @property
    def how(self) -> _RefinementMethod: ...
    @property
    def by_gaps(self) -> bool: ...
    @property
    def fineness(self) -> int: ...
    def settings(self, seed: int) -> _ChoiceSettings: ...
    def selection(self, models: AttackerModels) -> tuple[str, ...]: ...
    def watched(self, models: AttackerModels) -> tuple[str, ...]: ...
    def audited_by(self, models: AttackerModels) -> tuple[str, ...]: ...
    def audit_models(self, models: AttackerModels) -> AttackerModels: ...

@dataclass(frozen=True)
class _RefinementMethod:
    name: str
    does: str
    reason: str
    why: str
    choose: Callable[[_SelectionPool, _ChoiceSettings, _Progress], _Choice]
    attackers: tuple[str, ...]
    bins: int = ...
    asks: bool = ...
    surplus: Callable[[Item], _ItemSurplus] | None = ...
    detail: Callable[[_SelectionPool, int], str] = ...

@dataclass(frozen=True, eq=False)
class _SelectionPool:
    name: str
    pairs: Pairs
    names: tuple[str, ...]
    gaps: np.ndarray
    surplus: tuple[_ItemSurplus, ...] = ...
    attackers: tuple[Attacker, ...] = ...

@dataclass(frozen=True, slots=True)
class _ItemSurplus:
    pairs: tuple[tuple[tuple[str, ...], int], ...]
    asks: str = ...

@dataclass(frozen=True)
class _ChoiceSettings:
    bins: int = ...
    threshold: float | None = ...
    time_limit: float = ...
    seed: int = ...
    p_value: float | None = ...

_Progress: TypeAlias = Callable[[str, int | None, str], AbstractContextManager[_Advance]]

_Advance: TypeAlias = Callable[[int], None]

@dataclass(frozen=True, eq=False)
class _Choice:
    keep: np.ndarray
    curve: _Curve = ...
    selection: _Selection | None = ...
    filtered: tuple[_Filtered, ...] = ...
    structural: tuple[_Structural, ...] = ...
    def joined(self, other: _Choice) -> _Choice: ...

_Curve: TypeAlias = tuple[tuple[str, int], ...]

@dataclass(frozen=True)
class _Selection:
    keep: np.ndarray
    bound: float
    proven: bool
    off: int = ...

@dataclass(frozen=True)
class _Filtered:
    keep: np.ndarray
    threshold: float
    mean: float
    p_value: float
    accuracy: float
    low: float
    high: float
    test: str = ...
    limit: float = ...
    @property
    def balanced(self) -> bool: ...

@dataclass(frozen=True)
class _Structural:
    attacker: str
    share: float

@dataclass(frozen=True)
class _Removal:
    row: int
    reason: str
    detail: str

@dataclass(frozen=True)
class _SubsetOutcome:
    name: str
    items: int
    unsolvable: int
    choice: _Choice
    @property
    def kept(self) -> int: ...
    def joined(self, other: _SubsetOutcome) -> _SubsetOutcome: ...

@dataclass(frozen=True)
class _AttackerStanding:
    name: str
    held_out: bool
    before: dict[str, _Measure]
    after: dict[str, _Measure]
    repaired: dict[str, _Measure]
    leaks: tuple[str, ...] = ...
    @property
    def silent(self) -> bool: ...

@dataclass(frozen=True)
class _PairRobustness:
    a: str
    b: str
    difference: float
    low: float
    high: float
    p_equivalent: float
    equivalent: bool
    different: bool
    reversing: int | None
    survives: bool | None

@dataclass(frozen=True)
class _NoisyAccuracy:
    model: str
    accuracy: float
    low: float
    high: float
    corrected: float
    corrected_low: float
    corrected_high: float

class _RunHeader:
    document: dict[str, Any]
    @property
    def model(self) -> str: ...
    @property
    def benchmark(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def blinded(self) -> str: ...
    @property
    def content(self) -> str: ...

@dataclass(frozen=True)
class _MetricSettings:
    ties: _Ties = ...
    level: float = ...
    seed: int = ...
    @property
    def tie_weight(self) -> float: ...
    def worth(self, outcomes: np.ndarray) -> np.ndarray: ...
    def right(self, outcomes: np.ndarray) -> np.ndarray: ...
    def wrong(self, outcomes: np.ndarray) -> np.ndarray: ...

_Ties: TypeAlias = Literal["wrong", "half", "right"]

@dataclass(frozen=True, eq=False)
class _Layout:
    rows: np.ndarray
    columns: np.ndarray
    match: np.ndarray
    def __len__(self) -> int: ...
    @property
    def groups(self) -> tuple[_ShapeGroup, ...]: ...
    def spread(self, value: Callable[[np.ndarray], float]) -> np.ndarray: ...
    def widths(self, needs: _Input) -> np.ndarray: ...
    def starts(self, needs: _Input) -> np.ndarray: ...
    def cells(self, needs: _Input, flat: np.ndarray, items: np.ndarray, width: int) -> np.ndarray: ...
    def blocks(self, needs: _Input, flat: np.ndarray) -> Iterator[tuple[_ShapeGroup, np.ndarray]]: ...
    def check(self, needs: _Input, flat: np.ndarray) -> None: ...
    def fill(self, needs: _Input, present: np.ndarray, values: np.ndarray) -> np.ndarray: ...
    def take(self, items: np.ndarray) -> _Layout: ...

@dataclass(frozen=True, eq=False)
class _ShapeGroup:
    match: np.ndarray
    items: np.ndarray

_Input: TypeAlias = Literal["image_text", "text_text", "text"]

_Written: TypeAlias = dict[str, Any]

@dataclass(frozen=True)
class _Task:
    name: str
    what: str
    needs: _Input
    rule: _OutcomeRule | _CountRule
    aliases: tuple[str, ...] = ...
    value: _Value = ...
    swapped: str = ...
    @property
    def by_item(self) -> bool: ...
    @property
    def is_rank(self) -> bool: ...
    @property
    def has_margins(self) -> bool: ...
    def text(self, value: float | None, digits: int = 1) -> str: ...

@runtime_checkable
class _OutcomeRule(Protocol):
    def applies(self, match: np.ndarray) -> bool: ...
    def chance(self, match: np.ndarray) -> float: ...
    def outcomes(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray: ...

@runtime_checkable
class _CountRule(Protocol):
    @property
    def parts(self) -> int: ...
    def applies(self, match: np.ndarray) -> bool: ...
    def chance(self, match: np.ndarray) -> float: ...
    def counts(self, match: np.ndarray, cells: np.ndarray) -> np.ndarray: ...

_Value: TypeAlias = Literal[
    "share", "captions", "foils", "balanced", "lower", "pooled", "precision", "f1", "auroc", "mean-rank", "median-rank"
]

_Judge: TypeAlias = Callable[[np.ndarray, np.ndarray], bool | None]

@dataclass(frozen=True)
class _Result:
    task: str
    subset: str
    n: int
    hits: int
    ties: int
    void: int
    accuracy: float
    low: float
    high: float
    chance: float
    interval: str
    clusters: int
    vacuous: int = ...
    unit: str = ...
    tie_rule: _Ties = ...
    groups: int = ...
    def as_dict(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _TuningResult:
    way: str
    accuracy: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    recall: dict[str, float]
    trained_weights: int
    model: str

_Document: TypeAlias = Mapping[str, Any]

@dataclass(frozen=True)
class _BaselineResult:
    worse: tuple[_WorseRow, ...]
    better: int
    unchanged: bool
    not_run: tuple[str, ...]
    @property
    def code(self) -> int: ...
    @property
    def text(self) -> str: ...
    def document(self) -> _Json: ...

@dataclass(frozen=True)
class _WorseRow:
    subset: str
    attacker: str
    before: float
    now: float
    p: float
    choice: str = ...

_Json: TypeAlias = dict[str, Any]

@dataclass(frozen=True)
class _AuditOptions:
    attackers: tuple[str, ...] = ...
    threshold: float = ...
    full: bool = ...
    syntax: bool = ...
    parser: str = ...
    def tree_parser(self) -> _TreeParser | None: ...

_TreeParser: TypeAlias = Callable[[str], _Tree | None]

@dataclass(frozen=True, slots=True)
class _Tree:
    label: str
    children: tuple[_Tree, ...] = ...
    word: str = ...
    def nodes(self) -> Iterator[_Tree]: ...
    def __str__(self) -> str: ...

class _Engine(Protocol):
    @property
    def workers(self) -> int: ...
    def run(self, stage: _Stage, pieces: _Pieces, numbers: Iterable[int]) -> _Numbered: ...

_Stage: TypeAlias = _Work | _Opening

_Work: TypeAlias = Callable[[Any], Any]

@runtime_checkable
class _Opening(Protocol):
    def open(self) -> _Work: ...

class _Pieces(Protocol):
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def rows(self) -> int: ...
    def __len__(self) -> int: ...
    def piece(self, number: int) -> Any: ...

_Numbered: TypeAlias = Iterator[tuple[int, Any]]

@dataclass(frozen=True)
class _CatalogEntry:
    name: str
    title: str
    items: int | None
    counted: bool
    shape: str
    licence: str
    chance: Mapping[str, float | None]
    format: str
    source: _CatalogSource
    taxonomy: _Taxonomy
    images: _Images
    files: tuple[_File, ...] = ...
    read: str = ...
    own_copy: str = ...
    paper: str = ...
    notes: tuple[str, ...] = ...
    subsets: Mapping[str, int] = ...
    aliases: tuple[str, ...] = ...
    @property
    def how(self) -> str: ...
    @property
    def size(self) -> int | None: ...

@dataclass(frozen=True)
class _CatalogSource:
    repository: str = ...
    commit: str = ...
    mirror: str = ...
    @property
    def page(self) -> str: ...

@dataclass(frozen=True)
class _Taxonomy:
    properties: Mapping[str, tuple[str, ...]]
    difference: str
    type: str
    phenomena: tuple[str, ...]
    tabulated: bool
    size: int | None = ...
    tuned: bool | None = ...
    @property
    def tested(self) -> str: ...

@dataclass(frozen=True)
class _Images:
    sources: tuple[_ImageSource, ...] = ...
    count: int | None = ...
    by_hand: str = ...
    inside: bool = ...
    @property
    def folder(self) -> str: ...
    def find(self, key: str) -> _File | None: ...
    def bytes_of(self, count: int) -> int: ...

@dataclass(frozen=True)
class _ImageSource:
    name: str
    folder: str
    pattern: str
    saved_as: str
    urls: tuple[str, ...]
    mean_bytes: int
    def find(self, key: str) -> _File | None: ...

@dataclass(frozen=True)
class _File:
    urls: tuple[str, ...]
    saved_as: str
    size: int | None = ...
    sha256: str | None = ...
    optional: bool = ...
    picture: bool = ...

@dataclass(frozen=True, slots=True)
class _Finding:
    code: str
    severity: str
    subset: str
    item: str
    message: str

@dataclass(frozen=True)
class _CompareOptions(_AgainstOptions):
    tasks: tuple[str, ...] = ...
    common: bool = ...

@dataclass(frozen=True)
class _AgainstOptions:
    against: Path | None = ...
    column: str = ...
    key: str = ...
    def values(self) -> dict[str, float]: ...

_RunSpec: TypeAlias = Run | str | Path

@dataclass(frozen=True)
class _Recipe:
    name: str
    title: str
    profile: str
    file: str
    stages: tuple[_RecipeStage, ...]
    about: str = ...
    prompts: tuple[str, ...] = ...

@dataclass(frozen=True)
class _RecipeStage:
    name: str
    does: str
    options: Mapping[str, Any]
    sources: tuple[str, ...]
    about: str = ...
    skip: str = ...
    @property
    def step(self) -> _StageKind: ...

@dataclass(frozen=True)
class _StageKind:
    what: str
    module: str
    own: Mapping[str, Any] = ...
    settings: tuple[str, ...] = ...
    gives: str = ...
    takes: int = ...
    files: tuple[str, ...] = ...
    required: tuple[str, ...] = ...
    spread: bool = ...
    packages: tuple[str, ...] = ...
    rate: float = ...
    start: float = ...
    any_input: bool = ...
    @property
    def declared(self) -> dict[str, _OptionField]: ...
    @property
    def options(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _OptionField:
    name: str
    kind: type
    default: Any
    optional: bool
    help: str
    flags: str
    choices: tuple[str, ...]
    metavar: str
    minimum: float | None = ...
    maximum: float | None = ...
    whole: bool = ...
    def checked(self, value: Any, where: str = "") -> Any: ...
    @property
    def label(self) -> str: ...

_Tell: TypeAlias = Callable[[str], None]

@dataclass(frozen=True)
class _StageResult:
    name: str
    does: str
    state: _State
    place: str
    summary: Mapping[str, Any] = ...
    seconds: float = ...
    why: str = ...
    def document(self) -> dict[str, Any]: ...

_State: TypeAlias = Literal["cooked", "unchanged", "skipped", "given"]

@dataclass(frozen=True)
class _ItemOptions:
    task: str = ...
    response: Literal["auto", "2pl", "1pl", "none"] = ...
    short: float = ...

@dataclass(frozen=True)
class _FigureOptions(_AgainstOptions):
    tasks: tuple[str, ...] = ...
    benches: tuple[str, ...] = ...
    attackers: tuple[str, ...] = ...
    lm: str = ...
    plausibility: str = ...
    grammar: str = ...
    against: Path | None = ...
    tag: str = ...
    syntax: bool = ...
    parser: str = ...
    most: int = ...
    seed: int = ...

@dataclass(frozen=True)
class _PublishedTable:
    paper: str
    title: str
    citation: str
    number: str
    where: str
    caption: str
    rows_are: str
    columns: tuple[_Column, ...]
    rows: tuple[_PublishedRow, ...]
    notes: tuple[str, ...] = ...
    scores: tuple[str, ...] = ...
    prompts: tuple[str, ...] = ...
    groups: Mapping[str, str] = ...
    about: tuple[str, ...] = ...
    given: tuple[str, ...] = ...
    @property
    def key(self) -> str: ...
    @property
    def fillable(self) -> bool: ...
    def is_result(self, group: str, column: str) -> bool: ...
    @property
    def results(self) -> list[str]: ...
    def group_of(self, score: str, benchmark: str) -> str | None: ...
    def benchmarks(self) -> list[str]: ...
    def item_names(self, column: _Column | None = None) -> set[str]: ...

@dataclass(frozen=True)
class _Column:
    name: str
    title: str
    unit: str = ...
    tasks: tuple[str, ...] = ...
    benchmark: str = ...
    subsets: tuple[str, ...] = ...
    over: _Over = ...
    n: int | None = ...
    how: str = ...
    change_of: str = ...
    since: str = ...
    @property
    def measured(self) -> bool: ...
    @property
    def ties(self) -> _Ties | None: ...

_Over: TypeAlias = Literal["items", "subsets", "sd"]

@dataclass(frozen=True)
class _PublishedRow:
    model: str
    group: str = ...
    cells: dict[str, str] = ...
    uris: tuple[str, ...] = ...
    @property
    def answered(self) -> bool: ...

@dataclass(frozen=True)
class _FactRow:
    label: str
    model: str
    group: str
    cells: Mapping[str, _MeasuredCell]
    benchmarks: tuple[str, ...] = ...
    stands_in: bool = ...
    by: str = ...

@dataclass(frozen=True)
class _MeasuredCell:
    value: float
    low: float = ...
    high: float = ...
    n: int = ...
    ties: int = ...
    task: str = ...
    run: str = ...
    level: float = ...
    published: bool = ...
    tie_rule: str = ...
    people: int = ...
    clusters: int = ...
    chance: float = ...

@dataclass(frozen=True)
class _FilledTable:
    table: _PublishedTable
    ours: tuple[_OurRow, ...] = ...
    notes: tuple[str, ...] = ...
    def document(self) -> _Json: ...

@dataclass(frozen=True)
class _OurRow:
    model: str
    figures: Mapping[str, _MeasuredCell]
    row: _PublishedRow | None = ...
    benchmarks: tuple[str, ...] = ...
    label: str = ...
    group: str = ...
    stands_in: bool = ...
    by: str = ...
    def difference(self, name: str) -> float | None: ...
    def within(self, name: str) -> bool | None: ...
    def equal(self, name: str) -> bool | None: ...
    def compared(self, name: str) -> bool: ...
    def printed(self, name: str) -> float | None: ...

@dataclass(frozen=True)
class _AnalysisExtras:
    per_model: bool = ...
    lenient: bool = ...
    required: str = ...
    cells: tuple[str, str] | None = ...

@dataclass(frozen=True)
class _FittedStudy:
    fits: tuple[_Analysed, ...]
    skipped: tuple[_SkippedAnalysis, ...] = ...
    notes: tuple[str, ...] = ...
    @property
    def converged(self) -> bool: ...
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Analysed:
    label: str
    sample: str
    analysis: Analysis
    fit: _Fit
    notes: tuple[str, ...] = ...
    cells: tuple[_FactorCell, ...] = ...
    @property
    def name(self) -> str: ...
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Fit:
    family: str
    method: str
    coefficients: tuple[_Coefficient, ...]
    spreads: tuple[_RandomIntercept, ...]
    criterion: float
    n: int
    p_values: str
    convergence: _Convergence
    covariance: np.ndarray = ...
    def __getitem__(self, name: str) -> _Coefficient: ...
    @property
    def parameters(self) -> int: ...
    @property
    def log_likelihood(self) -> float: ...
    @property
    def aic(self) -> float: ...
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _Coefficient:
    name: str
    estimate: float
    se: float
    statistic: float
    df: float
    p: float
    low: float
    high: float

@dataclass(frozen=True)
class _RandomIntercept:
    name: str
    groups: int
    sd: float
    @property
    def singular(self) -> bool: ...

@dataclass(frozen=True)
class _Convergence:
    converged: bool
    gradient: float
    singular: tuple[str, ...] = ...
    evaluations: int = ...
    notes: tuple[str, ...] = ...
    @property
    def line(self) -> str: ...

@dataclass(frozen=True)
class _FactorCell:
    x: str
    line: str
    n: int
    raw: float
    estimate: float
    low: float
    high: float

@dataclass(frozen=True)
class _SkippedAnalysis:
    label: str
    sample: str
    reason: str
    @property
    def name(self) -> str: ...

@dataclass(frozen=True)
class _Roles:
    image: tuple[str, ...] = ...
    positive: tuple[str, ...] = ...
    negative: tuple[str, ...] = ...
    subset: tuple[str, ...] = ...
    id: tuple[str, ...] = ...
    tag: tuple[str, ...] = ...
    @property
    def columns(self) -> list[str]: ...
    def document(self) -> dict[str, list[str]]: ...

@dataclass(frozen=True)
class _DownloadOptions:
    copy: Path | None = ...
    out: Path | None = ...
    images: str = ...
    copy_images: bool = ...
    mirror: str = ...
    large_ok: bool = ...
    force: bool = ...

@dataclass(frozen=True)
class _Limits:
    connect: float = ...
    read: float = ...
    attempts: int = ...
    slowest: float = ...
    patience: float = ...
    most: int = ...
    most_picture: int = ...
    workers: int = ...
    give_up_after: int = ...

@dataclass(frozen=True)
class _Downloaded:
    entry: _CatalogEntry
    folder: Path
    benchmark: Benchmark
    text: _Published
    pictures: _CatalogPictures
    @property
    def complete(self) -> bool: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

@dataclass(frozen=True)
class _Published:
    path: Path
    files: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ...

@dataclass(frozen=True)
class _CatalogPictures:
    store: _ImageStore | None = ...
    needed: int = ...
    here: int = ...
    fetched: int = ...
    missing: tuple[Mapping[str, Any], ...] = ...
    notes: tuple[str, ...] = ...

class _Database:
    engine: Any
    place: str
    def __init__(self, engine: Any, place: str) -> None: ...
    @contextmanager
    def read(self) -> Iterator[Any]: ...
    @contextmanager
    def write(self) -> Iterator[Any]: ...
    def close(self) -> None: ...

@dataclass(frozen=True)
class _Invitation:
    pseudonym: str
    token: str
    def link(self, base: str) -> str: ...

@dataclass(frozen=True)
class _TableReading:
    task: str = ...
    ties: str = ...
    grammar: _WordingPreference | None = ...
    sizes: Mapping[str, float] = ...

@dataclass(frozen=True)
class _WordingPreference:
    score: Callable[[Sequence[str]], np.ndarray]
    name: str
    equal: float = ...
    batch: int = ...

@dataclass(frozen=True)
class _LongTable:
    table: Any
    notes: tuple[str, ...] = ...

_WriteFoils: TypeAlias = Callable[[str], str | Sequence[str] | None]

@dataclass(frozen=True)
class _JobOptions:
    images: str | None = ...
    limit: int | None = ...
    sample: int | None = ...
    shard: str | None = ...
    force: bool = ...

@dataclass(frozen=True, slots=True)
class _RenderOptions:
    samples: int = ...
    variant: str = ...
    workers: int = ...
    def photograph(self, room: _Room, size: int) -> bytes: ...
    def file_of(self, code: str, size: int) -> Path: ...
    def photograph_all(self, rooms: Sequence[_Room], size: int, progress: _Progress = ...) -> None: ...

@dataclass(frozen=True)
class _Room:
    things: tuple[_Solid, ...]
    setting: str = ...
    wall: int = ...
    ground: int = ...
    light: int = ...
    slope: int = ...
    aim_x: int = ...
    aim_y: int = ...
    aim_z: int = ...
    away: int = ...
    def to_json(self) -> str: ...
    @classmethod
    def from_json(cls, text: str) -> _Room: ...
    @property
    def code(self) -> str: ...

@dataclass(frozen=True, slots=True)
class _Solid:
    kind: str
    colour: str = ...
    material: str = ...
    pattern: str = ...
    size: str = ...
    state: str = ...
    x: int = ...
    y: int = ...
    z: int = ...
    turn: int = ...
    base: int = ...
    inside: bool = ...

@dataclass(frozen=True)
class _OverlapOptions:
    near: float = ...

@dataclass(frozen=True)
class _PowerOptions:
    items: int | None = ...
    per_image: int = ...
    icc: float = ...
    accuracy: float | None = ...
    difference: float | None = ...
    discordant: float | None = ...
    width: float = ...
    threshold: float = ...
    attackers: tuple[str, ...] = ...
    through: str = ...
    raters: int = ...
    kappa: float = ...
    least: float = ...
    target: float = ...
    simulations: int = ...
    seed: int = ...

@dataclass(frozen=True)
class _Standings:
    columns: list[_StandingsColumn]
    models: list[str]
    mean: dict[str, float]
    mean_rank: dict[str, float]
    notes: list[str] = ...
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _StandingsColumn:
    benchmark: str
    task: str
    hash: str
    chance: float
    subsets: tuple[str, ...]
    models: dict[str, _Standing]
    note: str = ...
    @property
    def name(self) -> str: ...

@dataclass(frozen=True)
class _Standing:
    accuracy: float
    low: float
    high: float
    n: int
    ties: int
    rank: int
    groups: str
    subsets: tuple[float, ...] = ...
    void: int = ...

@dataclass(frozen=True)
class _ReportPage:
    html: str = ...
    def save(self, path: str | Path) -> Path: ...

@dataclass(frozen=True)
class _RobustOptions:
    margin: float = ...
    wrong: str = ...
    blind: tuple[str, ...] = ...

@dataclass(frozen=True)
class _ScoreOptions(_PrecisionOptions):
    dtype: str = ...
    tasks: tuple[str, ...] = ...
    batch_size: int | None = ...
    settings: _MetricSettings = ...
    command: str = ...
    cache: bool | str = ...
    shard: _Shard | None = ...

@dataclass(frozen=True)
class _PrecisionOptions(_DeviceOptions):
    dtype: str = ...

@dataclass(frozen=True)
class _DeviceOptions:
    device: str = ...

@dataclass(frozen=True, slots=True, order=True)
class _Shard:
    count: int
    number: int
    def range(self, n: int) -> range: ...
    def of(self, things: Sequence[_T]) -> Sequence[_T]: ...
    def __str__(self) -> str: ...

_T = TypeVar("_T")

class _StudyRow(_SchemaTable):
    name: Any = ...
    task: Any
    instructions: Any
    plan: Any
    bench: Any
    state: Any
    created: Any
    secret: Any
    settings: Any
    revision: Any = ...

class _SchemaTable:
    metadata: ClassVar[Any]
    type_annotation_map: ClassVar[Any]
    id: Any = ...
    def part(self, *names: str) -> _Json: ...

@dataclass(frozen=True, repr=False)
class _NotebookTable:
    table: _RunTable
    def __str__(self) -> str: ...
    def latex(self) -> str: ...
    def save(self, path: str | Path) -> Path: ...

@dataclass(frozen=True)
class _RunTable:
    choice: _TableChoice
    rows: list[_Labels]
    columns: list[_Labels]
    cells: dict[tuple[_Labels, _Labels], _TableValue]
    caption: str
    def best(self) -> set[tuple[_Labels, _Labels]]: ...
    def document(self) -> _Json: ...

@dataclass(frozen=True)
class _TableChoice:
    rows: tuple[str, ...] = ...
    columns: tuple[str, ...] = ...
    task: str = ...
    intervals: bool = ...
    digits: int = ...

_Labels: TypeAlias = tuple[str, ...]

@dataclass(frozen=True)
class _TableValue:
    value: float
    low: float
    high: float
    n: int
    ties: int
    void: int
    task: _Task
    def text(self, digits: int) -> str: ...
    def span(self, digits: int) -> str: ...
    @property
    def partly(self) -> str: ...

@dataclass(frozen=True)
class _TowersConfig:
    image: str = ...
    text: str = ...
    head: str = ...
    hidden: int = ...
    joint: int = ...
    dropout: float = ...
    layers: int = ...
    views: tuple[str, ...] = ...
    size: int = ...
    trained: tuple[str, ...] = ...
    tower_rate: float = ...
    crop: float = ...
    @property
    def views_rule(self) -> _ViewRule: ...

@dataclass(frozen=True)
class _ViewRule:
    names: tuple[str, ...] = ...
    size: int = ...
    def __call__(self, image: Image.Image) -> np.ndarray: ...

@dataclass(frozen=True)
class _SmallConfig:
    vocabulary: int = ...
    size: int = ...
    channels: tuple[int, ...] = ...
    vision_layers: int = ...
    residual: bool = ...
    text_width: int = ...
    text_layers: int = ...
    heads: int = ...
    joint: int = ...
    context: int = ...
    @property
    def shrink(self) -> int: ...

@dataclass(frozen=True)
class _TrainOptions(_DeviceOptions):
    negatives: tuple[str, ...] = ...
    refined: bool = ...
    tuning: str = ...
    rank: int = ...
    targets: tuple[str, ...] = ...
    truncate: bool = ...
    force: bool = ...

@dataclass(frozen=True)
class _TrainingSettings:
    objective: str = ...
    epochs: int = ...
    steps: int | None = ...
    batch: int = ...
    lr: float = ...
    weight_decay: float = ...
    warmup: int = ...
    betas: tuple[float, float] = ...
    clip_norm: float = ...
    accumulate: int = ...
    precision: str = ...
    save_every: int = ...
    keep: int = ...
    seed: int = ...
    def total(self, examples: int) -> int: ...
    def epoch(self, examples: int) -> int: ...
    @property
    def document(self) -> dict[str, Any]: ...

@dataclass(frozen=True)
class _TowerOptions:
    image_tower: str = ...
    text_tower: str = ...
    head: str = ...
    train_towers: tuple[str, ...] = ...

@dataclass(frozen=True, slots=True)
class _WorldExample:
    image: np.ndarray
    caption: str
    paraphrase: str
    foil: str
    kind: str
    scene: _Scene

@dataclass(frozen=True)
class _Scene:
    things: tuple[_Thing, ...]
    action: str = ...
    backdrop: int = ...
    @property
    def roles(self) -> tuple[int, ...]: ...
    @property
    def code(self) -> str: ...

@dataclass(frozen=True, slots=True)
class _Thing:
    kind: str
    colour: str
    pattern: str
    size: str
    x: int
    y: int
    facing: int = ...
    @property
    def box(self) -> tuple[int, int, int, int]: ...
    def spot(self, across: int, down: int) -> tuple[int, int]: ...

@dataclass(frozen=True)
class _Truth:
    word: _Verdict
    reason: str

_Verdict: TypeAlias = Literal["entailed", "contradicted", "compatible", "unknown"]

@dataclass(frozen=True)
class _TuneOptions(_DeviceOptions):
    ways: tuple[str, ...] = ...
    share: float = ...
    train_on: tuple[str, ...] = ...
    rank: int = ...
    pairs: int = ...
    lora_rate: float = ...

@dataclass(frozen=True, eq=False, repr=False)
class _WrappedModel:
    model: Any
    processor: Any = ...
    preprocess: Any = ...
    tokenizer: Any = ...
    name: str = ...
    options: Mapping[str, str] = ...
    plugin: str = ...
    def __repr__(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def content(self) -> _Content: ...
    def read(self, kind: str) -> dict[str, Any]: ...
    @contextmanager
    def opened(
        self, device: str = "auto", dtype: str = "auto", cache: bool | str = True
    ) -> Iterator[tuple[Model, bool]]: ...

@dataclass(frozen=True)
class _Content:
    digest: str
    certain: bool

class _CachedScorer:
    model: TextScorer
    store: Any
    def __init__(self, model: TextScorer, stored: bool = True) -> None: ...
    def score_texts(self, texts: Sequence[str]) -> np.ndarray: ...
    def likelihoods(self, texts: Sequence[str], reduce: str) -> np.ndarray: ...

class _Learner(_MarginSource): ...

@dataclass(eq=False, kw_only=True)
class _MarginSource:
    seed: int = ...
    _known: dict[str, dict[str, np.ndarray]] = ...
    @property
    def learns(self) -> bool: ...
    def margins(self, pairs: Pairs, name: str, progress: _Progress = ...) -> np.ndarray: ...

@dataclass(eq=False)
class _Corpus(_MarginSource):
    spec: str = ...
    @property
    def captions(self) -> list[tuple[str, str]]: ...
    @property
    def learns(self) -> bool: ...
    def texts(self, pairs: Pairs) -> tuple[list[str], np.ndarray]: ...
    def folds(
        self, pairs: Pairs, k: int, progress: _Progress
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]: ...

_Role: TypeAlias = Literal["positive", "negative"]

_Files: TypeAlias = dict[str, bytes]

_Check: TypeAlias = Callable[[SourceCaption, Candidate], str | None]

@runtime_checkable
class _BatchCheck(Protocol):
    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> Sequence[str | None]: ...

_ProposeOne: TypeAlias = Callable[[SourceCaption, Any, MakerOptions], Proposal]

_BuildItems: TypeAlias = Callable[[SourceCaption, Sequence[Candidate]], list[Item]]

_ScoreTexts: TypeAlias = Callable[[Sequence[str]], np.ndarray]

# from creperie.statistics.declare import Analysis as Analysis
@dataclass(frozen=True)
class Analysis:
    """A declared analysis. `levels` gives the order of a factor's levels, the reference level first; rows with
    other levels are dropped."""

    outcome: str = ...
    fixed: tuple[str, ...] = ...
    random: tuple[str, ...] = ...
    family: _Family = ...
    contrast: str = ...
    contrasts: Mapping[str, str] = ...
    levels: Mapping[str, tuple[str, ...]] = ...
    where: Mapping[str, tuple[str, ...]] = ...
    reml: bool = ...
    @property
    def formula(self) -> str:
        """The analysis as a formula in the syntax of R's package lme4."""

    @property
    def factors(self) -> list[tuple[str, ...]]:
        """The fixed terms, each split into its factors."""

    def document(self) -> dict[str, Any]: ...

# from creperie.auditing.result import Audit as Audit
@dataclass(frozen=True)
class Audit(_Framed):
    """Everything that an audit found."""

    name: str
    hash: str
    items: int
    attackable: int
    seed: int
    threshold: float
    attackers: tuple[Attacker, ...]
    not_sent: dict[str, str]
    rows: tuple[_AuditRow, ...]
    views: tuple[_AuditRow, ...]
    judgements: tuple[_Judgement, ...]
    whole: _Judgement
    cues: dict[str, list[tuple[_Cue, _ExamplePair]]]
    examples: dict[str, list[_ExamplePair]]
    shapes: dict[str, dict[str, _GapShape]]
    likeness: tuple[_Likeness, ...] = ...
    symmetry: tuple[_Symmetry, ...] = ...
    spec: str = ...
    language: str = ...
    part: str = ...
    counts: tuple[_ExactCount, ...] = ...
    @property
    def verdict(self) -> str: ...
    @property
    def text(self) -> str:
        """The verdict as a sentence."""

    @property
    def next(self) -> str:
        """The command to type next."""

    @property
    def code(self) -> int:
        """The exit code of the verdict."""

    def save(self, path: str | Path) -> Path:
        """Write the audit as JSON, in the form of `creperie audit --json`. If the name ends in .html, write it as an
        HTML page."""

    def to_html(self) -> str:
        """Return the audit as one HTML page."""

    def __repr__(self) -> str: ...
    def frame(self) -> Any:
        """Return an Arrow table with one row per subset and attacker. In rows with a `view`, attackers saw only a
        part of the data: one of several true captions of each item, or the images without captions."""

# from creperie.bench.benchmark import Benchmark as Benchmark
@dataclass(frozen=True)
class Benchmark(_Framed):
    """A named set of items, with images and a record of its history. A benchmark on disk is read only as needed."""

    name: str
    source: Any | _Parquet
    images: _ImageStore = ...
    info: _Info = ...
    provenance: tuple[_ProvenanceStep, ...] = ...
    skipped: tuple[_SkippedRecord, ...] = ...
    unchecked: bool = ...
    @property
    def table(self) -> Any:
        """The whole table; it is read on first use and then stays in memory."""

    def column(self, name: str) -> Any:
        """Return one column. If the benchmark is on disk, only this column is read."""

    def pieces(self, columns: list[str], rows: int = ...) -> Iterator[Any]:
        """Yield tables of the given columns, with at most `rows` rows each."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def schema(self) -> Any:
        """The names and types of the columns. They are known without reading any items."""

    @property
    def hash(self) -> str:
        """The content hash of the items. A run records it to identify its benchmark."""

    @property
    def checked_hash(self) -> str:
        """The content hash, computed from the items; raise a DataError if the hash in the manifest is different."""

    @property
    def subsets(self) -> dict[str, int]:
        """The number of items of each subset, in order of first appearance."""

    def __repr__(self) -> str: ...
    def frame(self) -> Any:
        """Return the items as an Arrow table, one row per item."""

    def open(self, item: Item | int | str) -> list[Image.Image]:
        """Return the images of an item. `item` is the item itself, its index or its id."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Item]: ...
    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Benchmark: ...
    @overload
    def __getitem__(self, index: str) -> Any: ...
    @property
    def item_keys(self) -> list[tuple[str, str]]:
        """The (subset, id) of every item, in order."""

    def item(self, subset: str, id: str) -> Item:
        """Return the item with this subset and id; raise a UsageError if there is none."""

    def ragged(self, column: str) -> tuple[np.ndarray, Any]:
        """Return a list column as offsets and flat values: list i is `values[offsets[i]:offsets[i + 1]]`."""

    def keeping(self, keep: np.ndarray, op: str, **args: Any) -> Benchmark:
        """Return a benchmark of the items for which the mask `keep` is True. `op` and `args` become a provenance
        step."""

    def with_table(self, table: Any | _Parquet, op: str, **args: Any) -> Benchmark:
        """Return a copy of the benchmark with the items in `table`. `op` and `args` become a provenance step."""

    def filter(self, condition: Any | Sequence[bool] | np.ndarray | Callable[[Item], bool], why: str = "") -> Benchmark:
        """Return a benchmark of the items that meet a condition: an Arrow expression over the columns, a boolean
        mask, or a function that takes an item. `why` is recorded as the reason."""

    def save(self, folder: str | Path, *, copy_images: bool = False, force: bool = False) -> Benchmark:
        """Write the benchmark into a folder, as `creperie.save` does, and return it as loaded from there."""

    def only(self, *subsets: str | Iterable[str]) -> Benchmark:
        """Return a benchmark of the items in these subsets. Subsets are given as separate arguments or as a list."""

    def sample(self, n: int, seed: int = 0) -> Benchmark:
        """Return a benchmark of `n` items, or all if there are fewer. They are drawn without replacement and stay in
        their original order."""

    def head(self, n: int) -> Benchmark:
        """Return a benchmark of the first `n` items of every subset."""

# from creperie.scoring.callbacks import BenchmarkCallback as BenchmarkCallback
class BenchmarkCallback:
    """A callback that scores the model in training on a benchmark every `every` steps and logs the accuracies."""

    bench: Any
    every: int
    tasks: str | Iterable[str]
    parts: Any
    runs: list[tuple[int, Run]]
    def __init__(
        self,
        bench: _BenchmarkSpec,
        *,
        every: int = 500,
        tasks: str | Iterable[str] = ...,
        processor: Any = None,
        preprocess: Any = None,
        tokenizer: Any = None,
        log: Any = None,
    ) -> None: ...
    def step(self, model: Any, number: int, loggers: Sequence[Any] = ...) -> Run | None:
        """Score the model if `number` is a multiple of `every`, and return the run; otherwise return None."""

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        """Score the model after a step; called by transformers' Trainer."""

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """Score the model in training; Lightning calls this method after a batch. The model is the Lightning module
        itself or, if the module has no `encode_image`, the module's attribute `model`."""

    @property
    def state_key(self) -> str: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

# from creperie.scoring.compare_runs import Comparisons as Comparisons
@dataclass
class Comparisons(_Framed):
    """The paired tests, ranks and correlations of several runs."""

    rows: list[_ComparisonRow] = ...
    columns: list[str] = ...
    ranks: list[_Ranking] = ...
    correlations: list[_Correlated] = ...
    notes: list[str] = ...
    def __repr__(self) -> str: ...
    def frame(self) -> Any:
        """Return an Arrow table with one row per test."""

    def document(self) -> dict[str, Any]: ...

# from creperie.core.errors import CreperieError as CreperieError
class CreperieError(Exception):
    """The base class of errors about a call or its data. The command line prints such an error as one line and
    exits with 2."""

    what: Any
    where: Any
    hint: Any
    def __init__(self, what: str, *, where: object = "", hint: str = "") -> None: ...
    def __str__(self) -> str: ...

# from creperie.bench.item import Item as Item
@dataclass(frozen=True, slots=True)
class Item:
    """An item of a benchmark. `(subset, id)` is its key: ids are unique within their subset."""

    id: str
    subset: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    match: _Match
    tags: Mapping[str, _Tag] = ...
    @classmethod
    def pair(
        cls,
        *,
        positive: str | Sequence[str],
        negative: str | Sequence[str],
        image: Any = "",
        id: str = "",
        subset: str = "pairs",
        **tags: _Tag,
    ) -> Item:
        """Return an item with at least one true and one false caption, and with at most one image."""

    @property
    def positives(self) -> tuple[str, ...]:
        """The captions that are true of at least one image."""

    @property
    def negatives(self) -> tuple[str, ...]:
        """The captions that are true of no image."""

# from creperie.statistics.items import ItemStudy as ItemStudy
@dataclass(frozen=True, eq=False)
class ItemStudy(_Framed):
    """The results of an item analysis. `fit` is None if there are too few runs for an item response model.
    `gain` (how much the pictures help) is None if the same models were not also run without pictures."""

    answers: _Answers
    rest: np.ndarray
    fit: _ResponseFit | None
    short: _ShortForm | None
    gain: _PictureGain | None = ...
    counted: tuple[_Comparison, ...] = ...
    @property
    def suspicion(self) -> np.ndarray:
        """The log odds that the label of each item is wrong. If there is no response model, the value is −artanh(r)
        · √(m − 3), where r is the item–rest correlation and m the number of models."""

    @property
    def kinds(self) -> np.ndarray:
        """The kind of each item: "suspicious", "right for all", "wrong for all", or "separates" (some models are
        right and others wrong)."""

    @property
    def agreement(self) -> list[_PairAgreement]:
        """For every two runs (including those of people), how often they get the same items right or wrong."""

    def frame(self) -> Any:
        """Return an Arrow table with one row per item, the most suspicious first. `images` holds image keys."""

    def abilities(self) -> list[dict[str, Any]]:
        """Return one row per model, the best first, with its accuracy and, if there is a response model, its
        ability."""

    @property
    def notes(self) -> list[str]:
        """Notes on omitted items, on the meaning of "suspicious", and on a poor fit of the response model."""

    def document(self) -> dict[str, Any]:
        """Return the study as a document for JSON."""

    def __repr__(self) -> str: ...

# from creperie.reporting.figures.bars import Levels as Levels
@dataclass(frozen=True)
class Levels:
    """What to compare the models' accuracies with: chance and human accuracy, by subset."""

    chance: Mapping[str, float] = ...
    human: Mapping[str, float] = ...

# from creperie.making.run import Made as Made
@dataclass(frozen=True)
class Made(_Framed):
    """The result of a generation job. If there is a folder, outcomes and items are read from it on demand."""

    report: Mapping[str, Any]
    folder: Path | None = ...
    read_outcomes: Callable[[], Iterable[_SourceOutcome]] = ...
    items_in_memory: tuple[Item, ...] = ...
    sources: Sequence[SourceCaption] = ...
    maker: str = ...
    @property
    def outcomes(self) -> tuple[_SourceOutcome, ...]: ...
    @property
    def items(self) -> tuple[Item, ...]: ...
    @property
    def bench(self) -> Benchmark:
        """The items as a benchmark."""

    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...
    def save(self, folder: str | Path, *, force: bool = False) -> Benchmark:
        """Write the items as a benchmark to a folder, and return it as loaded from there."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The candidates, one row each, with source, text, verdict and tags."""

    def frame(self) -> Any:
        """Return the candidates as an Arrow table, one row each."""

    def __repr__(self) -> str: ...

# from creperie.statistics.contamination import Overlap as Overlap
@dataclass
class Overlap:
    """What a benchmark shares with a corpus."""

    benchmark: str
    corpus: str
    texts: int = ...
    captions: int = ...
    exact: int = ...
    near: int = ...
    items: int = ...
    images: int = ...
    matches: list[_CaptionMatch] = ...
    def document(self) -> dict[str, Any]: ...

# from creperie.statistics.planning import PowerEstimate as PowerEstimate
@dataclass(frozen=True)
class PowerEstimate:
    """The fraction of simulated studies that support the claim, and the number of items at which this fraction
    reaches `target`."""

    claim: str
    items: int
    power: float
    error: float
    needed: int | None
    target: float
    curve: tuple[tuple[int, float], ...] = ...
    difference: float = ...
    def document(self) -> dict[str, Any]: ...

# from creperie.refining.refinement import Refined as Refined
@dataclass(frozen=True)
class Refined(_Framed):
    """A refined benchmark, the items that were removed, and the attackers' results before and after."""

    bench: Benchmark
    original: Benchmark
    plan: _RefinePlan
    seed: int
    removed: Sequence[_Removal]
    outcomes: tuple[_SubsetOutcome, ...]
    standings: tuple[_AttackerStanding, ...]
    audit: Audit | None = ...
    audit_options: Mapping[str, Any] = ...
    folder: str = ...
    spec: str = ...
    part: str = ...
    @property
    def judgement(self) -> _Judgement:
        """The verdict of the final audit on the kept items."""

    @property
    def next(self) -> str:
        """The command to type next."""

    def save(self, folder: str | Path, *, force: bool = False) -> Benchmark:
        """Write the refined benchmark, the removed items and the report to a folder. Return the benchmark as loaded
        from there."""

    def __repr__(self) -> str: ...
    def frame(self) -> Any:
        """Return an Arrow table of the attackers' results, with one row per attacker, subset and stage (before or
        after)."""

# from creperie.statistics.rankings import Robustness as Robustness
@dataclass(frozen=True)
class Robustness:
    """The ranks of the models under every choice in the analysis (such as each tie rule), the pairs of models,
    and the accuracies corrected for wrong labels."""

    choices: list[str]
    ranks: list[_Ranking]
    pairs: list[_PairRobustness]
    accuracies: list[_NoisyAccuracy]
    ceiling: tuple[float, float, float] | None
    notes: tuple[str, ...] = ...
    margin: float = ...
    def frame(self) -> Any:
        """Return a table with one row per model and choice. It has the accuracy, the rank, and the number of ranks
        gained compared with the first choice."""

    def document(self) -> dict[str, Any]:
        """Return the results as a document for JSON."""

# from creperie.scoring.run import Run as Run
@dataclass(frozen=True)
class Run(_RunHeader, _Framed):
    """The scores of a run and the document that describes it. `path` is None until the run is saved."""

    document: dict[str, Any]
    table: Any
    path: Path | None = ...
    bench: Benchmark | None = ...
    unchecked: bool = ...
    @property
    def name(self) -> str: ...
    @property
    def tasks(self) -> tuple[str, ...]: ...
    @property
    def settings(self) -> _MetricSettings:
        """The tie rule, confidence level and seed with which the stored results were computed."""

    @property
    def findings(self) -> list[dict[str, Any]]: ...
    @property
    def results(self) -> list[dict[str, Any]]:
        """The results stored in the document."""

    @property
    def accuracy(self) -> float:
        """The accuracy of the first task on all items, from 0 to 1; NaN if the run has no task."""

    def summary(self) -> str:
        """Return the results as lines of text: task, subset, items, accuracy and its interval in percent."""

    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    @property
    def scored(self) -> int:
        """The number of items that have all the scores that the run's tasks need."""

    @property
    def gaps(self) -> str:
        """A sentence on how many items lack a score, and why; empty if no score is missing."""

    def frame(self, bench: Benchmark | None = None) -> Any:
        """Return one row per task and item, as an Arrow table that any data frame library reads."""

    @property
    def layout(self) -> _Layout:
        """The match matrices of the items (which captions are true of which images), in the form that the metrics
        take."""

    def scores(self, needs: _Input) -> np.ndarray:
        """Return a score column (`needs`) as a flat array, with NaN for items without scores."""

    @property
    def inputs(self) -> tuple[_Input, ...]:
        """The names of the columns that hold scores."""

    @property
    def subsets(self) -> list[str]: ...
    @property
    def clusters(self) -> np.ndarray:
        """The cluster number of each item. Items that share an image, even with different crops, are in the same
        cluster."""

    @property
    def answers(self) -> dict[int, list[_Written]]:
        """The texts that a generative model wrote, by item number, with its reasoning in a separate field. Empty for
        other models."""

    @property
    def cut_off(self) -> int:
        """The number of items that have no score because an answer was cut off."""

    @property
    def swap(self) -> np.ndarray | None:
        """A boolean array: True for the items whose true captions P1 and P2 are swapped, following VISLA; None if no
        task uses this."""

    def fits(self, bench: Benchmark) -> bool:
        """Return whether the run was computed on this benchmark or on a part of it."""

    def outcomes(self, which: str) -> np.ndarray:
        """Return the outcome of the task `which` for every item: HIT, MISS, TIE or VOID. VOID means that a score is
        missing or that there is nothing to compare."""

    def scored_task(self, name: str) -> _Task:
        """Return a task; raise a UsageError if the run lacks the scores that it needs."""

    def evaluate(
        self, tasks: str | _Judge | Iterable[str | _Judge] | None = None, settings: _MetricSettings | None = None
    ) -> list[_Result]:
        """Return results recomputed from the stored scores. `settings` and `tasks` (names or functions) may differ
        from those of the run."""

    def save(self, folder: str | Path) -> Run:
        """Write the run atomically to `folder/<name>`, replacing an older run of that name; return the saved run."""

# from creperie.reporting.figures.bars import Series as Series
@dataclass(frozen=True)
class Series:
    """The accuracies of one model: a mapping from subset to (value, low, high)."""

    name: str
    values: Mapping[str, tuple[float, float, float]]
    counts: Mapping[str, str] = ...

# from creperie.annotation.plans import StudyPlan as StudyPlan
@dataclass(frozen=True)
class StudyPlan:
    """The setup of a study: the task, the number of answers per question, the numbers of practice questions and
    attention checks, and how many questions may be skipped."""

    task: str = ...
    overlap: int = ...
    per_annotator: int | None = ...
    subsets: tuple[str, ...] = ...
    sample: int | None = ...
    practice: int | None = ...
    attention: int = ...
    attention_every: int = ...
    skips: int | None = ...
    with_image: bool = ...
    lease: float = ...
    seed: int = ...
    def skips_allowed(self, answered: int) -> int:
        """Return how many questions an annotator who has given `answered` answers may have skipped: `skips` if it is
        set, otherwise 5 + answered // 5."""

# from creperie.training.loop import Trained as Trained
@dataclass(frozen=True)
class Trained:
    """The result of a training run."""

    folder: Path
    document: dict[str, Any]
    uri: str
    def __repr__(self) -> str: ...

# from creperie.training.tuning_study import TuningComparison as TuningComparison
@dataclass(frozen=True)
class TuningComparison:
    """The results of all tuning methods on the same split."""

    model: str
    subsets: tuple[str, ...]
    trained_on: tuple[str, ...]
    sizes: dict[str, tuple[int, int]]
    rows: tuple[_TuningResult, ...]
    @property
    def document(self) -> dict[str, Any]: ...

# from creperie.core.errors import UsageError as UsageError
class UsageError(CreperieError):
    """Raised for a call that cannot be carried out as written."""

# from creperie.world.make import World as World
@dataclass(frozen=True, slots=True)
class World:
    """The settings of a generated world: items per kind and form, split, seed, and size of the images."""

    items: int = ...
    kinds: tuple[str, ...] = ...
    forms: tuple[str, ...] = ...
    split: str = ...
    seed: int = ...
    size: int = ...
    render: str = ...
    def subsets(self) -> list[tuple[str, str, str]]:
        """Return (subset, kind, form) for each subset. A subset is named after its kind, followed by its form unless
        that is "choice"."""

# from creperie.reporting.figures.bars import accuracy_by_subset as accuracy_by_subset
def accuracy_by_subset(series: Sequence[Series], levels: Levels = ..., *, title: str = "") -> Any:
    """Return a figure with one row per subset and, in each row, one dot per model. Ticks mark chance; diamonds
    mark human accuracy."""

# from creperie.reporting.continuous import against_baseline as against_baseline
def against_baseline(now: _Document, before: _Document) -> _BaselineResult:
    """Compare an audit (`now`) with a baseline (`before`). Return which leaks are new and which have grown
    significantly."""

# from creperie.auditing.run import audit as audit
def audit(
    bench: _BenchmarkSpec,
    attackers: Sequence[str] | str = ...,
    *,
    options: _AuditOptions = ...,
    models: AttackerModels = ...,
    engine: _Engine | None = None,
    progress: _Progress | None = ...,
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
    """Attack a benchmark without its images, and return the verdict and the cues through which it leaks. `bench`
    is a benchmark, a spec or a path."""

# from creperie.auditing.document import audit_document as audit_document
def audit_document(audit: Audit, spec: str | Path = "", options: Mapping[str, Any] = ...) -> dict[str, Any]:
    """Return everything that an audit found, as a document for JSON. `spec` is the benchmark as the user named
    it, and `options` are the options that differ from their defaults."""

# from creperie.bench.catalog.entries import catalog_entries as catalog_entries
def catalog_entries() -> tuple[_CatalogEntry, ...]:
    """Return all benchmarks of the catalog, in catalog order."""

# from creperie.bench.checks import check as check
def check(bench: Benchmark, *, images: bool = True, progress: _Progress = ...) -> list[_Finding]:
    """Return all findings, errors first. With `images`, every image that the items refer to is read and decoded."""

# from creperie.metrics.layout import clusters_of as clusters_of
def clusters_of(counts: np.ndarray, keys: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    """Return the cluster of each item. Items that share a key (such as an image), directly or through other
    items, are in the same cluster."""

# from creperie.scoring.compare_runs import compare as compare
def compare(
    *runs: _RunSpec | Sequence[_RunSpec],
    options: _CompareOptions = ...,
    settings: _MetricSettings = ...,
    against: str | Path | None = None,
    column: str = "",
    key: str = "model",
    tasks: str | Sequence[str] = ...,
    common: bool = False,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> Comparisons:
    """Compare runs, given one by one or as a list."""

# from creperie.recipes.preflight import cook as cook
def cook(
    recipe: str | Path | _Recipe,
    out: str | Path | None = None,
    *,
    profile: str = "small",
    changes: Mapping[str, Any] | None = None,
    use: Mapping[str, str] | None = None,
    engine: _Engine | None = None,
    progress: _Progress = ...,
    tell: _Tell = ...,
) -> list[_StageResult]:
    """Run a recipe and return one result per stage. `recipe` is the name of one that comes with creperie, a YAML
    file, or a `Recipe`."""

# from creperie.statistics.items import difficulty as difficulty
def difficulty(
    runs: Sequence[Run | str | Path],
    *,
    options: _ItemOptions = ...,
    settings: _MetricSettings = ...,
    task: str = "",
    response: Literal["auto", "2pl", "1pl", "none"] = "auto",
    short: float = 0.1,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> ItemStudy:
    """Analyse the items of a benchmark, given the runs of at least three models on it."""

# from creperie.metrics.results import evaluate as evaluate
def evaluate(
    which: _Task | str,
    layout: _Layout,
    scores: np.ndarray,
    *,
    subsets: Sequence[Hashable] | np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    swap: np.ndarray | None = None,
    settings: _MetricSettings = ...,
) -> list[_Result]:
    """Return the results of a task for every subset and for all items together. If there are several subsets,
    the macro mean is included."""

# from creperie.reporting.notebook import figure as figure
def figure(
    runs: Run | str | Path | Sequence[Run | str | Path],
    name: str = "accuracy",
    *,
    options: _FigureOptions | None = None,
    out: str | Path | None = None,
) -> Any:
    """Return a figure of runs, given in memory or by folder. With `out` it is also written as SVG, PDF or PNG."""

# from creperie.reporting.tables.filled import fill_table as fill_table
def fill_table(
    table: _PublishedTable,
    runs: Sequence[Run | str | Path] = ...,
    *,
    rows: Sequence[_FactRow] = ...,
    sets: Sequence[_Document] = ...,
    same: Mapping[str, str] | None = None,
    any_benchmark: bool = False,
    partial: bool = False,
) -> _FilledTable:
    """Return a published table with the results of runs, one row per model. `rows` are further rows, from stages
    of a recipe. `sets` describe the benchmarks on which these rows were computed."""

# from creperie.bench.formats.registry import find_format as find_format
def find_format(name: str) -> Format:
    """Return the format with this name or alias. Plug-ins are searched only if no built-in format has this name."""

# from creperie.statistics.analyse import fit_study as fit_study
def fit_study(
    table: Any,
    analyses: Mapping[str, Analysis],
    *,
    wish: _AnalysisExtras = ...,
    progress: _Progress = ...,
    per_model: bool = False,
    lenient: bool = False,
    required: str = "",
    cells: str | Sequence[str] | None = None,
) -> _FittedStudy:
    """Fit each analysis to all rows and, with `wish.per_model`, also to the rows of each model separately.
    Return the fits and the skipped analyses."""

# from creperie.bench.frames import from_pandas as from_pandas
def from_pandas(
    frame: Any,
    *,
    images: str | Path | None = None,
    name: str = "frame",
    roles: _Roles = ...,
    image: str | Sequence[str] = ...,
    positive: str | Sequence[str] = ...,
    negative: str | Sequence[str] = ...,
    subset: str | Sequence[str] = ...,
    id: str | Sequence[str] = ...,
    tag: str | Sequence[str] = ...,
) -> Benchmark:
    """Return a benchmark made from a table in memory. The table has one row per item, and columns with true and
    false captions."""

# from creperie.bench.catalog.get import get_benchmark as get_benchmark
def get_benchmark(
    name: str,
    *,
    wish: _DownloadOptions = ...,
    limits: _Limits | None = None,
    progress: _Progress = ...,
    copy: str | Path | None = None,
    out: str | Path | None = None,
    images: str | Path = "fetch",
    copy_images: bool = False,
    mirror: str | Path = "",
    large_ok: bool = False,
    force: bool = False,
) -> _Downloaded:
    """Download a benchmark, or read the user's copy of it, save it as a benchmark folder, and return the result."""

# from creperie.annotation.links import invite as invite
def invite(
    db: _Database, name: str, count: int = 1, *, days: float = ..., note: str = "", form: str = "", actor: str = "cli"
) -> list[_Invitation]:
    """Create `count` new annotators of a study, each with a personal link."""

# from creperie.metrics.layout import layout_of as layout_of
def layout_of(matches: Iterable[Sequence[Sequence[object]]]) -> _Layout:
    """Return the layout of match matrices that are given as lists or tuples."""

# from creperie.bench.catalog.entries import list_benchmarks as list_benchmarks
def list_benchmarks() -> list[str]:
    """Return the names of the benchmarks that can be loaded by name, in catalog order."""

# from creperie.bench.spec import load as load
def load(
    spec: _BenchmarkSpec,
    *,
    images: str | Path | None = None,
    roles: _Roles = ...,
    image: str | Sequence[str] = ...,
    positive: str | Sequence[str] = ...,
    negative: str | Sequence[str] = ...,
    subset: str | Sequence[str] = ...,
    id: str | Sequence[str] = ...,
    tag: str | Sequence[str] = ...,
) -> Benchmark:
    """Load a benchmark. `spec` is its name in the catalog, a folder that creperie wrote, `FORMAT:PATH`, a table
    of captions, or anything that `from_pandas` takes."""

# from creperie.models.registry import load_model as load_model
def load_model(uri: str, *, device: str = "auto", dtype: str = "float32") -> Model:
    """Load and return the model that a URI names. If this fails, a `CreperieError` that names the model is
    raised."""

# from creperie.scoring.run import load_run as load_run
def load_run(path: str | Path) -> Run:
    """Load a run from its folder, as written by `Run.save`, or from a folder that contains a single run."""

# from creperie.statistics.table import long_table as long_table
def long_table(
    runs: Sequence[Run],
    benches: Sequence[Benchmark] = ...,
    reading: _TableReading | None = None,
    progress: _Progress = ...,
) -> _LongTable:
    """Return the comparisons of all runs in one long table, with notes. Columns are added from the benchmarks
    that were scored."""

# from creperie.making.generation import make as make
def make(
    maker: str | Maker | _WriteFoils,
    captions: str | Path | Sequence[str] | Benchmark | Captions,
    out: str | Path | None = None,
    *,
    options: MakerOptions = ...,
    job: _JobOptions = ...,
    engine: _Engine | None = None,
    progress: _Progress | None = ...,
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

# from creperie.world.make import make_world as make_world
def make_world(
    world: World | None = None, progress: _Progress = ..., studio: _RenderOptions | None = None
) -> Benchmark:
    """Return a benchmark of the generated world. Its images are rendered when they are read or when the
    benchmark is saved."""

# from creperie.reporting.continuous import markdown_summary as markdown_summary
def markdown_summary(audit: _Document, result: _BaselineResult | None = None) -> str:
    """Return a summary for a pull request: the verdict, the leaks, and what was not run."""

# from creperie.annotation.database import open_database as open_database
def open_database(place: str | Path = ...) -> _Database:
    """Open the database at a path or URL, bring its tables up to date, and return it."""

# from creperie.metrics.tasks import outcomes as outcomes
def outcomes(which: _Task | str, layout: _Layout, scores: np.ndarray, swap: np.ndarray | None = None) -> np.ndarray:
    """Return the outcome of each item as int8: HIT, MISS, TIE, or VOID if the task has nothing to compare in the
    item. `scores` is the flat array of the scores that the task needs."""

# from creperie.statistics.contamination import overlap as overlap
def overlap(
    bench: Benchmark | str | Path,
    corpus: Benchmark | str | Path,
    *,
    options: _OverlapOptions = ...,
    progress: _Progress = ...,
    near: float = 0.7,
) -> Overlap:
    """Return the captions of a benchmark that occur in a corpus, and the number of items with such captions."""

# from creperie.statistics.planning import power as power
def power(
    claim: str,
    runs: Sequence[Run] = ...,
    *,
    options: _PowerOptions = ...,
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
    """Return how often simulated studies support the claim, and how many items they need to reach the target
    power."""

# from creperie.reporting.tables.published import published_table as published_table
def published_table(key: str) -> _PublishedTable:
    """Return the table named `paper/number`."""

# from creperie.scoring.standings import rank_runs as rank_runs
def rank_runs(
    runs: Sequence[Run],
    *,
    names: Mapping[str, str] | None = None,
    tasks: Iterable[str] = ...,
    settings: _MetricSettings | None = None,
) -> _Standings:
    """Return the standings of the runs' models."""

# from creperie.refining.refinement import refine as refine
def refine(
    bench: _BenchmarkSpec,
    *,
    plan: _RefinePlan = ...,
    models: AttackerModels = ...,
    engine: _Engine | None = None,
    progress: _Progress | None = ...,
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
    """Refine a benchmark and audit the result. `bench` is a benchmark, a spec or a path. As in the papers,
    subsets are refined separately, unless the option `together` is set."""

# from creperie.core.plugins import register_model as register_model
def register_model(plugin: Any = None, name: str = "") -> Any:
    """Register a kind of model URI. `plugin` is a function of (uri, options, place). It returns a model in any
    form that `score` accepts. `register_model` can also be used as a decorator."""

# from creperie.reporting.page import report as report
def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    out: str | Path | None = None,
    *,
    benches: Sequence[str] = ...,
    images: str | Path | None = None,
    audits: Sequence[Path] | None = None,
    title: str = "",
    progress: _Progress = ...,
) -> _ReportPage:
    """Return a self-contained HTML page about runs: results, figures, comparisons, an audit, and every item. It
    can be opened from disk."""

# from creperie.statistics.rankings import robustness as robustness
def robustness(
    runs: Sequence[Run | str | Path],
    *,
    options: _RobustOptions = ...,
    settings: _MetricSettings = ...,
    margin: float = 0.02,
    wrong: str | Path = "",
    blind: str | Sequence[str] = ...,
    ties: Literal["wrong", "half", "right"] = "wrong",
) -> Robustness:
    """Return how the ranking of runs on one benchmark changes with the choices of the analysis."""

# from creperie.bench.storage import save as save
def save(
    bench: Any, folder: str | Path, *, copy_images: bool = False, force: bool = False, progress: _Progress = ...
) -> Benchmark:
    """Write a benchmark into a folder, and return the benchmark as loaded from there. `bench` may also be a
    result that holds a benchmark, such as `Refined`."""

# from creperie.reporting.figures.style import save_figure as save_figure
def save_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure to a file, in the format of the file's suffix, and return the path. The file appears only
    when it is complete."""

# from creperie.scoring.matrix import score as score
def score(
    bench: _BenchmarkSpec,
    model: Any,
    *,
    options: _ScoreOptions = ...,
    tasks: str | _Judge | Sequence[str | _Judge] = ...,
    cache: bool | str | None = None,
    out: str | Path | None = None,
    progress: _Progress | None = ...,
    device: str | Path = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
) -> Run:
    """Score one model on one benchmark and return the run. With `out`, the run is also saved in that folder."""

# from creperie.annotation.study import store_study as store_study
def store_study(
    db: _Database,
    name: str,
    bench: Benchmark,
    plan: StudyPlan,
    *,
    other: Benchmark | None = None,
    spec: str = "",
    actor: str = "cli",
    pictures: bool = True,
) -> _StudyRow:
    """Create a study in the database: its questions, in random but balanced order, and one slot per requested
    answer."""

# from creperie.reporting.notebook import table as table
def table(
    *runs: Run | str | Path | Sequence[Run | str | Path],
    rows: str | Iterable[str] = "model",
    columns: str | Iterable[str] = "subset",
    task: str = "",
    intervals: bool = True,
    digits: int = 1,
) -> _NotebookTable:
    """Return a table of runs, which are given as Run objects or folders."""

# from creperie.statistics.declare import terms as terms
def terms(text: str | Sequence[str]) -> tuple[str, ...]:
    """Return the terms of a formula such as `a * b`. `*` is expanded, and main effects come before interactions."""

# from creperie.training.fit import train as train
def train(
    data: _BenchmarkSpec,
    model: str | _TowersConfig | _SmallConfig | None,
    out: str | Path,
    *,
    options: _TrainOptions = ...,
    settings: _TrainingSettings = ...,
    towers: _TowerOptions = ...,
    engine: _Engine | None = None,
    progress: _Progress | None = ...,
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

# from creperie.world.make import training_pairs as training_pairs
def training_pairs(
    n: int, seed: int = 0, split: str = "train", *, size: int = 64, kinds: Sequence[str] = ...
) -> Iterator[_WorldExample]:
    """Yield `n` training examples; the same arguments always give the same ones. Twins (the caption of one is
    the foil of the other) follow each other, so that most batches contain both."""

# from creperie.lang.logic import truth as truth
def truth(
    caption: str, candidate: str, others: Sequence[str] = ..., doc: Any = None, candidate_doc: Any = None
) -> _Truth:
    """Return whether the candidate is true whenever the caption is, as a verdict with a reason. `others` are
    true captions of the same image. `doc` and `candidate_doc` are parses or readings of the caption and
    the candidate, if they are already known."""

# from creperie.training.tuning_study import tune as tune
def tune(
    bench: Benchmark,
    model: str,
    out: str | Path,
    *,
    options: _TuneOptions = ...,
    settings: _TrainingSettings = ...,
    progress: _Progress = ...,
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
    """Tune a model by several methods on the same examples and test each result on the same items. Return the
    comparison."""

# from creperie.models.wrapping import wrap as wrap
def wrap(
    model: Any,
    *,
    processor: Any = None,
    preprocess: Any = None,
    tokenizer: Any = None,
    name: str = "",
    options: Mapping[str, str] | None = None,
) -> _WrappedModel:
    """Wrap a model in memory so that it can be scored."""

# from creperie.bench.formats.registry import write_format as write_format
def write_format(format: Format, bench: Benchmark, target: str | Path, *, force: bool = False) -> list[Path]:
    """Write a benchmark in a published format, atomically, and return the paths of the files."""
