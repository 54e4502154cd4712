"""Runs grouped by the items on which they were computed. Each group has the captions and images of its items, if these
can be found.

A run holds scores, references to images, and which captions are true of which images, but not the captions themselves.
Its benchmark is therefore searched for in the places that the user names, beside the images, under its name, and at the
path in the run's command. The benchmark that is found is used only if the run was computed on its present content.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from creperie.bench import NO_IMAGES, Benchmark, as_benchmark, load, open_store
from creperie.core import CreperieError, Document, UsageError, called, counted, percent, read_json
from creperie.metrics import task
from creperie.reporting.thumbnails import PictureRoots
from creperie.scoring import RUN_FILE, Run, RunHeader, load_run, people_note, unblinded, unchecked_notes
from creperie.statistics import bench_of

HUMAN = "human:"  #: the kind of the model URI of annotators
NOT_FOUND = "the benchmark was not found, so captions and images are not shown: name the benchmark to see them"


@dataclass(frozen=True)
class RunGroup:
    """Runs on the same items. `bench` is the benchmark with these items in the same order, or None if it was not
    found.
    """

    name: str
    runs: tuple[Run, ...]
    labels: tuple[str, ...]  #: a short name for each run
    bench: Benchmark | None
    notes: tuple[str, ...] = ()
    twins: tuple[Run, ...] = ()  #: the group's blind twins, see `apart`
    hidden: str = ""  #: why the images are not shown
    place: str = ""  #: the benchmark's folder as commands name it; empty if it is not known

    def __len__(self) -> int:
        return len(self.runs[0])

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(name for run in self.runs for name in run.tasks))

    @property
    def title(self) -> str:
        """The benchmark's name on pages: its folder, followed by its own name in brackets if the two differ."""
        return called(self.place, self.name)

    @property
    def short(self) -> str:
        """The title, cut after forty characters, for figures."""
        return self.title if len(self.title) <= 40 else f"{self.title[:39]}…"

    @property
    def labelled(self) -> list[tuple[Run, str]]:
        """The runs with their labels."""
        return list(zip(self.runs, self.labels, strict=True))

    def apart(self) -> RunGroup:
        """Return the group with all blind twins moved from `runs` to `twins`. A blind twin is a run on the same items,
        but with other images, such as noise.
        """
        kept = tuple(unblinded(self.runs))
        if len(kept) == len(self.runs):
            return self
        return replace(self, runs=kept, labels=short_labels(kept), twins=tuple(r for r in self.runs if r.blinded))


def value_and_interval(result: Document) -> tuple[float, float, float]:
    """Return the accuracy of a stored result, followed by the ends of its interval. Missing values are NaN."""
    value, low, high = (math.nan if result[k] is None else float(result[k]) for k in ("accuracy", "low", "high"))
    return value, low, high


def covered(n: int, void: int) -> str:
    """Return as text how many items a result covers. `n` is the number of items that are covered, and `void` the number
    that are not. If `void` is not 0, "of" and the total follow.

    >>> covered(9, 91), covered(1200, 0)
    ('9 of 100', '1,200')
    """
    return f"{n:,} of {n + void:,}" if void else f"{n:,}"


def gather_runs(
    runs: Sequence[Run | str | Path],
    *,
    benches: Sequence[str | Path | Benchmark] = (),
    images: str | Path | None = None,
    roots: PictureRoots | None = None,
) -> list[RunGroup]:
    """Return the runs in groups. The runs of a group were computed on the same benchmark content. A group has its
    benchmark if it is found in `benches`, in a run that holds it in memory, or at a place that a run names.

    Images are read from the folder `images`. Without it, they are read from the folder that the benchmark names, but
    only if this folder is in `roots`. By default, `roots` are the benchmark's own folder and the working directory.
    """
    loaded = [r if isinstance(r, Run) else load_run(r) for r in runs]
    if not loaded:
        raise UsageError("no runs to report on were found", hint="give one or more folders that `score` wrote")
    given = [as_benchmark(b) for b in benches]
    by_content: dict[str, list[Run]] = {}
    for run in loaded:
        by_content.setdefault(run.hash, []).append(run)
    roots = roots or PictureRoots.of([], [Path()])
    groups = [_group(mine, given, images, roots) for mine in by_content.values()]
    for bench in given:
        if not any(group.runs[0].fits(bench) for group in groups):
            raise UsageError(
                "none of the runs was computed on this benchmark", where=bench.name, hint="give the scored version"
            )
    return groups


def runs_in(places: Iterable[str | Path]) -> list[Path]:
    """Return the folders of runs. A folder that is not itself a run is replaced by the runs in it."""
    folders: list[Path] = []
    for place in map(Path, places):
        inside = sorted(p.parent for p in place.glob(f"*/{RUN_FILE}")) if place.is_dir() else []
        folders += inside if inside and not (place / RUN_FILE).is_file() else [place]
    return list(dict.fromkeys(folders))


def _group(runs: Sequence[Run], given: Sequence[Benchmark], images: str | Path | None, roots: PictureRoots) -> RunGroup:
    first = unblinded(runs)[0]
    in_hand = (run.bench for run in runs if run.bench is not None)
    bench = next((b for b in (*given, *in_hand) if first.fits(b)), None) or _find_bench(first)
    note, hidden, place = NOT_FOUND, "", ""
    if bench is not None:
        own = first.document["benchmark"].get("images") if bench.images is NO_IMAGES else None
        store = images or (own if own and Path(own).exists() else None)
        bench = replace(bench, images=open_store(store)) if store else bench
        note = hidden = "" if images else roots.hidden(bench)
        bench = bench_of(first, [replace(bench, images=NO_IMAGES) if hidden else bench])
        place = _folder(first)
    notes = (*filter(None, [note]), *unchecked_notes(runs))
    return RunGroup(first.benchmark, tuple(runs), short_labels(runs), bench, notes, hidden=hidden, place=place)


# -- the benchmark of a run ------------------------------------------------------------------------------------------


def _find_bench(run: Run) -> Benchmark | None:
    for place in _places(run):
        try:
            bench = load(place)
        except (CreperieError, OSError):
            continue  # not the user's mistake: this place was a guess
        if run.fits(bench):
            return bench
    return None


def _places(run: Run) -> Iterator[str]:
    about = run.document["benchmark"]
    pictures = about.get("images")
    if pictures:
        yield str(Path(pictures).parent)
        yield str(pictures)
    yield str(about["name"])
    words = shlex.split(str(run.document.get("command", "")))
    yield from (w for w in words[2:] if not w.startswith("-"))


def _folder(run: Run) -> str:
    """Return the path of the folder with a run's benchmark. The run names the folders where the benchmark may be; if
    none of them still holds the items that were scored, the path is empty.
    """
    # Relative paths are preferred, because absolute ones are valid on one machine only.
    for place in sorted(_places(run), key=os.path.isabs):
        manifest = Path(place) / "creperie.json"
        with suppress(CreperieError, OSError):
            if manifest.is_file() and read_json(manifest).get("hash") == run.hash:
                return place
    return ""


# -- names -----------------------------------------------------------------------------------------------------------


def short_labels(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return, for each run, the shortest form of its model's name that no other run has."""
    names = [[model_tail(r.model), r.model, r.name, f"{r.name} ({i + 1})"] for i, r in enumerate(runs)]
    return tuple(with_people(name, r.document) for name, r in zip(distinct(names), runs, strict=True))


def with_people(name: str, document: Document) -> str:
    """Return the name of a run's model. If the answers are people's, a note is added."""
    note = people_note(document)
    return f"{name} ({note})" if note else name


def distinct(choices: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return one name from each list, all different if possible. The first name of a list is used or, if another list
    gives that name too, a later one.

    >>> distinct([["clip", "hf:a/clip"], ["clip", "hf:b/clip"], ["length", "blind:length"]])
    ('hf:a/clip', 'hf:b/clip', 'length')
    """
    level = [0] * len(choices)
    while True:
        names = [options[i] for options, i in zip(choices, level)]
        double = [k for k, name in enumerate(names) if names.count(name) > 1 and level[k] + 1 < len(choices[k])]
        if not double:
            return tuple(names)
        for k in double:
            level[k] += 1


def model_tail(uri: str) -> str:
    """Return the last part of a model's URI, with its options. For a folder called `model`, return the name of the
    recipe stage that trained the model.

    >>> model_tail("vlm:llava-hf/llava-1.5-7b-hf?score=vqa"), model_tail("small:out/08-student/model")
    ('llava-1.5-7b-hf?score=vqa', 'student')
    """
    name, mark, options = uri.partition("?")
    name = re.sub(r"/(?:\d+-)?([^/]+)/model/?$", r"/\1", name)
    short = name.rstrip("/").rpartition("/")[2] or name
    return (short.rpartition(":")[2] or short) + mark + options


def beats_chance(result: Document) -> bool:
    """Return True if the interval of a run's result lies above chance. Also return True if chance or the interval is
    not known.
    """
    return None in (result["chance"], result["low"]) or result["low"] > result["chance"]


def tasks_by_coverage(runs: Iterable[RunHeader]) -> list[str]:
    """Return the tasks of runs, sorted by the number of items that all runs together answered, most first. Tasks that
    need only single captions come last.
    """
    answered = Counter[str]()
    for run in runs:
        for result in run.document["results"]:
            answered[result["task"]] += result["n"] if result["subset"] == "all" else 0
    return sorted(answered, key=lambda name: (task(name).needs == "text", -answered[name]))


def best_result(labelled: Iterable[tuple[RunHeader, str]]) -> dict[str, str]:
    """Return a dictionary with the label, accuracy and description of the best model on the first task of
    `tasks_by_coverage`. The dictionary is empty if no model has a result. If another model would be at least as good if
    its ties counted as right, the description says so.
    """
    models = [(run, label) for run, label in labelled if not run.model.startswith(HUMAN)]
    found = [
        (result, label, run.document["ties"])
        for run, label in models
        for result in run.document["results"]
        if result["subset"] == "all" and result["accuracy"] is not None and task(result["task"]).by_item
    ]
    if not found:
        return {}
    scored = {result["task"] for result, *_ in found}
    name = next(name for name in tasks_by_coverage(run for run, _ in models) if name in scored)
    found = [one for one in found if one[0]["task"] == name]
    top, label, _ = max(found, key=lambda one: float(one[0]["accuracy"]))
    beats = beats_chance(top)
    chance = f"{'' if beats else 'not better than '}chance {percent(top['chance'])}"
    about = f"task {name}: {task(name).what} ({chance}, n {covered(top['n'], top['void'])})"
    rivals = [
        (r["ties"], who)
        for r, who, rule in found
        if rule == "wrong" and r["accuracy"] < top["accuracy"] <= r["accuracy"] + r["ties"] / r["n"]
    ]
    for ties, who in sorted(rivals)[-1:]:
        about += f"; {counted(ties, 'tie')} of {who} count as wrong"
    best = " is best" if len(found) > 1 and beats else ""
    return {"label": label, "value": f"{percent(top['accuracy'])} %{best}", "about": about}
