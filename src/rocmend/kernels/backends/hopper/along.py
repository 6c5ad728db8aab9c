"""What kernels in Gluon share: numbers along an axis of a tensor whose layout is said, and launches that overlap."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def made(blocks, key):
    """Return the block of PTX that was made for a key."""
    return blocks[key]


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


@gluon.jit
def begin_behind():
    """Wait for what the launch before wrote, then let the next one begin.

    In this order: the next one may read weights that were written before this one began to wait.
    """
    gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)


@gluon.jit
def numbers_of(text: gl.constexpr, of: gl.constexpr, given):
    """Return the fp32 that a block of PTX makes of tensors of four registers a lane; it does nothing else."""
    return gl.inline_asm_elementwise(text, of, given, gl.float32, is_pure=True, pack=4)


@gluon.jit
def words_of(text: gl.constexpr, of: gl.constexpr, given):
    """Return the words that a block of PTX makes of tensors of four registers a lane; it does nothing else."""
    return gl.inline_asm_elementwise(text, of, given, gl.int32, is_pure=True, pack=4)


@gluon.jit
def done(text: gl.constexpr, of: gl.constexpr, given, PACK: gl.constexpr):
    """Carry out a block of PTX for what it does, with PACK registers a lane of each tensor at a time."""
    return gl.inline_asm_elementwise(text, of, given, gl.int32, is_pure=False, pack=PACK)


@gluon.jit
def said(text: gl.constexpr):
    """Carry out an instruction that gives and takes nothing."""
    done(text, "=r", [], 1)
