"""Which accelerator a framework's distribution was built for, from names of distributions and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from rocmend.machine.parse.rocm import cuda_of_tag, local_tag, rocm_of_tag


class Build(msgspec.Struct, frozen=True):
    """A framework as installed.

    Attributes:
        version: Version of its main distribution.
        backend: rocm, cuda, cpu, xpu, ``any`` (code for several in one build) or unknown.
        rocm_version: ROCm release that it was built for, as far as its name says: ``7.0``, ``7``.
        distribution: Canonical name of the distribution that decided.
        others: Further distributions that own the same module: whichever was installed last has overwritten the rest.
    """

    version: str
    backend: str
    rocm_version: str | None = None
    distribution: str = ""
    others: tuple[str, ...] = ()


_CPU_ONLY = frozenset({"mlx", "tensorflow-cpu", "mlx-cpu"})
"""Distributions that carry no device code of their own."""


def backend_of(name: str, version: str) -> tuple[str, str | None]:
    """Return (backend, ROCm version) that a distribution's name or local version tag says."""
    tag = local_tag(version)
    if "rocm" in name or "rocm" in tag:
        return "rocm", rocm_of_name(name) or rocm_of_tag(tag)
    if "migraphx" in name or name.startswith(("amd-", "aiter")):
        return "rocm", rocm_of_tag(tag)
    if re.search(r"cuda|-gpu\Z|-cu\d+", name) or cuda_of_tag(tag):
        return "cuda", None
    if name in _CPU_ONLY or tag == "cpu":
        return "cpu", None
    return "unknown", None


def rocm_of_name(name: str) -> str | None:
    """Return the ROCm release in a distribution's name.

    ``cupy-rocm-7-0`` gives 7.0; ``jax-rocm7-plugin`` 7; ``jax-rocm60-plugin`` 6.0; ``jax-rocm10-pjrt`` 10.
    """
    if match := re.search(r"rocm-(\d{1,2})-(\d{1,2})(?!\d)", name):
        return f"{match[1]}.{match[2]}"
    if match := re.search(r"rocm(\d{1,2})(?!\d)", name):
        digits = match[1]
        return f"{digits[0]}.{digits[1]}" if len(digits) == 2 and digits[0] != "1" else digits
    return None


def choose(installed: Mapping[str, str], names: Iterable[str], plugins: str = "") -> Build | None:
    """Return a framework's build, or None where none of its distributions is installed.

    Args:
        installed: Canonical name to version.
        names: Patterns (whole canonical names) of the distributions that hold the framework's module, main one first.
        plugins: Pattern of distributions that add a backend to it; what they say wins.
    """
    owners = [name for pattern in names for name in installed if re.fullmatch(pattern, name)]
    if not owners:
        return None
    deciding = [name for name in installed if plugins and re.fullmatch(plugins, name)] or owners
    said = [(*backend_of(name, installed[name]), name) for name in deciding]
    backend, rocm, name = next((found for found in said if found[0] == "rocm"), said[0])
    if plugins and deciding is owners and backend == "unknown":
        backend = "cpu"  # a framework whose backends are plugins, with none installed
    main = name if name in owners else owners[0]
    return Build(installed[main], backend, rocm, name, tuple(owner for owner in owners if owner != main))
