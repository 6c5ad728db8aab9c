"""Numbers."""

from __future__ import annotations

import math

__all__ = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]

e = math.e
euler_gamma = 0.5772156649015329
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi
