"""Tuning records: tile sizes and launch options by target, shape class and Triton version."""

from rocmend.kernels.tuning.config import Config
from rocmend.kernels.tuning.lookup import config_for, forced, records

__all__ = ["Config", "config_for", "forced", "records"]
