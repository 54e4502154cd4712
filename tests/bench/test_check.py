"""What `check` finds, on small benchmarks with known defects and on the published ones."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import bomb
from hypothesis import given, settings
from hypothesis import strategies as st
from older import without_checksums
from PIL import Image

from creperie.bench import (
    CODES,
    PAIRED,
    Benchmark,
    Item,
    SkippedRecord,
    check,
    choice,
    from_items,
    load,
    load_folder,
    open_store,
    save,
)
from creperie.bench.checks import Finding
from creperie.bench.images import image_reference


def item(
    id_: str, positives: list[str], negatives: list[str], *, images: tuple[str, ...] = (), subset: str = "s"
) -> Item:
    return Item(id_, subset, images, (*positives, *negatives), choice(len(positives), len(negatives)))


def found(*items: Item, **parts: Any) -> list[tuple[str, str]]:
    """Codes and items of the findings, without those about images."""
    bench = from_items("b", items, **parts)
    return [(f.code, f.item) for f in check(bench, images=False) if f.code != "images-not-checked"]


CLEAN = item("ok", ["a dog"], ["a cat"])


@pytest.mark.parametrize(
    ("bad", "codes"),
    [
        (item("1", ["a"], ["a"]), ["positive-equals-negative"]),
        (item("1", ["a", "b"], ["a"]), ["positive-equals-negative"]),
        (item("1", ["a", "b"], ["b"]), ["positive-equals-negative"]),
        (item("1", ["a", "a"], ["b"]), ["positives-equal"]),
        (item("1", ["a"], ["b", "a"]), ["positive-equals-negative", "true-caption-among-negatives"]),
        (item("1", ["a"], ["b", "b"]), ["duplicate-negatives"]),
        (
            item("1", ["a"], ["b", "b", "a"]),
            ["positive-equals-negative", "true-caption-among-negatives", "duplicate-negatives"],
        ),
        (item("1", ["a"], [""]), ["empty-caption"]),
        (item("1", [" \t\u00a0"], ["b"]), ["empty-caption", "trailing-blank"]),
        (item("1", [], ["b", "c"]), ["no-positives"]),
        (item("1", ["b", "c"], []), ["no-negatives"]),
        (item("1", ["b"], []), ["no-negatives"]),
        (Item("1", "s", ("i", "j"), ("a", "b"), ((True, True), (True, True))), ["match-all-true"]),
        (Item("1", "s", ("i",), (), ((),)), ["no-captions"]),
        (Item("1", "s", ("i", "j"), ("a", "a"), PAIRED), ["positive-equals-negative"]),
        (item("1", ["a\ufffd"], ["b"]), ["odd-characters"]),
        (item("1", ["a\nb"], ["b"]), ["odd-characters"]),
        (item("1", ["a "], ["b"]), ["trailing-blank"]),
        (item("1", ["a\n"], ["b"]), ["trailing-blank"]),
        (item("1", ["A"], ["a"]), ["nearly-equal-captions"]),
        (item("1", ["a dog, here"], ["A dog here."]), ["nearly-equal-captions"]),
        (item("1", ["A", "a"], ["b"]), []),
        (item("1", ["!"], ["?"]), []),
        (item("1", ["a"], ["a "]), ["nearly-equal-captions", "trailing-blank"]),
    ],
)
def test_defects_of_one_item(bad: Item, codes: list[str]) -> None:
    assert sorted(code for code, _ in found(CLEAN, bad)) == sorted(codes)


def test_paraphrases_without_a_foil_are_a_note_and_items_that_no_model_can_get_right_an_error() -> None:
    rows = [item("1", ["a dog runs", "running, a dog"], []), item("2", [], ["a dog", "a cat"])]
    findings = {(f.code, f.severity, f.item) for f in check(from_items("b", [CLEAN, *rows]), images=False)}
    assert findings == {("no-negatives", "info", "1"), ("no-positives", "error", "2")}


def test_a_clean_benchmark_has_no_findings() -> None:
    assert found(CLEAN, item("2", ["a red dog", "a dog that is red"], ["a blue dog"], images=("x",))) == []
    assert check(from_items("none", [])) == []


def test_findings_name_item_and_text() -> None:
    (finding,) = check(from_items("b", [CLEAN, item("7", ["a fox"], ["a fox"], subset="swap")]))
    assert (finding.code, finding.severity, finding.subset, finding.item) == (
        "positive-equals-negative",
        "error",
        "swap",
        "7",
    )
    assert '"a fox"' in finding.message


def test_repeated_items_and_repeated_captions() -> None:
    rows = [
        item("1", ["a"], ["b"], images=("x",)),
        item("2", ["a"], ["b"], images=("x",)),
        item("3", ["a"], ["b"], images=("y",)),
        item("4", ["b"], ["a"], images=("z",)),
        item("5", ["a"], ["b"], images=("x",), subset="other"),
        item("6", ["c"], ["d"], images=("x",), subset="other"),
    ]
    assert [(f.code, f.item, f.message) for f in check(from_items("b", rows), images=False) if f.item] == [
        ("duplicate-item", "2", "repeats item 1: same images, captions and match matrix"),
        ("duplicate-captions", "3", "has the same captions as item 1, with other images"),
    ]


def test_a_caption_that_is_true_here_and_false_there() -> None:
    rows = [
        item("1", ["a dog"], ["a cat"], images=("x",)),
        item("2", ["a pet"], ["a dog"], images=("x",), subset="t"),
        item("3", ["a pet"], ["a dog"], images=("y",), subset="t"),
        item("4", ["a fur"], ["a dog"], images=("x#xywh=0,0,1,1",), subset="t"),
        item("5", ["a fog"], ["a dog"], subset="t"),
    ]
    (finding,) = [f for f in check(from_items("b", rows), images=False) if f.severity == "error"]
    assert (finding.code, finding.subset, finding.item) == ("caption-true-and-false", "t", "2")
    assert "s/1" in finding.message


def test_two_images_two_captions_do_not_contradict_themselves() -> None:
    pair = Item("1", "s", ("i", "j"), ("a", "b"), PAIRED)
    assert found(pair, Item("2", "s", ("j", "i"), ("b", "a"), PAIRED)) == []
    assert found(pair, Item("2", "s", ("j", "i"), ("a", "b"), PAIRED)) == [
        ("caption-true-and-false", "1"),
        ("caption-true-and-false", "1"),
        ("caption-true-and-false", "2"),
        ("caption-true-and-false", "2"),
        ("duplicate-captions", "2"),
    ]


def test_yes_or_no_items_are_one_note_a_subset() -> None:
    rows = [Item(str(i), "vsr", (f"{i}.jpg",), (f"c{i}",), ((i % 3 == 0,),)) for i in range(9)]
    notes = check(from_items("b", rows), images=False)
    assert [(f.code, f.severity, f.subset, f.item) for f in notes if "image" not in f.code] == [
        ("no-positives", "info", "vsr", ""),
        ("no-negatives", "info", "vsr", ""),
    ]
    assert "6 items" in notes[0].message


def test_records_that_were_left_out() -> None:
    skipped = (
        SkippedRecord("s", "3", "both references are empty"),
        SkippedRecord("s", "4", "not valid: 1 of 3 people"),
    )
    findings = check(from_items("b", [CLEAN], skipped=skipped))
    assert [(f.code, f.severity, f.item) for f in findings] == [
        ("empty-reference", "error", "3"),
        ("skipped-record", "info", "4"),
    ]


def test_blanks_are_counted_by_subset_and_truth() -> None:
    rows = [item(str(i), [f"dog {i} " if i < 3 else f"dog {i}"], [f"cat {i}"]) for i in range(4)]
    (finding,) = check(from_items("b", rows))
    assert finding.severity == "info"
    assert "3 of 4 true captions (75.0%) and 0 of 4 false captions (0.0%)" in finding.message


def test_a_table_that_was_changed_after_saving(tmp_path: Path) -> None:
    save(from_items("b", [CLEAN, item("2", ["x"], ["y"])]), tmp_path / "b")
    file = next((tmp_path / "b" / "data").iterdir())
    table = pq.read_table(file)
    pq.write_table(table.set_column(0, "id", pa.array(["1", "1"])), file)
    findings = check(load_folder(without_checksums(tmp_path / "b")))
    assert [f.code for f in findings] == ["hash-mismatch", "duplicate-id"]
    assert findings[0].message.endswith("save it again")


def reference_codes(items: list[Item]) -> Counter[tuple[str, str, str]]:
    """Two of the checks, written as loops."""
    codes: Counter[tuple[str, str, str]] = Counter()
    for one in items:
        columns = [tuple(row[j] for row in one.match) for j in range(len(one.captions))]
        for j, text in enumerate(one.captions):
            if not text.strip():
                codes["empty-caption", one.subset, one.id] += 1
            i = one.captions.index(text)
            if i < j:
                code = "positives-equal" if any(columns[j]) else "duplicate-negatives"
                code = code if columns[i] == columns[j] else "positive-equals-negative"
                codes[code, one.subset, one.id] += 1
    return codes


def test_the_columns_find_what_loops_find(any_items: st.SearchStrategy[list[Item]]) -> None:
    @settings(max_examples=12)
    @given(any_items)
    def holds(items: list[Item]) -> None:
        wanted = {"empty-caption", "positives-equal", "duplicate-negatives", "positive-equals-negative"}
        findings = check(from_items("b", items), images=False)
        got = Counter((f.code, f.subset, f.item) for f in findings if f.code in wanted)
        assert got == reference_codes(items)
        assert {f.code for f in findings} <= set(CODES)

    holds()


# -- images ----------------------------------------------------------------------------------------------------------


def png(colour: tuple[int, int, int], size: tuple[int, int] = (8, 6)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def with_images(folder: Path, files: dict[str, bytes], references: list[str]) -> Benchmark:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    rows = [item(str(i), [f"a{i}"], [f"b{i}"], images=(r,)) for i, r in enumerate(references)]
    return from_items("b", rows, images=open_store(folder))


def test_every_bad_image_is_a_finding_of_its_items(tmp_path: Path) -> None:
    files = {
        "good.png": png((1, 2, 3)),
        "empty.png": b"",
        "cut.png": png((4, 5, 6), (300, 300))[:200],
        "text.png": b"no picture",
        "huge.png": bomb(50_000, 50_000),
    }
    references = [*files, "none.png", image_reference("good.png", (100, 100, 5, 5)), "none.png", "../../etc/passwd"]
    findings = check(with_images(tmp_path / "i", files, references))
    assert {(f.item, f.code) for f in findings} == {
        ("1", "empty-image"),
        ("2", "truncated-image"),
        ("3", "undecodable-image"),
        ("4", "image-too-large"),
        ("5", "missing-image"),
        ("6", "bad-crop"),
        ("7", "missing-image"),
        ("8", "missing-image"),
    }
    assert all(f.severity == "error" and f.subset == "s" for f in findings)


def test_each_image_is_read_once(tmp_path: Path) -> None:
    boxes = [image_reference("a.png", (0, 0, n, 2)) for n in (1, 2, 3)]
    bench = with_images(tmp_path / "i", {"a.png": png((1, 1, 1))}, ["a.png", *boxes, "a.png"])
    reads: list[str] = []

    class Counting:
        location = "counted"

        def read(self, key: str) -> bytes:
            reads.append(key)
            return bench.images.read(key)

        def __contains__(self, key: str) -> bool:
            return True

        def keys(self) -> Any:
            return bench.images.keys()

    assert check(replace(bench, images=Counting())) == []
    assert reads == ["a.png"]


def test_one_picture_under_two_names_and_two_under_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as z:
        z.writestr("a.png", png((1, 1, 1)))
        z.writestr("b.png", png((1, 1, 1)))
        z.writestr("c.png", png((2, 2, 2)))
        with pytest.warns(UserWarning, match="Duplicate"):
            z.writestr("c.png", png((3, 3, 3)))
    rows = [item(k, [f"x{k}"], [f"y{k}"], images=(f"{k}.png",)) for k in "abc"]
    findings = check(from_items("b", rows, images=open_store(tmp_path / "x.zip")))
    assert [(f.code, f.severity) for f in findings] == [("image-key-twice", "error"), ("image-under-two-keys", "info")]
    assert "c.png" in findings[0].message
    assert "b.png and a.png" in findings[1].message


@pytest.mark.parametrize("look", [True, False])
def test_images_that_were_not_looked_at_are_said(look: bool) -> None:
    (finding,) = check(from_items("b", [item("1", ["a"], ["b"], images=("x.png",))]), images=look)
    assert (finding.code, finding.severity) == ("images-not-checked", "info")


# -- the published benchmarks: SEMANTICS.md 2.2, 2.3, 2.7 and data/README.md name these defects ----------------------


def errors(findings: list[Finding], code: str) -> list[tuple[str, str]]:
    return [(f.subset, f.item) for f in findings if f.code == code and f.severity == "error"]


def test_sugarcrepe_pp(shared_data: Path) -> None:
    findings = check(load(f"sugarcrepe++:{shared_data / 'sugarcrepe_pp'}"))
    assert errors(findings, "positive-equals-negative") == [("swap_obj", "2"), ("swap_obj", "8")]
    assert errors(findings, "positives-equal") == [("replace_att", "14")]


def test_visla(shared_data: Path) -> None:
    findings = check(load(f"visla:{shared_data / 'visla'}"))
    assert len(errors(findings, "empty-reference")) == 12
    assert len(errors(findings, "positive-equals-negative")) == 2
    counts = Counter(f.code for f in findings)
    assert counts["duplicate-item"] == 1  # one exact duplicate, 16 repeated text triples with it
    assert counts["duplicate-item"] + counts["duplicate-captions"] == 16


@pytest.mark.slow
def test_crepe(shared_data: Path) -> None:
    import ast
    import csv

    expected = 0
    for file in (shared_data / "crepe").rglob("*.csv"):
        with file.open(encoding="utf-8", newline="") as f:
            expected += sum(row["caption"] in ast.literal_eval(row["hard_negs"]) for row in csv.DictReader(f))
    findings = check(load(f"crepe:{shared_data / 'crepe'}"))
    assert len(errors(findings, "true-caption-among-negatives")) == expected > 0


def test_sugarcrepe_blanks(shared_data: Path) -> None:
    """13 to 15 in a hundred true captions end in a blank, no false one (SEMANTICS.md 3.1)."""
    data = json.loads((shared_data / "sugarcrepe" / "swap_obj.json").read_text(encoding="utf-8"))
    blank = sum(r["caption"] != r["caption"].rstrip() for r in data.values())
    findings = check(load(f"sugarcrepe:{shared_data / 'sugarcrepe'}"))
    notes = {f.subset: f.message for f in findings if f.code == "trailing-blank"}
    assert len(notes) == 7
    assert f"{blank} of 245 true captions" in notes["swap_obj"]
    assert all("and 0 of" in message for message in notes.values())
