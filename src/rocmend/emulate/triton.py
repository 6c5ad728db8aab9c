"""Call a Triton kernel as machine code for a gfx target: ``emulate(kernel, "gfx1151")[grid](x, y, n, BLOCK=64)``.

Needs triton, and no GPU. Arguments are CPU tensors or NumPy arrays and numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rocmend.codeobject.kernarg import Launch
from rocmend.core import gfx
from rocmend.core.errors import UsageError
from rocmend.emulate.arguments import value_of
from rocmend.emulate.device import ALL_CHECKS, Device, FaultError, Order, Run
from rocmend.emulate.generation import TARGETS
from rocmend.emulate.program import load

__all__ = ["Emulated", "emulate"]


class _Array:
    """A NumPy array, as Triton looks at a tensor: its type, and whether 16 divides its address."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.dtype = array.dtype.name
        self._address, self._bytes = array.ctypes.data, array.nbytes

    def data_ptr(self) -> int:
        """Return the address."""
        return self._address

    def ptr_range(self) -> int:
        """Return the bytes behind it: buffer instructions reach 2 GiB."""
        return self._bytes


class Emulated:
    """A Triton kernel that is executed as code for a gfx target.

    Args:
        kernel: A function under ``triton.jit``.
        target: The gfx target.
        checks: Checks that are on, as bits of ``Check``.
        order: In which order waves run.

    Attributes:
        runs: What was launched.
    """

    def __init__(self, kernel: Any, target: str, checks: int = ALL_CHECKS, order: int = Order.FORWARD) -> None:
        if not hasattr(kernel, "_pack_args"):
            raise _not_compiled(kernel)
        plain = target.partition(":")[0]
        found = gfx.find(plain)
        if found is None or plain not in TARGETS:
            raise UsageError(
                "emulate", f"code for {target!r} is not executed.", next_step=f"Targets: {', '.join(TARGETS)}."
            )
        target = plain
        self.kernel, self.target, self.lanes = kernel, target, found.wavefront_default
        self.checks, self.order = checks, order
        self.runs: list[Run] = []

    def __getitem__(self, grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]) -> Callable[..., Run]:
        """Return the launch with a grid, as Triton's own kernels do."""
        return functools.partial(self._launch, grid)

    def _launch(self, grid: Any, *args: Any, **options: Any) -> Run:
        """Compile for the target, and execute.

        Raises:
            FaultError: A check found something.
            UnmodelledError: The code came to an instruction that is not modelled.
        """
        compiled, bound, signature = self._compiled(args, options)
        program = load(bytes(compiled.asm["hsaco"]), compiled.metadata.name)
        device = Device(self.checks)
        wanted = [(name, bound[name]) for name, kind in signature.items() if kind != "constexpr"]
        explicit = program.kernarg.explicit
        values = [value_of(device, one, value, name) for one, (name, value) in zip(explicit, wanted, strict=False)]
        values += [0] * (len(explicit) - len(values))  # Triton's own scratch
        x, y, z = (*(grid(bound) if callable(grid) else grid), 1, 1)[:3]
        block = compiled.metadata.num_warps * program.generation.lanes
        shape = Launch((x, y, z), (block, 1, 1), compiled.metadata.shared)
        run = device.launch(program, values, shape, order=self.order)
        self.runs.append(run)
        if run.faults:
            raise FaultError(f"{compiled.metadata.name} on {self.target}", run.faults)
        return run

    def _compiled(self, args: Sequence[Any], options: dict[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Return the compiled kernel, its arguments by name, and their types."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.compiler.compiler import make_backend
        from triton.runtime.jit import create_function_from_signature

        target = GPUTarget("hip", self.target, self.lanes)
        backend = make_backend(target)
        binder = create_function_from_signature(self.kernel.signature, self.kernel.params, backend)
        seen = [_Array(one) if isinstance(one, np.ndarray) else one for one in args]
        given = {"debug": False, **options}
        bound, specialisation, remaining = binder(*seen, **given)
        packed = self.kernel._pack_args(backend, given, bound, specialisation, remaining)  # noqa: SLF001  what Triton's own launch calls
        made_options, signature, constants, attributes = packed
        source = ASTSource(self.kernel, signature, constants, attributes)
        try:
            compiled = triton.compile(source, target=target, options=made_options.__dict__)
        except RuntimeError as error:  # what Triton's passes raise; its own words are on standard error
            raise UsageError(
                "emulate",
                f"Triton {triton.__version__} compiles no such kernel for {self.target}: {error}",
                why="Triton 3.8 and later have no gfx1010 and gfx1030; 3.7 and earlier no gfx906.",
            ) from error
        names = [one.name for one in self.kernel.params]
        return compiled, {**bound, **dict(zip(names, args, strict=False))}, signature


def _not_compiled(kernel: Any) -> UsageError:
    """Return why a kernel is not one that Triton compiles as it is."""
    name = getattr(kernel, "__name__", type(kernel).__name__)
    if hasattr(getattr(kernel, "fn", None), "_pack_args"):
        return UsageError(
            "emulate",
            f"{name!r} chooses its constants when it runs (autotune or heuristics).",
            next_step="Pass the kernel itself, kernel.fn, and the constants of one choice.",
        )
    return UsageError(
        "emulate",
        f"{name!r} is no function under triton.jit.",
        why="With TRITON_INTERPRET=1 functions are made for Triton's interpreter, and never compiled.",
        next_step="Pass a function under triton.jit, without TRITON_INTERPRET.",
    )


def emulate(kernel: Any, target: str, *, checks: int = ALL_CHECKS, order: int = Order.FORWARD) -> Emulated:
    """Return a Triton kernel that is called as usual and executed as machine code for a gfx target, on the CPU.

    Args:
        kernel: A function under ``triton.jit``.
        target: The gfx target: ``gfx1151``.
        checks: Checks that are on, as bits of ``Check``.
        order: In which order waves run: 0 forward, 1 in reverse, 2 shuffled.

    Raises:
        UsageError: No such target, or the function is not one that Triton compiles.

    Examples:
        >>> emulate(add_kernel, "gfx1151")[(4,)](x, y, out, n, BLOCK=256)  # doctest: +SKIP
    """
    return Emulated(kernel, target, checks, order)
