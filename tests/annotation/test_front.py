"""Studies from Python, as in a notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from creperie.annotation import create_study, import_answers, open_study
from creperie.annotation.schema import Question
from creperie.bench import Benchmark


def test_a_study_from_a_notebook(bench: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREPERIE_PEOPLE_DB", raising=False)
    folder = Path(bench.images.location).parent
    study = create_study(folder, subsets=["pair"], overlap=1, practice=0)
    assert (tmp_path / "creperie-people.db").is_file()
    assert repr(study) == "Study('foil-check', foil-check, open, 0 of 16 answers)"
    assert "annotator" in study.to_pandas().columns  # before the first answer, too
    assert len(study.invite(2, url="https://x.example")) == 2
    with study.db.read() as session:
        first = session.scalars(select(Question).order_by(Question.ordinal)).first()
    assert first is not None
    row = {"question": first.ordinal, "subset": first.subset, "id": first.item, "annotator": "a", "event": "answer"}
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({**row, "key": "k", "value": {"verdict": "true"}}), encoding="utf-8")
    import_answers(study.db, study.name, path)
    assert "1 of 16 answers" in repr(open_study("foil-check"))
    assert "<td>pair</td><td>1</td><td>16</td>" in study._repr_html_()
    table = study.to_pandas()
    assert list(table["annotator"]) == ["a"]
    assert study.overview()["done"] == 1
    assert study.apply("v2")["removed"] == 1
    assert create_study(bench, "choose-caption", name="by-object", db=study.db).name == "by-object"
