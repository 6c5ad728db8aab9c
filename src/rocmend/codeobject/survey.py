"""Adding up what the files of a wheel, a folder or a package hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from rocmend.codeobject import naming, versions
from rocmend.codeobject.bundle import CodeObject
from rocmend.codeobject.content import Content
from rocmend.codeobject.isa import SPIRV
from rocmend.codeobject.model import Component, FileReport, Problem, TargetUse, Totals, sort_key, tally
from rocmend.codeobject.naming import Named
from rocmend.codeobject.versions import Evidence

MAX_PROBLEMS = 1000
MAX_EVIDENCE = 1000
TEXT_MAX_BYTES = 1 << 18
_ROCM_SONAME = re.compile(
    r"lib(amdhip64|hsa-runtime64|hiprtc|roc|rccl|hip|MIOpen|amd_comgr|amd_smi|magma_hip|migraphx|composable)", re.ASCII
)
_CUDA_SONAME = re.compile(
    r"lib(cudart|cuda\.so|cublas|cudnn|cufft|curand|cusolver|cusparse|nvrtc|nccl|nvJitLink)", re.ASCII
)
_SYCL_SONAME = re.compile(r"lib(sycl|ze_loader)", re.ASCII)
_VERSION_MODULE = re.compile(r"(?:^|/)(?:_?version|_rocm_version|build_and_package_info|_dist_info)\.py\Z")
_TRITON_AMD = re.compile(r"(?:^|/)triton/backends/amd/")
_OVERLONG = 4096
_OWN_DEPTH = 3
"""How deep a package's own version texts lie: ``_rocm_sdk_core/share/hip/version``."""


class Survey:
    """Collects reports file by file.

    Args:
        own: The component of code that is nobody else's library.
        of_package: The files are one package's: texts far down in it are data, such as a copy of another machine's
            files, and say nothing of its own versions.
    """

    def __init__(self, own: str = "", *, of_package: bool = False) -> None:
        self.of_package = of_package
        self.own = "PyTorch" if own in {"torch", "pytorch"} else own
        self.name = ""
        self.version = ""
        self.files: list[FileReport] = []
        self.evidence: list[Evidence] = []
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.seen_files = 0
        self.seen_bytes = 0
        self.read_bytes = 0
        self._bundled: set[str] = set()
        self._stated: set[tuple[str, str]] = set()

    # -- taking in ---------------------------------------------------------------------------------------------------

    def saw(self, path: str, size: int) -> None:
        """Count a file, whatever it is."""
        self.seen_files += 1
        self.seen_bytes += size
        name = path.rpartition("/")[2]
        if ".so" in name:
            self._provide(name)
            self._add_evidence(versions.from_soname(name, path))
        if _TRITON_AMD.search(path):
            self._note("Triton is in it: its kernels are compiled for the GPU at run time, so they need no code here.")

    def _provide(self, name: str) -> None:
        """Remember a library under its name and under the shorter ones that it can be asked for by."""
        while ".so" in name:
            self._bundled.add(name)
            name = name.rpartition(".")[0]

    def problem(self, path: str, message: str) -> None:
        """Record something that could not be read."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(path[:_OVERLONG], message))

    def wants_text(self, path: str) -> bool:
        """Whether the file is a small text that states versions."""
        if self.of_package and path.count("/") > _OWN_DEPTH:
            return False
        return bool(_VERSION_MODULE.search(path)) or path.endswith(
            (".dist-info/METADATA", "/PKG-INFO", ".hipVersion", ".info/version", ".info/version-rocm", "hip/version")
        )

    def add_text(self, path: str, text: str) -> None:
        """Take in a text that states versions."""
        if path.endswith(("METADATA", "PKG-INFO")):
            self._add_metadata(path, text)
        elif path.endswith(".py"):
            self._add_evidence(versions.from_version_file(text, path))
        elif path.endswith((".hipVersion", "hip/version")):
            self._add_evidence(versions.from_hip_version_file(text, path))
        else:
            self._add_evidence(versions.from_release_file(text, path))

    def _add_metadata(self, path: str, text: str) -> None:
        headers = text.partition("\n\n")[0]
        fields = dict(line.split(": ", 1) for line in reversed(headers.splitlines()) if ": " in line)
        if not self.name:
            self.name, self.version = fields.get("Name", ""), fields.get("Version", "")
            self.own = self.own or ("PyTorch" if self.name == "torch" else self.name)
        self._add_evidence(versions.from_metadata(text, path))

    def _add_evidence(self, found: Iterator[Evidence]) -> None:
        for item in found:
            if (item.what, item.version) not in self._stated and len(self._stated) < MAX_EVIDENCE:
                self._stated.add((item.what, item.version))
                self.evidence.append(item)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def add_named(self, path: str, size: int, named: Named, damage: str = "") -> None:
        """Take in a file of a kernel library by its name alone; what it is for is known even where it is damaged."""
        uses = _promised(named.target)
        if damage:
            uses = tuple(TargetUse(use.target, 0, damaged=1, damage=damage) for use in uses)
        unknown = "" if uses else damage
        self.files.append(FileReport(path, named.kind, size, named.component, "rocm", uses, damage=unknown))

    def add_unread(self, path: str, size: int, message: str) -> None:
        """Take in a file that could not be read at all, though it may hold device code."""
        self.problem(path, message)
        named = naming.by_path(path)
        damage = message.removeprefix("is ").rstrip(".")
        if named is not None:
            self.add_named(path, size, named, damage)
        elif not naming.NEVER_CODE.search(path):
            self.files.append(FileReport(path, "unread", size, self._component(path), damage=damage))

    def add_content(self, path: str, size: int, content: Content, named: Named | None = None) -> None:
        """Take in a file by what it holds."""
        for message in content.problems:
            self.problem(path, message)
        if content.pack is not None:
            self._add_pack(path, size, content)
            return
        objects = [item for bundle in content.bundles for item in bundle.code_objects] + content.code_objects
        targets = tally(objects)
        if named is not None and named.target and named.kind == "tensile" and objects:
            self._compare(path, named.target, targets)
        if named is not None and not objects:
            self.add_named(path, size, named, content.damage)
            return
        backend = _backend(content, bool(objects))
        if not backend and not content.damage:
            return
        self._add_evidence(versions.from_runpath(content.dynamic.runpath, path))
        if content.dynamic.soname:
            self._provide(content.dynamic.soname)
        for needed in content.dynamic.needed:
            self._add_evidence(versions.from_soname(needed, f"{path} needs"))
        self.files.append(
            FileReport(
                path,
                content.kind if named is None else named.kind,
                size,
                named.component if named is not None else self._component(path),
                backend,
                targets,
                len(content.bundles),
                next((bundle.compression for bundle in content.bundles if bundle.compression), ""),
                max((item.code_object_version for item in objects), default=0),
                content.kernels,
                tuple(name for name in content.dynamic.needed if _is_gpu_library(name)),
                naming.variant(path),
                content.reference.search_paths if content.reference is not None else (),
                content.damage,
            )
        )
        if content.reference is not None:
            self._note(f"{path} holds no device code itself: it loads it from kernel packs ({_packs(content)}).")

    def _compare(self, path: str, named: str, found: tuple[TargetUse, ...]) -> None:
        processors = {use.target.partition(":")[0] for use in found}
        if named.partition(":")[0] not in processors:
            self.problem(path, f"is named after {named} but holds code for {', '.join(sorted(processors))}.")

    def _component(self, path: str) -> str:
        known = naming.library_component(path)
        return known or self.own or path.rpartition("/")[2]

    def _add_pack(self, path: str, size: int, content: Content) -> None:
        pack = content.pack
        if pack is None:
            return
        by_component: dict[str, list[CodeObject]] = {}
        for library, objects in pack.libraries.items():
            by_component.setdefault(self._component(library), []).extend(objects)
        for component, held in by_component.items():
            share = size if len(by_component) == 1 else 0
            self.files.append(FileReport(path, content.kind, share, component, "rocm", tally(held)))

    # -- adding up ---------------------------------------------------------------------------------------------------

    def targets(self) -> tuple[str, ...]:
        """Return every AMD target that something holds code for; MIOpen's databases are tuning, not code."""
        uses = (use for file in self.files if file.kind != "miopen-db" for use in file.targets)
        found = {use.target for use in uses if use.objects}
        return tuple(sorted(found, key=sort_key))

    def backends(self) -> tuple[str, ...]:
        """Return what it carries code for or is linked against."""
        return tuple(name for name in ("rocm", "cuda", "xpu") if any(file.backend == name for file in self.files))

    def components(self) -> tuple[Component, ...]:
        """Return the parts that hold device code; alternatives for several ROCm versions stand apart."""
        alternatives = bool(self.variants())
        groups: dict[tuple[str, str], list[FileReport]] = {}
        for file in self.files:
            if (file.backend == "rocm" and (file.targets or file.packs)) or (file.damage and not _of_others(file)):
                variant = file.variant if alternatives else ""
                groups.setdefault((file.component, variant), []).append(file)
        return tuple(
            Component(
                name,
                len(files),
                tally(use for file in files for use in file.targets),
                sum(file.bundles for file in files) if all(file.bundles or not file.targets for file in files) else 0,
                variant,
                sum(file.size_bytes for file in files),
                sum(bool(file.damage) for file in files),
                next((f"{file.path}: {file.damage}" for file in files if file.damage), ""),
            )
            for (name, variant), files in sorted(groups.items(), key=lambda item: (item[0][0], _numbers(item[0][1])))
        )

    def variants(self) -> tuple[str, ...]:
        """Return the HIP versions that the package carries one library each for; empty where it is built for one."""
        found = {file.variant for file in self.files if file.variant and file.targets}
        return tuple(sorted(found, key=_numbers)) if len(found) > 1 else ()

    def best_version(self, what: str) -> str:
        """Return the ROCm, HIP or CUDA version that the package as a whole was built with; "" for none or several."""
        several = self.variants() if what != "cuda" else {item.version for item in self.evidence if item.what == what}
        single = not several if what != "cuda" else len(several) == 1
        return versions.best(self.evidence, what) if single else ""

    def external(self) -> tuple[str, ...]:
        """Return the ROCm libraries that something needs and nothing here provides."""
        needed = {name for file in self.files for name in file.needed if _ROCM_SONAME.match(name)}
        return tuple(sorted(needed - self._bundled))

    def totals(self) -> Totals:
        """Return what was looked at."""
        uses = [use for file in self.files if file.kind != "miopen-db" for use in file.targets]
        return Totals(
            self.seen_files,
            self.seen_bytes,
            self.read_bytes,
            len({file.path for file in self.files}),
            sum(use.objects for use in uses),
            sum(use.size_bytes for use in uses),
        )


@cache
def _promised(target: str) -> tuple[TargetUse, ...]:
    """Return what a name promises; one object for the thousands of files that promise the same."""
    return tuple(TargetUse(name, 1) for name in naming.expand(target)) if target else ()


def _packs(content: Content) -> str:
    paths = content.reference.search_paths if content.reference is not None else ()
    return ", ".join(paths[:3]) or "search path not read"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


def _of_others(file: FileReport) -> bool:
    return file.backend in {"cuda", "xpu"}


def _is_gpu_library(name: str) -> bool:
    return bool(_ROCM_SONAME.match(name) or _CUDA_SONAME.match(name) or _SYCL_SONAME.match(name))


def _backend(content: Content, has_code: bool) -> str:
    needed = content.dynamic.needed
    if has_code or content.reference is not None or any(map(_ROCM_SONAME.match, needed)):
        return "rocm"
    if content.cuda or any(map(_CUDA_SONAME.match, needed)):
        return "cuda"
    if content.sycl or any(map(_SYCL_SONAME.match, needed)):
        return "xpu"
    return ""


def is_generic(target: str) -> bool:
    """Whether code for it serves a class of targets."""
    return target == SPIRV or "-generic" in target
