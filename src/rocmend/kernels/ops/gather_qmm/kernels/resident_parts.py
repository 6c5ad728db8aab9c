"""What tiles of ``resident`` are made of: which lane holds what, copies to shared memory, weights out of words."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import async_copy

from rocmend.kernels.ops.gather_qmm.kernels import codes

FORMATS = (("affine", 4), ("affine", 8), ("mxfp4", 4))
UNPACK = {of: codes.unpack(*of) for of in FORMATS}
PICK = {mode: codes.pick(mode) for mode, _ in FORMATS}
THIRD = gl.constexpr(codes.third())


@gluon.constexpr_function
def unpack(mode, bits):
    """Return the block for a word of a format."""
    return UNPACK[mode, bits][0]


@gluon.constexpr_function
def unpack_of(mode, bits):
    """Return that block's constraints."""
    return UNPACK[mode, bits][1]


@gluon.constexpr_function
def pick(mode):
    """Return the block for a group's number out of a word."""
    return PICK[mode]


@gluon.constexpr_function
def powers(count):
    """Return 1, 2, 4 … below a power of two."""
    return [1 << bit for bit in range((count - 1).bit_length())]


@gluon.constexpr_function
def lanes_of(wavefronts, each):
    """Return how rows, quarters, words of a quarter and codes of a word are held: as the unit takes a left operand."""
    return gl.DistributedLinearLayout(
        reg_bases=[[0, 0, 0, e] for e in powers(each)] + [[0, 0, 1, 0], [0, 0, 2, 0], [8, 0, 0, 0]],
        lane_bases=[[0, 1, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0]],
        warp_bases=[[16 * w, 0, 0, 0] for w in powers(wavefronts)],
        block_bases=[],
        shape=[16 * wavefronts, 4, 4, each],
    )


@gluon.constexpr_function
def held_beside(wavefronts, words):
    """Return how rows and words of scales are held: all quarters have the same."""
    return gl.DistributedLinearLayout(
        reg_bases=[[0, w] for w in powers(words)] + [[8, 0]],
        lane_bases=[[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]],
        warp_bases=[[16 * w, 0] for w in powers(wavefronts)],
        block_bases=[],
        shape=[16 * wavefronts, words],
    )


@gluon.constexpr_function
def held_unpacked(wavefronts, each, matrices, chunks):
    """Return how a step's rows and words of weights come out of shared memory: each lane's as it multiplies them."""
    rows = [[row, 0] for row in powers(2 * each)] + [[16 * each * wavefronts * m, 0] for m in powers(matrices)]
    return gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2]] + [[0, 16 * c] for c in powers(chunks)] + rows,
        lane_bases=[[0, 4], [0, 8], [2 * each, 0], [4 * each, 0], [8 * each, 0]],
        warp_bases=[[16 * each * w, 0] for w in powers(wavefronts)],
        block_bases=[],
        shape=[16 * each * wavefronts * matrices, 16 * chunks],
    )


@gluon.constexpr_function
def held_words(wavefronts, words):
    """Return how rows and words of weights are copied: 16 bytes a lane."""
    return gl.BlockedLayout([1, 4], [128 // words, words // 4], [wavefronts, 1], [1, 0])


@gluon.constexpr_function
def held_copied(wavefronts):
    """Return how blocks of 64 columns, rows and columns of x are copied: 16 bytes a lane, 128 of a row."""
    return gl.BlockedLayout([1, 1, 8], [1, 4, 8], [1, wavefronts, 1], [2, 1, 0])


@gluon.constexpr_function
def held_outputs(wavefronts, each, tokens):
    """Return how a tile's outputs are held: what the matrix unit gives, neighbours of a row of the result first."""
    return gl.DistributedLinearLayout(
        reg_bases=[[e, 0] for e in powers(2 * each)] + [[0, 1]] + [[0, 8 * t] for t in powers(tokens // 8)],
        lane_bases=[[0, 2], [0, 4], [2 * each, 0], [4 * each, 0], [8 * each, 0]],
        warp_bases=[[16 * each * w, 0] for w in powers(wavefronts)],
        block_bases=[],
        shape=[16 * each * wavefronts, tokens],
    )


@gluon.jit
def row_of_weights(place, PARTS: gl.constexpr):
    """Return which row of weights is at a place of the matrix unit's 16: a lane has neighbours, PARTS of them twice."""
    return place // 16 * (16 * PARTS) + place % 8 * (2 * PARTS) + place // 8 % 2


@gluon.jit
def piece(base, up_base, offset, at, PART: gl.constexpr, EACH: gl.constexpr, BY: gl.constexpr):
    """Load a part's words of scales, two rows of which are BY apart; from EACH on the second matrix's."""
    if PART >= EACH:
        from_ = up_base + at + (offset + (PART - EACH) * BY)
    else:
        from_ = base + at + (offset + PART * BY)
    return gl.load(from_)


@gluon.jit
def copy_x(ring, slot, x_ptr, rows, inside, step, WIDTH: gl.constexpr, STEP: gl.constexpr, WAVEFRONTS: gl.constexpr):
    """Begin to copy a step's columns of rows of x: one copy, as Triton has a barrier between two."""
    BLOCKS: gl.constexpr = STEP // 64
    blocked: gl.constexpr = held_copied(WAVEFRONTS)
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, gl.SliceLayout(0, blocked))).expand_dims(0).expand_dims(0)
    view = ring._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
        gl.bfloat16, [ring.shape[0] // BLOCKS, BLOCKS, ring.shape[1], 64],
        gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=3),
    )  # fmt: skip
    block = gl.arange(0, BLOCKS, layout=gl.SliceLayout(1, gl.SliceLayout(2, blocked))).expand_dims(1).expand_dims(2)
    inside = inside.expand_dims(0).expand_dims(2) != 0
    place = rows.expand_dims(0).expand_dims(2) * WIDTH + (step * STEP + block * 64 + column)
    async_copy.async_copy_global_to_shared(view.index(slot), x_ptr + place, mask=inside)


@gluon.jit
def copy_words(
    weights,
    slot,
    w_ptr,
    up_ptr,
    at,
    HALF: gl.constexpr,
    ROW: gl.constexpr,
    GATED: gl.constexpr,
    WAVEFRONTS: gl.constexpr,
):
    """Begin to copy a step's words of a tile's rows: HALF of a matrix, behind them those of the second one."""
    WORDS: gl.constexpr = weights.shape[2]
    copied: gl.constexpr = held_words(WAVEFRONTS, WORDS)
    row = gl.arange(0, weights.shape[1], layout=gl.SliceLayout(1, copied)).expand_dims(1)
    word = gl.arange(0, WORDS, layout=gl.SliceLayout(0, copied)).expand_dims(0)
    if GATED:
        from_ = gl.where(row < HALF, w_ptr + at, up_ptr + (at - HALF * ROW)) + (row * ROW + word)
    else:
        from_ = w_ptr + at + (row * ROW + word)
    async_copy.async_copy_global_to_shared(weights.index(slot), from_, eviction_policy="evict_first")


@gluon.jit
def chunks_of(
    weights, slot, WAVEFRONTS: gl.constexpr, EACH: gl.constexpr, PARTS: gl.constexpr, CHUNKS: gl.constexpr,
    lanes: gl.constexpr,
):  # fmt: skip
    """Return a step's words by part and chunk: [rows, 4, 4] each."""
    MATRICES: gl.constexpr = PARTS // EACH
    of_lanes: gl.constexpr = gl.SliceLayout(3, lanes)
    words = weights.index(slot).load(held_unpacked(WAVEFRONTS, EACH, MATRICES, CHUNKS))
    # Matrices, wavefronts, eighths, neighbours (of parts, and two of a lane), chunks, quarters, words.
    words = words.reshape([MATRICES, WAVEFRONTS, 8, EACH, 2, CHUNKS, 4, 4]).permute((1, 4, 2, 6, 7, 5, 0, 3))
    found = ()
    if PARTS == 2:
        words = words.reshape([16 * WAVEFRONTS, 4, 4, CHUNKS, 2])
        first, second = gl.split(words)
        parts = (first, second)
    else:
        parts = (words.reshape([16 * WAVEFRONTS, 4, 4, CHUNKS]),)
    for part in gl.static_range(PARTS):
        if CHUNKS == 2:
            first, second = gl.split(parts[part])
            found = found + (gl.convert_layout(first, of_lanes), gl.convert_layout(second, of_lanes))
        else:
            found = found + (gl.convert_layout(parts[part].reshape([16 * WAVEFRONTS, 4, 4]), of_lanes),)
    return found


@gluon.jit
def copy_sums(sums, x_ptr, rows, inside, DEPTH: gl.constexpr, WIDTH: gl.constexpr, WAVEFRONTS: gl.constexpr):
    """Begin to copy the sums of rows of x, which stand behind them."""
    BLOCKS: gl.constexpr = (WIDTH - DEPTH) // 64
    blocked: gl.constexpr = held_copied(WAVEFRONTS)
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, gl.SliceLayout(0, blocked))).expand_dims(0).expand_dims(0)
    inside = inside.expand_dims(0).expand_dims(2) != 0
    place = rows.expand_dims(0).expand_dims(2) * WIDTH + (DEPTH + column)
    for block in gl.static_range(BLOCKS):
        view = sums._reinterpret(  # noqa: SLF001  as above
            gl.bfloat16, [BLOCKS, 1, sums.shape[1], 64],
            gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=3),
        )  # fmt: skip
        async_copy.async_copy_global_to_shared(view.index(block), x_ptr + (place + block * 64), mask=inside)
    async_copy.commit_group()


@gluon.jit
def scales_of(
    words, CHUNK: gl.constexpr, OF: gl.constexpr, WORDS: gl.constexpr, like: gl.constexpr, selector, MODE: gl.constexpr
):
    """Return a chunk's scales for each quarter, twice in a register; OF chunks share a word."""
    if WORDS == 2:
        first, second = gl.split(words)
        if CHUNK // OF == 0:
            word = first
        else:
            word = second
    else:
        word = words.reshape([words.shape[0]])
    word = gl.convert_layout(word, gl.SliceLayout(1, like), assert_trivial=True).expand_dims(1)
    return gl.inline_asm_elementwise(pick(MODE), "=r,r,r", [word, selector], gl.int32, is_pure=True, pack=1)


@gluon.jit
def operands_of(
    words,
    scale,
    third,
    ROWS: gl.constexpr,
    MODE: gl.constexpr,
    BITS: gl.constexpr,
    lanes: gl.constexpr,
    mma: gl.constexpr,
):
    """Return weights of 64 columns each: [ROWS, 4, 4] words, [ROWS, 4] scales and -128 times them."""
    CODES: gl.constexpr = 32 // BITS
    whole = gl.full([ROWS, 4, 4, CODES], 0, gl.int32, layout=lanes)
    words, _ = gl.broadcast(words.expand_dims(3), whole)
    scale, _ = gl.broadcast(scale.expand_dims(2).expand_dims(3), whole)
    third, _ = gl.broadcast(third.expand_dims(2).expand_dims(3), whole)
    v = gl.inline_asm_elementwise(
        unpack(MODE, BITS), unpack_of(MODE, BITS), [words, scale, third], gl.bfloat16, is_pure=True, pack=CODES
    )
    operand: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    # Rows, quarters, words (two by two), places (two by two), halves.
    if BITS == 4:
        v = v.reshape([ROWS, 4, 2, 2, 2, 2, 2]).permute((0, 3, 4, 5, 1, 6, 2))
        first, second = gl.split(v)
        found = (
            gl.convert_layout(first.reshape([ROWS, 64]), operand, assert_trivial=True),
            gl.convert_layout(second.reshape([ROWS, 64]), operand, assert_trivial=True),
        )
    else:
        v = v.reshape([ROWS, 4, 4, 2, 2]).permute((0, 2, 3, 1, 4)).reshape([ROWS, 64])
        found = (gl.convert_layout(v, operand, assert_trivial=True),)
    return found
