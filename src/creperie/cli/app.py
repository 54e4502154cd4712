"""The command `creperie`: its subcommands, and how errors become exit codes.

Exit codes: 0 done; 1 the answer is no (a failed check); 2 a mistake in the call, the data or the installation, which is
reported in one line; 3 no verdict (a check that is incomplete). A traceback is a defect of creperie; with
CREPERIE_TRACEBACK=1, tracebacks are always shown.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from creperie.cli.output import echo
from creperie.core import CreperieError, UsageError, as_flags, cache_home, missing_module, packaged_toml, unknown


def listed_commands(group: str) -> dict[str, tuple[str, str, str]]:
    """Return the commands of a group: for each name, the module and the attribute of the command, and its help text."""
    rows = packaged_toml("creperie.cli", "commands.toml")[group].items()
    return {name: (f"creperie.cli.{module}", attribute, summary) for name, (module, attribute, summary) in rows}


COMMANDS = listed_commands("creperie")
#: removed commands and options of the last release, without the leading `creperie` → what to use instead
REMOVED: dict[str, str] = packaged_toml("creperie.cli", "commands.toml")["removed"]


def removed_name(words: str) -> CreperieError | None:
    """Return the error for a removed command or option, which says what to use instead. `words` is what the user typed,
    such as `creperie world show`. Return None if nothing with this name was removed.
    """
    name = words.removeprefix("creperie ")
    return UsageError(f"`{words}` was removed", hint=REMOVED[name]) if name in REMOVED else None


#: error number of the system → what to do
HINTS = {
    errno.ENOSPC: "; make room, then run the same command to continue",
    errno.EDQUOT: "; make room, then run the same command to continue",
    errno.EROFS: "; choose a place that can be written",
    errno.EACCES: "; choose a place that you may write to",
}


class CommandGroup(click.Group):
    """A group of commands. If the name of a command is unknown, the error suggests the most similar command."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            kind = f"command of {ctx.info_name!r}" if ctx.parent else "command"
            raise removed_name(f"{ctx.command_path} {args[0]}") or unknown(kind, args[0], known)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_repeated(command, rest)
        return name, command, rest


def _refuse_repeated(command: click.Command, args: Sequence[str]) -> None:
    """Raise an error if an option that takes one value is given more than once."""
    # click would ignore all but the last.
    try:
        *_, given = command.make_parser(click.Context(command, resilient_parsing=True)).parse_args(list(args))
    except click.ClickException:  # reported when the command is invoked
        return
    for one, times in Counter(given).items():
        if times == 1 or not isinstance(one, click.Option) or one.multiple or one.count:
            continue
        if one.secondary_opts or not one.is_flag:
            raise UsageError(f"{one.opts[0]} is given {times} times, but takes only one value", hint="give it once")


class LazyGroup(CommandGroup):
    """A group whose commands are imported only when they are called."""

    listed: Mapping[str, tuple[str, str, str]] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.listed)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.listed:
            return None
        module, attribute, _ = self.listed[name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self.listed.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="creperie", message="creperie %(version)s")
def cli() -> None:
    """A workshop for vision-language compositionality benchmarks.

    Start with `creperie demo`. Every command takes --json and --help.
    """


#: exit code of a broken pipe, as in shells; 1 would mean that the answer is no
CLOSED = 141


def main(args: list[str] | None = None) -> None:
    """Run a command and exit. The exit code tells the outcome. An error is printed as one line."""
    signal.signal(signal.SIGTERM, _terminate)
    if args is None:  # our own process: fewer garbage collections during imports, none at exit
        gc.set_threshold(50_000)
        atexit.register(gc.freeze)
    os.environ["CREPERIE_COMMAND_LINE"] = "1"  # worker processes inherit it
    _open_streams()
    try:
        code = cli.main(args=args, prog_name="creperie", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.exceptions.Abort):  # Abort: click's exception for an interrupt
        echo("creperie: interrupted; run the same command to continue", error=True)
        code = 130
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message(), err=True)
        code = 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED
    except SystemExit as e:  # click and rich exit with 1 on a broken pipe
        code = CLOSED if e.code == 1 else e.code
    except Exception as e:
        if os.environ.get("CREPERIE_TRACEBACK"):
            import traceback

            traceback.print_exc()
        echo(f"creperie: {' '.join(_line(e).split())}", error=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Make stdout and stderr accept any text. Characters that the console's encoding lacks are printed as `?`. Output
    to a stream that the caller closed (`>&-`) is discarded.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _line(error: Exception) -> str:
    """Return an error as one line: what went wrong, where, and what to do."""
    if isinstance(error, CreperieError):
        return as_flags(str(error))
    if isinstance(error, click.NoSuchOption) and error.ctx:
        gone = removed_name(f"{error.ctx.command_path} {error.option_name}")
        if gone is not None:
            return str(gone)
    if isinstance(error, click.ClickException):
        hint = f"; see `{error.ctx.command_path} --help`" if isinstance(error, click.UsageError) and error.ctx else ""
        return f"{error.format_message().rstrip('.')}{hint}"
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("creperie"):
        return str(missing_module(error))
    if isinstance(error, OSError):
        hint, full = HINTS.get(error.errno or 0, ""), error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and _inside_or_around(error.filename, cache_home()):
            hint = "; this is creperie's cache: set CREPERIE_CACHE to a folder that can be written"
        where = error.filename or ("the disk of the output or of the cache" if full else "system")
        return f"{where}: {error.strerror or error}{hint}"
    problem = f"{type(error).__name__}: {error}"
    return f"unexpected error ({problem}); this is a defect of creperie, CREPERIE_TRACEBACK=1 shows where"


def _inside_or_around(name: object, folder: Path) -> bool:
    """Return whether the path `name` is `folder`, is inside it, or contains it."""
    if not isinstance(name, str):
        return False
    path = Path(name).absolute()
    return folder.absolute() in (path, *path.parents) or path in folder.absolute().parents


def _terminate(signum: int, frame: object) -> None:
    raise KeyboardInterrupt
