"""The catalog's data: complete, consistent, and true where that can be computed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from creperie.bench import CatalogEntry, catalog_entries, data_home, find_entry, find_installed
from creperie.bench.images import safe_path
from creperie.core import UnknownNameError, UsageError

ALL = catalog_entries()
NAMES = [e.name for e in ALL]

#: The benchmarks that the issue and Table 1 of "Hit or Be Hit" name.
EXPECTED = {
    *("sugarcrepe", "sugarcrepe++", "visla-generic", "visla-spatial", "negclip", "vl-checklist", "winoground"),
    *("aro-vg-relation", "aro-vg-attribution", "aro-coco-order", "aro-flickr30k-order", "colorswap", "cola", "valse"),
    *("crepe-productivity", "crepe-systematicity", "vsr", "hard-positives", "sade", "hit-or-be-hit"),
    *("bla", "foil-it", "svo-probes", "bivlc", "whatsup", "eqben", "naturalbench", "mmvp-vlm", "spec", "vismin"),
    *("imagecode", "coco-counterfactuals", "conme"),
}


def test_every_benchmark_is_there_once() -> None:
    assert set(NAMES) >= EXPECTED
    spellings = [n for e in ALL for n in (e.name, *e.aliases)]
    assert len(spellings) == len(set(spellings))
    assert all(n == n.lower() for n in spellings)


@pytest.mark.parametrize("entry", ALL, ids=NAMES)
def test_an_entry_is_complete(entry: CatalogEntry) -> None:
    assert entry.title
    assert entry.shape
    assert entry.licence
    assert entry.paper
    assert entry.chance
    assert entry.taxonomy.phenomena
    assert set(entry.taxonomy.properties) <= {"prerequisite", "ability", "effect"}
    assert entry.taxonomy.type in ("linguistic", "mixed")
    assert entry.files or entry.own_copy  # there is always a way to have it
    assert entry.items is None or not entry.subsets or sum(entry.subsets.values()) == entry.items
    assert re.fullmatch(r"([0-9a-f]{7}|[0-9a-f]{40})?", entry.source.commit)
    assert len({s.folder for s in entry.images.sources}) <= 1


@pytest.mark.parametrize("entry", [e for e in ALL if e.files], ids=lambda e: e.name)
def test_files_have_addresses_names_and_sums(entry: CatalogEntry) -> None:
    assert len({f.saved_as for f in entry.files}) == len(entry.files)
    for file in entry.files:
        assert all(re.fullmatch(r"https://[a-z.]+/[\w./+-]+", url) for url in file.urls)
        assert all(url.endswith(file.saved_as) for url in file.urls)
        assert safe_path(Path("x"), file.saved_as)
        assert (file.size is None) == (file.sha256 is None)
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        if entry.source.commit:
            assert entry.source.commit in file.urls[0]
    assert not entry.read or entry.read in {f.saved_as for f in entry.files}


@pytest.mark.parametrize("entry", [e for e in ALL if e.format], ids=lambda e: e.name)
def test_the_format_of_an_entry_exists(entry: CatalogEntry) -> None:
    from creperie.bench import find_format

    assert find_format(entry.format).name == entry.format


@pytest.mark.parametrize(
    ("name", "key", "url", "saved_as"),
    [
        (
            "sugarcrepe",
            "000000085329.jpg",
            "http://images.cocodataset.org/val2017/000000085329.jpg",
            "000000085329.jpg",
        ),
        ("vsr", "000000239417.jpg", "http://images.cocodataset.org/train2017/000000239417.jpg", "000000239417.jpg"),
        (
            "negclip",
            "coco/val2014/COCO_val2014_000000184613.jpg",
            "http://images.cocodataset.org/val2014/COCO_val2014_000000184613.jpg",
            "COCO_val2014_000000184613.jpg",
        ),
        (
            "valse",
            "COCO_train2014_000000254009.jpg",
            "http://images.cocodataset.org/train2014/COCO_train2014_000000254009.jpg",
            "COCO_train2014_000000254009.jpg",
        ),
        (
            "vl-checklist",
            "VG_100K/2361911.jpg",
            "https://cs.stanford.edu/people/rak248/VG_100K_2/2361911.jpg",
            "2361911.jpg",
        ),
        ("cola", "2390970.jpg", "https://cs-people.bu.edu/array/data/vg_gqa_images/2390970.jpg", "2390970.jpg"),
    ],
)
def test_image_keys_become_addresses(name: str, key: str, url: str, saved_as: str) -> None:
    file = find_entry(name).images.find(key)
    assert (file.urls[0], file.saved_as, file.picture) == (url, saved_as, True)


@pytest.mark.parametrize(
    "key", ["exercising_255.jpg", "v7w_2344454.jpg", "../../etc/passwd", "a\n000000085329.jpg.exe", ""]
)
def test_keys_of_no_source_have_no_address(key: str) -> None:
    assert find_entry("valse").images.find(key) is None


# -- chance, by going through every order in which random scores can fall ----------------------------------------------


def share(cells: int, rule: Callable[[tuple[int, ...]], bool]) -> float:
    """How often a rule holds when all orders of the scores are equally likely."""
    orders = list(itertools.permutations(range(cells)))
    return sum(map(rule, orders)) / len(orders)


def text(s: tuple[int, ...]) -> bool:  # scores of (image 0, caption 0), (0, 1), (1, 0), (1, 1)
    return s[0] > s[1] and s[3] > s[2]


def image(s: tuple[int, ...]) -> bool:
    return s[0] > s[2] and s[3] > s[1]


def all_true_above_all_false(true: int) -> Callable[[tuple[int, ...]], bool]:
    return lambda s: min(s[:true]) > max(s[true:])


PAIR = share(2, all_true_above_all_false(1))
TRIPLE = share(3, all_true_above_all_false(2))
RULES = {
    "accuracy": PAIR,
    "acc_r": PAIR,
    "acc": PAIR,
    "image of one caption": PAIR,
    "itt": TRIPLE,
    "i2t": TRIPLE,
    "tot": share(3, lambda s: s[0] > s[1] and s[0] > s[2]),
    "t2t": share(3, lambda s: s[0] > s[1] and s[0] > s[2]),
    "precision@1": share(5, all_true_above_all_false(1)),
    "recall@1": share(6, all_true_above_all_false(1)),
    "text": share(4, text),
    "image": share(4, image),
    "group": share(4, lambda s: text(s) and image(s)),
    "original": PAIR,
    "augmented": TRIPLE,
    "brittleness": share(3, lambda s: s[0] > s[2] > s[1] or s[1] > s[2] > s[0]),  # caption, hard positive, negative
    "each comparison": PAIR,
    "one of four": share(4, all_true_above_all_false(1)),
    "one of ten": 1 / 10,
    "all four ranked": share(4, all_true_above_all_false(2)),
    "group (Winoground)": share(4, lambda s: text(s) and image(s)),
    "recall@1 (relation and attribute)": PAIR,
    "recall@1 (CREPE)": share(6, all_true_above_all_false(1)),
    "recall@1 (content)": share(3, all_true_above_all_false(1)),
}


@pytest.mark.parametrize("entry", ALL, ids=NAMES)
def test_chance_is_what_random_scores_reach(entry: CatalogEntry) -> None:
    for metric, value in entry.chance.items():
        rule = "image of one caption" if entry.name == "svo-probes" else metric
        assert value is None or value == pytest.approx(RULES[rule], abs=5e-5)


# -- taxonomy ----------------------------------------------------------------------------------------------------------

#: Table 1 of "Hit or Be Hit" (Zgreabăn, Gatt, Mosteiro): benchmark → aspects of compositionality, way of
#: differing, size, and whether its own paper fine-tunes models on it (the column "Tests", by the table's caption).
TABLE = {
    "valse": ({"effect"}, "mixed", 8782, False),
    "winoground": ({"prerequisite", "effect"}, "swap", 897, False),
    "colorswap": ({"effect"}, "swap", 1000, True),
    "crepe-productivity": ({"ability", "effect"}, "mixed", 100_200, False),
    "sugarcrepe": ({"effect"}, "mixed", 7512, True),
    "aro-vg-relation": ({"prerequisite", "effect"}, "swap", 52_685, True),  # the table says mixed of ARO as a whole
    "vl-checklist": ({"effect"}, "replace", 410_000, False),
    "bla": ({"effect"}, "swap", 1939, True),
    "hard-positives": ({"effect"}, "mixed", 55_191, True),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_rows_of_the_published_table_are_kept(name: str) -> None:
    row = find_entry(name).taxonomy
    assert row.tabulated
    assert (set(row.properties), row.difference.split()[0].rstrip(","), row.size, row.tuned) == TABLE[name]


def test_only_the_published_families_claim_to_be_in_the_table() -> None:
    families = {"valse", "winoground", "colorswap", "crepe", "sugarcrepe", "aro", "vl", "bla", "hard"}
    assert {e.name.split("-")[0] for e in ALL if e.taxonomy.tabulated} == families
    assert find_entry("winoground").taxonomy.type == "mixed"


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "name"), [("SugarCrepe", "sugarcrepe"), ("scpp", "sugarcrepe++"), (" vg_relation ", "aro-vg-relation")]
)
def test_other_spellings_are_known(spelling: str, name: str) -> None:
    assert find_entry(spelling).name == name


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown benchmark 'sugarcreppe'; did you mean 'sugarcrepe'\?"):
        find_installed("sugarcreppe")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sugarcrepe", "run `creperie data get sugarcrepe`"),
        (
            "winoground",
            "https://huggingface.co/datasets/facebook/winoground .* `creperie data get winoground --from DIR`",
        ),
        ("aro-flickr30k-order", "https://forms.illinois.edu/sec/229675"),
        ("hit-or-be-hit", "on request"),
        ("bla", "BLA_benchmark.zip.* `creperie data get bla --from DIR`"),
        ("conme", "`creperie data import`"),
    ],
)
def test_what_is_not_here_is_told_with_how_to_get_it(name: str, hint: str, home: Path) -> None:
    with pytest.raises(UsageError, match="is not on this machine yet") as error:
        find_installed(name)
    assert re.search(hint, str(error.value))
    assert "\n" not in str(error.value)


def test_the_data_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.delenv("CREPERIE_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert data_home() == tmp_path / "me" / ".local" / "share" / "creperie"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert data_home() == tmp_path / "xdg" / "creperie"
    monkeypatch.setenv("CREPERIE_HOME", str(tmp_path / "own"))
    assert data_home() == tmp_path / "own"
