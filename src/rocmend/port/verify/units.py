"""The translation units of a project's ROCm side, and how each is compiled."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.core.gfx import lookup
from rocmend.port.cuda.includes import closure, included
from rocmend.port.definitions.files import build_files
from rocmend.port.tree import FOLDER
from rocmend.port.verify import outside
from rocmend.port.verify.job import Job

__all__ = [
    "Unit",
    "folder_of_header",
    "reached",
    "refused",
    "relocatable",
    "standard",
    "targets_of",
    "torch_folders",
    "unit_of",
    "units",
    "units_of",
]

_UNITS = (".cu", ".cu.cc", ".cu.cpp", ".hip", ".hip.cpp")
_HOST_UNITS = (".cc", ".cpp", ".cxx")
_TESTED_WAVE = {32: "gfx1100", 64: "gfx942"}
"""Where none is asked for: the targets with wavefronts of 32 and 64 lanes that most code is built for."""

_TORCH = re.compile(rb"#\s*include\s*[<\"](?:torch|ATen|c10)/")
_KERNEL = re.compile(rb"__global__|<<<")

_MAX_BUILD_BYTES = 4 << 20
_STANDARD = re.compile(r"(?:-std=(?:c|gnu)\+\+|(?:CXX|CUDA|HIP)_STANDARD[ =]+)(\d\d)\b")
_RELOCATABLE = re.compile(
    rb"(?:^|\s)(?:-dc|--device-c|-fgpu-rdc)\b|\brdc=true|relocatable-device-code=true|SEPARABLE_COMPILATION\b"
)
_STANDARDS = (17, 20, 23)
"""HIP's own headers, and those of ROCm's libraries, ask for C++17 at least."""

DEFINES = {"USE_ROCM": "1", "__HIP_PLATFORM_AMD__": "1"}
TORCH_DEFINES = {
    "HIP_ENABLE_WARP_SYNC_BUILTINS": "1",
    "CUDA_HAS_FP16": "1",
    "__HIP_NO_HALF_OPERATORS__": "1",
    "__HIP_NO_HALF_CONVERSIONS__": "1",
    "TORCH_EXTENSION_NAME": "extension",
    "TORCH_API_INCLUDE_EXTENSION_H": "",
}
"""What torch's own build of extensions defines on ROCm (``torch.utils.cpp_extension``)."""

TORCH_NVIDIA_DEFINES = {
    "__CUDA_NO_HALF_OPERATORS__": "1",
    "__CUDA_NO_HALF_CONVERSIONS__": "1",
    "__CUDA_NO_BFLOAT16_CONVERSIONS__": "1",
    "__CUDA_NO_HALF2_OPERATORS__": "1",
    "TORCH_EXTENSION_NAME": "extension",
    "TORCH_API_INCLUDE_EXTENSION_H": "1",
}
"""The same for NVIDIA."""


class Unit(NamedTuple):
    """A translation unit.

    Args:
        path: Relative to the project.
        torch: It includes torch's headers: torch's build translates names in it.
        folders: Further folders of headers, relative to the project.
    """

    path: str
    torch: bool
    folders: tuple[str, ...] = ()

    @property
    def defines(self) -> dict[str, str]:
        """Return the macros that it is compiled with."""
        return DEFINES | TORCH_DEFINES if self.torch else dict(DEFINES)

    @property
    def nvidia_defines(self) -> dict[str, str]:
        """Return the macros that it is compiled with for NVIDIA."""
        return dict(TORCH_NVIDIA_DEFINES) if self.torch else {}


def units_of(job: Job) -> list[Unit]:
    """Return a project's translation units."""
    found = units(job.sources, job.known)
    return [unit._replace(torch=unit.torch or unit.path in job.built_by_torch) for unit in found]


def units(sources: Mapping[str, bytes], known: Mapping[str, bytes] | None = None) -> list[Unit]:
    """Return the translation units among a project's CUDA sources.

    Headers are compiled where they are included, and so are sources that another one includes.

    Args:
        sources: By path, relative to the project.
        known: All its C++ by path: a header without CUDA may be the one that includes torch's. None: ``sources``.
    """
    found = []
    within = included(sources)
    for path, data in sorted(sources.items()):
        low = path.lower()
        if path in within:
            continue
        if low.endswith(_UNITS) or (low.endswith(_HOST_UNITS) and _KERNEL.search(data)):
            found.append(unit_of(path, sources, known))
    return found


def unit_of(path: str, sources: Mapping[str, bytes], known: Mapping[str, bytes] | None = None) -> Unit:
    """Return a source as a translation unit.

    Args:
        path: The source, relative to the project.
        sources: The project's CUDA sources, by path.
        known: All its C++ by path; None: ``sources``.
    """
    return Unit(path, _uses_torch(path, sources if known is None else known), _folders(path, sources))


def refused(job: Job, unit: Unit) -> str:
    """Return why a unit is not compiled: it would read a file outside of the project; empty where it would not."""
    if not job.outside:
        return ""
    return outside.reached(closure(unit.path, job.known), job.outside)


def reached(units: Sequence[Unit], sources: Mapping[str, bytes], changed: Iterable[str]) -> list[Unit]:
    """Return the units that are one of the changed files, or include one."""
    wanted = set(changed)
    return [unit for unit in units if not wanted.isdisjoint(closure(unit.path, sources))]


def _uses_torch(path: str, sources: Mapping[str, bytes]) -> bool:
    """Tell whether a unit, or a header of the project that it includes, includes torch's headers."""
    return any(_TORCH.search(sources[one]) for one in closure(path, sources))


def _folders(path: str, sources: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the usual folders of headers that a project has, the nearest to a unit first."""
    here = PurePosixPath(path).parent
    all_folders = {str(PurePosixPath(one).parent) for one in sources}
    wanted = [str(up / name) for up in (here, *here.parents) for name in ("include", "inc")]
    known = (one for one in wanted if one in all_folders or any(f.startswith(f"{one}/") for f in all_folders))
    beside = all(one.startswith(f"{FOLDER}/") for one in sources)
    return (*known, *([FOLDER] if beside else ()), ".")


def folder_of_header(header: str, paths: Iterable[str]) -> str | None:
    """Return the folder of a project in which a header is found under the name that a source gives it; None: none.

    Args:
        header: As the source names it: ``common/block.cuh``.
        paths: The project's headers.
    """
    plain = str(PurePosixPath(header))
    fits = sorted((one for one in paths if one == plain or one.endswith(f"/{plain}")), key=lambda one: (len(one), one))
    if not fits or plain.startswith(".."):
        return None
    return fits[0][: -len(plain)].rstrip("/") or "."


def targets_of(job: Job) -> list[str]:
    """Return the gfx targets to compile for: those asked for, and one more where they all have the same wave size."""
    asked = list(job.targets)
    if not asked and job.generations:
        asked = list(dict.fromkeys(job.generations[-1].manifest.targets))
    sizes = {lookup(name).wavefront_default for name in asked}
    return asked + [name for size, name in _TESTED_WAVE.items() if size not in sizes]


def standard(tree: Beneath) -> str:
    """Return the option for the C++ standard: the newest that the project's builds ask for, 17 where they ask for none.

    Args:
        tree: The project's folder.
    """
    asked = [17]
    for path in build_files(tree):
        with contextlib.suppress(OSError, DataError):
            text = tree.document(path, _MAX_BUILD_BYTES).decode(errors="replace")
            asked += [int(found) for found in _STANDARD.findall(text)]
    return f"-std=c++{max(number for number in asked if number in _STANDARDS)}"


def relocatable(tree: Beneath) -> bool:
    """Tell whether a project's builds link device code across units.

    Args:
        tree: The project's folder.
    """
    for path in build_files(tree):
        with contextlib.suppress(OSError, DataError):
            if _RELOCATABLE.search(tree.document(path, _MAX_BUILD_BYTES)):
                return True
    return False


def torch_folders() -> list[Path]:
    """Return the folders of torch's and Python's headers in this environment; none where torch is not installed."""
    import sysconfig
    from importlib.util import find_spec

    found = find_spec("torch")
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        return []
    include = Path(places[0]) / "include"
    return [include, include / "torch/csrc/api/include", Path(sysconfig.get_paths()["include"])]
