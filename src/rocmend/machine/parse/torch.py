"""What an installed PyTorch says of itself, and where it was most likely installed from."""

from __future__ import annotations

import re

import msgspec

from rocmend.machine.parse.assignments import parse_assignments, text_of
from rocmend.machine.parse.rocm import cuda_of_tag, local_tag, rocm_of_hip, rocm_of_tag


class TorchVersion(msgspec.Struct, frozen=True):
    """Contents of ``torch/version.py``.

    Attributes:
        version: ``2.9.1+rocm6.4``.
        backend: rocm, cuda, xpu, cpu, or unknown where the file does not say.
        hip: HIP version that it was built with.
        cuda: CUDA version that it was built with.
        rocm: ROCm release that it was built with.
    """

    version: str | None
    backend: str
    hip: str | None = None
    cuda: str | None = None
    rocm: str | None = None


def parse_version_py(text: str) -> TorchVersion:
    """Read ``torch/version.py``, which setup.py generates, as text."""
    values = parse_assignments(text)
    version, hip, cuda = text_of(values, "__version__"), text_of(values, "hip"), text_of(values, "cuda")
    tag = local_tag(version or "")
    if hip or text_of(values, "rocm"):
        backend = "rocm"
    elif cuda:
        backend = "cuda"
    elif text_of(values, "xpu"):
        backend = "xpu"
    else:
        backend = "cpu" if "cuda" in values or "hip" in values or tag == "cpu" else "unknown"
    rocm = None
    if backend == "rocm":
        rocm = rocm_of_tag(tag) or text_of(values, "rocm") or (rocm_of_hip(hip) if hip else None)
    return TorchVersion(version, backend, hip, cuda, rocm)


def backend_of_tag(version: str) -> str:
    """Return the backend that a version's local tag names: rocm, cuda, cpu, xpu, or unknown."""
    tag = local_tag(version)
    if "rocm" in tag:
        return "rocm"
    if cuda_of_tag(tag):
        return "cuda"
    return tag if tag in {"cpu", "xpu"} else "unknown"


class Origin(msgspec.Struct, frozen=True):
    """What is known of how a torch was installed.

    Attributes:
        version: Version with its local part.
        path: The torch folder.
        url: Of direct_url.json, which pip writes for direct installs only.
        installer: Content of the INSTALLER file.
        requires: Canonical names of its dependencies.
    """

    version: str
    path: str = ""
    url: str = ""
    installer: str = ""
    requires: tuple[str, ...] = ()


_HOSTS = (
    (r"://download(-r2)?\.pytorch\.org/", "pytorch-index"),
    (r"://repo\.radeon\.com/", "radeon-repo"),
    (r"://(rocm\.(nightlies|prereleases|devreleases)|(\w+\.)?repo)\.amd\.com/", "therock"),
    (r"://github\.com/(ROCm/TheRock|scottt/rocm-TheRock)/", "therock"),
    (r"://(files\.pythonhosted|pypi)\.org/", "pypi"),
)
_TAGS = (
    (r"rocmsdk\d{8}|devrocm.*", "therock"),
    (r"rocm\d+\.\d+\.\d+\.(lw\.)?git.*", "radeon-repo"),
    (r"rocm\d+\.\d+|rocm([0-6]\.\d+|7\.[0-2])\.\d+", "pytorch-index"),
    (r"rocm\d+\.\d+\.\d+((a|b|rc)\d+)?", "therock"),  # from 7.9 on, TheRock builds tag three numbers
    (r"cpu|cu\d{3}|xpu", "pytorch-index"),
    (r"git.*", "source-build"),
)
_DISTRO_FOLDER = "/usr/lib/python3/dist-packages/"


def guess_source(origin: Origin) -> str:
    """Say where a torch was most likely installed from.

    pip records the address only for direct installs, so for one from an index its dependencies and the local tag of
    its version tell.

    Returns:
        pypi, pytorch-index, therock, radeon-repo, conda, distro, source-build or unknown.
    """
    for pattern, name in _HOSTS:
        if re.search(pattern, origin.url):
            return name
    if origin.url.startswith("file:") and not origin.url.endswith(".whl"):
        return "source-build"
    if origin.installer.strip() == "conda":
        return "conda"
    if origin.path.startswith(_DISTRO_FOLDER):
        return "distro"
    if any(name == "rocm" or name.startswith(("rocm-sdk", "amd-torch-device")) for name in origin.requires):
        return "therock"
    return _source_of_tag(origin.version)


def _source_of_tag(version: str) -> str:
    """Judge by the version alone: PyPI takes no local tags, and each index has its own form of them."""
    tag = local_tag(version)
    for pattern, name in _TAGS:
        if re.fullmatch(pattern, tag):
            return name
    if tag or not version:
        return "unknown"
    return "source-build" if version.endswith("a0") else "pypi"
