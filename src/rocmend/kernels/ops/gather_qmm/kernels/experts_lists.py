"""Which pairs are whose, for ``experts``: a program counts all of them, and lists those of one expert."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.ops.gather_qmm.kernels import experts_blocks as blocks

ROOMS = (512, 1024)
LISTED = {(room, count): blocks.listed(room, count)[0] for room in ROOMS for count in (False, True)}
LISTED_OF = gl.constexpr(blocks.listed(1, True)[1])
READ, READ_OF = (gl.constexpr(t) for t in blocks.READ)
WRITE, WRITE_OF = (gl.constexpr(t) for t in blocks.WRITE)
NOTHING, NOTHING_OF = (gl.constexpr(t) for t in blocks.NOTHING)


@gluon.constexpr_function
def _listed(room, count):
    return LISTED[room, count]


@gluon.jit
def _write(at, what, there):
    gl.inline_asm_elementwise(WRITE, WRITE_OF, [at, what, there], gl.int32, is_pure=False, pack=1)


@gluon.jit
def read(at):
    """Load a word of shared memory."""
    return gl.inline_asm_elementwise(READ, READ_OF, [at], gl.int32, is_pure=False, pack=1)


@gluon.jit
def nothing():
    """Return 0, which the compiler does not know of: what it is added to is not computed long before it is used."""
    return gl.inline_asm_elementwise(NOTHING, NOTHING_OF, [], gl.int32, is_pure=False, pack=1)


@gluon.jit
def list_pairs(
    rhs_ptr, start, end, expert, counts_at, list_at, ROOM: gl.constexpr, EXPERTS: gl.constexpr,
    COUNT: gl.constexpr, WAVEFRONTS: gl.constexpr,
):  # fmt: skip
    """Write the numbers of an expert's pairs from ``start`` on, as many as there is room for, in any order.

    Return how many there are; all experts' pairs are counted too.
    """
    SPAN: gl.constexpr = WAVEFRONTS * 128
    lanes: gl.constexpr = gl.BlockedLayout([4], [32], [WAVEFRONTS], [0])
    number = gl.arange(0, SPAN, layout=lanes) + nothing()
    counter = gl.arange(0, EXPERTS, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    nil = number * 0
    # Nobody reads what was there any more.
    gl.thread_barrier()
    if COUNT:
        _write(counts_at + counter * 4, counter * 0, counter * 0 + 1)
    _write(list_at, list_at * 0, list_at * 0 + 1)
    gl.thread_barrier()
    for first in range(start, end, 2 * SPAN):
        several = ()
        for part in gl.static_range(2):
            pair = first + part * SPAN + number
            several = several + (gl.load(rhs_ptr + pair, mask=pair < end, other=-1).to(gl.int32),)
        for part in gl.static_range(2):
            pair = first + part * SPAN + number
            gl.inline_asm_elementwise(
                _listed(ROOM, COUNT), LISTED_OF, [several[part], nil + expert, pair, nil + counts_at, nil + list_at],
                gl.int32, is_pure=False, pack=1,
            )  # fmt: skip
    gl.thread_barrier()
    return read(list_at)


@gluon.jit
def order_pairs(list_at, count, before, low, to_at, ROOM: gl.constexpr, MOST: gl.constexpr, WAVEFRONTS: gl.constexpr):
    """Write those of a list's numbers whose places in order are ``low`` to ``low + MOST``.

    ``before`` others are less than all of the list.
    """
    place = gl.arange(0, ROOM, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    own = read(list_at + 16 + place * 4)
    rank = place * 0 + (before - low)
    for other in range(count):
        rank += (read(list_at + 16 + other * 4) < own).to(gl.int32)
    there = (place < count) & (rank >= 0) & (rank < MOST)
    _write(to_at + rank * 4, own, there.to(gl.int32))


@gluon.jit
def _add(one, other):
    return one + other


@gluon.jit
def more_tiles(counts_at, MOST: gl.constexpr, EXPERTS: gl.constexpr, WAVEFRONTS: gl.constexpr):
    """Return how many tiles experts and all before them have beyond their first ones."""
    # Wavefronts have all of them, or they would exchange them.
    lanes: gl.constexpr = gl.BlockedLayout([EXPERTS // 32], [32], [WAVEFRONTS], [0])
    counts = read(counts_at + (gl.arange(0, EXPERTS, layout=lanes) + nothing()) * 4)
    tiles = gl.maximum((counts + (MOST - 1)) // MOST - 1, 0)
    return tiles, gl.associative_scan(tiles, 0, _add)
