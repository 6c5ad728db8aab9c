"""What ``streams_kernel`` reads: copied by rows into shared memory, read from there by the lanes that multiply it.

Layouts are said, not found: bits of a register's, a lane's or a wavefront's number stand for bits of a place.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy


@gluon.constexpr_function
def _bits(axis, first, count):
    """Return bases of neighbouring bits of an axis of three."""
    return [[(1 << (first + at)) if one == axis else 0 for one in range(3)] for at in range(count)]


@gluon.constexpr_function
def _log2(number):
    return number.bit_length() - 1


@gluon.constexpr_function
def keys_layout(bits, steps, groups, waves):
    """Return the layout in which lanes have words of keys: of row r keys side by side, of quarter t words."""
    each = 1 if bits == 4 else 2
    own = _log2(2 * steps)
    registers = _bits(2, 0, each) + _bits(1, 0, own) + _bits(2, each + 2, _log2(groups))
    lanes = _bits(2, each, 2) + _bits(1, own, 3)
    shape = [waves, 16 * steps, 2 * bits * groups]
    return gl.DistributedLinearLayout(registers, lanes, _bits(0, 0, _log2(waves)), [], shape)


@gluon.constexpr_function
def values_layout(bits, steps, groups, waves):
    """Return the layout in which lanes have words of values: of row r words, of quarter t keys side by side."""
    each = 0 if bits == 4 else 1
    own = _log2(4 * steps)
    registers = _bits(2, 0, each) + _bits(1, 0, own) + _bits(2, each + 3, _log2(groups))
    lanes = _bits(1, own, 2) + _bits(2, each, 3)
    shape = [waves, 16 * steps, 2 * bits * groups]
    return gl.DistributedLinearLayout(registers, lanes, _bits(0, 0, _log2(waves)), [], shape)


@gluon.jit
def _parted(t, COUNT: gl.constexpr):
    """Return the last axis, of 2, 4 or 8, as so many tensors, in its order."""
    if COUNT == 1:
        parts = (t,)
    else:
        rest: gl.constexpr = [t.shape[0], t.shape[1], t.shape[2], t.shape[3], t.shape[4], COUNT // 2, 2]
        even, odd = gl.split(t.reshape(rest))
        evens, odds = _parted(even, COUNT // 2), _parted(odd, COUNT // 2)
        parts = ()
        for at in gl.static_range(COUNT // 2):
            parts = parts + (evens[at], odds[at])
    return parts


@gluon.jit
def _fours(parts, lanes: gl.constexpr, COUNT: gl.constexpr):
    """Return tensors of four registers a lane."""
    fours = ()
    for at in gl.static_range(COUNT):
        four = parts[at].reshape([parts[at].shape[0], 8, 4, 4])
        fours = fours + (gl.convert_layout(four, lanes, assert_trivial=True),)
    return fours


@gluon.jit
def keys_in(
    memory, layout: gl.constexpr, lanes: gl.constexpr, STEPS: gl.constexpr, GROUPS: gl.constexpr, BITS: gl.constexpr
):
    """Return words of keys by step and group, for 8 bits by half too: by half and word, or by word."""
    x = memory.load(layout)
    if BITS == 4:
        x = x.reshape([x.shape[0], 8, STEPS, 2, GROUPS, 4, 2]).permute([0, 1, 5, 3, 6, 2, 4])
        x = x.reshape([x.shape[0], 8, 4, 2, 2, STEPS * GROUPS])
    else:
        x = x.reshape([x.shape[0], 8, STEPS, 2, GROUPS, 4, 2, 2]).permute([0, 1, 5, 6, 7, 2, 4, 3])
        x = x.reshape([x.shape[0], 8, 4, 2, 2, STEPS * GROUPS * 2])
    return _fours(_parted(x, STEPS * GROUPS * (BITS // 4)), lanes, STEPS * GROUPS * (BITS // 4))


@gluon.jit
def values_in(
    memory, layout: gl.constexpr, lanes: gl.constexpr, STEPS: gl.constexpr, GROUPS: gl.constexpr, BITS: gl.constexpr
):
    """Return words of values by step and group, for 8 bits by half too: by half and key, or by key and word."""
    x = memory.load(layout)
    if BITS == 4:
        x = x.reshape([x.shape[0], 4, 2, STEPS, 2, GROUPS, 8]).permute([0, 6, 1, 4, 2, 3, 5])
        x = x.reshape([x.shape[0], 8, 4, 2, 2, STEPS * GROUPS])
    else:
        x = x.reshape([x.shape[0], 4, 2, STEPS, 2, GROUPS, 8, 2]).permute([0, 6, 1, 2, 7, 3, 5, 4])
        x = x.reshape([x.shape[0], 8, 4, 2, 2, STEPS * GROUPS * 2])
    return _fours(_parted(x, STEPS * GROUPS * (BITS // 4)), lanes, STEPS * GROUPS * (BITS // 4))


@gluon.jit
def copied(
    kmem, vmem, beside, slot, kw, vw, affine, kw_ss, vw_ss, at, row, word, whole, own, four, last, end,
    GROUPS: gl.constexpr,
):  # fmt: skip
    """Begin to copy what a turn needs, from key ``at`` on: words as they stand, and scales and biases.

    Of the latter each quarter has one of four.
    """
    key = gl.minimum(at + row, last).to(gl.int64)
    here = at + whole < end
    async_copy.async_copy_global_to_shared(kmem.index(slot), kw + (key * kw_ss + word), mask=here)
    async_copy.async_copy_global_to_shared(vmem.index(slot), vw + (key * vw_ss + word), mask=here)
    # In fours: what is copied beyond the last key lies with it in the same 16 bytes.
    place = gl.minimum((at + own) * (GROUPS // 2), (last * (GROUPS // 2)) // 4 * 4)
    async_copy.async_copy_global_to_shared(beside.index(slot), affine + (place + four), mask=at + own < end)
