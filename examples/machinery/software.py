"""ROCm under /opt, the Python environment with its packages, Vulkan manifests."""

from __future__ import annotations

import re

import msgspec

from examples.machinery.spec import Python, Rocm, Spec, Torch
from examples.machinery.writer import Capture
from rocmend.machine.root import Stat


def add_software(spec: Spec, capture: Capture) -> None:
    """Add what is installed."""
    if spec.rocm:
        _rocm(spec.rocm, capture)
    if spec.python:
        _python(spec, spec.python, capture)
    for icd in spec.vulkan:
        document = {
            "ICD": {"api_version": icd.api_version, "library_arch": "64", "library_path": icd.library},
            "file_format_version": "1.0.1",
        }
        capture.file(icd.file, msgspec.json.format(msgspec.json.encode(document), indent=4).decode())


def _rocm(rocm: Rocm, capture: Capture) -> None:
    path = f"/opt/rocm-{rocm.version}"
    capture.links["/opt/rocm"] = path
    capture.file(f"{path}/.info/version", f"{rocm.version}-{rocm.build}")
    _hip_version(capture, path, f"{rocm.hip}-{rocm.hip_commit}")
    for tool in ("rocminfo", "hipcc", "rocm-smi", "amd-smi"):
        capture.stats[f"{path}/bin/{tool}"] = Stat("file", 0o755, size_bytes=96_000)
    for library in ("rocblas", "hipblaslt"):
        folder = f"{path}/lib/{library}/library"
        capture.stats[folder] = Stat("dir", 0o755)
        capture.measurements[f"gfx-names|{folder}"] = list(rocm.targets)


def _hip_version(capture: Capture, prefix: str, version: str) -> None:
    numbers, _, commit = version.partition("-")
    values = (*numbers.split("."), commit)
    names = ("MAJOR", "MINOR", "PATCH", "GITHASH")
    lines = (f"HIP_VERSION_{name}={value}" for name, value in zip(names, values, strict=True))
    capture.file(f"{prefix}/share/hip/version", "\n".join(lines))


def _python(spec: Spec, python: Python, capture: Capture) -> None:
    short = ".".join(python.version.split(".")[:2])
    prefix = python.prefix
    site = f"{prefix}/lib/python{short}/site-packages"
    base = f"/usr/bin/python{short}"
    capture.stats[base] = Stat("file", 0o755, size_bytes=8_020_928)
    capture.links["/usr/bin/python3"] = f"python{short}"
    if prefix != "/usr":
        capture.links[f"{prefix}/bin/python3"] = "/usr/bin/python3"
        lines = ("home = /usr/bin", "include-system-site-packages = false", f"version = {python.version}")
        capture.file(f"{prefix}/pyvenv.cfg", "\n".join(lines))
        capture.environ["VIRTUAL_ENV"] = prefix
        capture.environ["PATH"] = f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    else:
        capture.environ.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    if spec.rocm:
        capture.environ["PATH"] += ":/opt/rocm/bin"
    for name, version in python.packages.items():
        _distribution(capture, site, name, version)
    if python.torch:
        _torch(capture, site, python.torch)
        if "rocm-sdk-core" in python.packages:  # TheRock's wheels bring ROCm along
            _hip_version(capture, f"{site}/_rocm_sdk_core", python.torch.hip)


def _distribution(capture: Capture, site: str, name: str, version: str, requires: tuple[str, ...] = ()) -> None:
    folder = f"{site}/{re.sub('[-.]', '_', name)}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {item}" for item in requires]
    capture.file(f"{folder}/METADATA", "\n".join(lines))
    capture.file(f"{folder}/INSTALLER", "pip")


def _torch(capture: Capture, site: str, torch: Torch) -> None:
    _distribution(capture, site, "torch", torch.version, torch.requires)
    path = f"{site}/torch"
    full = torch.version
    lines = [
        "from typing import Optional",
        "",
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']",
        f"__version__ = {full!r}",
        "debug = False",
        f"cuda: Optional[str] = {torch.cuda or None!r}",
        f"git_version = {torch.commit!r}",
        f"hip: Optional[str] = {torch.hip or None!r}",
    ]
    capture.file(f"{path}/version.py", "\n".join(lines))
    if not torch.hip:
        return
    for library in ("libtorch_hip.so", "libamdhip64.so", "librocblas.so"):
        capture.stats[f"{path}/lib/{library}"] = Stat("file", 0o755, size_bytes=512_000_000)
    components = {name: list(found) for name, found in torch.components.items()}
    summary = {"targets": list(torch.targets), "generic": [], "components": components}
    capture.measurements[f"code-objects|{path}"] = summary
    capture.stats[f"{path}/lib/rocblas/library"] = Stat("dir", 0o755)
    capture.measurements[f"gfx-names|{path}/lib/rocblas/library"] = list(torch.targets)
