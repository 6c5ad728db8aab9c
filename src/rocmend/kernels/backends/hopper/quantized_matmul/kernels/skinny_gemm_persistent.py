"""One to eight rows of x in bfloat16 against 4-bit weights in groups of 64 or 128, on Hopper.

A program's wavefronts take parts of K (SLICES of them) of some tiles of 16 rows of weights at once (SIDE), then of the
next ones. x is brought into order once, in shared memory, and its sums are made once, where all wavefronts find them.
``skinny_gemm_persistent_ptx`` has what lanes do.

Which part of K a wavefront sums differs from one to the next, which Triton has no words for. So blocks of PTX store x,
read it for its sums and store those; of shared memory Triton knows that it is taken, where it begins, and what products
read of it.

Where the sums say that x has numbers beyond what products can take, all is computed once more, by code that stands
behind the other: a branch in front of the products cost 0.2 µs of 12, one behind them nothing that can be measured.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper import mma as blocks
from rocmend.kernels.backends.hopper.along import along, begin_behind, done, made, numbers_of, said
from rocmend.kernels.backends.hopper.quantized_matmul.kernels import skinny_gemm_persistent_ptx as blocks_rows

PLACED = gl.constexpr(blocks_rows.placed())
PLACED_OF = gl.constexpr(blocks.constraints("r", "rr"))
PRODUCTS = gl.constexpr(tuple(blocks_rows.product(chunk) for chunk in range(4)))
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "frrrrrrrrr"))
ROW_BYTES = blocks_rows.WORD_BYTES // 8
TOTALS = gl.constexpr({apart: blocks_rows.totals(apart * ROW_BYTES) for apart in (1, 2, 4, 8, 16, 32, 64)})
TOTALS_OF = gl.constexpr("=r,r,r,r,r")
LARGEST = gl.constexpr(blocks_rows.largest())
PLACED_BY_SIZE = gl.constexpr(blocks_rows.placed_by_size())
PLACED_BY_SIZE_OF = gl.constexpr(blocks.constraints("r", "rrr"))
RESTORE = gl.constexpr(2.0**53)
RESTORED = gl.constexpr(blocks_rows.restored())
RESTORED_OF = gl.constexpr(blocks.constraints("f", "ffr"))
LARGEST_AT = gl.constexpr(blocks_rows.LARGEST)
SEEN_AT = gl.constexpr(blocks_rows.SEEN)
EXTRA = gl.constexpr(blocks_rows.EXTRA_BYTES)
OTHERS = gl.constexpr(blocks_rows.others())
OTHERS_OF = gl.constexpr(blocks.constraints("f", "frrr"))
SHARED = gl.constexpr({slices: blocks.shared(slices) for slices in (2, 4, 8)})
SHARED_OF = gl.constexpr(blocks.constraints("f", "frrr"))
FETCHED = gl.constexpr("prefetch.global.L2 [$1]; // $0")
BEHINDS = [17 * depth * held // 8 for depth in range(512, 8192 + 512, 512) for held in (1, 8)]
"""Bytes that x and its sums take: a row or eight of them."""
BEGUN = gl.constexpr({behind: blocks_rows.begun(behind) for behind in BEHINDS})
NEEDED = gl.constexpr({behind: blocks_rows.needed(behind) for behind in BEHINDS})
ODD = gl.constexpr({behind: blocks_rows.odd(behind) for behind in BEHINDS})
BEGIN = gl.constexpr("mov.u32 $0, global_smem; // $1")
"""Where Triton's shared memory begins, and with it the allocation that lives longest."""


@gluon.jit
def _by_two(scales, EACH: gl.constexpr):
    """Return words of two groups' scales: as they stand, or one of 128 codes of four bits as two."""
    return scales if EACH == 64 else (scales.to(gl.int32) & 0xFFFF) * 0x10001


@gluon.jit
def _codes(at, FIRST: gl.constexpr, SLICES: gl.constexpr, CHUNKS: gl.constexpr, EIGHT: gl.constexpr):
    """Return words of chunks, the one number FIRST of a wavefront's the first, of rows r and r + 8 each."""
    words = ()
    for c in gl.static_range(CHUNKS):
        by = at + ((FIRST + c) % 4 * 16 + (FIRST + c) // 4 * (SLICES * 64))
        words = words + (gl.load(by, eviction_policy="evict_first"),)
        words = words + (gl.load(by + EIGHT, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _quads(s_all, b_all, at, EIGHT: gl.constexpr):
    """Return words of two groups: biases of rows r and r + 8, then scales."""
    return gl.load(b_all + at), gl.load(b_all + at + EIGHT), gl.load(s_all + at), gl.load(s_all + at + EIGHT)


@gluon.jit
def _fetched(at, line, SLICES: gl.constexpr, COUNT: gl.constexpr):
    """Fetch lines of 128 bytes of weights to L2, every second one from number ``line`` of a row on."""
    for more in gl.static_range(COUNT):
        of = line + 2 * more
        there = at + (of // 2 * (SLICES * 64) + of % 2 * 32)
        done(FETCHED, "=r,l", [there.to(gl.int64)], 1)


@gluon.jit
def _order(none, SLICES: gl.constexpr, SIDE: gl.constexpr):
    """Return what a lane brings into order of each part of K: word, wavefront, row, quarter, pair."""
    WARPS: gl.constexpr = SIDE * SLICES
    WIDE: gl.constexpr = 8 if WARPS > 8 else WARPS  # noqa: FURB136  min is not of constants
    spread: gl.constexpr = gl.BlockedLayout(
        [1, 1, 1, 1, 4], [2, 1, 4, 4, 1], [WIDE, WARPS // WIDE, 1, 1, 1], [4, 0, 3, 2, 1]
    )
    k = along(0, 16, spread, 5) + none
    wavefront = along(1, SLICES, spread, 5) + none
    return k, wavefront, along(2, 8, spread, 5) + none, along(3, 4, spread, 5) + none, along(4, 4, spread, 5) + none


@gluon.jit
def _asked(x_ptr, rows, x_eights, none, PARTS: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr):
    """Ask for x, in parts of K: words of chunks, wavefronts, rows, quarters, pairs."""
    k, wavefront, r, q, four = _order(none, SLICES, SIDE)
    word = (wavefront * 4 + k // 4) * 16 + k % 4 // 2 * 8 + q % 2 * 4 + k % 2
    # The other quarter was given it.
    word += gl.where(q // 2 != k % 4 // 2, 2, 0)
    at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + (gl.minimum(r, rows - 1) * x_eights + word) * 4 + four
    given = ()
    for part in gl.static_range(PARTS):
        given = given + (gl.load(at + part * (SLICES * 256)),)
    return given


@gluon.jit
def _into_memory(
    given, none, PARTS: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr, HELD: gl.constexpr, HOW: gl.constexpr
):
    """Bring x into order, as ``_asked`` has it.

    HOW: ``plain``; ``largest`` to note each row's largest number only; ``by size`` to multiply rows by what that asks
    for.
    """
    k, wavefront, r, q, four = _order(none, SLICES, SIDE)
    WORD: gl.constexpr = 64 * HELD
    place = (k * SLICES + wavefront) * WORD + (r % HELD * 4 + q) * 16 + four * 0
    begin = gl.inline_asm_elementwise(BEGIN, "=r,r", [place], gl.int32, is_pure=True, pack=1)
    place += begin
    row = begin + (PARTS * SLICES * WORD * 17 + LARGEST_AT) + r * 4
    for part in gl.static_range(PARTS):
        to = place + part * (16 * SLICES * WORD)
        if HOW == "plain":
            done(PLACED, PLACED_OF, [given[part], to], 4)
        elif HOW == "largest":
            done(LARGEST, PLACED_OF, [given[part], row], 4)
        else:
            done(PLACED_BY_SIZE, PLACED_BY_SIZE_OF, [given[part], to, row], 4)


@gluon.jit
def _sums(own, seen, side, r, PARTS: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr, HELD: gl.constexpr):
    """Store sums of x by 64 codes, each in three parts of bfloat16: wavefronts that share no tile have parts of K each.

    Args:
        own: Where a lane's numbers of its wavefront's first word are.
        seen: Where what is seen of its row goes.
        side: A wavefront's number among those that share no tile.
        r: Its row.
        PARTS: Of K, of 512 codes of a wavefront.
        SLICES: Wavefronts that share a tile.
        SIDE: Tiles at once.
        HELD: Rows of x that are kept, 1 or 8.
    """
    WORD: gl.constexpr = 64 * HELD
    for of in gl.static_range((PARTS + SIDE - 1) // SIDE):
        part = gl.minimum(of * SIDE + side, PARTS - 1)
        sums = own + (PARTS * SLICES * WORD * 16 + part * (SLICES * WORD))
        done(made(TOTALS, SLICES * HELD), TOTALS_OF, [own + part * (16 * SLICES * WORD), sums, r, seen], 1)


@gluon.jit
def _walked(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, memory, rows, tiles, x_eights,
    DEPTH: gl.constexpr, GROUP: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr, ROUNDS: gl.constexpr,
    CHUNKS: gl.constexpr, AHEAD: gl.constexpr, FETCH: gl.constexpr, HELD: gl.constexpr, BY_SIZE: gl.constexpr,
):  # fmt: skip
    """Compute what ``skinny_gemm_persistent_kernel`` does; return something but zero where x asks for more.

    BY_SIZE: Rows of x are multiplied by what their largest number asks for, which was noted before.
    """
    PARTS: gl.constexpr = DEPTH // (512 * SLICES)
    STEPS: gl.constexpr = PARTS * 4 // CHUNKS
    # Elements of a tensor of scales in a row: words of two groups, or groups.
    QUADS: gl.constexpr = DEPTH // 128
    # Shared memory: x, then its sums, then what is known of rows.
    WORD: gl.constexpr = 64 * HELD
    SUMS: gl.constexpr = DEPTH * HELD * 2
    BEHIND: gl.constexpr = DEPTH * HELD * 17 // 8
    kind: gl.constexpr = gl.int32 if GROUP == 64 else gl.int16
    # Tiles, parts of K, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 1, 8, 4, 1], [SIDE, SLICES, 1, 1, 1], [4, 3, 2, 1, 0])
    # Without tiles, which x knows nothing of, and with one number for all four registers.
    columns: gl.constexpr = gl.SliceLayout(0, lanes)
    single: gl.constexpr = gl.SliceLayout(4, lanes)
    # What the second time is computed with is computed then: registers need not keep it.
    none = done("mov.b32 $0, 0;", "=r", [], 1) if BY_SIZE else 0
    side = along(0, SIDE, single, 4) + none
    wavefront = along(1, SLICES, single, 4) + none
    r = along(2, 8, single, 4) + none
    q = along(3, 4, single, 4) + none
    four = along(4, 4, lanes, 5) + none
    programs = gl.num_programs(0)
    step = programs * SIDE
    tile = side * programs + gl.program_id(0) + (wavefront + r + q) * 0
    row = tile.to(gl.int64) * 16
    each = tile.expand_dims(4) * 0 + four * 0
    # A wavefront without a tile reads the same few words again and again: nothing has to be masked.
    w_none = w_ptr + (each + (q * 4).expand_dims(4) + four)
    w_at = w_ptr + (row * (DEPTH // 8) + (r * (DEPTH // 8) + wavefront * 64 + q * 4)).expand_dims(4) + four
    w_at = gl.where(tile.expand_dims(4) < tiles, w_at, w_none)
    w_round = step.to(gl.int64) * (DEPTH * 2)
    s_all = scales_ptr.to(gl.pointer_type(kind), bitcast=True)
    b_all = biases_ptr.to(gl.pointer_type(kind), bitcast=True)
    quad = row * QUADS + (r * QUADS + wavefront * 4 + q)
    quad_round = step.to(gl.int64) * (16 * QUADS)
    words = _codes(w_at, 0, SLICES, CHUNKS, DEPTH)
    quads = ()
    for first in gl.static_range(AHEAD):
        later = quad + ((first // PARTS) * quad_round + first % PARTS * (SLICES * 4))
        quads = quads + (_quads(s_all, b_all, gl.where(tile + (first // PARTS) * step < tiles, later, 0), 8 * QUADS),)
    if not BY_SIZE:
        done(made(BEGUN, BEHIND), "=r,r,r", [tile * 0 + r * 4, tile * 0 + q * 4], 1)
        begin_behind()
    given = _asked(x_ptr, rows, x_eights, none, PARTS, SLICES, SIDE)
    LINES: gl.constexpr = min(FETCH, PARTS - (CHUNKS + 2) // 4)
    if LINES > 0 and not BY_SIZE:
        either = (row + (r + q % 2 * 8)) * (DEPTH // 8) + wavefront * 64
        _fetched(w_ptr + gl.where(tile < tiles, either, 0), CHUNKS // 2 + q // 2, SLICES, LINES)
    _into_memory(given, none, PARTS, SLICES, SIDE, HELD, "by size" if BY_SIZE else "plain")
    gl.thread_barrier()
    begin = gl.inline_asm_elementwise(BEGIN, "=r,r", [tile], gl.int32, is_pure=True, pack=1)
    own = begin + wavefront * WORD + (r % HELD * 4 + q) * 16
    seen = begin + (BEHIND + SEEN_AT) + r
    _sums(own, seen, side, r, PARTS, SLICES, SIDE, HELD)
    gl.thread_barrier()
    odd = done(made(ODD, BEHIND), "=r", [], 1)
    # Of what is read in the rounds Triton knows no writer, and has no barrier.
    sums_at = each + (own + SUMS).expand_dims(4)
    upper = each + (q // 2).expand_dims(4)
    back_at = each + (begin + BEHIND + q * 8).expand_dims(4)
    held = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
        gl.int32, [16 * PARTS, SLICES, HELD, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    nothing = gl.full([SIDE, SLICES, 8, 4, 4], 0.0, gl.float32, layout=lanes)
    for turn in range(ROUNDS):
        sums, others = nothing, nothing
        more = (tile + (turn + 1) * step < tiles).expand_dims(4)
        w_next = gl.where(more, w_at + w_round, w_none)
        for at in gl.static_range(STEPS):
            here = words
            if at + 1 < STEPS:
                words = _codes(w_at, (at + 1) * CHUNKS, SLICES, CHUNKS, DEPTH)
            else:
                words = _codes(w_next, 0, SLICES, CHUNKS, DEPTH)
            if at * CHUNKS % 4 == 0:
                b_low = _by_two(quads[0][0], GROUP).expand_dims(4) + each
                b_high = _by_two(quads[0][1], GROUP).expand_dims(4) + each
                s_low = _by_two(quads[0][2], GROUP).expand_dims(4) + each
                s_high = _by_two(quads[0][3], GROUP).expand_dims(4) + each
                older = quads
                quads = ()
                for following in gl.static_range(AHEAD - 1):
                    quads = quads + (older[following + 1],)
                # A part of this tile, or of the next one.
                later = quad + (
                    ((at * CHUNKS // 4 + AHEAD) // PARTS) * quad_round
                    + (at * CHUNKS // 4 + AHEAD) % PARTS * (SLICES * 4)
                )
                there = tile + (turn + (at * CHUNKS // 4 + AHEAD) // PARTS) * step < tiles
                quads = quads + (_quads(s_all, b_all, gl.where(there, later, 0), 8 * QUADS),)
            # The compiler moves loads down to where their registers come free, but not past this.
            said("bar.warp.sync 0xffffffff; // $0")
            for c in gl.static_range(CHUNKS):
                xs = ()
                for k in gl.static_range(4):
                    xs = xs + (held.index((at * CHUNKS + c) * 4 + k).load(columns).expand_dims(0) + each * 0,)
                sums = numbers_of(
                    made(PRODUCTS, (at * CHUNKS + c) % 4),
                    PRODUCT_OF,
                    [sums, here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3], s_low, s_high, upper],
                )
            if (at + 1) * CHUNKS % 4 == 0:
                others = gl.inline_asm_elementwise(
                    OTHERS, OTHERS_OF,
                    [others, b_low, b_high, sums_at + at * CHUNKS // 4 * (SLICES * WORD)],
                    gl.float32, is_pure=False, pack=4,
                )  # fmt: skip
        if BY_SIZE:
            sums = gl.inline_asm_elementwise(
                RESTORED, RESTORED_OF, [sums, others, back_at], gl.float32, is_pure=False, pack=4
            )
        else:
            sums = sums * RESTORE + others
        # What results are stored with is computed then: registers need not keep it.
        now = done("mov.b32 $0, 0;", "=r", [], 1)
        side_now, slice_now = along(0, SIDE, lanes, 5) + now, along(1, SLICES, lanes, 5) + now
        r_now, q_now = along(2, 8, lanes, 5) + now, along(3, 4, lanes, 5) + now
        if SLICES > 1:
            # Wavefronts that share a tile add up what they have, in one place and the other in turn.
            all_sums = begin.expand_dims(4) + (BEHIND + EXTRA) + (turn % 2 * SIDE + side_now) * (SLICES * 512)
            all_sums += (r_now * 4 + q_now) * 16 + each
            sums = gl.inline_asm_elementwise(
                made(SHARED, SLICES), SHARED_OF, [sums, all_sums + slice_now * 512, all_sums, side_now + 1 + each],
                gl.float32, is_pure=False, pack=4,
            )  # fmt: skip
        mine = tile.expand_dims(4) + turn * step
        column, n = q_now * 2 + four % 2, r_now + four // 2 * 8
        out_at = out_ptr + (column.to(gl.int64) * (tiles * 16) + (mine.to(gl.int64) * 16 + n))
        gl.store(out_at, sums.to(gl.bfloat16), mask=(column < rows) & (mine < tiles) & (slice_now == 0))
        w_at = w_next
        quad += quad_round
    return odd


@gluon.jit
def skinny_gemm_persistent_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, rows, tiles, x_eights,
    DEPTH: gl.constexpr, GROUP: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr, ROUNDS: gl.constexpr,
    CHUNKS: gl.constexpr, AHEAD: gl.constexpr, FETCH: gl.constexpr, HELD: gl.constexpr,
):  # fmt: skip
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, of SIDE tiles of 16 rows of w at once.

    Args:
        x_ptr: ``[rows, DEPTH]``, adjacent in a row.
        w_ptr: ``[16 * tiles, DEPTH / 8]`` words.
        scales_ptr: ``[16 * tiles, DEPTH / GROUP]``.
        biases_ptr: The same.
        out_ptr: ``[rows, 16 * tiles]``.
        rows: Of x, 8 at most.
        tiles: How many there are.
        x_eights: Eights of elements from one row of x to the next.
        DEPTH: K, a multiple of SLICES * 512.
        GROUP: 64 or 128.
        SLICES: Wavefronts that share a tile, each with 512 codes of every SLICES * 512.
        SIDE: Tiles at once.
        ROUNDS: Tiles of a wavefront at most.
        CHUNKS: Of 128 codes that a wavefront multiplies at a step, 1, 2 or 4, while as many are under way.
        AHEAD: Parts of K, of 512 codes of a wavefront, whose scales and biases are under way.
        FETCH: Pairs of lines of 128 bytes of each row that are fetched to L2 while x is brought into order.
        HELD: Rows of x that shared memory holds: 1, which all columns have then, or 8.
    """
    gl.static_assert(SLICES == 1 or SIDE < 16, "a barrier for each tile at once, of 16, one of which is for all")
    # x, its sums, what is known of its rows, and twice what wavefronts that share tiles add up.
    memory = gl.allocate_shared_memory(
        gl.int32,
        [(DEPTH * HELD * 17 // 8 + EXTRA + 511) // 512 + (2 * SIDE * SLICES if SLICES > 1 else 0), 128],
        gl.SwizzledSharedLayout(1, 1, 1, [0]),
    )
    # Seldom anything but zero.
    odd = _walked(
        x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, memory, rows, tiles, x_eights, DEPTH, GROUP, SLICES, SIDE,
        ROUNDS, CHUNKS, AHEAD, FETCH, HELD, BY_SIZE=False,
    )  # fmt: skip
    if odd != 0:
        none = done("mov.b32 $0, 0;", "=r", [], 1)
        given = _asked(x_ptr, rows, x_eights, none, DEPTH // (512 * SLICES), SLICES, SIDE)
        _into_memory(given, none, DEPTH // (512 * SLICES), SLICES, SIDE, HELD, "largest")
        gl.thread_barrier()
        if done(made(NEEDED, DEPTH * HELD * 17 // 8), "=r", [], 1) != 0:
            _walked(
                x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, memory, rows, tiles, x_eights, DEPTH, GROUP, SLICES,
                SIDE, ROUNDS, CHUNKS, AHEAD, FETCH, HELD, BY_SIZE=True,
            )  # fmt: skip
