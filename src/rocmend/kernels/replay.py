"""Replay a captured call: allocate and launch what was captured, with the addresses of the call's own tensors.

A captured call is first run with views of its tensors, which compiles its kernels. Then a Python function is generated
for it: no loop, no lookup, each number in its place. A call of a decode step should cost a few microseconds, of which
a loop over launches and their arguments would take one or two. Its source holds names and integers only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import allocate
from rocmend.kernels import launch as launcher
from rocmend.kernels.capture import Arguments, Captured, CapturedLaunch, TensorArgument, VaryingNumber
from rocmend.kernels.launch import Compiled


class Replay:
    """Replays a captured call: called with arguments like those it was captured with, it allocates and launches.

    Args:
        captured: The call.
        compute: Computes it normally: with tensors that are not aligned, or without a workspace.
    """

    __slots__ = ("_captured", "_compute", "generated")

    def __init__(self, captured: Captured, compute: Callable[[Arguments], Any]) -> None:
        self._captured, self._compute = captured, compute
        self.generated: Callable[[Arguments], Any] | None = None
        """Computes the same faster; set once all kernels are compiled."""

    def __call__(self, arguments: Arguments) -> Any:
        """Compute with views of the tensors: the first time, under hooks, or on a device that is not current."""
        captured = self._captured
        tensors = [arg for arg in arguments if isinstance(arg, torch.Tensor)]
        if any(tensor.data_ptr() & 15 for tensor in tensors) or (launcher.HIP and any(map(launcher.large, tensors))):
            return self._compute(arguments)
        workspace = () if captured.workspace is None else captured.workspace()
        if workspace is None:
            return self._compute(arguments)
        bases = (*arguments, *[output() for output in captured.outputs], *workspace)
        for index in captured.zeroed:
            bases[index].zero_()
        compiled = []
        for launch in captured.launches:
            args = [arguments[arg.index] if isinstance(arg, VaryingNumber) else arg for arg in launch.args]
            for tensor in launch.tensors:
                args[tensor.position] = _view(bases[tensor.base], tensor)
            compiled.append(launch.kernel.launch(launch.grid, args))
        if self.generated is None and compiled and all(compiled):
            launches = [(launch, of) for launch, of in zip(captured.launches, compiled, strict=True) if of is not None]
            self.generated = _generate(arguments, captured, launches, self._compute, self)
        results = [None if index is None else bases[index] for index in captured.results]
        if captured.result_type is None:
            return results[0]
        return tuple(results) if captured.result_type is tuple else captured.result_type(*results)


def _view(base: torch.Tensor | None, part: TensorArgument) -> torch.Tensor:
    """Return the part of a tensor that a launch uses."""
    if base is None:
        raise ValueError(f"expected a tensor for argument {part.position}, got None.")
    start = int(base.storage_offset()) * base.element_size() + part.offset
    view = torch.empty(0, dtype=part.like.dtype, device=base.device)
    shape, strides = part.like.shape, part.like.stride()
    return view.set_(base.untyped_storage(), start // part.like.element_size(), shape, strides)


def _generate(
    arguments: Arguments,
    captured: Captured,
    launches: Sequence[tuple[CapturedLaunch, Compiled]],
    compute: Callable[[Arguments], Any],
    run: Callable[[Arguments], Any],
) -> Callable[[Arguments], Any]:
    """Return a function of the arguments that allocates, launches and returns.

    Args:
        arguments: Of a call of the kind.
        captured: The call.
        launches: Its launches in their order, each with its compiled kernel.
        compute: Computes it normally.
        run: Computes it under hooks, or on a device that is not current.
    """
    values: dict[str, Any] = {
        "allocate": allocate, "runtime": launcher.runtime, "current_device": launcher.current_device,
        "stream_of": launcher.stream_of, "compute": compute, "run": run, "large": launcher.large,
        "hooked": launcher.hooked,
    }  # fmt: skip
    names = (f"v{number}" for number in itertools.count())

    def literal(value: Any) -> str:
        """Return a value as source: an integer or None itself, a number of the call and anything else a name."""
        if isinstance(value, VaryingNumber):
            return f"t{value.index}"
        if value is None or type(value) is int:
            return repr(value)
        name = next(names)
        values[name] = value
        return name

    count, device = len(arguments), captured.device_index
    tensors = [index for index, arg in enumerate(arguments) if isinstance(arg, torch.Tensor)]
    addresses = " | ".join(f"a{index}" for index in tensors)
    kernels = dict.fromkeys(launch.kernel.kernel for launch, _ in launches)
    slow = ["hooks", f"current_device() != {device}", "allocate.poisons()"]
    slow += [f"{literal(kernel)}.pre_run_hooks" for kernel in kernels]
    lines = [
        f"{', '.join(f't{index}' for index in range(count))}, = arguments",
        *[f"a{index} = t{index}.data_ptr()" for index in tensors],
        f"if ({addresses}) & 15{' or any(map(large, arguments))' if launcher.HIP else ''}:",
        "    return compute(arguments)",
        "try:",
        "    hooks = runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls",
        "except AttributeError:",  # None, or a plain function
        "    hooks = hooked()",
        f"if {' or '.join(slow)}:",
        "    return run(arguments)",
    ]
    if captured.workspace is not None:
        first = count + len(captured.outputs)
        lines += [
            f"workspace = {literal(captured.workspace)}()",
            "if workspace is None:",
            "    return compute(arguments)",
            f"t{first}, t{first + 1} = workspace",
        ]
    for number, output in enumerate(captured.outputs, count):
        lines.append(f"t{number} = {literal(output.quick)}({', '.join(map(literal, output.quick_args))})")
    lines += [f"t{number}.zero_()" for number in captured.zeroed]
    lines.append(f"stream = stream_of({device})")
    for launch, compiled in launches:
        args = [literal(arg) for arg in (*launch.args, *compiled.suffix)]
        for part in launch.tensors:
            address = f"a{part.base}" if part.base < count else f"t{part.base}.data_ptr()"
            args[part.position] = f"{address} + {part.offset}" if part.offset else address
        x, y, z = (*launch.grid, 1, 1)[:3]
        told = [*map(literal, (x, y, z)), "stream", *map(literal, compiled.prefix), *args]
        lines.append(f"{literal(compiled.run)}({', '.join(told)})")
    results = ["None" if index is None else f"t{index}" for index in captured.results]
    if captured.result_type is None:
        lines.append(f"return {results[0]}")
    elif captured.result_type is tuple:
        lines.append(f"return ({', '.join(results)},)")
    else:
        lines.append(f"return {literal(captured.result_type)}({', '.join(results)})")
    source = "def replay(arguments):\n" + "\n".join(f"    {line}" for line in lines)
    exec(compile(source, "<a captured call>", "exec"), values)  # noqa: S102  its source is made of names and integers
    replay: Callable[[Arguments], Any] = values["replay"]
    return replay
