"""Two to eight rows of x in bfloat16 against 4-bit weights in groups of 64 or 128, on NVIDIA, as ``walkers``.

A program stands on a multiprocessor by itself. Its wavefronts take neighbouring parts of K (SLICES of them) of some
tiles of 16 rows of weights at once (SIDE), then of the next ones. x is brought into order once, in shared memory; what
a wavefront loads for a chunk of 128 codes is asked for DEEP chunks ahead. ``blocks_rows`` has what lanes do.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from rocmend.kernels.ops.quantized_matmul.kernels import blocks, blocks_rows
from rocmend.kernels.ops.quantized_matmul.kernels.walkers import _along, _by_two

PAIRS = gl.constexpr(blocks.pairs())
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCTS = gl.constexpr(tuple(blocks_rows.product(chunk) for chunk in range(4)))
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "frrrrrrfrrrf"))
SUMS = gl.constexpr(blocks_rows.sums())
SUMS_OF = gl.constexpr(blocks.constraints("f", "rrrr"))
BIASES = gl.constexpr(blocks_rows.biases())
BIASES_OF = gl.constexpr(blocks.constraints("f", "frf"))


@gluon.jit
def _two(at, EIGHT: gl.constexpr):
    """Return what is at pointers of rows r, and of rows r + 8; words are read once."""
    return gl.load(at, eviction_policy="evict_first"), gl.load(at + EIGHT, eviction_policy="evict_first")


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
    rounds,
    DEPTH: gl.constexpr,
    GROUP: gl.constexpr,
    SLICES: gl.constexpr,
    SIDE: gl.constexpr,
    DEEP: gl.constexpr,
    COPIED: gl.constexpr,
    PDL: gl.constexpr,
):
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, of SIDE tiles of 16 rows of w at once, ``rounds`` times.

    Args:
        x_ptr: ``[rows, DEPTH]``, adjacent in a row.
        w_ptr: ``[16 * tiles, DEPTH / 8]`` words.
        scales_ptr: ``[16 * tiles, DEPTH / GROUP]``.
        biases_ptr: The same.
        out_ptr: ``[rows, 16 * tiles]``.
        rows: Of x, 8 at most.
        tiles: How many there are.
        x_eights: Eights of elements from one row of x to the next.
        rounds: Tiles of a wavefront at most.
        DEPTH: K, a multiple of SLICES * 1024.
        GROUP: 64 or 128.
        SLICES: Wavefronts that share a tile, each with its part of K.
        SIDE: Tiles at once.
        DEEP: Chunks of 128 codes whose words are under way: 4 or 8.
        COPIED: x is copied to shared memory and ordered there, not on its way in registers.
        PDL: Weights are read before x is there.
    """
    # Chunks of a wavefront, and eights of them, which have one block for the biases.
    CHUNKS: gl.constexpr = DEPTH // 128 // SLICES
    SETS: gl.constexpr = CHUNKS // 8
    # Elements of a tensor of scales in a row: words of two groups, or groups.
    QUADS: gl.constexpr = DEPTH // 128
    kind: gl.constexpr = gl.int32 if GROUP == 64 else gl.int16
    # Tiles, parts of K, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 1, 8, 4, 1], [SIDE, SLICES, 1, 1, 1], [4, 3, 2, 1, 0])
    # Without tiles, which x knows nothing of; without rows too, which the sums' start knows nothing of.
    columns: gl.constexpr = gl.SliceLayout(0, lanes)
    quarters: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, lanes))
    side = _along(0, SIDE, lanes, 5)
    part = _along(1, SLICES, lanes, 5)
    r = _along(2, 8, lanes, 5)
    q = _along(3, 4, lanes, 5)
    four = _along(4, 4, lanes, 5)
    programs = gl.num_programs(0)
    tile = side * programs + gl.program_id(0)
    row = tile.to(gl.int64) * 16
    s_all = scales_ptr.to(gl.pointer_type(kind), bitcast=True)
    b_all = biases_ptr.to(gl.pointer_type(kind), bitcast=True)
    # A wavefront without a tile reads the same few words again and again: nothing has to be masked.
    have = tile < tiles
    w_none, b_none = w_ptr + (q * 4 + four), b_all + four % 2
    w_at = gl.where(
        have, w_ptr + (row * (DEPTH // 8) + (r * (DEPTH // 8) + part * (CHUNKS * 16) + q * 4 + four)), w_none
    )
    s_at = gl.where(have, s_all + (row * QUADS + (r * QUADS + part * CHUNKS + q)), s_all)
    b_at = b_all + (row * QUADS + ((r + four // 2 * 8) * QUADS + part * CHUNKS + q * 2 + four % 2))
    b_at = gl.where(have, b_at, b_none)
    step = programs * SIDE
    w_round = step.to(gl.int64) * (DEPTH * 2) - (SETS - 1) * 128
    s_round = step.to(gl.int64) * (16 * QUADS) - (SETS - 1) * 8
    words = ()
    for chunk in gl.static_range(DEEP):
        words = words + _two(w_at + chunk * 16, DEPTH)
    # Quarters have a chunk's scales each, and give them to the others.
    low0, high0 = gl.load(s_at), gl.load(s_at + 8 * QUADS)
    low1, high1 = gl.load(s_at + 4), gl.load(s_at + (8 * QUADS + 4))
    bias = gl.load(b_at)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    # x: words of a chunk, chunks of a wavefront, parts of K, rows, quarters, pairs.
    ALL: gl.constexpr = CHUNKS * SLICES
    spread: gl.constexpr = gl.BlockedLayout(
        [1, 1, 1, 1, 4], [2, 1, 4, 4, 1], [1, SIDE * SLICES, 1, 1, 1], [4, 0, 3, 2, 1]
    )
    k_of = _along(0, 4, spread, 5)
    chunk_of = _along(1, ALL, spread, 5)
    q_of = _along(3, 4, spread, 5)
    word = (chunk_of % SLICES * CHUNKS + chunk_of // SLICES) * 16 + k_of // 2 * 8 + q_of % 2 * 4 + k_of % 2
    # The quarter was given it.
    word += gl.where(q_of // 2 != k_of // 2, 2, 0)
    line = gl.minimum(_along(2, 8, spread, 5), rows - 1)
    x_at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + (line * x_eights + word) * 4 + _along(4, 4, spread, 5)
    memory = gl.allocate_shared_memory(gl.int32, [4, ALL, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0]))
    if COPIED:
        async_copy.async_copy_global_to_shared(memory, x_at)
        async_copy.commit_group()
        async_copy.wait_group(0)
        plane: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [SIDE * SLICES, 1, 1, 1], [3, 2, 1, 0])
        planes = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
            gl.int32, [4, ALL, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
        )
        for k in gl.static_range(4):
            plain = planes.index(k).load(plane)
            planes.index(k).store(gl.inline_asm_elementwise(PAIRS, PAIRS_OF, [plain], gl.int32, is_pure=True, pack=4))
    else:
        memory.store(gl.inline_asm_elementwise(PAIRS, PAIRS_OF, [gl.load(x_at)], gl.int32, is_pure=True, pack=4))
    # Sums of x by chunks of a wavefront, two groups, parts of K, quarters, and columns 2 q and 2 q + 1 twice.
    table = gl.allocate_shared_memory(gl.float32, [ALL, 8, 4], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]))
    apart = memory._reinterpret(  # noqa: SLF001
        gl.int32, [4 * CHUNKS // SIDE, SIDE, SLICES, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    )
    totals = ()
    for turn in gl.static_range(CHUNKS // SIDE):
        of_word = ()
        for k in gl.static_range(4):
            of_word = of_word + (apart.index(k * (CHUNKS // SIDE) + turn).load(lanes),)
        total = gl.inline_asm_elementwise(
            SUMS, SUMS_OF, [of_word[0], of_word[1], of_word[2], of_word[3]], gl.float32, is_pure=True, pack=4
        )
        # All rows have the same.
        total = gl.max(total, axis=2)
        total = gl.join(total, total).reshape([SIDE, SLICES, 4, 2, 2, 2]).permute([0, 3, 1, 2, 5, 4])
        totals = totals + (total,)
    turns = table._reinterpret(  # noqa: SLF001
        gl.float32, [CHUNKS // SIDE, SIDE, 2, SLICES, 4, 2, 2], gl.SwizzledSharedLayout(1, 1, 1, [5, 4, 3, 2, 1, 0])
    )
    for turn in gl.static_range(CHUNKS // SIDE):
        turns.index(turn).store(totals[turn])
    held = memory._reinterpret(  # noqa: SLF001
        gl.int32, [4 * CHUNKS, SLICES, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    starts = table._reinterpret(  # noqa: SLF001
        gl.float32, [2 * CHUNKS, SLICES, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0])
    )
    # The same for a block of biases: a quarter's chunks are its two, and a row's columns one.
    sets = table._reinterpret(  # noqa: SLF001
        gl.float32, [SETS, 4, 2, 2, SLICES, 4, 2, 2], gl.SwizzledSharedLayout(1, 1, 1, [6, 5, 4, 3, 2, 1, 0])
    )
    of_set: gl.constexpr = gl.BlockedLayout(
        [1, 1, 1, 1, 1, 2, 2, 1], [1, 1, 4, 2, 4, 1, 1, 1], [SIDE, SLICES, 1, 1, 1, 1, 1, 1], [7, 6, 5, 4, 3, 2, 1, 0]
    )
    upper = side * 0 + part * 0 + r * 0 + q // 2 + four * 0
    # Said here, or Triton has a barrier where x is first read: in each round.
    gl.thread_barrier()
    sums = gl.full([SIDE, SLICES, 8, 4, 4], 0.0, gl.float32, layout=lanes)
    at = 0
    for turn in range(rounds * SETS):
        last = at == SETS - 1
        more = tile + step < tiles
        w_next, s_next, b_next = w_at + 128, s_at + 8, b_at + 8
        if last:
            w_next = gl.where(more, w_at + w_round, w_none)
            s_next = gl.where(more, s_at + s_round, s_all)
            b_next = gl.where(more, b_at + s_round, b_none)
        for c in gl.static_range(8):
            low, high = words[0], words[1]
            later = ()
            for k in gl.static_range(2 * DEEP - 2):
                later = later + (words[k + 2],)
            if c + DEEP < 8:
                words = later + _two(w_at + (c + DEEP) * 16, DEPTH)
            else:
                words = later + _two(w_next + (c + DEEP - 8) * 16, DEPTH)
            xs = ()
            for k in gl.static_range(4):
                xs = xs + (held.index(k * CHUNKS + at * 8 + c).load(columns).expand_dims(0),)
            start = ()
            for group in gl.static_range(2):
                start = start + (starts.index((at * 8 + c) * 2 + group).load(quarters).expand_dims(0).expand_dims(2),)
            if c % 4 == 0:
                s_low = _by_two(low0 if c == 0 else low1, GROUP)
                s_high = _by_two(high0 if c == 0 else high1, GROUP)
            sums = gl.inline_asm_elementwise(
                PRODUCTS[c % 4], PRODUCT_OF,
                [sums, low, high, xs[0], xs[1], xs[2], xs[3], start[0], s_low, s_high, upper, start[1]],
                gl.float32, is_pure=True, pack=4,
            )  # fmt: skip
            if c == 3:
                low0, high0 = gl.load(s_next), gl.load(s_next + 8 * QUADS)
            elif c == 7:
                low1, high1 = gl.load(s_next + 4), gl.load(s_next + (8 * QUADS + 4))
        totals_of = sets.index(at).slice(0, 1, 5).permute([3, 4, 6, 0, 1, 2, 5]).load(gl.SliceLayout(0, of_set))
        totals_of = gl.convert_layout(totals_of.reshape([SLICES, 8, 4, 4]), columns).expand_dims(0)
        sums = gl.inline_asm_elementwise(
            BIASES, BIASES_OF, [sums, _by_two(bias, GROUP), totals_of], gl.float32, is_pure=True, pack=4
        )
        bias = gl.load(b_next)
        at = gl.where(last, 0, at + 1)
        if last:
            whole = gl.sum(sums, axis=1).to(gl.bfloat16)
            left: gl.constexpr = gl.SliceLayout(1, lanes)
            register = _along(3, 4, left, 4)
            column = _along(2, 4, left, 4) * 2 + register % 2
            of = _along(0, SIDE, left, 4) * programs + gl.program_id(0) + turn // SETS * step
            n = of.to(gl.int64) * 16 + (_along(1, 8, left, 4) + register // 2 * 8)
            gl.store(out_ptr + (column.to(gl.int64) * (tiles * 16) + n), whole, mask=(column < rows) & (of < tiles))
            sums = sums * 0.0
            tile += step
        w_at, s_at, b_at = w_next, s_next, b_next
