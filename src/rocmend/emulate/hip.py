"""HIP source to the bytes of a code object, for a launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmend.codeobject import hip
from rocmend.core.errors import RocmendError

__all__ = ["CompileError", "compile_hip"]


class CompileError(RocmendError):
    """A source does not compile."""

    code = "compile"


def compile_hip(source: str | bytes | Path, target: str, **options: Any) -> bytes:
    """Compile HIP source for a gfx target, without a GPU and without ROCm.

    Args:
        source: The text, which includes ``hip/hip_runtime.h`` by itself; or a file, as a ``Path``.
        target: The gfx target.
        **options: As ``rocmend.codeobject.hip.compile_hip`` takes them: ``wave_size``, ``defines``, ``include_dirs`` …

    Returns:
        The code object.

    Raises:
        CompileError: It does not compile.
        NoToolchainError: Nothing here compiles HIP.
    """
    made = hip.compile_hip(source.encode() if isinstance(source, str) else source, target, **options)
    if isinstance(made, hip.HipFailure):
        raise CompileError(target, made.message)
    return made.code
