"""Many rows of one expert each against quantized weights in bfloat16, on Hopper: programs that walk over tiles.

A program takes a block of rows of an expert's weights, against the rows of x that chose the expert, then another one.
Weights and x go through shared memory, steps of K ahead and across tiles. Out of there a lane has words where the
matrix unit wants weights, and unpacks them in its registers (``codes.py``), in parts: one is multiplied, out of
registers, while the next is unpacked. Biases are a product with the sums of groups of x, at the end.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import async_copy

from rocmend.kernels.ops.gather_qmm.kernels.resident_parts import (
    THIRD,
    chunks_of,
    copy_sums,
    copy_words,
    copy_x,
    held_beside,
    held_copied,
    held_outputs,
    lanes_of,
    operands_of,
    piece,
    row_of_weights,
    scales_of,
)


@gluon.jit
def _tile(
    held, turn, tile, later, x_at, x_later, x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr,
    out_ptr, pairs_ptr, n, ring, weights, sums, beside,
    MODE: gl.constexpr, BITS: gl.constexpr, GROUP: gl.constexpr, GATED: gl.constexpr, DEPTH: gl.constexpr,
    WIDTH: gl.constexpr, ROWS: gl.constexpr, PARTS: gl.constexpr, WAVEFRONTS: gl.constexpr,
    TOKENS: gl.constexpr, STEP: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    """Compute a tile of at most TOKENS rows of x, whose first step's weights are ``held``; return the next one's."""
    CODES: gl.constexpr = 32 // BITS
    STEPS: gl.constexpr = DEPTH // STEP
    CHUNKS: gl.constexpr = STEP // (16 * CODES)
    OF_WORD: gl.constexpr = 2 if MODE == "affine" else 4
    WORDS: gl.constexpr = STEP // GROUP // OF_WORD
    OF: gl.constexpr = CHUNKS // WORDS
    ROW: gl.constexpr = DEPTH // CODES
    BESIDE: gl.constexpr = DEPTH // GROUP // OF_WORD
    lanes: gl.constexpr = lanes_of(WAVEFRONTS, CODES)
    quarters: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, lanes))
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WAVEFRONTS, 1], [16, TOKENS, 16])
    EACH: gl.constexpr = PARTS // 2 if GATED else PARTS
    outputs: gl.constexpr = held_outputs(WAVEFRONTS, EACH, TOKENS)
    expert, block, first, rows = tile
    # Long before they are used.
    row = gl.arange(0, TOKENS, layout=gl.SliceLayout(0, outputs))
    pairs = gl.load(pairs_ptr + first + row, mask=row < rows, other=0)
    next_expert, next_block, _, _ = later
    own = expert.to(gl.int64) * n + block * (ROWS * EACH)
    next_own = next_expert.to(gl.int64) * n + next_block * (ROWS * EACH)
    quarter = gl.arange(0, 4, layout=gl.SliceLayout(0, quarters)).expand_dims(0)
    BIASED: gl.constexpr = MODE == "affine"
    if BIASED:
        gl.thread_barrier()
        copy_sums(sums, x_ptr, x_at[0], x_at[1], DEPTH, WIDTH, WAVEFRONTS)
        operand: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
        of_row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, operand))
        of_row = (row_of_weights(of_row, EACH) * (DEPTH // GROUP)).expand_dims(1)
        group = gl.arange(0, 32, layout=gl.SliceLayout(0, operand)).expand_dims(0)
        biases = ()
        for part in gl.static_range(PARTS):
            base = own * (DEPTH // GROUP) + part % EACH * (2 * (DEPTH // GROUP))
            for under in gl.static_range((WIDTH - DEPTH) // 64):
                from_ = (up_biases_ptr if part >= EACH else biases_ptr) + base + (of_row + (group + under * 32))
                if DEPTH // GROUP % 32 == 0:
                    biases = biases + (gl.load(from_),)
                else:
                    biases = biases + (gl.load(from_, mask=group + under * 32 < DEPTH // GROUP, other=0.0),)
    totals = ()
    for _part in gl.static_range(PARTS):
        totals = totals + (gl.zeros([ROWS, TOKENS], gl.float32, layout=mma),)
    scales = held
    for step in range(STEPS):
        async_copy.wait_group(STAGES - 2)
        ahead = step + (STAGES - 1)
        here = ahead < STEPS
        copy_x(
            ring, (turn + (STAGES - 1)) % STAGES, x_ptr, gl.where(here, x_at[0], x_later[0]),
            gl.where(here, x_at[1], x_later[1]), gl.where(here, ahead, ahead - STEPS), WIDTH, STEP, WAVEFRONTS,
        )  # fmt: skip
        at = gl.where(here, own * ROW, next_own * ROW - STEPS * (STEP // CODES)) + ahead * (STEP // CODES)
        copy_words(weights, (turn + (STAGES - 1)) % STAGES, w_ptr, up_ptr, at, ROWS * EACH, ROW, GATED, WAVEFRONTS)
        async_copy.commit_group()
        words = chunks_of(weights, turn % STAGES, WAVEFRONTS, EACH, PARTS, CHUNKS, lanes)
        slot = turn % STAGES * (STEP // 64)
        more = step + 1 < STEPS
        at_scales = gl.where(more, own * BESIDE + (step + 1) * WORDS, next_own * BESIDE)
        next_scales, done = (), ()
        for part in gl.static_range(PARTS):
            # What was loaded a step before makes room for what a step later is to use: loads are spread over the step.
            picked = ()
            for chunk in gl.static_range(CHUNKS):
                if MODE == "mxfp4":
                    selector = 0x4040 + quarter * 0x0101
                elif BITS == 4:
                    selector = gl.where(quarter < 2, 0x1010, 0x3232)
                else:
                    selector = quarter * 0 + (0x1010 if chunk % 2 == 0 else 0x3232)
                scale = scales_of(scales[part], chunk, OF, WORDS, quarters, selector, MODE)
                third = scale
                if MODE == "affine" and BITS == 4:
                    third = gl.inline_asm_elementwise(THIRD, "=r,r", [scale], gl.int32, is_pure=True, pack=1)
                picked = picked + ((scale, third),)
            next_scales = next_scales + (piece(scales_ptr, up_scales_ptr, beside, at_scales, part, EACH, 2 * BESIDE),)
            # The compiler moves loads down to where their registers come free, but not past this.
            gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
            total = totals[part]
            for chunk in gl.static_range(CHUNKS):
                found = operands_of(
                    words[part * CHUNKS + chunk], picked[chunk][0], picked[chunk][1], ROWS, MODE, BITS, lanes, mma
                )
                for half in gl.static_range(CODES // 4):
                    x = ring.index(slot + (chunk * (CODES // 4) + half)).slice(0, TOKENS, 0).permute((1, 0))
                    total = hopper.warpgroup_mma(found[half], x, total, is_async=True)
                    # The registers of the operand before this one are free, and these are not used again before.
                    total = hopper.warpgroup_mma_wait(1, deps=[total])
            done = done + (total,)
        scales = next_scales
        totals = ()
        for part in gl.static_range(PARTS):
            totals = totals + (hopper.warpgroup_mma_wait(0, deps=[done[part]]),)
        turn += 1
    if BIASED:
        done = ()
        for part in gl.static_range(PARTS):
            total = totals[part]
            for under in gl.static_range((WIDTH - DEPTH) // 64):
                bias = biases[part * ((WIDTH - DEPTH) // 64) + under]
                both = sums.index(under).slice(0, TOKENS, 0)
                total = hopper.warpgroup_mma(bias, both.slice(0, 32, 1).permute((1, 0)), total, is_async=True)
                total = hopper.warpgroup_mma(bias, both.slice(32, 32, 1).permute((1, 0)), total, is_async=True)
            done = done + (hopper.warpgroup_mma_wait(0, deps=[total]),)
        totals = done
    if GATED:
        done = ()
        for part in gl.static_range(EACH):
            total = totals[part]
            done = done + (total / (1.0 + gl.exp(-total)) * totals[part + EACH],)
        totals = done
    # A lane's neighbouring rows of weights side by side.
    if EACH == 2:
        out = gl.join(totals[0].to(gl.bfloat16), totals[1].to(gl.bfloat16)).reshape([WAVEFRONTS, 2, 8, TOKENS, 2])
        out = out.permute((0, 2, 4, 1, 3))
    else:
        out = totals[0].to(gl.bfloat16).reshape([WAVEFRONTS, 2, 8, TOKENS]).permute((0, 2, 1, 3))
    out = gl.convert_layout(out.reshape([ROWS * EACH, TOKENS]), outputs)
    column = block * (ROWS * EACH) + gl.arange(0, ROWS * EACH, layout=gl.SliceLayout(1, outputs))
    out_at = out_ptr + pairs.to(gl.int64).expand_dims(0) * n + column.expand_dims(1)
    gl.store(out_at, out, mask=(row < rows).expand_dims(0))
    return scales, turn


@gluon.jit
def _add(one, other):
    return one + other


@gluon.jit
def _entry(table_ptr, unit, blocks, tiles, through, TOKENS: gl.constexpr):
    """Return a unit's expert, its block of rows of weights, its first place among the pairs, and its rows.

    ``tiles`` are the experts' tiles, ``through`` those of each expert and all before it.
    """
    tile = unit // blocks
    before = through <= tile
    expert = gl.sum(before.to(gl.int32), axis=0)
    first = gl.load(table_ptr + expert) + (tile - gl.sum(gl.where(before, tiles, 0), axis=0)) * TOKENS
    rows = gl.minimum(gl.load(table_ptr + (expert + 1)) - first, TOKENS)
    return expert, unit % blocks, first, rows


@gluon.jit
def _rows_of_x(sources_ptr, tile, there, TOKENS: gl.constexpr, WAVEFRONTS: gl.constexpr):
    """Load which rows of x a tile's are, and say which there are."""
    token = gl.arange(0, TOKENS, layout=gl.SliceLayout(0, gl.SliceLayout(2, held_copied(WAVEFRONTS))))
    inside = (token < tile[3]) & there
    source = gl.load(sources_ptr + tile[2] + token, mask=inside, other=0)
    return source, inside.to(gl.int32)


@gluon.jit
def resident_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, table_ptr, n, experts, pairs,
    MODE: gl.constexpr, BITS: gl.constexpr, GROUP: gl.constexpr, GATED: gl.constexpr, DEPTH: gl.constexpr,
    WIDTH: gl.constexpr, TOKENS: gl.constexpr, PARTS: gl.constexpr, STEP: gl.constexpr, STAGES: gl.constexpr,
    WAVEFRONTS: gl.constexpr, EXPERTS: gl.constexpr, PDL: gl.constexpr,
):  # fmt: skip
    """Products of the tiles of ``order_kernel``, or ``silu(x @ w.T) * (x @ up.T)``.

    Args:
        x_ptr: [rows, WIDTH] from ``order_kernel``.
        w_ptr: [experts * n, DEPTH * BITS / 32] words.
        scales_ptr: [experts * n, DEPTH / GROUP].
        biases_ptr: The same; None of mxfp4.
        up_ptr: The second matrix likewise, or None.
        up_scales_ptr: Its scales.
        up_biases_ptr: Its biases.
        out_ptr: [pairs, n].
        table_ptr: From ``order_kernel``.
        n: Rows of an expert's weights, a multiple of those of a tile.
        experts: Their number.
        pairs: Their number.
        MODE: ``affine`` or ``mxfp4``.
        BITS: 4, or of ``affine`` 8.
        GROUP: 64; of mxfp4 32.
        GATED: There is a second matrix.
        DEPTH: K, a multiple of STEP.
        WIDTH: Of a row of x: K, and what its groups' sums take.
        TOKENS: Rows of x in a tile at most; with half of them or fewer it takes half the products.
        PARTS: Of 16 * WAVEFRONTS rows of weights; GATED: half of them are the second matrix's.
        STEP: Columns at a time.
        STAGES: Steps of x that there is room for.
        WAVEFRONTS: Of a program.
        EXPERTS: A power of two, from the experts on.
        PDL: It is launched while what is before it still runs.
    """
    ROWS: gl.constexpr = 16 * WAVEFRONTS
    CODES: gl.constexpr = 32 // BITS
    OF_WORD: gl.constexpr = 2 if MODE == "affine" else 4
    WORDS: gl.constexpr = STEP // GROUP // OF_WORD
    ROW: gl.constexpr = DEPTH // CODES
    BESIDE: gl.constexpr = DEPTH // GROUP // OF_WORD
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    EACH: gl.constexpr = PARTS // 2 if GATED else PARTS
    of_scales: gl.constexpr = held_beside(WAVEFRONTS, WORDS)
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, of_scales)).expand_dims(1)
    beside = row_of_weights(r, EACH) * BESIDE + gl.arange(0, WORDS, layout=gl.SliceLayout(0, of_scales)).expand_dims(0)
    kind: gl.constexpr = gl.pointer_type(gl.int32)
    scales_ptr = scales_ptr.to(kind, bitcast=True)
    if GATED:
        up_scales_ptr = up_scales_ptr.to(kind, bitcast=True)
    pairs_ptr = table_ptr + (experts + 1)
    sources_ptr = pairs_ptr + pairs
    height: gl.constexpr = ROWS * EACH
    blocks = n // height
    number = gl.arange(0, EXPERTS, layout=gl.BlockedLayout([1], [32], [WAVEFRONTS], [0]))
    until = gl.load(table_ptr + (number + 1), mask=number < experts, other=0)
    since = gl.load(table_ptr + number, mask=number < experts, other=0)
    tiles = (until - since + (TOKENS - 1)) // TOKENS
    through = gl.associative_scan(tiles, 0, _add)
    units = gl.sum(tiles, axis=0) * blocks
    begin = gl.program_id(0)
    ring = gl.allocate_shared_memory(
        gl.bfloat16, [STAGES * (STEP // 64), TOKENS, 64],
        gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2),
    )  # fmt: skip
    weights = gl.allocate_shared_memory(
        gl.int32, [STAGES, ROWS * PARTS, STEP // CODES], gl.SwizzledSharedLayout(4, 1, STEP // CODES // 4, [1, 0])
    )
    sums = ring
    if WIDTH > DEPTH:
        sums = gl.allocate_shared_memory(
            gl.bfloat16, [(WIDTH - DEPTH) // 64, TOKENS, 64],
            gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2),
        )  # fmt: skip
    if begin < units:
        tile = _entry(table_ptr, begin, blocks, tiles, through, TOKENS)
        own = tile[0].to(gl.int64) * n + tile[1] * height
        held = ()
        for part in gl.static_range(PARTS):
            held = held + (piece(scales_ptr, up_scales_ptr, beside, own * BESIDE, part, EACH, 2 * BESIDE),)
        by = gl.num_programs(0)
        # Behind the last tile it is taken again: anything may be loaded, as nothing uses it.
        later = _entry(table_ptr, gl.where(begin + by < units, begin + by, begin), blocks, tiles, through, TOKENS)
        behind = _entry(
            table_ptr, gl.where(begin + 2 * by < units, begin + 2 * by, begin), blocks, tiles, through, TOKENS
        )
        x_at = _rows_of_x(sources_ptr, tile, True, TOKENS, WAVEFRONTS)
        x_later = _rows_of_x(sources_ptr, later, begin + by < units, TOKENS, WAVEFRONTS)
        turn = 0
        for stage in gl.static_range(STAGES - 1):
            at = own * ROW + stage * (STEP // CODES)
            copy_words(weights, stage, w_ptr, up_ptr, at, ROWS * EACH, ROW, GATED, WAVEFRONTS)
            copy_x(ring, stage, x_ptr, x_at[0], x_at[1], stage, WIDTH, STEP, WAVEFRONTS)
            async_copy.commit_group()
        for unit in range(begin, units, by):
            # What they load is used a tile later.
            x_behind = _rows_of_x(sources_ptr, behind, unit + 2 * by < units, TOKENS, WAVEFRONTS)
            farthest = _entry(
                table_ptr, gl.where(unit + 3 * by < units, unit + 3 * by, begin), blocks, tiles, through, TOKENS
            )
            if tile[3] <= TOKENS // 2:
                held, turn = _tile(
                    held, turn, tile, later, x_at, x_later, x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr,
                    up_biases_ptr, out_ptr, pairs_ptr, n, ring, weights, sums, beside,
                    MODE, BITS, GROUP, GATED, DEPTH, WIDTH, ROWS, PARTS, WAVEFRONTS, TOKENS // 2, STEP, STAGES,
                )  # fmt: skip
            else:
                held, turn = _tile(
                    held, turn, tile, later, x_at, x_later, x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr,
                    up_biases_ptr, out_ptr, pairs_ptr, n, ring, weights, sums, beside,
                    MODE, BITS, GROUP, GATED, DEPTH, WIDTH, ROWS, PARTS, WAVEFRONTS, TOKENS, STEP, STAGES,
                )  # fmt: skip
            tile, later, behind, x_at, x_later = later, behind, farthest, x_later, x_behind
        async_copy.wait_group(0)
