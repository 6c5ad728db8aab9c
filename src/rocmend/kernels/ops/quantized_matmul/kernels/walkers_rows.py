"""Two to eight rows of x in bfloat16 against 4-bit weights in groups of 64 or 128, on NVIDIA, as ``walkers``.

A program's wavefronts take parts of K (SLICES of them) of some tiles of 16 rows of weights at once (SIDE), then of the
next ones. x is brought into order once, in shared memory, where all wavefronts find it. ``blocks_rows`` has what lanes
do.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along
from rocmend.kernels.ops.quantized_matmul.kernels import blocks, blocks_rows
from rocmend.kernels.ops.quantized_matmul.kernels.walkers import _by_two

PAIRS = gl.constexpr(blocks.pairs())
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCTS = gl.constexpr(tuple(blocks_rows.product(chunk) for chunk in range(4)))
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "frrrrrrrrr"))
TOTALS = gl.constexpr(tuple(blocks_rows.totals(chunk) for chunk in range(4)))
TOTALS_OF = gl.constexpr(blocks.constraints("f", "rrrrr"))
CUT = gl.constexpr(blocks_rows.cut())
CUT_OF = gl.constexpr(blocks.constraints("rr", "f"))
OTHERS = gl.constexpr(blocks_rows.others())
OTHERS_OF = gl.constexpr(blocks.constraints("f", "frrrrrr"))


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
def _quads(s_at, b_at, EIGHT: gl.constexpr):
    """Return words of two groups: biases of rows r and r + 8, then scales."""
    return gl.load(b_at), gl.load(b_at + EIGHT), gl.load(s_at), gl.load(s_at + EIGHT)


@gluon.jit
def _into_memory(x_ptr, rows, x_eights, PARTS: gl.constexpr, SLICES: gl.constexpr, SIDE: gl.constexpr, memory):
    """Bring x into order: parts of K, words of chunks, wavefronts, rows, quarters, pairs."""
    WARPS: gl.constexpr = SIDE * SLICES
    WIDE: gl.constexpr = 8 if WARPS > 8 else WARPS  # noqa: FURB136  min is not of constants
    spread: gl.constexpr = gl.BlockedLayout(
        [1, 1, 1, 1, 4], [2, 1, 4, 4, 1], [WIDE, WARPS // WIDE, 1, 1, 1], [4, 0, 3, 2, 1]
    )
    k = along(0, 16, spread, 5)
    q = along(3, 4, spread, 5)
    word = (along(1, SLICES, spread, 5) * 4 + k // 4) * 16 + k % 4 // 2 * 8 + q % 2 * 4 + k % 2
    # The other quarter was given it.
    word += gl.where(q // 2 != k % 4 // 2, 2, 0)
    line = gl.minimum(along(2, 8, spread, 5), rows - 1)
    at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + (line * x_eights + word) * 4 + along(4, 4, spread, 5)
    given = ()
    for part in gl.static_range(PARTS):
        given = given + (gl.load(at + part * (SLICES * 256)),)
    for part in gl.static_range(PARTS):
        ordered = gl.inline_asm_elementwise(PAIRS, PAIRS_OF, [given[part]], gl.int32, is_pure=True, pack=4)
        memory.index(part).store(ordered)


@gluon.jit
def walkers_rows_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    rows,
    tiles,
    x_eights,
    DEPTH: gl.constexpr,
    GROUP: gl.constexpr,
    SLICES: gl.constexpr,
    SIDE: gl.constexpr,
    ROUNDS: gl.constexpr,
    CHUNKS: gl.constexpr,
    KEPT: gl.constexpr,
    PDL: gl.constexpr,
):
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
        KEPT: Wavefronts add up what they have at the end, not for each tile.
        PDL: Weights are read before x is there.
    """
    PARTS: gl.constexpr = DEPTH // (512 * SLICES)
    STEPS: gl.constexpr = PARTS * 4 // CHUNKS
    # Elements of a tensor of scales in a row: words of two groups, or groups.
    QUADS: gl.constexpr = DEPTH // 128
    kind: gl.constexpr = gl.int32 if GROUP == 64 else gl.int16
    # Tiles, parts of K, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 1, 8, 4, 1], [SIDE, SLICES, 1, 1, 1], [4, 3, 2, 1, 0])
    # Without tiles, which x knows nothing of.
    columns: gl.constexpr = gl.SliceLayout(0, lanes)
    wavefront = along(1, SLICES, lanes, 5)
    r = along(2, 8, lanes, 5)
    q = along(3, 4, lanes, 5)
    four = along(4, 4, lanes, 5)
    programs = gl.num_programs(0)
    tile = along(0, SIDE, lanes, 5) * programs + gl.program_id(0)
    row = tile.to(gl.int64) * 16
    s_all = scales_ptr.to(gl.pointer_type(kind), bitcast=True)
    b_all = biases_ptr.to(gl.pointer_type(kind), bitcast=True)
    # A wavefront without a tile reads the same few words again and again: nothing has to be masked.
    w_none = w_ptr + (q * 4 + four)
    have = tile < tiles
    w_at = w_ptr + (row * (DEPTH // 8) + (r * (DEPTH // 8) + wavefront * 64 + q * 4 + four))
    w_at = gl.where(have, w_at, w_none)
    quad = row * QUADS + (r * QUADS + wavefront * 4 + q)
    s_at, b_at = gl.where(have, s_all + quad, s_all), gl.where(have, b_all + quad, b_all)
    step = programs * SIDE
    w_round = step.to(gl.int64) * (DEPTH * 2)
    s_round = step.to(gl.int64) * (16 * QUADS)
    words = _codes(w_at, 0, SLICES, CHUNKS, DEPTH)
    quads = _quads(s_at, b_at, 8 * QUADS)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    memory = gl.allocate_shared_memory(
        gl.int32, [PARTS, 16, SLICES, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    )
    _into_memory(x_ptr, rows, x_eights, PARTS, SLICES, SIDE, memory)
    held = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
        gl.int32, [16 * PARTS, SLICES, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    # Sums of x by 64 codes, each in three parts of bfloat16.
    nothing = gl.full([SIDE, SLICES, 8, 4, 4], 0.0, gl.float32, layout=lanes)
    spot = r + tile * 0 + wavefront * 0 + q * 0 + four * 0
    upper = spot * 0 + q // 2
    cuts = ()
    for part in gl.static_range(PARTS):
        total = nothing
        for c in gl.static_range(4):
            of_word = ()
            for k in gl.static_range(4):
                of_word = of_word + (held.index((part * 4 + c) * 4 + k).load(columns).expand_dims(0),)
            total += gl.inline_asm_elementwise(
                TOTALS[c], TOTALS_OF, [of_word[0], of_word[1], of_word[2], of_word[3], spot], gl.float32,
                is_pure=True, pack=4,
            )  # fmt: skip
        cuts = cuts + gl.inline_asm_elementwise(CUT, CUT_OF, [total], (gl.int32, gl.int32), is_pure=True, pack=4)
    # Said here, or Triton has a barrier where x is first read: in each round.
    gl.thread_barrier()
    left: gl.constexpr = gl.SliceLayout(1, lanes)
    register = along(3, 4, left, 4)
    column = along(2, 4, left, 4) * 2 + register % 2
    n = along(1, 8, left, 4) + register // 2 * 8
    out_at = out_ptr + (column.to(gl.int64) * (tiles * 16) + n)
    first = along(0, SIDE, left, 4) * programs + gl.program_id(0)
    kept = ()
    for _ in gl.static_range(ROUNDS if KEPT else 0):
        kept = kept + (nothing,)
    for turn in range(ROUNDS):
        sums, others = nothing, nothing
        more = tile + (turn + 1) * step < tiles
        w_next = gl.where(more, w_at + w_round, w_none)
        s_next, b_next = gl.where(more, s_at + s_round, s_all), gl.where(more, b_at + s_round, b_all)
        for at in gl.static_range(STEPS):
            here = words
            if at + 1 < STEPS:
                words = _codes(w_at, (at + 1) * CHUNKS, SLICES, CHUNKS, DEPTH)
            else:
                words = _codes(w_next, 0, SLICES, CHUNKS, DEPTH)
            if at * CHUNKS % 4 == 0:
                b_low, b_high = _by_two(quads[0], GROUP), _by_two(quads[1], GROUP)
                s_low, s_high = _by_two(quads[2], GROUP), _by_two(quads[3], GROUP)
                if at * CHUNKS // 4 + 1 < PARTS:
                    by = (at * CHUNKS // 4 + 1) * (SLICES * 4)
                    quads = _quads(s_at + by, b_at + by, 8 * QUADS)
                else:
                    quads = _quads(s_next, b_next, 8 * QUADS)
            # The compiler moves loads down to where their registers come free, but not past this.
            gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
            for c in gl.static_range(CHUNKS):
                xs = ()
                for k in gl.static_range(4):
                    xs = xs + (held.index((at * CHUNKS + c) * 4 + k).load(columns).expand_dims(0),)
                sums = gl.inline_asm_elementwise(
                    PRODUCTS[(at * CHUNKS + c) % 4], PRODUCT_OF,
                    [sums, here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3], s_low, s_high, upper],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
            if (at + 1) * CHUNKS % 4 == 0:
                others = gl.inline_asm_elementwise(
                    OTHERS, OTHERS_OF,
                    [others, b_low, b_high, s_low, s_high, cuts[at * CHUNKS // 4 * 2], cuts[at * CHUNKS // 4 * 2 + 1]],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
        sums += others
        if KEPT:
            older = kept
            kept = ()
            for k in gl.static_range(ROUNDS):
                kept = kept + (gl.where(turn == k, sums, older[k]),)
        else:
            mine = first + turn * step
            whole = gl.sum(sums, axis=1).to(gl.bfloat16)
            gl.store(out_at + mine.to(gl.int64) * 16, whole, mask=(column < rows) & (mine < tiles))
        w_at, s_at, b_at = w_next, s_next, b_next
    for k in gl.static_range(ROUNDS if KEPT else 0):
        mine = first + k * step
        whole = gl.sum(kept[k], axis=1).to(gl.bfloat16)
        gl.store(out_at + mine.to(gl.int64) * 16, whole, mask=(column < rows) & (mine < tiles))
