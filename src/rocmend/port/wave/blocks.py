"""How many threads the blocks of a kernel have, as far as its file shows how it is launched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rocmend.port.cuda.declarations import Declaration
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind, Token
from rocmend.port.cuda.structure import Argument, arguments
from rocmend.port.wave.asked import ask
from rocmend.port.wave.asking import CHANGES
from rocmend.port.wave.sizes import value
from rocmend.port.wave.tokens import text_at

__all__ = ["warps_are_rows"]


class _Shape(NamedTuple):
    """Threads of a block in x, and in y and z together; None where that is not known."""

    width: int | None
    others: int | None


_CONSTANT = re.compile(rb"[A-Z][A-Z0-9_]{2,}|k[A-Z]\w+")
_UNKNOWN = _Shape(None, None)
_NUMBERS = frozenset(b"int unsigned long short size_t int64_t uint32_t int32_t uint64_t uint".split())


def warps_are_rows(file: CudaFile, function: Function, lanes: int, *, of_grid: bool) -> bool:
    """Tell whether a thread's number over 32 is its warp's, as far as the file shows how it is launched.

    Warps are made of threads in a row. Where a row is no multiple of their size, ``threadIdx.x / 32`` differs within a
    warp of a block with several rows, and the number in a grid, over 32, in any. Of a kernel that the file does not
    launch, nothing is known; of one that it launches, the shape has to be shown.

    Args:
        file: The source.
        function: The kernel, or a function that any of the file's kernels may call.
        lanes: 32 or 64.
        of_grid: Whether the number is that in the grid.
    """
    for width, others in _shapes(file, function):
        whole = width is not None and width % lanes == 0
        if not whole and (of_grid or not (others == 1 or (width is not None and width <= lanes))):
            return False
    return True


_kept: WeakKeyDictionary[CudaFile, list[tuple[frozenset[bytes], _Shape]]] = WeakKeyDictionary()


def _shapes(file: CudaFile, function: Function) -> list[_Shape]:
    known = _kept.get(file)
    if known is None:
        known = _kept[file] = list(_launched(file))
        if any(None in shape for _, shape in known):
            _ask_constants(file)
    kernel = b"__global__" in function.qualifiers
    return [shape for names, shape in known if not kernel or function.name.text in names]


def _ask_constants(file: CudaFile) -> None:
    """Note the names of constants of other files, of which a launch's shape may be made."""
    for name in file.all_names:
        if _CONSTANT.fullmatch(name) and not file.declarations_of(name):
            ask(file, name)


def _launched(file: CudaFile) -> Iterator[tuple[frozenset[bytes], _Shape]]:
    """Yield the words of each launched kernel, and the shape of its blocks."""
    for launch in file.launches():
        if len(launch.config) > 1:
            yield _words(file, launch.kernel), _shape(file, launch.config[1])
    for call in file.calls(b"cudaLaunchKernel", b"cudaLaunchCooperativeKernel"):
        if len(call.args) > 2:
            yield _words(file, call.args[0]), _shape(file, call.args[2])
    for call in file.calls(b"cudaLaunchKernelEx", b"cudaLaunchKernelExC"):
        if len(call.args) > 1:
            yield _words(file, call.args[1]), _configured(file, call.args[0])


def _words(file: CudaFile, kernel: Argument) -> frozenset[bytes]:
    """Return the words that name a kernel; of a variable, those that it is given, too."""
    words = {one.text for one in file.tokens[kernel.first : kernel.last]}
    for at in range(kernel.first, kernel.last):
        declared = file.declaration_of(file.tokens[at].text, kernel.start)
        if declared is not None and declared.value is not None:
            words |= {one.text for one in file.tokens[declared.value.first : declared.value.last]}
    return frozenset(words)


def _configured(file: CudaFile, given: Argument) -> _Shape:
    """Return the shape that a launch's configuration says: ``config.blockDim = …`` once, and no part of it later."""
    config = file.tokens[given.last - 1].text
    places = [at for at in file.names(b"blockDim") if [text_at(file, at - 2), text_at(file, at - 1)] == [config, b"."]]
    if len(places) != 1 or text_at(file, places[0] + 1) != b"=":
        return _UNKNOWN
    first = last = places[0] + 2
    while last < len(file.tokens) and file.tokens[last].text != b";":
        last += 1
    return _shape(file, Argument(file.tokens[first].start, file.tokens[last - 1].end, first, last))


def _shape(file: CudaFile, given: Argument, *, follow: bool = True) -> _Shape:
    """Return the shape that an argument of a launch gives: a number, ``dim3(48, 4)`` or a variable of it."""
    tokens = file.tokens
    first = tokens[given.first]
    opened = given.first + 1 if first.text == b"dim3" else given.first
    if first.text in (b"dim3", b"{") and opened in file.partner and file.partner[opened] == given.last - 1:
        return _of_parts(file, arguments(tokens, file.partner, opened, file.partner[opened]))
    if given.last - given.first == 1 and first.kind == Kind.NAME and first.text not in file.macros:
        declared = file.declaration_of(first.text, given.start)
        if declared is None or declared.pointers:
            return _UNKNOWN
        if set(declared.type.split()) <= _NUMBERS:
            return _Shape(value(file, given, given.start), 1)
        return _of_variable(file, declared) if follow and declared.type in (b"dim3", b"auto") else _UNKNOWN
    single = any(one.kind == Kind.NAME and text_at(file, at + 1) == b"(" for at, one in _tokens(file, given))
    members = any(one.text in (b".", b"->", b"::", b"?") for _, one in _tokens(file, given))
    width = value(file, given, given.start)
    return _UNKNOWN if width is None and (single or members or given.last - given.first == 1) else _Shape(width, 1)


def _tokens(file: CudaFile, given: Argument) -> Iterator[tuple[int, Token]]:
    return ((at, file.tokens[at]) for at in range(given.first, given.last))


def _of_variable(file: CudaFile, declared: Declaration) -> _Shape:
    """Return the shape of a variable, which its declaration or assignments to its parts set, each of them once."""
    tokens = file.tokens
    function = file.function_at(declared.name.start)
    if function is None or declared.name.start < function.start:
        return _UNKNOWN  # a parameter, or what any function may set
    sizes: dict[bytes, Argument] = {}
    for at in file.names(declared.name.text):
        if at == declared.at or file.declaration_of(declared.name.text, tokens[at].start) is not declared:
            continue
        part, sign = text_at(file, at + 2), text_at(file, at + 3)
        if text_at(file, at + 1) == b"." and sign == b"=" and part not in sizes:
            end = at + 4
            while end < len(tokens) and tokens[end].text != b";":
                end += 1
            sizes[part] = Argument(tokens[at + 4].start, tokens[end - 1].end, at + 4, end)
        elif text_at(file, at - 1) == b"&" or text_at(file, at + 1) == b"=" or sign in CHANGES:
            return _UNKNOWN
    shape = _Shape(1, 1)
    if declared.value is not None:
        opened = declared.value.first - 1
        if tokens[opened].text in (b"(", b"{"):
            shape = _of_parts(file, arguments(tokens, file.partner, opened, file.partner[opened]))
        else:
            shape = _shape(file, declared.value, follow=False)
    if not sizes:
        return shape
    if shape.others != 1:
        return _UNKNOWN
    found = {part: value(file, one, one.start) for part, one in sizes.items()}
    return _Shape(found.get(b"x", shape.width), _product([found.get(b"y", 1), found.get(b"z", 1)]))


def _of_parts(file: CudaFile, parts: tuple[Argument, ...]) -> _Shape:
    sizes = [value(file, part, part.start) for part in parts]
    return _Shape(sizes[0] if sizes else 1, _product(sizes[1:]))


def _product(sizes: list[int | None]) -> int | None:
    product = 1
    for size in sizes:
        if size is None:
            return None
        product *= size
    return product
