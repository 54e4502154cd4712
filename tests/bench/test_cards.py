"""The papers beside a saved benchmark, read by the tools they are for."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from foils import foil_items
from PIL import Image

from creperie.bench import (
    PAIRED,
    Benchmark,
    Info,
    Item,
    ProvenanceStep,
    SkippedRecord,
    choice,
    from_items,
    load_folder,
    open_store,
    save,
)
from creperie.bench.cards import licence_id, size_category

SCRIPT = "lm:pkg:creperie.testing.scripted_writer"
INFO = Info(
    "Mine: a benchmark | with odd: signs", "What it is.\nAnd more.", "CC BY 4.0", "https://example.org/mine, 2024", "Me"
)


def bench(info: Info = INFO) -> Benchmark:
    rows = [
        Item(
            "1", "swap", ("a.jpg#xywh=1,2,3,4",), ("a dog ", "ein Hund", "a cat ☃"), choice(2, 1), {"n": 1, "ok": True}
        ),
        Item("2", "swap", (), ("x", "y"), choice(1, 1), {"odd name": "ü", "odd-name": "o"}),
        Item("1", "pairs | two", ("a.jpg", "b.jpg"), ("left", "right"), PAIRED, {"n": 2.5}),
        Item("4", "pairs | two", ("a.jpg",), ("", "\n"), choice(1, 1)),
    ]
    steps = (
        ProvenanceStep("read", {"format": "x", "sha256": {"a.json": "ab" * 32}}),
        ProvenanceStep("sample", {"n": 3, "seed": 0}, ("cd" * 32,)),
    )
    return from_items(
        "mine++", rows, info=info, provenance=steps, skipped=(SkippedRecord("swap", "9", "both are empty"),) * 2
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(bench(), tmp_path / "mine")
    return tmp_path / "mine"


def head(folder: Path) -> dict[str, Any]:
    parsed = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert isinstance(parsed, dict)
    return parsed


def test_the_head_of_the_readme(folder: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.DatasetCard.load(folder / "README.md").data.to_dict()
    assert (card["license"], card["pretty_name"]) == ("cc-by-4.0", INFO.title)
    assert card["size_categories"] == ["n<1K"]
    assert card["task_categories"] == ["zero-shot-image-classification", "sentence-similarity"]
    assert card["configs"][0]["data_files"] == [{"split": "test", "path": "data/test-*.parquet"}]


def test_the_text_says_what_is_there(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for part in [
        "4 items in 2 subsets",
        "| pairs \\| two | 2 |",
        "match `[[1,0],[0,1]]`",
        INFO.source,
        "sample (n=3, seed=0)",
    ]:
        assert part in text
    assert load_folder(folder).hash in text


def test_the_datasheet_answers_what_is_known_and_asks_the_rest(folder: Path) -> None:
    text = (folder / "DATASHEET.md").read_text(encoding="utf-8")
    sections = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert sections == [
        "Motivation",
        "Composition",
        "Collection",
        "Preprocessing",
        "Uses",
        "Distribution",
        "Maintenance",
    ]
    for part in [
        "And more.",
        "2 records: both are empty",
        "- read (format=x, sha256=abababababab of a.json)",
        "CC BY 4.0",
        "`odd name`: text",
        "byte for byte, blanks at their ends included; what was made or corrected stands above.",  # it was "Yes: …"
    ]:
        assert part in text
    assert "to be answered by the authors" in text


def test_the_datasheet_answers_from_provenance(tmp_path: Path) -> None:
    """Which model wrote, by which instructions, how many people judged, how far they agreed, what was left out."""
    settings = {"model": "lm:writer", "prompts": "ab12", "seed": 0, "others": "/home/me/captions.txt"}
    made = {"maker": "llm:add-object", "settings": settings, "made": 12, "rejected": 3, "reasons": {"too long": 3}}
    made["skipped"] = {"no object": 5, "nothing new": 1}
    checked = {"removed": 2, "confirmed": 5}
    people = {"task": "foil-check", "annotators": ["a", "b", "c"], "answers": 30, "alpha": 0.714}
    steps = (
        ProvenanceStep("read", {"format": "coco-captions", "sha256": {"captions.json": "ff"}}),
        ProvenanceStep("read", {"format": "vsr", "sha256": {"places.jsonl": "ee"}, "note": "never drawn"}),
        ProvenanceStep("make", made),
        ProvenanceStep("make", {"maker": "llm:x", "made": 1, "settings": {"model": SCRIPT}}),
        ProvenanceStep("make", {"maker": "content", "made": 3, "taken": 2}),  # "3 captions made", it said
        ProvenanceStep("validate", {"removed": 2, "model": "lm:judge"}),
        ProvenanceStep("annotate", {**people, "fates": {"confirmed": 9, "removed": 1}}),
        ProvenanceStep("refine", {"method": "grid", "attackers": ["lm-mean"], "removed": {"cell": 4}}),
        ProvenanceStep(
            "annotate",
            {**people, "task": "triplet-check", "annotators": ["a"], "scripted": True, "fates": checked},
        ),
        ProvenanceStep("annotate", {**people, "task": "p", "fates": {"removed (undecided)": 2}}),
        ProvenanceStep("filter", {"condition": "mask of 60", "why": "annotate", "leaves": "58 of 60"}),  # said above
        ProvenanceStep("true-foils", {"removed": 19, "changed": 1}),
        ProvenanceStep("filter", {"condition": "mask of 352", "why": "limit 4 a subset, seed 0"}),  # none left out
        ProvenanceStep("filter", {"condition": "mask of 9", "why": "validate", "leaves": "7 of 9"}),  # said above
    )
    save(replace(bench(Info()), provenance=(), skipped=()), tmp_path / "none")
    judged = [replace(i, tags={"people.foil-check": "confirmed"} if i.id == "1" else {}) for i in bench()]
    more = foil_items([("a", "b")] * 9, subset="more")
    whole = from_items("judged", [*judged, *more], provenance=steps)
    drawn = whole.filter([i < 12 for i in range(13)], why="4 demonstrations per subset").head(7)
    save(drawn.only("swap", "pairs | two"), tmp_path / "all")
    told = [
        "- files in the format `coco-captions`: captions.json\n",
        "- files in the format `vsr`: places.jsonl (never drawn)",
        "- captions of captions.txt, unchanged, as other captions of maker `llm:add-object`",
        "- by the language model `lm:writer`, with the instructions of maker `llm:add-object`, which "
        "`creperie make llm:add-object --show` prints (hash ab12) (seed 0, others captions.txt): "
        "12 captions made, 3 rejected",
        f"- by the script `{SCRIPT}`, with the instructions of maker `llm:x`: 1 caption made",
        "- by rules, with the instructions of maker `content`: 1 caption made, 2 taken from other captions, 0 rejected",
        "- the validator model `lm:judge` left out 2 items",
        "- 3 people in the task `foil-check`: 30 answers, Krippendorff's alpha 0.71, about 10 items as they were then "
        "(9 confirmed, 1 removed); of the 4 items here they judged 2",  # of 535 items, none of which were left, it said
        "- 1 scripted annotator, not people, in the task `triplet-check`: 30 answers, Krippendorff's alpha 0.71, about "
        "7 items as they were then (2 removed, 5 passed)",  # scripts confirm nothing
        "- 3 candidates of `llm:add-object`: too long",
        "- 5 captions of `llm:add-object`: no object",
        "- 1 caption of `llm:add-object`: nothing new",
        "- 1 item by people, in the task `foil-check`",
        "- 2 items by scripts, not people, in the task `triplet-check`",
        "- 2 items by people, in the task `p` (undecided)\n",  # all but 58 of 60 items: annotate, it said
        "- 19 items left out: foils were true of the drawn picture",
        "- 1 item without some foils: foils were true of the drawn picture",
        "- all but 12 of 13 items: 4 demonstrations per subset",  # nothing that creperie knows of, it said
        "- all but 11 of 12 items: head\n",
        "- all but 4 of 11 items: only swap, pairs | two",
        "- 4 items, by refinement against blind attackers (lm-mean): method `grid`, reason `cell`",
    ]
    sheet = (tmp_path / "all" / "DATASHEET.md").read_text(encoding="utf-8")
    assert [line for line in told if line not in sheet] == []
    assert "7 of 9 items" not in sheet
    assert "58 of 60 items" not in sheet
    assert "all but a part" not in sheet  # of 352 items, it said
    assert "Nothing that creperie knows of." in (tmp_path / "none" / "DATASHEET.md").read_text(encoding="utf-8")


def test_cards_say_for_what_and_whence_and_which_pictures_there_never_were(tmp_path: Path) -> None:
    """Sets to train on said that they measure; pictures were 'made by creperie'; pictures never drawn, to pass."""
    places = {"train": "lessons", "test": "exam"}
    for split, place in places.items():
        drawn = ProvenanceStep("world", {"split": split, "seed": 7})
        save(replace(bench(Info(source="by creperie")), provenance=(drawn,)), tmp_path / place)
    read, text = ProvenanceStep("read", {"format": "vsr", "note": "never drawn"}), "DATASHEET.md"
    refined = ProvenanceStep("refine", {"method": "grid", "attackers": ["lm-mean"]})
    items = [Item("1", "x", ("a.png",), ("a", "b"), ((True, False),))]
    save(from_items("part", items, provenance=(read, refined)), tmp_path / "part")
    sheets = {place: (tmp_path / place / text).read_text(encoding="utf-8") for place in (*places.values(), "part")}
    assert "\n\nTo train models: " in sheets["lessons"]
    assert "\n\nTo test a model that was trained on it." in sheets["lessons"]
    assert "\n\nTo measure whether" in sheets["exam"]
    assert "built-in world (split test, seed 7)" in sheets["exam"]
    assert "Not audited yet as it is here; it was refined against lm-mean, whose" in sheets["part"]
    readme = (tmp_path / "part" / "README.md").read_text(encoding="utf-8")
    assert "`--images DIR`.\nThey are those of files in the format `vsr`: never drawn.\n" in readme


@pytest.mark.parametrize(
    ("licence", "short"),
    [
        ("MIT", "mit"),
        ("Apache-2.0", "apache-2.0"),
        ("CC-BY-NC-SA 4.0", "cc-by-nc-sa-4.0"),
        ("my own", "other"),
        ("", "unknown"),
    ],
)
def test_licences(licence: str, short: str, tmp_path: Path) -> None:
    assert licence_id(licence) == short
    save(bench(Info(licence=licence)), tmp_path / "b")
    assert head(tmp_path / "b")["license"] == short
    assert head(tmp_path / "b").get("license_name") == ("my own" if short == "other" else None)


@pytest.mark.parametrize(
    ("n", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**6, "1M<n<10M"), (10**9, "n>10M")]
)
def test_sizes(n: int, name: str) -> None:
    assert size_category(n) == name


# -- the tools -------------------------------------------------------------------------------------------------------


def rows_of(made: Benchmark) -> list[dict[str, Any]]:
    return made.table.to_pylist()  # type: ignore[no-any-return]


def test_datasets_loads_the_same_rows(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["test"]
    assert loaded["test"].to_list() == rows_of(bench())


def test_datasets_loads_the_items_also_beside_copied_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    save(bench(), tmp_path / "b")
    (tmp_path / "b" / "images").mkdir()
    (tmp_path / "b" / "images" / "a.jpg").write_bytes(b"x")
    loaded = datasets.load_dataset(str(tmp_path / "b"), split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded.num_rows == 4


@pytest.mark.parametrize("missing", [False, True])
def test_copied_images_are_pictures_for_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    """Items of two images, of one, of a part of one, and of none; all paths stay text where an image is missing."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    (tmp_path / "from" / "val").mkdir(parents=True)
    for name, width in (("a.png", 4), ("val/b.jpg", 6)):
        Image.new("RGB", (width, 5)).save(tmp_path / "from" / name)
    pictured = [("a.png", "val/b.jpg"), ("val/b.jpg",), ("a.png#xywh=0,0,2,3",), ("gone.png",) if missing else ()]
    items = [
        Item(str(n), "s", images, ("yes", "no"), ((True, False),) * max(1, len(images)))
        for n, images in enumerate(pictured)
    ]
    made = from_items("mine", items, images=open_store(tmp_path / "from"))
    saved = save(made, tmp_path / "b", copy_images=True)
    assert saved.hash == made.hash
    read = datasets.load_dataset(str(tmp_path / "b"), split="test", cache_dir=str(tmp_path / "cache"))
    if missing:
        assert [tuple(row["images"]) for row in read] == pictured
        return
    assert isinstance(read.features["images"].feature, datasets.Image)
    assert [[picture.size for picture in row["images"]] for row in read] == [[(4, 5), (6, 5)], [(6, 5)], [(4, 5)], []]
    assert [tuple(row["references"]) for row in read] == pictured
    assert read.remove_columns(["images", "references"]).to_list() == [
        {k: v for k, v in row.items() if k != "images"} for row in rows_of(made)
    ]


def as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return [as_text(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("info", [INFO, Info()], ids=["full", "bare"])
def test_croissant_is_valid_and_its_records_can_be_read(
    info: Info, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    save(bench(info), tmp_path / "b")
    with caplog.at_level(logging.WARNING):
        dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "b" / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors
    assert not issues.warnings
    document = json.loads((tmp_path / "b" / "croissant.json").read_text(encoding="utf-8"))
    names = {field["@id"]: field["name"] for field in document["recordSet"][0]["field"]}
    assert [names[key["@id"]] for key in document["recordSet"][0]["key"]] == ["subset", "id"]
    records = [{names[k]: as_text(v) for k, v in record.items()} for record in dataset.records("items")]
    assert records == rows_of(bench())


def test_croissant_names_the_file_by_its_digest(folder: Path) -> None:
    import hashlib

    (entry,) = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))["distribution"]
    assert hashlib.sha256((folder / entry["contentUrl"]).read_bytes()).hexdigest() == entry["sha256"]


def test_the_day_can_be_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    for name in ("one", "two"):
        save(bench(), tmp_path / name)
    files = [p.relative_to(tmp_path / "one") for p in sorted((tmp_path / "one").rglob("*")) if p.is_file()]
    assert len(files) == 5
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "two" / f).read_bytes() for f in files)
    assert '"1970-01-02"' in (tmp_path / "one" / "croissant.json").read_text()


def test_one_caption_leaves_nothing_to_choose(tmp_path: Path) -> None:
    """True and false captions alone, as in VSR: guessing was said to be right on 100 %."""
    save(from_items("vsr", [Item(str(i), "s", ("a.jpg",), ("x",), ((i > 0,),)) for i in range(2)]), tmp_path / "one")
    assert "| s | 2 | nothing to choose |" in (tmp_path / "one" / "README.md").read_text(encoding="utf-8")


def test_an_empty_benchmark_has_cards_too(tmp_path: Path) -> None:
    save(from_items("none", []), tmp_path / "b")
    assert "0 items in 0 subsets" in (tmp_path / "b" / "README.md").read_text()
    assert len(load_folder(tmp_path / "b")) == 0
