"""Options of ``nvcc`` and what they are for ``hipcc``, which is clang.

Sources: the options of nvcc (https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/) and those of clang
(https://clang.llvm.org/docs/ClangCommandLineReference.html, https://clang.llvm.org/docs/HIPSupport.html). Measured with
clang 22: what is translated here is refused or, worse, taken for something else: ``-lineinfo`` links a library
``ineinfo``, ``-use_fast_math`` is ``-u se_fast_math``, ``-dc`` is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["LIBRARIES", "MANUAL_LIBRARIES", "Translation", "nvcc_only", "translated"]


class Translation(NamedTuple):
    """What becomes of some words of a command line.

    Attributes:
        first: Index of the first word.
        words: How many words it is.
        rocm: What stands there for hipcc; empty where nothing does.
        manual: Why a person must look at it; empty where the translation is known.
        architecture: Whether it names the GPUs that are compiled for.
    """

    first: int
    words: int
    rocm: str = ""
    manual: str = ""
    architecture: bool = False


# These three are what --use_fast_math means. -ffast-math would also promise that there are no NaNs and infinities, and
# attention kernels mask with -INFINITY.
_FAST = "-fgpu-approx-transcendentals -fgpu-flush-denormals-to-zero -fno-hip-fp32-correctly-rounded-divide-sqrt"

_ALONE = {
    "expt-relaxed-constexpr": "",
    "expt-extended-lambda": "",
    "extended-lambda": "",
    "use_fast_math": _FAST,
    "lineinfo": "-gline-tables-only",
    "generate-line-info": "-gline-tables-only",
    "G": "-g",
    "device-debug": "-g",
    "restrict": "",
    "res-usage": "-Rpass-analysis=kernel-resource-usage",
    "resource-usage": "-Rpass-analysis=kernel-resource-usage",
    "forward-unknown-to-host-compiler": "",
    "forward-unknown-to-host-linker": "",
    "Wno-deprecated-gpu-targets": "",
    "dc": "-fgpu-rdc -c",
    "device-c": "-fgpu-rdc -c",
    "keep": "-save-temps",
    "extra-device-vectorization": "",
    "disable-warnings": "-w",
    "allow-unsupported-compiler": "",
    "split-compile-extended": "",
    "dopt=on": "",
    "fmad=true": "",
    "ftz=true": "-fgpu-flush-denormals-to-zero",
    "ftz=false": "",
    "prec-div=true": "",
    "prec-sqrt=true": "",
    "prec-div=false": "-fno-hip-fp32-correctly-rounded-divide-sqrt",
    "prec-sqrt=false": "-fno-hip-fp32-correctly-rounded-divide-sqrt",
    "fmad=false": "-ffp-contract=off",
    "rdc=true": "-fgpu-rdc",
    "rdc=false": "",
    "relocatable-device-code=true": "-fgpu-rdc",
    "relocatable-device-code=false": "",
    "default-stream=per-thread": "-fgpu-default-stream=per-thread",
    "default-stream=legacy": "",
}
"""Without their dashes: nvcc takes one or two."""

_VALUED = {
    "Xptxas",
    "ptxas-options",
    "Xcudafe",
    "Xnvlink",
    "nvlink-options",
    "Xarchive",
    "maxrregcount",
    "threads",
    "split-compile",
    "diag-suppress",
    "diag-warn",
    "diag-error",
    "ccbin",
    "compiler-bindir",
    "cudart",
    "cudadevrt",
    "t",
    "ptxas-path",
    "display-error-number",
    "no-display-error-number",
    "default-stream",
    "std",
    "ftz",
    "prec-div",
    "prec-sqrt",
    "fmad",
    "rdc",
    "relocatable-device-code",
    "time",
    "Werror",
    "dopt",
    "brief-diagnostics",
}
"""Options whose value may be the next word; those that are not in ``_ALONE`` with their value are left out."""

_ARCHITECTURE = ("gencode", "generate-code", "arch", "gpu-architecture", "code", "gpu-code")
_HOST = ("Xcompiler", "compiler-options")
_REFUSED = {
    "ptx": "It writes PTX, which no AMD GPU reads.",
    "cubin": "It writes a cubin; for AMD GPUs the counterpart is --genco, which writes a code object.",
    "fatbin": "It writes a fat binary of CUDA code; for AMD GPUs the counterpart is --genco.",
    "dlink": "It links device code in a separate step; hipcc does that when linking the program (--hip-link).",
    "device-link": "It links device code in a separate step; hipcc does that when linking the program (--hip-link).",
    "dlto": "It optimizes device code when linking; hipcc does so with -fgpu-rdc -foffload-lto.",
}
_SURE = re.compile(
    r"-arch=(?:sm|compute|lto|all|\$)|-gencode|--generate-code|--gpu-architecture|-Xptxas|--ptxas-options|-Xcudafe|-Xcompiler"
    r"|--compiler-options|--maxrregcount|-maxrregcount|--threads=|-ccbin|--compiler-bindir|--diag-suppress|-diag-suppress"
    r"|--default-stream|-rdc=|--relocatable-device-code"
)
_DEFINED = {
    "__CUDA_NO_HALF_OPERATORS__": "__HIP_NO_HALF_OPERATORS__",
    "__CUDA_NO_HALF_CONVERSIONS__": "__HIP_NO_HALF_CONVERSIONS__",
}
_SAME = {"-std", "-Werror", "-t", "-code", "-time"}
"""One dash and clang's own, or not nvcc's alone: translated only where a value says that nvcc's is meant."""

LIBRARIES = {
    "cudart": "amdhip64",
    "cudart_static": "amdhip64",
    "cudadevrt": "",
    "cuda": "",
    "cublas": "hipblas",
    "nvToolsExt": "roctx64",
    "cublasLt": "hipblaslt",
    "cufft": "hipfft",
    "curand": "hiprand",
    "cusparse": "hipsparse",
    "cusolver": "hipsolver",
    "nccl": "rccl",
    "nvrtc": "hiprtc",
}
"""Libraries by what stands after ``-l`` (https://rocm.docs.amd.com/en/latest/reference/api-libraries.html)."""

MANUAL_LIBRARIES = frozenset({"cudnn", "nvidia-ml", "cupti", "nvjpeg", "nvjitlink", "nvinfer", "cutensor"})
"""Libraries of which ROCm has none with the same functions."""


def nvcc_only(word: str) -> bool:
    """Tell whether a word is an option that nvcc alone knows, whatever stands around it."""
    if _SURE.match(word):
        return True
    name = word.lstrip("-")
    return word.startswith("-") and name in _ALONE and name not in {"G", "restrict", "keep", "dc", "device-c"}


def translated(words: Sequence[str], *, architecture: str = "") -> list[Translation]:
    """Return what becomes of the words of a command line of nvcc; words that hipcc knows too are not among them.

    Args:
        words: Without quotes.
        architecture: What names the GPUs for hipcc; it stands once, where the first of nvcc's options for that stood.
    """
    found: list[Translation] = []
    at = 0
    while at < len(words):
        one = _one(words, at)
        if one is None:
            at += 1
            continue
        if one.architecture:
            known = any(other.architecture and other.rocm for other in found)
            one = one._replace(rocm="" if known else architecture)
        found.append(one)
        at += one.words
    return found


def _one(words: Sequence[str], at: int) -> Translation | None:  # noqa: PLR0911  a return for each kind of option
    word = words[at]
    if not word.startswith("-") or len(word) < 2:
        return None
    bare = word.lstrip("-")
    name, equal, value = bare.partition("=")
    following = words[at + 1] if at + 1 < len(words) else ""
    if name in _REFUSED and not equal:
        return Translation(at, 1, manual=_REFUSED[name])
    if name in _ARCHITECTURE and f"-{name}" not in _SAME:
        return Translation(at, 1 if equal else 2, architecture=True) if equal or following else None
    if name in _HOST:
        given = value if equal else following
        if given.strip("\"'").startswith("/"):
            return Translation(at, 1 if equal else 2, manual="It passes on an option of Microsoft's compiler.")
        return Translation(at, 1 if equal else 2, " ".join(_host(given)))
    if bare in _ALONE:
        return Translation(at, 1, _ALONE[bare])
    if name in _VALUED:
        return _valued(word, name, value if equal else None, following, at)
    if word.startswith(("-U", "-D")):
        macro, same, given = word[2:].partition("=")
        return Translation(at, 1, word[:2] + _DEFINED[macro] + same + given) if macro in _DEFINED else None
    if word == "-x" and following == "cu":
        return Translation(at, 2, "-x hip")
    return None


def _valued(word: str, name: str, value: str | None, following: str, at: int) -> Translation | None:
    if value is None and (word in _SAME and not _of_nvcc(word, following)):
        return None
    if value is not None and word.startswith(("-std=", "-Werror=", "--std=")):
        return None
    count = 1 if value is not None else 2
    given = value if value is not None else following
    return Translation(at, count, f"-std={given}" if name == "std" else _ALONE.get(f"{name}={given}", ""))


def _of_nvcc(word: str, following: str) -> bool:
    wanted = {"-std": r"c\+\+\d+\Z", "-Werror": r"(?:all-warnings|cross-execution-space-call)", "-t": r"\d+\Z"}
    return re.match(wanted.get(word, r"(?!)"), following) is not None


def _host(given: str) -> Iterator[str]:
    """Yield what is passed on to the host's compiler: hipcc takes it as it is."""
    for part in given.strip("\"'").replace("\\,", "\0").split(","):
        for word in part.split():
            yield word.replace("\0", ",")
