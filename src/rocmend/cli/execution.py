"""What the commands share that can execute a project's code: it is asked for, listed, and told before it begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.port.verify.execution import Execution, Step

__all__ = ["Listing", "announce", "execution_of", "execution_options", "listing"]

F = TypeVar("F", bound=Callable[..., Any])


class Listing(msgspec.Struct, frozen=True):
    """What a command would execute of a project.

    Attributes:
        root: The project's folder.
        steps: What.
        how: Where it would run, and what would hold it.
    """

    root: str
    steps: tuple[Step, ...]
    how: str


def execution_options(function: F) -> F:
    """Add ``--run``, ``--list``, ``--container`` and ``--pass-env``; they are passed as ``settings``."""
    options = (
        click.option(
            "--run",
            is_flag=True,
            help="Execute code of the project: modules, tests, programs. Without it nothing of it is executed.",
        ),
        click.option("--list", "listed", is_flag=True, help="Show what --run would execute, and execute nothing."),
        click.option(
            "--container",
            metavar="IMAGE",
            default="",
            help="With --run: in a container of this image, by podman or docker, without a network.",
        ),
        click.option(
            "--pass-env",
            metavar="NAME",
            multiple=True,
            help="With --run: pass this environment variable on, too. Repeatable.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def execution_of(*, asked: bool, container: str, pass_env: Sequence[str]) -> Execution:
    """Return how code would be executed.

    Args:
        asked: Whether it is to run, or to be listed.
        container: The image.
        pass_env: Names of variables.

    Raises:
        UsageError: Options contradict each other, or a variable is not there.
    """
    from rocmend.port.verify.execution import Execution

    if (container or pass_env) and not asked:
        name = "--container" if container else "--pass-env"
        raise UsageError(name, "says how code is run, and --run was not given.", next_step="Give --run too.")
    return Execution(tuple(dict.fromkeys(pass_env)), container)


def listing(root: str, steps: Sequence[Step], execution: Execution) -> Listing:
    """Return what would be executed, as a record."""
    from rocmend.port.verify.execution import describe

    return Listing(root, tuple(steps), describe(execution))


def announce(found: Listing) -> None:
    """Tell on stderr what is executed now, before it is."""
    from rocmend.cli.views.execution import listing_document
    from rocmend.report import terminal

    if found.steps:
        terminal.render(listing_document(found, begins=True), sys.stderr)
        sys.stderr.flush()
