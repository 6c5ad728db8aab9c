"""The ``rocmend`` program: finds its commands, runs one, turns errors into exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from rocmend import __version__
from rocmend.cli.base import parsed, summary
from rocmend.cli.errors import command_name, print_error, print_usage_error
from rocmend.cli.streams import prepare_streams, silence_stdout
from rocmend.cli.unexpected import DEBUG_VARIABLE, unexpected
from rocmend.core.errors import RocmendError
from rocmend.core.optional import INSTALL, not_installed
from rocmend.core.places import cache_home, data_home
from rocmend.core.suggest import did_you_mean, misspelled, nearest

_PACKAGE = "rocmend.cli.commands"
_ROOM_BYTES = 1 << 20
"""A disk with less counts as full."""

_FRONT_PAGE = f"""\
rocmend {__version__}: machine-learning workloads that run, correctly and fast,
on the AMD GPU you have.

Start with one of these:
  rocmend check         diagnose this machine, try quick operations on its GPU,
                        and write one HTML report
  rocmend doctor        what is wrong with this machine and what to do
  rocmend wheel choose  which PyTorch to install for this GPU

No AMD GPU here? `rocmend demo strix-halo` diagnoses an example.

`rocmend --help` lists all commands, `rocmend COMMAND --help` explains one."""

_GROUPS = {
    "bench": "Measure what this machine can do, and compare settings.",
    "kb": "Search and show the knowledge behind the advice.",
    "kernels": "List, check, tune and compile GPU kernels.",
    "lab": "Run experiments: which settings make it work?",
    "machine": "Show, capture or compare the facts of a machine.",
    "share": "Write up this machine, redacted; read what others sent. `rocmend share` stands for `rocmend share make`.",
    "store": "List, show and remove stored evidence.",
    "port": "Port a CUDA project to ROCm. `rocmend port PATH` stands for `rocmend port run PATH`.",
    "mlx": "Run MLX and mlx-lm programs on this GPU.",
    "probe": "Test which operations work here. `rocmend probe` stands for `rocmend probe run`.",
    "wheel": "Choose and inspect wheels for this GPU.",
}
"""Groups of commands; a module ``kb_search`` is the command ``search`` of the group ``kb``."""

_SECTIONS = {
    "Start here": ("check", "demo"),
    "Understand": ("doctor", "explain", "machine", "wheel", "targets", "kb"),
    "Fix": ("env", "lab"),
    "Measure": ("bench", "compare", "report"),
    "Prove": ("probe", "kernels", "emulate", "store", "share"),
    "Port": ("port",),
    "Run": ("mlx",),
    "Set up": ("completion",),
}
"""How ``rocmend --help`` lists the commands; those that are in none come last."""

_DEFAULTS = {"port": "run", "probe": "run", "share": "make"}
"""Groups that run a command of theirs where none is named: ``rocmend probe --device cpu``."""

_HELP = ["-h", "--help"]

_SELECTING = {"probe": "--select"}
"""Groups whose default command takes names by an option, where a person may leave it out: ``rocmend probe matmul``."""

_WITH_ARGUMENT = {"port"}
"""Groups whose default command takes an argument: ``rocmend port PATH``. A word that names no command is one."""


def command_modules() -> dict[str, str]:
    """Return every command path (``doctor``, ``kb search``) with the module that holds it."""
    package = importlib.import_module(_PACKAGE)
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))
    paths = {}
    for name in names:
        group, _, rest = name.partition("_")
        path = f"{group} {rest.replace('_', '-')}" if group in _GROUPS and rest else name.replace("_", "-")
        paths[path] = f"{_PACKAGE}.{name}"
    return paths


def with_default(group: str, words: list[str]) -> list[str]:
    """Return what follows the name of a group on a command line, its default command put before it where none is."""
    default = _DEFAULTS.get(group)
    first = words[0] if words else "-"
    named = first in _HELP or not first.startswith("-")
    if group in _WITH_ARGUMENT and not first.startswith("-"):
        named = f"{group} {first}" in command_modules()
    return [default, *words] if default and not named else words


class _ReaderGoneError(Exception):
    """Whoever read our output stopped (``| head -1``). A plain BrokenPipeError click would turn into exit code 1."""


_ALIASES = {"list": "ls", "remove": "rm", "delete": "rm", "info": "show"}
"""What other programs call a command."""
_MOVED = {"mlx bench": "bench mlx"}
"""Where a command has gone."""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that each pays only for itself."""

    def __init__(self, prefix: str = "", **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.prefix = prefix

    def _own(self) -> dict[str, str]:
        start = f"{self.prefix} " if self.prefix else ""
        paths = command_modules()
        return {path.removeprefix(start): module for path, module in paths.items() if path.startswith(start)}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = args if ctx.resilient_parsing and not args else with_default(self.prefix, args)
        if words is not args and args and self.prefix in _WITH_ARGUMENT and not ctx.resilient_parsing:
            self._refuse_misspelled(ctx, args[0])
        return parsed(lambda: super(_LazyGroup, self).parse_args(ctx, words), self, ctx)

    def _refuse_misspelled(self, ctx: click.Context, word: str) -> None:
        """Refuse what is no path but nearly a command's name; the default command would take it for a path."""
        if os.sep in word or word.startswith("-") or os.path.lexists(word):
            return
        if meant := misspelled(word, self.list_commands(ctx)):
            raise click.UsageError(
                f"There is no command and no path {word[:80]!r}. Did you mean `rocmend {self.prefix} {meant}`?", ctx
            )

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted({path.split(" ")[0] for path in self._own()})

    def get_short_help_str(self, limit: int = 0) -> str:
        del limit
        return summary(self.help or "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        left = self.list_commands(ctx)
        sections = {} if self.prefix else {name: [one for one in own if one in left] for name, own in _SECTIONS.items()}
        listed = {one for own in sections.values() for one in own}
        sections["More commands" if sections else "Commands"] = [one for one in left if one not in listed]
        width = max(map(len, left))
        for name, own in sections.items():
            found = [(one, self.get_command(ctx, one)) for one in own]
            rows = [
                (one.ljust(width), command.get_short_help_str())
                for one, command in found
                if command and not command.hidden
            ]
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows, col_spacing=2)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = self._own()
        if cmd_name in own:
            command: click.Command = importlib.import_module(own[cmd_name]).command
            return command
        if not self.prefix and cmd_name in _GROUPS:
            return _LazyGroup(cmd_name, name=cmd_name, help=_GROUPS[cmd_name])
        del ctx
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        default = self.get_command(ctx, _DEFAULTS[self.prefix]) if self.prefix in _DEFAULTS else None
        if default is not None and incomplete.startswith("-"):
            found += default.shell_complete(click.Context(default, ctx, resilient_parsing=True), incomplete)
        elif self.prefix in _WITH_ARGUMENT and not found:
            found.append(CompletionItem(incomplete, type="file"))
        return found

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            known = self.list_commands(ctx)
            alias = _ALIASES.get(args[0], "")
            meant = (
                f"Did you mean {alias}?"
                if alias in known
                else did_you_mean(args[0], known) or (f"There are: {', '.join(known)}." if self.prefix else "")
            )
            if new := _MOVED.get(f"{self.prefix} {args[0]}"):
                meant = f"Use `rocmend {new}`."
            if self.prefix in _SELECTING and not nearest(args[0], known):
                meant = f"Names follow an option: `rocmend {self.prefix} {_SELECTING[self.prefix]} {args[0][:80]}`."
            raise click.UsageError(f"No such command {args[0][:80]!r}. {meant}".strip(), ctx) from None


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": _HELP, "max_content_width": 100},
    epilog="`rocmend COMMAND --help` explains a command, with examples. Exit codes: 0 clean, 1 findings or failed "
    "trials, 2 usage or internal error.",
)
@click.version_option(__version__, "-V", "--version", prog_name="rocmend", message="%(prog)s %(version)s")
def cli() -> None:
    """Make machine-learning workloads run, correctly and fast, on the AMD GPU you have."""


def _only_absolute_paths() -> None:
    """Take what means the working folder off PATH: it may be a project with a ``git`` or ``nvcc`` of its own in it."""
    parts = os.environ.get("PATH", "").split(os.pathsep)
    kept = [part for part in parts if os.path.isabs(part)]  # noqa: PTH117  pathlib takes its time to be imported
    if kept and len(kept) < len(parts):
        os.environ["PATH"] = os.pathsep.join(kept)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit.

    Args:
        arguments: Command-line arguments; None for the process's own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    _only_absolute_paths()
    if not os.environ.get("HOME", "set"):
        del os.environ[
            "HOME"
        ]  # an empty one would make ~ the root of the file system; the list of users is asked instead
    try:
        code = cli.main(args=given, prog_name="rocmend", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(_FRONT_PAGE if not given or error.ctx is None else error.ctx.get_help())
        code = 0
    except click.ClickException as error:
        code = print_usage_error(error, given)
    except click.Abort:
        click.echo("Interrupted.", err=True)
        code = 130
    except RocmendError as error:
        code = print_error(error, given)
    except (_ReaderGoneError, BrokenPipeError):
        silence_stdout()
        code = 141
    except OSError as error:
        where = error.filename or _full_places(error)
        about = f"{error.strerror or error}{f' ({where})' if where else ''}."
        code = print_error(RocmendError("system", about), given)
    except Exception as error:  # the one place where any exception ends: a user never meets a traceback
        if os.environ.get(DEBUG_VARIABLE):
            raise
        missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        told = not_installed(command_name(given), missing) if missing in INSTALL else unexpected(error, given)
        code = print_error(told, given)
    sys.exit(code if isinstance(code, int) else 0)


def _full_places(error: OSError) -> str:
    """Name the folders without room that an error of no named file can be about: it came from a file that was open."""
    import errno
    import shutil
    import tempfile

    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return ""
    full = []
    for folder in (tempfile.gettempdir(), *map(str, (data_home(), cache_home(), "."))):
        with contextlib.suppress(OSError):
            if shutil.disk_usage(folder).free < _ROOM_BYTES:
                full.append(os.path.realpath(folder))
    return ", ".join(dict.fromkeys(full))


if __name__ == "__main__":
    main()
