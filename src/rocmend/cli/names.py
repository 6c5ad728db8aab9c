"""The types of options and arguments that take a name: they complete it, and leave it to the command to look it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

import rocmend

__all__ = ["ENTRY", "MACHINE", "OP", "PROBE", "RULE", "THIS", "THIS_OR_MACHINE", "Name"]

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:  # older versions of click have no such parameter
    _Base = click.ParamType

_HERE = Path(rocmend.__file__).parent


class Name(_Base):
    """A name of something.

    Args:
        name: What it is the name of.
        known: Returns the names that there are, within a tenth of a second: a person waits for them.
        becomes: What the text becomes.
    """

    def __init__(self, name: str, known: Callable[[], Iterable[str]], becomes: Callable[[str], Any] = str) -> None:
        self.name = name
        self.known = known
        self._becomes = becomes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it is."""
        del param, ctx
        return self._becomes(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        del ctx, param
        typed = incomplete.casefold()
        return [CompletionItem(name) for name in sorted(self.known()) if name.casefold().startswith(typed)]


def _entries() -> Iterable[str]:
    return (path.stem for path in (_HERE / "kb" / "entries").glob("*/*.md"))


def _ops() -> Iterable[str]:
    return (path.parent.name for path in (_HERE / "kernels" / "ops").glob("*/*/__init__.py"))


def _rules() -> Iterable[str]:
    files = (_HERE / "port" / "rules").glob("*/*.py")
    return (path.stem.partition("_")[0].upper() for path in files if not path.stem.startswith("_"))


def _probes() -> Iterable[str]:
    from rocmend.probe.registry import SMOKE, probes

    return {SMOKE, *(name for probe in probes() for name in (probe.id, probe.family, *probe.tags))}


def _machines() -> Iterable[str]:
    from rocmend.core.examples import example_machines

    return example_machines()


class _Folder(Name):
    """A folder, or a name that stands for one."""

    is_path = True

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so, or else the folders."""
        return super().shell_complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="dir")]


ENTRY = Name("entry", _entries)
OP = Name("op", _ops)
PROBE = Name("probe", _probes)
RULE = Name("rule", _rules)
MACHINE = _Folder("machine", _machines, Path)
THIS = "this"
"""What stands for the machine that rocmend runs on; a folder of that name is ``./this``."""
THIS_OR_MACHINE = _Folder("machine", lambda: (THIS, *_machines()))
