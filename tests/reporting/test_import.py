"""The import of tables and their pictures in the studio: the form's requests, and the form in a browser."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("fastapi", reason="fastapi is not installed")

import uvicorn
from fastapi.testclient import TestClient

from creperie.bench import load, open_image
from creperie.reporting import listen, make_studio

NEGATED = "caption,foil,kind\n" + "".join(f"Dog {k} sleeps.,Dog {k} does not sleep.,negate\n" for k in range(60))


def test_pictures_of_a_dropped_folder_are_kept_beside_the_benchmark(client: TestClient, folder: Path) -> None:
    data = (folder / "mine" / "images" / "2.png").read_bytes()
    assert client.post("/picture", params={"name": "new", "image": "deep/2.png"}, content=data).status_code == 200
    wrong = ({"image": "../2.png"}, {"image": "/2.png"}, {"image": ".2.png"}, {"image": ""}, {"name": "../new"})
    for change in (*wrong, {"name": "mine"}):
        sent = client.post("/picture", params={"name": "new", "image": "2.png", **change}, content=data)
        assert sent.status_code == 400, change
    assert client.post("/picture", params={"name": "new", "image": "3.png"}, content=b"<svg>").status_code == 400
    assert sorted(p.name for p in folder.rglob("*-pictures/**/*.png")) == ["2.png"]
    table = "image,caption,foil\ndeep/2.png,a dog,a cat\n"
    client.post("/import", data={"table": table, "name": "new", "pictures": "new-pictures"})
    assert client.get("/picture?name=new&image=deep/2.png").content[8:12] == b"WEBP"


def test_a_preview_says_what_each_column_becomes(client: TestClient, folder: Path) -> None:
    table = "text,foil,kind\n" + "".join(f"a dog {k},a cat {k},swap\n" for k in range(6))
    unknown = client.post("/import", data={"then": "preview", "table": table}).text
    assert (
        "the pasted table: no column name says which column has the true captions; fill in “Columns of true" in unknown
    )
    assert ">a dog 3</td>" in unknown
    named = client.post(
        "/import", data={"then": "preview", "table": table, "positive": "text", "negative": "foil"}
    ).text
    heads = re.findall(r'<th class="text">(\w+)<br><span[^>]*>([a-z ]+)<', named)
    assert heads == [("text", "true"), ("foil", "false"), ("kind", "subset")]
    assert "6 items" in named


def test_an_import_says_what_it_left_out_and_what_is_odd(client: TestClient, folder: Path) -> None:
    rows = ["a.png;A big; red dog.;A cat.", "a.png;;A cat sits.", "none.png;A dog.;A hat.", "a.png;The same.;The same."]
    rows[0] = 'a.png;"A big; red dog.";A cat.'
    form = {"table": "\n".join(["Bild;Wahr;Falsch", *rows]), "name": "odd", "pictures": "seen"}
    form |= {"image": "Bild", "positive": "Wahr", "negative": "Falsch"}
    (folder / "seen").mkdir()
    Image.new("RGB", (9, 9)).save(folder / "seen" / "a.png")
    told = ["1 row (such as 1): left out: no true caption in Wahr"]
    told.append("1 row (such as 3): a true and a false caption are the same text: unwinnable")
    shown = client.post("/import", data={**form, "then": "preview"}).text
    assert ">3 items. Each column" in shown
    assert sorted(re.findall(r'<p class="note">(.*?)</p>', shown)) == told
    page = client.post("/import", data=form)
    told.append("1 row (such as 2): an image does not exist")
    assert sorted(re.findall(r'<p class="note">(.*?)</p>', page.text)) == sorted(told)
    bare = client.post("/import", data={**form, "name": "bare", "pictures": ""}).text
    assert "import the table again, with the folder or zip of its pictures" in bare
    assert "DIR" not in bare


def test_a_table_becomes_a_benchmark(client: TestClient, folder: Path) -> None:
    form = {"table": NEGATED, "name": "pasted", "subset": "kind", "image": "", "pictures": ""}
    assert "60 of 60 items" in client.post("/import", data=form).text
    columns = {"positive": "caption", "negative": "odd"}
    tabbed = {**form, **columns, "name": "tabbed", "table": NEGATED.replace(",", "\t").replace("foil", "odd")}
    assert client.post("/import", data=tabbed).url.params["name"] == "tabbed"
    assert load(folder / "tabbed").item("negate", "7").captions == ("Dog 7 sleeps.", "Dog 7 does not sleep.")
    wrong = ({"table": "a,b\n1,2\n"}, {"table": ""}, {"pictures": "../.."}, {"name": "../out"}, {"name": "pasted"})
    for change in wrong:
        refused = client.post("/import", data={**form, "name": "other", **change})
        assert refused.status_code == 400, change
        assert "/tmp" not in refused.text


def test_messages_speak_of_the_chosen_file_and_of_the_fields_of_the_page(client: TestClient) -> None:
    for table, said in (
        (
            "a,b\n1,2\n",
            "my.csv: no column name says which column has the true captions; fill in “Columns of true captions",
        ),
        ("caption,foil\n1,2,3\n", "my.csv:2: has 3 cells, expected 2"),
        ("caption,subset,id\n,a,1\n", "my.csv: contains no row with a caption"),
    ):
        form = {"table": table, "file": "my.csv", "name": "odd"}
        for answer in (client.post("/import", data={**form, "then": "preview"}), client.post("/import", data=form)):
            assert said in answer.text
            assert "`" not in answer.text.partition("<code>")[0]
    cut = client.post("/import", data={"then": "preview", "cut": "yes", "table": NEGATED}).text
    assert "60 items in the first rows; all rows are imported." in cut


def test_pictures_without_a_column_are_said(client: TestClient, folder: Path) -> None:
    form = {"table": "Bild,caption,foil\n1.png,a dog,a cat\n", "name": "new", "pictures": "mine"}
    said = "no item has a picture: name their column in the import form (“Column of the picture”)"
    assert said in client.post("/import", data={**form, "then": "preview"}).text
    assert said in client.post("/import", data=form).text
    assert "no item has" not in client.post("/import", data={**form, "name": "b", "image": "Bild"}).text


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def form(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """The import form of an empty studio in a browser; `page.posted` lists the forms and pictures that it sent."""
    sock = listen(0)
    server = uvicorn.Server(uvicorn.Config(make_studio(tmp_path, "the-token"), log_level="error"))
    running = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    running.start()
    while not server.started:
        time.sleep(0.01)
    here = f"http://127.0.0.1:{sock.getsockname()[1]}"
    page = chromium.new_page()
    page.set_default_timeout(90_000)
    page.posted = []

    def note(request: Any) -> None:
        if request.method == "POST" and b"then=preview" not in (request.post_data_buffer or b""):
            page.posted.append(request)

    page.on("request", note)
    page.goto(f"{here}/?token=the-token")
    yield page
    page.close()
    server.should_exit = True
    running.join()


TABLE = "Bild;caption;foil\n1.png;Ein Hündchen läuft.;Ein Kätzchen läuft.\nb/2.png;Süß.;Sauer.\n"


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    """A folder with a table as spreadsheets in western Europe write it, and its pictures."""
    (tmp_path / "from" / "b").mkdir(parents=True)
    (tmp_path / "from" / "Sätze.csv").write_bytes(TABLE.encode("cp1252"))
    for name in ("1.png", "b/2.png"):
        Image.new("RGB", (9, 9)).save(tmp_path / "from" / name)
    return tmp_path / "from"


@pytest.mark.slow
def test_one_press_imports_the_table_and_the_pictures_of_a_folder(form: Any, dropped: Path, tmp_path: Path) -> None:
    form.set_input_files("[data-folder]", dropped)
    form.wait_for_selector("#preview th:has-text('foil')")
    assert "Sätze.csv and 2 pictures. Sätze.csv is not UTF-8: it was read as Windows-1252" in form.inner_text("#taken")
    assert "no item has a picture" in form.inner_text("#preview")
    form.fill("[name=negative]", "fail")
    form.click("button:has-text('Import')")  # refused: the pictures are not sent again with the next press
    form.wait_for_selector(".problem[role]:has-text('Sätze.csv: unknown column')")
    form.fill("[name=negative]", "foil")
    form.fill("[name=positive]", "caption")
    form.fill("[name=image]", "Bild")
    form.click("button:has-text('Import')")
    form.wait_for_url("**/items?**imported=1")
    assert sorted(r.url.partition("image=")[2] for r in form.posted) == ["", "", "1.png", "b%2F2.png"]
    bench = load(tmp_path / "Sätze")
    assert [item.captions[0] for item in bench] == ["Ein Hündchen läuft.", "Süß."]
    assert [open_image(bench.images, name).size for item in bench for name in item.images] == [(9, 9)] * 2


@pytest.mark.slow
def test_a_file_that_is_not_text_is_refused_with_a_sentence(form: Any, dropped: Path) -> None:
    form.set_input_files("[data-into=table]", dropped / "1.png")
    form.wait_for_selector("#taken:has-text('1.png is not a text file. Choose a CSV, TSV or JSON-lines file')")
    assert form.input_value("[name=table]") == form.input_value("[name=name]") == ""
    for coding in ("utf-8-sig", "utf-16"):  # written by spreadsheets, too
        (dropped / "marked.csv").write_bytes(TABLE.encode(coding))
        form.set_input_files("[data-into=table]", dropped / "marked.csv")
        form.wait_for_selector("#preview th:has-text('foil')")
        assert form.input_value("[name=table]") == TABLE
        assert form.inner_text("#taken") == ""
