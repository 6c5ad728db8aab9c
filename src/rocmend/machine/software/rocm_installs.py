"""Every ROCm installation on a machine: packages, /opt folders, extracted tarballs, wheels, the distribution's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from rocmend.machine.parse.gfx_names import targets_in
from rocmend.machine.parse.rocm import parse_hip_version, parse_info_version, parse_therock_manifest, rocm_of_hip
from rocmend.machine.root import Root, natural_key
from rocmend.machine.software.python_env import Distribution
from rocmend.machine.software.reading import final_path, is_dir, measured, names, text

MAX_NAMES = 100_000
"""Names looked at in a library folder; rocBLAS for all targets has about 10,000."""

LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu")


class Install(msgspec.Struct, frozen=True):
    """One ROCm installation.

    Attributes:
        path: Its prefix, links followed.
        version: ROCm release, or None where nothing says.
        kind: package, opt, therock-tarball, wheel or distro.
        hip_version: Version of the HIP runtime in it.
        gfx_targets: Targets that its rocBLAS library carries kernels for; None where it has no rocBLAS.
        hipblaslt_targets: The same for hipBLASLt.
        named_by: What pointed to it: ROCM_PATH, /opt/rocm, PATH …
    """

    path: str
    version: str | None
    kind: str
    hip_version: str | None = None
    gfx_targets: list[str] | None = None
    hipblaslt_targets: list[str] | None = None
    named_by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return msgspec.structs.asdict(self)


def system_installs(root: Root, packages: dict[str, str]) -> list[Install]:
    """Return installations outside Python environments, the one in use first.

    The order is ROCM_PATH, HIP_PATH, /opt/rocm, other folders under /opt and the home folder, folders on PATH and
    LD_LIBRARY_PATH, then the distribution's own in /usr.
    """
    found: dict[str, Install] = {}
    for named_by, given in _candidates(root):
        path = final_path(root, given)
        if path not in found and (install := _inspect(root, path, named_by, packages)):
            found[path] = install
    distro = _distro(root, packages)
    return [*found.values(), *([distro] if distro else [])]


def _candidates(root: Root) -> Iterator[tuple[str, str]]:
    """Yield (what names it, prefix) of every place worth a look, the likeliest to be in use first."""
    variables = root.environ()
    for name in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH"):
        path = variables.get(name, "").rstrip("/")
        if path.startswith("/") and path != "/usr":
            yield name, path
    yield from _below_opt(root, "/opt/rocm")
    for name in sorted(names(root, "/opt"), key=natural_key, reverse=True):
        if name.startswith("rocm-"):
            yield from _below_opt(root, f"/opt/{name}")
        elif name.lower().startswith("therock"):
            yield "/opt", f"/opt/{name}"
    home = variables.get("HOME", "").rstrip("/")
    if home.startswith("/") and home != "/":
        for name in names(root, home):
            if re.match(r"(?i)(?:therock|rocm)(?:[-_.].*)?\Z", name) and is_dir(root, f"{home}/{name}"):
                yield "home folder", f"{home}/{name}"
                yield from (("home folder", f"{home}/{name}/{inner}") for inner in names(root, f"{home}/{name}")[:50])
    for name in ("PATH", "LD_LIBRARY_PATH"):
        for entry in variables.get(name, "").split(":"):
            folder = re.sub(r"/(?:(?:lib/)?llvm/)?(?:bin|lib|lib64)/?\Z", "", entry)
            if folder.startswith("/") and folder not in {entry, "/usr", "/usr/local"} and "site-packages" not in folder:
                yield name, folder


def _below_opt(root: Root, path: str) -> Iterator[tuple[str, str]]:
    """Yield a folder under /opt, and the ``core-7.14`` folders in it that TheRock's packages install to."""
    yield path, path
    if is_dir(root, path):
        inner = [name for name in names(root, path) if re.match(r"core(-\d[\w.]*)?\Z", name)]
        yield from ((path, f"{path}/{name}") for name in sorted(inner, key=natural_key, reverse=True))


def _inspect(root: Root, path: str, named_by: str, packages: dict[str, str]) -> Install | None:
    """Return the installation at ``path``, or None where nothing there is ROCm."""
    version_text = text(root, f"{path}/.info/version")
    version = parse_info_version(version_text) if version_text else None
    therock = _therock_version(root, path)
    hip = _hip_version(root, path)
    if version is None and therock is None and hip is None:
        return None
    version = version or (therock or None) or (rocm_of_hip(hip) if hip else None)
    return Install(
        path,
        version,
        _kind(path, version, packages, therock=therock is not None),
        hip,
        library_targets(root, path, "rocblas"),
        library_targets(root, path, "hipblaslt"),
        named_by,
    )


def _kind(path: str, version: str | None, packages: dict[str, str], *, therock: bool) -> str:
    """Say where an installation came from: a package manager that knows a core package of its version owns it."""
    if path.startswith("/opt/"):
        for name, installed in packages.items():
            core = name.startswith(("rocm-core", "amdrocm-core", "hip-runtime-amd", "rocm-hip-runtime"))
            if core and (version is None or ".".join(version.split(".")[:2]) in installed or version in name):
                return "package"
    if therock:
        return "therock-tarball"
    return "opt" if path.startswith("/opt/") else "therock-tarball"


def _therock_version(root: Root, path: str) -> str | None:
    """Return TheRock's version in a prefix; empty where it is TheRock's and no file says the version."""
    folder = f"{path}/share/therock"
    if not is_dir(root, folder):
        return None
    for name in ("dist_info.json", "therock_manifest.json"):
        content = text(root, f"{folder}/{name}")
        if content and (version := parse_therock_manifest(content)):
            return version
    return ""


def _hip_version(root: Root, path: str) -> str | None:
    for name in ("share/hip/version", "bin/.hipVersion", ".hipVersion", "hip/bin/.hipVersion"):
        content = text(root, f"{path}/{name}")
        if content and (version := parse_hip_version(content)):
            return version
    return None


def _distro(root: Root, packages: dict[str, str]) -> Install | None:
    """Return the distribution's own ROCm in /usr: its HIP runtime is in the system's library folders."""
    hip = _hip_version(root, "/usr")
    owner = next(
        (name for name in sorted(packages) if re.match(r"libamdhip64-\d|hip-runtime|rocm-hip(-runtime)?\Z", name)), None
    )
    library = next((found for lib in LIBRARY_FOLDERS for found in _runtime(root, f"/usr/{lib}")), None)
    if library is None:
        return None
    version = rocm_of_hip(hip) if hip else None
    if version is None and owner:
        version = parse_info_version(packages[owner].split(":", 1)[-1])
    return Install(
        "/usr",
        version,
        "distro",
        hip,
        library_targets(root, "/usr", "rocblas"),
        library_targets(root, "/usr", "hipblaslt"),
        library,
    )


def _runtime(root: Root, folder: str) -> Iterator[str]:
    for soname in ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so.8", "libamdhip64.so"):
        if root.exists(f"{folder}/{soname}"):
            yield f"{folder}/{soname}"


def wheel_installs(root: Root, installed: list[Distribution]) -> list[Install]:
    """Return ROCm that came as Python wheels: ``rocm-sdk-core`` and its library wheels."""
    found: list[Install] = []
    device = [item.name for item in installed if item.name.startswith(("rocm-sdk-device-", "rocm-sdk-libraries-"))]
    for item in installed:
        if item.name != "rocm-sdk-core":
            continue
        path = f"{item.site}/_rocm_sdk_core"
        targets = targets_in(device)
        for name in names(root, item.site):
            if name.startswith("_rocm_sdk_libraries"):
                targets += library_targets(root, f"{item.site}/{name}", "rocblas") or []
                targets += kpack_targets(root, f"{item.site}/{name}", "blas")
        ordered = sorted(set(targets), key=natural_key)
        found.append(Install(path, item.version, "wheel", _hip_version(root, path), ordered or None, None, item.info))
    return found


def kpack_targets(root: Root, prefix: str, beginning: str) -> list[str]:
    """Return targets of TheRock's split device code: ``.kpack/blas_lib_gfx1151.kpack``."""
    return targets_in(name for name in names(root, f"{prefix}/.kpack") if name.startswith(beginning))


def library_targets(root: Root, prefix: str, library: str) -> list[str] | None:
    """Return the gfx targets in the names of a library's kernel files, or None where it has no such folder.

    Args:
        root: The machine.
        prefix: Installation or package folder.
        library: ``rocblas`` or ``hipblaslt``.
    """
    for lib in LIBRARY_FOLDERS:
        base = f"{prefix}/{lib}/{library}"
        if not is_dir(root, base):
            continue
        if is_dir(root, f"{base}/library"):
            return _targets_below(root, f"{base}/library")
        for version in sorted(names(root, base), key=natural_key, reverse=True):  # Debian: rocblas/4.2.1/library
            if is_dir(root, f"{base}/{version}/library"):
                return _targets_below(root, f"{base}/{version}/library")
    return None


def _targets_below(root: Root, folder: str) -> list[str]:
    """Return the targets in file names; a capture keeps them instead of thousands of names."""
    found = measured(root, "gfx-names", folder, _scan_names(MAX_NAMES), lambda: targets_in(root.list_dir(folder)))
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _scan_names(limit: int) -> Callable[[Path], list[str]]:
    def scan(path: Path) -> list[str]:
        return targets_in(entry.name for entry in islice(path.iterdir(), limit))

    return scan
