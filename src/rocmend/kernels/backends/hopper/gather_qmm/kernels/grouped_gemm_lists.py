"""Which pairs are whose, for ``experts``: a program lists those of one expert, and counts all of them."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import done
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_ptx as blocks

ROOMS = (512, 1024)
WAVEFRONTS = gl.constexpr(8)
STAGERS = gl.constexpr(2)
"""Wavefronts that count pairs."""
SPAN = gl.constexpr(128)
"""Pairs of which a wavefront's lanes have four each."""
TENSORS = gl.constexpr(blocks.TENSORS)
LISTED = {room: blocks.listed(room, 8 * 128)[0] for room in ROOMS}
LISTED_OF = gl.constexpr(blocks.listed(1, 1)[1])
COUNTED, COUNTED_OF = (gl.constexpr(t) for t in blocks.counted())
READ, READ_OF = (gl.constexpr(t) for t in blocks.READ)
WRITE, WRITE_OF = (gl.constexpr(t) for t in blocks.WRITE)
NOTHING, NOTHING_OF = (gl.constexpr(t) for t in blocks.NOTHING)


@gluon.constexpr_function
def _listed(room):
    return LISTED[room]


@gluon.jit
def write(at, what, there):
    """Store a word to shared memory, where ``there`` is not 0."""
    done(WRITE, WRITE_OF, [at, what, there], 1)


@gluon.jit
def read(at):
    """Load a word of shared memory."""
    return done(READ, READ_OF, [at], 1)


@gluon.jit
def nothing():
    """Return 0, which the compiler does not know of: what it is added to is not computed long before it is used."""
    return done(NOTHING, NOTHING_OF, [], 1)


@gluon.jit
def _some_pairs(rhs_ptr, start, end, WAVES: gl.constexpr):
    """Load experts of as many pairs as so many wavefronts look at at once, -1 behind the end."""
    number = gl.arange(0, WAVES * SPAN, layout=gl.BlockedLayout([4], [32], [WAVES], [0])) + nothing()
    some = ()
    for part in gl.static_range(TENSORS):
        pair = start + part * (WAVES * SPAN) + number
        some = some + (gl.load(rhs_ptr + pair, mask=pair < end, other=-1).to(gl.int32),)
    return some


@gluon.jit
def count_pairs(rhs_ptr, pairs, counts_at):
    """Add pairs of experts to their numbers, which are 0 at first: the stagers do so."""
    number = gl.arange(0, STAGERS * SPAN, layout=gl.BlockedLayout([4], [32], [STAGERS], [0]))
    for first in range(0, pairs, TENSORS * STAGERS * SPAN):
        some = _some_pairs(rhs_ptr, first, pairs, STAGERS)
        done(COUNTED, COUNTED_OF, some + (number * 0 + counts_at,), 4)


@gluon.jit
def _list_pairs(rhs_ptr, start, end, expert, list_at, ROOM: gl.constexpr):
    """Write the numbers of an expert's pairs from ``start`` on, as many as there is room for, in any order.

    Return how many there are.
    """
    number = gl.arange(0, WAVEFRONTS * SPAN, layout=gl.BlockedLayout([4], [32], [WAVEFRONTS], [0]))
    some = _some_pairs(rhs_ptr, start, end, WAVEFRONTS)
    # Nobody reads what was there any more.
    gl.thread_barrier()
    write(list_at, list_at * 0, list_at * 0 + 1)
    gl.thread_barrier()
    for first in range(start, end, TENSORS * WAVEFRONTS * SPAN):
        done(_listed(ROOM), LISTED_OF, some + (number + first, number * 0 + expert, number * 0 + list_at), 4)
        some = _some_pairs(rhs_ptr, first + TENSORS * WAVEFRONTS * SPAN, end, WAVEFRONTS)
    gl.thread_barrier()
    return read(list_at)


@gluon.jit
def _order_pairs(list_at, count, before, low, to_at, ROOM: gl.constexpr, MOST: gl.constexpr):
    """Write those of a list's numbers whose places in order are ``low`` to ``low + MOST``.

    ``before`` others are less than all of the list.
    """
    place = gl.arange(0, ROOM, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    own = read(list_at + 16 + place * 4)
    rank = place * 0 + (before - low)
    for other in range(count):
        rank += (read(list_at + 16 + other * 4) < own).to(gl.int32)
    there = (place < count) & (rank >= 0) & (rank < MOST)
    write(to_at + rank * 4, own, there.to(gl.int32))


@gluon.jit
def list_tile(rhs_ptr, pairs, expert, tile, list_at, ordered_at, ROOM: gl.constexpr, MOST: gl.constexpr):
    """List an expert's pairs; return how many there are, and where the numbers of those of a tile are."""
    listed = _list_pairs(rhs_ptr, 0, pairs, expert, list_at, ROOM)
    tile_at = list_at + 16
    if listed > MOST:
        # Which pairs are in which tile has to be the same in all programs.
        tile_at = ordered_at
        span = gl.where(listed > ROOM, ROOM, pairs)
        earlier = tile * 0
        for start in range(0, pairs, span):
            some = listed
            if listed > ROOM:
                some = _list_pairs(rhs_ptr, start, gl.minimum(start + span, pairs), expert, list_at, ROOM)
            _order_pairs(list_at, some, earlier, tile * MOST, ordered_at, ROOM, MOST)
            earlier += some
        gl.thread_barrier()
    return listed, tile_at


@gluon.jit
def _add(one, other):
    return one + other


@gluon.jit
def more_tiles(counts_at, MOST: gl.constexpr, EXPERTS: gl.constexpr):
    """Return how many tiles each expert has beyond its first one."""
    # Wavefronts have all of them, or they would exchange them.
    lanes: gl.constexpr = gl.BlockedLayout([EXPERTS // 32], [32], [WAVEFRONTS], [0])
    counts = read(counts_at + (gl.arange(0, EXPERTS, layout=lanes) + nothing()) * 4)
    return gl.maximum((counts + (MOST - 1)) // MOST - 1, 0)


@gluon.jit
def tile_of(more, tiles):
    """Return the expert of a tile beyond first ones, and which of its tiles it is."""
    before = gl.associative_scan(tiles, 0, _add) <= more
    return gl.sum(before.to(gl.int32), axis=0), 1 + more - gl.sum(gl.where(before, tiles, 0), axis=0)
