"""``mlx.core.random``: random numbers."""

from rocmend.mlx.random import *  # noqa: F403
from rocmend.mlx.random import __all__  # noqa: F401
