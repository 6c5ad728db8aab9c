"""9 rows of x or more against weights of 4 or 8 bits on Hopper's matrix unit, whose left operand comes from registers.

Weights are the left operand: four wavefronts multiply 64 rows of them by a tile of x, which is in shared memory. A lane
loads the words that it multiplies, and unpacks them where the matrix unit wants them, so that nothing is exchanged:
lane ``l`` is in row ``l // 4`` and quarter ``q = l % 4``, and holds of each 16 terms of a sum those at ``2 q``,
``2 q + 1``, ``2 q + 8`` and ``2 q + 9``. Which code is which term is free as long as x has the same order
(``terms.py``). A chunk is 16 words of a row: a quarter has four of them, of one group.

While the matrix unit multiplies a piece of a chunk, the next one is unpacked.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from rocmend.kernels.backends.hopper.along import along, begin_behind
from rocmend.kernels.backends.hopper.quantized_matmul.kernels import terms

BF16_4, F16_4, OF_4 = (
    gl.constexpr(t) for t in (terms.unpacked("bf16", 4), terms.unpacked("f16", 4), terms.unpacked_of(4))
)
BF16_8, F16_8, OF_8 = (
    gl.constexpr(t) for t in (terms.unpacked("bf16", 8), terms.unpacked("f16", 8), terms.unpacked_of(8))
)
SPREAD = gl.constexpr("prmt.b32 $0, $1, $1, $2;")


@gluon.constexpr_function
def _bases(count, axis, rank):
    """Return one base for each bit of a place along an axis."""
    return [[1 << at if other == axis else 0 for other in range(rank)] for at in range(count.bit_length() - 1)]


@gluon.constexpr_function
def _over_rows(inner, lanes, rows, warps, rank):
    """Return a layout of rows and more, as the matrix unit spreads rows: ``inner`` bases of registers come first."""
    rest = [0] * (rank - 1)
    warp = [[16 << at, *rest] for at in range((warps - 1).bit_length())]
    beyond = [[16 * warps << at, *rest] for at in range((rows // (16 * warps) - 1).bit_length())]
    rows_of_lanes = [[1 << at, *rest] for at in range(3)]
    return [*inner, [8, *rest], *beyond], [*lanes, *rows_of_lanes], warp


@gluon.constexpr_function
def _codes(rows, warps, words, codes):
    """Return the layout of rows, quarters, words of a quarter, and codes of a word."""
    inner = [*_bases(codes, 3, 4), *_bases(words, 2, 4)]
    reg, lane, warp = _over_rows(inner, _bases(4, 1, 4), rows, warps, 4)
    return gl.DistributedLinearLayout(reg, lane, warp, [], [rows, 4, words, codes])


@gluon.constexpr_function
def _scales(rows, warps, chunks):
    """Return the layout of rows and of words of scales, one for each chunk: all quarters have the same."""
    reg, lane, warp = _over_rows(_bases(chunks, 1, 2), [[0, 0], [0, 0]], rows, warps, 2)
    return gl.DistributedLinearLayout(reg, lane, warp, [], [rows, chunks])


@gluon.constexpr_function
def _numbers(lines, warps, codes):
    """Return the layout of rows of x, 16 words of codes, and the numbers for a word's codes.

    Lanes load 16 bytes at most. They have all of the words' places in a quarter, of quarters as few as there are lanes
    left, so that they store what stands together.
    """
    places, numbers = _bases(16, 1, 3), _bases(codes, 2, 3)
    words, quarters, rows = places[:2], places[2:], _bases(lines, 0, 3)
    total = 5 + (warps - 1).bit_length()
    spare = max(0, min(2, total - len(words) - len(rows)))
    threads = [*quarters[:spare], *words, *rows]
    threads += [[0, 0, 0]] * (total - len(threads))
    reg = [*numbers, *quarters[spare:], *threads[total:]]
    return gl.DistributedLinearLayout(reg, threads[:5], threads[5:total], [], [lines, 16, codes])


@gluon.constexpr_function
def _stores(rows, warps, bits):
    """Return the layout of rows of weights and of x in which 16 bytes of neighbouring rows of weights are stored."""
    lanes = min(32, rows * bits // 128)
    return gl.BlockedLayout([128 // bits, 1], [lanes, 32 // lanes], [1, warps], [0, 1])


@gluon.jit
def _rest(values):
    """Return a tuple without its first element."""
    rest = ()
    for at in gl.static_range(1, len(values)):
        rest = rest + (values[at],)
    return rest


@gluon.jit
def _column(words, C: gl.constexpr, rows: gl.constexpr):
    """Return column C of 1, 2 or 4 of them."""
    ROWS: gl.constexpr = words.shape[0]
    if words.shape[1] == 4:
        even, odd = gl.split(words.reshape([ROWS, 2, 2]))
        first, last = gl.split(even if C % 2 == 0 else odd)
        own = first if C < 2 else last
    elif words.shape[1] == 2:
        first, last = gl.split(words)
        own = first if C == 0 else last
    else:
        own = words.reshape([ROWS])
    return gl.convert_layout(own, rows, assert_trivial=True)


@gluon.jit
def _paired(word, quarter, TWO: gl.constexpr):
    """Return [rows, quarters] words of twice the scale of a quarter, of [rows] words: of two groups, or of one."""
    if TWO:
        word, pick = gl.broadcast(word.expand_dims(1), gl.where(quarter < 2, 0x1010, 0x3232))
        both = gl.inline_asm_elementwise(SPREAD, "=r,r,r", [word, pick], gl.int32, is_pure=True, pack=1)
    else:
        both, _ = gl.broadcast(((word.to(gl.int32) & 0xFFFF) * 0x10001).expand_dims(1), quarter)
    return both


@gluon.jit
def _piece(words, PIECE: gl.constexpr, PIECES: gl.constexpr, layout: gl.constexpr):
    """Return the words of a piece of a chunk: all four of a quarter, or two."""
    if PIECES == 1:
        own = words
    else:
        first, last = gl.split(words.reshape([words.shape[0], 4, 2, 2]).permute((0, 1, 3, 2)))
        own = first if PIECE == 0 else last
    return gl.convert_layout(own, layout, assert_trivial=True)


@gluon.jit
def _weights(words, scale, bias, BITS: gl.constexpr, dtype: gl.constexpr, layout: gl.constexpr, mma: gl.constexpr):
    """Return the matrix unit's left operand of [rows, quarters, words], and of scales and biases in pairs.

    Codes are numbers exactly, their product with the scale and the sum with the bias are rounded once.
    """
    ROWS: gl.constexpr = words.shape[0]
    WORDS: gl.constexpr = words.shape[2]
    CODES: gl.constexpr = 32 // BITS
    quarters: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, layout))
    full = gl.full([ROWS, 4, WORDS, CODES], 0, gl.int32, layout=layout)
    word, _ = gl.broadcast(words.expand_dims(3), full)
    s, _ = gl.broadcast(gl.convert_layout(scale, quarters, assert_trivial=True).expand_dims(2).expand_dims(3), full)
    b, _ = gl.broadcast(gl.convert_layout(bias, quarters, assert_trivial=True).expand_dims(2).expand_dims(3), full)
    of: gl.constexpr = OF_4 if BITS == 4 else OF_8
    if dtype == gl.bfloat16:
        unpack: gl.constexpr = BF16_4 if BITS == 4 else BF16_8
        v = gl.inline_asm_elementwise(unpack, of, [word, s, b], gl.bfloat16, is_pure=True, pack=CODES)
    else:
        unpack: gl.constexpr = F16_4 if BITS == 4 else F16_8
        v = gl.inline_asm_elementwise(unpack, of, [word, s, b], gl.float16, is_pure=True, pack=CODES)
    # Rows, quarters, words, instructions of a word, pairs of one, and codes of a pair: see ``terms.py``.
    if BITS == 4:
        v = v.reshape([ROWS, 4, WORDS, 2, 2, 2]).permute((0, 2, 3, 4, 1, 5)).reshape([ROWS, 32 * WORDS])
    else:
        v = v.reshape([ROWS, 4, WORDS, 2, 2]).permute((0, 2, 3, 1, 4)).reshape([ROWS, 16 * WORDS])
    return gl.convert_layout(v, gl.DotOperandLayout(0, mma, 2), assert_trivial=True)


@gluon.jit
def _words(at, chunk, last):
    """Return words of a chunk; behind the last one any, since nothing uses them."""
    return gl.load(at + gl.minimum(chunk, last) * 16, eviction_policy="evict_first")


@gluon.jit
def _copied(held, at, piece, pieces):
    """Begin to copy a piece of x to its stage, where there is such a piece."""
    STAGES: gl.constexpr = held.shape[0]
    if piece < pieces:
        async_copy.async_copy_global_to_shared(held.index(piece % STAGES), at + piece * (held.shape[1] * held.shape[2]))
    async_copy.commit_group()


@gluon.jit
def gemm_w4a16_wgmma_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, M, N, words, fours, x_stride, steps,
    BITS: gl.constexpr, GROUP: gl.constexpr, ROWS: gl.constexpr, BLOCK_M: gl.constexpr, CHUNKS: gl.constexpr,
    PIECES: gl.constexpr, AHEAD: gl.constexpr, STAGES: gl.constexpr, OWN: gl.constexpr,
):  # fmt: skip
    """out[m, n] = Σ x[m, k] · w[n, k], w = scale · code + bias rounded to the type of x.

    Programs: (tiles: those of M are neighbours, parts of K).

    Args:
        x_ptr: [M, K]; without OWN in the order of ``ordered_kernel``.
        w_ptr: [N, words].
        scales_ptr: [N, K / GROUP].
        biases_ptr: The same.
        out_ptr: [parts, M, N], in fp32 where there are several.
        M: Rows of x.
        N: Rows of weights, a multiple of ROWS.
        words: Of a row, 16 in a chunk.
        fours: Four chunks of a row.
        x_stride: Elements from a row of x to the next, with OWN.
        steps: Of CHUNKS chunks, in each part of K.
        BITS: 4 or 8, in chunks of 128 or 64 codes.
        GROUP: A chunk or half of one.
        ROWS: Of weights in a tile, 16 or 32 for each wavefront.
        BLOCK_M: Rows of x in a tile.
        CHUNKS: Whose scales are read at once: 1, 2 or 4.
        PIECES: 1 or 2 of a chunk, each of which is unpacked while the one before is multiplied.
        AHEAD: Chunks of weights under way.
        STAGES: Pieces of x in shared memory, 3 at least.
        OWN: Chunks of x under way in registers, where programs bring it into order themselves; 0 where it is ordered.
    """
    # The operand of the product under way is in registers that the next step would write, if it had no others.
    gl.static_assert(CHUNKS * PIECES > 1)
    WARPS: gl.constexpr = gl.num_warps()
    CODES: gl.constexpr = 32 // BITS
    CHUNK: gl.constexpr = 16 * CODES
    WIDTH: gl.constexpr = CHUNK // PIECES
    TWO: gl.constexpr = GROUP < CHUNK
    dtype: gl.constexpr = x_ptr.dtype.element_ty
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_M, 16])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    of_words: gl.constexpr = gl.SliceLayout(3, _codes(ROWS, WARPS, 4, CODES))
    piece: gl.constexpr = _codes(ROWS, WARPS, 4 // PIECES, CODES)
    of_piece: gl.constexpr = gl.SliceLayout(3, piece)
    rows: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, of_words))
    of_scales: gl.constexpr = _scales(ROWS, WARPS, CHUNKS)
    kind: gl.constexpr = gl.int32 if TWO else gl.int16
    tiles_m = gl.cdiv(M, BLOCK_M)
    tile_m = gl.program_id(0) % tiles_m
    first_row = (gl.program_id(0) // tiles_m).to(gl.int64) * ROWS
    count = steps * CHUNKS
    first = gl.program_id(1) * count
    # Or the compiler, for which there might be no step, has each product wait for the one before.
    gl.assume(steps > 0)
    own_words = along(0, ROWS, of_words, 3) * words + along(1, 4, of_words, 3) * 4 + along(2, 4, of_words, 3)
    w_at = w_ptr + first_row * words + first * 16 + own_words
    quads = fours * 4
    of_tile = first_row * quads + first
    own_scales = along(0, ROWS, of_scales, 2) * quads + along(1, CHUNKS, of_scales, 2)
    s_at = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + of_tile + own_scales
    b_at = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + of_tile + own_scales
    held_words = ()
    for early in gl.static_range(AHEAD):
        held_words = held_words + (_words(w_at, early, count - 1),)
    s_next = gl.load(s_at)
    b_next = gl.load(b_at)
    begin_behind()
    held = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_M, WIDTH], gl.NVMMASharedLayout(128, 16, rank=2))
    ahead = ()
    if OWN > 0:
        numbers: gl.constexpr = _numbers(BLOCK_M, WARPS, CODES)
        line = gl.minimum(tile_m * BLOCK_M + along(0, BLOCK_M, numbers, 3), M - 1)
        x_at = (
            x_ptr + first * CHUNK + (line * x_stride + along(1, 16, numbers, 3) * CODES + along(2, CODES, numbers, 3))
        )
        for early in gl.static_range(OWN):
            ahead = ahead + (gl.load(x_at + gl.minimum(early, count - 1) * CHUNK),)
    else:
        loads: gl.constexpr = gl.BlockedLayout([1, 8], [256 // WIDTH, WIDTH // 8], [WARPS, 1], [1, 0])
        tile = (tile_m.to(gl.int64) * (words // 16) + first) * (BLOCK_M * CHUNK)
        x_at = x_ptr + tile + (along(0, BLOCK_M, loads, 2) * WIDTH + along(1, WIDTH, loads, 2))
        for early in gl.static_range(STAGES - 2):
            _copied(held, x_at, early, count * PIECES)
    acc = gl.full([ROWS, BLOCK_M], 0.0, gl.float32, layout=mma)
    before = gl.full([ROWS, WIDTH], 0.0, dtype, layout=left)
    quarter = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(2, of_words))).expand_dims(0)
    for step in range(steps):
        s_now = s_next
        b_now = b_next
        later = gl.minimum(step + 1, steps - 1) * CHUNKS
        s_next = gl.load(s_at + later)
        b_next = gl.load(b_at + later)
        for c in gl.static_range(CHUNKS):
            chunk = step * CHUNKS + c
            scale = _paired(_column(s_now, c, rows), quarter, TWO)
            bias = _paired(_column(b_now, c, rows), quarter, TWO)
            now = held_words[0]
            held_words = _rest(held_words) + (_words(w_at, chunk + AHEAD, count - 1),)
            for part in gl.static_range(PIECES):
                at = chunk * PIECES + part
                w = _weights(_piece(now, part, PIECES, of_piece), scale, bias, BITS, dtype, piece, mma)
                stage = held.index(at % STAGES)
                # Triton has all wavefronts meet where shared memory is written and read: behind the products of two
                # pieces ago, whose stage is written next.
                if OWN > 0:
                    if BITS == 4:
                        x = ahead[0].reshape([BLOCK_M, 4, 4, 2, 2, 2]).permute((0, 2, 4, 5, 1, 3))
                    else:
                        x = ahead[0].reshape([BLOCK_M, 4, 4, 2, 2]).permute((0, 2, 3, 1, 4))
                    ahead = _rest(ahead) + (gl.load(x_at + gl.minimum(chunk + OWN, count - 1) * CHUNK),)
                    stage.store(x.reshape([BLOCK_M, CHUNK]))
                    hopper.fence_async_shared()
                else:
                    async_copy.wait_group(STAGES - 3)
                    hopper.fence_async_shared()
                    _copied(held, x_at, at + STAGES - 2, count * PIECES)
                acc = hopper.warpgroup_mma(w, stage.permute((1, 0)), acc, is_async=True)
                acc, before = hopper.warpgroup_mma_wait(1, deps=[acc, before])
                before = w
    acc, before = hopper.warpgroup_mma_wait(0, deps=[acc, before])
    result = acc.to(out_ptr.dtype.element_ty)
    stores: gl.constexpr = _stores(ROWS, WARPS, out_ptr.dtype.element_ty.primitive_bitwidth)
    result = gl.convert_layout(result, stores)
    line = tile_m * BLOCK_M + along(1, BLOCK_M, stores, 2)
    n = along(0, ROWS, stores, 2)
    place = gl.program_id(1).to(gl.int64) * M * N + first_row + (line.to(gl.int64) * N + n)
    gl.store(out_ptr + place, result, mask=line + n * 0 < M)
