"""One row of x in bfloat16 for each pair, with little of its expert's weights a program, on NVIDIA: all loads at once.

A program takes 16 rows of weights, or of each of two matrices with a gate. Its wavefronts share K, 512 columns each. No
lane has anything in shared memory before it has its products: it asks for its scales, its words and its part of x
(``burst_blocks.py`` says which lane has what). So the time is that of one read after another, of the index and of the
weights.

ptxas moves loads down to where they are used, behind the first products, though registers do for all of them. So the
first product can be made to wait for all: what it takes of x is made of them, too, in a way that changes nothing.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along
from rocmend.kernels.ops.gather_qmm.kernels import burst_blocks as blocks

MEET_ALL = gl.constexpr("{ .reg .pred p; setp.ne.u32 p, 0, 0; bar.red.popc.u32 $0, 0, p; }")
"""A barrier that tells how many lanes want something: none, as no compiler knows."""
E2M1 = gl.constexpr(blocks.E2M1)
CHUNKS_OF = gl.constexpr(blocks.CHUNKS)
PAIRS = gl.constexpr({kind: blocks.pairs(kind) for kind in blocks.KINDS})
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCT = gl.constexpr({kind: blocks.product(kind) for kind in blocks.KINDS})
PRODUCT_OF = gl.constexpr({kind: blocks.product_of(kind) for kind in blocks.KINDS})
SUMS = gl.constexpr({kind: blocks.sums(kind) for kind in (4, 8)})
SUMS_OF = gl.constexpr({kind: blocks.sums_of(kind) for kind in (4, 8)})
AFTER = gl.constexpr({n: blocks.after(n) for n in range(1, 26)})
AFTER_OF = gl.constexpr({n: blocks.after_of(n) for n in range(1, 26)})
FINISH = gl.constexpr({kind: blocks.finish(kind) for kind in blocks.KINDS})
FINISH_OF = gl.constexpr({kind: blocks.finish_of(kind) for kind in blocks.KINDS})


@gluon.jit
def _words(at, wavefront, ROW: gl.constexpr, CHUNKS: gl.constexpr, EVEN: gl.constexpr):
    """Load words of a wavefront's chunks, of rows r and r + 8 each; ROW: of a row."""
    words = ()
    for c in gl.static_range(CHUNKS):
        if EVEN:
            words = words + (gl.load(at + c * 16, eviction_policy="evict_first"),)
            words = words + (gl.load(at + (c * 16 + 8 * ROW), eviction_policy="evict_first"),)
        else:
            here = wavefront * CHUNKS + c < ROW // 16
            words = words + (gl.load(at + c * 16, mask=here, other=0, eviction_policy="evict_first"),)
            words = words + (gl.load(at + (c * 16 + 8 * ROW), mask=here, other=0, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _scales(
    s_ptr, b_ptr, row, r, q, four, wavefront,
    DEPTH: gl.constexpr, KIND: gl.constexpr, GROUP: gl.constexpr, EVEN: gl.constexpr,
):  # fmt: skip
    """Load what ``finish`` takes: words of two groups, of rows r and r + 8; biases, then scales, or scales alone."""
    if KIND == E2M1:
        TWOS: gl.constexpr = DEPTH // 64
        two = wavefront * 8 + four // 2 * 4 + q
        at = s_ptr.to(gl.pointer_type(gl.int16), bitcast=True) + row * TWOS + ((r + four % 2 * 8) * TWOS + two)
    else:
        # Words of two groups, or of one that both halves of a chunk have.
        TWOS: gl.constexpr = DEPTH // 128
        kind: gl.constexpr = gl.int32 if GROUP == 64 else gl.int16
        two = wavefront * 4 + q + four * 0
        own = row * TWOS + ((r + four % 2 * 8) * TWOS + two)
        s_at = s_ptr.to(gl.pointer_type(kind), bitcast=True) + own
        b_at = b_ptr.to(gl.pointer_type(kind), bitcast=True) + own
        at = gl.where(four < 2, b_at, s_at)
    if EVEN:
        words = gl.load(at)
    else:
        words = gl.load(at, mask=two < TWOS, other=0)
    if KIND == E2M1:
        words = words.to(gl.int32)
    elif GROUP == 128:
        words = (words.to(gl.int32) & 0xFFFF) * 0x10001
    return words


@gluon.jit
def _columns(x_at, two, odd, q, four, wavefront, DEPTH: gl.constexpr, KIND: gl.constexpr, EVEN: gl.constexpr):
    """Load a lane's column of x, where it is not of other quarters, in words of two numbers."""
    r = two * 2 + odd
    words = ()
    if KIND == 8:
        at = x_at + (wavefront * 256 + r * 32 + q * 8 + four)
        for k in gl.static_range(2):
            if EVEN:
                words = words + (gl.load(at + k * 4),)
            else:
                here = wavefront * 8 + r < DEPTH // 64
                words = words + (gl.load(at + k * 4, mask=here, other=0),)
    else:
        for half in gl.static_range(2 if KIND == E2M1 else 1):
            if KIND == E2M1:
                chunk = two // 2 + 2 * half
                here = q == r % 4
            else:
                chunk = two
                here = odd == q // 2
            if not EVEN:
                here = here & (wavefront * 4 + chunk < DEPTH // 128)
            at = x_at + (wavefront * 256 + chunk * 64 + q * 16 + four)
            for k in gl.static_range(4):
                words = words + (gl.load(at + k * 4, mask=here, other=0),)
    return words


@gluon.jit
def _after(t, loads, nothing):
    """Return t, to be had when all loads are there, of which each brings a tensor but for the last one's."""
    COUNT: gl.constexpr = len(loads)
    of = [t]
    for k in gl.static_range(COUNT):
        of = of + [loads[k]]
    of = of + [nothing]
    return gl.inline_asm_elementwise(AFTER[COUNT], AFTER_OF[COUNT], of, gl.int32, is_pure=True, pack=4)


@gluon.jit
def _total(words, mixed, xs, own, SLICES: gl.constexpr, KIND: gl.constexpr):
    """Return a wavefront's share of 16 rows' results: of rows r in even quarters, r + 8 in odd ones."""
    CHUNKS: gl.constexpr = CHUNKS_OF[KIND]
    p = ()
    for c in gl.static_range(CHUNKS):
        if KIND == 8:
            of = [words[2 * c], words[2 * c + 1], xs[0], xs[1]]
        elif KIND == E2M1 and c >= 2:
            of = [words[2 * c], words[2 * c + 1], xs[4], xs[5], xs[6], xs[7]]
        else:
            of = [words[2 * c], words[2 * c + 1], xs[0], xs[1], xs[2], xs[3]]
        p = p + (gl.inline_asm_elementwise(PRODUCT[KIND], PRODUCT_OF[KIND], of, gl.float32, is_pure=True, pack=4),)
    if KIND == 8:
        of = [p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], mixed, own]
    elif KIND == E2M1:
        of = [p[0], p[1], p[2], p[3], mixed]
    else:
        of = [p[0], p[1], p[2], p[3], mixed, own]
    total = gl.inline_asm_elementwise(FINISH[KIND], FINISH_OF[KIND], of, gl.float32, is_pure=True, pack=4)
    # One of the four that are the same.
    total, _ = total.reshape([SLICES, 4, 2, 4, 2, 2]).split()
    total, _ = total.split()
    return total


@gluon.jit
def burst_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    up_ptr,
    up_scales_ptr,
    up_biases_ptr,
    out_ptr,
    lhs_ptr,
    rhs_ptr,
    zero,
    DIVISOR: gl.constexpr,
    DEPTH: gl.constexpr,
    KIND: gl.constexpr,
    GROUP: gl.constexpr,
    TILES: gl.constexpr,
    GATED: gl.constexpr,
    HAS_LHS: gl.constexpr,
    SETS: gl.constexpr,
    SLICES: gl.constexpr,
    HELD: gl.constexpr,
    MEET: gl.constexpr,
    PDL: gl.constexpr,
):
    """out[p] = x[lhs[p]] @ w[rhs[p]].T, or silu(x @ w.T) * (x @ up.T): a program for each pair and 16 columns of it.

    Args:
        x_ptr: [rows, DEPTH].
        w_ptr: [experts, 16 * TILES, DEPTH * bits / 32] words.
        scales_ptr: [experts, 16 * TILES, DEPTH / GROUP].
        biases_ptr: The same, of affine codes.
        up_ptr: Of the second matrices, with GATED.
        up_scales_ptr: Likewise.
        up_biases_ptr: Likewise.
        out_ptr: [pairs, 16 * TILES].
        lhs_ptr: Rows of x, with HAS_LHS; else pairs follow x.
        rhs_ptr: Experts.
        zero: 0, as no compiler knows.
        DIVISOR: Pairs that share a row of x. To divide by what is not known until then would delay the first load.
        DEPTH: K, a multiple of 128.
        KIND: Of the codes, as ``burst_blocks`` names them.
        GROUP: 64 or 128, of e2m1 32.
        TILES: Of 16 rows of a matrix.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        SETS: Of 16 rows of the matrix that a program takes: 1, or 2 where TILES are even; with GATED 1.
        SLICES: Wavefronts, of 512 columns each; the last ones may have fewer, or none.
        MEET: Whether wavefronts wait for one another behind their loads, which ptxas then leaves before all else.
        HELD: Sets or matrices for whose loads the first product waits: 0, 1, or 2 for all.
        PDL: Whether the kernel begins before the one before it is done.
    """
    CHUNKS: gl.constexpr = CHUNKS_OF[KIND]
    WORDS: gl.constexpr = DEPTH // (4 if KIND == 8 else 8)
    EVEN: gl.constexpr = DEPTH == 512 * SLICES
    # Wavefronts, rows (pairs of them, one of two), quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 4, 2, 4, 1], [SLICES, 1, 1, 1, 1], [4, 3, 2, 1, 0])
    wavefront = along(0, SLICES, lanes, 5)
    two = along(1, 4, lanes, 5)
    odd = along(2, 2, lanes, 5)
    r = two * 2 + odd
    q = along(3, 4, lanes, 5)
    four = along(4, 4, lanes, 5)
    w_of = r * WORDS + wavefront * (CHUNKS * 16) + q * 4 + four
    if PDL:
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    TWO: gl.constexpr = GATED or SETS == 2
    UNITS: gl.constexpr = TILES if GATED else TILES // SETS
    pair = gl.program_id(0) // UNITS
    tile = gl.program_id(0) % UNITS * (TILES // UNITS)
    expert = gl.load(rhs_ptr + pair).to(gl.int32)
    source = gl.load(lhs_ptr + pair).to(gl.int32) if HAS_LHS else pair // DIVISOR
    row = (expert.to(gl.int64) * TILES + tile) * 16
    x_at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + source.to(gl.int64) * (DEPTH // 2)
    raw = _columns(x_at, two, odd, q, four, wavefront, DEPTH, KIND, EVEN)
    mixed = _scales(scales_ptr, biases_ptr, row, r, q, four, wavefront, DEPTH, KIND, GROUP, EVEN)
    words = _words(w_ptr + row * WORDS + w_of, wavefront, WORDS, CHUNKS, EVEN)
    if GATED:
        more_mixed = _scales(up_scales_ptr, up_biases_ptr, row, r, q, four, wavefront, DEPTH, KIND, GROUP, EVEN)
        more_words = _words(up_ptr + row * WORDS + w_of, wavefront, WORDS, CHUNKS, EVEN)
    elif TWO:
        more_mixed = _scales(scales_ptr, biases_ptr, row + 16, r, q, four, wavefront, DEPTH, KIND, GROUP, EVEN)
        more_words = _words(w_ptr + (row + 16) * WORDS + w_of, wavefront, WORDS, CHUNKS, EVEN)
    nothing = gl.full([SLICES, 4, 2, 4, 4], 0, gl.int32, layout=lanes)
    first = raw[0] + nothing
    if MEET:
        first ^= gl.inline_asm_elementwise(MEET_ALL, "=r", [], gl.int32, is_pure=False, pack=1)
    if HELD > 0:
        none = nothing + zero
        given = words + (mixed,)
        for k in gl.static_range(1, len(raw)):
            given = (raw[k] + nothing,) + given
        first = _after(first, given, none)
        if TWO and HELD > 1:
            first = _after(first, more_words + (more_mixed,), none)
    xs = ()
    for k in gl.static_range(len(raw)):
        given = [first if k == 0 else raw[k] + nothing]
        xs = xs + (gl.inline_asm_elementwise(PAIRS[KIND], PAIRS_OF, given, gl.int32, is_pure=True, pack=4),)
    own = nothing
    if KIND != E2M1:
        of = [xs[0], xs[1]] if KIND == 8 else [xs[0], xs[1], xs[2], xs[3]]
        own = gl.inline_asm_elementwise(SUMS[KIND], SUMS_OF[KIND], of, gl.float32, is_pure=True, pack=4)
    total = _total(words, mixed, xs, own, SLICES, KIND)
    if TWO:
        # Quarters 2 and 3 have the second matrix, or the second 16 rows.
        here: gl.constexpr = total.type.layout
        total = gl.where(along(3, 4, here, 4) < 2, total, _total(more_words, more_mixed, xs, own, SLICES, KIND))
    total = gl.sum(total, axis=0)
    left: gl.constexpr = total.type.layout
    quarter = along(2, 4, left, 3)
    of_row = along(0, 4, left, 3) * 2 + along(1, 2, left, 3) + quarter % 2 * 8
    if GATED:
        up = gl.inline_asm_elementwise(
            "shfl.sync.bfly.b32 $0, $1, 2, 31, 0xffffffff;", "=f,f", [total], gl.float32, is_pure=False, pack=1
        )
        total = total / (1.0 + gl.exp(-total)) * up
    at = out_ptr + (pair.to(gl.int64) * TILES + tile) * 16 + of_row
    if SETS == 2 and not GATED:
        gl.store(at + quarter // 2 * 16, total.to(gl.bfloat16))
    else:
        gl.store(at, total.to(gl.bfloat16), mask=quarter < 2)
