"""The compatibility header: what a project's CUDA sources need to be read as HIP.

It holds the names that the project uses and no others, so that it can be read and checked. Kernel launches need
nothing: HIP's compiler takes the triple chevrons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.names import header_of, headers, hip_names
from rocmend.port.cuda.shims import CALLED, MARKS, ON_DEVICE, ON_HOST, SHIMS

__all__ = ["Uses", "compatibility_header", "defines", "uses"]

_BY_PREFIX = (
    (b"hipblasLt", "hipblaslt/hipblaslt.h"),
    (b"hipblas", "hipblas/hipblas.h"),
    (b"HIPBLAS_", "hipblas/hipblas.h"),
    (b"hipfft", "hipfft/hipfft.h"),
    (b"hiprand", "hiprand/hiprand.h"),
    (b"hipsparse", "hipsparse/hipsparse.h"),
    (b"hipsolver", "hipsolver/hipsolver.h"),
    (b"hiprtc", "hip/hiprtc.h"),
    (b"roctx", "roctracer/roctx.h"),
    (b"__hip_bfloat16", "hip/hip_bf16.h"),
    (b"__hip_fp8", "hip/hip_fp8.h"),
    (b"hipFloatComplex", "hip/hip_complex.h"),
    (b"hipDoubleComplex", "hip/hip_complex.h"),
)
_HIPBLAS = (
    ("HIPBLAS_V2", "data types and compute types as cuBLAS has them"),
    ("HIPBLAS_USE_HIP_HALF", "__half, not an integer of 16 bits"),
    ("HIPBLAS_USE_HIP_BFLOAT16", "__hip_bfloat16, not a structure of its own"),
)
_NAMESPACES = {b"cub": ("hipcub/hipcub.hpp", "namespace cub = hipcub;")}


@cache
def _support() -> tuple[bytes, ...]:
    """Return the names of the headers with code that rewrites use, without their endings."""
    found = resources.files("rocmend.port.support").iterdir()
    return tuple(sorted(item.name.removesuffix(".h").encode() for item in found if item.name.endswith(".h")))


class Uses:
    """What sources use of CUDA: names of its API, headers, and what HIP has only with a few lines of help.

    Attributes:
        names: CUDA names that have a HIP name.
        headers: HIP headers.
        shims: Names in ``shims.SHIMS``.
        namespaces: CUDA namespaces with another name.
        thrust: Whether Thrust is used.
        support: The support headers that rewrites use: what they hold is called as they are.
        hipblas: Whether sources call hipBLAS themselves: its types are then those that they were written for.
        asked: Names that are used only where a library's header was read, by the HIP header that stands for it.
    """

    def __init__(self) -> None:
        self.names: set[bytes] = set()
        self.headers: set[str] = set()
        self.shims: set[bytes] = set()
        self.namespaces: set[bytes] = set()
        self.thrust = False
        self.hipblas = False
        self.support: set[str] = set()
        self.asked: dict[str, set[bytes]] = {}

    def add(self, file: CudaFile) -> None:
        """Add what a source uses."""
        known = hip_names()
        names = {name for name in file.all_names if _on_rocm(file, name)}
        own = set(file.macros)
        for name, hip in _asked(file):
            if name in known and name not in own:
                names.discard(name)
                self.asked.setdefault(hip, set()).add(name)
        used = {name for name in names & known.keys() if name not in own}
        self.names |= used
        shims = {
            name
            for name in names & SHIMS.keys()
            if name not in own and not defines(file, name) and (name not in CALLED or _called(file, name))
        }
        self.shims |= shims | {ON_HOST[name] for name in shims & ON_HOST.keys() if _called(file, name, host=True)}
        self.shims |= {shim for name, shim in ON_DEVICE.items() if name in names - own and _on_device(file, name)}
        self.namespaces |= (
            names & _NAMESPACES.keys() if b"cub::" in file.data or b"namespace cub" in file.data else set()
        )
        self.hipblas = self.hipblas or any(name.startswith((b"hipblas", b"HIPBLAS_")) for name in names)
        for stem in _support():
            if any(name in (stem, b"hip_" + stem) or name.startswith(stem + b"_") for name in names):
                self.support.add(f"{stem.decode()}.h")
        for included, _ in file.includes:
            header = header_of(included)
            if header is not None and header.hip:
                self.headers.add(header.hip)
            self.thrust = self.thrust or included.startswith(b"<thrust/")
        for name in used:
            for prefix, header_name in _BY_PREFIX:
                if known[name].startswith(prefix):
                    self.headers.add(header_name)
                    break
        if b"half" in names or b"__half" in names or b"half2" in names or b"__half2" in names:
            self.headers.add("hip/hip_fp16.h")

    @property
    def defined(self) -> set[bytes]:
        """The CUDA names that sources use with the headers that are included."""
        return self.names.union(*(names for header, names in self.asked.items() if header in self.headers))

    def keep(self, header: bytes) -> None:
        """Add what a compatibility header holds from an earlier port: sources that are not looked at again use it."""
        text = header.decode("utf-8", "replace")
        known = hip_names()
        for line in text.splitlines():
            words = line.split()
            if line.startswith("#define ") and words[1].encode() in known:
                self.names.add(words[1].encode())
            elif line.startswith("namespace "):
                self.namespaces |= {words[1].encode()} & _NAMESPACES.keys()
        self.shims |= {name for name, shim in SHIMS.items() if shim.text in text}
        self.thrust = self.thrust or "<thrust/" in text or "#include <chrono> // for rocPRIM" in text
        self.support |= {f"{stem.decode()}.h" for stem in _support() if f'"{stem.decode()}.h"' in text}
        self.headers |= {one.hip for one in headers().values() if one.hip and f"<{one.hip}>" in text}


def _on_rocm(file: CudaFile, name: bytes) -> bool:
    """Return whether ROCm may compile one of a name's places."""
    return any(file.on_rocm(file.tokens[index].start) for index in file.names(name, shared=False))


def _asked(file: CudaFile) -> Iterator[tuple[bytes, str]]:
    """Yield names that a source uses only where it was asked whether a library's header was read, and HIP's header."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for branch in file.branches:
        directive = file.directives[branch.directive]
        words = [one.text for one in file.tokens[directive.first + 1 : directive.last]]
        if len(words) == 2 and words[0] == b"ifdef":
            header = MARKS.get(words[1].decode("utf-8", "replace"), "")
            if header not in ("", "hip/hip_runtime.h"):
                spans.setdefault(header, []).append((branch.start, branch.end))
    for header, places in spans.items():
        for name in file.all_names:
            at = [file.tokens[index].start for index in file.names(name, shared=False)]
            if at and all(any(start <= one < end for start, end in places) for one in at):
                yield name, header


def _called(file: CudaFile, name: bytes, *, host: bool = False) -> bool:
    """Return whether a source calls a function with no namespace before its name, anywhere or in code for the host."""
    calls = (call for call in file.calls(name, shared=False) if not call.qualifier)
    return any(not (host and _device_alone(file, call.start)) for call in calls)


def _on_device(file: CudaFile, name: bytes) -> bool:
    """Return whether device code calls a function."""
    found = (file.function_at(call.start) for call in file.calls(name, shared=False))
    return any(function is not None and function.on_device for function in found)


def _device_alone(file: CudaFile, at: int) -> bool:
    function = file.function_at(at)
    if function is None or not function.on_device or b"__host__" in function.qualifiers:
        return False
    return _LAMBDA.search(file.data, function.start, at) is None  # clang reads those for the host too


_LAMBDA = re.compile(rb"[=(,]\s*\[[^\[\];]*\]\s*(?:\(|\{|__)")


def defines(file: CudaFile, name: bytes) -> bool:
    """Return whether a source defines a function or macro of this name itself."""
    return name in file.macros or any(function.name.text == name for function in file.functions)


def uses(sources: Iterable[tuple[str, bytes]], earlier: bytes = b"") -> Uses:
    """Return what sources use of CUDA.

    Args:
        sources: Path and bytes of each, as they are after the port.
        earlier: The compatibility header of an earlier port.
    """
    found = Uses()
    found.keep(earlier)
    for path, data in sources:
        found.add(CudaFile(path, data))
    return found


def compatibility_header(found: Uses) -> bytes:
    """Return the text of ``cuda_to_hip.h`` for what a project uses.

    It is read on the ROCm side only. HIP's headers come first: names that are defined after them change nothing there.
    Where HIP itself stands on CUDA (``__HIP_PLATFORM_NVIDIA__``), CUDA's names mean what they always did: no macro and
    no overload takes their place.
    """
    known = hip_names()
    here = {"", "hip/hip_runtime.h"} | found.headers
    shims = list(dict.fromkeys(SHIMS[name] for name in sorted(found.shims) if SHIMS[name].where in here))
    wanted = found.headers | {name for shim in shims for name in shim.headers}
    wanted |= {_NAMESPACES[namespace][0] for namespace in found.namespaces}
    device = wanted & {one.hip for one in headers().values() if one.device}
    host = sorted(wanted - device - {"hip/hip_runtime.h"})
    lines = [
        "// CUDA names that this project uses, as HIP has them. Included where USE_ROCM is defined, in place of the",
        "// headers of CUDA. Generated; written anew by each port.",
        "#ifndef CUDA_TO_HIP_H",
        "#define CUDA_TO_HIP_H",
        "",
        "#if !defined(__HIP_PLATFORM_AMD__) && !defined(__HIP_PLATFORM_NVIDIA__)",
        "#define __HIP_PLATFORM_AMD__",
        "#endif",
    ]
    if "hipblas/hipblas.h" in host and not found.hipblas:
        for name, why in _HIPBLAS:
            lines += [f"#ifndef {name}", f"#define {name} // {why}", "#endif"]
    # Compilers of the host alone cannot read HIP's device code.
    lines += ["#ifdef __HIPCC__", "#include <hip/hip_runtime.h>", "// of C, as nvcc has read them before any source"]
    lines += [f"#include <{name}.h>" for name in ("assert", "math", "stdio", "stdlib", "string", "time")]
    lines += ["#else", "#include <hip/hip_runtime_api.h>", "#endif"]
    lines += [f"#include <{name}>" for name in host]
    if device or found.thrust:
        prim = found.thrust or any(name.startswith(("hipcub/", "rocprim/")) for name in device)
        lines += ["#ifdef __HIPCC__", *(["#include <chrono> // for rocPRIM 6.4, which uses it"] if prim else [])]
        lines += [f"#include <{name}>" for name in sorted(device)]
        lines += ["#endif"]
    lines += ["", "#ifndef __HIP_PLATFORM_NVIDIA__ // HIP on CUDA has these names from CUDA"]
    for namespace in sorted(found.namespaces):
        lines += ["#ifdef __HIPCC__", _NAMESPACES[namespace][1], "#endif"]
    shimmed = {name.encode() for shim in shims for name in shim.replaces}
    lines += [f"#define {name.decode()} {known[name].decode()}" for name in sorted(found.defined - shimmed)]
    for shim in shims:
        lines += ["", *shim.text.strip("\n").splitlines()]
    lines += ["#endif"]
    if found.support:
        lines += ["", "#ifdef __HIPCC__", *(f'#include "{name}"' for name in sorted(found.support)), "#endif"]
    lines += ["", "#endif", ""]
    return "\n".join(lines).encode()
