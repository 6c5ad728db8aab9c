"""A walk along K of a few rows of x and 16 rows of weights of any format, multiplied on the matrix unit.

Each lane loads whole words and unpacks them where the matrix unit wants them (``unpacked.py``): a weight costs two to
three instructions, and 8 rows of x cost what one costs. A program walks along K; SLICES wavefronts take neighbouring
parts of a step and add up what they have at the end. AHEAD steps of weights are under way while one is multiplied, the
first of them before x is there.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of
from rocmend.kernels.common.unpacked import beside, ordered, product_of, totals_of, units_of
from rocmend.kernels.language import INTERPRETED


@triton.jit
def _loaded(at, here, MASK: tl.constexpr, ONCE: tl.constexpr):
    """Load where ``here``: everywhere for MASK 0; elsewhere it gives anything for 1, which costs less than 0 for 2."""
    POLICY: tl.constexpr = "evict_first" if ONCE else ""
    if MASK == 0:
        found = tl.load(at, eviction_policy=POLICY)
    elif MASK == 1:
        found = tl.load(at, mask=here, eviction_policy=POLICY)
    else:
        found = tl.load(at, mask=here, other=0, eviction_policy=POLICY)
    return found


@triton.jit
def _words(rows, t, here, UNIT: tl.constexpr, BITS: tl.constexpr, MASK: tl.constexpr):
    """Return the words that hold the codes of each lane.

    Args:
        rows: Pointers to the first word of a unit, [1, 8, SLICES, 2, PER].
        t: The quarters, [4, 1, 1, 1, 1].
        here: Which units exist.
        UNIT: Codes of a unit.
        BITS: Of a code.
        MASK: Of ``_loaded``.
    """
    LANE: tl.constexpr = UNIT * BITS // 4
    if LANE == 64 or LANE == 128:
        at = rows[:, :, :, :, :, None] + (t[:, :, :, :, :, None] * (LANE // 32) + tl.arange(0, LANE // 32))
        words = (_loaded(at, here[:, :, :, :, :, None], MASK, True),)
    else:
        COUNT: tl.constexpr = max(1, LANE // 32) if LANE % 32 == 0 or 32 % LANE == 0 else LANE // 32 + 1 + (LANE == 24)
        first = t * LANE >> 5
        words = ()
        for j in tl.static_range(COUNT):
            if LANE == 24 and j == 1:
                # The last quarter ends with its first word: none is read behind the unit's end.
                words = words + (_loaded(rows + tl.minimum(first + 1, 2), here, MASK, True),)
            else:
                words = words + (_loaded(rows + first + j, here, MASK, True),)
    return words


@triton.jit
def _packed(rows, here, MASK: tl.constexpr):
    """Return words of scales or biases, one for each tensor of pointers."""
    found = ()
    for q in tl.static_range(len(rows)):
        found = found + (_loaded(rows[q], here, MASK, False),)
    return found


@triton.jit
def _moved(rows, by):
    """Return pointers moved on."""
    moved = ()
    for q in tl.static_range(len(rows)):
        moved = moved + (rows[q] + by,)
    return moved


@triton.jit
def _scales(packed, PER: tl.constexpr, EACH: tl.constexpr, MODE: tl.constexpr, dtype: tl.constexpr):
    """Return the scales of a wavefront's units in fp32, [SLICES, rows, 1] each, of words that hold EACH of them."""
    GROUPS: tl.constexpr = len(packed) * EACH
    scales = ()
    for p in tl.static_range(PER):
        word = packed[p * GROUPS // PER // EACH]
        place = p * GROUPS // PER % EACH
        if MODE != "affine":
            scale = scale_of(((word >> (8 * place)) & 255).to(tl.uint8), MODE)
        elif dtype == tl.bfloat16:
            scale = ((word >> (16 * place)).to(tl.int32) << 16).to(tl.float32, bitcast=True)
        else:
            scale = (word >> (16 * place)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        scales = scales + (scale[:, :, None],)
    return scales


@triton.jit
def _added(
    sums,
    x,
    words,
    scales,
    biases,
    t,
    zero,
    UNIT: tl.constexpr,
    BITS: tl.constexpr,
    MODE: tl.constexpr,
    PER: tl.constexpr,
    EACH: tl.constexpr,
    dtype: tl.constexpr,
):
    """Add the units of a step: Σ s·(Σ x·q) + b·(Σ x)."""
    SLICES: tl.constexpr = sums.shape[0]
    # What ``totals_of`` has as the sum of x.
    TOTAL: tl.constexpr = -1.0 if INTERPRETED else (-1024.0 if dtype == tl.float16 else -128.0)
    if INTERPRETED:
        x = x.to(tl.float32)
    x = ordered(x, UNIT, BITS)
    products = units_of(product_of(words, t, zero, x, UNIT, BITS, MODE, dtype), PER)
    factors = _scales(scales, PER, EACH, MODE, dtype)
    for p in tl.static_range(PER):
        sums += products[p] * factors[p]
    if MODE == "affine":
        totals = units_of(totals_of(x, zero, SLICES, PER, UNIT, dtype), PER)
        addends = _scales(biases, PER, EACH, MODE, dtype)
        for p in tl.static_range(PER):
            sums += totals[p] * (factors[p] * beside(BITS, dtype) + addends[p] * (1.0 / TOTAL))
    return sums


@triton.jit
def walked(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    n,
    row,
    first_line,
    M,
    words,
    groups,
    x_stride,
    steps,
    zero,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    SLICES: tl.constexpr,
    PER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    AHEAD: tl.constexpr,
    EVEN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Return Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x of 16 rows of w and BLOCK_M of x in fp32, [16, BLOCK_M], products exact.

    Scales are read PER units at once, as words of that width: rows of them stand at multiples of it.

    Args:
        x_ptr: ``[M, words * 32 / BITS]``, adjacent in a row.
        w_ptr: One pointer to words, or one for each of ``n``.
        scales_ptr: The like, for each of ``row``.
        biases_ptr: As the scales.
        n: Rows of w, int64, [1, 8, 1, 2, 1], the second eight of the 16 along the last axis but one.
        row: The same in order, [1, 16].
        first_line: Of the BLOCK_M rows of x.
        M: Rows of x.
        words: Of a row of w.
        groups: Of a row of w.
        x_stride: Elements from one row of x to the next.
        steps: How many there are, a multiple of AHEAD.
        zero: 0, as a number that the compiler does not know.
        MODE: Format.
        GROUP: Codes of a group.
        BITS: Of a code.
        SLICES: Wavefronts.
        PER: Units that each takes at a step.
        BLOCK_M: Rows of x, a multiple of 8.
        AHEAD: Steps that are under way: 1 or 2.
        EVEN: All steps of all wavefronts are whole.
        PDL: Weights are read before x is there.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    AFFINE: tl.constexpr = MODE == "affine"
    UNIT: tl.constexpr = min(GROUP, 64)
    # Groups of a wavefront, their bytes, words of at most 8 bytes that hold them, and groups in each.
    GROUPS: tl.constexpr = PER * UNIT // GROUP
    BYTES: tl.constexpr = GROUPS * (2 if AFFINE else 1)
    QUADS: tl.constexpr = max(1, BYTES // 8)
    EACH: tl.constexpr = GROUPS // QUADS
    HOLDER: tl.constexpr = (
        tl.int64 if BYTES >= 8 else (tl.int32 if BYTES == 4 else (tl.int16 if BYTES == 2 else tl.uint8))
    )
    VECTOR: tl.constexpr = min(8, UNIT // 4)
    STEP: tl.constexpr = SLICES * PER
    WORDS: tl.constexpr = STEP * UNIT * BITS // 32
    HOLDERS: tl.constexpr = STEP * UNIT // GROUP // EACH
    # What is left out where codes become fp16.
    FACTOR: tl.constexpr = (
        1.0 if INTERPRETED or AFFINE or dtype == tl.bfloat16 else 2.0 ** (8 if MODE == "mxfp8" else 14)
    )
    units = groups * (GROUP // UNIT)
    quarter = tl.arange(0, 4)[:, None, None, None, None]
    slices = tl.arange(0, SLICES)[None, None, :, None, None]
    unit = slices * PER + tl.arange(0, PER)[None, None, None, None, :]
    # Where all steps are whole, one comparison tells for all units.
    seen = unit * 0 if EVEN else unit
    # A lane must not find the words of its neighbours beside its own, or Triton has it load those.
    t = quarter | zero
    w_rows = w_ptr + (n * words + unit * (UNIT * BITS // 32))
    holder = tl.arange(0, SLICES)[:, None] * QUADS
    seen_holder = holder * 0 if EVEN else holder
    s_rows, b_rows = (), ()
    for q in tl.static_range(QUADS):
        s_rows = s_rows + (scales_ptr.to(tl.pointer_type(HOLDER)) + (row * (groups // EACH) + (holder + q)),)
        if AFFINE:
            b_rows = b_rows + (biases_ptr.to(tl.pointer_type(HOLDER)) + (row * (groups // EACH) + (holder + q)),)
    x_eight = tl.arange(0, 8)[None, :, None, None, None, None, None]
    x_line = tl.arange(0, BLOCK_M // 8)[None, None, None, :, None, None, None] * 8 + x_eight
    x_line += first_line
    x_unit = tl.arange(0, SLICES)[None, None, :, None, None, None, None] * PER
    x_unit += tl.arange(0, PER)[None, None, None, None, :, None, None]
    x_code = tl.arange(0, 4)[:, None, None, None, None, None, None] * (UNIT // 4)
    x_code += tl.arange(0, UNIT // 4 // VECTOR)[None, None, None, None, None, :, None] * VECTOR
    x_code += tl.arange(0, VECTOR)[None, None, None, None, None, None, :]
    x_rows = x_ptr + x_line.to(tl.int64) * x_stride + (x_unit * UNIT + x_code)
    x_given = x_line < M
    # Where all steps are whole, what is loaded behind the last one is not used.
    FIRST: tl.constexpr = 0 if EVEN else 2
    LATER: tl.constexpr = 1 if EVEN else 2
    w0 = _words(w_rows, t, unit < units, UNIT, BITS, FIRST)
    s0 = _packed(s_rows, holder < groups // EACH, FIRST)
    b0 = _packed(b_rows, holder < groups // EACH, FIRST)
    if AHEAD == 2:
        w1 = _words(w_rows + WORDS, t, unit + STEP < units, UNIT, BITS, FIRST)
        s1 = _packed(_moved(s_rows, HOLDERS), holder + HOLDERS < groups // EACH, FIRST)
        b1 = _packed(_moved(b_rows, HOLDERS), holder + HOLDERS < groups // EACH, FIRST)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    sums = tl.zeros([SLICES, 16, BLOCK_M], tl.float32)
    for step in range(0, steps, AHEAD):
        x_here = x_given if EVEN else x_given & (x_unit + step * STEP < units)
        x = tl.load(x_rows + step * (STEP * UNIT), mask=x_here, other=0.0)
        sums = _added(sums, x, w0, s0, b0, t, zero, UNIT, BITS, MODE, PER, EACH, dtype)
        later = step + AHEAD
        w0 = _words(w_rows + later * WORDS, t, seen + later * STEP < units, UNIT, BITS, LATER)
        s0 = _packed(_moved(s_rows, later * HOLDERS), seen_holder + later * HOLDERS < groups // EACH, LATER)
        b0 = _packed(_moved(b_rows, later * HOLDERS), seen_holder + later * HOLDERS < groups // EACH, LATER)
        if AHEAD == 2:
            x_here = x_given if EVEN else x_given & (x_unit + (step + 1) * STEP < units)
            x = tl.load(x_rows + (step + 1) * (STEP * UNIT), mask=x_here, other=0.0)
            sums = _added(sums, x, w1, s1, b1, t, zero, UNIT, BITS, MODE, PER, EACH, dtype)
            w1 = _words(w_rows + (later + 1) * WORDS, t, seen + (later + 1) * STEP < units, UNIT, BITS, LATER)
            s1 = _packed(
                _moved(s_rows, (later + 1) * HOLDERS), seen_holder + (later + 1) * HOLDERS < groups // EACH, LATER
            )
            b1 = _packed(
                _moved(b_rows, (later + 1) * HOLDERS), seen_holder + (later + 1) * HOLDERS < groups // EACH, LATER
            )
    return tl.sum(sums, axis=0) * FACTOR
