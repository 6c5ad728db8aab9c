"""Products of some rows of x for each of many experts, on Hopper: all sums of a unit of work stay in registers.

A unit is a tile of an expert's rows of x, and some blocks of rows of its weights. There is a program for each compute
unit: it finds its tile's rows itself, so that no launch comes before it. Experts with more rows than a tile has are
further units, behind one of each expert.

Weights come to shared memory with what was asked for long before, a ring of slots for each wavefront: it waits for its
own copies alone, and what it has read makes room for the next. Four wavefronts multiply 64 rows of weights, which are
the matrix unit's left operand and which they unpack in their registers, and there are two such groups: while one's
products run the other unpacks. Of x, 512 columns are in shared memory, against which all blocks are multiplied in turn;
the next 512 come meanwhile, and lanes bring them into the order of unpacked weights where they lie.
"""

from __future__ import annotations

import hashlib
import inspect

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along
from rocmend.kernels.ops.gather_qmm.kernels import experts_blocks as blocks
from rocmend.kernels.ops.gather_qmm.kernels.experts_lists import (
    WAVEFRONTS,
    count_pairs,
    list_tile,
    more_tiles,
    nothing,
    read,
    tile_of,
    write,
)


class _Texts(dict):
    """Blocks of PTX and their constraints by name and what they are made for, made when they are asked for."""

    def __missing__(self, key):
        name, *given = key
        return getattr(blocks, name)(*given)


TEXTS = _Texts()
VERSION = gl.constexpr(hashlib.sha256(inspect.getsource(blocks).encode()).hexdigest())
"""Of the blocks: what was compiled from others is not taken for what these compile to."""
COPY, COPY_OF = (gl.constexpr(t) for t in blocks.copy())
STORE, STORE_OF = (gl.constexpr(t) for t in blocks.store())
COMMIT, COMMIT_OF = (gl.constexpr(t) for t in blocks.COMMIT)
VISIBLE, VISIBLE_OF = (gl.constexpr(t) for t in blocks.VISIBLE)
BASE, BASE_OF = (gl.constexpr(t) for t in blocks.BASE)
HEIGHT = gl.constexpr(128)
"""Rows of a block of weights: 16 of each wavefront."""
WORDS = gl.constexpr(8 * 16 * 128)
"""Bytes of a slot of words of all wavefronts: half as many columns of x as a part has."""
SCALES = gl.constexpr(8 * 16 * 32)
"""Bytes of a slot of scales and biases of all wavefronts, of a part's columns."""


@gluon.constexpr_function
def _text(*key):
    return TEXTS[key][0]


@gluon.constexpr_function
def _text_of(*key):
    return TEXTS[key][1]


@gluon.jit
def _said(TEXT: gl.constexpr, OF: gl.constexpr):
    gl.inline_asm_elementwise(TEXT, OF, [], gl.int32, is_pure=False, pack=1)


@gluon.jit
def _copy_scales(slot, to, scales, block, part, there, ROW: gl.constexpr):
    """Begin to copy scales and biases of a block's rows: of those of a part's columns, 16 bytes of a row."""
    source = scales + (block * (HEIGHT * ROW // 16) + part * 16)
    gl.inline_asm_elementwise(COPY, COPY_OF, [to + slot * SCALES, source, there], gl.int32, is_pure=False, pack=4)


@gluon.jit
def _fill(words, scales, words_to, scales_to, zero, ROW: gl.constexpr, BLOCKS: gl.constexpr, SLOTS: gl.constexpr):
    """Begin to copy what comes first to all slots."""
    for slot in gl.static_range(SLOTS):
        block, part = slot // 2 % BLOCKS, slot // 2 // BLOCKS
        if slot % 2 == 0:
            _copy_scales(slot // 2, scales_to, scales, block, part, zero + 1, ROW)
        source = words + (block * (HEIGHT * ROW) + part * 256 + slot % 2 * 128)
        gl.inline_asm_elementwise(
            _text("copy_words", ROW), _text_of("copy_words", ROW), [words_to + slot * WORDS, source, zero + 1],
            gl.int32, is_pure=False, pack=4,
        )  # fmt: skip
        _said(COMMIT, COMMIT_OF)


@gluon.jit
def _copy_x(x, part, rows_at, to, FIRST: gl.constexpr, TASKS: gl.constexpr):
    """Begin to copy a part of x: a lane's tasks from the first on, 8 columns of each 64 of 256 of a row."""
    if TASKS > 0:
        gl.inline_asm_elementwise(
            _text("copy_x", TASKS), _text_of("copy_x", TASKS),
            [rows_at + FIRST * 64, to + FIRST * 2048, x + part * 1024], gl.int32, is_pure=False, pack=4,
        )  # fmt: skip


@gluon.jit
def _turn_x(at, wavefront, zero, FIRST: gl.constexpr, TASKS: gl.constexpr, TILES: gl.constexpr):
    """Bring a part of x into order where it lies, each lane what it copied."""
    if TASKS > 0:
        # Of an odd number of tiles, half of the wavefronts have one less.
        there = zero + (wavefront // 4 + (FIRST + TASKS - 1) * 2 < TILES).to(gl.int32)
        gl.inline_asm_elementwise(
            _text("turn_x", TASKS), _text_of("turn_x", TASKS), [at + FIRST * 2048, there], gl.int32, is_pure=False,
            pack=4,
        )  # fmt: skip


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
    words, scales, x, n, base, x_to, rows_at, words_to, scales_to, words_at, scales_at, wavefront, zero,
    DEPTH: gl.constexpr, TILES: gl.constexpr, BLOCKS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Multiply a unit's rows of weights by a tile of x, one part of the columns after the other; return the sums."""
    AHEAD: gl.constexpr = SLOTS // 2
    PARTS: gl.constexpr = DEPTH // 512
    ROW: gl.constexpr = DEPTH // 2
    X_PART: gl.constexpr = TILES * 8192
    # Of x, lanes begin to copy some with each of the first blocks, and bring it into order with the last.
    TASKS: gl.constexpr = (TILES + 1) // 2
    EACH: gl.constexpr = (TASKS + BLOCKS - AHEAD - 1) // (BLOCKS - AHEAD)
    sums = ()
    for _sum in gl.static_range(BLOCKS * TILES):
        sums = sums + (zero.to(gl.float32),)
    slot, beside = n * 0, n * 0
    for part in range(PARTS):
        here = (((base + part % 2 * X_PART) >> 4) & 0x3FFF) + 0x10000
        next_x = (part + 1) % 2 * X_PART
        another = part + 1 < PARTS
        for block in gl.static_range(BLOCKS):
            hidden = nothing()
            if block < BLOCKS - AHEAD:
                if another:
                    _copy_x(
                        x, part + 1, rows_at + hidden, x_to + next_x, block * EACH,
                        max(0, min(TASKS - block * EACH, EACH)),
                    )  # fmt: skip
            later = part + (block + AHEAD) // BLOCKS
            there = zero + (later < PARTS).to(gl.int32)
            free = gl.where(beside == 0, AHEAD, beside - 1)
            _copy_scales(free, scales_to, scales, (block + AHEAD) % BLOCKS, later, there, ROW)
            # A loop for the compiler too, or its code is twice as long.
            for half in range(2 + (n >> 31)):
                to = slot * WORDS + hidden
                source = words + ((block + AHEAD) % BLOCKS * (HEIGHT * ROW) + later * 256 + half * 128)
                new = gl.inline_asm_elementwise(
                    _text("stage", TILES, SLOTS, ROW), _text_of("stage", TILES, SLOTS, ROW),
                    _some(sums, block * TILES, TILES)
                    + (
                        words_at + to, scales_at + (beside * SCALES + half * 8), zero + (here + half * (TILES * 256)),
                        words_to + to, source, there,
                    ),
                    (gl.float32,) * TILES, is_pure=False, pack=4,
                )  # fmt: skip
                sums = _replaced(sums, new, block * TILES)
                slot = gl.where(slot == SLOTS - 1, 0, slot + 1)
            beside = gl.where(beside == AHEAD, 0, beside + 1)
            if block >= AHEAD:
                if another:
                    _turn_x(
                        x_to + next_x + hidden, wavefront, zero, (block - AHEAD) * EACH,
                        max(0, min(TASKS - (block - AHEAD) * EACH, EACH)), TILES,
                    )  # fmt: skip
        _said(VISIBLE, VISIBLE_OF)
        gl.thread_barrier()
    return sums


@gluon.jit
def _store(sums, out_ptr, n, tile_at, count, line, q, four, zero, TILES: gl.constexpr, BLOCKS: gl.constexpr):
    """Store a unit's products: of each block, a lane's two neighbouring columns of the result."""
    hidden = nothing()
    for tile in gl.static_range(TILES):
        place = tile * 8 + q * 2 + (four + hidden) % 2
        pair = read(tile_at + gl.where(place < count, place, 0) * 4)
        to = out_ptr + (pair.to(gl.int64) * n + line)
        there = zero + (place < count).to(gl.int32)
        for block in gl.static_range(BLOCKS):
            gl.inline_asm_elementwise(
                STORE, STORE_OF, [sums[block * TILES + tile], (to + block * HEIGHT).to(gl.int64, bitcast=True), there],
                gl.int32, is_pure=False, pack=4,
            )  # fmt: skip


@gluon.jit
def experts_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, rhs_ptr, n, pairs, experts, divisor,
    DEPTH: gl.constexpr, SLICES: gl.constexpr, EXPERTS: gl.constexpr, TILES: gl.constexpr, BLOCKS: gl.constexpr,
    SLOTS: gl.constexpr, ROOM: gl.constexpr, PDL: gl.constexpr,
):  # fmt: skip
    """out[pair] = x[pair // divisor] @ w[rhs[pair]].T, w = scale * code + bias rounded once.

    Programs: as many as there are compute units, or any other number, of 8 wavefronts.

    Args:
        x_ptr: [rows, DEPTH] in bfloat16, less than 2^31 bytes.
        w_ptr: [experts * n, DEPTH / 8] words.
        scales_ptr: [experts * n, DEPTH / 64].
        biases_ptr: The same.
        out_ptr: [pairs, n].
        rhs_ptr: [pairs], each pair's expert.
        n: Rows of an expert's weights, SLICES * BLOCKS * 128.
        pairs: Their number.
        experts: Their number.
        divisor: Pairs of a row of x.
        DEPTH: K, a multiple of 512.
        SLICES: Units of work that share a tile, each with a part of the rows of weights.
        EXPERTS: A power of two, from the experts on, 32 at least.
        TILES: Of 8 rows of x, which are a tile of a unit, 7 at most.
        BLOCKS: Of 128 rows of weights, which are a unit's, more than half of SLOTS.
        SLOTS: For 256 columns of 16 rows of weights, a wavefront's, an even number.
        ROOM: Numbers of pairs that can be listed at once.
        PDL: It is launched while what is before it still runs.
    """
    gl.static_assert(VERSION != "")
    MOST: gl.constexpr = 8 * TILES
    ROW: gl.constexpr = DEPTH // 2
    # Wavefronts, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [WAVEFRONTS, 1, 1, 1], [3, 2, 1, 0])
    wavefront, r = along(0, WAVEFRONTS, lanes, 4), along(1, 8, lanes, 4)
    q, four = along(2, 4, lanes, 4), along(3, 4, lanes, 4)
    zero = wavefront * 0 + r * 0 + q * 0 + four * 0
    begin = gl.program_id(0)
    # Two parts of x, slots of words and of scales, and numbers of pairs: of an expert, of a tile, where rows of x are
    # that are a tile's, and how many each expert has.
    X: gl.constexpr = 2 * 8192 * TILES
    BESIDE: gl.constexpr = X + WORDS * SLOTS
    LISTS: gl.constexpr = BESIDE + SCALES * (SLOTS // 2 + 1)
    ALL: gl.constexpr = LISTS + 16 + 4 * ROOM + 4 * MOST + 256 + 4 * EXPERTS
    memory = gl.allocate_shared_memory(
        gl.bfloat16, [(ALL + 1023) // 1024, 8, 64], gl.NVMMASharedLayout(128, 16, rank=2)
    )
    # Its address is Triton's own, which tells it only where it writes something itself; there is nothing else in it.
    memory.index(LISTS // 1024).store(
        gl.full([8, 64], 0.0, gl.bfloat16, layout=gl.BlockedLayout([1, 2], [1, 32], [WAVEFRONTS, 1], [1, 0]))
    )
    base = gl.inline_asm_elementwise(BASE, BASE_OF, [], gl.int32, is_pure=True, pack=1)
    list_at = base + LISTS
    ordered_at = list_at + (16 + 4 * ROOM)
    rows_at = ordered_at + 4 * MOST
    counts_at = rows_at + 256
    # Of a slot, a lane copies 16 bytes of every fourth row, and reads of rows 2r and 2r + 1: 8 lanes that do so at once
    # have different banks.
    granule = r % 2 * 4 + q
    slot_at = base + X + wavefront * (WORDS // WAVEFRONTS)
    words_to = slot_at + (r // 2 * 128 + (granule ^ (r // 4)) * 16 + zero)
    words_at = slot_at + (r * 256 + (q * 2 + r % 2) * 16 + zero)
    words = w_ptr.to(gl.int64, bitcast=True) + ((wavefront * 16 + r // 2) * ROW + granule * 16 + zero).to(gl.int64)
    # Scales of both rows, and biases of both.
    beside_at = base + BESIDE + wavefront * (SCALES // WAVEFRONTS) + r * 64
    scales_to, scales_at = beside_at + (q * 16 + zero), beside_at + (q * 2 + zero)
    scales = gl.where(q + zero < 2, scales_ptr.to(gl.int64, bitcast=True), biases_ptr.to(gl.int64, bitcast=True))
    scales += ((wavefront * 16 + r * 2 + q % 2) * (ROW // 16) + zero).to(gl.int64)
    # Of a tile's rows of x, eight columns of each 64 of one half of a part, where four quarters have their pairs.
    row_of_x, i = r % 2 * 4 + q, r // 2
    half, lower = wavefront % 4 // 2, wavefront % 2
    x = x_ptr.to(gl.int64, bitcast=True) + (half * 512 + lower * 64 + i * 16 + zero).to(gl.int64)
    x_to = base + ((half * 4 + lower * 2 + i // 2) * (TILES * 1024) + wavefront // 4 * 1024 + row_of_x * 128 + zero)
    x_to += ((i % 2 * 4 + four) ^ row_of_x) * 16
    rows_lane = rows_at + (wavefront // 4 * 32 + row_of_x * 4 + zero)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    number = gl.arange(0, EXPERTS, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0])) + nothing()
    write(counts_at + number * 4, number * 0, number * 0 + 1)
    place = gl.arange(0, 64, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0]))
    # Whether pairs were counted: one of each expert's units needs no counts, and they are counted while x comes.
    counted = begin * 0
    unit, units = begin, begin + 1
    while unit < units:
        if (counted == 0) & (begin >= experts * SLICES):
            count_pairs(rhs_ptr, pairs, counts_at)
            gl.thread_barrier()
            units = (experts + gl.sum(more_tiles(counts_at, MOST, EXPERTS), axis=0)) * SLICES
            counted += 1
        more = unit // SLICES - experts
        expert, tile = unit // SLICES, begin * 0
        if more >= 0:
            expert, tile = tile_of(more, more_tiles(counts_at, MOST, EXPERTS))
        if unit < units:
            first_row = expert.to(gl.int64) * n + unit % SLICES * (HEIGHT * BLOCKS)
            own_words, own_scales = words + first_row * ROW, scales + first_row * (ROW // 16)
            listed, tile_at = list_tile(rhs_ptr, pairs, expert, tile, list_at, ordered_at, ROOM, MOST)
            count = gl.minimum(listed - tile * MOST, MOST)
            if count > 0:
                at = place + nothing()
                pair = read(tile_at + gl.where(at < count, at, 0) * 4)
                write(rows_at + at * 4, gl.where(at < count, pair // divisor * (DEPTH * 2), -1), at * 0 + 1)
                gl.thread_barrier()
                # In front of weights, behind which it would come as late as they.
                _copy_x(x, begin * 0, rows_lane, x_to, 0, (TILES + 1) // 2)
                _said(COMMIT, COMMIT_OF)
                _fill(own_words, own_scales, words_to, scales_to, zero, ROW, BLOCKS, SLOTS)
            if counted == 0:
                count_pairs(rhs_ptr, pairs, counts_at)
                gl.thread_barrier()
                units = (experts + gl.sum(more_tiles(counts_at, MOST, EXPERTS), axis=0)) * SLICES
                counted += 1
            if count > 0:
                _said(_text("arrived", SLOTS), _text_of("arrived", SLOTS))
                _turn_x(x_to, wavefront, zero, 0, (TILES + 1) // 2, TILES)
                _said(VISIBLE, VISIBLE_OF)
                gl.thread_barrier()
                sums = _products(
                    own_words, own_scales, x, n, base, x_to, rows_lane, words_to, scales_to, words_at, scales_at,
                    wavefront, zero, DEPTH, TILES, BLOCKS, SLOTS,
                )  # fmt: skip
                _store(
                    sums, out_ptr + unit % SLICES * (HEIGHT * BLOCKS), n, tile_at, count, wavefront * 16 + r * 2,
                    q, four, zero, TILES, BLOCKS,
                )  # fmt: skip
        unit += gl.num_programs(0)
    memory._keep_alive()  # noqa: SLF001  it is read by address
