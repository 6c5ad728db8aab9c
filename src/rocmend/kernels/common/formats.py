"""The formats that weights are quantized in, bit for bit as MLX 0.32 has them, in torch.

``affine``: codes of 1, 2, 3, 4, 5, 6 or 8 bits; a scale and a bias of the weights' type for each 32, 64 or 128.
``mxfp4``, ``mxfp8``: e2m1 or e4m3 numbers and an e8m0 scale (a power of two) for each 32.
``nvfp4``: e2m1 numbers and an e4m3 scale for each 16, with an optional fp32 scale of the whole tensor.

The codes of a row are one string of bits, the lowest bits first, cut into 32-bit words. Words may be given as
``uint32`` or as ``int32`` with the same bits: torch computes little with ``uint32``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from rocmend.core.errors import UsageError

MODES = ("affine", "mxfp4", "mxfp8", "nvfp4")
AFFINE_BITS = (1, 2, 3, 4, 5, 6, 8)
AFFINE_GROUPS = (32, 64, 128)
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
# Above these an absolute value takes the next e2m1 code; on one of them, the lower (MLX takes the first nearest entry).
E2M1_EDGES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
GLOBAL_RANGE = 448.0 * 6.0  # largest e4m3 scale times largest e2m1 number
SMALLEST_SCALE = 1e-7  # of an affine group


class Format(NamedTuple):
    """How a tensor is quantized.

    Args:
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        bits: Of a code.
        group_size: Elements of a row that share a scale.
    """

    mode: str
    bits: int
    group_size: int

    @property
    def affine(self) -> bool:
        """Whether a group has a bias, and scales of the weights' type."""
        return self.mode == "affine"

    def words(self, columns: int) -> int:
        """Return the number of 32-bit words of a row."""
        return columns * self.bits // 32

    def columns(self, words: int) -> int:
        """Return the number of elements of a row of words."""
        return words * 32 // self.bits

    def bytes(self, elements: float, scale_bytes: int = 2) -> float:
        """Return the size of quantized elements: codes, scales and biases."""
        of_group = 2 * scale_bytes if self.affine else 1
        return elements * self.bits / 8 + elements / self.group_size * of_group


_FIXED = {"mxfp4": Format("mxfp4", 4, 32), "mxfp8": Format("mxfp8", 8, 32), "nvfp4": Format("nvfp4", 4, 16)}


def every_format() -> tuple[Format, ...]:
    """Return every format of quantized weights."""
    affine = (Format("affine", bits, group_size) for bits in AFFINE_BITS for group_size in AFFINE_GROUPS)
    return *affine, *_FIXED.values()


@functools.cache
def format_of(op: str, mode: str = "affine", bits: int | None = None, group_size: int | None = None) -> Format:
    """Return a format, with MLX's defaults for what is None.

    Raises:
        UsageError: There is no such format; ``op`` opens the message.
    """
    if mode == "affine":
        found = Format(mode, 4 if bits is None else bits, 64 if group_size is None else group_size)
        if found.bits not in AFFINE_BITS or found.group_size not in AFFINE_GROUPS:
            raise UsageError(
                op,
                f"expected affine bits of {AFFINE_BITS} and a group_size of {AFFINE_GROUPS}, "
                f"got bits={bits}, group_size={group_size}.",
            )
        return found
    if mode not in _FIXED:
        raise UsageError(op, f"expected a mode of {MODES}, got {mode!r}.")
    found = _FIXED[mode]
    if (bits or found.bits, group_size or found.group_size) != found[1:]:
        raise UsageError(
            op,
            f"expected bits={found.bits} and group_size={found.group_size} with {mode}, "
            f"got bits={bits}, group_size={group_size}.",
        )
    return found


def as_int32(words: torch.Tensor) -> torch.Tensor:
    """Return packed words as int32 with the same bits, without a copy.

    Raises:
        UsageError: Neither uint32 nor int32.
    """
    if words.dtype == torch.int32:
        return words
    if words.dtype != torch.uint32:
        raise UsageError("quantized", f"expected packed words of uint32 or int32, got {words.dtype}.")
    return words.view(torch.int32)


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Pack codes into words, the first code in the lowest bits.

    Args:
        codes: ``[..., n]``, integers of ``bits`` bits; ``n * bits`` must be a multiple of 32.
        bits: Of a code.

    Returns:
        ``[..., n * bits / 32]`` uint32.
    """
    wide = codes.to(torch.int64)
    if 32 % bits == 0:
        parts = wide.unflatten(-1, (codes.shape[-1] * bits // 32, 32 // bits))
        shifts = torch.arange(0, 32, bits, device=codes.device)
    else:
        single = (wide.unsqueeze(-1) >> torch.arange(bits, device=codes.device)) & 1
        parts = single.flatten(-2).unflatten(-1, (codes.shape[-1] * bits // 32, 32))
        shifts = torch.arange(32, device=codes.device)
    total = (parts << shifts).sum(-1)
    # To the signed number of the same bits: a cast of what does not fit is not defined everywhere.
    return torch.where(total >= 1 << 31, total - (1 << 32), total).to(torch.int32).view(torch.uint32)


def unpack(words: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the codes of packed words: ``[..., n]`` int32; the inverse of ``pack``."""
    signed = as_int32(words)
    columns = words.shape[-1] * 32 // bits
    if 32 % bits == 0:
        shifts = torch.arange(0, 32, bits, device=words.device, dtype=torch.int32)
        return ((signed.unsqueeze(-1) >> shifts) & ((1 << bits) - 1)).flatten(-2)
    single = (signed.unsqueeze(-1) >> torch.arange(32, device=words.device, dtype=torch.int32)) & 1
    parts = single.flatten(-2).unflatten(-1, (columns, bits))
    return (parts << torch.arange(bits, device=words.device, dtype=torch.int32)).sum(-1).to(torch.int32)


def to_e4m3(values: torch.Tensor) -> torch.Tensor:
    """Return the e4m3 codes of fp32 values as uint8: to nearest even; what is larger than 448, and NaN, becomes 448."""
    bits = values.float().contiguous().view(torch.int32)
    sign = (bits >> 24) & 0x80
    size = bits & 0x7FFFFFFF
    # Below 2^-6 the grid is that of fp32 numbers of 2^14: adding that rounds to it.
    denormal = (size.view(torch.float32) + 16384.0).view(torch.int32) - (141 << 23)
    normal = (size - (120 << 23) + 0x7FFFF + ((size >> 20) & 1)) >> 20
    code = torch.where(size < 121 << 23, denormal, normal)
    return (torch.where(size >= 543 << 21, 0x7E, code) | sign).to(torch.uint8)


def from_e4m3(codes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the values of e4m3 codes; 0x7F and 0xFF are NaN."""
    wide = codes.to(torch.int32)
    size = ((wide & 127) << 7).to(torch.int16).view(torch.float16).float() * 256.0
    size = torch.where(wide & 127 == 127, torch.nan, size)
    return torch.where(wide >= 128, -size, size).to(dtype)


def from_e8m0(codes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return ``2 ** (code - 127)``, infinity or 0 where ``dtype`` does not hold it; infinity for 255."""
    power = torch.exp2(codes.double() - 127)
    return torch.where(codes == 255, torch.inf, power).to(dtype)


def divide(values: torch.Tensor, by: float) -> torch.Tensor:
    """Return the quotient, correctly rounded: on a GPU, torch multiplies by the reciprocal of a plain number."""
    return values / torch.full_like(values, by)


def quantize(
    w: torch.Tensor, form: Format, global_scale: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Quantize the rows of a matrix; see ``rocmend.kernels.quantize``."""
    groups = w.unflatten(-1, (w.shape[-1] // form.group_size, form.group_size))
    if form.affine:
        codes, scales, biases = _affine(groups, (1 << form.bits) - 1)
        return pack(codes.flatten(-2), form.bits), scales, biases
    codes, scales = _nvfp4(groups, global_scale) if form.mode == "nvfp4" else _mx(groups, form.bits)
    return pack(codes.flatten(-2), form.bits), scales, None


def _affine(groups: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scale so that the end of larger magnitude, and zero, are codes. NaN is left out of the range and becomes 0."""
    wide = groups.float()
    high = torch.where(wide.isnan(), -torch.inf, wide).amax(-1, keepdim=True)
    low = torch.where(wide.isnan(), torch.inf, wide).amin(-1, keepdim=True)
    negative = low.abs() > high.abs()
    step = divide(high - low, top)
    scale = torch.where(step < SMALLEST_SCALE, SMALLEST_SCALE, step)
    if top == 1:  # one bit: the two ends
        bias = low
    else:
        scale = torch.where(negative, scale, -scale)
        edge = torch.where(negative, low, high)
        steps = torch.round(edge / scale)
        scale = torch.where(steps != 0, edge / steps, scale)
        bias = torch.where(steps != 0, edge, 0.0)
    codes = torch.round((wide - bias) / scale).nan_to_num(0.0).clamp(0, top).to(torch.int32)
    return codes, scale.squeeze(-1).to(groups.dtype), bias.squeeze(-1).to(groups.dtype)


def e2m1_codes(values: torch.Tensor) -> torch.Tensor:
    """Return the nearest e2m1 codes: between two, the one nearer to zero; 0 has no sign; NaN becomes 0."""
    size = values.abs()
    code = sum(((size > edge).to(torch.int32) for edge in E2M1_EDGES), torch.zeros_like(size, dtype=torch.int32))
    return torch.where((values < 0) & (code > 0), code | 8, code)


def _nvfp4(groups: torch.Tensor, global_scale: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = groups.dtype
    scale = divide(groups.abs().amax(-1, keepdim=True), 6.0).float()
    encode: torch.Tensor | float = 1.0
    if global_scale is not None:
        # A number over a tensor would be computed with a reciprocal.
        encode = torch.full_like(global_scale.float(), GLOBAL_RANGE) / global_scale.float()
    code = to_e4m3(scale * encode) & 0x7F  # the sign of a NaN means nothing
    decoded = from_e4m3(code, dtype)
    unit = (groups / decoded).float() * encode
    return e2m1_codes(torch.where(decoded == 0, 0.0, unit)), code.squeeze(-1)


def _mx(groups: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale by the smallest power of two that is not under ``max / largest``.

    A group of zeros has the scale 1. MLX on the CPU wraps exponents under -127 around and gives a group with an
    infinity or NaN an arbitrary scale; here, as in MLX on a GPU, they are clamped to -127, and the scale's code is 255.
    """
    scale = divide(groups.abs().amax(-1, keepdim=True), 6.0 if bits == 4 else 448.0)
    exponent = ceil_exponent(scale)
    finite = scale.isfinite()
    code = torch.where(finite, exponent + 127, 255)
    unit = (groups.double() * torch.exp2(-exponent.double())).to(groups.dtype).float()
    unit = torch.where(finite, unit, torch.where(groups.isfinite(), 0.0, groups.float()))
    codes = e2m1_codes(unit) if bits == 4 else to_e4m3(unit).to(torch.int32)
    return codes, code.squeeze(-1).to(torch.uint8)


def ceil_exponent(scale: torch.Tensor) -> torch.Tensor:
    """Return ``ceil(log2(scale))``, exactly; 0 for 0, at least -127 otherwise."""
    bits = scale.float().contiguous().view(torch.int32)
    fraction, biased = bits & 0x7FFFFF, (bits >> 23) & 0xFF
    # A denormal over 2^-127 is under 2^-126.
    exponent = biased - 127 + (fraction > torch.where(biased == 0, 1 << 22, 0)).to(torch.int32)
    return torch.where((bits & 0x7FFFFFFF) == 0, 0, exponent.clamp_min(-127))


def dequantize(
    words: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    form: Format,
    dtype: torch.dtype,
    global_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the values of packed words in ``dtype``, each step rounded to it; see ``rocmend.kernels.dequantize``."""
    codes = unpack(words, form.bits)
    groups = codes.unflatten(-1, (scales.shape[-1], form.group_size))
    if form.affine:
        if biases is None:
            raise UsageError("dequantize", "expected biases with mode affine, got None.")
        product = groups.to(scales.dtype) * scales.unsqueeze(-1)
        return (product + biases.unsqueeze(-1)).flatten(-2).to(dtype)
    if form.bits == 4:
        values = torch.tensor(E2M1, dtype=dtype, device=words.device)[groups.long()]
    else:
        values = from_e4m3(groups, dtype)
    if form.mode == "nvfp4":
        scale = from_e4m3(scales, dtype)
        if global_scale is not None:
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            scale = scale.to(wide) * divide(global_scale.to(wide), GLOBAL_RANGE)
    else:
        scale = from_e8m0(scales, dtype)
    return (values * scale.unsqueeze(-1)).flatten(-2).to(dtype)
