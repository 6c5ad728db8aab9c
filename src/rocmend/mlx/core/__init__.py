"""The module that programs import as ``mlx.core``."""

from __future__ import annotations

from rocmend.mlx import ops as _ops
from rocmend.mlx.array import array

globals().update(_ops.public())

__all__ = ["array", *_ops.public()]
