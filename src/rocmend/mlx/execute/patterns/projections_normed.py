"""RMSNorm, with a residual added before or without, and the products of its result: one launch for one row.

It takes what ``add_norm`` and ``projections`` put in place, and single norms and products. Where the normalised row has
other users, such as the experts of a mixture beside their router, it is returned too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend import kernels
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.patterns.projections import GATED, MANY, kind_of, weights_of
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from rocmend.mlx.execute.patterns.view import View


class _Norm(NamedTuple):
    """Places of what is normalised, of a residual (none or one) and of the weight; of the result, and of the sum."""

    x: int
    residual: tuple[int, ...]
    weight: int
    eps: float
    normed: int
    total: tuple[int, ...]


@pattern("projections_normed")
def projections_normed(view: View) -> list[Step]:
    """Join each norm with the first products of its result, where the norm stands."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number in range(len(view.steps)):
        norm = _norm(view, number)
        if norm is None:
            continue
        users = view.users.get(norm.normed, [])
        products = next((user for user in users if _form(view, user, norm.normed) is not None), None)
        if products is None:
            continue
        step = view.steps[products]
        if any(not view.there(place, number) for place in step.ins[1:]):
            continue
        keep = len(users) > 1 or norm.normed in view.kept
        ins = (norm.x, *norm.residual, norm.weight, *step.ins[1:])
        outs = (*step.outs, *norm.total, *((norm.normed,) if keep else ()))
        gated = step.kernel is not None and step.kernel[0] == GATED
        call = _call(_form(view, products, norm.normed), norm, len(outs), gated=gated, keep=keep)
        placed[number] = Step(call, ins, outs, kernel=("rms_norm_projections", None))
        gone.add(products)
    return view.replaced(placed, gone)


def _norm(view: View, number: int) -> _Norm | None:
    """Return the norm that a step is; None for other steps."""
    step = view.steps[number]
    if step.kernel is not None and step.kernel[0] == "add_rms_norm":
        x, residual, weight = step.ins
        return _Norm(x, (residual,), weight, step.kernel[1], step.outs[0], step.outs[1:])
    if view.name(number) != "RMSNorm" or len(step.ins) != 2:
        return None
    out = view.node(step.outs[0])
    if any(view.node(place).dtype is not out.dtype for place in step.ins):
        return None
    return _Norm(step.ins[0], (), step.ins[1], out.attrs, step.outs[0], ())


def _form(view: View, number: int, normed: int) -> Any:
    """Return the format of the weights of a step that multiplies the normalised row with them; None for others."""
    step = view.steps[number]
    if step.ins[0] != normed or normed in step.ins[1:]:
        return None
    if step.kernel is not None:
        return step.kernel[1] if step.kernel[0] in {GATED, MANY} else None
    return None if kind_of(view, number) is None else view.node(step.outs[0]).attrs[1]


def _call(form: Any, norm: _Norm, outs: int, *, gated: bool, keep: bool) -> Any:
    def call(_nodes: Any, x: Any, *rest: Any) -> Any:
        residual, (weight, *weights) = (rest[0], rest[1:]) if norm.residual else (None, rest)
        found = kernels.rms_norm_projections(
            x, weight, norm.eps, weights_of(form, weights), form.group_size, form.bits, form.mode,
            residual=residual, gated=gated, keep=keep,
        )  # fmt: skip
        return found if outs > 1 else found[0]

    return call
