"""Numbers along an axis of a tensor whose layout is said, for kernels in Gluon."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def ceil2(count):
    """Return the next power of two."""
    return 1 << (count - 1).bit_length()


@gluon.constexpr_function
def _axis(parent, axis, rank):
    """Return the layout of one axis of a tensor."""
    layout = parent
    for other in reversed(range(rank)):
        if other != axis:
            layout = gl.SliceLayout(other, layout)
    return layout


@gluon.jit
def along(AXIS: gl.constexpr, SIZE: gl.constexpr, parent: gl.constexpr, RANK: gl.constexpr):
    """Return 0, 1, … along an axis of a tensor of a layout, the others of size one."""
    layout: gl.constexpr = _axis(parent, AXIS, RANK)
    t = gl.arange(0, SIZE, layout=layout)
    for other in gl.static_range(RANK):
        if other != AXIS:
            t = t.expand_dims(other)
    return t
