"""Products of some rows of x for each of many experts, on Hopper: all sums of a unit of work stay in registers.

A unit is a tile of an expert's rows of x, and some blocks of rows of its weights. There is a program for each compute
unit: it finds its tile's rows itself, so that no launch comes before it. Experts with more rows than a tile has are
further units, behind one of each expert.

With a gate, blocks of both matrices come in turn: a lane has both sums of its outputs, and stores what they make. Where
registers have no room for all sums of a tile, a unit has rounds: the tile is there, its x comes again.

Wavefronts have tasks. Two copy weights to a ring of slots in shared memory, and wait for nothing but room. Two bring x
there, 512 columns at a time, in the order of unpacked weights, while the columns before them are multiplied. Eight list
the tile's rows and multiply, four of them 64 rows of weights, which are the matrix unit's left operand and which they
unpack in their registers: while the products of one group of columns run, the next is unpacked, and loaded before that.
Barriers in shared memory tell when a slot or a part of x is there, and when it is free again.
"""

from __future__ import annotations

import hashlib
import inspect

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import begin_behind, done
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_ptx as blocks
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_shared as ring
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_copies import copy_weights, stage, stage_part
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_lists import (
    STAGERS,
    WAVEFRONTS,
    list_tile,
    more_tiles,
    nothing,
    read,
    tile_of,
    write,
)

VERSION = gl.constexpr(hashlib.sha256(inspect.getsource(blocks).encode()).hexdigest())
"""Of the blocks: what was compiled from others is not taken for what these compile to."""
MULTIPLIED, MULTIPLIED_OF = (gl.constexpr(t) for t in blocks.MULTIPLIED)
BASE, BASE_OF = (gl.constexpr(t) for t in blocks.BASE)
FROM_SUMS, FROM_E2M1 = gl.constexpr(2.0**23), gl.constexpr(2.0**5)
"""What sums are multiplied by."""


@gluon.jit
def _some(values, FROM: gl.constexpr, COUNT: gl.constexpr):
    few = ()
    for at in gl.static_range(FROM, FROM + COUNT):
        few = few + (values[at],)
    return few


@gluon.jit
def _replaced(values, new, FROM: gl.constexpr):
    """Return values with new ones in the place of as many of them."""
    return (
        _some(values, 0, FROM) + new + _some(values, FROM + len(new), len(values) - FROM - len(new))
    )  # fmt: skip


@gluon.jit
def _products(
    n, used, staged, base,
    DEPTH: gl.constexpr, TILES: gl.constexpr, BLOCKS: gl.constexpr, SLOTS: gl.constexpr, FORM: gl.constexpr,
    PLACES: gl.constexpr,
):  # fmt: skip
    """Multiply a unit's rows of weights by a tile of x, one part of the columns after the other; return the sums."""
    PARTS: gl.constexpr = DEPTH // 512
    wavefront, r, q, _four, zero = ring.lanes_of(WAVEFRONTS)
    words_at = (
        base + PLACES[ring.WORDS_AT] + (wavefront * (ring.WORDS // WAVEFRONTS) + r * 256 + (q * 2 + r % 2) * 16 + zero)
    )
    scales_at = base + PLACES[ring.SCALES_AT] + (wavefront * (ring.SCALES // WAVEFRONTS) + q * 2 + zero)
    scales_at += r * (16 if FORM == ring.MXFP4 else 64)
    lead = (r * 4 + q + zero == 0).to(gl.int32)
    filled = base + PLACES[ring.FILLED]
    sums = ()
    for _sum in gl.static_range(BLOCKS * TILES):
        sums = sums + (zero.to(gl.float32),)
    slot, odd, beside = used % SLOTS, used // SLOTS & 1, used // 2 % (SLOTS // 2 + 1)
    held = gl.inline_asm_elementwise(
        ring.text("take", FORM), ring.text_of("take", FORM),
        [words_at + slot * ring.WORDS, scales_at + beside * ring.SCALES, zero + (filled + slot * 8), zero + odd],
        (gl.int32, gl.int32, gl.int32), is_pure=False, pack=4,
    )  # fmt: skip
    for part in range(PARTS):
        at = staged + part
        here = (((base + at % 2 * (TILES * 8192)) >> 4) & 0x3FFF) + 0x10000
        ring.wait(base + PLACES[ring.STAGED] + at % 2 * 8, at // 2)
        for block in gl.static_range(BLOCKS):
            hidden = nothing()
            # A loop for the compiler too, or its code is twice as long.
            for half in range(2 + (n >> 31)):
                next_slot = gl.where(slot == SLOTS - 1, 0, slot + 1)
                next_odd = gl.where(slot == SLOTS - 1, odd ^ 1, odd)
                next_beside = gl.where(half == 0, beside, gl.where(beside == SLOTS // 2, 0, beside + 1))
                another = half * 0 + 1
                if block == BLOCKS - 1:
                    another = 1 - ((part == PARTS - 1) & (half == 1)).to(gl.int32)
                new = gl.inline_asm_elementwise(
                    ring.text("stage", FORM, TILES, SLOTS), ring.text_of("stage", FORM, TILES, SLOTS),
                    _some(sums, block * TILES, TILES) + held
                    + (
                        words_at + (slot * ring.WORDS + hidden), zero + (here + half * (TILES * 256)),
                        zero + (filled + slot * 8), lead, words_at + (next_slot * ring.WORDS + hidden),
                        scales_at + (next_beside * ring.SCALES + (1 - half) * 8), zero + (filled + next_slot * 8),
                        zero + next_odd, zero + another,
                    ),
                    (gl.float32,) * TILES + (gl.int32, gl.int32, gl.int32), is_pure=False, pack=4,
                )  # fmt: skip
                sums = _replaced(sums, _some(new, 0, TILES), block * TILES)
                held = _some(new, TILES, 3)
                slot, odd, beside = next_slot, next_odd, next_beside
        done(MULTIPLIED, MULTIPLIED_OF, [], 1)
        ring.arrive(base + PLACES[ring.READ_UP] + at % 2 * 8, WAVEFRONTS)
    return sums


@gluon.jit
def _store(
    sums, out_ptr, n, tile_at, count,
    TILES: gl.constexpr, BLOCKS: gl.constexpr, GATED: gl.constexpr, FORM: gl.constexpr,
):  # fmt: skip
    """Store products: of each block, or of each two, a lane's two neighbouring columns of the result."""
    EACH: gl.constexpr = 2 if GATED else 1
    wavefront, r, q, four, zero = ring.lanes_of(WAVEFRONTS)
    hidden = nothing()
    if GATED:
        # The registers are needed for other things until here.
        q += hidden
    for tile in gl.static_range(TILES):
        place = tile * 8 + q * 2 + (four + hidden) % 2
        pair = read(tile_at + gl.where(place < count, place, 0) * 4)
        to = out_ptr + (pair.to(gl.int64) * n + (wavefront * 16 + r * 2))
        there = zero + (place < count).to(gl.int32)
        for block in gl.static_range(BLOCKS // EACH):
            total = sums[block * EACH * TILES + tile]
            if GATED:
                # The block takes a power of two from what it stores.
                gate = total * (FROM_E2M1 if FORM == ring.MXFP4 else FROM_SUMS)
                total = gate / (1.0 + gl.exp(-gate)) * sums[(block * EACH + 1) * TILES + tile]
            done(
                ring.text("store", FORM),
                ring.text_of("store", FORM),
                [total, (to + block * ring.HEIGHT).to(gl.int64, bitcast=True), there],
                4,
            )


@gluon.jit
def _multiply(
    x_ptr, out_ptr, rhs_ptr, n, pairs, divisor, expert, tile, known, used, staged, base,
    DEPTH: gl.constexpr, TILES: gl.constexpr, BLOCKS: gl.constexpr, ROUNDS: gl.constexpr, GATED: gl.constexpr,
    SLOTS: gl.constexpr, ROOM: gl.constexpr, FORM: gl.constexpr, PLACES: gl.constexpr,
):  # fmt: skip
    """List a tile's rows, stage the first part of x, multiply, and store."""
    MOST: gl.constexpr = 8 * TILES
    count, tile_at = tile * 0, base + PLACES[ring.LIST_AT]
    if known:
        listed, tile_at = list_tile(
            rhs_ptr, pairs, expert, tile, base + PLACES[ring.LIST_AT], base + PLACES[ring.ORDERED_AT], ROOM, MOST
        )
        count = gl.minimum(listed - tile * MOST, MOST)
        at = gl.arange(0, 64, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
        pair = read(tile_at + gl.where(at < count, at, 0) * 4)
        write(base + PLACES[ring.ROWS_AT] + at * 4, gl.where(at < count, pair // divisor * (DEPTH * 2), -1), at * 0 + 1)
    write(base + PLACES[ring.LIST_AT] + 4, count, count * 0 + 1)
    gl.thread_barrier()
    ring.arrive(base + PLACES[ring.LISTED], WAVEFRONTS)
    if count > 0:
        # The others have this part's time for the next ones.
        stage_part(x_ptr, tile * 0, base, base + staged % 2 * (TILES * 8192), WAVEFRONTS, TILES, PLACES)
        gl.thread_barrier()
        if ROUNDS == 1:
            sums = _products(n, used, staged, base, DEPTH, TILES, BLOCKS, SLOTS, FORM, PLACES)
            _store(sums, out_ptr, n, tile_at, count, TILES, BLOCKS, GATED, FORM)
        else:
            # A loop for the compiler too.
            for done in range(ROUNDS + (n >> 31)):
                sums = _products(
                    n, used + done * (DEPTH // 256 * BLOCKS), staged + done * (DEPTH // 512), base,
                    DEPTH, TILES, BLOCKS, SLOTS, FORM, PLACES,
                )  # fmt: skip
                to = out_ptr + done * (ring.HEIGHT * BLOCKS // (2 if GATED else 1))
                _store(sums, to, n, tile_at, count, TILES, BLOCKS, GATED, FORM)
    elif known:
        # What was copied is let go of.
        for slot in gl.static_range(ring.FIRST):
            at = base + PLACES[ring.FILLED] + (used + slot) % SLOTS * 8
            ring.wait(at, (used + slot) // SLOTS)
            ring.arrive(at + (PLACES[ring.FREE] - PLACES[ring.FILLED]), WAVEFRONTS)


@gluon.jit
def grouped_gemm_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, rhs_ptr,
    n, pairs, experts, divisor,
    DEPTH: gl.constexpr, SLICES: gl.constexpr, EXPERTS: gl.constexpr, TILES: gl.constexpr, BLOCKS: gl.constexpr,
    ROUNDS: gl.constexpr, GATED: gl.constexpr, SLOTS: gl.constexpr, ROOM: gl.constexpr, REGISTERS: gl.constexpr,
    FORM: gl.constexpr,
):  # fmt: skip
    """out[pair] = x[pair // divisor] @ w[rhs[pair]].T, w = scale * code + bias rounded once, of mxfp4 scale * code.

    GATED: the silu of that, times the same product of the second matrix.

    Programs: as many as there are compute units, or any other number, of 8 wavefronts and four more.

    Args:
        x_ptr: [rows, DEPTH] in bfloat16, less than 2^31 bytes.
        w_ptr: [experts * n, DEPTH / 8] words.
        scales_ptr: [experts * n, DEPTH / 64], of mxfp4 bytes, of half as many columns each.
        biases_ptr: The same, or None.
        up_ptr: The second matrix likewise, or None.
        up_scales_ptr: Its scales.
        up_biases_ptr: Its biases.
        out_ptr: [pairs, n].
        rhs_ptr: [pairs], each pair's expert.
        n: Rows of an expert's weights, SLICES * ROUNDS * BLOCKS * 128; GATED: half of it, of either matrix.
        pairs: Their number.
        experts: Their number.
        divisor: Pairs of a row of x.
        DEPTH: K, a multiple of 512.
        SLICES: Units of work that share a tile, each with a part of the rows of weights.
        EXPERTS: A power of two, from the experts on, 32 at least.
        TILES: Of 8 rows of x, which are a tile of a unit, 7 at most.
        BLOCKS: Of 128 rows of weights, whose sums are in registers at once; GATED: of either matrix in turn.
        ROUNDS: So many times BLOCKS are a unit's, one after the other.
        GATED: There is a second matrix.
        SLOTS: For 256 columns of 128 rows of weights, an even number.
        ROOM: Numbers of pairs that can be listed at once.
        REGISTERS: Of a lane of wavefronts that copy.
        FORM: Of the weights, one of ``experts_blocks.FORMS``.
    """
    gl.static_assert(VERSION != "")
    SPAN: gl.constexpr = ring.HEIGHT * BLOCKS * ROUNDS // (2 if GATED else 1)
    PLACES: gl.constexpr = ring.places(TILES, SLOTS, ROOM, EXPERTS)
    begin = gl.program_id(0)
    memory = gl.allocate_shared_memory(
        gl.bfloat16, [(PLACES[ring.END] + 1023) // 1024, 8, 64], gl.NVMMASharedLayout(128, 16, rank=2)
    )
    # Its address is Triton's own, which tells it only where it writes something itself; there is nothing else in it.
    memory.index(PLACES[ring.LIST_AT] // 1024).store(
        gl.full([8, 64], 0.0, gl.bfloat16, layout=gl.BlockedLayout([1, 2], [1, 32], [WAVEFRONTS, 1], [1, 0]))
    )
    base = gl.inline_asm_elementwise(BASE, BASE_OF, [], gl.int32, is_pure=True, pack=1)
    gl.thread_barrier()
    ring.begin_barriers(base + PLACES[ring.FILLED], SLOTS, 32 * ring.COPIERS)
    ring.begin_barriers(base + PLACES[ring.FREE], SLOTS, WAVEFRONTS)
    ring.begin_barriers(base + PLACES[ring.STAGED], 2, STAGERS)
    ring.begin_barriers(base + PLACES[ring.READ_UP], 2, WAVEFRONTS)
    ring.begin_barriers(base + PLACES[ring.LISTED], 1, WAVEFRONTS)
    number = gl.arange(0, EXPERTS, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    write(base + PLACES[ring.COUNTS_AT] + number * 4, number * 0, number * 0 + 1)
    begin_behind()
    second = ()
    if FORM == ring.MXFP4:
        # There are no biases.
        first = (w_ptr, scales_ptr, scales_ptr)
        if GATED:
            second = (up_ptr, up_scales_ptr, up_scales_ptr)
    else:
        first = (w_ptr, scales_ptr, biases_ptr)
        if GATED:
            second = (up_ptr, up_scales_ptr, up_biases_ptr)
    # Whether pairs were counted: one of each expert's units needs no counts; they are counted while it is multiplied.
    counted, turn, used, staged = begin * 0, begin * 0, begin * 0, begin * 0
    unit, units = begin, begin + 1
    while unit < units:
        # Units beyond one of each expert are found with counts.
        known = (counted > 0) | (unit < experts * SLICES)
        expert, tile = unit // SLICES, begin * 0
        if known & (expert >= experts):
            expert, tile = tile_of(expert - experts, more_tiles(base + PLACES[ring.COUNTS_AT], 8 * TILES, EXPERTS))
        gl.warp_specialize(
            (
                (
                    _multiply,
                    (
                        x_ptr, out_ptr + unit % SLICES * SPAN, rhs_ptr, n, pairs, divisor, expert, tile,
                        known, used, staged, base, DEPTH, TILES, BLOCKS, ROUNDS, GATED, SLOTS, ROOM, FORM, PLACES,
                    ),
                ),
                (
                    copy_weights,
                    (
                        first, second, expert.to(gl.int64) * n + unit % SLICES * SPAN,
                        known, used, turn, base, DEPTH, BLOCKS, ROUNDS, SLOTS, FORM, PLACES,
                    ),
                ),
                (stage, (x_ptr, rhs_ptr, pairs, counted, staged, turn, base, DEPTH, TILES, ROUNDS, PLACES)),
            ),
            (ring.COPIERS, STAGERS), (REGISTERS, REGISTERS),
        )  # fmt: skip
        if known:
            some = read(base + PLACES[ring.LIST_AT] + 4) > 0
            used += gl.where(some, DEPTH // 256 * BLOCKS * ROUNDS, ring.FIRST)
            staged += gl.where(some, DEPTH // 512 * ROUNDS, 0)
            unit += gl.num_programs(0)
        if counted == 0:
            units = (experts + gl.sum(more_tiles(base + PLACES[ring.COUNTS_AT], 8 * TILES, EXPERTS), axis=0)) * SLICES
            counted += 1
        turn += 1
    memory._keep_alive()  # noqa: SLF001  it is read by address
