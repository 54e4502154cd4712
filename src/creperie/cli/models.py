"""`creperie models`: list the kinds of models, and check whether one can be scored."""

from __future__ import annotations

from typing import Any

import click

from creperie.cli.app import CommandGroup
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import Json
from creperie.models import PrecisionOptions


@click.group(cls=CommandGroup)
def models() -> None:
    """List and check models.

    A model is named by one line: kind:name?option=value&option=value.
    """


@models.command("list")
@click.argument("kind", required=False)
@answers
def list_models(kind: str | None) -> CommandResult:
    """List the kinds of models; with KIND, its families and options."""
    from creperie.core import unknown
    from creperie.models import KINDS, model_plugins

    added = model_plugins()
    if kind is not None and kind not in KINDS and kind not in added:
        raise unknown("model kind", kind, [*KINDS, *added])
    document: Json = {
        "kinds": {
            name: {
                "summary": one.summary,
                "example": one.example,
                "families": dict(one.families),
                "options": [{"option": o.usage, "default": o.default, "help": o.help} for o in one.options],
                "needs": one.extra,
            }
            for name, one in KINDS.items()
            if kind in (None, name)
        },
        "plugins": {name: entry.value for name, entry in added.items() if kind in (None, name)},
    }

    def show() -> None:
        if kind is None or kind in added:
            _show_kinds(document)
        else:
            _show_kind(kind, document["kinds"][kind])

    return CommandResult(document, show)


@models.command()
@click.argument("uri")
@options_of("place", PrecisionOptions)
@answers
def check(uri: str, place: PrecisionOptions) -> CommandResult:
    """Load a model and check that its outputs are finite, normalised, and independent of how inputs are batched."""
    from creperie.models import check_model

    report = check_model(uri, device=place.device, dtype=place.dtype)

    def show() -> None:
        mark = {True: "yes", False: "NO", None: "–"}
        say("[bold]{}[/bold]  {}", uri, ", ".join(report.roles))
        print_table(["check", "ok", "detail"], [[c.name, mark[c.ok], c.detail] for c in report.checks])
        say("")
        print_table(["fingerprint", ""], _fingerprint_rows(report.document))
        say("")
        print_table(["rate", ""], [[k, f"{v:,.1f}"] for k, v in report.rates.items()])
        failed = sum(c.ok is False for c in report.checks)
        say("[green]can be scored[/green]" if report.ok else f"[red]{failed} checks failed[/red]")

    return CommandResult(report.document, show, report.ok)


def _show_kinds(document: Json) -> None:
    from creperie.models import OWN_KINDS

    rows = [[f"{name}:", kind["summary"], kind["example"]] for name, kind in document["kinds"].items()]
    for name, value in document["plugins"].items():
        own = OWN_KINDS.get(name)
        rows.append([f"{name}:", own.summary, own.example] if own else [f"{name}:", "a plug-in", value])
    print_table(["kind", "what, and an example"], [line for k, what, uri in rows for line in ((k, what), ("", uri))])
    say("")
    say("Families and options of a kind: creperie models list KIND. Other models: docs/plugin.md.")


def _show_kind(name: str, kind: Json) -> None:
    say("[bold]{}:[/bold] {}, for example {}", name, kind["summary"], kind["example"])
    say("")
    if kind["families"]:
        print_table(["family", "what"], [[family, note] for family, note in kind["families"].items()])
        say("")
    rows = [[o["option"], _default(o["default"]), o["help"]] for o in kind["options"]]
    print_table(["option", "default", "what"], rows)


def _default(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _fingerprint_rows(document: Json) -> list[list[str]]:
    parts = document["fingerprint"]
    shown = {"key": document["key"], **parts, "prompt": parts["prompt"] and repr(parts["prompt"])}
    names = ("key", "architecture", "weights", "dtype", "context", "prompt", "options")
    return [[name, str(shown[name])] for name in names if shown[name]]
