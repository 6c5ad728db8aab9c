"""Fourier transforms."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("fft", tags=("rocfft", "hipfft"), allowance="library")


@family.probe("fft", "complex transform of lengths 64, 100 and 127, and back", ("complex64",))
def fft(ctx: Context) -> Case:
    inputs = tuple(ctx.randn(5, size) for size in (64, 100, 127))
    return Case(lambda *many: [part for x in many for part in (torch.fft.fft(x), torch.fft.ifft(x))], inputs)


@family.probe("rfft", "real transform and back", ("float32", "float64"))
def rfft(ctx: Context) -> Case:
    return Case(lambda x: [torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1])], (ctx.randn(5, 255),))


@family.probe("fft2", "transform over two axes", ("complex64",))
def fft2(ctx: Context) -> Case:
    return Case(lambda x: [torch.fft.fft2(x), torch.fft.fftshift(x)], (ctx.randn(3, 24, 33),))


@family.probe("stft", "short-time transform of a signal", ("float32",))
def stft(ctx: Context) -> Case:
    def spectrum(x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64, dtype=x.dtype, device=x.device)
        return torch.stft(x, 64, 16, window=window, return_complex=True)

    return Case(spectrum, (ctx.randn(2, 1000),))
