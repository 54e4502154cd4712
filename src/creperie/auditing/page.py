"""An audit as one HTML page: no script, nothing fetched, readable on a phone, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from creperie.auditing.cues import Cue
from creperie.auditing.gapshape import GapShape
from creperie.auditing.likeness import Likeness
from creperie.auditing.run import ALL, Audit, ExamplePair
from creperie.auditing.symmetry import Symmetry
from creperie.auditing.verdict import AuditRow, Judgement
from creperie.core import write_text

_BLANKS = re.compile(r"^[ \t]+|[ \t]+$|[ \t]{2,}")
_WORDS = {
    "leaks": "Leaks",
    "anti-learned": "Anti-learned",
    "clean": "Clean",
    "not shown": "Not shown",
    "incomplete": "Incomplete",
    "unsolvable": "Unsolvable items",
}


def write_audit_page(found: Audit, path: Path) -> None:
    """Write the page; it appears completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(found))


def page(found: Audit) -> str:
    """The whole page."""
    style = files("creperie.auditing").joinpath("page.css").read_text(encoding="utf-8")
    body = [
        f"<h1>Audit of {escape(found.name)}</h1>",
        _verdict(found),
        "<h2>Blind accuracy</h2>",
        _heat(found),
        "<p class=soft>Percent of true–false pairs that an attacker without images gets right, ties half, with 95 % "
        "interval; chance is 50. * leaks: better than chance after correction for all cells, and above "
        f"{100 * found.threshold:g} %.</p>",
        _symmetry(found.symmetry),
        *[_subset(found, judgement) for judgement in found.judgements],
        _footer(found),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Audit of {escape(found.name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _verdict(found: Audit) -> str:
    whole = found.whole
    about = f"{found.items:,} items, {len(found.judgements)} subsets"
    if whole.balanced:
        about += f", {whole.balanced:,} of them balanced by design"
    if found.items - found.attackable:
        about += f", {found.items - found.attackable:,} without a true–false pair"
    return (
        f'<div class="verdict {_css(found.verdict)}"><strong>{_WORDS[found.verdict]}</strong>'
        f"<p>{escape(_sentence(whole.text))}</p><p class=soft>{about}; {escape(whole.power)}</p></div>"
    )


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _symmetry(found: Sequence[Symmetry]) -> str:
    """What captions alone, or images alone, could give at most."""
    if not any(s.images.pairs or s.text.mirrored for s in found):
        return ""  # one image per item and no mirrored pair: the attackers say it all
    rows = "".join(
        f"<tr><td class=text>{escape(s.subset)}</td><td>{s.items:,}</td><td>{100 * s.text.bound:.1f}</td>"
        f"<td>{100 * s.images.bound:.1f}</td><td>{len(s.broken):,}</td>"
        f"<td class=text>{'balanced by design' if s.balanced else escape(', '.join(s.broken[:3]))}</td></tr>"
        for s in found
    )
    head = (
        "<th class=text>subset</th><th>items</th><th>captions alone, at most %</th><th>images alone, at most %</th>"
        "<th>items without a mirror image</th><th class=text></th>"
    )
    return (
        "<h2>Symmetry</h2><p class=soft>The most that any model could reach that sees only captions, or only images, "
        "even one that knows all answers by heart. 50 % where every pair also stands the other way round.</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


# -- the heat table --------------------------------------------------------------------------------------------------


def _heat(found: Audit) -> str:
    names = [a.name for a in found.attackers]
    cells = {(r.view, r.subset, r.attacker): r for r in (*found.rows, *found.views)}
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = []
    for view, subset in dict.fromkeys((r.view, r.subset) for r in (*found.rows, *found.views)):
        mine = [cells.get((view, subset, name)) for name in names]
        bits = max((r.measure.bits for r in mine if r), default=0.0)
        label = escape(subset) + (f" <small>{escape(view)}</small>" if view else "")
        row = "".join(_heat_cell(r) for r in mine)
        whole = ' class="whole"' if subset == ALL else ""
        lines.append(f"<tr{whole}><th>{label}</th>{row}<td><b>{bits:.2f}</b></td></tr>")
    return (
        '<div class="scroll"><table class="heat"><thead><tr><th>subset</th>'
        f"{head}<th>bits leaked</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _heat_cell(row: AuditRow | None) -> str:
    if row is None:
        return "<td>–</td>"
    m = row.measure
    heat = max(0.0, min(1.0, (m.accuracy - 0.5) * 2)) * 0.75
    kind = ' class="leak"' if row.leaks else ""
    title = f"{row.choice}; {m.ties:,} ties of {m.pairs:,} pairs; p = {row.p_holm:.2g} after correction"
    return (
        f'<td{kind} style="--heat:{heat:.2f}" title="{escape(title)}"><b>{100 * m.accuracy:.1f}</b>'
        f"<small>{100 * m.low:.0f}–{100 * m.high:.0f}</small></td>"
    )


# -- one subset ------------------------------------------------------------------------------------------------------


def _subset(found: Audit, judgement: Judgement) -> str:
    subset = judgement.subset
    badges = [_WORDS[judgement.verdict], *([judgement.fix] if judgement.fix else [])]
    parts = [
        f'<article class="{_css(judgement.verdict)}"><header><h2>{escape(subset)}</h2>',
        *[f'<span class="badge">{escape(b)}</span>' for b in badges],
        f"<small>{judgement.items:,} items</small></header><p>{escape(_sentence(judgement.text))}</p>"
        f"<p class=soft>{escape(_sentence(judgement.power))}</p>",
        _leaks(judgement.through),
        _cues(found.cues.get(subset, [])),
        _examples(judgement, found.examples.get(subset, [])),
        _shapes(found.shapes.get(subset, {})),
        *[_alike(alike) for alike in found.likeness if alike.subset == subset],
        "</article>",
    ]
    return "\n".join(part for part in parts if part)


def _leaks(rows: Sequence[AuditRow]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr><td class=text>{escape(' on '.join(filter(None, (r.attacker, r.view))))}<br><small>"
        f"{escape(r.choice)}</small></td><td>{100 * r.measure.accuracy:.1f}</td><td>{_percent(r.repaired)}</td>"
        f"<td>{_percent(r.kept)}</td><td>{r.measure.bits:.2f}</td><td class=text>{escape(r.fix)}</td></tr>"
        for r in rows
    )
    head = (
        "<th class=text>attacker, and what it chooses</th><th>right, %</th><th>in one style, %</th>"
        "<th>kept if balanced, %</th><th>bits</th><th class=text>so it is</th>"
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _cues(cues: Sequence[tuple[Cue, ExamplePair]]) -> str:
    if not cues:
        return ""
    body = "".join(
        f"<tr><td class=text>{_cue_name(cue)}</td><td>{cue.positives:,}</td><td>{cue.negatives:,}</td>"
        f"<td>{100 * cue.accuracy:.1f}</td><td class='text caption'>{_shown(_told(cue, example), cue)}</td></tr>"
        for cue, example in cues
    )
    head = (
        "<th class=text>cue</th><th>only in true</th><th>only in false</th><th>alone, %</th>"
        "<th class=text>for example</th>"
    )
    return (
        "<h3>What tells them apart</h3>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cue_name(cue: Cue) -> str:
    return escape(cue.text) if cue.kind == "style" else f"“{escape(cue.text)}”"


def _told(cue: Cue, example: ExamplePair) -> str:
    return example.positive if cue.positives >= cue.negatives else example.negative


def _shown(text: str, cue: Cue | None = None) -> str:
    """A caption, escaped, with the cue marked and stray blanks made visible."""
    pattern = _BLANKS
    if cue is not None and cue.kind == "words":
        words = r"\W+".join(re.escape(w) for w in cue.text.split())
        pattern = re.compile(f"{_BLANKS.pattern}|(?<!\\w){words}(?!\\w)", re.IGNORECASE)
    parts, last = [], 0
    for match in pattern.finditer(text):
        parts.append(escape(text[last : match.start()]))
        inner = match.group()
        parts.append(f"<mark>{'␣' * len(inner) if inner.isspace() else escape(inner)}</mark>")
        last = match.end()
    return "".join([*parts, escape(text[last:])])


def _examples(judgement: Judgement, examples: Sequence[ExamplePair]) -> str:
    if not examples or judgement.verdict != "leaks":
        return ""
    shown = "".join(
        f'<div class="pair"><p class="caption true">{_shown(e.positive)}</p>'
        f'<p class="caption false">{_shown(e.negative)}</p><small>item {escape(e.id)}</small></div>'
        for e in examples
    )
    who = judgement.strongest.attacker if judgement.strongest else ""
    return f"<h3>What {escape(who)} is surest of</h3>{shown}"


def _shapes(shapes: dict[str, GapShape]) -> str:
    drawn = "".join(_shape(name, shape) for name, shape in shapes.items() if shape.scale > 0)
    if not drawn:
        return ""
    return f"<details><summary>Distributions of the gaps</summary><div class=shapes>{drawn}</div></details>"


def _shape(name: str, shape: GapShape) -> str:
    top = max(shape.histogram, default=0) or 1
    width = 100 / len(shape.histogram)
    tall = [40 * c / top for c in shape.histogram]
    bars = "".join(
        f'<rect x="{i * width + 0.3:.2f}" y="{40 - high:.2f}" width="{width - 0.6:.2f}" height="{high:.2f}"/>'
        for i, high in enumerate(tall)
        if high
    )
    about = f"{100 * shape.positive:.0f} % above zero, {100 * shape.negative:.0f} % below; ±{shape.scale:.3g}"
    return (
        f'<figure><svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label="{escape(name)}: {about}">'
        f'{bars}<line x1="50" y1="0" x2="50" y2="40"/></svg><figcaption>{escape(name)}<br>{about}</figcaption></figure>'
    )


def _alike(alike: Likeness) -> str:
    rows = "".join(
        f"<tr><td class=text>{escape(c.kind)}</td><td class=text>{escape(name)}</td><td>{s.n:,}</td>"
        f"<td>{s.mean:.3f}</td><td>{s.quantiles[1]:.2f}–{s.quantiles[3]:.2f}</td></tr>"
        for c in alike.couples
        for name, s in c.measures.items()
        if s.n
    )
    o, d = alike.overlap, alike.doubles
    notes: Iterable[str] = (
        f"{o.positive_words:,} different words in true captions, {o.negative_words:,} in false ones, "
        f"{100 * o.shared_words:.0f} % of all shared.",
        "Of the false captions' n-grams, not in any true one: "
        + ", ".join(f"{100 * share:.0f} % of {name}" for name, share in o.only_negative.items())
        + ".",
        f"Said twice: {len(d.items):,} items, {len(d.positives):,} second positives, {len(d.negatives):,} negatives; "
        f"{d.both_roles:,} texts are true in one item and false in another.",
    )
    head = "<th class=text>pair</th><th class=text>measure</th><th>n</th><th>mean</th><th>middle half</th>"
    return (
        "<details><summary>How alike the captions are</summary>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        + "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
        + "</details>"
    )


def _footer(found: Audit) -> str:
    meaning = (
        "<b>Repairable</b>: with all captions of an item in one style the attacker no longer leaks. "
        "<b>Removable</b>: leaving items out until the cue is balanced keeps enough of them. "
        "<b>Structural</b>: that would leave less than a tenth. "
        "<b>Clean</b>: the upper limit of every attacker's interval lies below the threshold. "
        "<b>Not shown</b>: too few items to say so. <b>Anti-learned</b>: a learned attacker is surely wrong, so "
        "one that is believed the other way round would win. "
        "Learned attackers answer out of fold; folds keep shared images and shared captions together. "
        "Bits: what the attacker's calibrated probabilities give away of the one bit of an item."
    )
    missing = "".join(f"<p>Not run: {escape(n)}, {escape(why)}</p>" for n, why in found.not_sent.items())
    return (
        f"<footer><p>{meaning}</p>{missing}<p>Seed {found.seed}; content <code>{escape(found.hash)}</code></p></footer>"
    )
