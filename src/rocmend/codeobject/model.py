"""Records of an inspection."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rocmend.codeobject.bundle import CodeObject
from rocmend.codeobject.versions import Evidence


class TargetUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much code there is for one target.

    Attributes:
        target: Processor with settings, e.g. ``gfx90a:xnack-`` or ``gfx11-generic``.
        objects: Code objects, or files, for it.
        size_bytes: Their size together, uncompressed; 0 where it was not read.
        generic_version: Highest version of a generic target's code; 0 where specific or not read.
        damaged: More code objects for it that are cut off or damaged; they are not counted in ``objects``.
        damage: What is wrong with the first of them.
    """

    target: str
    objects: int
    size_bytes: int = 0
    generic_version: int = 0
    damaged: int = 0
    damage: str = ""


class FileReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that has to do with a GPU.

    Attributes:
        path: Relative to what was inspected.
        kind: library, dll, code-object, fat-binary, kernel-pack, tensile, miopen-db, aotriton-image, kernel-file.
        size_bytes: Its size (uncompressed, in an archive).
        component: What it belongs to.
        backend: ``rocm``, ``cuda``, ``xpu`` or "".
        targets: What it holds code for.
        bundles: Offload bundles in it (a bundle is one translation unit's device code).
        compressed: ``zstd`` or ``zlib`` where its bundles are compressed.
        code_object_version: 2 … 6, the highest read; 0 where none was.
        kernels: Number of kernels, where it is a code object.
        needed: Libraries of ROCm, CUDA or oneAPI that it is linked against.
        variant: ROCm or HIP version in its name, where a package carries one library for each.
        packs: Kernel packs where it looks for its device code.
        damage: Why it cannot be judged by what was found in it: cut off, damaged, not readable.
    """

    path: str
    kind: str
    size_bytes: int
    component: str = ""
    backend: str = ""
    targets: tuple[TargetUse, ...] = ()
    bundles: int = 0
    compressed: str = ""
    code_object_version: int = 0
    kernels: int | None = None
    needed: tuple[str, ...] = ()
    variant: str = ""
    packs: tuple[str, ...] = ()
    damage: str = ""


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a package that has device code of its own: its kernels, rocBLAS's, MIOpen's.

    Attributes:
        name: e.g. ``PyTorch``, ``rocBLAS kernels``, ``MIOpen database``, ``bitsandbytes``.
        files: Number of its files.
        targets: What it holds code for.
        units: Offload bundles where it has them: a target in fewer of them is served in part.
        variant: HIP version that this alternative is for, where a package carries several.
        size_bytes: Its files' size.
        damaged: Files of it whose device code, whatever it is for, cannot be relied on.
        damage: Which is the first of them, and what is wrong with it.
    """

    name: str
    files: int
    targets: tuple[TargetUse, ...] = ()
    units: int = 0
    variant: str = ""
    size_bytes: int = 0
    damaged: int = 0
    damage: str = ""


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read.

    Attributes:
        path: Where.
        message: What was wrong.
    """

    path: str
    message: str


class Totals(msgspec.Struct, frozen=True):
    """What was looked at.

    Attributes:
        files: Files or members.
        bytes: Their size, uncompressed.
        read_bytes: Bytes that were read or inflated.
        gpu_files: Files with device code, or linked against a GPU runtime.
        code_objects: Code objects in them.
        code_object_bytes: Their size, uncompressed.
    """

    files: int = 0
    bytes: int = 0
    read_bytes: int = 0
    gpu_files: int = 0
    code_objects: int = 0
    code_object_bytes: int = 0


class Inspection(msgspec.Struct, frozen=True):
    """What a wheel, file, folder or installed package holds for GPUs.

    Attributes:
        subject: What was asked about, as given.
        kind: wheel, file, directory or package.
        path: Where it is.
        name: Distribution name; "" where there is none.
        version: Distribution version.
        backends: Of ``rocm``, ``cuda``, ``xpu``: what it carries device code for or is linked against; empty for a CPU
            or pure Python package.
        targets: AMD targets that it carries code for, generic ones too.
        components: By part.
        files: Files that have to do with a GPU.
        versions: ROCm, HIP and CUDA versions that were found.
        rocm_version: The most telling ROCm version; "" for none.
        hip_version: The most telling HIP version.
        cuda_version: The most telling CUDA version.
        external: ROCm libraries that it needs and does not bring: they must be installed beside it.
        notes: What else a reader should know.
        problems: What could not be read.
        totals: What was looked at.
    """

    subject: str
    kind: str
    path: str
    name: str
    version: str
    backends: tuple[str, ...]
    targets: tuple[str, ...]
    components: tuple[Component, ...]
    files: tuple[FileReport, ...]
    versions: tuple[Evidence, ...]
    rocm_version: str
    hip_version: str
    cuda_version: str
    external: tuple[str, ...]
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    totals: Totals

    @property
    def undecided(self) -> bool:
        """Whether nothing for GPUs was found, but files that may hold it could not be read."""
        return not self.backends and any(file.damage for file in self.files)


def tally(objects: Iterable[CodeObject | TargetUse]) -> tuple[TargetUse, ...]:
    """Add up code objects by target, in order of their names."""
    found: dict[str, TargetUse] = {}
    for item in objects:
        count, damaged = (item.objects, item.damaged) if isinstance(item, TargetUse) else (1, 0)
        if isinstance(item, CodeObject) and item.damage:
            count, damaged = 0, 1
        known = found.get(item.target, TargetUse(item.target, 0))
        found[item.target] = TargetUse(
            item.target,
            known.objects + count,
            known.size_bytes + item.size_bytes,
            max(known.generic_version, item.generic_version),
            known.damaged + damaged,
            known.damage or item.damage,
        )
    return tuple(sorted(found.values(), key=lambda use: sort_key(use.target)))


def sort_key(target: str) -> tuple[int, str]:
    """Order targets by generation: gfx90a before gfx1010."""
    processor = target.partition(":")[0].partition("-")[0]
    return len(processor), target
