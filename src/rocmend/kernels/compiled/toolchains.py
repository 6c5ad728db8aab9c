"""Which Triton compiles for which target, and where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmend.core.errors import UsageError
from rocmend.core.places import expanded
from rocmend.kernels.compiled.fetch import fetched, is_version
from rocmend.kernels.compiled.toolchain import Toolchain

ALTERNATIVES_VARIABLE = "ROCMEND_TRITON_ALT"


class Serves(NamedTuple):
    """Versions of Triton that compile for targets.

    Args:
        targets: Beginnings of targets' names.
        versions: The versions.
        why: What happens with others. All of it was measured: 63 compilations under 3.9.0, 54 under 3.8.0.
    """

    targets: tuple[str, ...]
    versions: str
    why: str


SERVES = (
    Serves(("gfx101",), ">=3.6,<3.8", "3.8 aborts at an fp16 dot (Cannot select FDOT2), 3.9 has no such target"),
    Serves(("gfx103",), ">=3.6,<3.9", "3.9 has no such target (ConvertWarpPipeline: unsupported target)"),
    Serves(("gfx906",), ">=3.8", "3.6 and 3.7 refuse it"),
    Serves(("gfx", "sm"), ">=3.6", "the oldest version that the kernels are written for"),
)


def serves(target: str) -> Serves:
    """Return which versions compile for a target."""
    return next(served for served in SERVES if target.startswith(served.targets))


def available(named: Sequence[str] = ()) -> list[Toolchain]:
    """Return the Tritons at hand: those named, the installed Triton, those of the environment and the fetched ones.

    Args:
        named: ``VERSION=PATH`` each.

    Raises:
        UsageError: One is not written like that, or its folder holds no triton.
    """
    from rocmend.kernels.tuning.record import triton_version

    found = [_named(name, "--triton") for name in named]
    installed = triton_version()
    if installed != "0":
        found.append(Toolchain(installed))
    given = os.environ.get(ALTERNATIVES_VARIABLE, "")
    found += [_named(name, ALTERNATIVES_VARIABLE) for name in given.split(os.pathsep) if name]
    found += fetched()
    return [
        toolchain
        for at, toolchain in enumerate(found)
        if toolchain.version not in {other.version for other in found[:at]}
    ]


def _named(text: str, where: str) -> Toolchain:
    version, _, path = text.partition("=")
    folder = expanded(path, where)
    if not path or not is_version(version):
        raise UsageError("kernels compile", f"{where}: expected VERSION=PATH, got {text!r}.")
    if not (folder / "triton" / "__init__.py").is_file():
        raise UsageError(
            "kernels compile",
            f"{where}: {folder} holds no triton.",
            next_step=f"rocmend kernels compile --fetch-triton {version} installs one.",
        )
    return Toolchain(version, folder.resolve())


def choose_toolchain(target: str, toolchains: Iterable[Toolchain]) -> Toolchain | None:
    """Return the Triton to compile for a target with: the first that serves it, the newest of those with a path."""
    wanted = SpecifierSet(serves(target).versions)
    fit = [toolchain for toolchain in toolchains if wanted.contains(toolchain.version, prereleases=True)]
    installed = [toolchain for toolchain in fit if toolchain.path is None]
    return next(iter(installed), None) or max(fit, key=lambda toolchain: Version(toolchain.version), default=None)
