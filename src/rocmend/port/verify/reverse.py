"""Compiling the ROCm side of a port with nvcc: HIP's names with CUDA's meaning.

A dozen headers with HIP's names are written into a folder; a source that includes them gets CUDA's, and macros from
each of HIP's names that it uses to CUDA's. Of what only an AMD compiler has (``__builtin_amdgcn_…``), a few are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.names import headers, hip_names, regular

__all__ = ["REVERSE", "write_headers"]

REVERSE = ("-DUSE_ROCM", "-D__HIP_PLATFORM_NVIDIA__")
"""What is defined for the ROCm side here: HIP, and that it stands on CUDA."""

_OF_HIP = re.compile(rb"hip|HIP|__hip")
_RUNTIME = Path(__file__).parent / "hip_on_cuda.h"


def write_headers(folder: Path, sources: Iterable[bytes]) -> None:
    """Write the headers.

    Args:
        folder: Where; a source that is compiled with ``-I folder`` finds them.
        sources: What will be compiled: the names that it uses are translated.
    """
    used: set[bytes] = set()
    for data in sources:
        used |= {token.text for token in CudaFile("", data).tokens if token.kind == Kind.NAME}
    names = hip_names()
    back: dict[bytes, bytes] = {}
    for cuda, hip in sorted(names.items(), key=lambda pair: (regular(pair[0].decode()).encode() != pair[1], pair[0])):
        # several names of CUDA become one of HIP: the regular one of the runtime stands for them all
        if _OF_HIP.match(hip) and (hip in used or cuda in used) and not back.get(hip, b"").startswith(b"cuda"):
            back[hip] = cuda
    lines = [f"#define {hip.decode()} {cuda.decode()}" for hip, cuda in sorted(back.items())]
    _write(folder / "hip/hip_runtime.h", "\n".join([_RUNTIME.read_text(encoding="utf-8"), *lines, ""]))
    _write(folder / "hip/hip_runtime_api.h", "#pragma once\n#include <hip/hip_runtime.h>\n")
    for name, header in headers().items():
        if not header.hip or name.endswith("/") or (folder / header.hip).exists():
            continue
        _write(folder / header.hip, _wrapped(name))
    _write(folder / "hipcub/hipcub.hpp", _wrapped("cub/cub.cuh") + "namespace cub {}\nnamespace hipcub = cub;\n")


_MACROS = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all")


def _wrapped(header: str) -> str:
    """Return a header that includes one of CUDA's without the macros above, whose names its own code may use.

    The compatibility header asks for what any source of the project uses: where a library of CUDA is not installed,
    sources that do without it compile all the same.
    """
    lines = ["#pragma once", "#include <hip/hip_runtime.h>"]
    for name in _MACROS:
        lines += [f'#pragma push_macro("{name}")', f"#undef {name}"]
    lines += [f"#if __has_include(<{header}>)", f"#include <{header}>", "#endif"]
    lines += [f'#pragma pop_macro("{name}")' for name in _MACROS]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
