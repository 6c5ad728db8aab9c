"""Specialisations of the sample kernels, as recording would have made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmend.kernels import target as targets
from rocmend.kernels.compiled.spec import Spec

HERE = Path(__file__).parent


def sample(kernel: str, target: str, signature: dict[str, str], triton: str, warps: int = 4, **constants: Any) -> Spec:
    """Return a specialisation of a sample kernel whose pointers and sizes are divisible by 16."""
    names = list(signature) + list(constants)
    return Spec(
        op="sample",
        case="case",
        kernel=kernel if ":" in kernel else f"sample_kernels:{kernel}",
        source="",
        record="sample/kernel/*@any",
        config={"num_warps": warps},
        signature=signature | dict.fromkeys(constants, "constexpr"),
        constants=tuple(((names.index(name),), value) for name, value in constants.items()),
        attributes=tuple(((at,), [["tt.divisibility", 16]]) for at in range(len(signature))),
        options={"num_warps": warps, "enable_fp_fusion": True},
        target=target,
        wave_size=targets.by_name(target).wave_size,
        triton=triton,
    )


def dot(  # noqa: PLR0917  as a call of the kernel
    target: str, triton: str, kind: str = "fp16", size: int = 64, precision: str = "ieee", warps: int = 4
) -> Spec:
    """Return a product of two matrices."""
    signature = {"a": f"*{kind}", "b": f"*{kind}", "out": "*fp32", "K": "i32"}
    shape = {"M": size, "N": size, "BLOCK_K": 32, "PRECISION": precision}
    return sample("dot_kernel", target, signature, triton, warps, **shape)
