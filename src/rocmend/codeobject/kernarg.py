"""The kernarg segment of a kernel: what lies where in it, and filling it for a launch.

Source:
    https://llvm.org/docs/AMDGPUUsage.html#amdgpu-amdhsa-code-object-kernel-argument-metadata-map-table-v3 and the
    table of hidden arguments behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from rocmend.codeobject.notes import read_metadata
from rocmend.codeobject.reader import BytesReader
from rocmend.core.documents import MALFORMED
from rocmend.core.errors import DataError, UsageError

__all__ = ["Argument", "Kernarg", "Launch", "pack", "read_kernarg", "read_kernargs"]

HIDDEN = "hidden_"
BUFFERS = frozenset({"global_buffer", "dynamic_shared_pointer", "image", "sampler", "pipe", "queue"})
MAX_KERNARG_BYTES = 1 << 20
"""Drivers refuse far less; a larger one is hostile."""


class Argument(
    msgspec.Struct,
    frozen=True,
    rename={"offset": ".offset", "size": ".size", "kind": ".value_kind", "name": ".name", "space": ".address_space"},
    omit_defaults=True,
):
    """Where an argument lies in the kernarg segment.

    Attributes:
        offset: Bytes from its beginning.
        size: Bytes.
        kind: ``global_buffer``, ``by_value`` or what the runtime fills in (``hidden_…``).
        name: What the source calls it; empty where the compiler does not say.
        space: Address space of a pointer.
    """

    offset: int = 0
    size: int = 0
    kind: str = ""
    name: str = ""
    space: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the runtime fills it in, not the caller."""
        return self.kind.startswith(HIDDEN)


class Kernarg(
    msgspec.Struct,
    frozen=True,
    rename={
        "kernel": ".name",
        "symbol": ".symbol",
        "size": ".kernarg_segment_size",
        "alignment": ".kernarg_segment_align",
        "arguments": ".args",
    },
):
    """The kernarg segment of a kernel.

    Attributes:
        kernel: The kernel's (mangled) name.
        symbol: The name of its descriptor in the code object.
        size: Bytes.
        alignment: Bytes.
        arguments: What lies in it, in order; the hidden ones last.
    """

    kernel: str = ""
    symbol: str = ""
    size: int = 0
    alignment: int = 8
    arguments: tuple[Argument, ...] = ()

    @property
    def explicit(self) -> list[Argument]:
        """Return what the caller gives, in order."""
        return [one for one in self.arguments if not one.hidden]


class _Metadata(msgspec.Struct, frozen=True, rename={"kernels": "amdhsa.kernels"}):
    kernels: tuple[Kernarg, ...] = ()


class Launch(NamedTuple):
    """How a kernel is launched.

    Args:
        grid: Workgroups in x, y and z.
        block: Work-items of a workgroup in x, y and z.
        dynamic_lds_bytes: LDS that the launch adds.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds_bytes: int = 0


def read_kernargs(code: bytes, name: str = "code object") -> tuple[Kernarg, ...]:
    """Return the kernarg segments of a code object's kernels.

    Raises:
        DataError: It is no code object, or its metadata cannot be read.
    """
    note = read_metadata(BytesReader(code, name))
    try:
        return msgspec.msgpack.decode(note, type=_Metadata).kernels if note is not None else ()
    except MALFORMED as error:
        raise DataError(name, f"has kernel metadata that cannot be decoded: {error}.") from error


def read_kernarg(code: bytes, kernel: str) -> Kernarg:
    """Return a kernel's kernarg segment.

    Raises:
        DataError: The code object has no readable metadata, or no kernel of that name.
    """
    for found in read_kernargs(code, kernel):
        if found.kernel == kernel:
            return found
    raise DataError(kernel, "is a code object that does not list the kernel it was compiled from.")


def pack(kernarg: Kernarg, values: Sequence[int | bytes], launch: Launch) -> bytes:
    """Return the bytes of a kernarg segment for a launch.

    Hidden arguments that describe the launch are filled in; those that lead to what a runtime sets up (a heap, a
    buffer for printf, a queue) are zero: a kernel that needs one needs a runtime.

    Args:
        kernarg: The segment, as the code object states it.
        values: For each explicit argument, in order: an address for a pointer, the bytes of a value, or an integer,
            which is written in the argument's size (two's complement).
        launch: Sizes of the grid and the workgroup.

    Raises:
        UsageError: The number of values, or the size of one, is not the kernel's.
        DataError: The metadata places an argument outside of the segment.
    """
    explicit = kernarg.explicit
    if len(values) != len(explicit):
        raise UsageError("kernarg", f"{kernarg.kernel} takes {len(explicit)} arguments, got {len(values)}.")
    if kernarg.size > MAX_KERNARG_BYTES:
        raise DataError(kernarg.kernel, f"states a kernarg segment of {kernarg.size} bytes.")
    segment = bytearray(kernarg.size)
    for argument, value in zip(explicit, values, strict=True):
        _put(segment, kernarg, argument, value)
    hidden = _hidden(launch)
    for argument in kernarg.arguments:
        if argument.hidden:
            _put(segment, kernarg, argument, hidden.get(argument.kind.removeprefix(HIDDEN), 0))
    return bytes(segment)


def _put(segment: bytearray, kernarg: Kernarg, argument: Argument, value: int | bytes) -> None:
    size, end = argument.size, argument.offset + argument.size
    what = f"argument {argument.name or f'at byte {argument.offset}'} of {kernarg.kernel}"
    if not 0 <= argument.offset <= end <= len(segment):
        raise DataError(kernarg.kernel, f"places an argument of {size} bytes at {argument.offset} of {len(segment)}.")
    if isinstance(value, bytes):
        if len(value) != size:
            raise UsageError("kernarg", f"{what} has {size} bytes, got {len(value)}.")
        segment[argument.offset : end] = value
        return
    bits = 8 * size
    if not -(1 << bits) // 2 <= value < 1 << bits:
        raise UsageError("kernarg", f"{what} has {size} bytes, which {value} does not fit.")
    segment[argument.offset : end] = (value & (1 << bits) - 1).to_bytes(size, "little")


def _hidden(launch: Launch) -> dict[str, int]:
    """Return what the runtime writes about a launch; global offsets and remainders of whole workgroups are zero."""
    found = {}
    for at, axis in enumerate("xyz"):
        found[f"block_count_{axis}"] = launch.grid[at]
        found[f"group_size_{axis}"] = launch.block[at]
    dims = max((at + 1 for at in range(3) if launch.grid[at] * launch.block[at] > 1), default=1)
    return found | {"grid_dims": dims, "dynamic_lds_size": launch.dynamic_lds_bytes}
