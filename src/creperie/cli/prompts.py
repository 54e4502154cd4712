"""`creperie prompts show`: showing what would be sent to a model, without sending anything."""

from __future__ import annotations

import click

from creperie.cli.app import CommandGroup
from creperie.cli.output import CommandResult, answers, echo

CAPTION = "A man in a blue shirt is holding a small brown dog."


@click.group(cls=CommandGroup)
def prompts() -> None:
    """Show the prompts of makers, validators and models."""


@prompts.command("show")
@click.argument("name")
@click.option("--caption", default=CAPTION, show_default=True, help="The caption to ask about.")
@click.option(
    "--prompts", "place", default="", metavar="DIR|FILE", help="Prompts of your own, which replace shipped ones."
)
@answers
def show(name: str, caption: str, place: str) -> CommandResult:
    """Print all questions of the prompt NAME for a caption, without sending anything.

    NAME is a prompt of a maker or of the validator (paraphrase, validate, replace-object …) or of a model (match-1,
    odd-forced …). Text that depends on an earlier answer is shown in angle brackets.
    """
    from creperie.making import template_names, written_prompts
    from creperie.models import find_prompt
    from creperie.recipes import prompt_folder

    folder = str(prompt_folder(place)[0]) if place else ""
    if name in template_names():
        questions = written_prompts(name, caption, folder)
    else:
        prompt = find_prompt(f"{folder}/#{name}" if folder else name, "")
        questions = [{"step": prompt.kind, "text": prompt.text.replace("{caption}", caption), "temperature": 0.0}]
    document = {"prompt": name, "caption": caption, "folder": place or None, "questions": questions}
    return CommandResult(document, lambda: echo("\n\n".join(f"[{q['step']}]\n{q['text']}" for q in questions)))
