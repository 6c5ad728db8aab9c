"""``mlx.core.fft``: Fourier transforms."""

from rocmend.mlx.fft import *  # noqa: F403
from rocmend.mlx.fft import __all__  # noqa: F401
