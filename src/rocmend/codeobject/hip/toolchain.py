"""Finding something that compiles HIP C++ for AMD GPUs, on any machine.

A ROCm that is installed comes first: it is what a port will be built with. Without one, three packages of pip are
enough: ziglang carries clang with the AMDGPU back end and ld.lld, triton the HIP headers and the device libraries,
libclang-ng clang's own headers.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

import msgspec

from rocmend.codeobject.hip.headers import HEADERS_VARIABLE, STAND_INS
from rocmend.core.errors import RocmendError
from rocmend.core.optional import pip_install
from rocmend.core.places import expanded
from rocmend.core.supervise import run_command

__all__ = ["KIND_VARIABLE", "NoToolchainError", "Toolchain", "find_toolchain"]

KIND_VARIABLE = "ROCMEND_HIP_COMPILER"
"""``rocm``, ``pip`` or the path of a clang or hipcc: instead of the search."""

_VERSION = re.compile(r"clang version (\d+)[^\s]*")
_INSTALLED = re.compile(r"^InstalledDir: (.+)$", re.MULTILINE)
_HIP_VERSION = re.compile(r"#define HIP_VERSION_(MAJOR|MINOR|PATCH) (\d+)")


def _install() -> str:
    return f"{pip_install('compile')} 'triton>=3.6,<3.10'"


class NoToolchainError(RocmendError):
    """Nothing here compiles HIP for AMD GPUs."""

    code = "no-compiler"


class Toolchain(msgspec.Struct, frozen=True):
    """Something that compiles HIP C++ to AMD code objects.

    Attributes:
        kind: ``rocm`` (an installed ROCm) or ``pip`` (ziglang, triton, libclang-ng).
        name: What it is, for a person: ``clang 22.1.8 (ziglang 0.17.0), HIP 7.1 (triton 3.9.0)``.
        clang: How clang is called.
        linker: How ld.lld is called.
        flags: Options that every compilation gets: headers and libraries.
        device_flags: Options that a compilation for the device gets besides: the device libraries.
        wants_constants: The device libraries' constants must be linked in (``constants.constants``).
        header_folders: Folders of further headers, searched last.
        fingerprint: Changes whenever the compiler, the headers or the libraries do.
    """

    kind: str
    name: str
    clang: tuple[str, ...]
    linker: tuple[str, ...]
    flags: tuple[str, ...]
    device_flags: tuple[str, ...] = ()
    wants_constants: bool = False
    header_folders: tuple[str, ...] = ()
    fingerprint: str = ""


def find_toolchain(environment: Mapping[str, str] | None = None) -> Toolchain:
    """Return the compiler to use: a ROCm's where one is installed, else the one of pip's packages.

    Args:
        environment: Instead of this process's: ``ROCMEND_HIP_COMPILER``, ``ROCMEND_HIP_HEADERS``, ``ROCM_PATH``,
            ``HIP_PATH`` and ``PATH`` are read.

    Raises:
        NoToolchainError: There is none, or the one asked for does not work; the message says how to get one.

    Cost:
        A run of ``clang --version`` (0.05 s); the answer is kept for as long as the process lives.
    """
    given = os.environ if environment is None else environment
    names = (KIND_VARIABLE, HEADERS_VARIABLE, "ROCM_PATH", "HIP_PATH", "PATH")
    return _find(*(given.get(name, "") for name in names))


@cache
def _find(wanted: str, headers: str, rocm_path: str, hip_path: str, path: str) -> Toolchain:
    folders = tuple(str(expanded(one, HEADERS_VARIABLE).resolve()) for one in headers.split(os.pathsep) if one)
    absent = [folder for folder in folders if not Path(folder).is_dir()]
    if absent:
        raise NoToolchainError("hip compile", f"{HEADERS_VARIABLE} names {absent[0]}, which is no folder.")
    if wanted not in {"", "pip", "rocm"}:
        found = _rocm(expanded(wanted, KIND_VARIABLE), folders)
        if found is None:
            raise NoToolchainError(
                "hip compile",
                f"{KIND_VARIABLE} names {wanted}, which is no clang or hipcc that runs.",
                next_step="Name a program, or one of: rocm, pip.",
            )
        return found
    if wanted != "pip":
        for program in _rocm_programs(rocm_path, hip_path, path):
            found = _rocm(program, folders)
            if found is not None:
                return found
    if wanted == "rocm":
        raise NoToolchainError(
            "hip compile",
            "no ROCm is installed here: neither ROCM_PATH, HIP_PATH, /opt/rocm nor the PATH leads to its clang.",
            next_step=f"Unset {KIND_VARIABLE}, and pip's packages are used: {_install()}",
        )
    return _pip(folders)


# -- an installed ROCm -------------------------------------------------------------------------------------------------


def _rocm_programs(rocm_path: str, hip_path: str, path: str) -> list[Path]:
    roots = [Path(one) for one in (rocm_path, hip_path) if one] + [Path("/opt/rocm")]
    inside = ("llvm/bin/clang++", "lib/llvm/bin/clang++", "bin/amdclang++", "bin/hipcc")
    found = [root / one for root in roots for one in inside]
    on_path = (shutil.which(name, path=path) for name in ("amdclang++", "hipcc") if path)
    return [one for one in (*found, *(Path(one) for one in on_path if one)) if one.is_file()]


def _rocm(program: Path, folders: tuple[str, ...]) -> Toolchain | None:
    """Return the toolchain that a program of ROCm belongs to; None where it does not run or is no clang."""
    said = run_command([str(program), "--version"], time_limit_s=60)
    version = _VERSION.search(said.stdout)
    if not said.ok or version is None:
        return None
    installed = _INSTALLED.search(said.stdout)
    # hipcc is a wrapper that adds options of its own: clang itself does what it is told
    home = Path(installed[1].strip()) if installed else program.resolve().parent
    clang = next((home / name for name in ("clang++", "clang") if (home / name).is_file()), program)
    linker = next((str(home / name) for name in ("ld.lld", "lld") if (home / name).is_file()), shutil.which("ld.lld"))
    if linker is None:
        return None
    root = next((up for up in program.absolute().parents if (up / "include/hip/hip_runtime.h").is_file()), None)
    flags = (f"--rocm-path={root}",) if root is not None else ()
    hip = _hip_version(root / "include") if root is not None else ""
    return Toolchain(
        kind="rocm",
        name=f"{version[0].replace('version ', '')} ({clang}), HIP {hip or 'of unknown version'}",
        clang=(str(clang),),
        linker=(linker,) if linker.endswith("ld.lld") else (linker, "-flavor", "gnu"),
        flags=flags,
        header_folders=folders,
        fingerprint=_fingerprint(said.stdout, hip, [clang, Path(linker)], folders),
    )


# -- packages of pip ---------------------------------------------------------------------------------------------------


def _pip(folders: tuple[str, ...]) -> Toolchain:
    triton, ziglang, clang = (_package(name) for name in ("triton", "ziglang", "clang"))
    amd = triton / "backends/amd" if triton else None
    resource = clang / "native/resource" if clang else None
    lacking = [
        name
        for name, there in (
            ("ziglang", ziglang is not None and (ziglang / "zig").is_file()),
            ("triton", amd is not None and (amd / "include/hip/hip_runtime.h").is_file()),
            ("libclang-ng", resource is not None and (resource / "include/__clang_hip_runtime_wrapper.h").is_file()),
        )
        if not there
    ]
    if lacking or amd is None or ziglang is None or resource is None:
        raise NoToolchainError(
            "hip compile",
            f"nothing here compiles HIP for AMD GPUs: no ROCm is installed, and of pip's packages {_listed(lacking)} "
            "not here.",
            next_step=f"Either of the two is enough: {_install()}; or install ROCm and set ROCM_PATH to it.",
        )
    said = run_command([str(ziglang / "zig"), "clang", "--version"], time_limit_s=60)
    version = _VERSION.search(said.stdout)
    if not said.ok or version is None:
        raise NoToolchainError(
            "hip compile",
            f"{ziglang / 'zig'} does not run: {(said.stderr or said.stdout).strip()[-300:] or said.ending}.",
            next_step=f"Install it anew: {_install()}",
        )
    headers_version = metadata.version("libclang-ng")
    if headers_version.partition(".")[0] != version[1]:
        raise NoToolchainError(
            "hip compile",
            f"ziglang {metadata.version('ziglang')} is clang {version[1]}, libclang-ng {headers_version} has the "
            "headers of another.",
            why="clang's own headers are written for one version of it.",
            next_step=f"pip install 'libclang-ng>={version[1]},<{int(version[1]) + 1}'",
        )
    hip = _hip_version(amd / "include")
    libraries = [amd / "lib" / name for name in ("ocml.bc", "ockl.bc")]
    linked = [part for library in libraries for part in _linked(library)]
    return Toolchain(
        kind="pip",
        name=f"{version[0].replace('version ', '')} (ziglang {metadata.version('ziglang')}), HIP {hip} "
        f"(triton {metadata.version('triton')})",
        clang=(str(ziglang / "zig"), "clang"),
        linker=(str(ziglang / "zig"), "ld.lld"),
        flags=(*_hip_headers(amd / "include", resource), *_host_headers(ziglang / "lib")),
        device_flags=("-nogpulib", *linked),
        wants_constants=True,
        header_folders=folders,
        fingerprint=_fingerprint(said.stdout, hip, [ziglang / "zig", *libraries], folders),
    )


def _package(name: str) -> Path | None:
    """Return the folder of an installed package without importing it."""
    found = util.find_spec(name)
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def _linked(bitcode: Path) -> tuple[str, ...]:
    return ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(bitcode))


def _hip_headers(include: Path, resource: Path) -> tuple[str, ...]:
    """Say what clang does by itself for a ROCm of the usual layout, which triton's folder is not."""
    return (
        f"-resource-dir={resource}",
        "-nogpuinc",
        f"-isystem{resource / 'include' / 'cuda_wrappers'}",
        "-idirafter",
        str(include),
        "-include",
        "__clang_hip_runtime_wrapper.h",
    )


def _host_headers(lib: Path, system: Path = Path("/usr/include")) -> tuple[str, ...]:
    """Return options for the C and C++ libraries: the system's where they are there, else those of ziglang."""
    machine = platform.machine()
    if (system / "stdio.h").is_file() and any((system / "c++").glob("*/cmath")):
        return (f"--target={machine}-unknown-linux-gnu",)
    configuration = {
        "_LIBCPP_ABI_VERSION": "1",
        "_LIBCPP_ABI_NAMESPACE": "__1",
        "_LIBCPP_HAS_MUSL_LIBC": "1",
        "_LIBCPP_HAS_THREADS": "1",
        "_LIBCPP_HAS_MONOTONIC_CLOCK": "1",
        "_LIBCPP_HAS_THREAD_API_PTHREAD": "1",
        "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS": "0",
        "_LIBCPP_HAS_FILESYSTEM": "1",
        "_LIBCPP_HAS_RANDOM_DEVICE": "1",
        "_LIBCPP_HAS_LOCALIZATION": "1",
        "_LIBCPP_HAS_UNICODE": "1",
        "_LIBCPP_HAS_WIDE_CHARACTERS": "1",
        "_LIBCPP_HAS_TIME_ZONE_DATABASE": "0",
        "_LIBCPP_PSTL_BACKEND_SERIAL": "1",
        "_LIBCPP_HARDENING_MODE_DEFAULT": "_LIBCPP_HARDENING_MODE_NONE",
        "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT": "_LIBCPP_ASSERTION_SEMANTIC_ENFORCE",
    }
    families = (
        f"{machine}-linux-musl",
        "generic-musl",
        f"{_FAMILIES.get(machine, machine)}-linux-any",
        "any-linux-any",
    )
    folders = ("libcxx/include", *(f"libc/include/{one}" for one in families))
    return (
        f"--target={machine}-unknown-linux-musl",
        "-nostdinc++",
        "-nostdlibinc",
        *(f"-D{name}={value}" for name, value in configuration.items()),
        *(f"-isystem{lib / folder}" for folder in folders),
    )


_FAMILIES = {"x86_64": "x86", "aarch64": "arm64"}
"""What the Linux kernel, whose headers ziglang has too, calls a processor."""


# -- both --------------------------------------------------------------------------------------------------------------


def _hip_version(include: Path) -> str:
    try:
        text = (include / "hip/hip_version.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    parts = dict(_HIP_VERSION.findall(text))
    return f"{parts['MAJOR']}.{parts['MINOR']}" if {"MAJOR", "MINOR"} <= parts.keys() else ""


def _fingerprint(said: str, hip: str, files: list[Path], folders: tuple[str, ...]) -> str:
    own = [file.read_bytes().hex() for file in sorted(STAND_INS.rglob("*.h*"))]
    stated = [f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files]
    return hashlib.sha256("\n".join((said, hip, *stated, *folders, *own)).encode()).hexdigest()[:16]


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
