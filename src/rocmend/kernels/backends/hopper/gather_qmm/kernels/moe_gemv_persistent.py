"""A few rows of x in bfloat16, each against its expert's weights of 4 or 8 bits, on NVIDIA: programs walk over tiles.

The pairs of a row and an expert, one after the other, are a list of tiles of 16 rows of weights. Each program takes a
piece of it, so that it seldom meets another expert or another row of x; with a gate, a tile of both matrices. Its
wavefronts share K, and the next tile's weights are under way while these are multiplied. Layouts are said, not found,
and lanes unpack what they load (``mma.py``, which says what lies where).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import along, ceil2
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_persistent_ptx as blocks

PAIRS = gl.constexpr({bits: blocks.pairs(bits) for bits in (4, 8)})
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCT = gl.constexpr({bits: blocks.product(bits) for bits in (4, 8)})
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "rrrrrr"))
RANKS = gl.constexpr({words: blocks.ranks(words) for words in (1, 2, 4, 8)})
RANKS_OF = gl.constexpr({words: blocks.ranks_of(words) for words in (1, 2, 4, 8)})
SUMS = gl.constexpr({bits: blocks.sums(bits) for bits in (4, 8)})
SUMS_OF = gl.constexpr(blocks.constraints("f", "rrrr"))
SPREAD = gl.constexpr({16 * bits + chunks: blocks.spread(chunks, bits) for chunks in (3, 4) for bits in (4, 8)})
SPREAD_OF = gl.constexpr({chunks: blocks.constraints("r", "f" * 2 * chunks) for chunks in (3, 4)})
FINISH = gl.constexpr({2 * chunks + step: blocks.finish(chunks, step) for chunks in (3, 4) for step in (0, 1)})
FINISH_OF = gl.constexpr({chunks: blocks.constraints("f", "f" * chunks + "rrrr") for chunks in (3, 4)})


@gluon.jit
def _codes(at, here, PART: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr, EIGHT: gl.constexpr):
    """Return words of a part's chunks, of rows r and r + 8 each."""
    words = ()
    for c in gl.static_range(PER):
        by = at + (c * 16 + PART * (SLICES * PER * 16))
        words = words + (gl.load(by, mask=here, eviction_policy="evict_first"),)
        words = words + (gl.load(by + EIGHT, mask=here, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _by_two(scales, HALVES: gl.constexpr):
    """Return words of the scales of a chunk's halves: of groups as they stand, or one's as two."""
    return scales if HALVES else (scales.to(gl.int32) & 0xFFFF) * 0x10001


@gluon.jit
def _rows(
    x_ptr, lhs_ptr, mates, divisor, FIRST: gl.constexpr, CHUNKS: gl.constexpr,
    DEPTH: gl.constexpr, BITS: gl.constexpr, HAS_LHS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr,
    MATES: gl.constexpr,
):  # fmt: skip
    """Load pairs' rows of x in the order of ``held``: some chunks, words, wavefronts, mates, columns, quarters."""
    NUMBER: gl.constexpr = ceil2(CHUNKS) * 32 * SLICES * MATES
    spread: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [SLICES, 1], [1, 0])
    number = gl.arange(0, NUMBER, layout=gl.SliceLayout(1, spread))
    behind = number // (8 * MATES)
    chunk = behind // (4 * SLICES) + FIRST
    word = ((chunk // PER * SLICES + behind % SLICES) * PER + chunk % PER) * 16
    word += number % 4 * 4 + behind // SLICES % 4
    # Even columns have the first half of a chunk, which quarters 0 and 1 hold; half of it are zeros.
    given = (number % 4 // 2 == number // 4 % 2) & (chunk < FIRST + CHUNKS)
    at = word * (16 // BITS)
    if MATES == 1:
        row_ptr = x_ptr + _source(lhs_ptr, mates[0], divisor, HAS_LHS).to(gl.int64) * DEPTH
        at = row_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + at
    else:
        source = at * 0
        for mate in gl.static_range(MATES):
            source = gl.where(number // 8 % MATES == mate, _source(lhs_ptr, mates[mate], divisor, HAS_LHS), source)
        at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + (source.to(gl.int64) * (DEPTH // 2) + at)
    four = gl.arange(0, 4, layout=gl.SliceLayout(0, spread))
    if BITS == 8:
        four = four // 2  # each twice
    at = at.expand_dims(1) + four.expand_dims(0)
    return gl.load(at, mask=given.expand_dims(1), other=0)


@gluon.jit
def _source(lhs_ptr, pair, divisor, HAS_LHS: gl.constexpr):
    """Return a pair's row of x."""
    return gl.load(lhs_ptr + pair).to(gl.int32) if HAS_LHS else pair // divisor


@gluon.jit
def _held(held, chunk, lanes: gl.constexpr, MATES: gl.constexpr):
    """Return x for each of the four words that a lane has of a chunk."""
    xs = ()
    for k in gl.static_range(4):
        if MATES == 1:
            # Without rows: what differs in every second of them alone.
            xs = xs + (held.index(chunk * 4 + k).load(gl.SliceLayout(1, lanes)).expand_dims(1),)
        else:
            xs = xs + (held.index(chunk * 4 + k).load(lanes),)
    return xs


@gluon.jit
def _hold(
    memory, held, x, x_ptr, lhs_ptr, mates, divisor, lanes: gl.constexpr, AT_ONCE: gl.constexpr,
    DEPTH: gl.constexpr, BITS: gl.constexpr, HAS_LHS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr,
    MATES: gl.constexpr,
):  # fmt: skip
    """Bring rows of x into order in shared memory, and return sums of their groups as operands: of two steps each.

    The first AT_ONCE chunks of each wavefront are loaded already.
    """
    PARTS: gl.constexpr = DEPTH * BITS // (512 * PER * SLICES)
    SIZE: gl.constexpr = ceil2(AT_ONCE) * 32 * SLICES * MATES
    for first in gl.static_range(0, PARTS * PER, AT_ONCE):
        if first > 0:
            x = _rows(x_ptr, lhs_ptr, mates, divisor, first, AT_ONCE, DEPTH, BITS, HAS_LHS, SLICES, PER, MATES)
        into = memory.slice(first // AT_ONCE * SIZE, SIZE)
        into.store(gl.inline_asm_elementwise(PAIRS[BITS], PAIRS_OF, [x], gl.int32, is_pure=True, pack=4))
    # Said here, or Triton has a barrier where x is first read: for each tile.
    gl.thread_barrier()
    nothing = gl.full([SLICES, 4, 2, 4, 4], 0, gl.int32, layout=lanes)
    parts = ()
    for step in gl.static_range(0, PARTS, 2):
        sums = ()
        for c in gl.static_range(2 * PER):
            x = _held(held, (step * PER + c) % (PARTS * PER), lanes, MATES)
            sums = sums + (
                gl.inline_asm_elementwise(
                    SUMS[BITS], SUMS_OF, [x[0] + nothing, x[1], x[2], x[3]], gl.float32, is_pure=True, pack=4
                ),
            )
        if PER == 4:
            of = [sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]]
        else:
            of = [sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]]
        parts = parts + (
            gl.inline_asm_elementwise(SPREAD[16 * BITS + PER], SPREAD_OF[PER], of, gl.int32, is_pure=True, pack=4),
        )
    return parts


@gluon.jit
def _find(listed, number, item, MATES: gl.constexpr):
    """Return the expert of an item of the list, and its pairs: the first again where there are fewer than MATES."""
    found = gl.max(gl.where(listed >> 16 == item, number << 16 | listed & 0xFFFF, -1), axis=0)
    first = found >> 16
    mates = (first,)
    for mate in gl.static_range(1, MATES):
        other = gl.max(gl.where(listed & 0xFFFF == (found & 0xFFFF) + mate * 256, number, -1), axis=0)
        mates = mates + (gl.where(other < 0, first, other),)
    return found & 0xFF, mates


@gluon.jit
def moe_gemv_persistent_kernel(
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
    pairs,
    divisor,
    DEPTH: gl.constexpr,
    BITS: gl.constexpr,
    GROUP: gl.constexpr,
    TILES: gl.constexpr,
    GATED: gl.constexpr,
    HAS_LHS: gl.constexpr,
    MATES: gl.constexpr,
    ROWS: gl.constexpr,
    SLICES: gl.constexpr,
    PER: gl.constexpr,
    PDL: gl.constexpr,
):
    """out[p] = x[lhs[p]] @ w[rhs[p]].T, or silu(x @ w.T) * (x @ up.T): each program a piece of all pairs' tiles.

    Args:
        x_ptr: [rows, DEPTH].
        w_ptr: [experts, 16 * TILES, DEPTH * BITS / 32] words.
        scales_ptr: [experts, 16 * TILES, DEPTH / GROUP].
        biases_ptr: The same.
        up_ptr: Of the second matrices, with GATED.
        up_scales_ptr: Likewise.
        up_biases_ptr: Likewise.
        out_ptr: [pairs, 16 * TILES].
        lhs_ptr: Rows of x, with HAS_LHS; else pairs follow x, ``divisor`` of them a row.
        rhs_ptr: Experts.
        pairs: How many there are.
        divisor: Pairs that share a row of x.
        DEPTH: K, whose words are a multiple of SLICES * PER * 16.
        BITS: 4 or 8.
        GROUP: Of 256 or 512 bits.
        TILES: Of 16 rows of a matrix.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        MATES: Pairs of one expert that share a tile: 1 or 4.
        ROWS: With MATES, the power of two from ``pairs``, 32 to 256.
        SLICES: Wavefronts.
        PER: Chunks of 16 words that a wavefront takes at a step: 3 or 4.
        PDL: Whether the kernel begins before the one before it is done.
    """
    WORDS: gl.constexpr = DEPTH * BITS // 32
    PARTS: gl.constexpr = WORDS // (16 * PER * SLICES)
    EACH: gl.constexpr = 2 if GATED else 1
    # Elements of a tensor of scales in a row, of a chunk each: words of its halves, or one for both.
    QUADS: gl.constexpr = WORDS // 16
    HALVES: gl.constexpr = BITS * GROUP == 256
    kind: gl.constexpr = gl.int32 if HALVES else gl.int16
    # Wavefronts, rows (pairs of them, one of two), quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 4, 2, 4, 1], [SLICES, 1, 1, 1, 1], [4, 3, 2, 1, 0])
    wavefront = along(0, SLICES, lanes, 5)
    r = along(1, 4, lanes, 5) * 2 + along(2, 2, lanes, 5)
    q = along(3, 4, lanes, 5)
    four = along(4, 4, lanes, 5)
    w_of = r * WORDS + wavefront * (PER * 16) + q * 4 + four
    s_of = r * QUADS + wavefront * PER + q * 0 + four
    both_of = (r + four % 2 * 8) * QUADS + wavefront * PER + q
    s_here = four + (r + q + wavefront) * 0 < PER
    both_here = q + (r + four + wavefront) * 0 < PER
    if PDL:
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    if MATES > 1:
        spread: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [SLICES, 1], [1, 0]))
        number = gl.arange(0, ROWS, layout=spread)
        chosen = gl.load(rhs_ptr + number, mask=number < pairs, other=-1).to(gl.int32)
        listed = gl.inline_asm_elementwise(
            RANKS[ROWS // 32], RANKS_OF[ROWS // 32], [chosen], gl.int32, is_pure=True, pack=ROWS // 32
        )
        items = gl.max(gl.where(listed >> 16 < 0x4000, listed >> 16, -1), axis=0) + 1
    else:
        items = pairs
    units = items * TILES
    begin = gl.program_id(0) * units // gl.num_programs(0)
    turns = ((gl.program_id(0) + 1) * units // gl.num_programs(0) - begin) * EACH
    item = begin // TILES
    if MATES > 1:
        expert, mates = _find(listed, number, item, MATES)
        soon = expert
    else:
        expert = gl.load(rhs_ptr + item).to(gl.int32)
        mates = (item,)
        # The next tile's expert is looked up a tile before.
        soon = gl.load(rhs_ptr + gl.minimum((begin + 1 // EACH) // TILES, items - 1)).to(gl.int32)
    # All of a row of x at once, but of several rows what registers hold.
    AT_ONCE: gl.constexpr = PARTS * PER if MATES == 1 or PER == 3 else PER
    given = _rows(x_ptr, lhs_ptr, mates, divisor, 0, AT_ONCE, DEPTH, BITS, HAS_LHS, SLICES, PER, MATES)
    row = (expert.to(gl.int64) * TILES + begin % TILES) * 16
    w_at = w_ptr + row * WORDS + w_of
    s_at = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    b_at = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    words = _codes(w_at, True, 0, SLICES, PER, 8 * WORDS)
    s_low = gl.load(s_at + s_of, mask=s_here, other=0)
    s_high = gl.load(s_at + (s_of + 8 * QUADS), mask=s_here, other=0)
    s_both = gl.load(gl.where(four < 2, b_at + both_of, s_at + both_of), mask=both_here, other=0)
    NUMBER: gl.constexpr = PARTS * PER // AT_ONCE * ceil2(AT_ONCE) * 4
    memory = gl.allocate_shared_memory(
        gl.int32, [NUMBER * SLICES * MATES * 8, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    )
    if MATES == 1:
        held = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
            gl.int32, [NUMBER, SLICES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
        )
    else:
        held = memory._reinterpret(  # noqa: SLF001
            gl.int32, [NUMBER, SLICES, MATES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
        )
    parts = _hold(
        memory, held, given, x_ptr, lhs_ptr, mates, divisor, lanes, AT_ONCE, DEPTH, BITS, HAS_LHS, SLICES, PER, MATES
    )
    # Lanes keep results of some tiles, with a gate of both matrices. With one row of x all quarters have the same.
    KEPT: gl.constexpr = 1 if MATES == 1 else 2
    TURNS: gl.constexpr = 8 if MATES == 1 else 2 * KEPT
    kept = ()
    for _ in gl.static_range(KEPT):
        kept = kept + (gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes),)
    keeper = q * 2 if MATES == 1 else q * 0
    keeper = keeper + four // 2 + (r + wavefront) * 0
    since = 0
    for turn in range(turns):
        value = gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes)
        more = turn + 1 < turns
        unit = begin + (turn + 1) // EACH
        following = unit // TILES
        onto = mates
        if MATES > 1:
            if more & (following != item):
                soon, onto = _find(listed, number, following, MATES)
        else:
            onto = (following,)
        row = (soon.to(gl.int64) * TILES + unit % TILES) * 16
        if GATED:
            second = (turn + 1) % 2 == 1
            w_next = gl.where(second, up_ptr, w_ptr) + row * WORDS + w_of
            s_next = gl.where(second, up_scales_ptr, scales_ptr).to(gl.pointer_type(kind), bitcast=True) + row * QUADS
            b_next = gl.where(second, up_biases_ptr, biases_ptr).to(gl.pointer_type(kind), bitcast=True) + row * QUADS
        else:
            w_next = w_ptr + row * WORDS + w_of
            s_next = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
            b_next = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
        if MATES == 1:
            soon = gl.load(rhs_ptr + gl.minimum((begin + (turn + 2) // EACH) // TILES, items - 1)).to(gl.int32)
        for part in gl.static_range(PARTS):
            here, low, high, mixed = words, s_low, s_high, s_both
            if part + 1 < PARTS:
                words = _codes(w_at, True, part + 1, SLICES, PER, 8 * WORDS)
                s_low = gl.load(s_at + (s_of + (part + 1) * SLICES * PER), mask=s_here, other=0)
                s_high = gl.load(s_at + (s_of + ((part + 1) * SLICES * PER + 8 * QUADS)), mask=s_here, other=0)
                of_both = both_of + (part + 1) * SLICES * PER
                s_both = gl.load(gl.where(four < 2, b_at + of_both, s_at + of_both), mask=both_here, other=0)
            else:
                words = _codes(w_next, more, 0, SLICES, PER, 8 * WORDS)
                s_low = gl.load(s_next + s_of, mask=s_here & more, other=0)
                s_high = gl.load(s_next + (s_of + 8 * QUADS), mask=s_here & more, other=0)
                s_both = gl.load(gl.where(four < 2, b_next + both_of, s_next + both_of), mask=both_here & more, other=0)
            # The compiler moves loads down to where their registers come free, but not past this.
            gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
            products = ()
            for c in gl.static_range(PER):
                xs = _held(held, part * PER + c, lanes, MATES)
                products = products + (
                    gl.inline_asm_elementwise(
                        PRODUCT[BITS], PRODUCT_OF, [here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3]],
                        gl.float32, is_pure=True, pack=4,
                    ),
                )  # fmt: skip
            low, high, mixed = _by_two(low, HALVES), _by_two(high, HALVES), _by_two(mixed, HALVES)
            own = parts[part // 2]
            if PER == 4:
                of = [products[0], products[1], products[2], products[3], low, high, mixed, own]
            else:
                of = [products[0], products[1], products[2], low, high, mixed, own]
            sums = gl.inline_asm_elementwise(
                FINISH[2 * PER + part % 2], FINISH_OF[PER], of, gl.float32, is_pure=True, pack=4
            )
            # The first is added to nothing only with a gate: as it takes fewer registers so, and without a gate more.
            value = sums if part == 0 and not GATED else value + sums
        w_at, s_at, b_at = w_next, s_next, b_next
        taken = ()
        for one in gl.static_range(KEPT):
            taken = taken + (gl.where(keeper + 2 * one == turn - since, value, kept[one]),)
        kept = taken
        if (turn - since == TURNS - 1) | (not more) | (following != item):
            first = (begin + since // EACH) % TILES
            for one in gl.static_range(KEPT):
                _give(kept[one], out_ptr, mates, first, 2 * one, turn - since, lanes, TILES, GATED, MATES)
            since = turn + 1
        if more & (following != item):
            item = following
            again = False
            for mate in gl.static_range(MATES):
                again = again | HAS_LHS | (onto[mate] // divisor != mates[mate] // divisor)
            mates = onto
            if again:
                others = _rows(x_ptr, lhs_ptr, mates, divisor, 0, AT_ONCE, DEPTH, BITS, HAS_LHS, SLICES, PER, MATES)
                parts = _hold(
                    memory, held, others, x_ptr, lhs_ptr, mates, divisor, lanes, AT_ONCE,
                    DEPTH, BITS, HAS_LHS, SLICES, PER, MATES,
                )  # fmt: skip


@gluon.jit
def _give(
    kept, out_ptr, mates, first, before, last,
    lanes: gl.constexpr, TILES: gl.constexpr, GATED: gl.constexpr, MATES: gl.constexpr,
):  # fmt: skip
    """Sum what wavefronts kept of turns of one item, and write it.

    Args:
        kept: Results of turns.
        out_ptr: The output.
        mates: Pairs of the item.
        first: Tile of the first of these turns.
        before: Turns that others keep, counted from the first.
        last: The last of these turns.
        lanes: Layout of them.
        TILES: Of a matrix.
        GATED: Whether every second turn is of the second matrix.
        MATES: Rows of x.
    """
    whole = gl.sum(kept, axis=0)
    left: gl.constexpr = gl.SliceLayout(0, lanes)
    quarter = along(2, 4, left, 4)
    four = along(3, 4, left, 4)
    of = four // 2 + (quarter * 2 if MATES == 1 else quarter * 0) + before
    of += (along(0, 4, left, 4) + along(1, 2, left, 4)) * 0
    into = of * 0 + mates[0]
    there = of <= last
    for mate in gl.static_range(1, MATES):
        into = gl.where(quarter == mate, mates[mate], into)
        # A mate that there is not would write what the first one writes.
        there = there & ((quarter != mate) | (mates[mate] != mates[0]))
    tile = first + (of // 2 if GATED else of)
    at = (into.to(gl.int64) * TILES + tile) * 16
    at += four % 2 * 8 + along(0, 4, left, 4) * 2 + along(1, 2, left, 4)
    if GATED:
        at, _ = _matrices(at)
        there, _ = _matrices(there.to(gl.int32))
        gate, up = _matrices(whole)
        gl.store(out_ptr + at, (gate / (1.0 + gl.exp(-gate)) * up).to(gl.bfloat16), mask=there != 0)
    else:
        gl.store(out_ptr + at, whole.to(gl.bfloat16), mask=there)


@gluon.jit
def _matrices(t):
    """Return what lanes have of the first matrix and of the second."""
    return t.reshape([4, 2, 4, 2, 2]).permute([0, 1, 2, 4, 3]).split()
