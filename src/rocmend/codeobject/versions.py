"""Which ROCm, HIP or CUDA a wheel was built with, and whether that fits the system's ROCm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

HIP_BUILD_NUMBER_FROM = 1000
"""HIP's third number is a build number (6.2.41133); ROCm's is a patch level."""

# Since ROCm 7.14, HIP is numbered on its own. bitsandbytes 0.50.2 on PyPI: libbitsandbytes_rocm715.so (named after
# torch.version.hip) is linked with /opt/rocm/core-10.0; torch 2.13.0+rocm10.1.0a reports HIP 7.16
# (https://github.com/shootthesound/Fizgig/pull/103); why they part: https://github.com/pytorch/pytorch/pull/168097.
_HIP_OF_ROCM = {(10, 0): (7, 15), (10, 1): (7, 16)}
_ROCM_OF_HIP = {hip: rocm for rocm, hip in _HIP_OF_ROCM.items()}

_VERSION = r"\d{1,3}(?:\.\d{1,3})(?:\.\d{1,7})?"
_NUMBERS = re.compile(r"\s*[vV]?(?:rocm|hip)?[-_ ]?(\d{1,3})\.(\d{1,3})(?:\.(\d{1,7}))?", re.IGNORECASE)
_ASSIGNMENT = re.compile(
    r"^(?:__)?(hip|rocm|cuda)(?:_version)?(?:__)?[ \t]*(?::[^=\n]*)?=[ \t]*(?:['\"]([^'\"\n]{0,80})['\"]|None)",
    re.MULTILINE,
)
_RUNPATH = re.compile(rf"/rocm(?:/core)?-({_VERSION})(?:/|\Z)")
_LOCAL = re.compile(rf"\+(?:[^ ]*?\.)?(rocm|cu)[-_]?({_VERSION}|\d{{2,4}})", re.IGNORECASE)
_SUMMARY = re.compile(rf"ROCm[: ]+v?({_VERSION})", re.IGNORECASE)
_NAME = re.compile(r"(?:^|[-_])rocm[-_]?(\d{1,2})[-_](\d{1,2})(?:[-_]|\Z)", re.IGNORECASE)
_NAME_MAJOR = re.compile(r"(?:^|[-_])rocm(\d{1,2})(?:[-_]|\Z)", re.IGNORECASE)
_REQUIRES = re.compile(rf"^(rocm|rocm-sdk-[a-z]+)(?:\[[^\]]*\])?\s*\(?==\s*({_VERSION})", re.IGNORECASE)
_RUNTIME = re.compile(r"libamdhip64(?:-[0-9a-f]+)?\.so\.(\d+)(?:\.(\d+)\.(\d+))?")
_RELEASE_SUFFIX = re.compile(r"\.so\.\d+\.\d+\.(\d)(\d\d)(\d\d)\Z")
_CUDART = re.compile(r"libcudart(?:-[0-9a-f]+)?\.so\.(\d+(?:\.\d+)?)")
_HIP_FILE = re.compile(r"^HIP_VERSION_(MAJOR|MINOR|PATCH)=(\d{1,7})", re.MULTILINE)


class Evidence(msgspec.Struct, frozen=True):
    """A version that a file states.

    Attributes:
        what: ``rocm``, ``hip`` or ``cuda``.
        version: As written, e.g. ``6.2.41133-dd7f95766``.
        source: The file and what in it says so.
    """

    what: str
    version: str
    source: str


class MatchState(StrEnum):
    """How a bundled ROCm and the system's compare."""

    MATCH = "match"
    MINOR_DIFFERS = "minor-differs"
    MAJOR_DIFFERS = "major-differs"
    UNKNOWN = "unknown"


class VersionMatch(msgspec.Struct, frozen=True):
    """A bundled ROCm or HIP against the system's ROCm.

    Attributes:
        state: The outcome.
        bundled: What the wheel bundles, as given.
        system: What the system has, as given.
        reason: Why, and what it means.
    """

    state: MatchState
    bundled: str
    system: str
    reason: str


def _parse(text: str) -> tuple[int, int, int | None] | None:
    match = _NUMBERS.match(text)
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3]) if match[3] else None


def rocm_release(version: str) -> tuple[int, int] | None:
    """Return the (major, minor) of the ROCm release that a ROCm or HIP version belongs to, or None for no version.

    HIP versions are told by their build number: ``7.15.26310`` is HIP 7.15, which came with ROCm 10.0.
    """
    parsed = _parse(version)
    if parsed is None:
        return None
    major, minor, third = parsed
    if third is not None and third >= HIP_BUILD_NUMBER_FROM:
        return _ROCM_OF_HIP.get((major, minor), (major, minor))
    return major, minor


def match_rocm(bundled: str, system: str) -> VersionMatch:
    """Compare the ROCm (or HIP) that a wheel was built with and the system's ROCm.

    What must agree is major and minor: patch releases keep the libraries' interfaces. PyTorch 2.5.1 with HIP 6.2.41133
    works with ROCm 6.2.4 and crashes with 7.0.2.

    Args:
        bundled: ``6.2.41133-dd7f95766`` (HIP) or ``7.14.0`` (ROCm); empty for none known.
        system: The installed ROCm's version; empty for none.
    """
    ours, theirs = rocm_release(bundled), rocm_release(system)
    if ours is None or theirs is None:
        lacking = "the wheel's" if ours is None else "the system's"
        reason = f"{lacking} ROCm version is not known, so nothing can be said."
        return VersionMatch(MatchState.UNKNOWN, bundled, system, reason)
    built, installed = (f"{major}.{minor}" for major, minor in (ours, theirs))
    if ours == theirs:
        reason = f"both are ROCm {built}; patch releases keep the libraries' interfaces."
        return VersionMatch(MatchState.MATCH, bundled, system, reason)
    if ours[0] != theirs[0]:
        reason = (
            f"the wheel was built with ROCm {built}, the system has {installed}. Libraries of different major versions "
            "have different interfaces: where the wheel takes them from the system, it fails to load or crashes. A "
            "wheel that brings all its libraries needs only the system's kernel driver."
        )
        return VersionMatch(MatchState.MAJOR_DIFFERS, bundled, system, reason)
    reason = (
        f"the wheel was built with ROCm {built}, the system has {installed}. That often works, but mixing libraries of "
        "both in one process (LD_LIBRARY_PATH, a custom MIOpen) is a known cause of crashes."
    )
    return VersionMatch(MatchState.MINOR_DIFFERS, bundled, system, reason)


def from_version_file(text: str, source: str) -> Iterator[Evidence]:
    """Yield what a module such as ``torch/version.py`` states, read as text."""
    for match in _ASSIGNMENT.finditer(text):
        if match[2]:
            yield Evidence(match[1], match[2], f"{source}: {match[1]}")


def from_metadata(text: str, source: str) -> Iterator[Evidence]:
    """Yield what a distribution's METADATA says: its name, local version, summary and requirements."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        value = value.strip()
        if not line or key == line:
            break  # the long description begins
        match key:
            case "Version":
                yield from from_local_version(value, source)
            case "Name":
                yield from _from_name(value, source)
            case "Summary":
                if found := _SUMMARY.search(value):
                    yield Evidence("rocm", found[1], f"{source}: Summary")
            case "Requires-Dist":
                if found := _REQUIRES.match(value):
                    yield Evidence("rocm", found[2], f"{source}: requires {found[1]}")


def from_local_version(version: str, source: str) -> Iterator[Evidence]:
    """Yield what a local version says: ``2.5.1+rocm6.2`` or ``2.5.1+cu124``."""
    if found := _LOCAL.search(version):
        number = found[2]
        if found[1].lower() == "cu":
            number = f"{number[:-1]}.{number[-1]}" if "." not in number else number
            yield Evidence("cuda", number, f"{source}: version {version}")
        elif "." in number:
            yield Evidence("rocm", number, f"{source}: version {version}")


def _from_name(name: str, source: str) -> Iterator[Evidence]:
    if found := _NAME.search(name):
        yield Evidence("rocm", f"{found[1]}.{found[2]}", f"{source}: name {name}")
    elif found := _NAME_MAJOR.search(name):
        yield Evidence("rocm", found[1], f"{source}: name {name}")


def from_runpath(paths: tuple[str, ...], source: str) -> Iterator[Evidence]:
    """Yield the ROCm that a library was linked against: ``/opt/rocm-7.0.2/lib``, ``/opt/rocm/core-10.0/lib``."""
    for path in paths:
        if found := _RUNPATH.search(path):
            yield Evidence("rocm", found[1], f"{source}: runpath {path}")


def from_soname(name: str, source: str) -> Iterator[Evidence]:
    """Yield what a library's name says: ``libamdhip64.so.6``, ``librocblas.so.4.2.60204``, ``libcudart.so.12``."""
    if found := _RUNTIME.search(name):
        whole = found[2] is not None
        yield Evidence("hip", f"{found[1]}.{found[2]}.{found[3]}" if whole else found[1], f"{source}: {name}")
    elif found := _CUDART.search(name):
        yield Evidence("cuda", found[1], f"{source}: {name}")
    elif found := _RELEASE_SUFFIX.search(name):
        yield Evidence("rocm", f"{int(found[1])}.{int(found[2])}.{int(found[3])}", f"{source}: {name}")


def from_hip_version_file(text: str, source: str) -> Iterator[Evidence]:
    """Yield what ``.hipVersion`` (``share/hip/version``) states."""
    parts = dict(_HIP_FILE.findall(text))
    if "MAJOR" in parts and "MINOR" in parts:
        yield Evidence("hip", ".".join(parts[key] for key in ("MAJOR", "MINOR", "PATCH") if key in parts), source)


def from_release_file(text: str, source: str) -> Iterator[Evidence]:
    """Yield what ``.info/version`` of a ROCm tree states: ``6.2.4-139``."""
    if _parse(text) is not None and len(text) < 80:
        yield Evidence("rocm", text.strip(), source)


def best(evidence: list[Evidence] | tuple[Evidence, ...], what: str) -> str:
    """Return the most telling version of a kind: the one with most numbers, the first of those; "" for none."""
    found = [item.version for item in evidence if item.what == what]
    return max(found, key=lambda version: version.split("-")[0].count("."), default="")
