"""A study of hard negatives as a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from creperie.core import DataError, UsageError
from creperie.reporting import load_study, study_in, study_page
from creperie.training import TrainingStudy, write_study


def section(html: str, key: str) -> str:
    part = re.search(rf'<section id="{key}">(.*?)</section>', html, re.DOTALL)
    return part[1]


def rows_of(html: str) -> list[list[str]]:
    """The texts of a section's table."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.DOTALL)
    return [
        [re.sub(r"<small>.*?</small>|<[^>]+>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", r)] for r in rows
    ]


def test_the_tables_hold_means_gains_and_marks(study: TrainingStudy) -> None:
    html = study_page(study)
    table = {row[0]: row[1:] for row in rows_of(section(html, "table-5"))}
    assert table["none"] == ["61.0", "50.5", "72.0"]
    assert table["negate"] == ["93.0 ▲", "50.2", "71.8"]
    gains = {row[0]: row[1:] for row in rows_of(section(html, "gains"))}
    assert gains["negate"] == ["+32.0 ▲", "-0.2", "-0.2"]
    assert "none" not in gains
    assert "<small>[+30.0, +34.0]</small>" in section(html, "gains")
    refined = rows_of(section(html, "table-10"))
    assert [row[:3] for row in refined[1:]] == [
        ["none", "without foils", "0"],
        ["negate", "template foils", "7"],
        ["negate", "refined foils", "7"],
    ]
    assert "negate <b>+32.0</b> ▲" in section(html, "answer")


def test_the_page_needs_nothing_from_elsewhere_and_escapes(study: TrainingStudy) -> None:
    html = study_page(study, title="<b>mine</b>")
    assert "&lt;b&gt;mine&lt;/b&gt;" in html
    assert "refinement: &lt;few&gt;" in html
    links = re.findall(r"""(?:src|href)=["']?([^"' >]+)""", html)
    assert all(link.startswith(("#", "data:")) for link in links)


def test_the_chart_shows_every_arm_but_the_one_compared_with(study: TrainingStudy) -> None:
    pytest.importorskip("matplotlib")
    part = section(study_page(study), "gains")
    assert 'role="img"' in part
    assert "negate, refined" in part[: part.index("</svg>")]
    assert "<svg" not in study_page(study, figures=False).split("<main>")[1]


def test_a_study_that_was_cut_off_is_shown_as_far_as_it_came(study: TrainingStudy) -> None:
    html = study_page(replace(study, sat=study.sat[:5]))
    assert "Not finished: 5 of 6 trainings" in html
    assert rows_of(section(html, "table-5"))[-1] == ["negate, refined", "66.0", "49.0", "71.0"]
    with pytest.raises(DataError, match="no training of this study is finished"):
        study_page(replace(study, sat=()))


def test_the_command_takes_a_studys_folder(study: TrainingStudy, tmp_path: Path) -> None:
    from creperie.cli.report import report

    write_study(study, tmp_path / "study")
    page = tmp_path / "page.html"
    result = CliRunner().invoke(report, [str(tmp_path / "study"), "--html", str(page), "--json"])
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.stdout)
    assert told["trainings"] == 6
    assert page.read_text() == study_page(study)
    assert load_study(tmp_path / "study" / "study.json") == study


def test_what_is_no_study_is_told(study: TrainingStudy, tmp_path: Path) -> None:
    write_study(study, tmp_path / "study")
    assert study_in([tmp_path]) is None
    with pytest.raises(UsageError, match="cannot include other files"):
        study_in([tmp_path / "study", tmp_path / "run"])
    (tmp_path / "study.json").write_text('{"arms": []}')
    with pytest.raises(DataError, match="is not a study"):
        load_study(tmp_path / "study.json")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("arms",), ["none", "negat"], "no arm 'negat'"),
        (("sat", 0, "arm"), "swap", "a result of 'swap'"),
        (("sat", 1, "values"), {}, "KeyError: 'biased negate'"),
        (("sat", 1, "values", "clean add"), "many", "'many' is not a number"),
        (("base", 0, "kinds", "clean add kind"), float("nan"), "nan is not a number"),
        (("base",), [], "no result before"),
        (("sat", 0), 7, "TypeError"),
        (("notes",), [1], "seconds or notes"),
    ],
)
def test_a_damaged_study_says_what_is_wrong(
    place: tuple[Any, ...], value: Any, said: str, study: TrainingStudy, tmp_path: Path
) -> None:
    document = json.loads(json.dumps(write_study(study, tmp_path)))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / "study.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="is not a study") as caught:
        load_study(tmp_path / "study.json")
    assert said in str(caught.value)
