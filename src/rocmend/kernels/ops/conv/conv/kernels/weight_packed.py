"""Weight gradient of 16-bit types on AMD: as ``weight_tiled``, with pixels packed in registers.

The sum runs over pixels, but memory holds channels side by side, and matrix instructions of AMD take pixels side by
side: left to itself, the compiler reads LDS in pieces of 16 bits. Here a lane loads the same channels of four pixels
that follow each other and packs each channel's four, so that LDS is written in pieces of 64 bits and read in pieces of
64 or 128. Loads of the next block are under way during the product of this one; channels are loaded in pairs, as a
compiler that keeps elements from one iteration to the next gives each of 16 bits a register of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED, dot, narrow
from rocmend.kernels.ops.conv.conv.kernels.geometry import divided


@triton.jit
def _arrived(x):
    """Return pairs as they are; the program waits for them here, and not when it comes to it."""
    if not INTERPRETED:
        x = tl.inline_asm_elementwise("", "=v,0", [x], dtype=tl.int32, is_pure=False, pack=1)
    return x


@triton.jit
def _halves(x, dtype: tl.constexpr):
    """Return [rows, 2 · columns] elements of pairs [rows, columns]."""
    low = (x & 0xFFFF).to(tl.int16).to(dtype, bitcast=True)
    high = ((x >> 16) & 0xFFFF).to(tl.int16).to(dtype, bitcast=True)
    return tl.join(low, high).reshape(x.shape[0], 2 * x.shape[1])


@triton.jit
def _packed(x_0, x_1, x_2, x_3, dtype: tl.constexpr):
    """Return [2 · columns, 4 · rows] of pairs [rows, columns]: row i of tensor j becomes column 4 · i + j."""
    even, odd = tl.join(_halves(x_0, dtype), _halves(x_2, dtype)), tl.join(_halves(x_1, dtype), _halves(x_3, dtype))
    return tl.permute(tl.join(even, odd), (1, 0, 2, 3)).reshape(2 * x_0.shape[1], 4 * x_0.shape[0])


@triton.jit
def _taken(from_x, m, end, c_in, shape, PLAIN: tl.constexpr, DEEP: tl.constexpr, EVEN: tl.constexpr):
    """Return x where a tap meets output pixels, zeros outside."""
    x_d, x_h, x_w, y_d, y_h, y_w, d_factor, d_shift, h_factor, h_shift, w_factor, w_shift = shape[0]
    stride_d, stride_h, stride_w, reach_d, reach_h, reach_w, xs_n, xs_d, xs_h, xs_w = shape[1]
    inside = m < end
    if PLAIN:
        row = m * xs_w
    else:
        rest = divided(m, w_factor, w_shift)
        i_w = m - rest * y_w
        image = divided(rest, h_factor, h_shift)
        i_h = rest - image * y_h
        p_h = i_h * stride_h + reach_h
        p_w = i_w * stride_w + reach_w
        inside &= (p_h >= 0) & (p_h < x_h) & (p_w >= 0) & (p_w < x_w)
        row = p_h * xs_h + p_w * xs_w
        if DEEP:
            rest = image
            image = divided(rest, d_factor, d_shift)
            p_d = (rest - image * y_d) * stride_d + reach_d
            inside &= (p_d >= 0) & (p_d < x_d)
            row += p_d * xs_d
        row += image * xs_n
    if EVEN:
        return tl.load(from_x + row[:, None], mask=inside[:, None], other=0)
    return tl.load(from_x + row[:, None], mask=inside[:, None] & c_in[None, :], other=0)


@triton.jit
def _gradient(from_dy, m, end, o_in, ys, EVEN: tl.constexpr):
    """Return the output's gradient at pixels, zeros from ``end`` on."""
    if EVEN:
        return tl.load(from_dy + (m * ys)[:, None], mask=(m < end)[:, None], other=0)
    return tl.load(from_dy + (m * ys)[:, None], mask=(m < end)[:, None] & o_in[None, :], other=0)


@triton.jit
def _block(from_dy, from_x, m, end, o_in, c_in, ys, shape, PLAIN: tl.constexpr, DEEP: tl.constexpr, EVEN: tl.constexpr):
    """Return the gradient at pixels m, m + 1, m + 2 and m + 3, and x there."""
    a_0 = _gradient(from_dy, m, end, o_in, ys, EVEN)
    a_1 = _gradient(from_dy, m + 1, end, o_in, ys, EVEN)
    a_2 = _gradient(from_dy, m + 2, end, o_in, ys, EVEN)
    a_3 = _gradient(from_dy, m + 3, end, o_in, ys, EVEN)
    b_0 = _taken(from_x, m, end, c_in, shape, PLAIN, DEEP, EVEN)
    b_1 = _taken(from_x, m + 1, end, c_in, shape, PLAIN, DEEP, EVEN)
    b_2 = _taken(from_x, m + 2, end, c_in, shape, PLAIN, DEEP, EVEN)
    b_3 = _taken(from_x, m + 3, end, c_in, shape, PLAIN, DEEP, EVEN)
    return a_0, a_1, a_2, a_3, b_0, b_1, b_2, b_3


@triton.jit
def weight_packed_kernel(
    x_ptr, dy_ptr, out_ptr,
    channels, outputs, pixels, per_split,
    x_d, x_h, x_w, y_d, y_h, y_w, d_factor, d_shift, h_factor, h_shift, w_factor, w_shift,
    k_d, k_h, k_w, stride_d, stride_h, stride_w, pad_d, pad_h, pad_w, dil_d, dil_h, dil_w,
    xs_n, xs_d, xs_h, xs_w, ys,
    FLIP: tl.constexpr, PLAIN: tl.constexpr, DEEP: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr,
    BF16: tl.constexpr, AHEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Arguments and result are ``weight_tiled_kernel``'s, but that x and the gradient are seen as int32.

    Steps are between those; channels and outputs count elements and are even. AHEAD: the next block is loaded before
    this one is put into LDS, for CDNA. RDNA's barriers wait for loads, so that there it is loaded behind them.
    """
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, ys = xs_n * one, xs_d * one, xs_h * one, xs_w * one, ys * one
    split = tl.program_id(1)
    group = tl.program_id(2)
    tiles_c = tl.cdiv(channels, BLOCK_N)
    taps = k_d * k_h * k_w
    tiles_n = taps * tiles_c
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    tap = tile_n // tiles_c
    o = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    c = (tile_n % tiles_c) * BLOCK_N + tl.arange(0, BLOCK_N)
    o_in = o < outputs
    c_in = c < channels
    o_pair = tile_m * (BLOCK_M // 2) + tl.arange(0, BLOCK_M // 2)
    c_pair = (tile_n % tiles_c) * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
    o_pair_in = o_pair < outputs // 2
    c_pair_in = c_pair < channels // 2
    t_w = tap % k_w
    t_h = (tap // k_w) % k_h
    t_d = tap // (k_w * k_h)
    if FLIP:
        t_d, t_h, t_w = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - t_w
    reach_d = t_d * dil_d - pad_d
    reach_h = t_h * dil_h - pad_h
    reach_w = t_w * dil_w - pad_w
    from_dy = dy_ptr + (group * (outputs // 2) + o_pair)[None, :]
    from_x = x_ptr + (group * (channels // 2) + c_pair)[None, :]
    begin = split * per_split
    end = tl.minimum(pixels, begin + per_split)
    first = tl.arange(0, BLOCK_K // 4) * 4
    sizes = x_d, x_h, x_w, y_d, y_h, y_w, d_factor, d_shift, h_factor, h_shift, w_factor, w_shift
    shape = sizes, (stride_d, stride_h, stride_w, reach_d, reach_h, reach_w, xs_n, xs_d, xs_h, xs_w)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # The block at ``begin`` is loaded in the loop, too, which has a block more than products.
    a_0 = tl.zeros((BLOCK_K // 4, BLOCK_M // 2), tl.int32)
    b_0 = tl.zeros((BLOCK_K // 4, BLOCK_N // 2), tl.int32)
    a_1, a_2, a_3 = a_0, a_0, a_0
    b_1, b_2, b_3 = b_0, b_0, b_0
    for start in range(begin, end + BLOCK_K, BLOCK_K):
        a = _packed(a_0, a_1, a_2, a_3, tl.bfloat16 if BF16 else tl.float16)
        b = _packed(b_0, b_1, b_2, b_3, tl.bfloat16 if BF16 else tl.float16)
        if AHEAD:
            a_0, a_1, a_2, a_3, b_0, b_1, b_2, b_3 = _block(
                from_dy, from_x, start + first, end, o_pair_in, c_pair_in, ys, shape, PLAIN, DEEP, EVEN
            )
        acc = dot(a, tl.trans(b), acc)
        if not AHEAD:
            a_0, a_1, a_2, a_3, b_0, b_1, b_2, b_3 = _block(
                from_dy, from_x, start + first, end, o_pair_in, c_pair_in, ys, shape, PLAIN, DEEP, EVEN
            )
        a_0, a_1, a_2, a_3 = _arrived(a_0), _arrived(a_1), _arrived(a_2), _arrived(a_3)
        b_0, b_1, b_2, b_3 = _arrived(b_0), _arrived(b_1), _arrived(b_2), _arrived(b_3)
    row = ((split * tl.num_programs(2) + group) * outputs + o).to(tl.int64) * (taps * channels)
    at = out_ptr + row[:, None] + (tap * channels + c)[None, :]
    tl.store(at, narrow(acc, out_ptr.dtype.element_ty), mask=o_in[:, None] & c_in[None, :])
