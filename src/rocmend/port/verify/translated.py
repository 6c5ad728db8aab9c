"""A copy of a torch extension's sources with names translated, as torch's own build of extensions translates them.

torch's headers for CUDA say ``cudaStream_t`` and include CUDA's headers; a torch that is built for ROCm has them
translated already, another one has not: what is lacking there is translated beside the project's sources.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocmend.core.private import cache_folder
from rocmend.core.sealed import building, is_complete
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.names import header_of, hip_names
from rocmend.port.cuda.torch_names import CUB
from rocmend.port.cuda.write import hipified
from rocmend.port.verify.job import Job

__all__ = ["TORCH", "translated"]

TORCH = "torch-for-rocm"
"""The folder of torch's translated headers, within the copy."""

_OF_TORCH = ("c10/cuda", "ATen/cuda", "ATen/native/cuda")
_BUILT = {
    "c10/cuda/impl/cuda_cmake_macros.h": b"#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n",
    "ATen/cuda/CUDAConfig.h": b"#pragma once\n#define AT_ROCM_ENABLED() 1\n"
    + b"".join(b"#define AT_%s_ENABLED() 0\n" % name for name in (b"CUDNN", b"CUSPARSELT", b"HIPSPARSELT", b"MAGMA")),
}
"""What torch's build for a GPU writes and one for the CPU does not."""

_ALSO = {
    "ATen/hip/DeviceUtils.cuh": "ATen/cuda/DeviceUtils.cuh",
    "ATen/native/hip/DeviceSqrt.cuh": "ATen/native/cuda/DeviceSqrt.cuh",
    "c10/hip/HIPMathCompat.h": "c10/cuda/CUDAMathCompat.h",
}
"""What torch's headers for any GPU include by its name in a build for ROCm, and what that is."""

_NAMED_TWICE = b"namespace c10::hip"
"""In torch's header of streams: its build for ROCm has the same code under the names of both, as files alone."""

_OF_CUB = re.compile(rb"(?<![\w:])cub::(" + b"|".join(sorted(CUB)) + rb")\b")

_FORMAT = 4
_KEPT = 8


def translated(job: Job, torch: Sequence[Path]) -> Path:
    """Return the copy. It lies in the user's cache, under a name that changes with what it is made of.

    Args:
        job: The run.
        torch: The folders of torch's headers; none where torch is not installed.
    """
    files = dict(job.sources) | {
        part.path: part.after for part in job.parts if part.after is not None and part.path not in job.sources
    }
    own = dict(_torchs(torch))
    digest = hashlib.sha256(f"{_FORMAT}\n".encode())
    for path, data in sorted({**files, **own}.items()):
        digest.update(path.encode(errors="surrogateescape") + b"\0" + hashlib.sha256(data).digest())
    digest.update(repr(sorted(hip_names().items())).encode())
    place = cache_folder("code", "translated") / digest.hexdigest()[:24]
    if is_complete(place):
        os.utime(place)
        return place
    with building(place) as made:
        for path, data in {**files, **own}.items():
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_names(path, data) if path in job.sources or path in own else data)
    _prune(place.parent)
    return place


def _names(path: str, data: bytes) -> bytes:
    """Return a source with the names of CUDA's interfaces and headers translated."""
    included = {name: header_of(name) for name, _ in CudaFile(path, data).includes}
    headers = {
        name: b"<" + (other.hip or "hip/hip_runtime.h").encode() + b">"
        for name, other in included.items()
        if other is not None and not other.advice
    }
    text = hipified(data, (), {**hip_names(), **headers, b"__CUDACC__": b"__HIPCC__"}, path=path)
    return _OF_CUB.sub(rb"hipcub::\1", text)


def _torchs(torch: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield torch's headers for CUDA, unless this torch is one for ROCm."""
    if not torch or _for_rocm(torch[0].parent / "version.py"):
        return
    for folder in _OF_TORCH:
        for path in sorted((torch[0] / folder).rglob("*")):
            if path.suffix in {".h", ".cuh"}:
                yield f"{TORCH}/{path.relative_to(torch[0])}", path.read_bytes()
    for name, data in _BUILT.items():
        if not (torch[0] / name).is_file():
            yield f"{TORCH}/{name}", data
    for name, other in {**_ALSO, **dict(_for_hip(torch[0]))}.items():
        if ((torch[0] / other).is_file() or other in _BUILT) and not (torch[0] / name).is_file():
            yield f"{TORCH}/{name}", f"#pragma once\n#include <{other}>\n".encode()


def _for_hip(torch: Path) -> Iterator[tuple[str, str]]:
    """Yield the headers that a build for ROCm has under another name, and what each is: ``c10/hip/HIPStream.h``."""
    try:
        if _NAMED_TWICE not in (torch / "c10/cuda/CUDAStream.h").read_bytes():
            return
    except OSError:
        return
    found = (path for folder in _OF_TORCH for path in sorted((torch / folder).rglob("*")))
    for other in (*(path.relative_to(torch).as_posix() for path in found if path.suffix in {".h", ".cuh"}), *_BUILT):
        folder, _, name = other.rpartition("/")
        yield f"{folder.replace('/cuda', '/hip')}/{name.replace('CUDA', 'HIP').replace('cuda', 'hip')}", other


def _for_rocm(version: Path) -> bool:
    """Tell whether an installed torch is built for ROCm, by what it says of itself."""
    try:
        return re.search(r"^hip\b[^=\n]*=\s*['\"]", version.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _prune(folder: Path) -> None:
    """Remove all but the copies that were used last."""
    with contextlib.suppress(OSError):
        copies = [one for one in folder.iterdir() if not one.name.startswith(".")]
        copies.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in copies[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
