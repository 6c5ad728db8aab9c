"""Fourier transforms."""

from __future__ import annotations

from rocmend.mlx.fft.frames import istft, stft
from rocmend.mlx.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from rocmend.mlx.fft.transform import (
    fft,
    fft2,
    fftn,
    ifft,
    ifft2,
    ifftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "irfft",
    "irfft2",
    "irfftn",
    "istft",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "stft",
]
