"""Draw the pictures of the studio, the report and a study for docs/images: rendered worlds, toy models, no photograph.

python research/studio_pictures.py     (needs Chromium and playwright; about two minutes)
"""

from __future__ import annotations

import hashlib
import io
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from creperie.annotation import (
    Site,
    StudyPlan,
    create_app,
    database_place,
    invite,
    local_owner_link,
    open_database,
    store_study,
)
from creperie.auditing import audit, audit_document
from creperie.bench import load, record_audit
from creperie.models.protocols import Fingerprint
from creperie.reporting import make_studio
from creperie.scoring.matrix import score_all

OUT = Path(__file__).resolve().parent.parent / "docs" / "images"
TOKEN = "pictures"
CAPTIONS = """A black dog chases a white cat across the grass.
Two men sit on a red bench beside a small fountain.
A woman in a blue coat gives a boy an umbrella.
A yellow bus is parked behind a brown horse.
"""


TABLE = (
    "A dog chases a cat.,A cat chases a dog.,swap",
    "A red bench stands by a fountain.,A blue bench stands by a fountain.,replace",
    "Two men carry a ladder.,Three men carry a ladder.,count",
)


class Toy:
    """A model that prefers true captions now and then: by `skill`, and by a hash of the caption."""

    def __init__(self, name: str, skill: float, true: set[str]) -> None:
        self.name, self.skill, self.true = name, skill, true
        self.fingerprint = Fingerprint(uri=f"toy:{name}", architecture="Toy", weights=f"{name} {skill}")

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256((self.name + text).encode()).digest()[:8], "little")
            rows.append([1.0, 0.1 * np.random.default_rng(seed).normal() + 0.1 * self.skill * (text in self.true)])
        vectors = np.array(rows, np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_images(self, images: Sequence[Any]) -> np.ndarray:
        return np.tile(np.array([[0.6, 0.8]], np.float32), (len(images), 1))


def prepare(folder: Path) -> None:
    """Write two worlds, runs of three toys, and audits."""
    for name, kinds in (("world-clean", "clean"), ("world-biased", "all")):
        line = f"world make --out {folder / name} --name {name} --items 40 --kinds {kinds} --size 192"
        subprocess.run([sys.executable, "-m", "creperie", *line.split()], check=True, capture_output=True)
        bench = load(folder / name)
        true = {c for item in bench for k, c in enumerate(item.captions) if any(row[k] for row in item.match)}
        true -= {c for item in bench for k, c in enumerate(item.captions) if not any(row[k] for row in item.match)}
        toys: list[Any] = [Toy("careful", 1.2, true), Toy("hasty", 0.8, true), Toy("guessing", 0.1, true)]
        score_all([folder / name], toys, out=folder / "runs")
        found = audit(bench, ["length-words", "length-chars", "surface", "negation", "frequency"])
        record_audit(folder / name, audit_document(found, folder / name))


def served(app: Any) -> str:
    """Serve an application in a thread until the process ends; return its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def looked_at(page: Any) -> Image.Image:
    page.wait_for_timeout(900)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def write(picture: Image.Image, name: str, scale: float = 0.6) -> None:
    small = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.LANCZOS)
    small.save(OUT / f"{name}.webp", quality=60, method=6)


def shoot(page: Any, name: str) -> None:
    write(looked_at(page), name)


def draw_studio(page: Any, base: str) -> None:
    """Draw the studio's pages, and the report."""
    page.goto(f"{base}/?token={TOKEN}")
    shots = {
        "studio-start": "benchmarks",
        "studio-items": "items?name=world-clean&at=swap_obj/00003",
        "studio-audit": "audit?name=world-biased",
        "studio-compare": "compare",
        "studio-runs": "runs",
        "studio-plot": "plot",
        "studio-search": "search?words=umbrella",
        "studio-item": "item?name=world-clean&subset=swap_obj&id=00003",
        "audit-page": "share?name=world-biased",
        "studio-studies": "studies",
        "report-summary": "report?bench=world-clean",
    }
    for name, address in shots.items():
        page.goto(f"{base}/{address}")
        shoot(page, name)
    page.evaluate("document.getElementById('items').scrollIntoView()")
    shoot(page, "report-items")
    page.goto(f"{base}/benchmarks#import")
    page.fill(
        "[name=table]", "\n".join(["picture,text,foil,kind", *(f"{k}.jpg,{line}" for k, line in enumerate(TABLE))])
    )
    page.fill("[name=positive]", "text")
    page.fill("[name=negative]", "foil")
    page.fill("[name=image]", "picture")
    page.wait_for_selector("#preview .picture")
    page.evaluate("document.getElementById('import').scrollIntoView()")
    shoot(page, "studio-import")
    page.goto(f"{base}/make")
    page.fill("textarea", CAPTIONS)
    page.click("button:has-text('Show foils')")
    page.wait_for_selector("#accepted b")
    shoot(page, "studio-make")
    page.goto(f"{base}/audit?name=world-biased")
    page.click(".verdict button:has-text('honest')")
    page.goto(f"{base}/jobs")
    shoot(page, "studio-jobs")


def draw_study(browser: Any, folder: Path, db: Any) -> None:
    """Draw what an owner sees, and what an annotator sees on a desk and on a phone."""
    address = served(create_app(Site(db)))
    for phone in (False, True):
        size = {"width": 375, "height": 667} if phone else {"width": 1280, "height": 800}
        own = browser.new_page(viewport=size, has_touch=phone, is_mobile=phone)
        own.goto(invite(db, "foils", 1)[0].link(address))
        views = [looked_at(own)]
        own.get_by_role("button", name="Start").click()
        own.locator("#stage").wait_for()
        views.append(looked_at(own))
        for _ in range(12):
            own.locator("#fields .option").first.click()
            own.click("#send")
            own.wait_for_timeout(1500)
            if own.locator("#go-on").is_visible():
                views.append(looked_at(own))
                own.click("#go-on")
                own.wait_for_timeout(250)
        if not phone:
            write(views[1], "people-work")
            continue
        strip = Image.new("RGB", (sum(view.width + 20 for view in views), views[0].height), "white")
        for k, view in enumerate(views):
            strip.paste(view, (k * (view.width + 20), 0))
        write(strip, "people-phone", 0.7)
    owner = browser.new_page(viewport={"width": 1280, "height": 860})
    owner.goto(f"{address}/join/{local_owner_link(db)}")
    owner.goto(f"{address}/owner/studies/foils")
    shoot(owner, "people-dashboard")
    owner.goto(f"{address}/owner/studies/foils/settings")
    shoot(owner, "people-settings")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, sync_playwright() as playwright:
        folder = Path(place).resolve() / "my-project"  # its name is on every page
        folder.mkdir()
        os.chdir(folder)  # commands on the pages name paths within it
        prepare(folder)
        db = open_database(database_place(folder))
        store_study(db, "foils", load(folder / "world-clean"), StudyPlan("foil-check", practice=1, per_annotator=20))
        opened = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = opened.new_page(viewport={"width": 1280, "height": 860})
        page.set_default_timeout(120_000)  # a busy machine loads the grammar for long
        draw_studio(page, served(make_studio(folder, TOKEN)))
        draw_study(opened, folder, db)
        opened.close()
