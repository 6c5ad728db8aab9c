"""The kernel of ``quantized_attention`` on Hopper."""

from __future__ import annotations

from rocmend.kernels.backends import Taken
from rocmend.kernels.backends.hopper.quantized_attention import streams
from rocmend.kernels.ops.attention.quantized_attention import Problem, shape_class
from rocmend.kernels.ops.attention.quantized_attention.asked import Asked
from rocmend.kernels.target import Target


def taken(problem: Problem, target: Target, *, asked: Asked, masked: bool) -> Taken | None:
    """Return the kernel if it takes a call; ``masked`` says whether anything is hidden but by its length.

    Its ``plan`` takes the call and whether the kernel that merges parts is launched early. It returns how many parts
    there are, and the launch of ``q, words, scales and biases of k and of v, lengths, sums of the parts, output``.
    """
    del target  # the call has it
    return Taken("streams", shape_class(problem), streams.plan) if streams.suits(asked, masked=masked) else None
