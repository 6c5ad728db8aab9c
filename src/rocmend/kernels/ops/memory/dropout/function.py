"""The public functions."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.common.autograd import differentiable
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.memory.dropout import OP, Problem
from rocmend.kernels.select import implementation


def _run(x: Tensor, p: float, state: Tensor, generator: str) -> Tensor:
    problem = Problem(NAMES[x.dtype], x.numel(), generator)
    return implementation(OP, x.device, problem)(x, p, state, generator=generator)


def _checked(op: str, x: Tensor, p: float, state: Tensor, generator: str) -> Tensor:
    check_dtype(op, OP, x)
    if not 0 <= p < 1:
        raise UsageError(op, f"expected 0 <= p < 1, got {p}.")
    if p == 0:
        return x
    # The gradient goes through the same mask, which is drawn again.
    return differentiable(
        lambda x, state: (_run(x, p, state, generator), (state,)),
        lambda grad, state: (_run(grad, p, state, generator), None),
        x, state,
    )  # fmt: skip


def dropout_mlx(x: Tensor, p: float, key: Tensor) -> Tensor:
    """Drop elements with probability ``p`` by MLX's generator: the mask is MLX's, bit for bit.

    Args:
        x: Any shape; float32, float16 or bfloat16.
        p: Probability to drop an element.
        key: uint32 ``[2]`` (``random_key``), read on the device: a graph may change it between replays.

    Returns:
        ``x · mask · (1 / (1 - p))``, rounded once; contiguous. ``x`` itself where ``p`` is 0.

    Raises:
        UsageError: Another type, ``p`` outside [0, 1), or a key that is none.

    Cost: reads and writes x once; 20 rounds of threefry for two elements. Backward the same, with no mask kept.
    """
    if key.dtype not in (torch.uint32, torch.int32) or tuple(key.shape) != (2,):
        raise UsageError("dropout_mlx", f"expected a key of uint32 and shape (2,), got {key.dtype} {tuple(key.shape)}.")
    return _checked("dropout_mlx", x, p, key, "threefry")


def dropout_philox(x: Tensor, p: float, state: Tensor) -> Tensor:
    """Drop elements with probability ``p`` by philox 4x32-10.

    The family of torch's generator on GPUs, but not its stream, which depends on how torch cuts its grid: element i
    takes word ``i mod 4`` of counter ``offset + i // 4``, and is kept where that is at least ``round(p · 2^32)``.

    Args:
        x: Any shape; float32, float16 or bfloat16.
        p: Probability to drop an element.
        state: int64 ``[2]``: seed and offset, read on the device.

    Returns:
        ``x / (1 - p)``, rounded once, or 0 where it is dropped; contiguous. ``x`` itself where ``p`` is 0.

    Raises:
        UsageError: Another type, ``p`` outside [0, 1), or a state that is none.

    Cost: reads and writes x once; 10 rounds for four elements. Backward the same, with no mask kept.
    """
    if state.dtype != torch.int64 or tuple(state.shape) != (2,):
        raise UsageError(
            "dropout_philox", f"expected a state of int64 and shape (2,), got {state.dtype} {tuple(state.shape)}."
        )
    return _checked("dropout_philox", x, p, state.contiguous(), "philox")
