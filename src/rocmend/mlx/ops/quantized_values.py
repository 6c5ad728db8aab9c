"""The values of quantized weights on the CPU, where each product unpacks them: few passes over few bytes."""

from __future__ import annotations

import torch

from rocmend.kernels.common.formats import Format, from_e4m3, from_e8m0, unpack

__all__: list[str] = []

_WIDE = {torch.float64: torch.float64}


def codes_of(words: torch.Tensor, bits: int) -> torch.Tensor:
    """Return codes as uint8, in order.

    Args:
        words: ``[..., n · bits / 32]`` int32.
        bits: of a code.

    Returns:
        ``[..., n]``.
    """
    octets = words.contiguous().view(torch.uint8)
    if bits == 8:
        return octets
    if bits == 4:  # both codes of a byte into the two bytes of a number of 16 bits
        pairs = octets.to(torch.int16)
        return ((pairs << 4).bitwise_or_(pairs)).bitwise_and_(0x0F0F).view(torch.uint8)
    if bits == 2:
        wide = octets.to(torch.int32)
        spread = (wide << 6).bitwise_or_(wide)
        return ((spread << 12).bitwise_or_(spread)).bitwise_and_(0x03030303).view(torch.uint8)
    if bits == 1:
        return unpack(words, 1).to(torch.uint8)
    return _straddling(octets, bits)


def _straddling(octets: torch.Tensor, bits: int) -> torch.Tensor:
    """Return codes of 3, 5 or 6 bits: they begin anew in every third or fifth byte."""
    count, period = (4, 3) if bits == 6 else (8, bits)
    groups = octets.unflatten(-1, (octets.shape[-1] // period, period))
    out = torch.empty((*groups.shape[:-1], count), dtype=torch.uint8, device=octets.device)
    for place in range(count):
        first, shift = divmod(place * bits, 8)
        code = groups[..., first] >> shift
        if shift + bits > 8:
            code |= groups[..., first + 1] << (8 - shift)
        torch.bitwise_and(code, (1 << bits) - 1, out=out[..., place])
    return out.flatten(-2)


def _numbers(codes: torch.Tensor, form: Format, dtype: torch.dtype) -> torch.Tensor:
    """Return what e2m1 or e4m3 codes stand for, before scaling."""
    wide = codes.to(torch.int16)
    # Exponent and mantissa where those of float16 stand are too small by a power of two.
    if form.bits == 8:
        size = wide & 0x7F
        nan = ((size + 1) >> 7).mul_(0x7E00)
        sign = (wide & 0x80) << 8
        return (size << 7).bitwise_or_(nan).bitwise_or_(sign).view(torch.float16).to(dtype).mul_(256.0)
    halves = ((wide & 7) << 9).bitwise_or_((wide & 8) << 12).view(torch.float16)
    return halves.to(dtype).mul_(16384.0)


def values(words: torch.Tensor, parts: tuple[torch.Tensor, ...], form: Format, dtype: torch.dtype) -> torch.Tensor:
    """Return the values of weights in float32, or float64 where ``dtype`` is.

    Args:
        words: ``[..., n · bits / 32]`` int32.
        parts: scales, and biases for affine: ``[..., n / group_size]``.
        form: the format.
        dtype: of the product that they are for.

    Returns:
        ``[..., n]``.
    """
    wide = _WIDE.get(dtype, torch.float32)
    scales = parts[0]
    codes = codes_of(words, form.bits).unflatten(-1, (scales.shape[-1], form.group_size))
    if form.affine:
        found = codes.to(wide).mul_(scales.unsqueeze(-1).to(wide)).add_(parts[1].unsqueeze(-1).to(wide))
    else:
        decode = from_e4m3 if form.mode == "nvfp4" else from_e8m0
        found = _numbers(codes, form, wide).mul_(decode(scales, wide).unsqueeze(-1))
    return found.flatten(-2)  # type: ignore[no-any-return]
