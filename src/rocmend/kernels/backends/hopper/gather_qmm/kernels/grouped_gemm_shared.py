"""What the wavefronts of ``experts`` share: where in shared memory is what, barriers, and a lane's numbers."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import along, done
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_ptx as blocks
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_lists import WAVEFRONTS, nothing


class _Texts(dict):
    """Blocks of PTX and their constraints by name and what they are made for, made when they are asked for."""

    def __missing__(self, key):
        name, *given = key
        return getattr(blocks, name)(*given)


TEXTS = _Texts()
WAIT, WAIT_OF = (gl.constexpr(t) for t in blocks.wait())
ARRIVE, ARRIVE_OF = (gl.constexpr(t) for t in blocks.arrive())
MXFP4 = gl.constexpr(blocks.MXFP4)
HEIGHT = gl.constexpr(128)
"""Rows of a block of weights: 16 of each wavefront that multiplies."""
COPIERS = gl.constexpr(2)
"""Wavefronts that copy weights."""
FIRST = gl.constexpr(2)
"""Slots that are filled before a tile's rows are listed, an even number."""
WORDS = gl.constexpr(8 * 16 * 128)
"""Bytes of a slot of words of all wavefronts: half as many columns of x as a part has."""
SCALES = gl.constexpr(8 * 16 * 32)
"""Bytes of a slot of scales and biases of all wavefronts, of a part's columns; of mxfp4 half of it is used."""
WORDS_AT, SCALES_AT, LIST_AT, ORDERED_AT, ROWS_AT, COUNTS_AT = (gl.constexpr(at) for at in range(1, 7))
FILLED, FREE, STAGED, READ_UP, LISTED, END = (gl.constexpr(at) for at in range(7, 13))
"""Which of ``places`` is what."""


@gluon.constexpr_function
def text(*key):
    """Return a block of PTX by its name and what it is made for."""
    return TEXTS[key][0]


@gluon.constexpr_function
def text_of(*key):
    """Return a block's constraints."""
    return TEXTS[key][1]


@gluon.constexpr_function
def places(TILES, SLOTS, ROOM, EXPERTS):
    """Return where in shared memory is what, in bytes, and how many there are.

    Two parts of x; slots of words; of scales; numbers of pairs of an expert, whose first 16 bytes are their number and
    how many are the tile's; those of a tile; where rows of x are that are a tile's; how many pairs each expert has; and
    barriers, of 8 bytes: of slots that are filled, and that are free, of parts of x that are there, and that are free,
    and of the list.
    """
    sizes = (2 * 8192 * TILES, 16384 * SLOTS, 4096 * (SLOTS // 2 + 1), 16 + 4 * ROOM, 32 * TILES, 256, 4 * EXPERTS)
    sizes += (8 * SLOTS, 8 * SLOTS, 16, 16, 8)
    return tuple(sum(sizes[:at]) for at in range(len(sizes) + 1))


@gluon.jit
def wait(barrier, turn):
    """Wait until a barrier's turn is over, of those counted from 0 on."""
    done(WAIT, WAIT_OF, [barrier, turn & 1], 1)


@gluon.jit
def arrive(barrier, WAVES: gl.constexpr):
    """Arrive at a barrier, once for a wavefront."""
    lane = gl.arange(0, 32 * WAVES, layout=gl.BlockedLayout([1], [32], [WAVES], [0]))
    done(ARRIVE, ARRIVE_OF, [barrier + lane * 0, (lane % 32 == 0).to(gl.int32)], 1)


@gluon.jit
def begin_barriers(barriers, COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """Make barriers of so many arrivals."""
    lane = gl.arange(0, 32 * WAVEFRONTS, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    done(text("begin", ARRIVALS), text_of("begin", ARRIVALS), [barriers + lane * 8, (lane < COUNT).to(gl.int32)], 1)


@gluon.jit
def lanes_of(WAVES: gl.constexpr):
    """Return numbers of wavefronts, rows and quarters, of four registers, and zero, of each lane."""
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [WAVES, 1, 1, 1], [3, 2, 1, 0])
    wavefront, r = along(0, WAVES, lanes, 4), along(1, 8, lanes, 4)
    q, four = along(2, 4, lanes, 4), along(3, 4, lanes, 4)
    return wavefront, r, q, four, wavefront * 0 + r * 0 + q * 0 + four * 0
