"""Recording operations in C, where there is a C compiler: the same behaviour at a fraction of the cost.

A step of a language model records hundreds of nodes, and Python needs about 2 µs for each where C needs 0.2. The
sources in this folder are compiled on first use and kept in the user's cache folder. Without a compiler, without
Python's headers, or with ``ROCMEND_MLX_ACCELERATED=0``, the Python code that they stand before does all.
"""

from __future__ import annotations

import logging
from typing import Any

from rocmend.core.extension import loaded
from rocmend.mlx.accelerated.build import NAME, BuildError, built
from rocmend.mlx.environment import asked

__all__ = ["native", "reason"]

LOG = logging.getLogger("rocmend.mlx")


def _load() -> tuple[Any, str]:
    wanted = asked("ROCMEND_MLX_ACCELERATED")
    if wanted == "0":
        return None, "switched off by ROCMEND_MLX_ACCELERATED=0"
    try:
        module = loaded(NAME, built())
    except (BuildError, ImportError, OSError) as error:
        if wanted == "1":
            raise ImportError(
                f"[ROCMEND_MLX_ACCELERATED] recording in C was requested but is not available: {error}. Set it to "
                "auto to continue without."
            ) from error
        LOG.debug("recording in Python: %s", error)
        return None, str(error)
    return module, ""


# the compiled module, or None and why there is none
native, reason = _load()
