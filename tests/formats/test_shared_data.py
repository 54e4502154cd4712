"""The real files: every one loads with the counts its README states; those of the papers come back the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import find_format, load_folder, read_format, save, write_format

Content = Callable[[str, bytes], Any]

#: (format, folder, items, skipped). Counts: data/README.md of the shared files; CREPE, VL-CheckList and VSR by
#: counting their rows with other readers (csv.DictReader, json.load).
REAL = [
    ("sugarcrepe", "sugarcrepe", 7511, 0),
    ("sugarcrepe", "sugarcrepe/unrefined", 17478, 0),
    ("sugarcrepe", "sugarcrepe/gpt-4v-results/positive-first", 7512, 1),
    ("sugarcrepe", "sugarcrepe/gpt-4v-results/negative-first", 7512, 0),
    ("sugarcrepe++", "sugarcrepe_pp", 245 + 666 + 1652 + 788 + 1406, 0),
    ("sugarcrepe++", "sugarcrepe_pp/generated_data", 245 + 666 + 1652 + 788 + 1406, 0),
    ("visla", "visla", 973 + 640, 12),
    ("visla-spatial", "visla", 640, 12),
    ("valse", "valse", 7702, 1080),
    ("valse", "valse?valid=all", 8782, 0),
    ("vl-checklist", "vl_checklist", 62998, 0),
    ("crepe", "crepe", 13592, 0),
    ("vsr", "vsr", 10972 + 1097 + 2195, 0),
    ("negclip", "aro", 4839, 0),
    ("cola", "cola", 210, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "items", "skipped"), REAL, ids=[f"{r[0]}-{r[1]}" for r in REAL])
def test_real_files_load(shared_data: Path, name: str, folder: str, items: int, skipped: int) -> None:
    bench = read_format(find_format(name), str(shared_data / folder))
    assert (len(bench), len(bench.skipped)) == (items, skipped)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder"), [("sugarcrepe", "sugarcrepe"), ("sugarcrepe++", "sugarcrepe_pp"), ("visla-generic", "visla")]
)
def test_released_files_come_back_from_a_saved_benchmark(
    shared_data: Path, tmp_path: Path, content: Content, name: str, folder: str
) -> None:
    format = find_format(name)
    save(read_format(format, str(shared_data / folder)), tmp_path / "saved")
    files = write_format(format, load_folder(tmp_path / "saved"), tmp_path / "out")
    assert files
    for path in files:
        original = shared_data / folder / path.name
        assert content(path.name, path.read_bytes()) == content(path.name, original.read_bytes()), path.name


def test_subsets_of_sugarcrepe_plus_plus(shared_data: Path) -> None:
    bench = read_format(find_format("scpp"), str(shared_data / "sugarcrepe_pp"))
    assert bench.subsets == {
        "replace_att": 788,
        "replace_obj": 1652,
        "replace_rel": 1406,
        "swap_att": 666,
        "swap_obj": 245,
    }
    # SEMANTICS: people's corrections made P1 and N the same in two rows, P1 and P2 in one.
    for id_ in ("2", "8"):
        item = bench.item("swap_obj", id_)
        assert item.captions[0] == item.captions[2]
    item = bench.item("replace_att", "14")
    assert item.captions[0] == item.captions[1]


def test_captions_keep_their_trailing_blanks(shared_data: Path) -> None:
    bench = read_format(find_format("sugarcrepe"), str(shared_data / "sugarcrepe"))
    trailing = sum(item.captions[0].endswith(" ") for item in bench) / len(bench)
    assert 0.13 < trailing < 0.15  # 13 to 15 % of the positives carry one, and no negative does
    assert not any(item.captions[1].endswith(" ") for item in bench)


@pytest.mark.slow
def test_true_captions_among_crepes_negatives(shared_data: Path) -> None:
    bench = read_format(find_format("crepe"), str(shared_data / "crepe"))
    kinds = {item.subset.split("_")[0] for item in bench if item.captions[0] in item.captions[1:]}
    assert kinds == {"swap"}
    assert all(len(item.captions) == 6 for item in bench)


def test_visla_spatial_has_two_rows_that_nobody_can_win(shared_data: Path) -> None:
    bench = read_format(find_format("visla-spatial"), str(shared_data / "visla"))
    unwinnable = [n for n, item in enumerate(bench) if item.captions[0] == item.captions[2]]
    assert unwinnable == [416, 510]  # counted after dropping the rows without references
