"""How far ``rocmend port`` brings real projects: each is copied, ported, proven and compiled.

    python benchmarks/port_projects.py PATH … [--compiler CXX] [--target gfx942 …] [--work DIR] [--json FILE]

For every path: how many issues are rewritten, suggested and for a person, whether the NVIDIA side is the original byte
for byte, and how many of the translation units of the ROCm side compile for every target. A project counts as compiled
where all of its units do. The compiler is a HIP clang++ with ROCm's headers and libraries' headers; without one only
the port and the identity are reported. Nothing of the projects is changed.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rocmend.port.analyse import analyse
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.identity import broken
from rocmend.port.plan import plan
from rocmend.port.records import Outcome

DEVICE_SOURCES = {".cu"}
HOST_SOURCES = {".cpp", ".cc", ".cxx", ".c"}
HEADERS = {".h", ".hpp", ".cuh", ".hh", ".inl", ".inc"}
FLAGS = [
    "-x",
    "hip",
    "-fsyntax-only",
    "-DUSE_ROCM",
    "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1",
    "-nogpulib",
    "-ferror-limit=6",
]
_DEFINE = re.compile(r"(?<![\w-])-([DI])\s*([\w./+=-]+)")
_VARIABLE = re.compile(r"^[ \t]*(\w+)[ \t]*[:?]?=[ \t]*([\w./+-]*)[ \t]*$", re.MULTILINE)


def ported(source: Path, work: Path) -> dict[str, object]:
    """Port a copy of a project; return what was found, and what of it was written."""
    analysis = analyse(work, cache=False, jobs=1)
    planned = plan(analysis)
    differs = []
    for change in planned.changes:
        where = work / change.path
        where.parent.mkdir(parents=True, exist_ok=True)
        if (
            change.before is not None
            and change.after is not None
            and where.suffix in DEVICE_SOURCES | HOST_SOURCES | HEADERS
        ):
            reason = broken((source / change.path).read_bytes(), change.after)
            if reason is not None:
                differs.append(f"{change.path}: {reason}")
        if change.after is not None:
            where.write_bytes(change.after)
    counts = dict.fromkeys((one.value for one in Outcome), 0)
    for issue in analysis.issues:
        counts[issue.outcome.value] += 1
    return {
        "files": sum(analysis.looked_at.values()),
        "issues": counts,
        "rules": sorted({issue.rule for issue in analysis.issues}),
        "manual": [
            f"{issue.path}:{issue.line}: {issue.rule} {issue.message}"
            for issue in analysis.issues
            if issue.outcome is Outcome.MANUAL
        ],
        "skipped": [f"{file.path}: {file.skipped}" for file in analysis.files if file.skipped],
        "left_alone": [f"{one.path}: {one.reason}" for one in planned.left_alone],
        "identity": not differs,
        "differs": differs,
    }


def units(work: Path) -> Iterator[Path]:
    """Yield the translation units of a ported project that use CUDA: sources that no other file includes."""
    every = [
        path for path in work.rglob("*") if path.is_file() and path.suffix in DEVICE_SOURCES | HOST_SOURCES | HEADERS
    ]
    included: set[str] = set()
    for path in every:
        file = CudaFile(path.name, path.read_bytes())
        included |= {Path(name.decode("utf-8", "replace").strip('<>"')).name for name, _ in file.includes}
    for path in sorted(every):
        if path.name in included or path.suffix in HEADERS:
            continue
        if path.suffix in DEVICE_SOURCES or b"cuda_to_hip.h" in path.read_bytes():
            yield path


def folder_of(unit: Path, work: Path) -> Path:
    """Return where a unit is built: the nearest folder with a Makefile, up to the project's own."""
    return next((up for up in unit.parents if up == work or (work in up.parents and [*up.glob("Makefile*")])), work)


def flags_of(work: Path) -> list[str]:
    """Return the definitions and include paths of a folder's Makefile."""
    found: dict[str, None] = {}
    for makefile in [*work.glob("Makefile*"), *work.glob("*.mk")]:
        text = makefile.read_text(errors="replace")
        for name, value in _VARIABLE.findall(text):
            text = text.replace(f"$({name})", value)
        for kind, value in _DEFINE.findall(text):
            found[f"-{kind}{value}"] = None
    return list(found)


def standard_of(work: Path) -> str:
    """Return the language standard that a Makefile asks for; C++17 where it asks for none or one before 14."""
    for makefile in work.glob("Makefile*"):
        told = re.search(r"-std=((?:c|gnu)\+\+(\w+))", makefile.read_text(errors="replace"))
        if told and told[2] not in {"98", "03", "0x", "11"}:
            return f"-std={told[1]}"
    return "-std=c++17"


def compiled(unit: Path, work: Path, compiler: list[str], targets: list[str], more: list[str]) -> str:
    """Return the first errors of a unit for targets; empty where it compiles for all of them."""
    places = ["-I.", "-Iinclude", "-I../include"]
    folder = folder_of(unit, work)
    command = [
        *compiler,
        *FLAGS,
        standard_of(folder),
        *(f"--offload-arch={one}" for one in targets),
        *flags_of(folder),
        *places,
        *more,
    ]
    where = unit.relative_to(folder)
    done = subprocess.run([*command, "-w", str(where)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return "\n".join(errors[:4]) or done.stderr[:400]


def measured(source: Path, folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Port, prove and compile one project."""
    work = folder / "src" / source.name
    shutil.copytree(source, work, symlinks=True)
    for sibling in options.sibling:
        target = folder / "src" / sibling.name
        if not target.exists():
            shutil.copytree(sibling, target)
    try:
        result = ported(source, work)
    except Exception as error:  # noqa: BLE001  one project that fails is a result, not the end of the run
        return {"project": source.name, "failed": f"{type(error).__name__}: {error}", "identity": False}
    result["project"] = source.name
    if options.compiler:
        found = list(units(work))
        result["units"] = len(found)
        errors: dict[str, dict[str, str]] = {target: {} for target in options.target}
        compiler, more = shlex.split(options.compiler), shlex.split(options.flags)
        for unit in found:
            if compiled(unit, work, compiler, options.target, more):  # which target it is, is asked where one fails
                for target in options.target:
                    told = compiled(unit, work, compiler, [target], more)
                    if told:
                        errors[target][str(unit.relative_to(work))] = told
        result["errors"] = errors
    return result


def row(result: dict[str, object], targets: list[str]) -> str:
    """Return one line of the table."""
    if "failed" in result:
        return f"{result['project']!s:28} failed: {result['failed']}"
    issues, errors = result["issues"], result.get("errors", {})
    assert isinstance(issues, dict)
    assert isinstance(errors, dict)
    cells = " ".join(
        f"{target}: {'yes' if not errors[target] else f'NO ({len(errors[target])})':7}"
        for target in targets
        if target in errors
    )
    return (
        f"{result['project']!s:28} files {result['files']:4}  auto {issues['auto']:4}  suggest {issues['suggest']:3}  "
        f"manual {issues['manual']:3}  identity {'yes' if result['identity'] else 'NO':3}  {cells}"
    )


def main() -> int:
    """Measure and print; exit 1 where an identity does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--compiler", default="", help="a HIP clang++ (with options); none: nothing is compiled")
    parser.add_argument("--flags", default="--rocm-path=/usr", help="more options for the compiler")
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument(
        "--sibling", type=Path, action="append", default=[], help="a folder to be put beside the copies"
    )
    parser.add_argument("--work", type=Path, help="where the copies go; kept")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--errors", action="store_true", help="print the first errors too")
    options = parser.parse_args()
    options.target = options.target or ["gfx942"]
    folder = options.work or Path(tempfile.mkdtemp(prefix="port-"))
    results = []
    for path in options.paths:
        shutil.rmtree(folder / "src" / path.name, ignore_errors=True)
        result = measured(path.resolve(), folder, options)
        results.append(result)
        print(row(result, options.target), flush=True)
        if options.errors:
            for target, units_ in dict(result.get("errors", {})).items():  # type: ignore[call-overload]
                for unit, errors in units_.items():
                    print(f"    {target} {unit}\n      " + errors.replace("\n", "\n      "))
    for target in options.target:
        good = sum(not dict(result.get("errors", {target: {"": ""}}))[target] for result in results)  # type: ignore[call-overload]
        print(f"{target}: {good} of {len(results)} compile")
    print(f"identity: {sum(bool(result['identity']) for result in results)} of {len(results)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return int(not all(result["identity"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
