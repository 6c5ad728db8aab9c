"""Settings of Inductor that hold on ROCm."""

import logging
import os

logger = logging.getLogger(__name__)

_VARIABLES = (
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE",
)
_SETTINGS = {
    "max_autotune": False,
    "max_autotune_gemm": False,
    "max_autotune_pointwise": False,
    "max_autotune_gemm_backends": "ATEN",
    "coordinate_descent_tuning": False,
    "memory_planning": False,
    "triton.cudagraphs": False,
    "triton.cudagraph_trees": False,
}


def settle_inductor() -> None:
    """Turn off what is slow or unreliable on ROCm: tuning at first use, memory planning, captured graphs.

    Images for ROCm may turn tuning on through the environment, so that the default mode tunes too. Call this before
    anything is compiled. Settings that the installed PyTorch does not have are left out.
    """
    for name in _VARIABLES:
        if os.environ.pop(name, None) is not None:
            logger.info("%s is not used on ROCm", name)
    from torch._inductor import config

    for name, value in _SETTINGS.items():
        owner, _, last = name.rpartition(".")
        holder = getattr(config, owner, None) if owner else config
        if hasattr(holder, last) and getattr(holder, last) != value:
            setattr(holder, last, value)
            logger.info("torch._inductor.config.%s = %r", name, value)
