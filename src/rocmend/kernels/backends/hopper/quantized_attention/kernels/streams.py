"""Few rows against a cache of 4 or 8 bits in groups of 64, on NVIDIA: wavefronts that walk over keys of their own.

Words of the next keys are copied into shared memory meanwhile, by whole rows; a lane reads those whose codes it
multiplies, and unpacks them where the matrix unit wants them (``ptx.py``). Loaded into registers instead they would
come by sectors of 32 bytes, and the compiler would move the loads down to where they are needed.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from rocmend.kernels.backends.hopper import mma
from rocmend.kernels.backends.hopper.along import along, numbers_of, said, words_of
from rocmend.kernels.backends.hopper.quantized_attention.kernels import ptx
from rocmend.kernels.backends.hopper.quantized_attention.kernels.copies import (
    copied,
    keys_in,
    keys_layout,
    values_in,
    values_layout,
)

TEXTS = gl.constexpr(ptx.texts())
_of = gluon.constexpr_function(mma.constraints)
LOG2E = gl.constexpr(1.4426950408889634)


@gluon.constexpr_function
def _kind(dtype):
    return "bf16" if dtype == gl.bfloat16 else "f16"


@gluon.constexpr_function
def _text(name, kind=None, one=None, two=None, three=None):
    """Return a block by its name and what it is made for."""
    return TEXTS.value["-".join([str(part) for part in (name, kind, one, two, three) if part is not None])]


@gluon.jit
def _greater(one, other):
    """Return the greater one."""
    return gl.maximum(one, other)


@gluon.jit
def _pair(q_row, ok, at, low):
    """Return two elements of q in a word: those at a place and at another."""
    first = gl.load(q_row + at, mask=ok, other=0).to(gl.int32) & 0xFFFF
    return first | (gl.load(q_row + (at + low), mask=ok, other=0).to(gl.int32) << 16)


@gluon.jit
def streams_kernel(
    q_ptr, kw_ptr, ks_ptr, kb_ptr, vw_ptr, vs_ptr, vb_ptr, lengths_ptr, acc_ptr, out_ptr,
    scale, capacity, splits, tops, L, q_sb, q_sh, q_sl, kw_sb, kw_sh, kw_ss, ks_sb, ks_sh, vw_sb, vw_sh, vw_ss,
    vs_sb, vs_sh, KV: gl.constexpr, GROUP: gl.constexpr, D: gl.constexpr, BITS: gl.constexpr, WAVES: gl.constexpr,
    ROWS: gl.constexpr, LENGTHS: gl.constexpr, SPLIT: gl.constexpr, PDL: gl.constexpr, EARLY: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    """Scores, running softmax and weighted sum of values of one part of the cache, for all rows of a KV head.

    q is of a half type, and so are scales and biases, [·, ·, keys, D / 64], those of all keys of a head side by side;
    words of a key lie side by side. ``acc`` has the sums of each part, from ``tops`` on their maxima and weights; out
    is written where there is one part. There are ROWS = GROUP · L rows, eight at most. Each of WAVES wavefronts takes
    every so many-th tile of keys, and has STAGES of them in shared memory, all but one under way.

    With PDL the merging kernel is launched at once; with EARLY this one was, and waits for what it reads.
    """
    if PDL:
        said("griddepcontrol.launch_dependents; // $0")
    DTYPE: gl.constexpr = q_ptr.dtype.element_ty
    KIND: gl.constexpr = _kind(DTYPE)
    GROUPS: gl.constexpr = D // 64
    STEPS: gl.constexpr = 4 // GROUPS
    PAIRS: gl.constexpr = GROUPS // 2
    WORDS: gl.constexpr = 2 * BITS
    EACH: gl.constexpr = BITS // 4
    TILE: gl.constexpr = 16 * STEPS
    # Wavefronts, rows, quarters, and four registers.
    lanes: gl.constexpr = gl.BlockedLayout([1, 1, 1, 4], [1, 8, 4, 1], [WAVES, 1, 1, 1], [3, 2, 1, 0])
    wave = along(0, WAVES, lanes, 4)
    r = along(1, 8, lanes, 4)
    t = along(2, 4, lanes, 4)
    four = along(3, 4, lanes, 4)
    split = gl.program_id(0) % splits
    pair = gl.program_id(0) // splits
    b = (pair // KV).to(gl.int64)
    kv = (pair % KV).to(gl.int64)
    if EARLY and LENGTHS:
        said("griddepcontrol.wait; // $0")
    length = capacity
    if LENGTHS:
        length = gl.minimum(gl.maximum(gl.load(lengths_ptr + b).to(gl.int32), 0), capacity)
    part = ((length + splits - 1) // splits + TILE - 1) // TILE * TILE
    start = split * part
    end = gl.minimum(start + part, length)
    last = capacity - 1
    kw = kw_ptr + b * kw_sb + kv * kw_sh
    vw = vw_ptr + b * vw_sb + kv * vw_sh
    ks = (ks_ptr + b * ks_sb + kv * ks_sh).to(gl.pointer_type(gl.int32), bitcast=True)
    kb = (kb_ptr + b * ks_sb + kv * ks_sh).to(gl.pointer_type(gl.int32), bitcast=True)
    vs = (vs_ptr + b * vs_sb + kv * vs_sh).to(gl.pointer_type(gl.int32), bitcast=True)
    vb = (vb_ptr + b * vs_sb + kv * vs_sh).to(gl.pointer_type(gl.int32), bitcast=True)
    affine = gl.where(t < 2, gl.where(t == 0, ks + t * 0, kb + t * 0), gl.where(t == 2, vs + t * 0, vb + t * 0))
    own = wave * TILE + r * (2 * STEPS) + t * 0
    WIDTH: gl.constexpr = WORDS * GROUPS
    copying: gl.constexpr = gl.BlockedLayout([1, 1, 4], [1, 128 // WIDTH, WIDTH // 4], [WAVES, 1, 1], [2, 1, 0])
    whole = along(0, WAVES, copying, 3) * TILE + along(1, TILE, copying, 3) * 0 + along(2, WIDTH, copying, 3) * 0
    row = along(0, WAVES, copying, 3) * TILE + along(1, TILE, copying, 3)
    word = along(2, WIDTH, copying, 3)
    # Rows that lanes read at once begin at other banks.
    PHASES: gl.constexpr = 2 if D == 128 else 4
    kmem = gl.allocate_shared_memory(
        gl.int32, [STAGES, WAVES, TILE, WIDTH],
        gl.SwizzledSharedLayout(WORDS, 2 * STEPS, PHASES if BITS == 4 else 2, [2, 1, 0]),
    )  # fmt: skip
    vmem = gl.allocate_shared_memory(
        gl.int32, [STAGES, WAVES, TILE, WIDTH],
        gl.SwizzledSharedLayout(8, 4 * STEPS, PHASES if BITS == 4 else 4, [2, 1, 0]),
    )  # fmt: skip
    keys_as: gl.constexpr = keys_layout(BITS, STEPS, GROUPS, WAVES)
    values_as: gl.constexpr = values_layout(BITS, STEPS, GROUPS, WAVES)
    beside = gl.allocate_shared_memory(
        gl.int32, [STAGES, WAVES, 8, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    if EARLY and not LENGTHS:
        said("griddepcontrol.wait; // $0")
    for stage in gl.static_range(STAGES - 1):
        copied(
            kmem, vmem, beside, stage, kw, vw, affine, kw_ss, vw_ss, start + stage * WAVES * TILE, row, word, whole,
            own, four, last, end, GROUPS,
        )  # fmt: skip
        async_copy.commit_group()
    # q as B has it: a lane has row r.
    head = kv * GROUP + r % GROUP
    q_row = q_ptr.to(gl.pointer_type(gl.int16), bitcast=True) + (b * q_sb + head * q_sh + (r // GROUP) * q_sl)
    ok = (r + t * 0 + four * 0 + wave * 0) < ROWS
    qs, totals = (), ()
    for g in gl.static_range(GROUPS):
        for two in gl.static_range(2):
            if BITS == 4:
                at = g * 64 + 8 * (2 * t + two) + four
                qs = qs + (_pair(q_row, ok, at, 4),)
            else:
                at = g * 64 + 4 * (4 * t + 2 * two + four // 2) + four % 2
                qs = qs + (_pair(q_row, ok, at, 2),)
    for g in gl.static_range(GROUPS):
        totals = totals + (numbers_of(_text("total", KIND), _of("f", "rr"), [qs[2 * g], qs[2 * g + 1]]),)
    none = gl.full([WAVES, 8, 4, 4], 0.0, gl.float32, layout=lanes)
    top = none + float("-inf")
    total = none
    accs, biases, offsets = (), (), ()
    for _ in gl.static_range(4 * GROUPS):
        accs = accs + (none,)
    for _ in gl.static_range(PAIRS):
        biases = biases + (none,)
        offsets = offsets + (none,)
    factor = scale * LOG2E
    for at in range(start, end, WAVES * TILE):
        slot = (at - start) // (WAVES * TILE) % STAGES
        async_copy.wait_group(STAGES - 2)
        copied(
            kmem, vmem, beside, (slot + STAGES - 1) % STAGES, kw, vw, affine, kw_ss, vw_ss,
            at + (STAGES - 1) * WAVES * TILE, row, word, whole, own, four, last, end, GROUPS,
        )  # fmt: skip
        async_copy.commit_group()
        keys = keys_in(kmem.index(slot), keys_as, lanes, STEPS, GROUPS, BITS)
        values = values_in(vmem.index(slot), values_as, lanes, STEPS, GROUPS, BITS)
        four_of = beside.index(slot)
        kscales = four_of.slice(0, 1, dim=2).load(lanes)
        kbiases = four_of.slice(1, 1, dim=2).load(lanes)
        scores = ()
        highest = top
        for step in gl.static_range(STEPS):
            of = [kscales, kbiases]
            for g in gl.static_range(GROUPS):
                given = [totals[g] * (-16.0 if BITS == 4 else -272.0)]
                for piece in gl.static_range(EACH):
                    given = given + [keys[(step * GROUPS + g) * EACH + piece]]
                given = given + [qs[2 * g], qs[2 * g + 1]]
                of = of + [numbers_of(_text("scores", KIND, BITS), _of("f", "f" + "r" * (EACH + 2)), given)]
            for g in gl.static_range(GROUPS):
                of = of + [totals[g]]
            s = numbers_of(_text("scaled", KIND, GROUPS, step), _of("f", "rr" + "ff" * GROUPS), of)
            key = at + own + (2 * step + four // 2)
            s = gl.where(key < end, s * factor, float("-inf"))
            scores = scores + (s,)
            highest = gl.maximum(highest, s)
        # Over rows of lanes and halves: columns are left.
        after = numbers_of(_text("highest"), _of("f", "f"), [highest])
        safe = gl.where(after == float("-inf"), 0.0, after)
        fade = gl.exp2(top - safe)
        top = after
        total = total * fade
        # Four registers by (half, column) become those by (group, column) as they are: the column counts.
        new_accs, new_biases, new_offsets = (), (), ()
        for i in gl.static_range(4 * GROUPS):
            new_accs = new_accs + (accs[i] * fade,)
        for i in gl.static_range(PAIRS):
            new_biases = new_biases + (biases[i] * fade,)
            new_offsets = new_offsets + (offsets[i] * fade,)
        accs, biases, offsets = new_accs, new_biases, new_offsets
        # Words of scales behind the end may be anything.
        if GROUPS == 2:
            there = at + own + four < end
        else:
            there = at + own + four // 2 < end
        vscales = gl.where(there, four_of.slice(2, 1, dim=2).load(lanes), 0)
        vbiases = gl.where(there, four_of.slice(3, 1, dim=2).load(lanes), 0)
        for step in gl.static_range(STEPS):
            p = gl.exp2(scores[step] - safe)
            total += p
            new_accs, new_biases, new_offsets = (), (), ()
            for two in gl.static_range(PAIRS):
                weights = words_of(_text("weighed", KIND, GROUPS, step, two), _of("r", "fr"), [p, vscales])
                of = [biases[two], p, vbiases]
                more = numbers_of(_text("biased", KIND, GROUPS, step, two), _of("f", "ffr"), of)
                new_biases = new_biases + (more,)
                more = numbers_of(_text("offsets", KIND, BITS), _of("f", "fr"), [offsets[two], weights])
                new_offsets = new_offsets + (more,)
                for one in gl.static_range(2):
                    words = []
                    for piece in gl.static_range(EACH):
                        words = words + [values[(step * GROUPS + 2 * two + one) * EACH + piece]]
                    for tile in gl.static_range(4):
                        of = [accs[8 * two + 4 * one + tile]] + words + [weights]
                        more = numbers_of(_text("values", KIND, BITS, tile, one), _of("f", "f" + "r" * (EACH + 1)), of)
                        new_accs = new_accs + (more,)
            accs, biases, offsets = new_accs, new_biases, new_offsets
    # Wavefronts: the highest maximum, and what is left of each one's sums.
    highest = gl.reduce(top, 0, _greater).expand_dims(0)
    safe = gl.where(highest == float("-inf"), 0.0, highest)
    fade = gl.exp2(top - safe)
    total = gl.sum(gl.sum(total * fade, axis=0).expand_dims(0), axis=1).expand_dims(1)
    totalled = numbers_of(_text("halves"), _of("f", "f"), [total])
    # Lanes hold, of row 2 t + four % 2, columns 64 g + 8 r + 2 tile + four // 2.
    row = 2 * t + four % 2 + r * 0
    place = pair.to(gl.int64) * ROWS + row % GROUP * L + row // GROUP
    live = row < ROWS
    column = 8 * r + four // 2
    # One wavefront stores.
    for two in gl.static_range(PAIRS):
        sums = gl.sum(biases[two], axis=1).expand_dims(1) + offsets[two]
        for one in gl.static_range(2):
            extra = numbers_of(_text("spread", one), _of("f", "f"), [sums])
            for tile in gl.static_range(4):
                acc = gl.sum((accs[8 * two + 4 * one + tile] + extra) * fade, axis=0).expand_dims(0)
                at = column + (64 * (2 * two + one) + 2 * tile)
                if SPLIT:
                    gl.store(acc_ptr + (place * splits + split) * D + at, acc, mask=live)
                else:
                    out = gl.where(length > 0, acc / totalled, 0.0)
                    gl.store(out_ptr + place * D + at, out.to(DTYPE), mask=live)
    if SPLIT:
        most = highest
        whole = totalled
        first = live & (column == 0)
        gl.store(acc_ptr + tops + 2 * (place * splits + split), most, mask=first)
        gl.store(acc_ptr + tops + 2 * (place * splits + split) + 1, whole, mask=first)
