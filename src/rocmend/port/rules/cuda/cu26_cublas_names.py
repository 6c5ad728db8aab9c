"""cuBLAS names that PyTorch's build does not translate.

What it does:
  In sources that PyTorch builds, writes the HIP names of cuBLAS data types, compute types and math modes.

Why it matters:
  PyTorch's extension builder renames CUDA's API in a copy of the sources, by tables of its own. Some enumerators of
  cuBLAS are not in them, and the copy does not compile.

Use instead:
  The names of hipBLAS and HIP: `HIPBLAS_COMPUTE_32F`, `HIP_R_16F`, `HIPBLAS_TF32_TENSOR_OP_MATH`.

Fix safety:
  Safe: they are the same enumerators. Elsewhere the compatibility header has them (CU40).

References:
  torch.utils.hipify 2.0.0 (torch 2.13). hipBLAS documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.names import hip_names
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_LEFT = tuple(
    f"CUBLAS_{name}".encode()
    for name in (
        "COMPUTE_16F",
        "COMPUTE_16F_PEDANTIC",
        "COMPUTE_32F_FAST_16BF",
        "COMPUTE_32F_FAST_16F",
        "COMPUTE_32F_PEDANTIC",
        "COMPUTE_32I_PEDANTIC",
        "COMPUTE_64F_PEDANTIC",
        "DEFAULT_MATH",
        "GEMM_DFALT",
        "GEMM_DFALT_TENSOR_OP",
        "PEDANTIC_MATH",
        "TENSOR_OP_MATH",
        "TF32_TENSOR_OP_MATH",
    )
)
_TORCH = (b"<torch/", b'"torch/', b"<ATen/", b'"ATen/', b"<c10/", b'"c10/')


@rule(
    "CU26",
    "cuBLAS name that PyTorch's build does not translate",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"CUBLAS_",),
    sources=(
        "measured: torch.utils.hipify 2.0.0 in torch 2.13.0",
        "https://rocm.docs.amd.com/projects/hipBLAS/en/latest/",
    ),
    valid=(
        "#include <torch/extension.h>\nauto a = CUBLAS_OP_N;\n",
        "#include <cublas_v2.h>\nauto a = CUBLAS_TF32_TENSOR_OP_MATH;\n",
    ),
    invalid=(
        Case(
            "#include <ATen/ATen.h>\nauto mode = CUBLAS_TF32_TENSOR_OP_MATH;\n",
            "#include <ATen/ATen.h>\n#ifdef USE_ROCM\nauto mode = HIPBLAS_TF32_TENSOR_OP_MATH;\n"
            "#else\nauto mode = CUBLAS_TF32_TENSOR_OP_MATH;\n#endif\n",
        ),
    ),
)
def cublas_names(file: CudaFile) -> Iterator[Found]:
    """Yield the names."""
    if not any(name.startswith(_TORCH) for name, _ in file.includes):
        return
    known = hip_names()
    for index in file.names(*(name for name in _LEFT if name in known)):
        token = file.tokens[index]
        if token.directive >= 0 and file.directives[token.directive].name != b"define":
            continue
        name = token.text.decode()
        yield Found(
            token.start,
            token.end,
            f"{name} is not translated by PyTorch's build",
            (Edit(token.start, token.end, known[token.text]),),
        )
