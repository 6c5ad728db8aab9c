"""Random numbers: threefry streams, bit for bit those of MLX."""

from __future__ import annotations

from rocmend.mlx.random.continuous import gumbel, laplace, multivariate_normal, normal, truncated_normal, uniform
from rocmend.mlx.random.discrete import bernoulli, categorical, permutation, randint
from rocmend.mlx.random.keys import key, seed, split, state

__all__ = [
    "bernoulli",
    "categorical",
    "gumbel",
    "key",
    "laplace",
    "multivariate_normal",
    "normal",
    "permutation",
    "randint",
    "seed",
    "split",
    "state",
    "truncated_normal",
    "uniform",
]
