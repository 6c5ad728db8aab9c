"""``mlx.core.fft``: Fourier transforms."""

from rocmend.mlx.fft import *  # noqa: F403
from rocmend.mlx.fft import __all__ as __all__
