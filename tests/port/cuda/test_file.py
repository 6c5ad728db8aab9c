"""A source as rules see it: calls, launches, functions, declarations, and which side compiles what."""

from __future__ import annotations

import pytest

from rocmend.port.cuda.conditions import evaluated
from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.file import CudaFile

SOURCE = b"""\
#define FULL 0xffffffff
#define STEP(v, m) do { \\
  v = max(v, __shfl_xor_sync(FULL, v, m)); \\
} while (0)
template <typename T, int N> __device__ __forceinline__ T sum(T v) {
  for (int o = 16, q = 2; o > 0; o >>= 1) v += __shfl_down_sync(FULL, v, o);
  unsigned mask = __ballot_sync(FULL, v > 0), other;
  const std::vector<std::pair<int, float>> z(3, 4), *y = nullptr;
  return cub::BlockReduce<T, N>(storage).Sum(v, std::max<int>(3, 4));
}
struct A { int x_; A(int a) : x_(a), y(b) { run(); } uint32_t words[4][N]; };
#ifdef USE_ROCM
unsigned g(int a) {
#else
int g(int a) {
#endif
  return __ballot_sync(a, 1);
}
extern "C" __global__ void __launch_bounds__(256) k(float *__restrict__ x, int n) { __shared__ float s[32][33]; }
void run() { k<<<dim3(1, 2), 256, 0, s>>>(x, n); ns::q<int, 4><<<1, 2>>>(); if (x > foo(3)) {} }
"""


@pytest.fixture(scope="module")
def file() -> CudaFile:
    return CudaFile("a.cu", SOURCE)


def text(piece: object) -> bytes:
    return SOURCE[piece.start : piece.end]  # type: ignore[attr-defined]


def test_calls_hold_their_arguments(file: CudaFile) -> None:
    (down,) = file.calls("__shfl_down_sync")
    assert [text(one) for one in down.args] == [b"FULL", b"v", b"o"]
    (block,) = file.calls("BlockReduce")
    assert block.qualifier == b"cub::"
    assert [text(one) for one in block.template] == [b"T", b"N"]
    (inner,) = [call for call in file.calls("max") if call.qualifier]
    assert text(inner) == b"std::max<int>(3, 4)"


def test_calls_in_macros_stay_there(file: CudaFile) -> None:
    (exchange,) = file.calls("__shfl_xor_sync")
    assert exchange.name.directive >= 0
    assert text(exchange) == b"__shfl_xor_sync(FULL, v, m)"
    assert file.macros[b"STEP"][0].parameters == (b"v", b"m")


def test_launches(file: CudaFile) -> None:
    first, second = file.launches()
    assert [text(one) for one in first.config] == [b"dim3(1, 2)", b"256", b"0", b"s"]
    assert [text(one) for one in first.args] == [b"x", b"n"]
    assert text(second.kernel) == b"ns::q<int, 4>"


def test_functions_that_are_operators() -> None:
    source = b"struct S {\n  int operator()(int v) const { return v; }\n  S operator+(S o) { return o; }\n};\n"
    functions = CudaFile("x.cu", source).functions
    assert [one.name.text for one in functions] == [b"operator", b"operator"]
    assert [len(one.parameters) for one in functions] == [1, 1]


def test_names_of_amd_compilers_are_no_code_for_nvidia() -> None:
    source = b"#if defined(__GFX9__)\nint a;\n#else\nint b;\n#endif\n#ifdef __gfx1201__\nint c;\n#endif\n"
    file = CudaFile("x.cu", source)
    assert [branch.nvidia for branch in file.branches] == [False, True, False]


def test_functions(file: CudaFile) -> None:
    known = {one.name.text: one for one in file.functions}
    assert set(known) == {b"sum", b"A", b"g", b"k", b"run"}
    assert known[b"k"].on_device
    assert not known[b"run"].on_device
    inside = file.function_at(SOURCE.index(b"__shfl_down_sync"))
    assert inside is not None
    assert inside.name.text == b"sum"


@pytest.mark.parametrize(
    ("name", "kind", "pointers", "value"),
    [
        ("mask", b"unsigned", b"", b"__ballot_sync(FULL, v > 0)"),
        ("other", b"unsigned", b"", None),
        ("q", b"int", b"", b"2"),
        ("y", b"std::vector < std::pair < int , float >>", b"*", b"nullptr"),
        ("x", b"float", b"*", None),
        ("words", b"uint32_t", b"", None),
    ],
)
def test_declarations(file: CudaFile, name: str, kind: bytes, pointers: bytes, value: bytes | None) -> None:
    (declared,) = file.declarations_of(name)
    assert (declared.type, declared.pointers) == (kind, pointers)
    assert (None if declared.value is None else text(declared.value)) == value


def test_declarations_end_with_their_scope(file: CudaFile) -> None:
    assert file.declaration_of("mask", SOURCE.index(b"return cub")) is not None
    assert file.declaration_of("mask", SOURCE.index(b"struct A")) is None


def test_sides(file: CudaFile) -> None:
    assert not file.shared(SOURCE.index(b"unsigned g"))
    assert file.on_rocm(SOURCE.index(b"unsigned g"))
    assert not file.on_rocm(SOURCE.index(b"int g"))
    assert file.shared(SOURCE.index(b"return __ballot"))


@pytest.mark.parametrize(
    ("condition", "shared"),
    [
        (b"#ifdef __HIP_PLATFORM_AMD__", False),
        (b"#if !defined(USE_ROCM)", False),
        (b"#if defined(USE_ROCM) && FOO", False),
        (b"#if defined(USE_ROCM) || FOO", True),
        (b"#if FOO", True),
        (b"#if 0", False),
        (b"#if __CUDA_ARCH__ >= 700", False),
        (b"#if defined(__CUDA_ARCH__)", True),
        (b"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700", False),
        (b"#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700", True),
        (b"#if __has_include(<x.h>)", True),
    ],
)
def test_conditions(condition: bytes, shared: bool) -> None:
    data = condition + b"\nint a;\n#endif\n"
    assert CudaFile("a.cu", data).shared(data.index(b"int")) is shared


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("N * 4", 64),
        ("sizeof(float) * N", 64),
        ("M + 1", 33),
        ("(1 << 4) | 0x0Fu", 31),
        ("unknown", None),
        ("N / 0", None),
        ("1.5", None),
        ("sizeof(long)", None),
        ("f(3)", None),
    ],
)
def test_constants(expression: str, value: int | None) -> None:
    file = CudaFile("a.cu", f"#define N 16\nconstexpr int M = N * 2;\nint x[{expression}];\n".encode())
    (declared,) = file.declarations_of("x")
    assert constant(file, declared.extents[0], declared.name.start) == value


def test_an_expression_without_end_is_not_followed() -> None:
    """Its value is not known, so that neither branch is left out."""
    for count, value in ((100, 100), (100_000, None)):
        assert evaluated([b"1", *([b"+", b"1"] * (count - 1))], {}) == value
