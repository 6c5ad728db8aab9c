"""Products of some rows of x for each of many experts, on Hopper: a tile's rows of x are in shared memory as a whole.

A unit of work is a tile of an expert's rows of x, and rows of its weights. There is a program for each compute unit: it
finds its tile's rows itself, so that no launch comes before it. Experts with more rows than a tile has are further
units, behind one of each expert.

Wavefronts go over the weights, 16 rows each, straight from memory to registers, and nothing makes them wait for one
another: four of them multiply 64 rows of weights, which are the matrix unit's left operand, while others unpack theirs.
Loads under way need room in the first cache, which shared memory takes from it: a few kilobytes of it more can cost a
third of the time.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along
from rocmend.kernels.ops.gather_qmm.kernels import experts_blocks as blocks
from rocmend.kernels.ops.gather_qmm.kernels.experts_lists import (
    list_pairs,
    more_tiles,
    nothing,
    order_pairs,
    read,
)

TILES = range(2, 8)
FAR = 256
"""Bytes of each row of weights that the second cache reads before lanes load any."""
DEPTHS = (512, 1024, 1536, 2048)
PRODUCTS = {
    (tiles, places): blocks.product(tiles, places)
    for places in TILES
    for tiles in range(max(1, places - 2), places + 1)
}
PICKED = tuple(blocks.picked(register)[0] for register in range(4))
PICKED_OF = gl.constexpr(blocks.picked(0)[1])
EARLY = {size: blocks.early(size)[0] for depth in DEPTHS for size in (FAR, depth // 2, 4096, 8 * depth)}
ONES = tuple(blocks.one(register)[0] for register in range(4))
ONE_OF = gl.constexpr(blocks.one(0)[1])
LOAD, LOAD_OF = (gl.constexpr(t) for t in blocks.load(behind=False))
BEHIND, BEHIND_OF = (gl.constexpr(t) for t in blocks.load(behind=True))
NONE, NONE_OF = (gl.constexpr(t) for t in blocks.none_of())
EARLY_OF = gl.constexpr(blocks.early(16)[1])
PUT, PUT_OF = (gl.constexpr(t) for t in blocks.put())
STORE, STORE_OF = (gl.constexpr(t) for t in blocks.store())
VISIBLE, VISIBLE_OF = (gl.constexpr(t) for t in blocks.VISIBLE)
BASE, BASE_OF = (gl.constexpr(t) for t in blocks.BASE)


@gluon.constexpr_function
def _product(tiles, places):
    return PRODUCTS[tiles, places][0]


@gluon.constexpr_function
def _product_of(tiles, places):
    return PRODUCTS[tiles, places][1]


@gluon.constexpr_function
def _picked(register):
    return PICKED[register]


@gluon.constexpr_function
def _one(register):
    return ONES[register]


@gluon.constexpr_function
def _early(size):
    return EARLY[size]


@gluon.constexpr_function
def _far():
    return FAR


@gluon.jit
def _four(at, there):
    """Load four words, where ``there`` is not 0."""
    return gl.inline_asm_elementwise(
        LOAD, LOAD_OF, [at.to(gl.int64, bitcast=True), there], gl.int32, is_pure=False, pack=4
    )


@gluon.jit
def _four_behind(at, there, none):
    """Load four words, where ``there`` is not 0, not before what ``none`` comes of is there."""
    return gl.inline_asm_elementwise(
        BEHIND, BEHIND_OF, [at.to(gl.int64, bitcast=True), there, none], gl.int32, is_pure=False, pack=4
    )


@gluon.jit
def _again(words, at, there, REGISTER: gl.constexpr):
    """Load one of four words anew, where ``there`` is not 0."""
    return gl.inline_asm_elementwise(
        _one(REGISTER), ONE_OF, [words, at.to(gl.int64, bitcast=True), there], gl.int32, is_pure=False, pack=4
    )


@gluon.jit
def _meet():
    gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)


@gluon.jit
def _soon(at, there, SIZE: gl.constexpr):
    """Have the second cache read SIZE bytes, where ``there`` is not 0."""
    gl.inline_asm_elementwise(
        _early(SIZE), EARLY_OF, [at.to(gl.int64, bitcast=True), there], gl.int32, is_pure=False, pack=4
    )


@gluon.jit
def _without_two(values):
    rest = ()
    for at in gl.static_range(2, len(values)):
        rest = rest + (values[at],)
    return rest


@gluon.jit
def _into_memory(
    x_ptr, tile_at, count, base, divisor, r, q, wavefront, four, zero,
    DEPTH: gl.constexpr, TILES: gl.constexpr, TILES_AT_ONCE: gl.constexpr, WAVEFRONTS: gl.constexpr,
):  # fmt: skip
    """Write a tile's rows of x to shared memory, in the order of weights that are unpacked.

    Tiles of 8 rows that there are none of stay as they are: their sums are nobody's.
    """
    ROUNDS: gl.constexpr = DEPTH // (128 * WAVEFRONTS)
    GROUPS: gl.constexpr = (TILES + TILES_AT_ONCE - 1) // TILES_AT_ONCE
    words = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True)
    r += nothing()
    for group in gl.static_range(GROUPS):
        if group * (TILES_AT_ONCE * 8) < count:
            given = ()
            for tile in gl.static_range(group * TILES_AT_ONCE, min(TILES, group * TILES_AT_ONCE + TILES_AT_ONCE)):
                place = tile * 8 + r
                pair = read(tile_at + gl.where(place < count, place, 0) * 4)
                row = (pair // divisor).to(gl.int64) * (DEPTH // 2)
                for part in gl.static_range(ROUNDS * 4):
                    chunk = part // 4 * WAVEFRONTS + wavefront
                    at = words + (row + (chunk * 64 + q * 16 + part % 4 * 4 + four * 0))
                    given = given + (_four(at, zero + 1),)
            for tile in gl.static_range(group * TILES_AT_ONCE, min(TILES, group * TILES_AT_ONCE + TILES_AT_ONCE)):
                for part in gl.static_range(ROUNDS * 4):
                    block = (part // 4 * WAVEFRONTS + wavefront) * 2 + part % 4 // 2
                    place = block * (TILES * 1024) + (tile * 8 + r) * 128 + ((part % 2 * 4 + four) ^ r) * 16 + q * 4
                    gl.inline_asm_elementwise(
                        PUT, PUT_OF, [given[(tile - group * TILES_AT_ONCE) * ROUNDS * 4 + part], base + place],
                        gl.int32, is_pure=False, pack=4,
                    )  # fmt: skip
    gl.inline_asm_elementwise(VISIBLE, VISIBLE_OF, [], gl.int32, is_pure=False, pack=1)
    gl.thread_barrier()


@gluon.jit
def _rotation(expert, wavefront, zero, DEPTH: gl.constexpr, ROT: gl.constexpr):
    """Return by how many turns and steps an expert's wavefronts are before others'."""
    STEPS: gl.constexpr = DEPTH // 512
    by_turn, by_step = expert // STEPS, expert % STEPS
    if ROT == 0:
        by_turn, by_step = expert * 0, expert * 0
    if ROT == 2:
        by_step = (expert + (wavefront + zero) // 4) % STEPS
    return by_turn, by_step


@gluon.jit
def _products(
    w_ptr, scales_ptr, biases_ptr, out_ptr, expert, n, turns, base, tile_at, count, select, scaled,
    r, q, wavefront, four, zero,
    DEPTH: gl.constexpr, TILES: gl.constexpr, PLACES: gl.constexpr, AHEAD: gl.constexpr, SOON: gl.constexpr,
    INIT: gl.constexpr, ROT: gl.constexpr, WAVEFRONTS: gl.constexpr,
):  # fmt: skip
    """Multiply rows of weights, 16 of a wavefront in each turn, by x in shared memory, and store the products.

    There is room for PLACES tiles of 8 rows of x, and rows of no more than TILES.
    """
    # Of scales, a quarter has those of 4 chunks.
    STEPS: gl.constexpr = DEPTH // 512
    ROW: gl.constexpr = DEPTH // 8
    BESIDE: gl.constexpr = DEPTH // 128
    HEIGHT: gl.constexpr = 16 * WAVEFRONTS
    # Rows r and r + 8 of the unit are neighbours.
    line = wavefront * 16 + r * 2
    w_at = w_ptr + (line * ROW + q * 4 + four * 0)
    s_at = scales_ptr + (line * BESIDE + q * 4 + four * 0)
    b_at = biases_ptr + (line * BESIDE + q * 4 + four * 0)
    # Behind x: loads come back in order, and weights from farther away.
    by_turn, by_step = _rotation(expert, wavefront, zero, DEPTH, ROT)
    first = by_turn % turns
    words = ()
    for chunk in gl.static_range(AHEAD):
        at = w_at + (first * (HEIGHT * ROW) + by_step * 64 + chunk * 16)
        words = words + (_four(at, zero + 1), _four(at + ROW, zero + 1))
    beside = first * (HEIGHT * BESIDE)
    s_low, s_high = _four(s_at + beside, scaled), _four(s_at + (beside + BESIDE), scaled)
    b_low, b_high = _four(b_at + beside, scaled), _four(b_at + (beside + BESIDE), scaled)
    # 0, as the compiler cannot tell.
    mask = zero + (n >> 31)
    for turn in range(turns):
        sums = ()
        for _tile in gl.static_range(TILES):
            sums = sums + (zero.to(gl.float32),)
        another = turn + 1 < turns
        this_turn = (turn + by_turn) % turns * HEIGHT
        next_turn = (turn + 1 + by_turn) % turns * HEIGHT
        one_lane = gl.where(r * 4 + q + zero == 0, 1, 0)
        if another:
            _soon(scales_ptr + (next_turn + wavefront * 16 + zero) * BESIDE, one_lane, 64 * BESIDE)
            _soon(biases_ptr + (next_turn + wavefront * 16 + zero) * BESIDE, one_lane, 64 * BESIDE)
        for step in range(STEPS):
            ends = step + 1 == STEPS
            there = zero + ((not ends) or another).to(gl.int32)
            again = scaled * (ends and another).to(gl.int32)
            place_of = (step + by_step) % STEPS
            now = this_turn * ROW + place_of * 64
            later = gl.where(ends, next_turn, this_turn) * ROW + (step + 1 + by_step) % STEPS * 64
            if SOON > 0:
                if turn + SOON < turns and turn + SOON >= INIT:
                    far = (turn + SOON + by_turn) % turns * HEIGHT
                    _soon(w_ptr + (far + wavefront * 16 + step * (16 // STEPS) + zero) * ROW, one_lane, 4096)
            coming, picked = (), ()
            for chunk in gl.static_range(4):
                if chunk % AHEAD == 0:
                    # Ahead of loads: or what counts loads under way counts these too, and waits for all.
                    picked = ()
                    none = zero
                    for near in gl.static_range(chunk, chunk + AHEAD):
                        one = gl.inline_asm_elementwise(
                            _picked(near), PICKED_OF, [s_low, s_high, b_low, b_high, zero + place_of, select], gl.int32,
                            is_pure=False, pack=4,
                        )  # fmt: skip
                        picked = picked + (one,)
                        none = gl.inline_asm_elementwise(
                            NONE, NONE_OF, [one, none, mask], gl.int32, is_pure=False, pack=4
                        )
                    coming = ()
                    for following in gl.static_range(chunk + AHEAD, chunk + 2 * AHEAD):
                        if following < 4:
                            at = w_at + (now + following * 16)
                            coming = coming + (_four_behind(at, zero + 1, none), _four_behind(at + ROW, zero + 1, none))
                        else:
                            at = w_at + (later + (following - 4) * 16)
                            coming = coming + (_four_behind(at, there, none), _four_behind(at + ROW, there, none))
                    # The compiler moves loads down to where their registers come free, but not past this.
                    _meet()
                where = ((base >> 4) & 0x3FFF) + 0x10000 + (place_of * 4 + chunk) * (PLACES * 128)
                sums = gl.inline_asm_elementwise(
                    _product(TILES, PLACES), _product_of(TILES, PLACES),
                    sums + (words[0], words[1], picked[chunk % AHEAD], zero + where),
                    (gl.float32,) * TILES, is_pure=False, pack=4,
                )  # fmt: skip
                words = _without_two(words)
                if chunk % AHEAD == AHEAD - 1:
                    words = coming
                beside = next_turn * BESIDE + chunk
                s_low = _again(s_low, s_at + beside, again, chunk)
                s_high = _again(s_high, s_at + (beside + BESIDE), again, chunk)
                b_low = _again(b_low, b_at + beside, again, chunk)
                b_high = _again(b_high, b_at + (beside + BESIDE), again, chunk)
        hidden = nothing()
        column = this_turn + line
        for tile in gl.static_range(TILES):
            place = tile * 8 + q * 2 + (four + hidden) % 2
            pair = read(tile_at + gl.where(place < count, place, 0) * 4)
            to = out_ptr + (pair.to(gl.int64) * n + column)
            gl.inline_asm_elementwise(
                STORE, STORE_OF, [sums[tile], to.to(gl.int64, bitcast=True), zero + (place < count).to(gl.int32)],
                gl.int32, is_pure=False, pack=4,
            )  # fmt: skip


@gluon.jit
def experts_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, rhs_ptr, n, pairs, experts, divisor,
    DEPTH: gl.constexpr, SLICES: gl.constexpr, EXPERTS: gl.constexpr, TILES: gl.constexpr, FEWER: gl.constexpr,
    AHEAD: gl.constexpr, SOON: gl.constexpr, INIT: gl.constexpr, ROT: gl.constexpr,
    TILES_AT_ONCE: gl.constexpr, ROOM: gl.constexpr,
    WAVEFRONTS: gl.constexpr, PDL: gl.constexpr,
):  # fmt: skip
    """out[pair] = x[pair // divisor] @ w[rhs[pair]].T, w = scale * code + bias rounded once.

    Programs: as many as there are compute units, or any other number.

    Args:
        x_ptr: [rows, DEPTH] in bfloat16.
        w_ptr: [experts * n, DEPTH / 8] words.
        scales_ptr: [experts * n, DEPTH / 64].
        biases_ptr: The same.
        out_ptr: [pairs, n].
        rhs_ptr: [pairs], each pair's expert.
        n: Rows of an expert's weights, a multiple of SLICES * 16 * WAVEFRONTS.
        pairs: Their number.
        experts: Their number.
        divisor: Pairs of a row of x.
        DEPTH: K, a multiple of 512 and of 128 * WAVEFRONTS, 2048 at most.
        SLICES: Units of work that share a tile, each with a part of the rows of weights.
        EXPERTS: A power of two, from the experts on, 32 at least.
        TILES: Of 8 rows of x, which are a tile of a unit.
        FEWER: There are products for so many tiles of 8 fewer too, 2 at most, for experts with fewer rows.
        AHEAD: Chunks of 128 columns of weights under way, 1, 2 or 4.
        ROT: Experts begin at different columns, 1, and groups of four wavefronts too, 2; 0: neither.
        SOON: How many turns before the second cache reads weights, 0 for not.
        INIT: Turns whose weights it is told to read at once, before anything else.
        TILES_AT_ONCE: Of x that are loaded before one is stored.
        ROOM: Numbers of pairs that can be listed at once.
        WAVEFRONTS: Of a program.
        PDL: It is launched while what is before it still runs.
    """
    MOST: gl.constexpr = 8 * TILES
    HEIGHT: gl.constexpr = 16 * WAVEFRONTS
    ROW: gl.constexpr = DEPTH // 8
    BESIDE: gl.constexpr = DEPTH // 128
    # Wavefronts, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [WAVEFRONTS, 1, 1, 1], [3, 2, 1, 0])
    wavefront, r = along(0, WAVEFRONTS, lanes, 4), along(1, 8, lanes, 4)
    q, four = along(2, 4, lanes, 4), along(3, 4, lanes, 4)
    zero = wavefront * 0 + r * 0 + q * 0 + four * 0
    own = n // SLICES
    begin = gl.program_id(0)
    kind: gl.constexpr = gl.pointer_type(gl.int32)
    scales_ptr, biases_ptr = scales_ptr.to(kind, bitcast=True), biases_ptr.to(kind, bitcast=True)
    if begin < experts * SLICES:
        by_turn, by_step = _rotation(begin // SLICES, wavefront, zero, DEPTH, ROT)
        row = (begin // SLICES).to(gl.int64) * n + begin % SLICES * own
        turns = own // HEIGHT
        each, first_lane = wavefront * 16 + r * 2 + q, gl.where(r * 4 + q + zero == 0, 1, 0)
        if INIT == 0:
            near = row + by_turn % turns * HEIGHT
            _soon(w_ptr + near * ROW + (each * ROW + by_step * 64 + four * 0), gl.where(q + zero < 2, 1, 0), _far())
            _soon(scales_ptr + near * BESIDE + (wavefront * (16 * BESIDE) + zero), first_lane, 64 * BESIDE)
            _soon(biases_ptr + near * BESIDE + (wavefront * (16 * BESIDE) + zero), first_lane, 64 * BESIDE)
        for turn in gl.static_range(INIT):
            there = first_lane * (turn < turns).to(gl.int32)
            nearer = row + (turn + by_turn) % turns * HEIGHT
            _soon(w_ptr + nearer * ROW + (wavefront * (16 * ROW) + zero), there, 64 * ROW)
            _soon(scales_ptr + nearer * BESIDE + (wavefront * (16 * BESIDE) + zero), there, 64 * BESIDE)
            _soon(biases_ptr + nearer * BESIDE + (wavefront * (16 * BESIDE) + zero), there, 64 * BESIDE)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    # Blocks of 64 columns of rows of x; behind them numbers of pairs: of an expert, of a tile, and by expert.
    BEHIND: gl.constexpr = (16 + 4 * ROOM + 4 * MOST + 4 * EXPERTS + 1023) // 1024
    memory = gl.allocate_shared_memory(
        gl.bfloat16, [DEPTH // 64 * TILES + BEHIND, 8, 64], gl.NVMMASharedLayout(128, 16, rank=2)
    )
    # Its address is Triton's own, which tells it only where it writes something itself; there is nothing else in it.
    memory.index(DEPTH // 64 * TILES).store(
        gl.full([8, 64], 0.0, gl.bfloat16, layout=gl.BlockedLayout([1, 2], [1, 32], [WAVEFRONTS, 1], [1, 0]))
    )
    base = gl.inline_asm_elementwise(BASE, BASE_OF, [], gl.int32, is_pure=True, pack=1)
    list_at = base + DEPTH * MOST * 2
    ordered_at = list_at + (16 + 4 * ROOM)
    counts_at = ordered_at + 4 * MOST
    select = gl.where(q + zero < 2, 0x1010, 0x3232)
    scaled = gl.where(q * 4 + zero < BESIDE, 1, 0)
    expert, tile = gl.minimum(begin // SLICES, experts - 1), begin * 0
    listed = list_pairs(rhs_ptr, 0, pairs, expert, counts_at, list_at, ROOM, EXPERTS, True, WAVEFRONTS)
    tiles, _ = more_tiles(counts_at, MOST, EXPERTS, WAVEFRONTS)
    units = (experts + gl.sum(tiles, axis=0)) * SLICES
    for unit in range(begin, units, gl.num_programs(0)):
        if unit != gl.minimum(begin, experts * SLICES - 1):
            tiles, through = more_tiles(counts_at, MOST, EXPERTS, WAVEFRONTS)
            more = unit // SLICES - experts
            before = through <= more
            beyond = gl.sum(before.to(gl.int32), axis=0)
            expert = gl.where(more < 0, unit // SLICES, beyond)
            tile = gl.where(more < 0, 0, 1 + more - gl.sum(gl.where(before, tiles, 0), axis=0))
            listed = list_pairs(rhs_ptr, 0, pairs, expert, counts_at, list_at, ROOM, EXPERTS, False, WAVEFRONTS)
        tile_at = list_at + 16
        if listed > MOST:
            # Which pairs are in which tile has to be the same in all programs.
            tile_at = ordered_at
            span = gl.where(listed > ROOM, ROOM, pairs)
            earlier = begin * 0
            for start in range(0, pairs, span):
                some = listed
                if listed > ROOM:
                    end = gl.minimum(start + span, pairs)
                    some = list_pairs(rhs_ptr, start, end, expert, counts_at, list_at, ROOM, EXPERTS, False, WAVEFRONTS)
                order_pairs(list_at, some, earlier, tile * MOST, ordered_at, ROOM, MOST, WAVEFRONTS)
                earlier += some
            gl.thread_barrier()
        count = gl.minimum(listed - tile * MOST, MOST)
        if count > 0:
            _into_memory(
                x_ptr, tile_at, count, base, divisor, r, q, wavefront, four, zero, DEPTH, TILES, TILES_AT_ONCE,
                WAVEFRONTS,
            )  # fmt: skip
            first_row = expert.to(gl.int64) * n + unit % SLICES * own
            # Another 8 rows of x are a sixth more time of the matrix unit.
            for eights in gl.static_range(TILES - FEWER, TILES + 1):
                if (count > 8 * (eights - 1) or eights == TILES - FEWER) and count <= 8 * eights:
                    _products(
                        w_ptr + first_row * ROW, scales_ptr + first_row * BESIDE, biases_ptr + first_row * BESIDE,
                        out_ptr + unit % SLICES * own, expert, n, own // HEIGHT, base, tile_at, count, select, scaled,
                        r, q, wavefront, four, zero, DEPTH, eights, TILES, AHEAD, SOON, INIT, ROT, WAVEFRONTS,
                    )  # fmt: skip
    memory._keep_alive()  # noqa: SLF001  it is read by address
