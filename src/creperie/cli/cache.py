"""`creperie cache`: the store of embeddings and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from creperie.bench import size_text
from creperie.cli.app import CommandGroup
from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import Json

if TYPE_CHECKING:
    from creperie.scoring import ResultStore, StoreEntry


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def cache(ctx: click.Context, as_json: bool) -> int:
    """The store of embeddings and scores. Without a command, show what is in it.

    The store is the folder CREPERIE_CACHE or, if this is not set, XDG_CACHE_HOME/creperie or ~/.cache/creperie. If it
    grows larger than CREPERIE_CACHE_SIZE (20G by default), the least recently used entries are removed.
    """
    if ctx.invoked_subcommand is None:
        return int(ctx.invoke(show, as_json=as_json) or 0)
    return 0


@cache.command()
@answers
def show() -> CommandResult:
    """List the embeddings and scores in the store, by model."""
    from creperie.scoring import ResultStore

    store = ResultStore()
    return _answer(store, store.entries())


@cache.command()
@click.option("--model", metavar="URI", help="Only this model: its URI, or the beginning of its key.")
@answers
def clear(model: str | None) -> CommandResult:
    """Delete all embeddings and scores from the store, or those of one model."""
    from creperie.scoring import ResultStore

    store = ResultStore()
    freed = store.clear(model)
    return CommandResult({"freed": freed}, lambda: say(f"{size_text(freed)} deleted from {store.root}"))


@cache.command()
@click.option("--repair", is_flag=True, help="Rewrite the store without the damaged entries.")
@answers
def verify(repair: bool) -> CommandResult:
    """Verify all checksums. The exit code is 1 if an entry is damaged; such entries are never used, even without
    --repair.
    """
    from creperie.scoring import ResultStore

    store = ResultStore()
    if repair:
        store.repair()
    return _answer(store, store.entries(verify=True))


def _answer(store: ResultStore, entries: list[StoreEntry]) -> CommandResult:
    damaged = sum(c.damaged for e in entries for c in e.kinds.values())
    torn = sum(c.torn for e in entries for c in e.kinds.values())
    document: Json = {
        "home": str(store.home),
        "bytes": sum(e.bytes for e in entries),
        "entries": sum(e.records for e in entries),
        "damaged": damaged,
        "torn": torn,
        "models": [
            {**{k: v for k, v in vars(e).items() if k != "kinds"}, "bytes": e.bytes, "entries": e.records}
            | {"kinds": {name: vars(c) for name, c in e.kinds.items()}}
            for e in entries
        ],
    }
    return CommandResult(document, lambda: _show(store, entries, damaged, torn), ok=not damaged)


def _show(store: ResultStore, entries: list[StoreEntry], damaged: int, torn: int) -> None:
    if not entries:
        say("the store at {} is empty", str(store.root))
        return
    kinds = [k for k in ("image", "text", "pair", "joint", "between", "blind") if any(k in e.kinds for e in entries)]
    rows = []
    for e in entries:
        counts = (e.kinds[k].records if k in e.kinds else "" for k in kinds)
        rows.append((e.uri, e.dtype, *counts, size_text(e.bytes), e.key[:8]))
    print_table(["model", "dtype", *kinds, "size", "key"], rows, brief="model")
    say("{} in {}", size_text(sum(e.bytes for e in entries)), str(store.root))
    if torn:
        say(f"[dim]{torn:,} bytes at the ends of files belong to incomplete batches, which are not used[/dim]")
    if damaged:
        say(f"[red]{damaged:,} batches are damaged[/red] and not used; `creperie cache verify --repair` removes them")
