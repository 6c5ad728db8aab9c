"""Version files of a ROCm installation and version tags of builds against it."""

from __future__ import annotations

import re

import msgspec

from rocmend.core.documents import MALFORMED

_VERSION = re.compile(r"\d+(?:\.\d+){1,3}(?:(?:a|b|rc)\d+)?(?:[.+-][A-Za-z0-9.]+)?")
_HIP_LINE = re.compile(r"^\s*(HIP_VERSION_(?:MAJOR|MINOR|PATCH|GITHASH))\s*=\s*(\S+)", re.MULTILINE)
_ROCM_TAG = re.compile(r"(?:^|[.+_-])rocm(?:sdk)?(\d{1,2}(?:\.\d+){0,2}(?:(?:a|b|rc)\d+)?)(?!\d)")
_CUDA_TAG = re.compile(r"(?:^|[.+_-])cu(\d{2})(\d)(?!\d)")


def parse_info_version(text: str) -> str | None:
    """Return the version in a ``.info/version`` file: ``6.2.4-125`` gives ``6.2.4``; None where there is none."""
    match = _VERSION.match(text.strip()[:200])
    return match[0].split("-", 1)[0] if match else None


def parse_hip_version(text: str) -> str | None:
    """Return the HIP version of ``share/hip/version`` or ``.hipVersion``: ``6.2.41134-65d174c3e``.

    The file holds ``HIP_VERSION_MAJOR=6`` and so on, one a line; some builds append the packaging number to the patch
    level (``41134-65d174c3e``), which is cut there.
    """
    values = dict(_HIP_LINE.findall(text[: 1 << 14]))
    try:
        numbers = [values[f"HIP_VERSION_{part}"].split("-", 1)[0] for part in ("MAJOR", "MINOR", "PATCH")]
    except KeyError:
        return None
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    commit = values.get("HIP_VERSION_GITHASH", "")
    return ".".join(numbers) + (f"-{commit}" if re.fullmatch(r"[0-9a-f]{6,40}", commit) else "")


def parse_therock_manifest(text: str) -> str | None:
    """Return the ROCm version that TheRock's ``share/therock/*.json`` names, or None."""
    try:
        document = msgspec.json.decode(text[: 1 << 18])
    except MALFORMED:
        return None
    if not isinstance(document, dict):
        return None
    for key in ("rocm_version", "ROCM_VERSION", "rocm_package_version", "version"):
        value = document.get(key)
        if isinstance(value, str) and (version := parse_info_version(value)):
            return version
    return None


def local_tag(version: str) -> str:
    """Return the local part of a Python version: ``rocm6.2`` of ``2.5.1+rocm6.2``; empty where there is none."""
    return version.partition("+")[2]


def rocm_of_tag(tag: str) -> str | None:
    """Return the ROCm version in a local version tag: ``7.11.0a20260106`` of ``rocm7.11.0a20260106``."""
    match = _ROCM_TAG.search(tag[:200])
    return match[1] if match else None


def cuda_of_tag(tag: str) -> str | None:
    """Return the CUDA version in a local version tag: ``12.6`` of ``cu126``."""
    match = _CUDA_TAG.search(tag[:200])
    return f"{match[1]}.{match[2]}" if match else None


def rocm_of_hip(hip_version: str) -> str | None:
    """Return the ROCm release that a HIP version came with, as major.minor: ``6.2`` of ``6.2.41133-dd7f95766``."""
    from rocmend.codeobject.versions import rocm_release

    release = rocm_release(hip_version)
    return f"{release[0]}.{release[1]}" if release else None
