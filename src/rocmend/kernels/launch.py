"""Launch Triton kernels: one launcher for every op, on HIP and CUDA.

``kernel[grid](...)`` binds arguments, prints the compiler's options and joins strings on each launch to find the
compiled kernel. Here a kernel is bound to its constants and its tuning record once. A launch then asks Triton's own
``native_specialize_impl`` for the specialization of each argument, looks the compiled kernel up by these and calls it
as ``JITFunction.run`` does. With an unknown version of Triton, a launch hook, or a kernel that is not a plain
``triton.jit`` (or ``gluon.jit``) function, Triton's own path is taken.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import triton
from triton import knobs

from rocmend.kernels import caches, carveout, executor
from rocmend.kernels.opaque import opaque
from rocmend.kernels.tuning import Config

__all__ = ["BoundKernel", "LaunchPlan", "bind", "forget", "launch"]

FIRST, BEHIND = (3, 6), (3, 10)
"""Versions of Triton whose compiled kernels are known to be called as here: from the first, before the last."""

MAX_BOUND = 8192
MAX_COMPILED = 1024
HIP = torch.version.hip is not None
_LARGEST_BUFFER_BYTES = 2**31 - 1  # Triton's AMD compiler specializes on larger storages

runtime = knobs.runtime
_bound: dict[tuple[Any, ...], BoundKernel] = {}


def known_version(version: str) -> bool:
    """Return whether compiled kernels of a version of Triton are called as here."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and FIRST <= (int(match[1]), int(match[2])) < BEHIND


def _no_specialization(_backend: Any, value: Any, *_: bool) -> Any:
    raise TypeError(value)


def _load() -> tuple[bool, Callable[..., Any], Any, type]:
    """Return whether kernels can be called directly, and Triton's specialization, base back end and function type."""
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


class Compiled(NamedTuple):
    """A compiled kernel and how to call it: ``run(x, y, z, stream, *prefix, *args, *suffix)``.

    Args:
        run: Triton's launcher.
        prefix: What it takes between the stream and the kernel's arguments.
        suffix: The kernel's constants.
    """

    run: Callable[..., None]
    prefix: tuple[Any, ...]
    suffix: tuple[Any, ...]


class BoundKernel:
    """A kernel with its constants and its tuning record, and its compiled variants by specialization.

    It keeps what it was made of alive, so that the identities in keys cannot be reused.

    Args:
        kernel: A function under ``triton.jit``.
        constants: Compile-time constants by name, in addition to those of the record.
        config: The tuning record.
    """

    __slots__ = ("_compiled", "_constant_names", "_direct", "_first_tensor", "config", "constants", "kernel")

    def __init__(self, kernel: Any, constants: Mapping[str, Any], config: Config) -> None:
        self.kernel = kernel
        self.config = config
        self.constants = _merged(kernel, constants, config)
        self._compiled: dict[Any, Compiled] = {}
        self._first_tensor = 0
        parameters = getattr(kernel, "params", ())
        self._constant_names = tuple(parameter.name for parameter in parameters if parameter.is_constexpr)
        constant = [parameter.is_constexpr for parameter in parameters]
        # Gluon's functions are Triton's in all that a launch sees.
        self._direct = _KNOWN and isinstance(kernel, _JIT_FUNCTION) and constant == sorted(constant)

    def __call__(self, grid: Sequence[int], args: Sequence[Any]) -> None:
        """Launch on the device of the first tensor, or hand the launch to the executor in force."""
        active = executor.switch.active
        if active is None:
            self.launch(grid, args)
        else:
            active.launch(self.kernel, grid, args, self.constants, self.config)

    def launch(self, grid: Sequence[int], args: Sequence[Any]) -> Compiled | None:
        """Launch on the device of the first tensor, on torch's current stream there.

        Returns:
            The compiled kernel; None if only Triton's own path can launch it.
        """
        if not self._direct or self.kernel.pre_run_hooks or hooked():
            self._triton_launch(grid, args)
            return None
        try:
            device = args[self._first_tensor].get_device()
        except (AttributeError, IndexError):
            self._first_tensor = next(index for index, arg in enumerate(args) if isinstance(arg, torch.Tensor))
            device = args[self._first_tensor].get_device()
        try:
            key = (device, *[_specialize(_BASE, arg, False, True, True) for arg in args])
            if HIP:
                key += tuple(map(large, args))
            compiled = self._compiled.get(key)
        except TypeError:  # an argument that has no specialization, or an argument that cannot be hashed
            self._triton_launch(grid, args)
            return None
        if compiled is None:
            return self._first_launch(key, grid, args)
        x, y, z = (*grid, 1, 1)[:3]
        if device == current_device():
            compiled.run(x, y, z, stream_of(device), *compiled.prefix, *args, *compiled.suffix)
        else:
            with torch.cuda.device(device):
                compiled.run(x, y, z, stream_of(device), *compiled.prefix, *args, *compiled.suffix)
        return compiled

    def _first_launch(self, key: Any, grid: Sequence[int], args: Sequence[Any]) -> Compiled | None:
        kernel = self._triton_launch(grid, args)
        parameters = self.kernel.params
        if getattr(kernel, "function", None) is None or len(args) + len(self._constant_names) != len(parameters):
            return None  # vetoed by a hook, or run-time parameters left to their defaults
        carveout.prefer(kernel, self.config.get("carveout", 0))
        values = {parameter.name: parameter.default for parameter in parameters} | self.constants
        if len(self._compiled) >= MAX_COMPILED:
            self._compiled.clear()
        prefix = (kernel.function, kernel.packed_metadata, None, None, None)  # neither metadata for hooks nor hooks
        suffix = tuple(values[name] for name in self._constant_names)
        compiled = self._compiled[key] = Compiled(kernel.run, prefix, suffix)
        return compiled

    def _triton_launch(self, grid: Sequence[int], args: Sequence[Any]) -> Any:
        """Launch as Triton does, and return the compiled kernel."""
        if not isinstance(self.kernel, _JIT_FUNCTION) and executor.interpreting():
            return self.kernel[tuple(grid)](*args, **self.constants)
        device = next(arg.device for arg in args if isinstance(arg, torch.Tensor))
        options = self.config.options(executor.target_for(device).vendor)
        with torch.cuda.device(device):
            return self.kernel[tuple(grid)](*args, **self.constants, **options)


def _merged(kernel: Any, constants: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Return the constants of a launch: the record's that the kernel has a parameter for, then the given ones.

    Raises:
        UnitError: The kernel needs another constant.
    """
    names = kernel.arg_names
    merged = {**{name: value for name, value in config.constants.items() if name in names}, **constants}
    function = getattr(kernel, "fn", None)
    parameters = inspect.signature(function).parameters if inspect.isfunction(function) else {}
    for name, parameter in parameters.items():
        if name not in merged and parameter.default is parameter.empty and "constexpr" in str(parameter.annotation):
            raise config.lacks(name, f"the kernel {kernel.fn.__name__}")
    return merged


def hooked() -> bool:
    """Return whether a launch hook is set (a profiler's)."""
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(
        (enter is not None and getattr(enter, "calls", True)) or (leave is not None and getattr(leave, "calls", True))
    )


def large(arg: Any) -> bool:
    """Return whether Triton's AMD compiler specializes on the size of a tensor's storage."""
    return isinstance(arg, torch.Tensor) and arg.untyped_storage().nbytes() > _LARGEST_BUFFER_BYTES


def bind(kernel: Any, constants: Mapping[str, Any], config: Config) -> BoundKernel:
    """Return a kernel bound to constants and a record: the same object for the same three.

    Constants are distinguished by type too: True, 1 and 1.0 are equal in Python, and other programs in Triton.
    """
    values = constants.values()
    types = tuple(map(type, values))
    items: Any = tuple(constants.items())
    if float in types:  # 0.0 equals -0.0, and NaN equals nothing
        items = repr(items)
    key = (id(kernel), id(config), types, items)
    try:
        found = _bound.get(key)
    except TypeError:  # a constant that cannot be hashed
        return BoundKernel(kernel, constants, config)
    if found is None:
        found = BoundKernel(kernel, constants, config)
        if len(_bound) >= MAX_BOUND:
            _bound.clear()
        _bound[key] = found
    return found


@opaque
def launch(
    kernel: Any,
    grid: Sequence[int],
    args: Sequence[Any],
    constants: Mapping[str, Any],
    config: Config,
) -> None:
    """Launch a kernel on the device of its tensors, or hand it to the executor in force.

    Args:
        kernel: A function under ``triton.jit`` whose run-time parameters come first, in the order of ``args``, and
            whose compile-time ones (``tl.constexpr``) are given by name.
        grid: One to three numbers of programs; nothing happens if one is 0.
        args: Tensors, ints, floats or None.
        constants: Compile-time constants by name, in addition to those of the record.
        config: The tuning record: its constants (those that the kernel has a parameter for) and compiler options.
    """
    if 0 not in grid:
        bind(kernel, constants, config)(grid, args)


class LaunchPlan:
    """A launch without its tensors: call it with them.

    Args:
        kernel: The Triton function; its tensors come first among its run-time parameters.
        grid: Numbers of programs, none of them 0.
        constants: Compile-time constants by name.
        config: The tuning record.
        numbers: The run-time arguments after the tensors (and after those that vary from call to call).
        types: For each tensor, the type that the kernel sees, of the same width, or None; empty if none differs.
    """

    __slots__ = ("_bound", "_types", "config", "grid", "numbers")

    def __init__(  # noqa: PLR0913, PLR0917  a launch has so many parts
        self,
        kernel: Any,
        grid: tuple[int, ...],
        constants: Mapping[str, Any],
        config: Config,
        numbers: Sequence[Any] = (),
        types: Sequence[torch.dtype | None] = (),
    ) -> None:
        self._bound = bind(kernel, constants, config)
        self._types = types
        self.config, self.grid, self.numbers = config, grid, tuple(numbers)

    @opaque
    def __call__(self, tensors: Sequence[torch.Tensor | None], varying: Sequence[Any] = ()) -> None:
        """Launch with the kernel's first arguments, and the numbers after them that vary."""
        self._bound(self.grid, (*_viewed(tensors, self._types), *varying, *self.numbers))

    def into(
        self, output: Callable[[], torch.Tensor], tensors: Callable[..., Sequence[torch.Tensor | None]]
    ) -> Callable[..., torch.Tensor]:
        """Return a function that allocates an output, launches with tensors of its arguments, and returns the output.

        Args:
            output: Allocates it; it is the kernel's last tensor.
            tensors: Called with the function's arguments; returns the tensors before the output.
        """

        def call(*args: Any, **options: Any) -> torch.Tensor:
            out = output()
            self((*tensors(*args, **options), out))
            return out

        return call


def _viewed(
    tensors: Sequence[torch.Tensor | None], types: Sequence[torch.dtype | None]
) -> Sequence[torch.Tensor | None]:
    """Return tensors as others of the same width, where a type is given."""
    if not types:
        return tensors
    pairs = zip(tensors, types, strict=True)
    return [
        tensor if tensor is None or dtype is None else (tensor if tensor.dim() else tensor.reshape(1)).view(dtype)
        for tensor, dtype in pairs
    ]


def forget() -> None:
    """Drop all compiled kernels and cached calls: after settings of Triton (``triton.knobs``) changed."""
    _bound.clear()
    caches.forget()
