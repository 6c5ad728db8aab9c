"""Compiling HIP C++ for AMD GPUs where there is neither a GPU nor, if need be, a ROCm.

``compile_hip(source, "gfx942")`` gives a linked code object with its kernels' registers, spills and LDS, or the reasons
why there is none. ``check_syntax`` reads the host's and the device's side and generates nothing. ``findings`` says what
is wrong with a code object. ``find_toolchain`` says what compiles here.
"""

from rocmend.codeobject.hip.compiler import check_syntax, compile_hip
from rocmend.codeobject.hip.findings import CHECKS, KernelFinding, findings
from rocmend.codeobject.hip.records import Diagnostic, Failure, HipFailure, HipObject, Level, Syntax
from rocmend.codeobject.hip.toolchain import NoToolchainError, Toolchain, find_toolchain

__all__ = [
    "CHECKS",
    "Diagnostic",
    "Failure",
    "HipFailure",
    "HipObject",
    "KernelFinding",
    "Level",
    "NoToolchainError",
    "Syntax",
    "Toolchain",
    "check_syntax",
    "compile_hip",
    "find_toolchain",
    "findings",
]
