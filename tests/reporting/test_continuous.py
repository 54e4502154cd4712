"""An audit in CI: red when a change makes it worse, green on an unchanged leaking baseline, in every format."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from creperie.auditing import read_audit
from creperie.bench import Item, from_items, save
from creperie.cli.audit import CiOutputs, with_ci
from creperie.cli.output import CommandResult
from creperie.reporting import (
    against_baseline,
    badge_svg,
    junit_xml,
    markdown_summary,
    sarif_log,
)

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def row(subset: str, attacker: str, accuracy: float, n: int = 400, leaks: bool = False) -> dict[str, Any]:
    half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / n)
    return {
        "subset": subset,
        "attacker": attacker,
        "n": n,
        "accuracy": accuracy,
        "low": accuracy - half,
        "high": accuracy + half,
        "leaks": leaks,
        "choice": "the shorter <caption> | first",
    }


def document(*rows: dict[str, Any], digest: str = "a", not_sent: dict[str, str] | None = None) -> dict[str, Any]:
    names = dict.fromkeys(r["attacker"] for r in rows)
    return {
        "benchmark": "mine | <b>",
        "hash": digest,
        "verdict": "leaks" if any(r["leaks"] for r in rows) else "clean",
        "text": "leaks through length",
        "attackers": [{"name": name, "prefers": "the shorter caption"} for name in names],
        "not_sent": not_sent or {},
        "results": list(rows),
        "subsets": {},
    }


LEAKING = document(row("add", "length", 0.70, leaks=True), row("swap", "length", 0.50))


def test_an_unchanged_leak_is_not_worse() -> None:
    result = against_baseline(LEAKING, LEAKING)
    assert (result.code, result.worse) == (0, ())
    assert result.text == "not worse than the baseline (the content is the same)"


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (0.72, 0),  # two points of 400 items are noise: z = 0.62
        (0.85, 1),  # fifteen are not: z = 5.2
        (0.60, 0),
    ],
)
def test_worse_means_beyond_noise(now: float, code: int) -> None:
    after = document(row("add", "length", now, leaks=True), row("swap", "length", 0.50), digest="b")
    assert against_baseline(after, LEAKING).code == code


def test_a_new_subset_that_leaks_is_worse_and_a_leak_that_is_gone_is_said() -> None:
    after = document(row("new", "length", 0.9, leaks=True), row("add", "length", 0.5), digest="b")
    result = against_baseline(after, LEAKING)
    assert result.code == 1
    assert [(w.subset, math.isnan(w.before)) for w in result.worse] == [("new", True)]
    assert result.better == 1
    assert "1 leaks of the baseline are gone" in against_baseline(document(row("add", "length", 0.5)), LEAKING).text


def test_attackers_of_the_baseline_that_did_not_run_are_not_green() -> None:
    after = document(row("add", "negation", 0.5))
    assert against_baseline(after, LEAKING).code == 3
    assert "not run (length)" in against_baseline(after, LEAKING).text


def test_a_baseline_that_is_no_audit_is_refused(tmp_path: Path) -> None:
    from creperie.core import DataError

    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="does not hold the result of an audit"):
        read_audit(tmp_path / "x.json")


def test_junit_counts_what_leaks_and_what_did_not_run() -> None:
    audit = {**LEAKING, "not_sent": {"learned": "needs <sklearn>"}}
    suite = ElementTree.fromstring(junit_xml(audit))[0]
    assert suite.attrib["tests"] == "3"
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    assert len(suite.findall("testcase")) == 3
    assert "70.0 %" in suite.findall("testcase/failure")[0].attrib["message"]
    same = ElementTree.fromstring(junit_xml(audit, against_baseline(audit, audit)))[0]
    assert same.attrib["failures"] == "0"


def test_sarif_has_what_the_standard_asks_for() -> None:
    log = json.loads(sarif_log(LEAKING, "data/mine", against_baseline(LEAKING, LEAKING)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "creperie"
    (result,) = run["results"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {result["ruleId"]}
    assert (result["level"], result["baselineState"]) == ("note", "unchanged")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "data/mine"
    assert json.loads(sarif_log(LEAKING, "x"))["runs"][0]["results"][0]["level"] == "error"


def test_markdown_and_badge_are_safe_and_say_the_verdict() -> None:
    text = markdown_summary(LEAKING)
    assert text.startswith("### ❌ Blind audit of mine \\| &lt;b&gt;")
    assert "| add | length | 70.0 % [65.5, 74.5] | 400 | the shorter &lt;caption&gt; \\| first |" in text
    assert markdown_summary(LEAKING, against_baseline(LEAKING, LEAKING)).startswith("### ✅")
    badge = ElementTree.fromstring(badge_svg(LEAKING))
    assert badge.attrib["aria-label"] == "blind audit: leaks, 70 %"
    assert "clean" in badge_svg(document(row("add", "length", 0.5)))


# -- the action ------------------------------------------------------------------------------------------------------


def bench_at(folder: Path, negated: int, items: int = 120) -> None:
    """Pairs of which the first `negated` give themselves away by a negation."""
    made = []
    for i in range(items):
        true = f"a dog sits near a cup {i}"
        foil = f"a dog does not sit near a cup {i}" if i < negated else f"a cup sits near a dog {i}"
        made.append(Item(str(i), "s", (), (true, foil), ((True, False),)))
    save(from_items("mine", made), folder, force=True)


def run_action(place: Path, **inputs: str) -> tuple[int, str]:
    """The steps of action.yml in a shell, as a runner would run them; the code, and the step's summary."""
    values = {name: about.get("default", "") for name, about in ACTION["inputs"].items()} | inputs
    script = place / "bin" / "creperie"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m creperie "$@"\n', encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    summary = place / "summary.md"
    summary.unlink(missing_ok=True)
    env = os.environ | {
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(place / "output"),
        "GITHUB_STEP_SUMMARY": str(summary),
        "CREPERIE_CACHE": str(place / "cache"),
    }
    code = 0
    for step in ACTION["runs"]["steps"]:
        if step["name"] == "Install":
            assert step["run"] == 'python -m pip install --quiet "$PACKAGE"'
            continue  # it is installed
        own = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: values[m[1]], value)
            for name, value in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=place,
            env=env | own,
            check=False,
        )
        code = done.returncode
    assert f"code={code}" in (place / "output").read_text(encoding="utf-8")
    return code, summary.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_action_is_red_on_a_leaking_change_and_green_on_a_leaking_baseline(tmp_path: Path) -> None:
    attackers = "negation,length-words"
    bench_at(tmp_path / "mine", negated=40)
    code, summary = run_action(tmp_path, bench="mine", attackers=attackers)
    assert code == 1
    assert "negation" in summary
    (tmp_path / "audit.json").write_bytes((tmp_path / "creperie-audit" / "audit.json").read_bytes())
    code, summary = run_action(tmp_path, bench="mine", attackers=attackers, baseline="audit.json")
    assert code == 0
    assert "Not worse than the baseline" in summary
    bench_at(tmp_path / "mine", negated=110)  # the pull request
    code, summary = run_action(tmp_path, bench="mine", attackers=attackers, baseline="audit.json")
    assert code == 1
    assert "Worse than the baseline: negation" in summary
    for name in ("junit.xml", "audit.sarif", "badge.svg", "audit.json"):
        assert (tmp_path / "creperie-audit" / name).stat().st_size


def test_strict_is_not_green_where_attackers_are_missing(tmp_path: Path) -> None:
    """A baseline made without the extras must not make an audit without them green."""
    lacking = {**LEAKING, "not_sent": {"learned": "it needs sklearn; pip install 'creperie[stats]'"}}
    baseline = tmp_path / "audit.json"
    baseline.write_text(json.dumps(lacking), encoding="utf-8")
    answer = CommandResult(lacking, lambda: None, code=1)
    assert with_ci(answer, CiOutputs(baseline), "mine").code == 0
    assert with_ci(answer, CiOutputs(baseline, strict=True), "mine").code == 3
    whole = {**lacking, "not_sent": {"lm-mean": "no language model: pass --lm"}}
    assert with_ci(replace(answer, document=whole), CiOutputs(baseline, strict=True), "mine").code == 0
    assert "--strict" in ACTION["runs"]["steps"][1]["run"]


def test_the_pre_commit_hooks_name_commands_that_exist() -> None:
    from creperie.cli.app import COMMANDS

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {hook["entry"].split()[1] for hook in hooks} <= set(COMMANDS)
    assert all(hook["language"] == "python" and not hook["pass_filenames"] for hook in hooks)
