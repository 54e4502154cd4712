"""The `creperie` command: which commands there are, and how every one of them ends.

Exit codes: 0 done; 1 the answer is no (a failed check); 2 a mistake in the call or the data, said in one line.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

from creperie.core import CreperieError, unknown

#: command → (module, attribute, help). Modules are imported when their command is called.
COMMANDS = {
    "demo": ("creperie.cli.demo", "demo", "The built-in world, end to end, no download."),
    "data": ("creperie.cli.data", "data", "Benchmarks: list, get, import, show, export, check."),
    "world": ("creperie.cli.world", "world", "Make scenes, captions and certified foils."),
    "audit": ("creperie.cli.audit", "audit", "Is it hackable, and through what?"),
    "make": ("creperie.cli.make", "make", "Foils and second positives from captions."),
    "validate": ("creperie.cli.validate", "validate", "A language model looks over the captions of items."),
    "annotate": ("creperie.cli.annotate", "annotate", "Web pages where people check, correct, rate and compete."),
    "refine": ("creperie.cli.refine", "refine", "Keep the largest set that no blind model can solve."),
    "score": ("creperie.cli.score", "score", "Score models on benchmarks: a run."),
    "train": ("creperie.cli.train", "train", "Train with hard negatives; does the gain survive?"),
    "sensitivity": (
        "creperie.cli.sensitivity",
        "sensitivity",
        "How much a score depends on the prompt and on the order of options.",
    ),
    "runs": ("creperie.cli.runs", "runs", "Published answers as runs; α of debiased scores."),
    "merge": ("creperie.cli.merge", "merge", "Put the shards of a making or a run together."),
    "compare": ("creperie.cli.compare", "compare", "Paired tests between runs."),
    "stats": ("creperie.cli.stats", "stats", "Mixed models over items, models and constructions."),
    "report": ("creperie.cli.report", "report", "Runs as one HTML page: tables, figures, audit, every item."),
    "figure": ("creperie.cli.figure", "figure", "Figures from runs and benchmarks: SVG, PDF, PNG."),
    "serve": ("creperie.cli.serve", "serve", "A folder of runs as a live leaderboard."),
    "table": ("creperie.cli.table", "table", "A published table with our runs beside it."),
    "cook": ("creperie.cli.cook", "cook", "A whole paper as a declared chain of stages."),
    "models": ("creperie.cli.models", "models", "What models there are; check one."),
    "cache": ("creperie.cli.cache", "cache", "The store of embeddings and scores."),
}


#: what to do about errors of the system that no data and no call is to blame for
HINTS = {
    errno.ENOSPC: "; make room, then the same command goes on where it stopped",
    errno.EDQUOT: "; make room, then the same command goes on where it stopped",
    errno.EROFS: "; choose a place that can be written",
    errno.EACCES: "; choose a place that you may write to",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, with "did you mean" on a wrong name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


class CommandGroup(click.Group):
    """A group of commands with "did you mean" on a wrong name."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise unknown(f"command of {ctx.info_name!r}", args[0], self.commands)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="creperie", message="creperie %(version)s")
def cli() -> None:
    """A workshop for vision-language compositionality benchmarks.

    Start with `creperie demo`. Every command takes --json and --help.
    """


def main(args: list[str] | None = None) -> None:
    """The entry point: run a command and turn every ending into an exit code and at most one line."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = cli.main(args=args, prog_name="creperie", standalone_mode=False)
    except CreperieError as e:
        code = _fail(str(e))
    except click.exceptions.Abort:  # click's word for an interrupt
        print("creperie: interrupted; the same command goes on where it stopped", file=sys.stderr)
        code = 130
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message(), err=True)
        code = 2
    except click.ClickException as e:
        hint = f"; see `{e.ctx.command_path} --help`" if isinstance(e, click.UsageError) and e.ctx else ""
        code = _fail(f"{e.format_message().rstrip('.')}{hint}")
    except KeyboardInterrupt:
        print("creperie: interrupted; the same command goes on where it stopped", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as e:
        if os.environ.get("CREPERIE_TRACEBACK"):
            raise
        code = _fail(f"{e.filename or _somewhere(e)}: {e.strerror or e}{HINTS.get(e.errno or 0, '')}")
    sys.exit(code if isinstance(code, int) else 0)


def _somewhere(error: OSError) -> str:
    """Where an error happened that names no file: a write into an open one fills a disk without saying which."""
    return "the disk of the output or of the cache" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "system"


def _fail(line: str) -> int:
    if os.environ.get("CREPERIE_TRACEBACK"):
        import traceback

        traceback.print_exc()
    print(f"creperie: {' '.join(line.split())}", file=sys.stderr)
    return 2


def _terminate(signum: int, frame: object) -> None:
    raise KeyboardInterrupt
