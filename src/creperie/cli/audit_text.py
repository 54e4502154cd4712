"""The text output of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from creperie.cli.output import print_table, say
from creperie.core import as_flags

if TYPE_CHECKING:
    from creperie.auditing import Audit, Judgement, PairwiseRow

COLOURS = {"leaks": "red", "anti-learned": "red", "nothing left": "red", "clean": "green"}  #: others are yellow
MOST_CUES = 6
AROUND = 16  #: characters of a caption shown before a cue
TAILS = ("trailing blank", "no final period")  #: cues at the end of a caption


def show_audit(audit: Audit, html: Path | None) -> None:
    """Print the verdict, the table of attackers, and the cues through which the benchmark leaks."""
    missing = audit.items - audit.attackable
    chance = f"{missing:,} have no true–false pair" if missing else "chance is 50 %, ties count half"
    say(f"[bold]{escape(audit.name)}[/bold]: {audit.items:,} items, attacked blindly; {chance}")
    if audit.symmetry and audit.symmetry[-1].images.pairs:
        say(f"symmetry: {escape(audit.symmetry[-1].words)}")
    if audit.whole.power:
        say(f"[dim]{escape(audit.whole.power)}[/dim]")
    say()
    _attack_table(audit)
    say()
    for judgement in audit.judgements if len(audit.judgements) > 1 else ():
        colour = COLOURS.get(judgement.verdict, "yellow")
        say(f"[bold]{escape(judgement.subset)}[/bold] [{colour}]{escape(judgement.text)}[/]")
    say()
    _cue_table(audit)
    _likeness_table(audit)
    for reason in dict.fromkeys(audit.not_sent.values()):
        names = ", ".join(name for name, why in audit.not_sent.items() if why == reason)
        say(f"not run: {escape(names)}: {escape(as_flags(reason))}")
    if html:
        say(f"page: {escape(str(html))}")
    show_verdict(audit.whole, audit.next)


def show_verdict(judgement: Judgement, next: str) -> None:
    """Print the sentence of the verdict, then the command to run next. They are the last two lines of a command's
    output.
    """
    say(f"[bold {COLOURS.get(judgement.verdict, 'yellow')}]verdict: {escape(judgement.text)}[/]")
    say(f"next: {escape(next)}")


def _attack_table(audit: Audit) -> None:
    """Print a table with one row per subset and one column per attacker. A star marks a leak."""
    names = [a.name for a in audit.attackers]
    cells = {(r.view, r.subset, r.attacker): r for r in (*audit.rows, *audit.views)}
    rows = []
    for view, subset in dict.fromkeys((r.view, r.subset) for r in (*audit.rows, *audit.views)):
        mine = [cells.get((view, subset, name)) for name in names]
        ran = [r for r in mine if r]
        best = max(ran, key=lambda r: (r.leaks or not r.cue, r.measure.accuracy, r.attacker == "ensemble"))
        label, most = f"{subset} {view}".strip(), max(r.measure.n for r in ran)
        bits = max(r.measure.bits for r in ran)
        shown = [f"{100 * r.measure.accuracy:.1f}{'*' if r.leaks else ' '}" if r else "–" for r in mine]
        interval = f"{100 * best.measure.low:.1f}–{100 * best.measure.high:.1f}"
        rows.append([label, most, *shown, interval, f"{bits:.2f}"])
        fewer = [f"{r.measure.n:,} " if r and r.measure.n < most else "" for r in mine]
        if any(fewer):
            rows.append(["  on", "", *fewer, best.measure.n, ""])
    heads = [name.replace("-", "\n", 1) for name in names]
    print_table(
        ["subset", "n", *heads, "headline\n95 %", "bits"],
        rows,
        title="Blind accuracy, % (* leaks)",
    )


def _cue_table(audit: Audit) -> None:
    rows = []
    for subset, cues in audit.cues.items():
        for cue, example in cues[:MOST_CUES]:
            caption = example.positive if cue.positives >= cue.negatives else example.negative
            start = len(caption) - AROUND if cue.text in TAILS else caption.lower().find(cue.text) - AROUND // 2
            caption = "…" + caption[start:] if start > 0 else caption
            shown = cue.text if cue.kind == "style" else f"“{cue.text}”"
            counts = [cue.positives, cue.negatives, f"{100 * cue.accuracy:.1f}"]
            rows.append([subset, shown, *counts, repr(caption)])
    if rows:
        columns = ["subset", "cue", "in true", "in false", "alone, %", "for example"]
        print_table(columns, rows, brief="for example", title="What tells true from false captions")
        say()


def _likeness_table(audit: Audit) -> None:
    rows = []
    measures = list(dict.fromkeys(m for a in audit.likeness for c in a.couples for m in c.measures))
    for alike in audit.likeness:
        for couple in alike.couples:
            values = [couple.measures.get(m) for m in measures]
            rows.append([alike.subset, couple.kind, *[f"{v.mean:.3f}" if v and v.n else "–" for v in values]])
    if rows:
        print_table(["subset", "pair", *measures], rows, title="How alike captions are (mean)")
        say()


def show_comparison(first: str, second: str, rows: Sequence[PairwiseRow]) -> None:
    """Print a comparison of two benchmarks as in Table 4 of SugarCrepe. For each score, such as fluency, it has the
    mean over the foils of each benchmark, and how often the second benchmark's foil scores better.
    """
    columns = ["kind", "score", "n", first, second, f"{second} better, %", "95 %", "ties"]
    print_table(
        columns,
        [
            [r.kind, r.attacker, r.n, f"{r.first:.3f}", f"{r.second:.3f}", f"{100 * r.better:.1f}"]
            + [f"{100 * r.low:.1f}–{100 * r.high:.1f}", r.ties]
            for r in rows
        ],
        title="Negatives of the same source, pairwise",
    )
