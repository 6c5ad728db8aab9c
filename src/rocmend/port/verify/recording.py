"""Recording the launches of a program's kernels where the original runs: what level 4 compares with.

The original is built once more, together with ``recorder.cpp``, and run; what that writes down becomes cases in
``.rocmend/port/cases`` (``rocmend.port.verify.cases``), which can be carried to any machine.
"""

from __future__ import annotations

import re
import shutil
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from rocmend.core.supervise import run_command
from rocmend.core.units import count_text
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.includes import closure
from rocmend.port.verify import cases
from rocmend.port.verify.job import Job
from rocmend.port.verify.programs import Command, build, execute, why
from rocmend.port.verify.records import Evidence, Outcome
from rocmend.port.verify.trees import Tree
from rocmend.port.verify.units import Unit, units_of

__all__ = ["RECORDER", "WRAPPED", "record", "taken"]

RECORDER = Path(__file__).parent / "recorder.cpp"
WRAPPED = (
    "cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaFree", "cudaFreeAsync", "cudaLaunchKernel",
    "__cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC", "__cudaGetKernel",
    "__cudaRegisterVar", "__cudaRegisterManagedVar", "cudaCreateTextureObject", "cudaCreateSurfaceObject",
)  # fmt: skip
"""Functions of CUDA's runtime that the recorder stands before (the linker's ``--wrap``)."""

_DEMANGLERS = ("c++filt", "cu++filt")
_KINDS: Mapping[str, cases.Kind] = {
    "float": "f32", "float2": "f32", "float3": "f32", "float4": "f32", "double": "f64", "double2": "f64",
    "__half": "f16", "__half2": "f16", "__nv_bfloat16": "bf16", "__nv_bfloat162": "bf16",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8", "short": "i16", "unsigned short": "u16",
    "int": "i32", "int2": "i32", "int4": "i32", "unsigned int": "u32", "uint2": "u32", "uint4": "u32",
    "long": "i64", "long long": "i64", "unsigned long": "u64", "unsigned long long": "u64",
}  # fmt: skip
"""How the elements of a buffer are compared, by the type that a kernel takes a pointer to."""


def record(  # noqa: PLR0913, PLR0917  a run has as many parts as it has
    job: Job, tree: Tree, unit: Unit, command: Command, given: Sequence[str], gpu: str
) -> Evidence:
    """Record the launches of a program, whose original stands in the tree; what was recorded of it before goes.

    Returns:
        A note on what was recorded, and on what was not and why. A program that cannot be recorded breaks nothing.
    """

    def recording(sources: Sequence[Path], folders: Sequence[Path], libraries: Sequence[str], out: Path) -> list[str]:
        wraps = [part for name in WRAPPED for part in ("-Xlinker", f"--wrap={name}")]
        return [*command([*sources, RECORDER], folders, libraries, out), *wraps]

    built = build(job, unit, tree.folder, job.scratch() / "recorded", recording)
    if built.program is None:
        return Evidence(unit.path, Outcome.NOTE, f"its launches were not recorded: {why(built.said)}")
    folder = job.scratch()
    said = execute(job, built.program, given, str(PurePosixPath(unit.path).parent), {"ROCMEND_RECORD": str(folder)})
    if not said.ok:
        return Evidence(unit.path, Outcome.NOTE, f"its launches were not recorded: {why(said)}")
    try:
        if all(stat.S_ISREG(path.lstat().st_mode) for path in folder.iterdir()):
            return taken(job, unit, built.sources, folder, gpu)
        reason = "the folder holds more than regular files"
    except (OSError, ValueError, LookupError) as error:  # the program can write there too
        reason = f"{type(error).__name__}: {error}"
    return Evidence(unit.path, Outcome.NOTE, f"its launches were not recorded: the recording cannot be read: {reason}")


def taken(job: Job, unit: Unit, sources: Sequence[str], folder: Path, gpu: str) -> Evidence:
    """Make cases of what a recorder wrote.

    Args:
        job: The run.
        unit: The program's unit.
        sources: What the program was built from.
        folder: What the recorder wrote.
        gpu: The device that it ran on.
    """
    label = re.sub(r"[^\w.-]", "_", unit.path)
    for old in job.tree.names(cases.FOLDER) if job.tree.is_folder(cases.FOLDER) else ():
        if old.startswith(f"{label}-"):
            job.tree.remove(f"{cases.FOLDER}/{old}")
    found: Counter[str] = Counter()
    left = _notes(folder)
    written = sorted(folder.glob("*.launch"), key=lambda path: int(path.stem))
    plain = _demangled([_fields(path)["kernel"][0] for path in written] + [name for name, _ in left])
    where = _kernels(job, sources)
    for path in written:
        name = _fields(path)["kernel"][0]
        base = _base(plain[name])
        unit_path = where.get(base)
        if unit_path is None:
            left.append((name, "no translation unit of the project defines it"))
            continue
        found[base] += 1
        case, buffers = _case(path, unit_path, plain[name], gpu)
        cases.write(job.tree, f"{cases.FOLDER}/{label}-{base}-{found[base]}", case, buffers)
    told = (
        f"{count_text(found.total(), 'launch', 'launches')} of {count_text(len(found), 'kernel')} recorded for level 4"
    )
    if not written and not left:
        told += ": the program made no launch through the CUDA runtime"
    # instances of a template have one name: what is said of several of them is said once
    reasons = dict.fromkeys(sorted(f"{_base(plain[name])}: {reason}" for name, reason in left))
    rest = "; ".join(reasons)
    return Evidence(unit.path, Outcome.NOTE, f"{told}{f'. Not recorded: {rest}' if rest else ''}")


def _notes(folder: Path) -> list[tuple[str, str]]:
    """Return the kernels of which a launch was not recorded, and why."""
    try:
        lines = (folder / "notes").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [(name, reason) for name, _, reason in (line.partition("\t") for line in lines)]


def _fields(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, rest = line.partition(" ")
        found.setdefault(key, []).append(rest)
    return found


def _case(path: Path, unit: str, signature: str, gpu: str) -> tuple[cases.Case, dict[str, bytes]]:
    """Return a case and the bytes of its buffers, out of one launch's files."""
    fields = _fields(path)
    kinds = _kinds(signature)
    parameters: list[cases.Parameter] = []
    buffers: dict[str, bytes] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, rest = line.partition(" ")
        kind = kinds[len(parameters)] if len(parameters) < len(kinds) else "bytes"
        if key == "value":
            parameters.append(cases.Value(bytes.fromhex(rest)))
        elif key == "buffer":
            number, offset = rest.split()
            before, after = f"arg{number}.in", f"arg{number}.out"
            out = path.with_name(f"{path.stem}.{number}.out")
            buffers[before] = path.with_name(f"{path.stem}.{number}.in").read_bytes()
            if out.is_file():
                buffers[after] = out.read_bytes()
            parameters.append(cases.Buffer(before, after if out.is_file() else "", kind, offset=int(offset)))
    grid, block = (_three(fields[name][0]) for name in ("grid", "block"))
    case = cases.Case(fields["kernel"][0], unit, grid, block, tuple(parameters), int(fields["lds"][0]), recorded_on=gpu)
    return case, buffers


def _three(text: str) -> tuple[int, int, int]:
    x, y, z = (int(part) for part in text.split())
    return x, y, z


def _kernels(job: Job, sources: Sequence[str]) -> dict[str, str]:
    """Return the kernels that sources or their headers define, each with the unit that it is compiled in."""
    known = {unit.path for unit in units_of(job)}
    found: dict[str, str] = {}
    for path in sources:
        if path not in known:
            continue
        for one in sorted(closure(path, job.sources)):
            for function in CudaFile(one, job.sources[one]).functions:
                if b"__global__" in function.qualifiers:
                    found.setdefault(function.name.text.decode("ascii", "replace"), path)
    return found


# -- names -------------------------------------------------------------------------------------------------------------


def _demangled(names: Sequence[str]) -> dict[str, str]:
    """Return names as the source has them, with their parameters; as they are where nothing here can tell."""
    program = next((found for name in _DEMANGLERS if (found := shutil.which(name))), None)
    distinct = list(dict.fromkeys(names))
    if program is None or not distinct:
        return {name: name for name in distinct}
    said = run_command([program, *distinct], time_limit_s=30)
    lines = said.stdout.splitlines()
    return dict(zip(distinct, lines, strict=True)) if said.ok and len(lines) == len(distinct) else {
        name: name for name in distinct
    }  # fmt: skip


def _base(signature: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters."""
    head = _head(signature)
    return head.rpartition("::")[2].split()[-1] if head else signature


def _head(signature: str) -> str:
    text = signature.replace("(anonymous namespace)", "").replace("operator()", "")
    while "<" in text and (inner := re.sub(r"<[^<>]*>", "", text)) != text:
        text = inner
    return text.partition("(")[0].strip()


def _kinds(signature: str) -> list[cases.Kind]:
    """Return how the elements behind each parameter are compared; ``bytes`` for what is not known."""
    parameters = signature.replace("(anonymous namespace)", "").rpartition("(")[2].rpartition(")")[0]
    found: list[cases.Kind] = []
    depth, start = 0, 0
    for at, letter in enumerate(f"{parameters},"):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            words = parameters[start:at].replace("const", " ").replace("*", " ").replace("__restrict__", " ").split()
            found.append(_KINDS.get(" ".join(words), "bytes"))
            start = at + 1
    return found
