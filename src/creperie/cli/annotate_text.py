"""The text output of `creperie annotate`."""

from __future__ import annotations

from collections.abc import Sequence

from creperie.cli.output import print_table, say
from creperie.core import Json, called, counted, decimal


def show_studies(studies: Sequence[Json]) -> None:
    rows = [
        [s["study"], s["task"], called(s["place"], s["benchmark"]), s["state"], f"{s['done']} / {s['slots']}"]
        for s in studies
    ]
    print_table(["study", "task", "benchmark", "state", "answers"], rows)


def show_overview(seen: Json) -> None:
    say(f"[bold]{seen['study']}[/] ({seen['task']}, {seen['state']}): {seen['done']} of {seen['slots']} answers")
    rows = [[s["subset"], s["done"], s["slots"]] for s in seen["subsets"]]
    print_table(["subset", "done", "of"], rows)
    people = []
    for a in seen["annotators"]:
        attention = f"{a['attention_passed']} / {a['attention_asked']}"
        figures = (decimal(a["median_seconds"], 1), attention, decimal(a["competence"], 2))
        people.append([a["annotator"], a["answers"], a["skipped"], *figures, "; ".join(a["flags"])])
    print_table(["annotator", "answers", "skipped", "median s", "attention", "accuracy", "flags"], people)
    if seen["without_accuracy"]:
        say("no accuracy: too few answers that can be compared with those of others or with known ones")
    show_agreement(seen["agreement"], seen["disagreements"])
    if seen["rule_breakers"]:
        say("people who break the study's rules, so that `annotate apply` refuses:")
        show_breakers(seen["rule_breakers"], seen["missing_without_them"])
        say(f"next: creperie annotate exclude {seen['study']} --rules")


def show_agreement(rows: Sequence[Json], disagreements: int) -> None:
    if not rows:
        say("no agreement yet: it needs two annotators who answered the same questions")
        return
    cells = []
    for r in rows:
        interval = f"{decimal(r['low'])} to {decimal(r['high'])}"
        cells.append([r["dimension"], r["kind"], r["who"], decimal(r["value"]), interval, r["n"]])
    print_table(["about", "coefficient", "who", "value", "95 % interval", "questions"], cells)
    say(f"{counted(disagreements, 'question')} with different answers")


def show_breakers(breakers: Sequence[Json], missing: int) -> None:
    """Print which annotators break the rules of a study, and how many answers would be lost by excluding them."""
    for one in breakers:
        say("  {}: {}", one["annotator"], one["why"])
    say(f"without them {counted(missing, 'answer')} would be missing")


def show_applied(document: Json) -> None:
    if breakers := document.get("rule_breakers"):
        names = ", ".join(breakers)
        say("[bold]applied as is[/]: the answers of {}, who break the study's rules, count", names)
    if "kept" in document:
        say(f"{document['kept']} items kept, {document['removed']} removed")
        for fate, n in document["fates"].items():
            say(f"  {n} {fate}")
    if document.get("table"):
        rows = [[decimal(v, 2) if isinstance(v, float) else v for v in row.values()] for row in document["table"]]
        print_table(list(document["table"][0]), rows)
    if "results" in document:
        rows = [
            [r["model"], r["task"], r["subset"], r["n"], decimal(r["accuracy"])]
            for r in document["results"]
            if r["subset"] == "all"
        ]
        print_table(["run", "task", "subset", "n", "accuracy"], rows)
    say(f"from the record with digest {document['export']}")
    for path in [document["folder"], *document["written_runs"]]:
        if path:
            say(f"written: {path}")
