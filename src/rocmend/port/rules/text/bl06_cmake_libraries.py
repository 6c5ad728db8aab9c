"""CUDA libraries in CMake.

## What it does

Finds CUDA's imported targets (`CUDA::cudart`, `CUDA::cublas` …), the variables of the older `FindCUDA`
(`${CUDA_LIBRARIES}`, `${CUDA_INCLUDE_DIRS}` …) and libraries by name in commands that link.

## Why it matters

On ROCm these targets do not exist, so the configuration fails, and the variables are empty, so linking fails.

## Use instead

ROCm's targets, with the package that defines them.

## Fix safety

Safe where the library has a counterpart with the same functions under HIP's names, or, as NVTX's ranges, under names
that the compatibility header has. What has none (NVML, CUPTI, nvJPEG, NPP, the just-in-time linker) has to be ported
by hand.

## References

- <https://rocm.docs.amd.com/en/latest/conceptual/cmake-packages.html>
- <https://rocm.docs.amd.com/en/latest/reference/api-libraries.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Argument, Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.flags import MANUAL_LIBRARIES
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_LIBRARIES = {
    "cudart": ("hip::host", ""),
    "cudart_static": ("hip::host", ""),
    "cuda_driver": ("hip::host", ""),
    "cublas": ("roc::hipblas", "hipblas"),
    "cublasLt": ("roc::hipblaslt", "hipblaslt"),
    "cufft": ("hip::hipfft", "hipfft"),
    "curand": ("hip::hiprand", "hiprand"),
    "cusparse": ("roc::hipsparse", "hipsparse"),
    "cusolver": ("roc::hipsolver", "hipsolver"),
    "nvrtc": ("hiprtc::hiprtc", "hiprtc"),
    "nvToolsExt": ("roctx64", ""),
    "nvtx3": ("roctx64", ""),
}
_BY_OPTION = {**_LIBRARIES, "cuda": ("hip::host", ""), "nccl": ("roc::rccl", "rccl"), "cudadevrt": ("", "")}
"""By CUDA's name: the target, and the package that defines it where that is not hip itself."""

_VARIABLES = {
    "CUDA_LIBRARIES": "cudart",
    "CUDA_CUDART_LIBRARY": "cudart",
    "CUDA_CUDA_LIBRARY": "cuda_driver",
    "CUDA_CUBLAS_LIBRARIES": "cublas",
    "CUDA_cublas_LIBRARY": "cublas",
    "CUDA_CUFFT_LIBRARIES": "cufft",
    "CUDA_cufft_LIBRARY": "cufft",
    "CUDA_curand_LIBRARY": "curand",
    "CUDA_cusparse_LIBRARY": "cusparse",
    "CUDA_cusolver_LIBRARY": "cusolver",
}
_INCLUDES = {"CUDA_INCLUDE_DIRS", "CUDAToolkit_INCLUDE_DIRS", "CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES"}
_LINKED = re.compile(r"-l(\w[\w-]*)\Z")
_SCOPES = {"PRIVATE", "PUBLIC", "INTERFACE"}
_NAMED = re.compile(
    r"CUDA::(?P<target>\w+)|NCCL::(?P<nccl>NCCL|nccl)|\$\{(?P<variable>CUDA\w+|CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES)\}"
)
_LINKS = {"target_link_libraries", "link_libraries"}


@rule(
    "BL06",
    "CUDA libraries in CMake",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA::", b"NCCL::", b"${CUDA", b"cublas", b"cudart", b"cufft", b"curand", b"cusparse", b"cusolver"),
    paths=paths(Kind.CMAKE),
    sources=("https://rocm.docs.amd.com/en/latest/conceptual/cmake-packages.html",),
    valid=(
        "target_link_libraries(a PRIVATE hip::host)\n# CUDA::cudart\nmessage(${CUDA_LIBRARIES})\n",
        "add_library(CUDA::mine ALIAS a)\nif(TARGET CUDA::cudart)\nendif()\n",
    ),
    invalid=(
        Case(
            "target_link_libraries(a PRIVATE CUDA::cudart CUDA::cublas)\n",
            "if(USE_ROCM)\n  find_package(hipblas REQUIRED)\n"
            "  target_link_libraries(a PRIVATE hip::host roc::hipblas)\nelse()\n"
            "  target_link_libraries(a PRIVATE CUDA::cudart CUDA::cublas)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "include_directories(${CUDA_INCLUDE_DIRS})\ntarget_link_libraries(a\n  ${CUDA_LIBRARIES}\n  cufft)\n",
            "if(USE_ROCM)\n  include_directories(${hip_INCLUDE_DIRS})\n"
            "  find_package(hipfft REQUIRED)\n  target_link_libraries(a\n    hip::host\n"
            "    hip::hipfft)\nelse()\n  include_directories(${CUDA_INCLUDE_DIRS})\n"
            "  target_link_libraries(a\n    ${CUDA_LIBRARIES}\n    cufft)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "target_link_libraries(a PRIVATE NCCL::NCCL)\n",
            "if(USE_ROCM)\n  target_link_libraries(a PRIVATE roc::rccl)\nelse()\n"
            "  target_link_libraries(a PRIVATE NCCL::NCCL)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "target_link_libraries(a PUBLIC -lcudart -lcublas b CUDA::cuda_driver)\n",
            "if(USE_ROCM)\n  find_package(hipblas REQUIRED)\n"
            "  target_link_libraries(a PUBLIC hip::host roc::hipblas b)\nelse()\n"
            "  target_link_libraries(a PUBLIC -lcudart -lcublas b CUDA::cuda_driver)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "target_link_libraries(a PRIVATE CUDA::nvToolsExt -ldl)\n",
            "if(USE_ROCM)\n  target_link_libraries(a PRIVATE roctx64 -ldl)\nelse()\n"
            "  target_link_libraries(a PRIVATE CUDA::nvToolsExt -ldl)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case("target_link_libraries(a PRIVATE CUDA::nvml)\n", None, "CMakeLists.txt"),
        Case("target_link_libraries(a -lcublas -lcudnn)\n", None, "CMakeLists.txt"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that name CUDA's libraries and folders."""
    for command in file.cmake:
        if command.settled or not (command.name in _LINKS or command.name.endswith("include_directories")):
            continue
        edits, unknown, packages = _edits(file, command)
        if unknown:
            yield rewrite(
                file,
                (command.start, command.end),
                f"{', '.join(unknown)}: ROCm has no equivalent library.",
                (),
                remedy="Link it for CUDA only, and use another library or none if USE_ROCM is set.",
            )
        elif edits:
            break_ = file.lines.newline + file.lines.indent(command.start)
            wanted = "".join(f"find_package({package} REQUIRED){break_}" for package in packages)
            found = (Edit(command.start, command.start, wanted.encode()),) if wanted else ()
            yield rewrite(
                file,
                (command.start, command.end),
                f"{command.name} names CUDA libraries or folders.",
                (*found, *edits),
                remedy="Name ROCm's if USE_ROCM is set.",
            )


def _edits(file: TextFile, command: Command) -> tuple[tuple[Edit, ...], list[str], list[str]]:
    """Return the edits of a command, the names that have no counterpart, and the packages that are needed."""
    edits: list[Edit] = []
    unknown: list[str] = []
    packages: list[str] = []
    here: set[str] = set()  # what this command links already, for the same users
    before = command.arguments[0] if command.arguments else None
    for argument in command.arguments[0 if command.name in {"link_libraries", "include_directories"} else 1 :]:
        option = _LINKED.match(argument.text) if command.name in _LINKS else None
        bare = _LIBRARIES.get(argument.text) if command.name in _LINKS else None
        bare = _BY_OPTION.get(option[1]) if option else bare
        if option and option[1] in MANUAL_LIBRARIES:
            unknown.append(argument.text)
        if argument.text in _SCOPES:
            here.clear()
        if bare is not None:
            edits.append(_named(file, argument, before, bare[0], here))
            packages.append(bare[1])
        for match in _NAMED.finditer(argument.text):
            place = argument.start + match.start(), argument.start + match.end()
            if match.group("variable") in _INCLUDES:
                edits.append(Edit(*place, b"${hip_INCLUDE_DIRS}"))
                continue
            name = match.group("target") or _VARIABLES.get(match.group("variable") or "", match.group("variable") or "")
            name = name.removesuffix("_static") if name.removesuffix("_static") in _LIBRARIES else name
            known = ("roc::rccl", "") if match.group("nccl") else _LIBRARIES.get(name)
            if known is not None:
                whole = place == (argument.start, argument.end)
                edits.append(
                    _named(file, argument, before, known[0], here) if whole else Edit(*place, known[0].encode())
                )
                packages.append(known[1])
            elif match.group("target"):
                unknown.append(match.group())
        before = argument
    return tuple(edits), unknown, sorted({package for package in packages if package})


def _named(file: TextFile, argument: Argument, before: Argument | None, target: str, here: set[str]) -> Edit:
    """Return the edit that names a target in an argument's place; nothing where the command names it already."""
    if target and target not in here:
        here.add(target)
        return Edit(argument.start, argument.end, target.encode())
    apart = before is not None and not file.text[before.end : argument.start].strip()
    return Edit(before.end if apart and before else argument.start, argument.end, b"")
