"""Some rows of x in bfloat16, each against its expert's weights of 4 bits, on NVIDIA: programs walk over tiles.

Pairs of a row and an expert are brought together by expert, four at a time: such items are a list of tiles of 16 rows
of weights. Each program takes a piece of it, so that it seldom meets another item; with a gate, a tile of both
matrices. Its wavefronts share K, and the next tile's weights are under way while these are multiplied. Layouts are
said, not found, and lanes unpack what they load (``mma.py``, which says what lies where).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import along, begin_behind, made, numbers_of, said, words_of
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_persistent_ptx as blocks

MATES = gl.constexpr(blocks.MATES)
PAIRS, PAIRS_OF = gl.constexpr(blocks.pairs()), gl.constexpr(blocks.constraints("r", "r"))
PRODUCT, PRODUCT_OF = gl.constexpr(blocks.product()), gl.constexpr(blocks.constraints("f", "rrrrrr"))
RANKS = gl.constexpr({words: blocks.ranks(words) for words in (1, 2, 4, 8)})
RANKS_OF = gl.constexpr({words: blocks.ranks_of(words) for words in (1, 2, 4, 8)})
SUMS, SUMS_OF = gl.constexpr(blocks.sums()), gl.constexpr(blocks.constraints("f", "rrrr"))
SPREAD = gl.constexpr({chunks: blocks.spread(chunks) for chunks in (3, 4)})
SPREAD_OF = gl.constexpr({chunks: blocks.constraints("r", "f" * chunks) for chunks in (3, 4)})
FINISH = gl.constexpr({chunks: blocks.finish(chunks) for chunks in (3, 4)})
FINISH_OF = gl.constexpr({chunks: blocks.constraints("f", "f" * chunks + "rrrr") for chunks in (3, 4)})
KEPT, TURNS = gl.constexpr(2), gl.constexpr(4)
"""Tensors of results of tiles that lanes keep, and how many tiles, with a gate of both matrices."""


@gluon.jit
def _codes(at, here, PER: gl.constexpr, EIGHT: gl.constexpr):
    """Return words of chunks, of rows r and r + 8 each."""
    words = ()
    for c in gl.static_range(PER):
        words = words + (gl.load(at + c * 16, mask=here, eviction_policy="evict_first"),)
        words = words + (gl.load(at + (c * 16 + EIGHT), mask=here, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _beside(s_at, b_at, s_of, both_of, s_here, both_here, four, EIGHT: gl.constexpr):
    """Return words of the scales of rows r and of r + 8, and of biases and scales of both, of chunks' halves."""
    low = gl.load(s_at + s_of, mask=s_here, other=0)
    high = gl.load(s_at + (s_of + EIGHT), mask=s_here, other=0)
    both = gl.load(gl.where(four < 2, b_at + both_of, s_at + both_of), mask=both_here, other=0)
    return low, high, both


@gluon.jit
def _by_two(scales, HALVES: gl.constexpr):
    """Return words of the scales of a chunk's halves: of groups as they stand, or one's as two."""
    return scales if HALVES else (scales.to(gl.int32) & 0xFFFF) * 0x10001


@gluon.jit
def _rows(
    x_ptr, lhs_ptr, mates, divisor,
    DEPTH: gl.constexpr, HAS_LHS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr,
):  # fmt: skip
    """Load pairs' rows of x as ``held`` has them: chunks (four), words, wavefronts, mates, columns, quarters."""
    spread: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [SLICES, 1], [1, 0])
    number = gl.arange(0, 4 * 32 * SLICES * MATES, layout=gl.SliceLayout(1, spread))
    behind = number // (8 * MATES)
    chunk = behind // (4 * SLICES)
    word = (behind % SLICES * PER + chunk % PER) * 16
    word += number % 4 * 4 + behind // SLICES % 4
    # Even columns have the first half of a chunk, which quarters 0 and 1 hold; half of it are zeros.
    given = (number % 4 // 2 == number // 4 % 2) & (chunk < PER)
    at = word * 4
    source = at * 0
    for mate in gl.static_range(MATES):
        source = gl.where(number // 8 % MATES == mate, _source(lhs_ptr, mates[mate], divisor, HAS_LHS), source)
    at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + (source.to(gl.int64) * (DEPTH // 2) + at)
    four = gl.arange(0, 4, layout=gl.SliceLayout(0, spread))
    return gl.load(at.expand_dims(1) + four.expand_dims(0), mask=given.expand_dims(1), other=0)


@gluon.jit
def _source(lhs_ptr, pair, divisor, HAS_LHS: gl.constexpr):
    """Return a pair's row of x."""
    return gl.load(lhs_ptr + pair).to(gl.int32) if HAS_LHS else pair // divisor


@gluon.jit
def _held(held, chunk, lanes: gl.constexpr):
    """Return x for each of the four words that a lane has of a chunk."""
    xs = ()
    for k in gl.static_range(4):
        xs = xs + (held.index(chunk * 4 + k).load(lanes),)
    return xs


@gluon.jit
def _hold(memory, held, x, lanes: gl.constexpr, PER: gl.constexpr):
    """Bring rows of x into order in shared memory, and return sums of their groups as an operand."""
    memory.store(words_of(PAIRS, PAIRS_OF, [x]))
    # Said here, or Triton has a barrier where x is first read: for each tile.
    gl.thread_barrier()
    sums = []
    for c in gl.static_range(PER):
        xs = _held(held, c, lanes)
        of = [xs[0], xs[1], xs[2], xs[3]]
        sums = sums + [numbers_of(SUMS, SUMS_OF, of)]
    return words_of(made(SPREAD, PER), made(SPREAD_OF, PER), sums)


@gluon.jit
def _find(listed, number, item):
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
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, rhs_ptr,
    pairs, divisor,
    DEPTH: gl.constexpr, GROUP: gl.constexpr, TILES: gl.constexpr, GATED: gl.constexpr, HAS_LHS: gl.constexpr,
    ROWS: gl.constexpr, SLICES: gl.constexpr, PER: gl.constexpr,
):  # fmt: skip
    """out[p] = x[lhs[p]] @ w[rhs[p]].T, or silu(x @ w.T) * (x @ up.T): each program a piece of all items' tiles.

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
        DEPTH: K, SLICES * PER * 128.
        GROUP: 64 or 128.
        TILES: Of 16 rows of a matrix.
        GATED: Whether there are two matrices.
        HAS_LHS: Whether rows of x are named.
        ROWS: The power of two from ``pairs``, 32 to 256.
        SLICES: Wavefronts.
        PER: Chunks of 16 words that a wavefront takes: 3 or 4.
    """
    WORDS: gl.constexpr = DEPTH // 8
    EACH: gl.constexpr = 2 if GATED else 1
    # Elements of a tensor of scales in a row, of a chunk each: words of its halves, or one for both.
    QUADS: gl.constexpr = WORDS // 16
    HALVES: gl.constexpr = GROUP == 64
    kind: gl.constexpr = gl.pointer_type(gl.int32 if HALVES else gl.int16)
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
    begin_behind()
    spread: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [SLICES, 1], [1, 0]))
    number = gl.arange(0, ROWS, layout=spread)
    chosen = gl.load(rhs_ptr + number, mask=number < pairs, other=-1).to(gl.int32)
    listed = gl.inline_asm_elementwise(
        RANKS[ROWS // 32], RANKS_OF[ROWS // 32], [chosen], gl.int32, is_pure=True, pack=ROWS // 32
    )
    items = gl.max(gl.where(listed >> 16 < 0x4000, listed >> 16, -1), axis=0) + 1
    units = items * TILES
    begin = gl.program_id(0) * units // gl.num_programs(0)
    turns = ((gl.program_id(0) + 1) * units // gl.num_programs(0) - begin) * EACH
    item = begin // TILES
    expert, mates = _find(listed, number, item)
    given = _rows(x_ptr, lhs_ptr, mates, divisor, DEPTH, HAS_LHS, SLICES, PER)
    row = (expert.to(gl.int64) * TILES + begin % TILES) * 16
    s_at, b_at = scales_ptr.to(kind, bitcast=True) + row * QUADS, biases_ptr.to(kind, bitcast=True) + row * QUADS
    words = _codes(w_ptr + row * WORDS + w_of, True, PER, 8 * WORDS)
    beside = _beside(s_at, b_at, s_of, both_of, s_here, both_here, four, 8 * QUADS)
    memory = gl.allocate_shared_memory(
        gl.int32, [4 * 4 * SLICES * MATES * 8, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    )
    held = memory._reinterpret(  # noqa: SLF001  as Gluon's own tutorials do
        gl.int32, [4 * 4, SLICES, MATES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    )
    own = _hold(memory, held, given, lanes, PER)
    kept = ()
    for _ in gl.static_range(KEPT):
        kept = kept + (gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes),)
    keeper = four // 2 + (q + r + wavefront) * 0
    since = 0
    for turn in range(turns):
        more = turn + 1 < turns
        unit = begin + (turn + 1) // EACH
        following = unit // TILES
        onto = mates
        if more & (following != item):
            expert, onto = _find(listed, number, following)
        row = (expert.to(gl.int64) * TILES + unit % TILES) * 16
        w_next, s_next, b_next = w_ptr, scales_ptr, biases_ptr
        if GATED:
            second = (turn + 1) % 2 == 1
            w_next = gl.where(second, up_ptr, w_ptr)
            s_next, b_next = gl.where(second, up_scales_ptr, scales_ptr), gl.where(second, up_biases_ptr, biases_ptr)
        s_at, b_at = s_next.to(kind, bitcast=True) + row * QUADS, b_next.to(kind, bitcast=True) + row * QUADS
        here, low, high, mixed = words, beside[0], beside[1], beside[2]
        words = _codes(w_next + row * WORDS + w_of, more, PER, 8 * WORDS)
        beside = _beside(s_at, b_at, s_of, both_of, s_here & more, both_here & more, four, 8 * QUADS)
        # The compiler moves loads down to where their registers come free, but not past this.
        said("bar.warp.sync 0xffffffff; // $0")
        of = []
        for c in gl.static_range(PER):
            xs = _held(held, c, lanes)
            parts = [here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3]]
            of = of + [numbers_of(PRODUCT, PRODUCT_OF, parts)]
        of = of + [_by_two(low, HALVES), _by_two(high, HALVES), _by_two(mixed, HALVES), own]
        value = numbers_of(made(FINISH, PER), made(FINISH_OF, PER), of)
        if GATED:
            # Nothing is added: it takes fewer registers so, and without a gate more.
            value = gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes) + value
        taken = ()
        for one in gl.static_range(KEPT):
            taken = taken + (gl.where(keeper + 2 * one == turn - since, value, kept[one]),)
        kept = taken
        if (turn - since == TURNS - 1) | (not more) | (following != item):
            first = (begin + since // EACH) % TILES
            for one in gl.static_range(KEPT):
                _give(kept[one], out_ptr, mates, first, 2 * one, turn - since, lanes, TILES, GATED)
            since = turn + 1
        if more & (following != item):
            item = following
            again = False
            for mate in gl.static_range(MATES):
                again = again | HAS_LHS | (onto[mate] // divisor != mates[mate] // divisor)
            mates = onto
            if again:
                others = _rows(x_ptr, lhs_ptr, mates, divisor, DEPTH, HAS_LHS, SLICES, PER)
                own = _hold(memory, held, others, lanes, PER)


@gluon.jit
def _give(kept, out_ptr, mates, first, before, last, lanes: gl.constexpr, TILES: gl.constexpr, GATED: gl.constexpr):
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
    """
    whole = gl.sum(kept, axis=0)
    left: gl.constexpr = gl.SliceLayout(0, lanes)
    quarter = along(2, 4, left, 4)
    four = along(3, 4, left, 4)
    of = four // 2 + before
    of += (quarter + along(0, 4, left, 4) + along(1, 2, left, 4)) * 0
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
