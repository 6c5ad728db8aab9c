"""Tuning records: tile sizes and launch options by target, shape class and Triton version."""

from rocmend.kernels.tuning.config import Config, with_warps
from rocmend.kernels.tuning.lookup import Asked, config_for, forced, observed, records

__all__ = ["Asked", "Config", "config_for", "forced", "observed", "records", "with_warps"]
