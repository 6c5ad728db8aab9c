"""The public functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_floating
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.rope import OP, Options, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation


def _call(
    op: str,
    x: torch.Tensor,
    second: torch.Tensor | None,
    offset: int | torch.Tensor,
    freqs: torch.Tensor | None,
    options: tuple[Any, ...],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rotate; ``options`` are the values of ``Options``."""
    result: tuple[torch.Tensor, torch.Tensor | None]
    if isinstance(offset, torch.Tensor):
        result = _turned((x, second, freqs, offset), op, options)
    else:
        result = _turned((x, second, freqs, None), op, options, numbers=(operator.index(offset),))
    return result


@cached_plan
def _turned(
    x: torch.Tensor, second: torch.Tensor | None, freqs: torch.Tensor | None, place: torch.Tensor | None, *more: Any
) -> Callable[..., tuple[torch.Tensor, torch.Tensor | None]]:
    """Check the arguments and plan calls with such tensors.

    Args:
        x: See ``rope``.
        second: Another tensor, or None.
        freqs: See ``rope``.
        place: The offset where it is a tensor, or None.
        more: The offset where it is a number, the op's name, and the options.
    """
    *number, op, options = more
    offset, named = number[0] if place is None else place, Options(*options)
    _check(op, x, second, offset, freqs, named)
    elements = x.numel() + (0 if second is None else second.numel())
    run = implementation(OP, x.device, Problem(NAMES[x.dtype], elements, x.shape[-2]))
    planned = plan_of(run, x, second, offset, freqs, named)

    def call(
        x: torch.Tensor, second: torch.Tensor | None, freqs: torch.Tensor | None, place: torch.Tensor | None, *more: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        result: tuple[torch.Tensor, torch.Tensor | None] = planned(
            x, second, more[0] if place is None else place, freqs, named
        )
        return result

    return call


def _options(
    dims: int, traditional: bool, base: float | None, scale: float, *, inverse: bool = False
) -> tuple[Any, ...]:
    return (dims, traditional, None if base is None else float(base), float(scale), inverse)


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        op: str,
        x: torch.Tensor,
        second: torch.Tensor | None,
        offset: int | torch.Tensor,
        freqs: torch.Tensor | None,
        options: tuple[Any, ...],
    ) -> Any:
        ctx.turn = (offset, freqs, (*options[:-1], not options[-1]))
        out, other = _call(op, x, second, offset, freqs, options)
        return out if other is None else (out, other)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        first, second = _call("rope_backward", grads[0], grads[1] if len(grads) > 1 else None, *ctx.turn)
        return None, first, second, None, None, None


def _check(
    op: str,
    x: torch.Tensor,
    second: torch.Tensor | None,
    offset: int | torch.Tensor,
    freqs: torch.Tensor | None,
    options: Options,
) -> None:
    if x.dim() < 3:
        raise UsageError(op, f"expected x with at least 3 axes, got {x.dim()}.")
    check_floating(op, x=x, freqs=freqs)
    if options.dims <= 0 or options.dims % 2 or options.dims > x.shape[-1]:
        raise UsageError(op, f"expected dims to be even, from 2 to {x.shape[-1]}, got {options.dims}.")
    if (options.base is None) == (freqs is None):
        raise UsageError(op, "expected either base or freqs.", next_step="Pass base=None along with freqs.")
    if freqs is not None and tuple(freqs.shape) != (options.dims // 2,):
        raise UsageError(op, f"expected freqs of shape ({options.dims // 2},), got {tuple(freqs.shape)}.")
    if isinstance(offset, torch.Tensor):
        if offset.dim() > 1 or offset.numel() not in (1, x.shape[0]):
            raise UsageError(op, f"expected one offset, or {x.shape[0]}, got shape {tuple(offset.shape)}.")
        if offset.dtype.is_floating_point or offset.device != x.device:
            raise UsageError(op, f"expected integer offsets on {x.device}, got {offset.dtype} on {offset.device}.")
    if second is None:
        return
    same = x.shape[0] == second.shape[0] and x.shape[-2:] == second.shape[-2:] and x.dtype == second.dtype
    if second.dim() < 3 or not same:
        raise UsageError(
            op,
            "expected queries and keys of one batch, number of tokens, head size and type, "
            f"got {tuple(x.shape)} {x.dtype} and {tuple(second.shape)} {second.dtype}.",
        )


def rope(
    x: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> torch.Tensor:
    """Rotate pairs of elements by angles that grow with their place: ``(offset + t) · scale · base^(-2i / dims)``.

    Computed in fp32 and rounded once, as MLX does on GPUs (its CPU back end rounds the cosines and sines first).

    Args:
        x: ``[batch, ..., tokens, size]`` of any strides; float32, float16 or bfloat16.
        dims: How many leading elements are rotated; the others are copied.
        traditional: Pairs are neighbours; otherwise an element of the first half of dims with one of the second.
        base: Of the frequencies; None where ``freqs`` is given.
        scale: Multiplies places.
        offset: Added to places: a number, or integers in device memory, for all or for each batch entry, which the host
            does not read.
        freqs: ``[dims / 2]``, what places are divided by, instead of ``base``.

    Returns:
        The shape and type of x, contiguous; differentiable.

    Raises:
        UsageError: Shapes, types or options that do not fit.

    Cost: reads and writes x once.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rope.html
    """
    options = _options(dims, traditional, base, scale)
    if torch.is_grad_enabled() and x.requires_grad:
        wired: torch.Tensor = _Rope.apply("rope", x, None, offset, freqs, options)  # type: ignore[no-untyped-call]  # torch's
        return wired
    return _call("rope", x, None, offset, freqs, options)[0]


def rope_backward(
    grad: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the gradient of x, given that of ``rope``'s output: the rotation back.

    Args:
        grad: As ``x`` of ``rope``.
        dims: As given to ``rope``, and so are the others.
        traditional: The like.
        base: The like.
        scale: The like.
        offset: The like.
        freqs: The like.

    Returns:
        The shape and type of grad.

    Raises:
        UsageError: Shapes, types or options that do not fit.

    Cost: as ``rope``.
    """
    options = _options(dims, traditional, base, scale, inverse=True)
    return _call("rope_backward", grad, None, offset, freqs, options)[0]


def rope_pair(
    queries: torch.Tensor,
    keys: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate queries and keys in one launch; see ``rope``.

    Args:
        queries: ``[batch, heads, tokens, size]``.
        keys: ``[batch, other heads, tokens, size]`` of the same type.
        dims: As for ``rope``, and so are the others.
        traditional: The like.
        base: The like.
        scale: The like.
        offset: The like.
        freqs: The like.

    Returns:
        Both rotated; differentiable.

    Raises:
        UsageError: Shapes, types or options that do not fit.

    Cost: reads and writes both once, in one launch.
    """
    options = _options(dims, traditional, base, scale)
    if torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad):
        wired: tuple[torch.Tensor, torch.Tensor] = _Rope.apply("rope_pair", queries, keys, offset, freqs, options)  # type: ignore[no-untyped-call]  # torch's
        return wired
    first, second = _call("rope_pair", queries, keys, offset, freqs, options)
    if second is None:
        raise UsageError("rope_pair", "expected an implementation to rotate both tensors.")
    return first, second
