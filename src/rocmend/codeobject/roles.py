"""What it means when a part of a package has no code for a GPU."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Role(StrEnum):
    """How much a part decides."""

    KERNELS = "kernels"
    """Without it nothing useful runs."""

    LIBRARY = "library"
    """Without it the operations that it computes fail or take another way."""

    TUNING = "tuning"
    """Without it things run, slower."""


class RoleNote(msgspec.Struct, frozen=True):
    """A part's role and what its absence means."""

    kind: Role
    without: str


_FAILS = 'its kernels fail with "invalid device function".'

_NO_HIPBLASLT = RoleNote(Role.LIBRARY, "PyTorch multiplies matrices with rocBLAS instead; scaled (FP8) products fail.")

_ROLES: dict[str, RoleNote] = {
    "rocBLAS": RoleNote(Role.KERNELS, 'BLAS calls other than matrix products fail with "invalid device function".'),
    "rocBLAS kernels": RoleNote(
        Role.KERNELS, "the first matrix product ends the process (rocBLAS cannot read its TensileLibrary file)."
    ),
    "Tensile kernels": RoleNote(Role.KERNELS, "matrix products fail: no Tensile library is found for the GPU."),
    "hipBLASLt": _NO_HIPBLASLT,
    "hipBLASLt kernels": _NO_HIPBLASLT,
    "hipSPARSELt": RoleNote(Role.LIBRARY, "semi-structured sparse products fail."),
    "hipSPARSELt kernels": RoleNote(Role.LIBRARY, "semi-structured sparse products fail."),
    "MIOpen": RoleNote(Role.LIBRARY, "convolutions and batch normalisation fail or hang while kernels are compiled."),
    "MIOpen database": RoleNote(
        Role.TUNING, "MIOpen searches and compiles convolution kernels at first use: slow starts, untuned kernels."
    ),
    "AOTriton": RoleNote(
        Role.LIBRARY,
        "flash and memory-efficient attention are missing; attention takes the slow, memory-hungry way.",
    ),
    "AITER": RoleNote(Role.LIBRARY, "AITER's assembly kernels are not available."),
    "composable_kernel": RoleNote(Role.LIBRARY, "the operations that call composable_kernel are not available."),
    "RCCL": RoleNote(Role.LIBRARY, "collective operations over several GPUs fail."),
    "rocSPARSE": RoleNote(Role.LIBRARY, "sparse operations fail."),
    "rocSOLVER": RoleNote(Role.LIBRARY, "linear solvers and decompositions fail."),
    "rocRAND": RoleNote(Role.LIBRARY, "random numbers that come from rocRAND fail."),
    "rocFFT": RoleNote(Role.TUNING, "rocFFT compiles its kernels at first use."),
    "rocALUTION": RoleNote(Role.LIBRARY, "rocALUTION's solvers fail."),
    "hipTensor": RoleNote(Role.LIBRARY, "tensor contractions fail."),
    "MIGraphX": RoleNote(Role.LIBRARY, "MIGraphX's own kernels fail."),
    "MAGMA": RoleNote(Role.LIBRARY, "linear algebra that goes through MAGMA fails."),
    "ROCm runtime": RoleNote(Role.TUNING, "the runtime's own helper kernels are compiled at first use."),
    "kernel files": RoleNote(Role.LIBRARY, "the kernels in those files cannot be loaded."),
}


def role_of(component: str) -> RoleNote:
    """Return a part's role; a part that is no library we know is the package's own kernels."""
    return _ROLES.get(component, RoleNote(Role.KERNELS, _FAILS))
