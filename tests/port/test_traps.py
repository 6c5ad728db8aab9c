"""Small kernels of the project's own, about half of them traps: what `rocmend port` says of each, and nothing else.

``traps/FAMILY.cu`` holds the kernels of a family, each after a line ``//// NAME``. A comment ``//! CU30 manual, CU01``
at the end of a line is what has to be said of that line: rules, each with its outcome (``auto`` where none is written).
A line ``//= 64: EXPRESSION`` says what ``out[i]`` is after ``k<<<1, 64>>>(in, out)``, where ``in[i]`` is ``i``: on CUDA
and, for the port, on wavefronts of 32 and of 64 lanes. It is Python's, of ``i``; None where nothing is defined.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.write import ported
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import rules

HERE = Path(__file__).parent
SUPPORT = HERE.parents[1] / "src" / "rocmend" / "port" / "support"
INCLUDES = "CU40"
"""Said of every source that names CUDA's headers, or needs them: it is about no construct."""


class Trap(NamedTuple):
    """A kernel, and what has to be said of it: lines, rules and outcomes."""

    name: str
    source: str
    findings: tuple[tuple[int, str, str], ...]
    threads: int
    values: str


def traps() -> Iterator[Trap]:
    for path in sorted(HERE.glob("traps/*.cu")):
        parts = re.split(r"^//// (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            values = re.search(r"^//= (\d+): (.*)$", text, re.MULTILINE)
            lines = [line for line in text.splitlines() if not line.startswith("//= ")]
            found = []
            for number, line in enumerate(lines):
                code, _, marks = line.partition("//!")
                for mark in filter(None, marks.split(",")):
                    rule, _, outcome = mark.strip().partition(" ")
                    found.append((number + 1, rule, outcome or "auto"))
                lines[number] = code.rstrip()
            told = (int(values[1]), values[2]) if values else (0, "")
            yield Trap(f"{path.stem}_{name}", "\n".join([*lines, ""]), tuple(sorted(found)), *told)


TRAPS = list(traps())


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str, str]]]:
    """What one run of the installed command says of all of them."""
    folder = tmp_path_factory.mktemp("traps")
    for trap in TRAPS:
        (folder / f"{trap.name}.cu").write_text(trap.source, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("rocmend")), "port", ".", "--no-cache", "--format", "jsonl"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done.stderr
    found: dict[str, list[tuple[int, str, str]]] = {trap.name: [] for trap in TRAPS}
    for issue in map(json.loads, done.stdout.splitlines()):
        if issue["rule"] != INCLUDES:
            found[Path(issue["path"]).stem].append((issue["line"], issue["rule"], issue["outcome"]))
    return {name: sorted(issues) for name, issues in found.items()}


def test_there_are_enough_of_both_kinds() -> None:
    traps_of_person = [trap for trap in TRAPS if any(outcome == "manual" for _, _, outcome in trap.findings)]
    nothing_to_do = [trap for trap in TRAPS if all(outcome == "note" for _, _, outcome in trap.findings)]
    assert len({trap.name for trap in TRAPS}) == len(TRAPS) >= 250
    assert min(len(traps_of_person), len(nothing_to_do)) >= 75


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_what_is_said(trap: Trap, said: dict[str, list[tuple[int, str, str]]]) -> None:
    assert said[trap.name] == list(trap.findings)


def expected(trap: Trap) -> list[int | None]:
    """What a kernel leaves in its output, by its own expression."""
    return [eval(trap.values, {"i": at, "sum": sum, "range": range}) for at in range(trap.threads)]  # noqa: S307  ours


def program(side: str) -> str:
    """A program that runs every kernel whose output is known; each lies in a namespace of its own."""
    parts = ["#include <cuda_runtime.h>\n"]
    launches = []
    for trap in TRAPS:
        if trap.threads:
            source = trap.source.encode()
            if side == "rocm":
                file = CudaFile("kernel.cu", source)
                issues = [issue for rule in rules(Language.CUDA) for issue in rule.issues(file)]
                source = ported(source, [issue for issue in issues if issue.outcome is Outcome.AUTO])
            defined = re.findall(r"^#define (\w+)", trap.source, re.MULTILINE)
            lines = [line for line in source.decode().splitlines() if not line.startswith("#include")]
            undone = [f"#undef {name}" for name in defined]
            parts.append("\n".join([f"namespace {trap.name} {{", *lines, "}", *undone, ""]))
            launches.append(f'  run("{trap.name}", {trap.threads}, {trap.name}::k);\n')
    parts.append(
        "static void run(const char* name, unsigned threads, void (*kernel)(const int*, int*)) {\n"
        "  std::vector<int> in(threads), out(threads);\n  for (unsigned i = 0; i < threads; ++i) in[i] = i;\n"
        "  simt::launch(1, {threads, 1, 1}, [&] { kernel(in.data(), out.data()); });\n"
        '  std::printf("%s", name);\n  for (int word : out) std::printf(" %d", word);\n  std::printf("\\n");\n}\n'
    )
    return "".join([*parts, "int main() {\n", *launches, "}\n"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize(("side", "lanes"), [("cuda", 32), ("rocm", 32), ("rocm", 64)])
def test_what_comes_out(side: str, lanes: int, tmp_path: Path) -> None:
    """By the models of CUDA's warp and of HIP's wavefront that the helpers are tested with."""
    source, binary = tmp_path / "all.cpp", tmp_path / "all"
    source.write_text(program(side), encoding="utf-8")
    gate = ["-DUSE_ROCM"] if side == "rocm" else []
    paths = [f"-I{HERE / 'wave' / 'shim' / side}", f"-I{SUPPORT}"]
    command = ["g++", "-std=c++17", "-O0", "-w", f"-DWAVE={lanes}", *gate, *paths, str(source), "-o", str(binary)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(binary)], check=True, capture_output=True, text=True, timeout=60)
    got = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in done.stdout.splitlines()}
    for trap in TRAPS:
        if trap.threads:
            wanted = expected(trap)
            found = [None if one is None else word for word, one in zip(got[trap.name], wanted, strict=True)]
            assert found == wanted, trap.name


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_what_comes_out_of_the_machine_code(target: str) -> None:
    """The port, compiled for a GPU and executed on the CPU: right on 64 lanes and on 32, and nothing found."""
    for package in ("rocm", "ziglang", "clang"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    import numpy as np

    from rocmend.codeobject.hip import HipObject, compile_hip
    from rocmend.codeobject.kernarg import read_kernargs
    from rocmend.emulate import launch

    text = program("rocm").partition("static void run(")[0]
    text = text.replace("#include <cuda_runtime.h>", '#include <hip/hip_runtime.h>\n#include "warp32.h"')
    made = compile_hip(text.encode(), target, defines={"USE_ROCM": ""}, include_dirs=[SUPPORT])
    assert isinstance(made, HipObject), made.message
    names = [one.kernel for one in read_kernargs(made.code)]
    for trap in TRAPS:
        if trap.threads:
            (kernel,) = [name for name in names if f"{len(trap.name)}{trap.name}1k" in name]
            given, out = np.arange(trap.threads, dtype=np.int32), np.full(trap.threads, -1, np.int32)
            launch(made.code, kernel, grid=(1,), block=(trap.threads,), args=[given, out])
            wanted = expected(trap)
            found = [None if one is None else word for word, one in zip(out.tolist(), wanted, strict=True)]
            assert found == wanted, trap.name
