"""Which conditionals already say what ROCm compiles: a person has ported them, and no rule has anything to add.

A conditional does so where its condition names ROCm and that name decides: what ROCm compiles there does not depend on
the names of CUDA (``defined(USE_ROCM) || __CUDA_ARCH__ >= 700``), or is not what a compiler that knows neither would
compile (``#if __CUDA_ARCH__ >= 700 … #elif defined(USE_ROCM)``). A name that is only mentioned decides nothing:
``(defined(USE_CUDA) || defined(USE_ROCM)) && __CUDA_ARCH__ >= 700`` is never true on ROCm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rocmend.port.cuda.conditions import NVIDIA, OWN, ROCM, ZERO, condition, evaluated
from rocmend.port.cuda.declarations import Macro
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind, Token

__all__ = ["macros_of", "treats_rocm"]

_LARGE = 99_999_999
"""A version or an architecture that no comparison calls too old."""
_OF_CUDA = (*ZERO, b"__CUDACC_VER__", b"__CUDACC_VER_BUILD__", b"__NVCC__")
_OF_ROCM = NVIDIA.keys() | ROCM.keys()
_HERE: dict[bytes, int | None] = {**dict.fromkeys(_OF_ROCM, _LARGE), **ROCM}
_OLD: dict[bytes, int | None] = dict.fromkeys(_OF_CUDA)
_NEW: dict[bytes, int | None] = dict.fromkeys(_OF_CUDA, _LARGE)
_NEITHER: dict[bytes, int | None] = dict.fromkeys(_OF_ROCM)


class _World(dict[bytes, int | None]):
    """Values of all names: those that are not in it have the value ``others``."""

    def __init__(self, known: dict[bytes, int | None], others: int | None) -> None:
        super().__init__(known)
        self.others = others

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: bytes) -> int | None:
        return self.others


class _Flag(NamedTuple):
    """A macro of the file that differs between ROCm and everything else.

    Attributes:
        here: Its body on ROCm; None where it is not defined there.
        elsewhere: Its body elsewhere.
        start: Where it is defined first.
    """

    here: tuple[bytes, ...] | None
    elsewhere: tuple[bytes, ...] | None
    start: int


def treats_rocm(file: CudaFile, group: int) -> bool:
    """Tell whether a conditional already decides what ROCm compiles.

    Args:
        file: The source.
        group: Number of the conditional group.
    """
    conditions = [(name, words) for name, words in _conditions(file, group)]
    named = {word.text for _, words in conditions for word in words}
    start = file.groups[group].start
    flags = {name: flag for name, flag in _flags(file).items() if name in named and flag.start < start}
    if not (named & _OF_ROCM or not named.isdisjoint(OWN) or flags):
        return False
    return all(_decides(conditions, flags, others) for others in (None, 1))


def _conditions(file: CudaFile, group: int) -> Iterator[tuple[bytes, Sequence[Token]]]:
    for branch in file.members(group):
        directive = file.directives[branch.directive]
        yield directive.name, file.tokens[directive.first + 2 : directive.last]


def _decides(
    conditions: Sequence[tuple[bytes, Sequence[Token]]], flags: dict[bytes, _Flag], others: int | None
) -> bool:
    """Tell whether the names of ROCm decide which branch ROCm compiles, where all other names have one value."""
    own = {name: values[0] for name, values in OWN.items()}
    neither = {name: values[1] for name, values in OWN.items()}
    here = _chosen(conditions, _with(flags, {**_OLD, **_HERE, **own}, others, here=True))
    if here == _chosen(conditions, _with(flags, {**_NEW, **_HERE, **own}, others, here=True)):
        return True
    return here != _chosen(conditions, _with(flags, {**_OLD, **_NEITHER, **neither}, others, here=False))


def _with(flags: dict[bytes, _Flag], known: dict[bytes, int | None], others: int | None, *, here: bool) -> _World:
    world = _World(known, others)
    for name, flag in flags.items():
        body = flag.here if here else flag.elsewhere
        value = evaluated(body, world) if body else 1
        world[name] = None if body is None else 1 if value is None else value
    return world


def _chosen(conditions: Sequence[tuple[bytes, Sequence[Token]]], world: _World) -> tuple[int, bool | None]:
    """Return the first branch that is not certainly left out, and whether it is certainly compiled."""
    for number, (name, words) in enumerate(conditions):
        value = condition(name, words, world)
        if value is not False:
            return number, value
    return len(conditions), False


@lru_cache(maxsize=2)
def _flags(file: CudaFile) -> dict[bytes, _Flag]:
    """Return the macros that tell ROCm from CUDA, as ``#define ON_AMD defined(USE_ROCM)``; none that is undefined."""
    undefined = {
        file.tokens[one.first + 2].text for one in file.directives if one.name == b"undef" and one.last > one.first + 2
    }
    found: dict[bytes, _Flag] = {}
    for name, macros in file.macros.items():
        if name in undefined or any(one.parameters is not None for one in macros):
            continue
        here = [_body(file, one) for one in macros if file.on_rocm(one.start)]
        elsewhere = [_body(file, one) for one in macros if _on_nvidia(file, one)]
        if len(here) > 1 or len(elsewhere) > 1:
            continue
        if here != elsewhere or any(word in _OF_ROCM for body in here for word in body):
            bodies = [one[0] if one else None for one in (here, elsewhere)]
            found[name] = _Flag(bodies[0], bodies[1], min(one.name.start for one in macros))
    return found


def _body(file: CudaFile, macro: Macro) -> tuple[bytes, ...]:
    return tuple(one.text for one in file.tokens[macro.first : macro.last] if one.kind != Kind.OTHER)


def _on_nvidia(file: CudaFile, macro: Macro) -> bool:
    branch = file.branch_at(macro.name.start)
    return branch is None or branch.nvidia is not False


def macros_of(file: CudaFile) -> tuple[dict[bytes, tuple[int | None, int | None]], set[bytes]]:
    """Return the macros of a file that have one number on ROCm and another elsewhere, and those that have no such two.

    The values are those on ROCm and elsewhere; None: not defined.
    """
    found: dict[bytes, tuple[int | None, int | None]] = {}
    for name, flag in _flags(file).items():
        if name.startswith(b"__") or name in _OF_CUDA:
            continue  # a compiler's own, which a port defines for a while
        values = [_value(body, known) for body, known in ((flag.here, ROCM), (flag.elsewhere, NVIDIA))]
        if "unknown" not in values and values[0] != values[1]:
            found[name] = (_number(values[0]), _number(values[1]))
    return found, {name for name in file.macros if name not in found}


def _value(body: tuple[bytes, ...] | None, known: dict[bytes, int | None]) -> int | str | None:
    if body is None:
        return None
    value = evaluated(body, known) if body else 1
    return "unknown" if value is None else value


def _number(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None
