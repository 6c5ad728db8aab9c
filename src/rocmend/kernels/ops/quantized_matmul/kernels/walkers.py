"""One row of x in bfloat16 against weights of 4 or 8 bits, on NVIDIA: programs that walk over rows.

A program of a few wavefronts takes 16 rows of weights after another. Its wavefronts have neighbouring parts of K, the
same ones for all rows, so that x is brought into order once, in shared memory. The next rows' weights are under way
while these are multiplied. Layouts are said, not found: a lane loads what it multiplies (``blocks.py``).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.common.along import along, ceil2
from rocmend.kernels.ops.quantized_matmul.kernels import blocks

PAIRS = gl.constexpr(blocks.pairs())
PAIRS_OF_BYTES = gl.constexpr(blocks.pairs_of_bytes())
PAIRS_OF = gl.constexpr(blocks.constraints("r", "r"))
PRODUCT = gl.constexpr(blocks.product())
PRODUCT_OF = gl.constexpr(blocks.constraints("f", "rrrrrr"))
FINISH = gl.constexpr(blocks.finish())
FINISH_OF = gl.constexpr(blocks.constraints("f", "ffffrrrr"))
SUMS = gl.constexpr({bits: blocks.sums(bits) for bits in (4, 8)})
SUMS_OF = gl.constexpr({bits: blocks.constraints("f", "r" * (8 // bits + 1)) for bits in (4, 8)})
SHARED = {slices: blocks.shared(slices) for slices in (2, 4, 8)}
SHARED_OF = gl.constexpr(blocks.constraints("f", "frrr"))
BEGIN = gl.constexpr("mov.u32 $0, global_smem; // $1")
"""Where Triton's shared memory begins, and with it the allocation that lives longest."""


@gluon.constexpr_function
def _shared(slices):
    return SHARED[slices]


@gluon.jit
def _codes(at, here, FIRST: gl.constexpr, SLICES: gl.constexpr, CHUNKS: gl.constexpr, EIGHT: gl.constexpr):
    """Return words of chunks, the one number FIRST of a wavefront's the first, of rows r and r + 8 each."""
    words = ()
    for c in gl.static_range(CHUNKS):
        by = at + ((FIRST + c) % 4 * 16 + (FIRST + c) // 4 * (SLICES * 64))
        words = words + (gl.load(by, mask=here, eviction_policy="evict_first"),)
        words = words + (gl.load(by + EIGHT, mask=here, eviction_policy="evict_first"),)
    return words


@gluon.jit
def _by_two(scales, EACH: gl.constexpr):
    """Return words of two groups' scales: as they stand, or one of 128 codes of four bits as two."""
    return scales if EACH == 64 else (scales.to(gl.int32) & 0xFFFF) * 0x10001


@gluon.jit
def walkers_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    tiles,
    DEPTH: gl.constexpr,
    GROUP: gl.constexpr,
    BITS: gl.constexpr,
    SLICES: gl.constexpr,
    ROUNDS: gl.constexpr,
    CHUNKS: gl.constexpr,
    AHEAD: gl.constexpr,
    PDL: gl.constexpr,
):
    """out[n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, of tiles of 16 rows of w: those of a program, then every grid-th.

    Args:
        x_ptr: [DEPTH].
        w_ptr: [16 * tiles, DEPTH * BITS / 32] words.
        scales_ptr: [16 * tiles, DEPTH / GROUP].
        biases_ptr: The same.
        out_ptr: [16 * tiles].
        tiles: How many there are.
        DEPTH: K, a multiple of SLICES * 512, or of half as much with 8 bits.
        GROUP: 64 or 128 with 4 bits, 32 or 64 with 8.
        BITS: 4 or 8; a code of 8 bits is taken as two of 4, the second of which has 16 times the first one's x.
        SLICES: Wavefronts, each with 512 codes of every SLICES * 512.
        ROUNDS: Tiles of a program at most, 8 at most.
        CHUNKS: Of 128 codes that a wavefront multiplies at a step: 1, 2 or 4.
        AHEAD: Steps whose weights are under way.
        PDL: Weights are read before x is there.
    """
    # Codes of four bits, of a row and of a group.
    FOURS: gl.constexpr = DEPTH * BITS // 4
    EACH: gl.constexpr = GROUP * BITS // 4
    PARTS: gl.constexpr = FOURS // (512 * SLICES)
    STEPS: gl.constexpr = PARTS * 4 // CHUNKS
    # Elements of a tensor of scales in a row: words of two groups, or groups.
    QUADS: gl.constexpr = FOURS // 128
    kind: gl.constexpr = gl.int32 if EACH == 64 else gl.int16
    # Wavefronts, rows (pairs of them, one of two), quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 1, 4], [1, 4, 2, 4, 1], [SLICES, 1, 1, 1, 1], [4, 3, 2, 1, 0])
    # Without rows: what differs in every second of them alone.
    columns: gl.constexpr = gl.SliceLayout(1, lanes)
    wavefront = along(0, SLICES, lanes, 5)
    odd = along(2, 2, lanes, 5)
    r = along(1, 4, lanes, 5) * 2 + odd
    q = along(3, 4, lanes, 5)
    four = along(4, 4, lanes, 5)
    first = gl.program_id(0)
    programs = gl.num_programs(0)
    row = first.to(gl.int64) * 16
    w_at = w_ptr + row * (FOURS // 8) + (r * (FOURS // 8) + wavefront * 64 + q * 4 + four)
    s_all = scales_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    b_all = biases_ptr.to(gl.pointer_type(kind), bitcast=True) + row * QUADS
    s_at = s_all + (r * QUADS + wavefront * 4 + q * 0 + four)
    both = (r + four % 2 * 8) * QUADS + wavefront * 4 + q
    both_at = gl.where(four < 2, b_all + both, s_all + both)
    w_round = programs.to(gl.int64) * (FOURS * 2)
    s_round = programs.to(gl.int64) * (16 * QUADS)
    words = ()
    for step in gl.static_range(AHEAD):
        words = words + _codes(w_at, True, step * CHUNKS, SLICES, CHUNKS, FOURS)
    s_low = gl.load(s_at)
    s_high = gl.load(s_at + 8 * QUADS)
    s_both = gl.load(both_at)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        gl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
        gl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
    # What a lane has of x for its sums, which are asked for together with the rest.
    plain = ()
    for part in gl.static_range(PARTS):
        for at in gl.static_range(8 // BITS):
            word = (part * SLICES + wavefront) * (1024 // BITS) + (r * 4 + q) * (32 // BITS) + at * 4 + four
            plain = plain + (gl.load(x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + word),)
    # x in pairs: parts of K, chunks, words of a lane's four, wavefronts, odd columns, quarters, pairs; half are zeros.
    ALL: gl.constexpr = ceil2(PARTS) * 512 * SLICES
    spread: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [SLICES, 1], [1, 0])
    number = gl.arange(0, ALL // 4, layout=gl.SliceLayout(1, spread))
    part_of = number // (128 * SLICES)
    word = ((part_of * SLICES + number // 8 % SLICES) * 4 + number // (32 * SLICES) % 4) * 16
    word += number % 4 * 4 + number // (8 * SLICES) % 4
    given = (number % 4 // 2 == number // 4 % 2) & (part_of < PARTS)
    x_at = x_ptr.to(gl.pointer_type(gl.int32), bitcast=True) + word.expand_dims(1) * (16 // BITS)
    x_at += gl.arange(0, 4, layout=gl.SliceLayout(0, spread)).expand_dims(0) % (16 // BITS)
    x = gl.load(x_at, mask=given.expand_dims(1), other=0)
    x = gl.inline_asm_elementwise(PAIRS if BITS == 4 else PAIRS_OF_BYTES, PAIRS_OF, [x], gl.int32, is_pure=True, pack=4)
    # x, and behind it what wavefronts add up.
    memory = gl.allocate_shared_memory(gl.int32, [ALL // 4 + 32 * SLICES, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    memory._reinterpret(gl.int32, [ALL // 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])).store(x)  # noqa: SLF001  as
    held = memory._reinterpret(  # noqa: SLF001  Gluon's own tutorials do
        gl.int32, [ALL // (32 * SLICES), SLICES, 2, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    # Sums of x by 64 codes of four bits, each in three parts of bfloat16, which columns hold: two groups, and -128
    # times both, for halves of a code 17 times that.
    parts = ()
    for part in gl.static_range(PARTS):
        of = []
        for at in gl.static_range(8 // BITS):
            of = of + [plain[part * (8 // BITS) + at]]
        of = of + [q * 8 + four * 0]
        total = gl.inline_asm_elementwise(SUMS[BITS], SUMS_OF[BITS], of, gl.float32, is_pure=True, pack=4)
        one = total.to(gl.bfloat16).to(gl.float32)
        two = (total - one).to(gl.bfloat16).to(gl.float32)
        three = (total - one - two).to(gl.bfloat16).to(gl.float32)
        column = r + q * 0 + four * 0 + wavefront * 0
        own = gl.where(column == 0, one, gl.where(column == 1, two, gl.where(column == 2, three, 0.0)))
        parts = parts + (own.to(gl.int32, bitcast=True),)
    # Said here, or Triton has a barrier where x is first read: in each round.
    gl.thread_barrier()
    # All quarters have the same: each keeps two tiles.
    kept = gl.full([SLICES, 4, 2, 4, 4], 0.0, gl.float32, layout=lanes)
    keeper = q + four // 2 * 4
    for turn in range(ROUNDS):
        value = kept * 0.0
        more = first + (turn + 1) * programs < tiles
        w_next = w_at + gl.where(more, w_round, 0)
        for step in gl.static_range(STEPS):
            here, later = (), ()
            for k in gl.static_range(2 * CHUNKS):
                here = here + (words[k],)
            for k in gl.static_range((AHEAD - 1) * 2 * CHUNKS):
                later = later + (words[k + 2 * CHUNKS],)
            if step + AHEAD < STEPS:
                words = later + _codes(w_at, True, (step + AHEAD) * CHUNKS, SLICES, CHUNKS, FOURS)
            else:
                words = later + _codes(w_next, more, (step + AHEAD - STEPS) * CHUNKS, SLICES, CHUNKS, FOURS)
            if step * CHUNKS % 4 == 0:
                low, high, mixed = s_low, s_high, s_both
                products = ()
                if step * CHUNKS // 4 + 1 < PARTS:
                    s_low = gl.load(s_at + (step * CHUNKS // 4 + 1) * (SLICES * 4))
                    s_high = gl.load(s_at + ((step * CHUNKS // 4 + 1) * (SLICES * 4) + 8 * QUADS))
                    s_both = gl.load(both_at + (step * CHUNKS // 4 + 1) * (SLICES * 4))
                else:
                    s_at += gl.where(more, s_round, 0)
                    both_at += gl.where(more, s_round, 0)
                    s_low = gl.load(s_at, mask=more)
                    s_high = gl.load(s_at + 8 * QUADS, mask=more)
                    s_both = gl.load(both_at, mask=more)
            # The compiler moves loads down to where their registers come free, but not past this.
            gl.inline_asm_elementwise("bar.warp.sync 0xffffffff; // $0", "=r", [], gl.int32, is_pure=False, pack=1)
            for c in gl.static_range(CHUNKS):
                xs = ()
                for k in gl.static_range(4):
                    xs = xs + (held.index((step * CHUNKS + c) * 4 + k).load(columns).expand_dims(1),)
                products = products + (
                    gl.inline_asm_elementwise(
                        PRODUCT, PRODUCT_OF, [here[2 * c], here[2 * c + 1], xs[0], xs[1], xs[2], xs[3]], gl.float32,
                        is_pure=True, pack=4,
                    ),
                )  # fmt: skip
            if (step + 1) * CHUNKS % 4 == 0:
                value += gl.inline_asm_elementwise(
                    FINISH, FINISH_OF,
                    [
                        products[0], products[1], products[2], products[3], _by_two(low, EACH), _by_two(high, EACH),
                        _by_two(mixed, EACH), parts[step * CHUNKS // 4],
                    ],
                    gl.float32, is_pure=True, pack=4,
                )  # fmt: skip
        w_at = w_next
        kept = gl.where(keeper == turn, gl.sum(value, axis=3).expand_dims(3), kept)
    begin = gl.inline_asm_elementwise(BEGIN, "=r,r", [q], gl.int32, is_pure=True, pack=1)
    all_sums = begin + (ALL * 4) + (r * 4 + q) * 16 + wavefront * 0 + four * 0
    whole = gl.inline_asm_elementwise(
        _shared(SLICES), SHARED_OF, [kept, all_sums + wavefront * 512, all_sums, all_sums * 0 + 1], gl.float32,
        is_pure=False, pack=4,
    )  # fmt: skip
    tile = first + keeper * programs
    at = tile.to(gl.int64) * 16 + (four % 2 * 8 + r + wavefront * 0)
    here = (keeper < ROUNDS) & (tile < tiles) & (wavefront == 0)
    gl.store(out_ptr + at, whole.to(gl.bfloat16), mask=here)
