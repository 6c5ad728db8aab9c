"""One row of x in bfloat16 for each pair, with little of its expert's affine weights a program, on NVIDIA.

A program takes 16 rows of weights, or 8 of each of two matrices with a gate, or a few times that. Its wavefronts share
K. They ask for x, scales and weights at once; while weights come, each makes digits of its part of x, to multiply them
with codes as they stand (``digits_blocks.py`` says how). So the time is that of one read after another, of the index
and of the weights, and of few instructions.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along
from rocmend.kernels.ops.gather_qmm.kernels import digits_blocks as blocks

READ = gl.constexpr("ld.shared.b32 $0, [$1];")
BASE = gl.constexpr("mov.u32 $0, global_smem;")
"""Where Triton has a program's shared memory."""
MEET_ALL = gl.constexpr("{ .reg .pred p; setp.ne.u32 p, 0, 0; bar.red.popc.u32 $0, 0, p; }")
WAVEFRONTS = (1, 2, 4, 8, 16)
LINES_OF = gl.constexpr(blocks.LINES)
DIGITS = gl.constexpr({(kind, count): blocks.digits(kind, count) for kind in blocks.KINDS for count in WAVEFRONTS})
DIGITS_OF = gl.constexpr({kind: blocks.digits_of(kind) for kind in blocks.KINDS})
PRODUCT = gl.constexpr({kind: blocks.product(kind) for kind in blocks.KINDS})
PRODUCT_OF = gl.constexpr({kind: blocks.product_of(kind) for kind in blocks.KINDS})
SUMMED = gl.constexpr({(count, values): blocks.summed(count, values) for count in WAVEFRONTS for values in (1, 2)})
SUMMED_OF = gl.constexpr({values: blocks.summed_of(values) for values in (1, 2)})
GATHERED, GATHERED_OF = gl.constexpr(blocks.gathered()), gl.constexpr(blocks.gathered_of())


@gluon.jit
def _words(low, high, part, odd, ROW: gl.constexpr, LINES: gl.constexpr, EVEN: gl.constexpr, CHUNKS: gl.constexpr):
    """Load a lane's words of four rows, of each line: two from ``low`` on, and two from ``high``; ROW: of a row."""
    words = ()
    for line in gl.static_range(LINES):
        # Of 128 columns: half a line of 4 bits, a line of 8.
        chunk = part * 2 + odd if LINES == 1 else part * 2 + line + odd * 0
        for row in gl.static_range(4):
            at = (low if row < 2 else high) + (row % 2 * 4 * ROW + line * 32)
            if EVEN:
                words = words + (gl.load(at, eviction_policy="evict_first"),)
            else:
                words = words + (gl.load(at, mask=chunk < CHUNKS, other=0, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _beside(scales_ptr, biases_ptr, up_scales_ptr, up_biases_ptr, number, ROWS: gl.constexpr, CHUNKS: gl.constexpr,
            GATED: gl.constexpr, GROUP: gl.constexpr):  # fmt: skip
    """Load words of two scales each: all scales of a program's rows as they lie, then all biases, then the other's.

    ``number`` is of a word; with ``GROUP`` 128 both halves are the same.
    """
    PART: gl.constexpr = ROWS * CHUNKS
    TOTAL: gl.constexpr = PART * (4 if GATED else 2)
    at = gl.where(number < PART, scales_ptr + number, biases_ptr + (number - PART))
    if GATED:
        other = gl.where(number < 3 * PART, up_scales_ptr + (number - 2 * PART), up_biases_ptr + (number - 3 * PART))
        at = gl.where(number < 2 * PART, at, other)
    word = gl.load(at, mask=number // 4 < TOTAL // 4, other=0)
    if GROUP == 128:
        word = (word.to(gl.int32) & 0xFFFF) * 0x10001
    return word


@gluon.jit
def _total(
    words, scales_at, held, by, SET: gl.constexpr, SLICES: gl.constexpr, KIND: gl.constexpr, PARTS: gl.constexpr,
    APART: gl.constexpr,
):  # fmt: skip
    """Return a wavefront's share of a set of 16 rows' results, of row 4 q + two in quarter q."""
    LINES: gl.constexpr = LINES_OF[KIND]
    for part in gl.static_range(PARTS):
        for line in gl.static_range(LINES):
            h = held[part]
            of = []
            for row in gl.static_range(4):
                of = of + [words[((SET * PARTS + part) * LINES + line) * 4 + row]]
            if KIND == 4:
                of = of + [h[0], h[1], h[2], h[3], h[4], h[5]]
            else:
                of = of + [h[line], h[2 + line]]
            where = scales_at[part * LINES + line] + SET * APART
            beside = gl.inline_asm_elementwise(READ, "=r,r", [where], gl.int32, is_pure=False, pack=1)
            of = of + [beside, by[part]]
            more = gl.inline_asm_elementwise(PRODUCT[KIND], PRODUCT_OF[KIND], of, gl.float32, is_pure=True, pack=4)
            if part + line == 0:
                total = more
            else:
                total += more
    total = gl.inline_asm_elementwise(GATHERED, GATHERED_OF, [total], gl.float32, is_pure=True, pack=4)
    # One of the four that are the same.
    total, _ = total.reshape([SLICES, 4, 2, 4, 2, 2]).split()
    total, _ = total.split()
    return total


@gluon.jit
def _store(at, total, here, GATED: gl.constexpr):
    """Store results; with a gate those of quarters 0 and 1, of which 2 and 3 have the second matrix's."""
    if GATED:
        up = gl.inline_asm_elementwise(
            "shfl.sync.bfly.b32 $0, $1, 2, 31, 0xffffffff;", "=f,f", [total], gl.float32, is_pure=False, pack=1
        )
        total = total / (1.0 + gl.exp(-total)) * up
    gl.store(at + gl.zeros_like(total).to(gl.int32), total.to(gl.bfloat16), mask=here)


@gluon.jit
def digits_kernel(
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
    DIVISOR: gl.constexpr,
    DEPTH: gl.constexpr,
    KIND: gl.constexpr,
    GROUP: gl.constexpr,
    UNITS: gl.constexpr,
    GATED: gl.constexpr,
    HAS_LHS: gl.constexpr,
    SETS: gl.constexpr,
    SLICES: gl.constexpr,
    PARTS: gl.constexpr,
    MEET: gl.constexpr,
    LATE: gl.constexpr,
    PDL: gl.constexpr,
):
    """out[p] = x[lhs[p]] @ w[rhs[p]].T, or silu(x @ w.T) * (x @ up.T): programs (unit of columns, pair).

    Args:
        x_ptr: [rows, DEPTH].
        w_ptr: [experts, rows, DEPTH * KIND / 32] words.
        scales_ptr: [experts, rows, DEPTH / GROUP].
        biases_ptr: The same.
        up_ptr: Of the second matrices, with GATED.
        up_scales_ptr: Likewise.
        up_biases_ptr: Likewise.
        out_ptr: [pairs, rows].
        lhs_ptr: Rows of x, with HAS_LHS; else pairs follow x.
        rhs_ptr: Experts.
        DIVISOR: Pairs that share a row of x. To divide by what is not known until then would delay the first load.
        DEPTH: K, a multiple of 128.
        KIND: Bits of a code, 4 or 8.
        GROUP: 64 or 128.
        UNITS: Of 16 * SETS rows of a matrix; with GATED of 8 * SETS.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        SETS: 1, 2 or 3.
        SLICES: Wavefronts.
        PARTS: Of 256 columns that each of them has; the last ones may have fewer, or none.
        MEET: How loads stay before the digits of x: 1, by a barrier; 2, x is loaded behind the index; 0: as they may.
        LATE: Whether the next kernel is let in behind the loads, not before them.
        PDL: Whether the kernel begins before the one before it is done.
    """
    LINES: gl.constexpr = LINES_OF[KIND]
    WORDS: gl.constexpr = DEPTH * KIND // 32
    CHUNKS: gl.constexpr = DEPTH // 128
    EVEN: gl.constexpr = DEPTH == 256 * PARTS * SLICES
    EACH: gl.constexpr = 8 if GATED else 16
    # Of the loads of scales and biases, four words of a lane each.
    ROUNDS: gl.constexpr = (32 * SETS * CHUNKS + SLICES * 128 - 1) // (SLICES * 128)
    # Wavefronts, rows (pairs of them, one of two), quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 4, 2, 4, 1], [SLICES, 1, 1, 1, 1], [4, 3, 2, 1, 0])
    wavefront = along(0, SLICES, lanes, 5)
    two = along(1, 4, lanes, 5)
    odd = along(2, 2, lanes, 5)
    q = along(3, 4, lanes, 5)
    four = along(4, 4, lanes, 5)
    unit, pair = gl.program_id(0), gl.program_id(1)
    w_of = two * WORDS + wavefront * (PARTS * LINES * 32) + odd * 16 + q * 4 + four
    x_of = wavefront * (PARTS * 128) + two * 32 + odd * 16 + q * 4 + four
    if PDL:
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        if not LATE:
            gl.inline_asm_elementwise(
                "griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1
            )
    expert = gl.load(rhs_ptr + pair).to(gl.int32)
    source = gl.load(lhs_ptr + pair).to(gl.int32) if HAS_LHS else pair // DIVISOR
    if MEET == 2:
        # By nothing, but no compiler knows.
        source += expert >> 31
    # First: loads come back in order.
    x_at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + source.to(gl.int64) * (DEPTH // 2)
    raw = ()
    for part in gl.static_range(PARTS):
        if EVEN:
            raw = raw + (gl.load(x_at + (x_of + part * 128)),)
        else:
            here = (wavefront * PARTS + part) * 2 + two // 2 < CHUNKS
            raw = raw + (gl.load(x_at + (x_of + part * 128), mask=here, other=0),)
    row = (expert.to(gl.int64) * UNITS + unit) * (EACH * SETS)
    kind: gl.constexpr = gl.pointer_type(gl.int32 if GROUP == 64 else gl.int16)
    words, beside = (), ()
    at = row * CHUNKS
    number = gl.arange(0, SLICES * 128, layout=gl.BlockedLayout([4], [32], [SLICES], [0]))
    scales_ptr, biases_ptr = scales_ptr.to(kind, bitcast=True) + at, biases_ptr.to(kind, bitcast=True) + at
    if GATED:
        up_scales_ptr = up_scales_ptr.to(kind, bitcast=True) + at
        up_biases_ptr = up_biases_ptr.to(kind, bitcast=True) + at
    for more in gl.static_range(ROUNDS):
        beside = beside + (
            _beside(
                scales_ptr, biases_ptr, up_scales_ptr, up_biases_ptr, number + more * (SLICES * 128), EACH * SETS,
                CHUNKS, GATED, GROUP,
            ),
        )  # fmt: skip
    for one in gl.static_range(SETS):
        start = row + one * EACH
        low = w_ptr + start * WORDS + w_of
        high = up_ptr + start * WORDS + w_of if GATED else low + 8 * WORDS
        for part in gl.static_range(PARTS):
            on = part * (LINES * 32)
            words = words + _words(low + on, high + on, wavefront * PARTS + part, odd, WORDS, LINES, EVEN, CHUNKS)
    if PDL and LATE:
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    none = 0
    if MEET == 1:
        # ptxas moves loads down behind the digits of x, but not past a barrier, which tells how many want something.
        none = gl.inline_asm_elementwise(MEET_ALL, "=r", [], gl.int32, is_pure=False, pack=1)
    held, by = (), ()
    for part in gl.static_range(PARTS):
        if KIND == 4:
            a, b, c, d, e, f, g = gl.inline_asm_elementwise(
                DIGITS[KIND, SLICES],
                DIGITS_OF[KIND],
                [raw[part] ^ none],
                (gl.int32,) * 6 + (gl.float32,),
                is_pure=False,
                pack=4,
            )
            held = held + ((a, b, c, d, e, f),)
        else:
            a, b, c, d, g = gl.inline_asm_elementwise(
                DIGITS[KIND, SLICES],
                DIGITS_OF[KIND],
                [raw[part] ^ none],
                (gl.int32,) * 4 + (gl.float32,),
                is_pure=False,
                pack=4,
            )
            held = held + ((a, b, c, d),)
        by = by + (g,)
    # Its address is Triton's own, which tells it only where it writes something itself; there is nothing else in it.
    memory = gl.allocate_shared_memory(gl.int32, [ROUNDS, SLICES * 128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    for more in gl.static_range(ROUNDS):
        memory.index(more).store(beside[more])
    gl.thread_barrier()
    base = gl.inline_asm_elementwise(BASE, "=r", [], gl.int32, is_pure=True, pack=1)
    PART: gl.constexpr = EACH * SETS * CHUNKS
    of_row = (four % 2 * 4 + two) * CHUNKS + four // 2 * (2 * PART) if GATED else (four * 4 + two) * CHUNKS
    of_row += gl.where(q == 3, PART, 0)
    scales_at = ()
    for part in gl.static_range(PARTS):
        for line in gl.static_range(LINES):
            # Of 4 bits a half's two groups, of 8 bits a line's.
            chunk = (wavefront * PARTS + part) * 2 + (odd if LINES == 1 else odd * 0 + line)
            if not EVEN:
                # What is nothing is scaled, too: by something that is there.
                chunk = gl.where(chunk < CHUNKS, chunk, 0)
            scales_at = scales_at + (base + (of_row + chunk) * 4,)
    # Lanes of even rows have one set's results, those of odd ones the next one's.
    total = _total(words, scales_at, held, by, 0, SLICES, KIND, PARTS, EACH * CHUNKS * 4)
    left: gl.constexpr = total.type.layout
    odd_row, quarter = along(2, 2, left, 4), along(3, 4, left, 4)
    if SETS > 1:
        total = gl.where(
            odd_row == 0, total, _total(words, scales_at, held, by, 1, SLICES, KIND, PARTS, EACH * CHUNKS * 4)
        )
    if SETS > 2:
        last = _total(words, scales_at, held, by, 2, SLICES, KIND, PARTS, EACH * CHUNKS * 4)
        if SLICES > 1:
            total, last = gl.inline_asm_elementwise(
                SUMMED[SLICES, 2], SUMMED_OF[2], [total, last], (gl.float32, gl.float32), is_pure=False, pack=1
            )
    elif SLICES > 1:
        total = gl.inline_asm_elementwise(SUMMED[SLICES, 1], SUMMED_OF[1], [total], gl.float32, is_pure=False, pack=1)
    first = along(0, SLICES, left, 4) == 0
    at = out_ptr + ((pair.to(gl.int64) * UNITS + unit) * (EACH * SETS) + along(1, 4, left, 4) + quarter * 4)
    at += along(0, SLICES, left, 4) * 0
    here = first & (quarter < EACH // 4)
    _store(at + odd_row * (EACH if SETS > 1 else 0), total, here & (odd_row < SETS), GATED)
    if SETS > 2:
        _store(at + 2 * EACH, last, here & (odd_row == 0), GATED)
    memory._keep_alive()  # noqa: SLF001  it is read by address
