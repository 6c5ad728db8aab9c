"""Fake libraries that keep their arguments, for steps of captured calls."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from rocmend.kernels import native
from rocmend.kernels.native import cudnn as native_cudnn
from rocmend.kernels.ops.conv.conv import cudnn

POINTER = ctypes.c_void_p
_kept: list[Any] = []  # objects that are freed later call them


def address(function: Any) -> int:
    """Return the address of a function of ctypes."""
    _kept.append(function)
    return ctypes.cast(function, POINTER).value or 0


class Products:
    """Stands for cuBLASLt."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status = 0
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[POINTER] * 14, ctypes.c_size_t, POINTER)
        self._multiply = address(kind(self._called))

    def _called(self, *args: Any) -> int:
        alpha, beta = (ctypes.cast(args[at], ctypes.POINTER(ctypes.c_float))[0] for at in (2, 7))
        algorithm = ctypes.string_at(args[12], 64)
        self.calls.append((*args[:2], alpha, *args[3:7], beta, *args[8:12], algorithm, *args[13:]))
        return self.status

    def product(self, workspace: int = 0, held: Any = None) -> Any:
        """Return a product."""
        return native.module().Product(self._multiply, 11, 12, (13, 14, 15), bytes(range(64)), workspace, held)


class Dnn:
    """Stands for cuDNN."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refused = ""
        self.packs: dict[int, dict[int, list[int]]] = {}
        number, many = ctypes.c_int, ctypes.c_int64
        kinds = {
            "create": (number, ctypes.POINTER(POINTER)), "set": (POINTER, number, number, many, ctypes.POINTER(many)),
            "finish": (POINTER,), "destroy": (POINTER,), "execute": (POINTER, POINTER, POINTER),
            "stream": (POINTER, POINTER),
        }  # fmt: skip
        functions = [
            address(ctypes.CFUNCTYPE(number, *kind)(self._function(name))) for name, kind in kinds.items()
        ]  # fmt: skip
        self.turns = native.module().DnnHandle(21, tuple(functions))

    def _function(self, name: str) -> Callable[..., int]:
        def called(*args: Any) -> int:
            if name == self.refused:
                return 3000
            if name == "create":
                args[1][0] = 100 + len(self.packs)
                self.packs[100 + len(self.packs)] = {}
                self.calls.append((name, args[0]))
            elif name == "set":
                self.packs[args[0]][args[1]] = [args[4][at] for at in range(args[3])]
            else:
                self.calls.append((name, *args))
            if name == "execute":
                self.executed(*args[1:])
            return 0

        return called

    def plan(self, *, workspace: bool = False, held: Any = None, number: int = 22) -> Any:
        """Return a plan."""
        return native.module().DnnPlan(self.turns, number, workspace, held)

    def executed(self, plan: int, pack: int) -> None:
        """Compute."""


def halves_at(address: int, count: int, dtype: Any) -> Any:
    """Return so many elements of a half type that lie at an address."""
    import torch

    return torch.frombuffer((ctypes.c_int16 * count).from_address(address), dtype=torch.int16).view(dtype)


class Convolutions(Dnn):
    """Stands for cuDNN, and computes: what is asked of it, with the numbers that it was planned with."""

    def __init__(self) -> None:
        super().__init__()
        self.planned: list[cudnn.Convolution] = []

    def of(self, one: cudnn.Convolution, _index: int) -> native_cudnn.ExecutionPlan:
        """Return a plan, as ``native_cudnn.plan`` does; the third one has a workspace."""
        self.planned.append(one)
        roomy = len(self.planned) % 3 == 0
        return native_cudnn.ExecutionPlan(self.plan(workspace=roomy, number=len(self.planned)), 64 if roomy else 0)

    def executed(self, plan: int, pack: int) -> None:
        """Compute."""
        import torch

        one = self.planned[plan - 1]
        places = self.packs[pack][1001]
        x, weight, y = (
            halves_at(place, math.prod(sizes), one.dtype).as_strided(sizes, native_cudnn.channels_last(sizes))
            for place, sizes in zip(places, (one.x, one.weight, one.y), strict=True)
        )
        groups = one.x[1] // one.weight[1]
        wide = [each.double().requires_grad_() for each in (x, weight)]
        with torch.enable_grad():
            out = torch.convolution(
                wide[0], wide[1], None, one.stride, one.padding, [1] * len(one.stride), False, [0], groups
            )
        if one.direction == "forward":
            y.copy_(out.detach())
            return
        wanted = 0 if one.direction == "input" else 1
        (found,) = torch.autograd.grad(out, wide[wanted], y.double())
        (x, weight)[wanted].copy_(found)
