"""`creperie sensitivity`: prompts and orders that should not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from creperie.cli.output import Answer, answers, bar, print_table, say

if TYPE_CHECKING:
    from creperie.scoring.sensitivity import Sensitivity

SHOWN = 5


@click.command()
@click.argument("benchmark", metavar="BENCH")
@click.option("--model", "-m", required=True, metavar="URI", help="A vlm: or api: model with ?score=.")
@click.option("--prompts", default="", help="Prompts by id or file#id, joined by commas; by default all of the kind.")
@click.option("--images", type=click.Path(exists=True), help="Folder, zip, tar or Parquet with the images.")
@click.option("--subset", "subsets", multiple=True, help="Only these subsets, by comma or repeated.")
@click.option("--limit", type=click.IntRange(1), help="At most N items of every subset.")
@click.option("--device", default="auto", show_default=True)
@click.option("--dtype", default="float32", show_default=True)
@answers
def sensitivity(
    benchmark: str,
    model: str,
    prompts: str,
    images: str | None,
    subsets: tuple[str, ...],
    limit: int | None,
    **how: str,
) -> Answer:
    """How much a model's answers depend on the wording of the prompt and on the order of the options.

    creperie sensitivity out/world --model "vlm:NAME?score=choice"
    """
    from creperie.cli.score import _bench, _listed
    from creperie.scoring.score import Options
    from creperie.scoring.sensitivity import sensitivity as measure

    bench = _bench(benchmark, images, _listed(subsets), limit, None)
    options = Options(device=how["device"], dtype=how["dtype"])
    found = measure(bench, model, prompts=_listed((prompts,)), options=options, progress=bar)
    return Answer(found.document(), lambda: _show(found))


def _show(found: Sensitivity) -> None:
    from rich.markup import escape

    from creperie.cli.score import percent

    say(f"[bold]{escape(found.benchmark)}[/bold]  {escape(found.model)}")
    subsets = list(dict.fromkeys(r.subset for r in found.rows if r.subset != "all")) + ["all"]
    cells = {(r.prompt, r.order, r.subset): r for r in found.rows}
    ways = list(dict.fromkeys((r.prompt, r.order) for r in found.rows))
    columns = ["prompt", "order", *subsets, "unreadable"]
    rows = []
    for way in ways:
        own = [cells.get((*way, s)) for s in subsets]
        unread = f"{own[-1].unread:,}" if own[-1] else ""
        rows.append([*way, *[percent(r.accuracy) if r else "" for r in own], unread])
    rows += [
        [f"spread over {name}", "", *[percent(found.spread(s)[key]) for s in subsets], ""]
        for name, key in (("prompts", "prompts"), ("orders", "orders"), ("all", "all"))
    ]
    print_table("", columns, rows, right=columns[2:])
    for b in found.biases:
        shown = ", ".join(f"{percent(c)} (right {percent(r)})" for c, r in zip(b.chosen, b.right, strict=True))
        none = f"; none or unreadable {percent(b.none)}" if b.none else ""
        say(f"position bias of {escape(b.prompt)}, {b.options} options: {shown}{none}; distance {percent(b.distance)}")
    say("[dim]accuracy in %; a spread is the largest minus the smallest accuracy[/dim]")
    if found.unread:
        say(f"[yellow]unparsable-answer[/yellow]: {len(found.unread):,}")
        for one in found.unread[:SHOWN]:
            say(f"  {escape(one['prompt'])} {one['order']}: {escape(one['why'])}: {escape(repr(one['answer'][:100]))}")
