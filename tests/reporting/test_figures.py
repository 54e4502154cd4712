"""Figures: what is drawn is what the numbers say, in one style, in every format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.text import Text

from creperie.bench import load, save
from creperie.cli.table import figure
from creperie.core import CreperieError, UsageError
from creperie.metrics import pearson, rank_table
from creperie.reporting import DRAWINGS, FigureOptions, Levels, Series, accuracy_by_subset, draw_figure
from creperie.reporting.figures import style
from creperie.reporting.figures.bars import counts, drops, grouped_bars
from creperie.reporting.figures.gaps import (
    Box,
    bias_distributions,
    boxes_by_model,
    boxes_by_subset,
    gap_histograms,
    gap_plane,
    margin_histograms,
)
from creperie.reporting.figures.ranks import confusion, confusion_squares, rank_changes, scatter
from creperie.scoring import load_run

SERIES = [
    Series("clip", {"swap": (0.6, 0.5, 0.7), "add": (0.9, 0.8, 0.95)}),
    Series("blip", {"swap": (0.4, math.nan, math.nan)}),
]
LEVELS = Levels({"swap": 0.5, "add": 0.5}, {"swap": 0.97})
BOX = Box((0.0, 0.2, 0.4, 0.6, 1.0), 0.45)
RNG = np.random.default_rng(0)

FIGURES: dict[str, Callable[[], Any]] = {
    "accuracy": lambda: accuracy_by_subset(SERIES, LEVELS, title="itt"),
    "gaps": lambda: gap_histograms({"length": {"before": RNG.normal(size=90), "after": RNG.normal(size=40)}}),
    "margins": lambda: margin_histograms({"clip": np.array([0.2, -0.1, 0.0, math.nan])}),
    "plane": lambda: gap_plane(RNG.uniform(-1, 1, 50), RNG.uniform(-1, 1, 50), RNG.random(50) > 0.5),
    "bias": lambda: bias_distributions({"aro": np.array([0.1, -0.5, 1.0]), "none": np.zeros(0)}),
    "boxes": lambda: boxes_by_subset({"swap": {"P1-P2": BOX, "P1-N": BOX}, "add": {"P1-N": BOX}}, label="SLS"),
    "shuffles": lambda: boxes_by_model({"clip": {"caption": BOX, "shuffled": BOX}}),
    "cases": lambda: grouped_bars(SERIES, chance={"swap": 0.5}),
    "noise": lambda: drops([("swap", 0.8, 0.5), ("add", 0.6, 0.7)], chance=0.5),
    "words": lambda: counts({"true": {"dog": 3.0}, "false": {"dog": 1.0, "no": 2.0}}, label="captions"),
    "ranks": lambda: rank_changes(
        ["SC", "SC++"], rank_table({"SC": {"x": 0.9, "y": 0.8}, "SC++": {"x": 0.4, "y": 0.6}})
    ),
    "scatter": lambda: scatter({"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 5.0}, pearson([1, 2], [3, 5])),
    "confusion": lambda: confusion_squares(
        confusion(np.array([1, 0]), np.array([0, 0]), ("itt", "tot")), {(True, False): ["a $5 dog"]}
    ),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.slow
def test_every_figure_is_the_same_file_twice_and_fits_into_a_page(name: str, tmp_path: Path) -> None:
    global RNG
    RNG = np.random.default_rng(0)
    first = style.save_figure(FIGURES[name](), tmp_path / "a.svg")
    RNG = np.random.default_rng(0)
    drawn = FIGURES[name]()
    second = style.save_figure(drawn, tmp_path / "b.svg")
    assert first.read_bytes() == second.read_bytes()
    inline = style.inline_svg(drawn, "f1")
    assert inline.startswith("<svg")
    assert style.INK not in inline
    ids = re.findall(r'\bid="([^"]+)"', inline)
    assert ids
    assert all(i.startswith("f1-") for i in ids)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', inline)
    assert set(used) <= set(ids)


def test_formats_by_name(tmp_path: Path) -> None:
    drawn = FIGURES["accuracy"]()
    assert style.save_figure(drawn, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with Image.open(style.save_figure(drawn, tmp_path / "a.png")) as picture:
        assert picture.width > 1000
    with pytest.raises(UsageError, match=r"\.svg, \.pdf or \.png"):
        style.save_figure(drawn, tmp_path / "a.doc")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png"]


def test_marks_and_hatches_tell_apart_without_colour() -> None:
    assert len(set(style.MARKERS)) == len(style.COLOURS)
    assert len(set(style.HATCHES)) == len(style.COLOURS)


def test_points_stand_where_the_numbers_are() -> None:
    axes = accuracy_by_subset(SERIES, LEVELS).axes[0]
    clip = axes.containers[0]
    assert clip[0].get_xdata().tolist() == [0.6, 0.9]
    ends = [segment[:, 0].tolist() for segment in clip[2][0].get_segments()]
    assert np.allclose(ends, [[0.5, 0.7], [0.8, 0.95]])
    assert [t.get_text() for t in axes.get_yticklabels()] == ["swap", "add"]
    chance, people = (line.get_xdata() for line in axes.lines[:2])
    assert list(chance) == [0.5, 0.5]
    assert list(people) == [0.97]


def test_long_names_do_not_leave_the_figure() -> None:
    long = [Series(f"an-organisation/a-very-long-model-name-{k}", {"swap": (0.5, 0.4, 0.6)}) for k in range(6)]
    drawn = accuracy_by_subset(long)
    drawn.canvas.draw()
    assert drawn.legends[0].get_window_extent().x1 <= drawn.bbox.x1


def test_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    drawn = counts({"$\\frac$ true": {"$x": 1.0, "$\\alpha$": 2.0}}, label="captions")
    written = style.save_figure(drawn, tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">$\\alpha$<" in written


def test_ties_are_a_bar_of_their_own() -> None:
    axes = margin_histograms({"clip": np.array([0.2, 0.2, -0.1, 0.0])}).axes[0]
    assert axes.get_title(loc="left") == "clip: 50.0 % above zero, 1 ties (n = 4)"
    heights = [bar.get_height() for bar in axes.patches]
    assert sum(heights) == 4
    assert axes.patches[-1].get_x() < 0 < axes.patches[-1].get_x() + axes.patches[-1].get_width()


def test_a_gap_of_zero_lies_in_the_middle_bin() -> None:
    stairs = gap_histograms({"a": {"before": np.array([0.0, 0.0, -1.0, 1.0])}}).axes[0].patches[0]
    values, edges, _ = stairs.get_data()
    assert values[len(values) // 2] == 0.5
    assert edges[len(values) // 2] < 0 < edges[len(values) // 2 + 1]


def test_confusion_counts_what_both_tasks_cover() -> None:
    first, second = np.array([1, 1, 0, 2, -1, 0]), np.array([1, 0, 1, 0, 1, -1])
    found = confusion(first, second, ("itt", "tot"))
    assert found.counts == {(True, True): 1, (True, False): 1, (False, True): 1, (False, False): 1}
    assert found.first_items == {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
    texts = [t.get_text() for t in confusion_squares(found).axes[0].texts]
    assert texts.count("1  (25.0 %)") == 4


# -- from runs, benchmarks and probes --------------------------------------------------------------------------------


def drawn(*args: str) -> Any:
    done = CliRunner().invoke(figure, [*args, "--json"], standalone_mode=False, catch_exceptions=False)
    return json.loads(done.stdout)


def test_the_list_names_every_figure() -> None:
    assert [f["name"] for f in drawn()["figures"]] == list(DRAWINGS)


def test_figures_of_runs(room: Path, tmp_path: Path) -> None:
    alpha, beta = (str(p) for p in sorted((room / "runs").iterdir()) if "fake" in p.name)
    run = load_run(alpha)
    made = drawn("accuracy", alpha, beta, "--out", str(tmp_path / "accuracy.svg"))
    assert Path(made["file"]).read_text(encoding="utf-8").count(">swap  (n = 24)<") == 1
    axes = draw_figure("accuracy", [alpha, beta], FigureOptions(tasks=("itt",))).axes[0]
    wanted = [r["accuracy"] for r in run.results if r["task"] == "itt" and r["subset"] != "macro"]
    assert np.allclose(axes.containers[0][0].get_xdata(), wanted)
    squares = draw_figure("confusion", [alpha], FigureOptions()).axes[0]
    assert any("chases" in t.get_text() for t in squares.texts)
    with pytest.raises(UsageError, match="no text scores"):
        draw_figure("confusion", [alpha], FigureOptions(tasks=("itt", "blind")))
    ranks = draw_figure("ranks", [alpha, beta], FigureOptions(tasks=("sc", "sc++"))).axes[0]
    assert [t.get_text() for t in ranks.get_xticklabels()] == ["p1-vs-n", "itt"]
    table = tmp_path / "external.csv"
    table.write_text("model,imagenet\nfake:alpha,60\nfake:beta,70\n", encoding="utf-8")
    points = draw_figure(
        "scatter", [alpha, beta], FigureOptions(tasks=("itt",), against=table, column="imagenet")
    ).axes[0]
    assert sorted(float(line.get_xdata()[0]) for line in points.lines[:2]) == [60.0, 70.0]


def test_figures_of_benchmarks(room: Path, tmp_path: Path) -> None:
    save(load(room / "bench").head(5), tmp_path / "part")
    whole, part = str(room / "bench"), str(tmp_path / "part")
    gaps = draw_figure("gaps", [whole, part], FigureOptions(attackers=("length-chars",))).axes[0]
    assert len(gaps.patches) == 2
    save(replace(load(room / "bench"), name="older"), tmp_path / "older")
    three = draw_figure("gaps", [str(tmp_path / "older"), whole], FigureOptions(attackers=("length-chars",)))
    assert [t.get_text() for t in three.legends[0].get_texts()] == ["older", load(whole).name]
    plane = draw_figure("plane", [whole, part], FigureOptions(attackers=("length-chars", "surface"))).axes[0]
    sizes = {c.get_label(): len(c.get_offsets()) for c in plane.collections}
    assert sizes == {"left out": 38 - 14, "kept": 14}
    rows = draw_figure("syntaxbias", [whole], FigureOptions(attackers=("length-chars",))).axes[0]
    labels = [t.get_text() for t in rows.get_yticklabels()]
    assert [label.partition(", n = ")[0] for label in labels] == ["swap", "pairs", "two"]
    assert sum(int(label.partition(", n = ")[2]) for label in labels) == 38
    assert load(whole).name in rows.get_title() + rows.get_title(loc="left")  # panels read as ARO and CREPE
    tags = draw_figure("words", [whole], FigureOptions(tag="animal")).axes[0]
    assert sorted(bar.get_width() for bar in tags.patches) == [8, 16]
    words = draw_figure("words", [whole], FigureOptions(most=3)).axes[0]
    assert len(words.get_yticklabels()) == 3
    pytest.importorskip("rapidfuzz")
    likeness = draw_figure("likeness", [whole], FigureOptions())
    assert "P1-P2" in [t.get_text() for t in likeness.legends[0].get_texts()]
    assert "1 − edit distance" in likeness.axes[0].get_ylabel()  # VISLA's Figure 8 has distances


def test_topics_part_what_is_about_different_things() -> None:
    pytest.importorskip("sklearn")
    from creperie.reporting.figures.of_benches import topics_of

    pets = [f"a {size} dog chases the {colour} cat" for size in ("big", "small") for colour in ("black", "white")]
    food = [
        f"pizza with {size} olives on a {colour} plate" for size in ("big", "small") for colour in ("black", "white")
    ]
    found = topics_of([*pets * 3, *food * 2], topics=2)
    assert sorted(found.values()) == [8, 12]
    assert next(n for name, n in found.items() if "pizza" in name) == 8


@pytest.mark.slow
@pytest.mark.timeout(900)  # UMAP is compiled when it is first used
def test_topics_by_bertopics_steps() -> None:
    pytest.importorskip("umap")
    from creperie.reporting.figures.of_benches import dense_topics

    rng = np.random.default_rng(0)
    captions = [*(f"a dog number {k}" for k in range(40)), *(f"pizza slice {k}" for k in range(25))]
    centres = np.repeat(rng.normal(size=(2, 16)), (40, 25), axis=0)
    found = dense_topics(captions, centres + 0.02 * rng.normal(size=(65, 16)))
    assert [(n, "pizza" in name) for name, n in found.items()] == [(40, False), (25, True)]


def test_words_of_groups_by_hand() -> None:
    pytest.importorskip("sklearn")
    from creperie.reporting.figures.of_benches import class_words

    # words per group 4; "cat" 2/3 · log(1 + 4/2) = 0.73, "mat" 1/3 · log(1 + 4/3) = 0.28; "mat" 2/5 · 0.85 = 0.34
    assert class_words([["cat mat cat"], ["mat mat", "train bus car"]])[0] == ["cat", "mat"]
    assert class_words([["cat mat cat"], ["mat mat", "train bus car"]])[1][0] == "mat"


def test_categories_of_captions_and_stuff() -> None:
    from creperie.core import packaged_toml
    from creperie.reporting.figures.of_benches import named_categories

    known = packaged_toml("creperie.reporting.figures", "coco.toml")
    assert [sum(map(len, known[part].values())) for part in ("things", "stuff")] == [80, 91]
    found = named_categories([["Two hot dogs on a wooden table."], ["The sky above mountains"], ["A hot, tired dog."]])
    assert found == {"animal": 2, "food": 1, "furniture-stuff (stuff)": 1, "sky (stuff)": 1, "solid (stuff)": 1}


def test_categories_come_from_annotations(room: Path, tmp_path: Path) -> None:
    file = tmp_path / "instances_val2017.json"
    document: dict[str, Any] = {
        "categories": [{"id": 1, "supercategory": "animal"}, {"id": 2, "supercategory": "food"}],
        "images": [{"id": 7, "file_name": "0.png"}, {"id": 8, "file_name": "1.png"}],
        "annotations": [{"image_id": 7, "category_id": c} for c in (1, 1, 2)] + [{"image_id": 8, "category_id": 1}],
    }
    sky = document | {"categories": [{"id": n, "supercategory": "sky"} for n in (1, 2)]}
    for name, written in (("instances", document), ("stuff", sky)):
        (tmp_path / f"{name}_val2017.json").write_text(json.dumps(written), encoding="utf-8")
    axes = draw_figure("categories", [str(room / "bench")], FigureOptions(against=file)).axes[0]
    both, one = (
        sum(bool(set(i.images) & names) for i in load(room / "bench")) for names in ({"0.png", "1.png"}, {"0.png"})
    )
    shown = zip((t.get_text() for t in axes.get_yticklabels()), (bar.get_width() for bar in axes.patches), strict=True)
    assert dict(shown) == {"animal": both, "sky": both, "food": one}
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(CreperieError, match="not a COCO annotation file"):
        draw_figure("categories", [str(room / "bench")], FigureOptions(against=file))


def test_figures_of_probes(tmp_path: Path) -> None:
    row = {"model": "hf:a/clip", "subset": "shuffled", "accuracy": 0.9, "low": 0.8, "high": 0.95, "chance": 1 / 3}
    row["n"] = 12  # without it, a change of one item of 12 was a bar of 8.3 points
    spread = {"model": "hf:a/clip", "kind": "caption", "n": 12, "mean": 0.3, "quartiles": [0.1, 0.2, 0.3, 0.4, 0.5]}
    probes = {
        "shuffles": {"probe": "order", "benchmark": "mine", "spreads": [spread, spread | {"kind": "shuffle-trigrams"}]},
        "cases": {
            "probe": "cases",
            "benchmark": "mine",
            "rows": [row, row | {"subset": "fluent", "accuracy": 0.2, "low": None}],
        },
        "noise": {"probe": "images", "benchmark": "mine", "rows": [row | {"noise": row | {"accuracy": 0.4}}]},
    }
    for name, document in probes.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        figure = draw_figure(name, [str(file)])
        texts = [text.get_text() for text in figure.findobj(Text)]
        assert any("n = 12" in text for text in texts)
        assert any(text.startswith("mine: ") for text in texts)
    named = probes["shuffles"] | {"spreads": [spread | {"metric": "BERTScore"}]}
    (tmp_path / "named.json").write_text(json.dumps(named), encoding="utf-8")
    assert draw_figure("shuffles", [str(tmp_path / "named.json")]).axes[0].get_title(loc="left") == "BERTScore\nclip"
    assert [t.get_text() for t in draw_figure("noise", [str(tmp_path / "noise.json")]).axes[0].texts] == ["-50.0"]
    with pytest.raises(CreperieError, match="of the probe 'order'"):
        draw_figure("shuffles", [str(tmp_path / "cases.json")])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["acuracy", "x", "--out", "a.svg"], "did you mean 'accuracy'"),
        (["accuracy", "--out", "a.svg"], "needs RUN"),
        (["accuracy", "x"], "--out"),
        (["plane", "BENCH", "--attackers", "surface", "--out", "a.svg"], "expected two attackers, got 1"),
        (["words", "BENCH", "--tag", "animals", "--out", "a.svg"], "did you mean 'animal'"),
        (["syntaxbias", "BENCH", "--out", "a.svg"], "needs a language model"),
        (["scatter", "RUN", "--out", "a.svg"], "`against="),
        (["ranks", "RUN", "--task", "itt", "--out", "a.svg"], "two tasks"),
    ],
)
def test_mistakes_are_told(args: list[str], said: str, room: Path) -> None:
    places = {"BENCH": str(room / "bench"), "RUN": str(next(p for p in (room / "runs").iterdir() if "alpha" in p.name))}
    with pytest.raises(CreperieError, match=re.escape(said)):
        drawn(*[places.get(a, a) for a in args])
