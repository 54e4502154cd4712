"""From a name to a benchmark folder."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import (
    CatalogEntry,
    Downloaded,
    DownloadOptions,
    ProvenanceStep,
    find_entry,
    find_installed,
    get_benchmark,
    load,
    plan_download,
)
from creperie.bench.catalog.download import FetchError, Limits
from creperie.bench.catalog.entries import File, ImageSource
from creperie.core import CreperieError, UsageError

Jpeg = Callable[[int], bytes]
Get = Callable[..., Downloaded]
Catalog = dict[str, CatalogEntry]
RAW = "/raw.githubusercontent.com"
COCO = "/images.cocodataset.org/val2017"


def records(first: int, count: int) -> dict[str, dict[str, str]]:
    """Records in SugarCrepe's shape, with texts of our own."""
    return {
        str(i): {
            "filename": f"{first + i % 4:012d}.jpg",
            "caption": f"a dog number {i} beside a cat ",
            "negative_caption": f"A dog number {i} beside a cow.",
        }
        for i in range(count)
    }


@pytest.fixture
def small(site: Any, jpeg: Jpeg, home: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    """A catalog of one small benchmark, which the server has: two files, seven images."""
    texts = {
        "swap_obj.json": json.dumps(records(1, 6)).encode(),
        "add_att.json": json.dumps(records(4, 5)).encode(),
    }
    files = []
    for name, content in texts.items():
        site.files[f"{RAW}/me/small/abc/data/{name}"] = content
        url = f"https://raw.githubusercontent.com/me/small/abc/data/{name}"
        files.append(File((url,), name, len(content), hashlib.sha256(content).hexdigest()))
    for i in range(1, 8):
        site.files[f"{COCO}/{i:012d}.jpg"] = jpeg(i)
    monkeypatch.setenv("CREPERIE_MIRROR", site.url)
    return replace(find_entry("sugarcrepe"), name="small", title="Small", files=tuple(files), items=11, aliases=())


@pytest.fixture
def catalog(small: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """Entries by name; a test may add and replace some."""
    entries = {"small": small}
    monkeypatch.setattr(importlib.import_module("creperie.bench.catalog.entries"), "_catalog", lambda: entries)
    return entries


@pytest.fixture
def get(catalog: Catalog, limits: Limits) -> Get:
    """Get a benchmark of the catalog, the small one where none is named, with these options."""
    return lambda name="small", **options: get_benchmark(name, **options, limits=limits)


def test_text_and_images_come_and_the_name_loads(site: Any, home: Path, jpeg: Jpeg, get: Get) -> None:
    got = get()
    assert got.complete
    assert got.folder == home / "data" / "small" == find_installed("small")
    bench = load("small")
    assert bench.subsets == {"add_att": 5, "swap_obj": 6}
    assert bench.item("swap_obj", "0").captions == ("a dog number 0 beside a cat ", "A dog number 0 beside a cow.")
    assert bench.images.read("000000000003.jpg") == jpeg(3)
    assert (got.pictures.needed, got.pictures.here, got.pictures.fetched) == (7, 7, 7)
    assert len(site.requests) == 2 + 7
    again = get()
    assert len(site.requests) == 2 + 7
    assert again.benchmark.hash == got.benchmark.hash
    assert (again.pictures.here, again.pictures.fetched) == (7, 0)


@pytest.mark.parametrize("pinned", [True, False])
def test_the_manifest_tells_what_was_fetched(pinned: bool, small: CatalogEntry, get: Get, catalog: Catalog) -> None:
    if not pinned:
        catalog["small"] = replace(small, files=tuple(replace(f, sha256=None, size=None) for f in small.files))
    got = get()
    step = load("small").provenance[0]
    assert (step.op, step.args["name"], step.args["commit"]) == ("get", "small", small.source.commit)
    told = {f["file"]: (f["sha256"], f["pinned"], f["url"]) for f in step.args["files"]}
    assert told == {f.saved_as: (f.sha256, pinned, f.urls[0]) for f in small.files}
    assert (got.benchmark.info.licence, got.benchmark.info.title) == ("MIT", "Small")


def test_an_image_that_is_gone_is_told_with_its_items_and_fetched_later(site: Any, get: Get) -> None:
    content = site.files.pop(path := f"{COCO}/000000000002.jpg")
    got = get()
    assert not got.complete
    [gone] = got.pictures.missing
    assert gone["image"] == "000000000002.jpg"
    assert gone["why"] == "the server answered 404 Not Found"
    assert gone["items"] == ["swap_obj/1", "swap_obj/5"]
    assert got.pictures.here == 6
    assert len(load("small")) == 11  # the items stay; `data check` will find the missing image
    site.files[path] = content
    site.requests.clear()
    assert get().complete
    assert [asked for asked, _ in site.requests] == [path]


def test_a_wrong_checksum_leaves_no_benchmark(site: Any, home: Path, get: Get) -> None:
    path = f"{RAW}/me/small/abc/data/add_att.json"
    site.files[path] = site.files[path].replace(b"cow", b"hen")
    with pytest.raises(FetchError, match="sha256"):
        get()
    assert not (home / "data" / "small").exists()
    assert not (home / "downloads" / "small" / "add_att.json").exists()


def test_text_alone(site: Any, home: Path, get: Get) -> None:
    got = get(images="none")
    assert len(site.requests) == 2
    assert (got.complete, got.pictures.needed, got.pictures.here) == (True, 7, 0)
    assert not (home / "images").exists()


def test_own_images(site: Any, jpeg: Jpeg, tmp_path: Path, get: Get) -> None:
    mine = tmp_path / "mine" / "val2017"
    mine.mkdir(parents=True)
    for i in range(1, 7):
        (mine / f"{i:012d}.jpg").write_bytes(jpeg(i))
    got = get(images=str(mine))
    assert (got.pictures.needed, got.pictures.here) == (7, 6)
    assert got.notes == (f"1 images are not in {mine}",)
    assert load("small").images.read("000000000001.jpg") == jpeg(1)
    assert len(site.requests) == 2


def test_images_can_travel_along(home: Path, jpeg: Jpeg, tmp_path: Path, get: Get) -> None:
    get(out=tmp_path / "out", copy_images=True)
    shutil.rmtree(home)
    moved = (tmp_path / "out").rename(tmp_path / "moved")
    assert load(moved).images.read("000000000005.jpg") == jpeg(5)


def test_two_benchmarks_share_an_image(small: CatalogEntry, site: Any, get: Get, catalog: Catalog) -> None:
    catalog["twin"] = replace(small, name="twin")
    get()
    site.requests.clear()
    got = get("twin")
    assert {path for path, _ in site.requests} == {f"{RAW}/me/small/abc/data/{f.saved_as}" for f in small.files}
    assert got.pictures.here == 7


def test_keys_that_would_leave_the_folder_are_never_fetched(
    small: CatalogEntry, site: Any, get: Get, catalog: Catalog
) -> None:
    evil = {"0": {"filename": "../../../evil.jpg", "caption": "a", "negative_caption": "b"}}
    site.files[f"{RAW}/me/small/abc/data/swap_obj.json"] = json.dumps(evil).encode()
    source = ImageSource("any", "any", r"(?P<file>.+)", "{file}", ("http://images.cocodataset.org/{file}",), 1000)
    loose = replace(
        small,
        files=(replace(small.files[0], sha256=None, size=None),),
        images=replace(small.images, sources=(source,)),
    )
    catalog["small"] = loose
    with pytest.raises(CreperieError, match="not a path inside"):
        get()
    assert len(site.requests) == 1


# -- the user's copy -----------------------------------------------------------------------------


@pytest.fixture
def copy(small: CatalogEntry, site: Any, tmp_path: Path) -> Path:
    """A clone of the repository."""
    folder = tmp_path / "clone" / "data"
    folder.mkdir(parents=True)
    for file in small.files:
        (folder / file.saved_as).write_bytes(site.files[f"{RAW}/me/small/abc/data/{file.saved_as}"])
    return folder.parent


@pytest.mark.parametrize("inside", ["", "data"], ids=["the repository", "the folder of the files"])
def test_an_own_copy_needs_no_network(inside: str, copy: Path, site: Any, get: Get) -> None:
    got = get(copy=copy / inside, images="none")
    assert site.requests == []
    assert len(got.benchmark) == 11
    assert got.notes == ()
    assert all(f["same"] for f in got.text.files)


def test_images_that_lie_beside_the_copy_are_taken(copy: Path, site: Any, jpeg: Jpeg, get: Get) -> None:
    (copy / "data" / "images").mkdir()
    for i in range(1, 8):
        (copy / "data" / "images" / f"{i:012d}.jpg").write_bytes(jpeg(i))
    got = get(copy=copy)
    assert site.requests == []
    assert (got.pictures.needed, got.pictures.here, got.pictures.fetched) == (7, 7, 0)
    assert load("small").images.read("000000000006.jpg") == jpeg(6)


def test_a_copy_that_differs_or_lacks_files_says_so(copy: Path, get: Get) -> None:
    path = copy / "data" / "swap_obj.json"
    path.write_bytes(path.read_bytes().replace(b"cow", b"hen"))
    (copy / "data" / "add_att.json").unlink()
    got = get(copy=copy, images="none")
    assert got.notes == ("different from the pinned release: swap_obj.json", "not in your copy: add_att.json")
    assert got.benchmark.subsets == {"swap_obj": 6}


@pytest.mark.parametrize(
    ("name", "problem"), [("nowhere", "does not exist"), ("empty", "holds none of the files of Small")]
)
def test_a_copy_that_is_none(name: str, problem: str, tmp_path: Path, get: Get) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=problem):
        get(copy=tmp_path / name, images="none")


# -- before anything is fetched -----------------------------------------------------------------------------


def test_a_plan_fetches_nothing(small: CatalogEntry, site: Any, home: Path, get: Get) -> None:
    planned = plan_download("small")
    assert site.requests == []
    assert not home.exists()
    assert (len(planned.files), planned.file_bytes) == (2, small.size)
    assert planned.images == 1560  # the catalog's number, as long as nobody has read the items
    get(images="none")
    assert (len(plan_download("small").files), plan_download("small").images) == (0, 7)
    get()
    assert (plan_download("small").images, plan_download("small").image_bytes) == (0, 0)


def test_a_full_disk_is_told_before_the_download(site: Any, monkeypatch: pytest.MonkeyPatch, get: Get) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
    with pytest.raises(UsageError, match=r"are needed, but only 1.0 MB are free here; make room, or set CREPERIE_HOME"):
        get()
    assert site.requests == []


def test_many_gigabytes_are_asked_for(
    small: CatalogEntry, monkeypatch: pytest.MonkeyPatch, get: Get, catalog: Catalog
) -> None:
    heavy = replace(small.images.sources[0], mean_bytes=10**9)
    entry = replace(small, images=replace(small.images, sources=(heavy,)))
    catalog["small"] = entry
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 0, 10**12))
    with pytest.raises(UsageError, match=r"about 7.0 GB; pass `yes=True`"):
        get()
    assert get(large_ok=True).complete


def test_a_mirror_that_is_no_address(get: Get) -> None:
    with pytest.raises(UsageError, match="the mirror is not a URL"):
        get(mirror="mirror.example.org")


def test_a_taken_folder_is_told_before_the_download(site: Any, tmp_path: Path, get: Get) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty; choose another, or pass `force=True`"):
        get(out=tmp_path / "out")
    assert site.requests == []
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_another_benchmarks_folder_is_not_replaced(
    small: CatalogEntry, tmp_path: Path, get: Get, catalog: Catalog
) -> None:
    wish = {"out": tmp_path / "out", "images": "none"}
    get(**wish)
    get(**wish)  # its own, it may
    catalog["twin"] = replace(small, name="twin")
    with pytest.raises(UsageError, match="not empty"):
        get("twin", **wish)
    edited = replace(load(tmp_path / "out"), provenance=(ProvenanceStep("edit", {}),))  # not from here: also kept
    for _ in range(2):
        edited.save(tmp_path / "own", force=True)
    with pytest.raises(UsageError, match="not empty"):
        get(out=tmp_path / "own", images="none")
    assert get("twin", force=True, **wish).benchmark.name == "twin"


@pytest.mark.parametrize("name", ["winoground", "hit-or-be-hit", "aro-flickr30k-order", "sade"])
def test_a_gated_set_says_in_one_line_where_to_ask(name: str, home: Path) -> None:
    with pytest.raises(UsageError, match="cannot be fetched automatically") as error:
        get_benchmark(name)
    assert f"creperie data get {name} --from DIR" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_nobody_can_read_is_not_fetched(home: Path) -> None:
    with pytest.raises(UsageError, match=r"creperie cannot read ConMe; .*creperie data import"):
        get_benchmark("conme")


# -- the real files -----------------------------------------------------------------------------

#: catalog name → where its files lie in the shared folder.
REAL = {
    "sugarcrepe": "sugarcrepe",
    "sugarcrepe-unrefined": "sugarcrepe/unrefined",
    "sugarcrepe++": "sugarcrepe_pp",
    "visla-generic": "visla",
    "visla-spatial": "visla",
    "negclip": "aro",
    "vl-checklist": "vl_checklist",
    "cola": "cola",
    "valse": "valse",
    "vsr": "vsr",
}


SLOW = {"vl-checklist", "valse", "vsr", "sugarcrepe-unrefined"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in REAL])
def test_the_real_files_come_through_the_official_path(
    name: str, shared_data: Path, site: Any, home: Path, limits: Limits
) -> None:
    entry = find_entry(name)

    def serve(path: str) -> bytes | None:
        for file in entry.files:
            if path in (f"/{url.removeprefix('https://')}" for url in file.urls):
                local = shared_data / REAL[name] / file.saved_as
                return local.read_bytes() if local.is_file() else None
        return None

    site.anything = serve
    got = get_benchmark(name, images="none", mirror=site.url, limits=limits)
    assert entry.items == len(got.benchmark) or name == "vl-checklist"
    assert all(f["pinned"] for f in got.text.files)
    assert not entry.subsets or dict(entry.subsets) == got.benchmark.subsets
    count = plan_download(name).images
    assert entry.images.count in (count, None)
    if name == "vl-checklist":
        assert (len(got.benchmark), len(got.text.files)) == (62998, 8)
        assert "not in this revision" in got.notes[0]


def test_the_real_sugarcrepe_as_own_copy(shared_data: Path, home: Path, limits: Limits) -> None:
    got = get_benchmark("sugarcrepe", copy=shared_data / "sugarcrepe", images="none", limits=limits)
    assert len(got.benchmark) == 7511
    assert [f["same"] for f in got.text.files] == [True] * 7
    assert len(load("sugarcrepe")) == 7511


@pytest.mark.slow
def test_the_real_sugarcrepe_with_its_1560_images(
    shared_data: Path, site: Any, home: Path, limits: Limits, jpeg: Jpeg
) -> None:
    picture = jpeg(1)
    site.anything = lambda path: picture if path.startswith(COCO) else None
    wish = DownloadOptions(copy=shared_data / "sugarcrepe", mirror=site.url)
    got = get_benchmark("sugarcrepe", wish=wish, limits=limits)
    assert (got.pictures.needed, got.pictures.here, got.pictures.fetched) == (1560, 1560, 1560)
    assert len({path for path, _ in site.requests}) == len(site.requests) == 1560
    # SugarCrepe++ uses the same pictures, so hardly any are left to fetch.
    site.requests.clear()
    more = get_benchmark("sugarcrepe++", copy=shared_data / "sugarcrepe_pp", mirror=site.url, limits=limits)
    assert more.pictures.here == 1542
    assert len(site.requests) < 20
