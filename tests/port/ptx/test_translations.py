"""Each translation of inline PTX, built with g++ as the rule writes it, against a model of the instruction."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from tests.port.ptx import model
from tests.port.ptx.cases import CASES, Case

from rocmend.codeobject.hip import HipObject, NoToolchainError, compile_hip, find_toolchain
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.write import ported
from rocmend.port.records import Outcome
from rocmend.port.rules.cuda.cu13_inline_ptx import inline_ptx

HERE = Path(__file__).parent

SUPPORT = HERE.parents[2] / "src" / "rocmend" / "port" / "support"
SHIM = HERE.parent / "wave" / "shim" / "rocm"
TYPES = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "f": "float", "d": "double"}
SIZES = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
FORMS = {"f": model.F32, "d": model.F64}
EDGES = {
    16: [0, 1, 2, 0x7C00, 0x7BFF, 0xFC00, 0x8000, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7E01, 0xFFFF, 0x3555, 0x8001],
    32: [
        0,
        1,
        2,
        3,
        5,
        31,
        32,
        33,
        63,
        64,
        255,
        256,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
        M := 0xFFFFFFFF,
        M - 1,
    ],
    64: [0, 1, 31, 32, 63, 64, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1],
}
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 127.4, 127.5, 128.0, -129.0, 255.5, 256.0, 65504.0,
    65519.0, 65520.0,
    2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 1e-8,
    6e-8, 3e-5, 1e-40, -1e-45, 1.2e-38, 3e38, -3e38, float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
PER_CASE = 80

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def words(letter: str, chance: random.Random) -> int:
    """A value for an operand: an edge, or random bits."""
    size = SIZES[letter]
    if letter in FORMS and chance.random() < 0.7:
        pattern = "<f" if letter == "f" else "<d"
        number = chance.choice(FLOATS) if chance.random() < 0.6 else chance.uniform(-40, 40)
        return int.from_bytes(struct.pack(pattern, number), "little")
    if chance.random() < 0.5:
        return chance.choice(EDGES[size])
    return chance.getrandbits(chance.choice([size, size, 7]))


def operands(case: Case, chance: random.Random) -> list[int]:
    """The inputs of one trial; now and then all of them are zeros, infinities or NaN."""
    given = [words(letter, chance) for letter in case.inputs]
    if chance.random() < 0.2:
        special = [0.0, -0.0, 0.0, -0.0, float("nan"), float("inf"), -float("inf")]
        packed = {"f": "<f", "d": "<d", "h": "<e"}
        for at, letter in enumerate(case.inputs):
            if letter in packed:
                given[at] = int.from_bytes(struct.pack(packed[letter], chance.choice(special)), "little")
    return given


def function(at: int, case: Case) -> str:
    outputs = [f"{TYPES[letter]} o{i};" for i, letter in enumerate(case.outputs)]
    inputs = [f"{TYPES[letter]} i{i} = word<{TYPES[letter]}>(in[{i}]);" for i, letter in enumerate(case.inputs)]
    text = case.text.replace("\n", "\\n").replace("\t", "\\t")
    written = ", ".join(f'"={letter}"(o{i})' for i, letter in enumerate(case.outputs))
    given = ", ".join(f'"{letter}"(i{i})' for i, letter in enumerate(case.inputs))
    stored = " ".join(f"out[{i}] = bits(o{i});" for i in range(len(case.outputs)))
    return (
        f"__device__ void case_{at}(const uint64_t* in, uint64_t* out) {{\n"
        f"  {' '.join(outputs)}\n  {' '.join(inputs)}\n"
        f'  asm volatile("{text}" : {written} : {given});\n  {stored}\n}}\n'
    )


def source() -> bytes:
    head = (
        '#include <hip/hip_runtime.h>\n#include "ptx.h"\n'
        "template <typename T> T word(uint64_t w) { T v; std::memcpy(&v, &w, sizeof(T)); return v; }\n"
        "template <typename T> uint64_t bits(T v) { uint64_t w = 0; std::memcpy(&w, &v, sizeof(T)); return w; }\n"
    )
    functions = "".join(function(at, case) for at, case in enumerate(CASES))
    table = ", ".join(f"case_{at}" for at in range(len(CASES)))
    tail = (
        f"void (*const cases[])(const uint64_t*, uint64_t*) = {{{table}}};\n"
        "int main() {\n  unsigned at;\n  unsigned long long v[6];\n"
        '  while (std::scanf("%u %llx %llx %llx %llx %llx %llx", &at, v, v + 1, v + 2, v + 3, v + 4, v + 5) == 7) {\n'
        "    uint64_t in[6], out[3] = {};\n    for (int i = 0; i < 6; ++i) in[i] = v[i];\n    cases[at](in, out);\n"
        '    std::printf("%lx %lx %lx\\n", out[0], out[1], out[2]);\n'
        "  }\n}\n"
    )
    return (head + functions + tail).encode()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_all_of_them_compile_for_amd_gpus(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    head = (
        '#include <hip/hip_runtime.h>\n#include "ptx.h"\n'
        "template <typename T> __device__ T word(uint64_t w) { T v; __builtin_memcpy(&v, &w, sizeof(T)); return v; }\n"
        "template <typename T> __device__ uint64_t bits(T v) {\n"
        "  uint64_t w = 0; __builtin_memcpy(&w, &v, sizeof(T)); return w;\n}\n"
    )
    calls = "".join(f"    case {at}: case_{at}(in, out); break;\n" for at in range(len(CASES)))
    kernel = f"__global__ void all(int at, const uint64_t* in, uint64_t* out) {{\n  switch (at) {{\n{calls}  }}\n}}\n"
    data = (head + "".join(function(at, case) for at, case in enumerate(CASES)) + kernel).encode()
    made = compile_hip(
        ported(data, inline_ptx.issues(CudaFile("ptx.cu", data))),
        target,
        defines={"USE_ROCM": ""},
        include_dirs=[SUPPORT],
        options=["-O1"],
    )
    assert isinstance(made, HipObject), made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ptx")
    data = source()
    issues = inline_ptx.issues(CudaFile("ptx.cu", data))
    left = [issue.message for issue in issues if issue.outcome is not Outcome.AUTO]
    assert left == []
    assert len(issues) == len(CASES)
    file = folder / "ptx.cpp"
    file.write_bytes(ported(data, issues))
    built = folder / "ptx"
    options = ["-std=c++17", "-O1", "-w", "-DWAVE=32", "-DUSE_ROCM", "-ffp-contract=off", f"-I{SHIM}", f"-I{SUPPORT}"]
    subprocess.run(["g++", *options, str(file), "-o", str(built)], check=True)
    return built


@pytest.fixture(scope="module")
def results(program: Path) -> dict[int, list[tuple[list[int], list[int]]]]:
    chance = random.Random(20)  # noqa: S311  operands of tests
    trials = [(at, operands(case, chance)) for at, case in enumerate(CASES) for _ in range(PER_CASE)]
    lines = [" ".join([str(at), *(f"{word:x}" for word in [*given, *[0] * (6 - len(given))])]) for at, given in trials]
    output = subprocess.run([str(program)], input="\n".join(lines), check=True, capture_output=True, text=True).stdout
    found: dict[int, list[tuple[list[int], list[int]]]] = {}
    for (at, given), line in zip(trials, output.splitlines(), strict=True):
        found.setdefault(at, []).append((given, [int(word, 16) for word in line.split()]))
    return found


def same(case: Case, got: int, expected: int, letter: str) -> bool:
    """Whether two results are one: NaN is NaN whatever its payload, approximations may differ a little."""
    if case.form is None or got == expected:
        return got == expected
    form = case.form
    if SIZES[letter] == 2 * form.size:
        low = (1 << form.size) - 1
        return all(
            one == other or (model.is_nan(one, form) and model.is_nan(other, form))
            for one, other in ((got & low, expected & low), (got >> form.size, expected >> form.size))
        )
    if model.is_nan(got, form) and model.is_nan(expected, form):
        return True
    if case.tolerance:
        one, other = model.decoded(got, form), model.decoded(expected, form)
        if isinstance(one, float) or isinstance(other, float):
            return False
        return abs(one - other) <= max(abs(other) * Fraction(case.tolerance), Fraction(1, 1 << 148))
    return False


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda at: CASES[at].text.split(" %")[0][:40])
def test_translation_computes_what_ptx_defines(at: int, results: dict[int, list[tuple[list[int], list[int]]]]) -> None:
    case = CASES[at]
    assert len(results[at]) == PER_CASE
    for given, got in results[at]:
        made = case.model(*given)
        expected = made if isinstance(made, tuple) else (made,)
        for letter, one, other in zip(case.outputs, got, expected, strict=False):
            assert same(case, one, other, letter), f"{case.text} of {[hex(x) for x in given]}: {one:#x}, not {other:#x}"
