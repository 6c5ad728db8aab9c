"""Wavefronts of ``experts`` that copy: weights as slots become free, and parts of x while others are multiplied."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from rocmend.kernels.backends.hopper.along import done
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_ptx as blocks
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_shared as ring
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_lists import STAGERS, WAVEFRONTS, count_pairs, read

COPY_SCALES, COPY_SCALES_OF = (gl.constexpr(t) for t in blocks.copy_scales())
COPY_X, COPY_X_OF = (gl.constexpr(t) for t in blocks.copy_x())
TURN_X, TURN_X_OF = (gl.constexpr(t) for t in blocks.turn_x())
COPIED, COPIED_OF = (gl.constexpr(t) for t in blocks.COPIED)
ARRIVED, ARRIVED_OF = (gl.constexpr(t) for t in blocks.ARRIVED)
VISIBLE, VISIBLE_OF = (gl.constexpr(t) for t in blocks.VISIBLE)


@gluon.jit
def copy_weights(
    first, second, first_row, known, used, turn, base,
    DEPTH: gl.constexpr, BLOCKS: gl.constexpr, ROUNDS: gl.constexpr, SLOTS: gl.constexpr, FORM: gl.constexpr,
    PLACES: gl.constexpr,
):  # fmt: skip
    """Copy a unit's words and scales to shared memory, as slots become free.

    Args:
        first: Where words, scales and biases are; of mxfp4 scales twice.
        second: Those of a second matrix, of which every other block is, or nothing.
        first_row: Of a matrix's part that is the unit's.
        known: Whether there is a unit.
        used: Slots that were filled before.
        turn: Of the list.
        base: Where shared memory begins.
        DEPTH: K.
        BLOCKS: Of a round.
        ROUNDS: Of a unit, each of which goes through all columns.
        SLOTS: Of the ring.
        FORM: Of the weights.
        PLACES: Of ``places``.
    """
    MATRICES: gl.constexpr = 1 + len(second) // 3
    PARTS: gl.constexpr = DEPTH // 512
    ROW: gl.constexpr = DEPTH // 2
    EACH: gl.constexpr = WAVEFRONTS // ring.COPIERS
    STAGES: gl.constexpr = DEPTH // 256 * BLOCKS * ROUNDS
    wavefront, r, q, _four, zero = ring.lanes_of(ring.COPIERS)
    # Of a slot, a lane copies 16 bytes of every fourth row; lanes that multiply read of rows 2r and 2r + 1: 8 lanes
    # that do so at once have different banks.
    granule = r % 2 * 4 + q
    words_to = base + PLACES[ring.WORDS_AT] + (wavefront * (EACH * ring.WORDS // WAVEFRONTS) + r // 2 * 128 + zero)
    words_to += (granule ^ (r // 4)) * 16
    words = first[0].to(gl.int64, bitcast=True) + first_row * ROW
    words += ((wavefront * (EACH * 16) + r // 2) * ROW + granule * 16 + zero).to(gl.int64)
    # Of a row 16 bytes of scales, and as many of biases; of mxfp4 scales alone, of two wavefronts that multiply.
    AT_ONCE: gl.constexpr = 2 if FORM == ring.MXFP4 else 1
    scales_to = base + PLACES[ring.SCALES_AT] + (wavefront * (EACH * ring.SCALES // WAVEFRONTS) + zero)
    if FORM == ring.MXFP4:
        scales_to += q // 2 * (ring.SCALES // WAVEFRONTS) + q % 2 * 128 + r * 16
    else:
        scales_to += r * 64 + q * 16
    scales = gl.where(q + zero < 2, first[1].to(gl.int64, bitcast=True), first[2].to(gl.int64, bitcast=True))
    scales += first_row * (ROW // 16)
    row = wavefront * (EACH * 16) + r * 2 + q % 2 + zero
    if FORM == ring.MXFP4:
        row += q // 2 * 16
    scales += (row * (ROW // 16)).to(gl.int64)
    if MATRICES == 2:
        from_words = second[0].to(gl.int64, bitcast=True) - first[0].to(gl.int64, bitcast=True)
        from_scales = gl.where(
            q + zero < 2,
            second[1].to(gl.int64, bitcast=True) - first[1].to(gl.int64, bitcast=True),
            second[2].to(gl.int64, bitcast=True) - first[2].to(gl.int64, bitcast=True),
        )
    # Until it is known whether the expert has rows, some: more of them, and x would come as late as they.
    stage, stages = used * 0, gl.where(known, ring.FIRST, 0)
    while stage < stages:
        slot = (used + stage) % SLOTS
        filled = base + PLACES[ring.FILLED] + slot * 8
        if used + stage >= SLOTS:
            ring.wait(base + PLACES[ring.FREE] + slot * 8, (used + stage) // SLOTS - 1)
        part, block = stage // (2 * BLOCKS), stage // 2 % BLOCKS
        other = block % MATRICES
        if ROUNDS > 1:
            part, block = part % PARTS, block + part // PARTS * BLOCKS
        block = block // MATRICES
        if stage % 2 == 0:
            to = scales_to + (used + stage) // 2 % (SLOTS // 2 + 1) * ring.SCALES
            source = scales + (block * (ring.HEIGHT * ROW // 16) + part * 16)
            if MATRICES == 2:
                source += gl.where(other > 0, from_scales, 0)
            for each in gl.static_range(0, EACH, AT_ONCE):
                done(COPY_SCALES, COPY_SCALES_OF, [to + each * (ring.SCALES // WAVEFRONTS), source + each * ROW], 4)
        source = words + (block * (ring.HEIGHT * ROW) + part * 256 + stage % 2 * 128)
        if MATRICES == 2:
            source += gl.where(other > 0, from_words, 0)
        for each in gl.static_range(EACH):
            done(
                ring.text("copy_words", ROW),
                ring.text_of("copy_words", ROW),
                [words_to + (slot * ring.WORDS + each * (ring.WORDS // WAVEFRONTS)), source + each * (16 * ROW)],
                4,
            )
        done(COPIED, COPIED_OF, [filled], 1)
        stage += 1
        if stage == ring.FIRST:
            ring.wait(base + PLACES[ring.LISTED], turn)
            stages = gl.where(read(base + PLACES[ring.LIST_AT] + 4) > 0, STAGES, ring.FIRST)


@gluon.jit
def stage_part(x_ptr, part, base, to, WAVES: gl.constexpr, TILES: gl.constexpr, PLACES: gl.constexpr):
    """Bring a part of a tile's x to shared memory, in order; each lane what it copied itself."""
    wavefront, r, q, four, zero = ring.lanes_of(WAVES)
    # Of a row, eight columns of each 64 of 256, where four quarters have their pairs: of a half, and of a lower half.
    row, i = r % 2 * 4 + q, r // 2
    x = x_ptr.to(gl.int64, bitcast=True) + part * 1024 + (i * 16 + zero).to(gl.int64)
    to += i // 2 * (TILES * 1024) + row * 128 + ((i % 2 * 4 + four) ^ row) * 16 + zero
    rows = base + PLACES[ring.ROWS_AT] + (row * 4 + zero)
    for task in range((4 * TILES + WAVES - 1) // WAVES):
        own = task * WAVES + wavefront + zero
        there = to + (own // 4 * 1024 + (own % 4 // 2 * 4 + own % 2 * 2) * (TILES * 1024))
        source = x + (own % 4 // 2 * 512 + own % 2 * 64).to(gl.int64)
        done(COPY_X, COPY_X_OF, [rows + own // 4 * 32, there, source], 4)
    done(ARRIVED, ARRIVED_OF, [], 1)
    for task in range((4 * TILES + WAVES - 1) // WAVES):
        own = task * WAVES + wavefront + zero
        there = to + (own // 4 * 1024 + (own % 4 // 2 * 4 + own % 2 * 2) * (TILES * 1024))
        done(TURN_X, TURN_X_OF, [there, (own < 4 * TILES).to(gl.int32)], 4)
    done(VISIBLE, VISIBLE_OF, [], 1)


@gluon.jit
def stage(
    x_ptr, rhs_ptr, pairs, counted, staged, turn, base,
    DEPTH: gl.constexpr, TILES: gl.constexpr, ROUNDS: gl.constexpr, PLACES: gl.constexpr,
):  # fmt: skip
    """Stage all parts of a tile's x but the first, as often as there are rounds; count pairs, if nobody has."""
    PARTS: gl.constexpr = DEPTH // 512
    ring.wait(base + PLACES[ring.LISTED], turn)
    parts = gl.where(read(base + PLACES[ring.LIST_AT] + 4) > 0, PARTS * ROUNDS, 0)
    for part in range(gl.maximum(parts, 1)):
        if parts > 0:
            at = staged + part
            if at > 1:
                ring.wait(base + PLACES[ring.READ_UP] + at % 2 * 8, at // 2 - 1)
            if part > 0:
                of_row = part
                if ROUNDS > 1:
                    of_row = part % PARTS
                stage_part(x_ptr, of_row, base, base + at % 2 * (TILES * 8192), STAGERS, TILES, PLACES)
            ring.arrive(base + PLACES[ring.STAGED] + at % 2 * 8, STAGERS)
        if (counted == 0) & (part == gl.minimum(1, gl.maximum(parts, 1) - 1)):
            count_pairs(rhs_ptr, pairs, base + PLACES[ring.COUNTS_AT])
