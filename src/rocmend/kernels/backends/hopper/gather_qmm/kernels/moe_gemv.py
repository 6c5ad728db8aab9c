"""One row of x in bfloat16 for each pair, with little of its expert's affine weights a program, on NVIDIA.

A program takes 16 rows of weights, or 8 of each of two matrices with a gate, or a few times that. Its wavefronts share
K. They ask for x, scales and weights at once; while weights come, each makes digits of its part of x, to multiply them
with codes as they stand (``moe_gemv_ptx.py`` says how). Nothing but products waits for weights: digits and scales lie
in shared memory by then. So the time is that of one read after another, of the index and of the weights, and of few
instructions.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import along, said
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_e2m1 as floats
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_ptx as blocks

READ = gl.constexpr({
    32: "ld.shared.u8 $0, [$1];",
    64: "ld.shared.b32 $0, [$1];", 128: "{ .reg .b16 t; ld.shared.b16 t, [$1]; mov.b32 $0, {t, t}; }",
})  # fmt: skip
"""A word of two groups' scales, by the size of a group; of groups of 32 one."""
READ_FOUR = gl.constexpr("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];")
SAME = gl.constexpr("mov.b32 $0, $1;")
"""What it gives is a number of its own, to which the assembler adds constants where it is used."""
POLICY = gl.constexpr("createpolicy.fractional.L2::evict_first.b64 $0, 1.0; // $1")
APART = gl.constexpr("bar.warp.sync 0xffffffff; // $0")
"""What the assembler moves no load past, and no copy."""
MEET_ALL = gl.constexpr("{ .reg .pred p; setp.ne.u32 p, 0, 0; bar.red.popc.u32 $0, 0, p; }")
"""Wait for all lanes, and tell how many want something: none."""
WAVEFRONTS = (1, 2, 4, 8, 16)
E2M1 = gl.constexpr(blocks.E2M1)
LINES_OF = gl.constexpr({**blocks.LINES, blocks.E2M1: 1})
BITS_OF = gl.constexpr({4: 4, 8: 8, blocks.E2M1: 4})
ROOM_OF = gl.constexpr({4: blocks.ROOM, 8: blocks.ROOM, blocks.E2M1: floats.ROOM})
DIGITS = gl.constexpr({**{kind: blocks.digits(kind) for kind in blocks.KINDS}, blocks.E2M1: floats.pairs()})
DIGITS_OF = gl.constexpr(blocks.DIGITS_OF)
PLACES, PLACES_OF = gl.constexpr({kind: blocks.places(kind) for kind in blocks.KINDS}), gl.constexpr(blocks.PLACES_OF)
PAIRS_AT, PAIRS_AT_OF = gl.constexpr(floats.places()), gl.constexpr(floats.PLACES_OF)
PRODUCT = gl.constexpr({**{kind: blocks.product(kind) for kind in blocks.KINDS}, blocks.E2M1: floats.product()})
PRODUCT_OF = gl.constexpr({
    **{kind: blocks.product_of(kind) for kind in blocks.KINDS}, blocks.E2M1: floats.PRODUCT_OF,
})  # fmt: skip
SUMMED, SUMMED_OF = gl.constexpr({count: blocks.summed(count) for count in WAVEFRONTS}), gl.constexpr("=&f,f")
GATHERED, GATHERED_OF = gl.constexpr(blocks.gathered()), gl.constexpr(blocks.GATHERED_OF)
GATHERED_TWO, GATHERED_TWO_OF = gl.constexpr(floats.gathered()), gl.constexpr(floats.GATHERED_OF)


@gluon.constexpr_function
def _room(size):
    """Return a block that tells where so many bytes of shared memory are."""
    return f"{{ .shared .align 16 .b8 room[{size}]; mov.u32 $0, room; }}"


@gluon.constexpr_function
def _load(masked, once):
    """Return a block that loads 16 bytes of a lane."""
    how, policy = (".L1::evict_first.L2::cache_hint", ", $5") if once else ("", "")
    load = f"ld.global{how}.v4.b32 {{$0, $1, $2, $3}}, [$4]{policy};"
    zeros = "mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0;"
    return f"{{ .reg .pred p; setp.ne.b32 p, $6, 0; {zeros} @p {load} }}" if masked else f"{load} // $5 $6"


@gluon.constexpr_function
def _copy(size, masked):
    """Return a block that begins to copy so many bytes of a lane to shared memory."""
    copy = f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global [$1], [$2], {size};"
    return f"{{ .reg .pred p; setp.ne.b32 p, $3, 0; @p {copy} }} // $0" if masked else f"{copy} // $0"


@gluon.jit
def _loaded(at, here, policy, MASKED: gl.constexpr, ONCE: gl.constexpr):
    """Load 16 bytes a lane, or zeros where they are not there; ONCE: they are read by nobody else."""
    return gl.inline_asm_elementwise(
        _load(MASKED, ONCE),
        "=&r,=&r,=&r,=&r,l,l,r" if MASKED else "=r,=r,=r,=r,l,l,r",
        [at, policy, here.to(gl.int32)],
        (gl.int32, gl.int32, gl.int32, gl.int32),
        is_pure=False,
        pack=1,
    )


@gluon.jit
def _copied(to, at, here, SIZE: gl.constexpr, MASKED: gl.constexpr):
    """Begin to copy SIZE bytes of each lane to shared memory, or nothing where they are not there."""
    if MASKED:
        given = [to, at, here.to(gl.int32)]
        gl.inline_asm_elementwise(_copy(SIZE, True), "=r,r,l,r", given, gl.int32, is_pure=False, pack=1)
    else:
        gl.inline_asm_elementwise(_copy(SIZE, False), "=r,r,l", [to, at], gl.int32, is_pure=False, pack=1)


@gluon.jit
def _read(at):
    """Read 16 bytes of shared memory a lane."""
    return gl.inline_asm_elementwise(
        READ_FOUR, "=r,=r,=r,=r,r", [at], (gl.int32, gl.int32, gl.int32, gl.int32), is_pure=False, pack=1
    )


@gluon.jit
def _beside_at(scales_ptr, biases_ptr, up_scales_ptr, up_biases_ptr, number, unit, PART: gl.constexpr,
               GATED: gl.constexpr, GROUP: gl.constexpr):  # fmt: skip
    """Tell where words of scales are, of the first expert: ``number`` of a unit's, of which a matrix has ``PART``.

    All scales of the unit's rows stand as they lie, then all biases, then the other matrix's. e2m1 has no biases.
    """
    kind: gl.constexpr = gl.pointer_type(gl.int16 if GROUP == 128 else gl.int32)
    of = number + unit * PART
    if GROUP == 32:
        at = scales_ptr.to(kind, bitcast=True) + of
        if GATED:
            at = gl.where(number < PART, at, up_scales_ptr.to(kind, bitcast=True) + (of - PART))
    else:
        at = gl.where(
            number < PART, scales_ptr.to(kind, bitcast=True) + of, biases_ptr.to(kind, bitcast=True) + (of - PART)
        )
        if GATED:
            other = gl.where(
                number < 3 * PART,
                up_scales_ptr.to(kind, bitcast=True) + (of - 2 * PART),
                up_biases_ptr.to(kind, bitcast=True) + (of - 3 * PART),
            )
            at = gl.where(number < 2 * PART, at, other)
    return at


@gluon.jit
def _share(
    words, held, by, scaled_at, none, half, FIRST: gl.constexpr, SET_AT: gl.constexpr, ROWS_AT: gl.constexpr,
    HIGH_AT: gl.constexpr, KIND: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Return a lane's share of four rows' results, of e2m1 of two; of a line of a set; FIRST: of its words; bytes."""
    of = []
    for at in gl.static_range(16):
        of = of + [words[FIRST + at]]
    for at in gl.static_range(len(held)):
        of = of + [held[at]]
    for at in gl.static_range(4):
        # Of e2m1 two rows' scales of two groups, else four rows' of a word.
        place = at // 2 * ROWS_AT + at % 2 if GROUP == 32 else at % 2 * ROWS_AT + at // 2 * HIGH_AT
        one = scaled_at + (SET_AT + place)
        of = of + [gl.inline_asm_elementwise(READ[GROUP], "=r,r", [one], gl.int32, is_pure=False, pack=1)]
    of = of + [by, none, half]
    if GROUP == 32:
        share = gl.inline_asm_elementwise(
            PRODUCT[KIND], PRODUCT_OF[KIND], of, (gl.float32, gl.float32), is_pure=True, pack=1
        )
    else:
        share = gl.inline_asm_elementwise(
            PRODUCT[KIND], PRODUCT_OF[KIND], of, (gl.float32, gl.float32, gl.float32, gl.float32), is_pure=True, pack=1
        )
    return share


@gluon.jit
def _added(one, other):
    """Add tuples."""
    COUNT: gl.constexpr = len(one)
    sums = ()
    for at in gl.static_range(COUNT):
        sums = sums + (one[at] + other[at],)
    return sums


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
def moe_gemv_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, rhs_ptr,
    DIVISOR: gl.constexpr, DEPTH: gl.constexpr, KIND: gl.constexpr, GROUP: gl.constexpr, UNITS: gl.constexpr,
    GATED: gl.constexpr, HAS_LHS: gl.constexpr, SETS: gl.constexpr, SLICES: gl.constexpr, PARTS: gl.constexpr,
):  # fmt: skip
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
        DEPTH: K, a multiple of 128, of e2m1 64.
        KIND: Bits of a code, 4 or 8, or E2M1.
        GROUP: 64 or 128, of e2m1 32.
        UNITS: Of 16 * SETS rows of a matrix; with GATED of 8 * SETS.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        SETS: 1 or 2.
        SLICES: Wavefronts.
        PARTS: Of 256 columns that each of them has; the last ones may have fewer, or none.
    """
    LINES: gl.constexpr = LINES_OF[KIND]
    WORDS: gl.constexpr = DEPTH * BITS_OF[KIND] // 32
    ROOM: gl.constexpr = ROOM_OF[KIND]
    FLOATS: gl.constexpr = KIND == E2M1
    gl.static_assert(SETS <= 2, "a lane stores the results of one set")
    # What a lane's words are there or not with.
    CHUNK: gl.constexpr = 64 if DEPTH % 128 else 128
    CHUNKS: gl.constexpr = DEPTH // CHUNK
    EVEN: gl.constexpr = DEPTH == 256 * PARTS * SLICES
    EACH: gl.constexpr = 8 if GATED else 16
    ROWS: gl.constexpr = EACH * SETS
    # Words of scales, of 128 columns each, of which a lane copies four at a time: a matrix's, all, and how often.
    PART: gl.constexpr = ROWS * DEPTH // 128
    MATRIX: gl.constexpr = PART if FLOATS else 2 * PART
    TOTAL: gl.constexpr = MATRIX * (2 if GATED else 1)
    ROUND: gl.constexpr = SLICES * 128
    ROUNDS: gl.constexpr = (TOTAL + ROUND - 1) // ROUND
    SCALE: gl.constexpr = 2 if GROUP == 128 else 4
    # Bytes of scales of a row and of a chunk.
    LINE: gl.constexpr = DEPTH * SCALE // 128
    SCALED: gl.constexpr = CHUNK * SCALE // 128
    # Wavefronts, rows (pairs of them, one of two), quarters.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1], [1, 4, 2, 4], [SLICES, 1, 1, 1], [3, 2, 1, 0])
    wavefront, two = along(0, SLICES, lanes, 4), along(1, 4, lanes, 4)
    odd, q = along(2, 2, lanes, 4), along(3, 4, lanes, 4)
    lane = two * 8 + odd * 4 + q + wavefront * 0
    unit, pair = gl.program_id(0), gl.program_id(1)
    # What is known before the index is, so that little stands between it and the first load.
    w_of = unit * (ROWS * WORDS) + two * WORDS + wavefront * (PARTS * LINES * 32) + q * 4
    high_half = 1 - odd if FLOATS else odd
    low_ptr = w_ptr + (w_of + odd * 16)
    high_ptr = (up_ptr if GATED else w_ptr + 8 * WORDS) + (w_of + high_half * 16)
    number = (wavefront * 32 + lane) * 4
    beside_ptrs = ()
    for more in gl.static_range(ROUNDS):
        beside_ptrs = beside_ptrs + (
            _beside_at(
                scales_ptr, biases_ptr, up_scales_ptr, up_biases_ptr, number + more * ROUND, unit, PART, GATED, GROUP
            ),
        )
    # Shared memory: scales and biases, then a room for each 256 numbers of x.
    SCALES: gl.constexpr = ROUNDS * ROUND * SCALE
    base = gl.inline_asm_elementwise(
        _room(SCALES + ROOM * SLICES * PARTS), "=r", [], gl.int32, is_pure=True, pack=1
    ) + lane * 0  # fmt: skip
    room = base + SCALES + wavefront * (PARTS * ROOM)
    policy = gl.inline_asm_elementwise(POLICY, "=l,r", [lane], gl.int64, is_pure=True, pack=1)
    said("griddepcontrol.wait; // $0")
    # Loads come back in order: x is asked for first. The assembler has six counters of loads under way, and what waits
    # for one load waits for all that share its counter: x and scales are not to share those of words. So they stand
    # apart from these, in this order, and scales are copied, which is counted by itself.
    expert = gl.load(rhs_ptr + pair).to(gl.int64)
    source = gl.load(lhs_ptr + pair).to(gl.int32) if HAS_LHS else pair // DIVISOR
    x_at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + source.to(gl.int64) * (DEPTH // 2)
    raw = ()
    for part in gl.static_range(PARTS):
        at = x_at + (wavefront * (PARTS * 128) + part * 128 + lane * 4)
        here = (wavefront * PARTS + part) * (256 // CHUNK) + lane // (CHUNK // 8) < CHUNKS
        raw = raw + _loaded(at.to(gl.int64), here, policy, not EVEN, False)
    said(APART)
    for more in gl.static_range(ROUNDS):
        at = beside_ptrs[more] + expert * (UNITS * PART)
        here = number + more * ROUND < TOTAL
        _copied(base + (number + more * ROUND) * SCALE, at.to(gl.int64), here, SCALE * 4, TOTAL % ROUND != 0)
    said("cp.async.commit_group; // $0")
    said(APART)
    low_ptr += expert * (UNITS * ROWS * WORDS)
    high_ptr += expert * (UNITS * ROWS * WORDS)
    words = ()
    for at in gl.static_range(PARTS * SETS * LINES * 4):
        part, one, line, row = at // (SETS * LINES * 4), at // (LINES * 4) % SETS, at // 4 % LINES, at % 4
        # Of 128 columns: half a line of 4 bits, a line of 8; of 64 half of a half.
        of_line = (odd if row < 2 else high_half) if LINES == 1 else odd * 0 + line
        if CHUNK == 64:
            of_line = of_line * 2 + q // 2
        chunk = (wavefront * PARTS + part) * (256 // CHUNK) + of_line
        on = (one * EACH + row % 2 * 4) * WORDS + (part * LINES + line) * 32
        here = ((low_ptr if row < 2 else high_ptr) + on).to(gl.int64)
        words = words + _loaded(here, chunk < CHUNKS, policy, not EVEN, True)
    said("griddepcontrol.launch_dependents; // $0")
    by = ()
    for part in gl.static_range(PARTS):
        given = []
        for at in gl.static_range(4):
            given = given + [raw[4 * part + at]]
        given = given + [room + part * ROOM, lane]
        by = by + (gl.inline_asm_elementwise(DIGITS[KIND], DIGITS_OF, given, gl.float32, is_pure=False, pack=1),)
    said("cp.async.wait_group 0; // $0")
    # Words are not looked at before this barrier is passed, since no compiler knows what comes of it: else what stands
    # before it would wait for them.
    none = gl.inline_asm_elementwise(MEET_ALL, "=r", [], gl.int32, is_pure=False, pack=1) + lane * 0
    if CHUNK == 64:
        of_row = two * LINE + wavefront * (PARTS * 2 * SCALE)
    else:
        of_row = (two * CHUNKS + wavefront * (PARTS * 2) + (0 if FLOATS else gl.where(q == 3, PART, 0))) * SCALE
    scales_at = gl.inline_asm_elementwise(SAME, "=r,r", [base + of_row], gl.int32, is_pure=True, pack=1)
    HIGH_AT: gl.constexpr = MATRIX * SCALE if GATED else 8 * LINE
    totals = ()
    for part in gl.static_range(PARTS):
        of = [room + part * ROOM, lane]
        if FLOATS:
            at_low = gl.inline_asm_elementwise(PAIRS_AT, PAIRS_AT_OF, of, gl.int32, is_pure=True, pack=1)
        else:
            at_low, at_high, at_sums = gl.inline_asm_elementwise(
                PLACES[KIND], PLACES_OF, of, (gl.int32, gl.int32, gl.int32), is_pure=True, pack=1
            )
        for line in gl.static_range(LINES):
            if FLOATS:
                held = _read(at_low) + _read(at_low + 16) + _read(at_low + 32) + _read(at_low + 48)
            elif KIND == 4:
                held = _read(at_low) + _read(at_low + 16) + _read(at_high) + _read(at_high + 16) + _read(at_sums)
            else:
                held = _read(at_low if line == 0 else at_high) + _read(at_sums + line * 16)
            # Of 4 bits a half's two groups, of 8 bits a line's, of e2m1 the two groups of the lane's columns.
            of_line = (q // 2 if FLOATS else odd) if LINES == 1 else odd * 0 + line
            chunk = part * (256 // CHUNK) + (q if CHUNK == 64 else of_line)
            if not EVEN:
                # What is nothing is scaled, too: by something that is there.
                first = wavefront * (PARTS * (256 // CHUNK))
                chunk = gl.where(first + chunk < CHUNKS, chunk, -first)
            scaled_at = scales_at + chunk * SCALED
            half = odd + lane * 0
            if FLOATS:
                half = (q // 2 == odd).to(gl.int32) + lane * 0
                scaled_at += (0 if CHUNK == 64 else q % 2 * 2) + gl.where(half != 0, 0, HIGH_AT)
            scaled_at = gl.inline_asm_elementwise(SAME, "=r,r", [scaled_at], gl.int32, is_pure=True, pack=1)
            for one in gl.static_range(SETS):
                more = _share(
                    words, held, by[part], scaled_at, none, half, ((part * SETS + one) * LINES + line) * 16,
                    one * EACH * LINE, 4 * LINE, HIGH_AT, KIND, GROUP,
                )  # fmt: skip
                if part + line > 0:
                    totals = totals[:one] + (_added(totals[one], more),) + totals[one + 1 :]
                else:
                    totals = totals + (more,)
    sums = ()
    for one in gl.static_range(SETS):
        if FLOATS:
            of = [totals[one][0], totals[one][1], lane]
            total = gl.inline_asm_elementwise(GATHERED_TWO, GATHERED_TWO_OF, of, gl.float32, is_pure=True, pack=1)
        else:
            of = [totals[one][0], totals[one][1], totals[one][2], totals[one][3], lane]
            total = gl.inline_asm_elementwise(GATHERED, GATHERED_OF, of, gl.float32, is_pure=True, pack=1)
        sums = sums + (total,)
    # Lanes of even rows have one set's results, those of odd ones the other's.
    total = sums[0]
    if SETS > 1:
        total = gl.where(odd == 0, total, sums[1])
    if SLICES > 1:
        total = gl.inline_asm_elementwise(SUMMED[SLICES], SUMMED_OF, [total], gl.float32, is_pure=False, pack=1)
    quarter = q ^ (odd * 2) if FLOATS else q + odd * 0
    at = out_ptr + ((pair.to(gl.int64) * UNITS + unit) * ROWS + two + quarter * 4) + wavefront * 0
    here = (wavefront == 0) & (quarter < EACH // 4)
    _store(at + odd * (EACH if SETS > 1 else 0), total, here & (odd < SETS), GATED)
