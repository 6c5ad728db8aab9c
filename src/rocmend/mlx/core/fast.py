"""``mlx.core.fast``: fused operations."""

from rocmend.mlx.fast import *  # noqa: F403
from rocmend.mlx.fast import __all__  # noqa: F401
