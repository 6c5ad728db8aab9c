"""A launcher that remembers compiled kernels by what Triton specializes on, and skips the rest of Triton's own path.

``kernel[grid](...)`` binds arguments, prints the compiler's options and joins strings on each launch to find the
compiled kernel. Here the constants and the tuning record are bound once; what is left of a launch is to ask Triton's
own ``native_specialize_impl`` for each argument's type and specialization, look the compiled kernel up by them and
call it as ``JITFunction.run`` does. Where a version of Triton is unknown, a hook is set, or a kernel is not a plain
``triton.jit`` (or ``gluon.jit``) function, Triton's own path is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import triton
from triton import knobs

from rocmend.kernels import carveout, executor, remembered
from rocmend.kernels.opaque import opaque
from rocmend.kernels.tuning import Config

FIRST, BEHIND = (3, 6), (3, 10)
"""Versions of Triton whose compiled kernels are known to be called as here: from the first, before the last."""

MOST_BOUND = 8192
MOST_ENTRIES = 1024
HIP = torch.version.hip is not None
_LARGEST_BUFFER_BYTES = 2**31 - 1  # Triton's AMD compiler tells tensors whose storage is larger from others

runtime = knobs.runtime
_bound: dict[tuple[Any, ...], Bound] = {}


def known_version(version: str) -> bool:
    """Return whether compiled kernels of a version of Triton are called as here."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and FIRST <= (int(match[1]), int(match[2])) < BEHIND


def _no_specialization(_backend: Any, value: Any, *_: bool) -> Any:
    raise TypeError(value)


def _load() -> tuple[bool, Callable[..., Any], Any, type]:
    """Return whether the fast path can be used, Triton's specialization, its base back end, its kind of function."""
    from triton.runtime.jit import JITFunction

    try:
        from triton._C.libtriton import native_specialize_impl
        from triton.backends.compiler import BaseBackend
    except ImportError:
        return False, _no_specialization, None, JITFunction
    return known_version(triton.__version__), native_specialize_impl, BaseBackend, JITFunction


_KNOWN, _specialize, _BASE, _JIT_FUNCTION = _load()
current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)  # noqa: SLF001  as Triton's driver does
stream_of: Callable[[int], int] = getattr(
    torch._C,  # noqa: SLF001  as Triton's driver does
    "_cuda_getCurrentRawStream",
    lambda index: torch.cuda.current_stream(index).cuda_stream,
)


class Bound:
    """A kernel with its constants and its tuning record: call it with a grid and the run-time arguments.

    It keeps what it was made of alive, so that the identities in keys cannot be reused.

    Args:
        kernel: A function under ``triton.jit``.
        constants: Compile-time constants by name, beside those of the record.
        config: The tuning record.
    """

    __slots__ = ("_entries", "_fast", "_first", "_names", "config", "constants", "kernel")

    def __init__(self, kernel: Any, constants: Mapping[str, Any], config: Config) -> None:
        self.kernel = kernel
        self.config = config
        self.constants = merged(kernel, constants, config)
        self._entries: dict[Any, tuple[Any, ...]] = {}
        self._first = 0
        parameters = getattr(kernel, "params", ())
        self._names = tuple(one.name for one in parameters if one.is_constexpr)
        behind = [one.is_constexpr for one in parameters]
        # Gluon's functions are Triton's in all that a launch sees.
        self._fast = _KNOWN and isinstance(kernel, _JIT_FUNCTION) and behind == sorted(behind)

    @opaque
    def __call__(self, grid: Sequence[int], args: Sequence[Any]) -> None:
        """Launch on the device of the first tensor, on torch's current stream there."""
        self.launched(grid, args)

    def launched(self, grid: Sequence[int], args: Sequence[Any]) -> tuple[Any, ...] | None:
        """Launch, and return what to launch the like with: see ``Fixed``. None where only Triton's own path will do."""
        if not self._fast or self.kernel.pre_run_hooks or hooked():
            self._plain(grid, args)
            return None
        try:
            device = args[self._first].get_device()
        except (AttributeError, IndexError):
            self._first = next(index for index, arg in enumerate(args) if isinstance(arg, torch.Tensor))
            device = args[self._first].get_device()
        try:
            key = (device, *[_specialize(_BASE, arg, False, True, True) for arg in args])
            if HIP:
                key += tuple(map(large, args))
            entry = self._entries.get(key)
        except TypeError:  # an argument that has no specialization, or one that cannot be hashed
            self._plain(grid, args)
            return None
        if entry is None:
            return self._first_launch(key, grid, args)
        run, middle, tail, _ = entry
        x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]
        if device == current_device():
            run(x, y, z, stream_of(device), *middle, *args, *tail)
        else:
            with torch.cuda.device(device):
                run(x, y, z, stream_of(device), *middle, *args, *tail)
        return entry

    def _first_launch(self, key: Any, grid: Sequence[int], args: Sequence[Any]) -> tuple[Any, ...] | None:
        compiled = self._plain(grid, args)
        function = getattr(compiled, "function", None)
        parameters = self.kernel.params
        if function is None or len(args) + len(self._names) != len(parameters):
            return None  # vetoed by a hook, or run-time parameters left to their defaults
        carveout.ask(compiled, self.config.get("carveout", 0))
        values = {one.name: one.default for one in parameters} | self.constants
        tail = tuple(values[name] for name in self._names)
        if len(self._entries) >= MOST_ENTRIES:
            self._entries.clear()
        entry = self._entries[key] = (*_callable(compiled), tail, compiled)
        return entry

    def _plain(self, grid: Sequence[int], args: Sequence[Any]) -> Any:
        """Launch as Triton does, and return the compiled kernel."""
        if not isinstance(self.kernel, _JIT_FUNCTION) and executor.interpreting():
            return self.kernel[tuple(grid)](*args, **self.constants)
        device = next(arg.device for arg in args if isinstance(arg, torch.Tensor))
        options = self.config.options(executor.target_for(device).vendor)
        with torch.cuda.device(device):
            return self.kernel[tuple(grid)](*args, **self.constants, **options)


class Fixed:
    """A bound kernel with its grid and its numbers: what is left to be told from call to call are tensors' addresses.

    The caller sees to it that all calls are given tensors of the same types and devices, and None in the same places.

    Args:
        one: The kernel, bound.
        grid: Programs, none of them 0.
        numbers: The last run-time arguments.
        types: What tensors are seen as, of the same width as they are, or None; empty where all are seen as they are.
    """

    __slots__ = ("_bound", "_entries", "_grid", "_kernel", "_known", "_numbers", "_types")

    def __init__(
        self, one: Bound, grid: Sequence[int], numbers: Sequence[Any], types: Sequence[torch.dtype | None] = ()
    ) -> None:
        self._bound = one
        self._kernel = one.kernel
        self._types = types
        self._grid = (*grid, 1, 1)[:3]
        self._numbers = tuple(numbers)
        self._entries: dict[Any, tuple[Any, ...]] = {}
        self._known: tuple[Any, ...] | None = None  # the entry of aligned tensors and no varying numbers

    @opaque
    def __call__(self, tensors: Sequence[torch.Tensor | None], varying: Sequence[Any] = ()) -> None:
        """Launch with the kernel's first arguments, and those behind them that vary."""
        if executor.switch.active is not None:
            self._elsewhere(tensors, varying)
            return
        addresses: list[int | None] = []
        low = 0
        for one in tensors:
            if one is None:
                addresses.append(None)
            else:
                address = one.data_ptr()
                low |= address
                addresses.append(address)
        entry, key = self._known, 0
        if low & 15 or varying or HIP:
            key = self._key(addresses if low & 15 else None, varying, tensors)
            entry = self._entries.get(key)
        try:
            told = runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls
        except AttributeError:  # None, or a plain function
            told = hooked()
        if entry is None or told or self._kernel.pre_run_hooks:
            self._first_launch(key, tensors, varying)
            return
        run, middle, rest, device, _ = entry
        if device == current_device():
            run(*self._grid, stream_of(device), *middle, *addresses, *varying, *rest)
            return
        with torch.cuda.device(device):
            run(*self._grid, stream_of(device), *middle, *addresses, *varying, *rest)

    def _elsewhere(self, tensors: Sequence[torch.Tensor | None], varying: Sequence[Any]) -> None:
        """Launch past the executor in force: what is bound knows nothing of it."""
        self._bound.launched(self._grid, (*seen_as(tensors, self._types), *varying, *self._numbers))

    def _key(
        self, addresses: Sequence[int | None] | None, varying: Sequence[Any], tensors: Sequence[torch.Tensor | None]
    ) -> Any:
        """Return what tells compiled kernels of this launch apart; ``addresses`` where not all are aligned."""
        key: Any = 0
        if addresses is not None:
            key = tuple([address is not None and not address & 15 for address in addresses])
        if varying:
            key = (key, *[_specialize(_BASE, number, False, True, True) for number in varying])
        return (key, *map(large, tensors)) if HIP else key

    def _first_launch(self, key: Any, tensors: Sequence[torch.Tensor | None], varying: Sequence[Any]) -> None:
        found = self._bound.launched(self._grid, (*seen_as(tensors, self._types), *varying, *self._numbers))
        if found is None:
            return
        run, middle, tail, compiled = found
        device = next(one.get_device() for one in tensors if one is not None)
        if len(self._entries) >= MOST_ENTRIES:
            self._entries.clear()
        entry = self._entries[key] = (run, middle, (*self._numbers, *tail), device, compiled)
        if key == 0:
            self._known = entry


def seen_as(
    tensors: Sequence[torch.Tensor | None], types: Sequence[torch.dtype | None]
) -> Sequence[torch.Tensor | None]:
    """Return tensors as others of the same width, where a type is given."""
    if not types:
        return tensors
    pairs = zip(tensors, types, strict=True)
    return [
        one if one is None or dtype is None else (one if one.dim() else one.reshape(1)).view(dtype)
        for one, dtype in pairs
    ]


def _callable(compiled: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """Return what launches a compiled kernel, and what it takes between the stream and the kernel's own arguments.

    That is Triton's launcher with the function, its metadata, and neither metadata for hooks nor hooks. The launcher
    of Triton 3.6 on NVIDIA only adds scratch memory before it calls a C function, which is called here
    where a kernel needs none.
    """
    run, packed = compiled.run, compiled.packed_metadata
    plain = (compiled.function, packed, None, None, None)
    if HIP or not triton.__version__.startswith("3.6.") or type(run).__name__ != "CudaLauncher":
        return run, plain
    if run.global_scratch_size or run.profile_scratch_size:
        return run, plain
    settings = (run.launch_cooperative_grid, run.launch_pdl, None, None)
    return run.launch, (compiled.function, *settings, packed, None, None, None)


def merged(kernel: Any, constants: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Return the constants of a launch: the record's that the kernel has a parameter for, then the given ones."""
    names = kernel.arg_names
    return {**{name: value for name, value in config.constants.items() if name in names}, **constants}


def hooked() -> bool:
    """Return whether something wants to be told of launches (a profiler)."""
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(
        (enter is not None and getattr(enter, "calls", True)) or (leave is not None and getattr(leave, "calls", True))
    )


def large(arg: Any) -> bool:
    """Return whether Triton's AMD compiler tells a tensor from others by the size of its storage."""
    return isinstance(arg, torch.Tensor) and arg.untyped_storage().nbytes() > _LARGEST_BUFFER_BYTES


def bound(kernel: Any, constants: Mapping[str, Any], config: Config) -> Bound:
    """Return a kernel bound to constants and a record: the same one for the same three.

    Constants are told apart by type too: True, 1 and 1.0 are equal in Python, and other programs in Triton.
    """
    values = constants.values()
    kinds = tuple(map(type, values))
    items: Any = tuple(constants.items())
    if float in kinds:  # 0.0 equals -0.0, and NaN equals nothing
        items = repr(items)
    key = (id(kernel), id(config), kinds, items)
    try:
        found = _bound.get(key)
    except TypeError:  # a constant that cannot be hashed
        return Bound(kernel, constants, config)
    if found is None:
        found = Bound(kernel, constants, config)
        if len(_bound) >= MOST_BOUND:
            _bound.clear()
        _bound[key] = found
    return found


def forget() -> None:
    """Drop everything that was compiled and bound: after settings of Triton (``triton.knobs``) changed."""
    _bound.clear()
    remembered.forget()
