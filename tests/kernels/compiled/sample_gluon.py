"""A kernel in Gluon. It is compiled in workers, never run."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, N803  Triton's language, as in the kernels of the ops

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def sum_kernel(source, out, BLOCK: gl.constexpr):
    # How many wavefronts share the tensor is said here, and has to be what the kernel is compiled for.
    at = gl.arange(0, BLOCK, layout=gl.BlockedLayout([1], [32], [4], [0]))
    gl.store(out, gl.sum(gl.load(source + at), axis=0))
