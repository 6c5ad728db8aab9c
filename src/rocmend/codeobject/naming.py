"""What a file's path says: which library it belongs to, and which targets its name promises.

Kernel libraries (Tensile's, MIOpen's, AOTriton's) are many small files, one or more a target, and name the target.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import msgspec

from rocmend.codeobject.isa import KNOWN_PROCESSORS, normalise

_GFX = re.compile(r"gfx[0-9a-z]+(?:-[0-9]+)*(?:-generic)?", re.IGNORECASE)
_SWITCH = re.compile(r"[-_:.](xnack|sramecc)(?:([+-])|(?=[._])|$)")
_PATTERN_DIGITS = re.compile(r"gfx[0-9a-f]*x+\Z")
_TENSILE_SUFFIXES = (".co", ".hsaco", ".dat", ".dat.gz", ".dat.zst", ".yaml")
_MIOPEN_SUFFIXES = (".kdb", ".db", ".db.txt", ".fdb.txt", ".model", ".kdb.bz2", ".ufdb.txt", ".udb.txt")
_AOTRITON = re.compile(r"(?:^|/)aotriton\.images/amd-(gfx[0-9a-z_]+)/")
_AITER = re.compile(r"(?:^|/)hsa/(gfx[0-9a-z]+)/")
NEVER_CODE = re.compile(
    r"\.(py[ci]?|pxd|pyx|[ch]|hpp|hh|cuh|cc|cpp|cu|hip|inc|txt|md|rst|json|ya?ml|toml|cfg|html|css|js|svg|png|cmake|pc|"
    r"ptx|typed|csv|log|gz|bz2|xz|zst|whl|a|lib|ll|bc|td|def)\Z",
    re.IGNORECASE,
)
"""Files that no loader takes device code from."""

CODE_SUFFIXES = (".co", ".hsaco")
"""Files that are code objects or fat binaries and nothing else."""

_BY_LENGTH = sorted(KNOWN_PROCESSORS, key=len, reverse=True)


class Named(msgspec.Struct, frozen=True):
    """What a path says.

    Attributes:
        component: What the file belongs to.
        kind: ``tensile``, ``miopen-db``, ``aotriton-image``, ``kernel-file``.
        target: The target in its name; a pattern such as ``gfx11xx`` where it stands for several; "" for none.
    """

    component: str
    kind: str
    target: str = ""


_TENSILE_FOLDERS = (
    ("hipblaslt/library/", "hipBLASLt kernels"),
    ("hipsparselt/library/", "hipSPARSELt kernels"),
    ("rocblas/library/", "rocBLAS kernels"),
)

# Start of a shared library's name (without "lib") to the component that it is.
_LIBRARIES = (
    ("torch", "PyTorch"),
    ("c10", "PyTorch"),
    ("caffe2", "PyTorch"),
    ("aotriton", "AOTriton"),
    ("rocblas", "rocBLAS"),
    ("hipblaslt", "hipBLASLt"),
    ("rocroller", "hipBLASLt"),
    ("miopen", "MIOpen"),
    ("rccl", "RCCL"),
    ("rocsparse", "rocSPARSE"),
    ("hipsparselt", "hipSPARSELt"),
    ("rocsolver", "rocSOLVER"),
    ("rocrand", "rocRAND"),
    ("hiprand", "rocRAND"),
    ("rocfft", "rocFFT"),
    ("rocprim", "rocPRIM"),
    ("rocalution", "rocALUTION"),
    ("hiptensor", "hipTensor"),
    ("composable", "composable_kernel"),
    ("device_", "composable_kernel"),
    ("migraphx", "MIGraphX"),
    ("magma", "MAGMA"),
    ("roctracer", "ROCm runtime"),
    ("amdhip64", "ROCm runtime"),
    ("hsa-runtime64", "ROCm runtime"),
    ("amd_comgr", "ROCm runtime"),
)


def by_path(path: str) -> Named | None:
    """Return what a path says of a kernel library's file, or None where it is no such file.

    Args:
        path: Relative path with forward slashes.
    """
    lower = path.lower()
    name = lower.rpartition("/")[2]
    image = _AOTRITON.search(lower)
    if image:
        return Named("AOTriton", "aotriton-image", image[1].partition("_")[0])
    if name.endswith(_TENSILE_SUFFIXES):
        for part, component in _TENSILE_FOLDERS:
            if part in lower:
                return Named(component, "tensile", target_in(name))
        if name.startswith(("tensilelibrary", "kernels.so-000-", "tensilelite")):
            return Named("Tensile kernels", "tensile", target_in(name))
    if name.endswith(_MIOPEN_SUFFIXES) and ("miopen/db/" in lower or name.endswith((".kdb", ".fdb.txt"))):
        return Named("MIOpen database", "miopen-db", database_target(name))
    return _kernel_file(lower, name)


def _kernel_file(lower: str, name: str) -> Named | None:
    if not name.endswith((".co", ".hsaco", ".hsaco.zst")):
        return None
    by_folder = _AITER.search(lower)
    if by_folder:
        return Named("AITER", "kernel-file", normalise(by_folder[1]) or "")
    return Named("kernel files", "kernel-file", target_in(name))


def target_in(name: str) -> str:
    """Return the target that a file name carries, with its settings: ``…_gfx90a-xnack+.co``; "" for none.

    The last one counts: Tensile writes it at the end.
    """
    lower = name.lower()
    for match in reversed(list(_GFX.finditer(lower))):
        settings = "".join(f":{key}{sign or '+'}" for key, sign in _SWITCH.findall(lower[match.end() :]))
        found = normalise(match[0] + settings) or normalise(match[0])
        if found is None:  # gfx1100_Cijk… ends at the underscore; gfx110x does not name one target
            found = normalise(match[0].split("-")[0] + settings)
        if found is not None:
            return found
    return ""


def database_target(name: str) -> str:
    """Return the target of a MIOpen database, whose name runs on into a count of compute units; "" for none.

    ``gfx1030_36.kdb`` is gfx1030 with 36 compute units, ``gfx90a68.fdb.txt`` is gfx90a with 0x68 of them.
    """
    lower = name.lower()
    for processor in _BY_LENGTH:
        rest = lower[len(processor) :]
        if lower.startswith(processor) and re.match(r"(?:_?[0-9a-f]{0,4})(?:[-._]|$)", rest):
            return processor
    return ""


def expand(target: str) -> tuple[str, ...]:
    """Return the processors that a pattern such as ``gfx11xx`` stands for; a name stands for itself."""
    if not _PATTERN_DIGITS.match(target):
        return (target,)
    pattern = target.replace("x", "?").replace("gf?", "gfx", 1)
    return tuple(sorted(name for name in KNOWN_PROCESSORS if fnmatchcase(name, pattern)))


def library_component(path: str) -> str | None:
    """Return the component that a shared library is, or None where its name is nobody's in particular."""
    name = path.rpartition("/")[2].lower()
    stem = name.removeprefix("lib")
    if ".so" not in name and not name.endswith((".dll", ".pyd")):
        return None
    return next((component for start, component in _LIBRARIES if stem.startswith(start)), None)


_VARIANT = re.compile(r"_rocm(\d)(\d{1,2})\.so\Z")


def variant(path: str) -> str:
    """Return the ROCm version that a library's name says it was built for: ``…_rocm72.so`` is 7.2; "" for none."""
    match = _VARIANT.search(path)
    return f"{match[1]}.{match[2]}" if match else ""
