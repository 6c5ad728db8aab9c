"""The references. Angles are products in fp32, as MLX defines them; everything behind them is in the type of x."""

from __future__ import annotations

import math

import torch

from rocmend.kernels.common.reference import wide
from rocmend.kernels.ops.attention.rope import Options


def _angles(
    x: torch.Tensor, offset: int | torch.Tensor, freqs: torch.Tensor | None, options: Options
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and sines, ``[1 or batch, 1, tokens, dims / 2]``."""
    half = options.dims // 2
    if freqs is None:
        powers = -torch.arange(half, device=x.device, dtype=torch.float64) * (math.log(options.base or 1.0) / half)
        inverse = powers.exp().float()
    else:
        inverse = 1 / freqs.float()
    places = torch.arange(x.shape[-2], device=x.device)
    if isinstance(offset, torch.Tensor):
        places = places + offset.reshape(-1, 1, 1).long()
    else:
        places = (places + offset).reshape(1, 1, -1)
    angles = ((places.float() * options.scale)[..., None] * inverse).to(wide(x).dtype)
    return angles.cos(), angles.sin()


def _rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, options: Options) -> torch.Tensor:
    heads = wide(x).reshape(x.shape[0], math.prod(x.shape[1:-2]), *x.shape[-2:])
    turned, rest = heads[..., : options.dims], heads[..., options.dims :]
    if options.inverse:
        sine = -sine
    if options.traditional:
        first, second = turned[..., ::2], turned[..., 1::2]
        out = torch.stack((first * cosine - second * sine, first * sine + second * cosine), -1).flatten(-2)
    else:
        first, second = turned.chunk(2, -1)
        out = torch.cat((first * cosine - second * sine, first * sine + second * cosine), -1)
    return torch.cat((out, rest), -1).to(x.dtype).reshape(x.shape)


def run(
    x: torch.Tensor,
    second: torch.Tensor | None,
    offset: int | torch.Tensor,
    freqs: torch.Tensor | None,
    options: Options,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Compute the kernel's results."""
    cosine, sine = _angles(x, offset, freqs, options)
    return _rotated(x, cosine, sine, options), None if second is None else _rotated(second, cosine, sine, options)


def rope(
    x: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> torch.Tensor:
    """Rotate x."""
    return run(x, None, offset, freqs, Options(dims, traditional, base, scale))[0]


def rope_backward(
    grad: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> torch.Tensor:
    """Rotate back."""
    return run(grad, None, offset, freqs, Options(dims, traditional, base, scale, inverse=True))[0]


def rope_pair(
    queries: torch.Tensor,
    keys: torch.Tensor,
    dims: int,
    *,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    offset: int | torch.Tensor = 0,
    freqs: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate both."""
    options = Options(dims, traditional, base, scale)
    cosine, sine = _angles(queries, offset, freqs, options)
    return _rotated(queries, cosine, sine, options), _rotated(keys, cosine, sine, options)
