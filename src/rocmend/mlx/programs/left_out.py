"""What ``rocmend.mlx.core`` does not do of MLX, and why. The page *MLX coverage* is made of these tables.

A name that is missing altogether, or whose call raises ``NotImplementedError``, stands in ``LEFT_OUT``; one whose
signature differs, in ``DIFFERENT``. The test of the surface fails for anything that stands in neither, and for anything
here that is there after all.
"""

from __future__ import annotations

__all__ = ["DIFFERENT", "LEFT_OUT", "TESTS"]

LEFT_OUT: dict[str, str] = {}

DIFFERENT: dict[str, str] = {}

TESTS: dict[str, str] = {}
"""Tests of MLX's and mlx-lm's own suites that do not pass here, ``FILE::CLASS::TEST``, and why."""
