"""A few rows of x in bfloat16, each against the 4-bit weights of its expert, on NVIDIA: programs that walk over tiles.

The pairs of a row and an expert, one after the other, are a list of tiles of 16 rows of weights. Each program takes a
piece of it, so that it seldom meets another expert or another row of x; with a gate, a tile of both matrices. Its
wavefronts share K, and the next tile's weights are under way while these are multiplied. Layouts are said, not found,
and lanes unpack what they load (``quantized_matmul/kernels/blocks.py``, which says what lies where).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.ops.gather_qmm.kernels import blocks

PAIRS = gl.constexpr(blocks.pairs())
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCT = gl.constexpr(blocks.product())
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "rrrrrr"))
RANKS = gl.constexpr({words: blocks.ranks(words) for words in (1, 2, 4)})
RANKS_OF = gl.constexpr({words: blocks.ranks_of(words) for words in (1, 2, 4)})
FINISH_2, FINISH_2_OF = gl.constexpr(blocks.finish(2)), gl.constexpr(blocks.constraints("f", "ffrrrr"))
FINISH_3, FINISH_3_OF = gl.constexpr(blocks.finish(3)), gl.constexpr(blocks.constraints("f", "fffrrrr"))
FINISH_4, FINISH_4_OF = gl.constexpr(blocks.finish(4)), gl.constexpr(blocks.constraints("f", "ffffrrrr"))


@gluon.constexpr_function
def _axis(parent, axis, rank):
    """Return the layout of one axis of a tensor."""
    layout = parent
    for other in reversed(range(rank)):
        if other != axis:
            layout = gl.SliceLayout(other, layout)
    return layout


@gluon.constexpr_function
def _ceil2(count):
    """Return the next power of two."""
    return 1 << (count - 1).bit_length()


@gluon.jit
def _along(AXIS: gl.constexpr, SIZE: gl.constexpr, parent: gl.constexpr, RANK: gl.constexpr):
    """Return 0, 1, … along an axis, the others of size one."""
    layout: gl.constexpr = _axis(parent, AXIS, RANK)
    t = gl.arange(0, SIZE, layout=layout)
    for other in gl.static_range(RANK):
        if other != AXIS:
            t = t.expand_dims(other)
    return t


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
def _by_two(scales, GROUP: gl.constexpr):
    """Return words of two groups' scales: as they stand, or one of 128 codes as two."""
    return scales if GROUP == 64 else (scales.to(gl.int32) & 0xFFFF) * 0x10001


@gluon.jit
def _read(row_ptr, PARTS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr):
    """Load a row of x in the order of ``held``: chunks, words of a lane's four, wavefronts, odd columns, quarters."""
    NUMBER: gl.constexpr = _ceil2(PARTS * PER) * 32 * SLICES
    spread: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [SLICES, 1], [1, 0])
    number = gl.arange(0, NUMBER, layout=gl.SliceLayout(1, spread))
    chunk = number // (32 * SLICES)
    word = ((chunk // PER * SLICES + number // 8 % SLICES) * PER + chunk % PER) * 16
    word += number % 4 * 4 + number // (8 * SLICES) % 4
    # Even columns have the first group of a chunk, which quarters 0 and 1 hold; half of it are zeros.
    given = (number % 4 // 2 == number // 4 % 2) & (chunk < PARTS * PER)
    at = row_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + word.expand_dims(1) * 4
    at += gl.arange(0, 4, layout=gl.SliceLayout(0, spread)).expand_dims(0)
    return gl.load(at, mask=given.expand_dims(1), other=0)


@gluon.jit
def _read_sums(row_ptr, PARTS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr):
    """Load a row of x by groups of 64."""
    grouped: gl.constexpr = gl.BlockedLayout([1, 1, 16], [1, 8, 4], [SLICES, 1, 1], [2, 1, 0])
    group = _along(1, 8, grouped, 3)
    at = _along(0, SLICES, grouped, 3) * (PER * 128) + group * 64 + _along(2, 64, grouped, 3)
    found = ()
    for part in gl.static_range(PARTS):
        if PER == 4:
            found = found + (gl.load(row_ptr + (part * SLICES * 512 + at)),)
        else:
            found = found + (gl.load(row_ptr + (part * SLICES * PER * 128 + at), mask=group < 2 * PER, other=0.0),)
    return found


@gluon.jit
def _hold(memory, xs, sums, lanes: gl.constexpr, PARTS: gl.constexpr, SLICES: gl.constexpr, MATES: gl.constexpr):
    NUMBER: gl.constexpr = memory.shape[0]
    """Bring rows of x into order in shared memory, and return sums of their groups as operands of a product.

    A sum is in two parts of bfloat16, in the even columns and the odd ones; the second half of it is -128 times that.
    """
    for mate in gl.static_range(MATES):
        x = gl.inline_asm_elementwise(PAIRS, PAIRS_OF, [xs[mate]], gl.int32, is_pure=True, pack=4)
        memory.slice(mate, 1, dim=2).store(x.reshape([NUMBER, SLICES, 1, 8, 4]))
    parts = ()
    for part in gl.static_range(PARTS):
        own = _parts(sums[part], lanes, SLICES)
        for mate in gl.static_range(1, MATES):
            own = gl.where(_along(1, 4, lanes, 5) == mate, _parts(sums[mate * PARTS + part], lanes, SLICES), own)
        parts = parts + (own,)
    # Said here, or Triton has a barrier where x is first read: for each tile.
    gl.thread_barrier()
    return parts


@gluon.jit
def _parts(rows, lanes: gl.constexpr, SLICES: gl.constexpr):
    """Return sums of groups of a row as ``_hold`` does, the same for each row."""
    odd = _along(2, 2, lanes, 5) + _along(1, 4, lanes, 5) * 0
    total = gl.sum(rows.to(gl.float32), axis=2)
    total = gl.join(total, total * -128.0).reshape([SLICES, 4, 2, 2]).permute([0, 1, 3, 2]).reshape([SLICES, 4, 4])
    total = gl.convert_layout(total, gl.SliceLayout(1, gl.SliceLayout(2, lanes))).expand_dims(1).expand_dims(2)
    one = total.to(gl.bfloat16).to(gl.float32)
    two = (total - one).to(gl.bfloat16).to(gl.float32)
    return gl.where(odd == 0, one, two).to(gl.int32, bitcast=True)


@gluon.jit
def _rows(
    x_ptr, lhs_ptr, mates, divisor,
    DEPTH: gl.constexpr, HAS_LHS: gl.constexpr, PARTS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr,
    MATES: gl.constexpr,
):  # fmt: skip
    """Load the rows of x of some pairs, as ``_read`` and ``_read_sums`` do."""
    xs, sums = (), ()
    for mate in gl.static_range(MATES):
        source = gl.load(lhs_ptr + mates[mate]).to(gl.int32) if HAS_LHS else mates[mate] // divisor
        row_ptr = x_ptr + source.to(gl.int64) * DEPTH
        xs = xs + (_read(row_ptr, PARTS, SLICES, PER),)
        sums = sums + _read_sums(row_ptr, PARTS, SLICES, PER)
    return xs, sums


@gluon.jit
def _find(chosen, ranks, number, item, MATES: gl.constexpr):
    """Return the expert of an item of the list, and its pairs: the first again where there are fewer than MATES."""
    first = gl.max(gl.where(ranks >> 16 == item, number, -1), axis=0)
    expert = gl.max(gl.where(number == first, chosen, -1), axis=0)
    before = gl.max(gl.where(number == first, ranks & 0xFFFF, -1), axis=0)
    mates = (first,)
    for mate in gl.static_range(1, MATES):
        other = gl.max(gl.where((chosen == expert) & ((ranks & 0xFFFF) == before + mate), number, -1), axis=0)
        mates = mates + (gl.where(other < 0, first, other),)
    return expert, mates


@gluon.jit
def walkers_kernel(
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
        w_ptr: [experts, 16 * TILES, DEPTH / 8] words.
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
        DEPTH: K, a multiple of SLICES * PER * 128.
        GROUP: 64 or 128.
        TILES: Of 16 rows of a matrix.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        MATES: Pairs of one expert that share a tile: 1 or 4.
        ROWS: With MATES, the power of two from ``pairs``, 32 to 128.
        SLICES: Wavefronts.
        PER: Chunks of 128 codes that a wavefront takes at a step: 3 or 4.
        PDL: Whether the kernel begins before the one before it is done.
    """
    PARTS: gl.constexpr = DEPTH // (128 * PER * SLICES)
    EACH: gl.constexpr = 2 if GATED else 1
    # Elements of a tensor of scales in a row: words of two groups, or groups.
    QUADS: gl.constexpr = DEPTH // 128
    kind: gl.constexpr = gl.int32 if GROUP == 64 else gl.int16
    # Wavefronts, rows (pairs of them, one of two), quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 4, 2, 4, 1], [SLICES, 1, 1, 1, 1], [4, 3, 2, 1, 0])
    # Without rows, if there is one of x: what differs in every second of them alone.
    columns: gl.constexpr = gl.SliceLayout(1, lanes)
    wavefront = _along(0, SLICES, lanes, 5)
    r = _along(1, 4, lanes, 5) * 2 + _along(2, 2, lanes, 5)
    q = _along(3, 4, lanes, 5)
    four = _along(4, 4, lanes, 5)
    w_of = r * (DEPTH // 8) + wavefront * (PER * 16) + q * 4 + four
    s_of = r * QUADS + wavefront * PER + q * 0 + four
    both_of = (r + four % 2 * 8) * QUADS + wavefront * PER + q
    s_here = four + (r + q + wavefront) * 0 < PER
    both_here = q + (r + four + wavefront) * 0 < PER
    if PDL:
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    if MATES > 1:
        listed: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [SLICES, 1], [1, 0]))
        number = gl.arange(0, ROWS, layout=listed)
        chosen = gl.load(rhs_ptr + number, mask=number < pairs, other=-1).to(gl.int32)
        ranks = gl.inline_asm_elementwise(
            RANKS[ROWS // 32], RANKS_OF[ROWS // 32], [chosen], gl.int32, is_pure=True, pack=ROWS // 32
        )
        items = gl.max(gl.where(ranks >> 16 < 0x4000, ranks >> 16, -1), axis=0) + 1
    else:
        items = pairs
    units = items * TILES
    begin = gl.program_id(0) * units // gl.num_programs(0)
    turns = ((gl.program_id(0) + 1) * units // gl.num_programs(0) - begin) * EACH
    item = begin // TILES
    if MATES > 1:
        expert, mates = _find(chosen, ranks, number, item, MATES)
        soon = expert
    else:
        expert = gl.load(rhs_ptr + item).to(gl.int32)
        mates = (item,)
        # The next tile's expert is looked up a tile before.
        soon = gl.load(rhs_ptr + gl.minimum((begin + 1 // EACH) // TILES, items - 1)).to(gl.int32)
    given, sums = _rows(x_ptr, lhs_ptr, mates, divisor, DEPTH, HAS_LHS, PARTS, SLICES, PER, MATES)
    row = (expert.to(gl.int64) * TILES + begin % TILES) * 16
    w_at = w_ptr + row * (DEPTH // 8) + w_of
    s_at = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    b_at = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    words = _codes(w_at, True, 0, SLICES, PER, DEPTH)
    s_low = gl.load(s_at + s_of, mask=s_here, other=0)
    s_high = gl.load(s_at + (s_of + 8 * QUADS), mask=s_here, other=0)
    s_both = gl.load(gl.where(four < 2, b_at + both_of, s_at + both_of), mask=both_here, other=0)
    NUMBER: gl.constexpr = _ceil2(PARTS * PER) * 4
    memory = gl.allocate_shared_memory(
        gl.int32, [NUMBER, SLICES, MATES, 8, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    )
    held = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
        gl.int32, [NUMBER, SLICES, MATES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    )
    if MATES == 1:
        held = memory._reinterpret(  # noqa: SLF001
            gl.int32, [NUMBER, SLICES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
        )
    parts = _hold(memory, given, sums, lanes, PARTS, SLICES, MATES)
    # Lanes keep results of eight tiles, of both matrices of four. With one row of x all quarters have the same.
    kept = ()
    for _ in gl.static_range(MATES):
        kept = kept + (gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes),)
    keeper = q * 2 if MATES == 1 else q * 0
    keeper = keeper + four // 2 + (r + wavefront) * 0
    since = 0
    for turn in range(turns):
        value = kept[0] * 0.0
        more = turn + 1 < turns
        unit = begin + (turn + 1) // EACH
        following = unit // TILES
        onto = mates
        if MATES > 1:
            if more & (following != item):
                soon, onto = _find(chosen, ranks, number, following, MATES)
        else:
            onto = (following,)
        row = (soon.to(gl.int64) * TILES + unit % TILES) * 16
        if GATED:
            second = (turn + 1) % 2 == 1
            w_next = gl.where(second, up_ptr, w_ptr) + row * (DEPTH // 8) + w_of
            s_next = gl.where(second, up_scales_ptr, scales_ptr).to(gl.pointer_type(kind), bitcast=True) + row * QUADS
            b_next = gl.where(second, up_biases_ptr, biases_ptr).to(gl.pointer_type(kind), bitcast=True) + row * QUADS
        else:
            w_next = w_ptr + row * (DEPTH // 8) + w_of
            s_next = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
            b_next = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
        if MATES == 1:
            soon = gl.load(rhs_ptr + gl.minimum((begin + (turn + 2) // EACH) // TILES, items - 1)).to(gl.int32)
        for part in gl.static_range(PARTS):
            here, low, high, mixed = words, s_low, s_high, s_both
            if part + 1 < PARTS:
                words = _codes(w_at, True, part + 1, SLICES, PER, DEPTH)
                by: gl.constexpr = (part + 1) * SLICES * PER
                s_low = gl.load(s_at + (s_of + by), mask=s_here, other=0)
                s_high = gl.load(s_at + (s_of + (by + 8 * QUADS)), mask=s_here, other=0)
                s_both = gl.load(gl.where(four < 2, b_at + both_of, s_at + both_of) + by, mask=both_here, other=0)
            else:
                words = _codes(w_next, more, 0, SLICES, PER, DEPTH)
                s_low = gl.load(s_next + s_of, mask=s_here & more, other=0)
                s_high = gl.load(s_next + (s_of + 8 * QUADS), mask=s_here & more, other=0)
                s_both = gl.load(gl.where(four < 2, b_next + both_of, s_next + both_of), mask=both_here & more, other=0)
            # The compiler moves loads down to where their registers come free, but not past this.
            gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
            products = ()
            for c in gl.static_range(PER):
                xs = ()
                for k in gl.static_range(4):
                    one = held.index((part * PER + c) * 4 + k)
                    if MATES == 1:
                        xs = xs + (one.load(columns).expand_dims(1),)
                    else:
                        xs = xs + (one.load(lanes),)
                products = products + (
                    gl.inline_asm_elementwise(
                        PRODUCT, PRODUCT_OF, [here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3]], gl.float32,
                        is_pure=True, pack=4,
                    ),
                )  # fmt: skip
            low, high, mixed = _by_two(low, GROUP), _by_two(high, GROUP), _by_two(mixed, GROUP)
            if PER == 4:
                value += gl.inline_asm_elementwise(
                    FINISH_4, FINISH_4_OF,
                    [products[0], products[1], products[2], products[3], low, high, mixed, parts[part]],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
            elif PER == 3:
                value += gl.inline_asm_elementwise(
                    FINISH_3, FINISH_3_OF, [products[0], products[1], products[2], low, high, mixed, parts[part]],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
            else:
                value += gl.inline_asm_elementwise(
                    FINISH_2, FINISH_2_OF, [products[0], products[1], low, high, mixed, parts[part]],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
        w_at, s_at, b_at = w_next, s_next, b_next
        taken = ()
        for one in gl.static_range(MATES):
            taken = taken + (gl.where(keeper + 2 * one == turn - since, value, kept[one]),)
        kept = taken
        if (turn - since == 7) | (not more) | (following != item):
            first = (begin + since // EACH) % TILES
            for one in gl.static_range(MATES):
                _give(kept[one], out_ptr, mates, first, 2 * one, turn - since, lanes, TILES, GATED, MATES)
            since = turn + 1
        if more & (following != item):
            item = following
            again = False
            for mate in gl.static_range(MATES):
                again = again | HAS_LHS | (onto[mate] // divisor != mates[mate] // divisor)
            mates = onto
            if again:
                others, of_others = _rows(x_ptr, lhs_ptr, mates, divisor, DEPTH, HAS_LHS, PARTS, SLICES, PER, MATES)
                parts = _hold(memory, others, of_others, lanes, PARTS, SLICES, MATES)


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
    quarter = _along(2, 4, left, 4)
    four = _along(3, 4, left, 4)
    of = four // 2 + (quarter * 2 if MATES == 1 else quarter * 0) + before
    of += (_along(0, 4, left, 4) + _along(1, 2, left, 4)) * 0
    into = of * 0 + mates[0]
    there = of <= last
    for mate in gl.static_range(1, MATES):
        into = gl.where(quarter == mate, mates[mate], into)
        # A mate that there is not would write what the first one writes.
        there = there & ((quarter != mate) | (mates[mate] != mates[0]))
    tile = first + (of // 2 if GATED else of)
    at = (into.to(gl.int64) * TILES + tile) * 16
    at += four % 2 * 8 + _along(0, 4, left, 4) * 2 + _along(1, 2, left, 4)
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
