"""Audits in continuous integration: comparison with a baseline, and output in the formats that CI systems read.

Audits are documents written by `creperie audit --json`. A baseline is such a document from an earlier audit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from creperie.core import Document, Json, __version__, percent, render
from creperie.metrics import holm, normal_quantile

Key = tuple[str, str, str]

#: the level at which a row counts as worse than the baseline, after Holm's correction over all rows
LEVEL = 0.05
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class WorseRow:
    """An attacker that does better on a subset than in the baseline. `before` is its accuracy in the baseline; NaN if
    the baseline has none.
    """

    subset: str
    attacker: str
    before: float
    now: float
    p: float
    choice: str = ""


@dataclass(frozen=True)
class BaselineResult:
    """The comparison of an audit with an earlier one."""

    worse: tuple[WorseRow, ...]
    better: int  #: leaks of the baseline that are gone
    unchanged: bool  #: whether the content is the same
    not_run: tuple[str, ...]  #: attackers of the baseline that were not run now

    @property
    def code(self) -> int:
        """The exit code: 0 if the audit is not worse than the baseline, 1 if it is worse. The code is 3 if this is
        unknown because some attackers of the baseline were not run.
        """
        return 1 if self.worse else 3 if self.not_run else 0

    @property
    def text(self) -> str:
        if self.worse:
            first = self.worse[0]
            before = "new" if math.isnan(first.before) else f"{percent(first.before)} % before"
            now = f"{first.attacker} on {first.subset}: {percent(first.now)} % ({before})"
            more = f", and {len(self.worse) - 1} more" if len(self.worse) > 1 else ""
            return f"worse than the baseline: {now}{more}"
        if self.not_run:
            return f"not shown: attackers of the baseline were not run ({', '.join(self.not_run)})"
        same = " (the content is the same)" if self.unchanged else ""
        gone = f"; {self.better} leaks of the baseline are gone" if self.better else ""
        return f"not worse than the baseline{same}{gone}"

    def document(self) -> Json:
        worse = [vars(row) for row in self.worse]
        return {"text": self.text, "worse": worse, "better": self.better, "not_run": list(self.not_run)}


def against_baseline(now: Document, before: Document) -> BaselineResult:
    """Compare an audit (`now`) with a baseline (`before`). Return which leaks are new and which have grown
    significantly.

    A row of an audit is the result of one attacker on one subset. It is worse if it is a leak now and its accuracy is
    significantly higher than in the baseline (one-sided z-test with standard errors from both intervals, Holm's
    correction over all rows). Leaks of subsets or attackers that the baseline lacks count as new.
    """
    old = {_key(row): row for row in before["results"]}
    shared = [row for row in now["results"] if _key(row) in old]
    p_values = holm([_p_worse(row, old[_key(row)]) for row in shared])
    worse = [
        _worse(row, old[_key(row)]["accuracy"], p)
        for row, p in zip(shared, p_values, strict=True)
        if row["leaks"] and p < LEVEL
    ]
    worse += [_worse(row, math.nan, math.nan) for row in now["results"] if row["leaks"] and _key(row) not in old]
    leaking = {_key(row) for row in now["results"] if row["leaks"]}
    gone = sum(row["leaks"] and key not in leaking for key, row in old.items())
    run = {a["name"] for a in now["attackers"]}
    not_run = tuple(a["name"] for a in before["attackers"] if a["name"] not in run)
    ordered = sorted(worse, key=lambda row: -row.now)
    return BaselineResult(tuple(ordered), gone, now["hash"] == before["hash"], not_run)


def _key(row: Document) -> Key:
    return str(row["subset"]), str(row.get("view", "")), str(row["attacker"])


def _worse(row: Document, before: float, p: float) -> WorseRow:
    return WorseRow(str(row["subset"]), str(row["attacker"]), before, float(row["accuracy"]), p, str(row["choice"]))


def _p_worse(now: Document, before: Document) -> float:
    """Return the one-sided p-value of the increase in an attacker's accuracy from `before` to `now`. Return 1 if it did
    not increase.
    """
    values = (now["accuracy"], before["accuracy"], now["low"], now["high"], before["low"], before["high"])
    if any(v is None for v in values):
        return 1.0
    difference = now["accuracy"] - before["accuracy"]
    if difference <= 0:
        return 1.0
    width = 2 * normal_quantile(0.975)
    spread = math.hypot((now["high"] - now["low"]) / width, (before["high"] - before["low"]) / width)
    return 0.0 if spread == 0 else 0.5 * math.erfc(difference / spread / math.sqrt(2))


# -- formats of CI systems -------------------------------------------------------------------------------------------


def _failing(audit: Document, result: BaselineResult | None) -> set[tuple[str, str]]:
    """Return the (subset, attacker) pairs that fail. Without a baseline, all leaks fail. With a baseline, only the
    leaks that are new or worse fail.
    """
    if result is not None:
        return {(row.subset, row.attacker) for row in result.worse}
    return {(row["subset"], row["attacker"]) for row in audit["results"] if row["leaks"]}


def junit_xml(audit: Document, result: BaselineResult | None = None) -> str:
    """Return JUnit XML with one test case per subset and attacker. A leak is a failure. With a baseline (`result`),
    only a leak that is new or worse than in the baseline is a failure. Attackers that were not run are marked as
    skipped.
    """
    from xml.etree import ElementTree

    failing = _failing(audit, result)
    not_sent = _not_run(audit)
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=f"creperie audit {audit['benchmark']}",
        tests=str(len(audit["results"]) + len(not_sent)),
        failures=str(sum((row["subset"], row["attacker"]) in failing for row in audit["results"])),
        errors="0",
        skipped=str(len(not_sent)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("verdict", "text", "next"):
        ElementTree.SubElement(properties, "property", name=name, value=str(audit.get(name, "")))
    for row in audit["results"]:
        case = ElementTree.SubElement(suite, "testcase", classname=f"audit.{row['subset']}", name=str(row["attacker"]))
        if (row["subset"], row["attacker"]) in failing:
            message = _leak_text(row)
            ElementTree.SubElement(case, "failure", message=message, type="leak").text = message
    for name, why in not_sent.items():
        case = ElementTree.SubElement(suite, "testcase", classname="audit", name=name)
        ElementTree.SubElement(case, "skipped", message=str(why))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def sarif_log(audit: Document, place: str, result: BaselineResult | None = None) -> str:
    """Return SARIF 2.1.0 with one result per leak and one rule per attacker. `place` is the benchmark's path relative
    to the repository. With a baseline (`result`), leaks that are not worse have the level "note".
    """
    failing = _failing(audit, result)
    rules = [
        {"id": a["name"], "shortDescription": {"text": f"chooses {a['prefers']}" if a.get("prefers") else a["name"]}}
        for a in audit["attackers"]
    ]
    leaks = []
    for row in audit["results"]:
        if not row["leaks"]:
            continue
        key = f"{row['subset']}/{row['attacker']}"
        worse = (row["subset"], row["attacker"]) in failing
        entry: Json = {
            "ruleId": row["attacker"],
            "level": "error" if worse else "note",
            "message": {"text": _leak_text(row)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": place}}}],
            "partialFingerprints": {"creperieLeak/v1": key},
        }
        if result is not None:
            entry["baselineState"] = "new" if worse else "unchanged"
        leaks.append(entry)
    driver = {"name": "creperie", "version": __version__, "rules": rules}
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": leaks}]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def markdown_summary(audit: Document, result: BaselineResult | None = None) -> str:
    """Return a summary for a pull request: the verdict, the leaks, and what was not run."""
    verdict = str(audit["verdict"]) if result is None else {0: "clean", 1: "leaks"}.get(result.code)
    return render(
        "reporting",
        "summary.md",
        mark={"clean": "✅", "leaks": "❌"}.get(verdict or "", "⚠️"),
        audit={"next": "", **audit},
        result=result,
        worse=_failing(audit, result) if result else (),
        leaking=sorted((row for row in audit["results"] if row["leaks"]), key=lambda row: -row["accuracy"]),
        not_run=_not_run(audit),
        cell=_cell,
    )


def badge_svg(audit: Document) -> str:
    """Return a badge with the verdict. If there is a leak, it also has the accuracy of the best blind attacker."""
    verdict = str(audit["verdict"])
    leaking = [row["accuracy"] for row in audit["results"] if row["leaks"]]
    says = f"leaks, {percent(max(leaking), 0)} %" if verdict == "leaks" and leaking else verdict
    colour = {"clean": "#1f7a4d", "leaks": "#c43a24"}.get(verdict, "#9a6700")
    return render("reporting", "badge.svg", says=says, colour=colour, wide=12 + round(6.6 * len(says)))


def _not_run(audit: Document) -> Mapping[str, str]:
    attackers = audit.get("not_sent") or audit.get("not_run") or {}
    return attackers if isinstance(attackers, Mapping) else dict.fromkeys(map(str, attackers), "not run")


def _leak_text(row: Document) -> str:
    value = f"{percent(row['accuracy'])} % [{percent(row['low'])}, {percent(row['high'])}] of {row['n']:,} items"
    return f"{row['attacker']} is right without the image on {row['subset']}: {value}; it chooses {row['choice']}"


def _cell(value: object) -> str:
    """Return a value as text, escaped for a cell of a Markdown table."""
    return " ".join(escape(str(value), quote=False).split()).replace("|", "\\|")
