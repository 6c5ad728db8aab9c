"""``mlx.core.linalg``: linear algebra."""

from rocmend.mlx.linalg import *  # noqa: F403
from rocmend.mlx.linalg import __all__  # noqa: F401
