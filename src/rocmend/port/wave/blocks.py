"""How many threads the blocks of a kernel have, as far as its file launches it with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, arguments

__all__ = ["warps_are_rows"]

_Shape = tuple[int, int | None]
"""Threads of a block in x, and in y and z together; None where that is not known."""


def warps_are_rows(file: CudaFile, function: Function, lanes: int, *, of_grid: bool) -> bool:
    """Tell whether a thread's number over 32 may be its warp's: no launch of the file shows that it is not.

    Warps are made of threads in a row. Where a row is no multiple of their size, ``threadIdx.x / 32`` differs within a
    warp of a block with several rows, and the number in a grid, over 32, in any.

    Args:
        file: The source.
        function: The kernel, or a function that any of the file's kernels may call.
        lanes: 32 or 64.
        of_grid: Whether the number is that in the grid.
    """
    for width, others in _shapes(file, function):
        whole = width % lanes == 0
        if not whole and (of_grid or (width > lanes and others != 1)):
            return False
    return True


_kept: WeakKeyDictionary[CudaFile, list[tuple[frozenset[bytes], _Shape]]] = WeakKeyDictionary()


def _shapes(file: CudaFile, function: Function) -> Iterator[_Shape]:
    known = _kept.get(file)
    if known is None:
        known = _kept[file] = list(_launched(file))
    for names, shape in known:
        if function.name.text in names or b"__global__" not in function.qualifiers:
            yield shape


def _launched(file: CudaFile) -> Iterator[tuple[frozenset[bytes], _Shape]]:
    """Yield the words of each launched kernel, and the shape of its blocks."""
    for launch in file.launches():
        shape = _shape(file, launch.config[1]) if len(launch.config) > 1 else None
        if shape is not None:
            yield frozenset(one.text for one in file.tokens[launch.kernel.first : launch.kernel.last]), shape


def _shape(file: CudaFile, given: Argument) -> _Shape | None:
    """Return the shape that an argument of a launch gives: a number, ``dim3(48, 4)`` or a variable of it."""
    tokens = file.tokens
    if given.last - given.first == 1 and tokens[given.first].kind == Kind.NAME:
        declared = file.declaration_of(tokens[given.first].text, given.start)
        if declared is not None and declared.type == b"dim3" and declared.value is not None:
            opened = declared.value.first - 1
            if tokens[opened].text in (b"(", b"{"):
                return _of_parts(file, arguments(tokens, file.partner, opened, file.partner[opened]))
            given = declared.value
    if tokens[given.first].text == b"dim3" and given.first + 1 in file.partner:
        opened = given.first + 1
        return _of_parts(file, arguments(tokens, file.partner, opened, file.partner[opened]))
    width = constant(file, given, given.start)
    return None if width is None else (width, 1)


def _of_parts(file: CudaFile, parts: tuple[Argument, ...]) -> _Shape | None:
    sizes = [constant(file, part, part.start) for part in parts]
    if not sizes or sizes[0] is None:
        return None
    others = [size for size in sizes[1:] if size is not None]
    if len(others) < len(sizes) - 1:
        return sizes[0], None
    product = 1
    for size in others:
        product *= size
    return sizes[0], product
