"""Which conditions are shown to be the same in a warp, or in a block, and which are not."""

from __future__ import annotations

import pytest

from rocmend.port.cuda.file import CudaFile
from rocmend.port.wave.statements import statements, walk
from rocmend.port.wave.uniform import same_in_a_block, same_in_a_warp

HEAD = """
#define LANE (threadIdx.x & 31)
#define LIMIT 7
#define COUNTED (N + LIMIT)
constexpr int kWarpSize = 16;
template <int N>
__global__ void f(int n, const int* data, bool flag) {
  int tid = threadIdx.x;
  const int warp = threadIdx.x / 32;
  int other = tid + 1;
  int changed = n;
  constexpr int kWidth = 4;
  int sum = blockIdx.x * 3 + n;
  changed += tid;
"""


def condition(text: str, head: str = HEAD) -> tuple[CudaFile, tuple[int, int]]:
    file = CudaFile("x.cu", f"{head}  if ({text}) {{ g(); }}\n}}\n".encode())
    function = file.functions[-1]
    body = statements(file, function)
    assert body is not None
    (branch,) = [one for one in walk(body) if one.kind == "if"]
    assert branch.condition is not None
    return file, branch.condition


@pytest.mark.parametrize(
    ("text", "warp", "block"),
    [
        ("n > 3", True, True),
        ("flag && blockIdx.x == 0", True, True),
        ("N == kWidth && sum < LIMIT", True, True),
        ("warp == 0", True, False),
        ("threadIdx.x / 32 == 1", True, False),
        ("threadIdx.x >> 5 == n", True, False),
        ("threadIdx.x < 64", True, False),
        ("tid < 32", True, False),
        ("__any_sync(~0u, tid > 3)", True, False),
        ("__syncthreads_or(tid > 3)", True, True),
        ("__ballot_sync(~0u, tid > 3) == 7", True, False),
        ("__shfl_sync(~0u, tid, 0) > 3", True, False),
        ("__shfl_sync(~0u, tid, n) > 3", True, False),
        ("__shfl_sync(~0u, tid, tid + 1) > 3", False, False),
        ("__shfl_sync(~0u, tid, 0, 16) > 3", False, False),
        ("__shfl_sync(tid & 1 ? 1u : 2u, tid, 0) > 3", False, False),
        ("__shfl_xor_sync(~0u, tid, 1) > 3", False, False),
        ("tid < 16", False, False),
        ("tid == 0", False, False),
        ("threadIdx.x % 32 == 0", False, False),
        ("other < 32", False, False),
        ("changed > 3", False, False),
        ("data[tid] > 0", False, False),
        ("LANE == 0", False, False),
        ("unknown > 0", False, False),
        ("g(n) > 0", False, False),
        ("threadIdx.x < 32 && n", True, False),
        ("n + threadIdx.x / 32 > 2", True, False),
        ("threadIdx.x < 32 - 1", False, False),
        ("40 - threadIdx.x < 32", False, False),
        ("2 * threadIdx.x / 32", False, False),
        ("threadIdx.x >> 5 - 1", False, False),
        ("threadIdx.x / HALF_WARP_SIZE", False, False),
        ("threadIdx.x / WARP_SIZE", True, False),
        ("threadIdx.x / kWarpSize", False, False),
        ("__any_sync(tid & 16 ? 0xffff0000u : 0xffffu, tid > 3)", False, False),
        ("LANE_ID < 4", False, False),
        ("ROWS > 4", True, True),
        ("COUNTED > 2", True, True),
    ],
)
def test_conditions(text: str, warp: bool, block: bool) -> None:
    file, where = condition(text)
    (function,) = file.functions
    assert same_in_a_warp(file, function, *where) is warp
    assert same_in_a_block(file, function, *where) is block


@pytest.mark.parametrize(
    "before",
    [
        "float x = data[tid];",
        "int x = 0; x = tid;",
        "int x = 0; take(x);",
        "int x = 0; take(1, x);",
        "int x = 0; int& y = x; y = tid;",
        "int x = 0; int* y = &x; *y = tid;",
        "int x[2] = {0, 0}; x[1] = tid;",
        "int x[2] = {0, 0}; int* y = x; y[0] = tid;",
        "S x = {}; x.lane = tid;",
        "S x = {}; x.rows[1].lane++;",
        'unsigned x = 0; asm("mov.u32 %0, %%laneid;" : "=r"(x));',
        "int x = 0; auto set = [&] { x = tid; };",
        "int x = 0; auto set = [&](int v) mutable { for (;;) { x += v; } }; set(tid);",
        "int x = 0; auto set = [&](auto& v) { v = tid; }; x += n; set(x);",
        "int x = 0; set(f<int>(n), x);",
        "int x = tid + tid;",
        "int x = helper.lane();",
    ],
)
def test_a_variable_that_may_change(before: str) -> None:
    file, where = condition("x", HEAD + before)
    (function,) = file.functions
    assert not same_in_a_warp(file, function, *where)


@pytest.mark.parametrize(
    ("before", "same"),
    [
        ("__shared__ bool x; if (tid == 0) x = n;", True),
        ("int x = 0; x++; ++x;", True),
        ("int x = 0; if (n > 3) ++x;", True),
        ("int x = 0; if (tid > 3) ++x;", False),
        ("int x = 0; if (tid > 3) x--;", False),
        ("int x = 0; for (int i = 0; i < n; i++) x += i;", True),
        ("int x = 0; for (int i = blockIdx.x; i < n; i += gridDim.x) x += i;", True),
        ("int x = 0; for (int i = tid; i < n; i += gridDim.x) x += i;", False),
        ("int x = 0; for (int i = 0; i < tid; i++) x += i;", False),
        ("int x = 0; for (int i = 0; i < n; i++) if (data[tid] == i) x++;", False),
        ("__shared__ int s[4]; s[0] = tid; int x = s[n];", True),
        ("__shared__ int s[4]; s[0] = tid; int x = s[tid];", False),
    ],
)
def test_values_that_all_lanes_change_or_share(before: str, same: bool) -> None:
    file, where = condition("x > 1", HEAD + before.replace("if (", "while ("))
    (function,) = file.functions
    assert same_in_a_warp(file, function, *where) is same


@pytest.mark.parametrize(
    "before",
    [
        "const int x = n; take(x);",
        "int x = n; y = max(x, 3);",
        "int x = n; y = static_cast<float>(x);",
        'int x = n; asm volatile("" :: "r"(x));',
        "const int x[2] = {1, 2}; y = x[0];",
        "int x = N; if (x > 3) y = 2;",
        "int x = N; auto put = [&](int v) { g(v); }; x += 4; put(tid);",
        "int x = N; auto put = [=] { g(tid); }; x += n; put();",
    ],
)
def test_a_variable_that_stays(before: str) -> None:
    file, where = condition("x", HEAD + before.replace("if (x > 3)", "while (x > 3)"))
    (function,) = file.functions
    assert same_in_a_warp(file, function, *where)


def test_a_function_of_the_file_says_how_it_takes_its_arguments() -> None:
    body = "__global__ void f(int n) {\n  int x = n;\n  take(x);\n"
    for parameter, stays in (("int v", True), ("int& v", False)):
        file, where = condition("x", f"__device__ void take({parameter}) {{}}\n{body}")
        assert same_in_a_warp(file, file.functions[1], *where) is stays


@pytest.mark.parametrize("head", ["template <int x>\n", "template <int y, int x>\n"])
def test_a_parameter_named_as_that_of_another_template(head: str) -> None:
    file, where = condition("x", head + "__device__ int g() { return x; }\n__device__ void f(int x) {\n")
    assert not same_in_a_warp(file, file.functions[-1], *where)


@pytest.mark.parametrize("head", ["struct K { int x = 0; };", "int x = 0;", "__device__ int x = 0;"])
def test_what_others_may_change(head: str) -> None:
    file, where = condition("x", head + "__global__ void f(int n) {\n")
    assert not same_in_a_warp(file, file.functions[-1], *where)


@pytest.mark.parametrize(
    ("launch", "of_block", "of_grid"),
    [
        ("f<<<1, 64>>>();", True, True),
        ("f<<<1, kThreads>>>();", True, True),
        ("dim3 block(32, 4); f<<<1, block>>>();", True, True),
        ("f<<<n, n>>>();", True, False),
        ("int size = 256; f<<<n, size>>>();", True, True),
        ("int size = 256; size /= n; f<<<n, size>>>();", True, False),
        ("f<<<n, blocks()>>>();", False, False),
        ("f<<<n, config.block>>>();", False, False),
        ("dim3 block; block.x = 64; block.y = rows; f<<<1, block>>>();", True, True),
        ("dim3 block; block.x = 48; block.y = 4; f<<<1, block>>>();", False, False),
        ("dim3 block(48); f<<<1, block>>>();", True, False),
        ("dim3 block(64, 4); change(&block); f<<<1, block>>>();", False, False),
        ("auto block = dim3(48, 4); f<<<1, block>>>();", False, False),
        ("auto block = shape(n); f<<<1, block>>>();", False, False),
        ("f<<<1, {48, 4}>>>();", False, False),
        ("cudaLaunchKernel((void*)f, dim3(1), dim3(48, 4), args, 0, 0);", False, False),
        ("cudaLaunchCooperativeKernel((void*)f, 1, 64, args, 0, 0);", True, True),
        ("cudaLaunchConfig_t c; c.blockDim = dim3(48, 4); cudaLaunchKernelEx(&c, f);", False, False),
        ("cudaLaunchConfig_t c; c.blockDim = 128; cudaLaunchKernelEx(&c, f);", True, True),
        ("cudaLaunchConfig_t c = make(); cudaLaunchKernelExC(&c, (void*)f, args);", False, False),
        ("auto g = f; g<<<1, dim3(48, 4)>>>();", False, False),
        ("f<<<1, 48>>>();", True, False),
        ("f<<<1, dim3(48, 4)>>>();", False, False),
        ("dim3 block{48, rows}; f<<<1, block>>>();", False, False),
        ("f<<<1, dim3(8, 32)>>>();", True, False),
        ("other<<<1, dim3(48, 4)>>>();", True, True),
    ],
)
def test_warps_of_blocks_as_the_file_launches_them(launch: str, of_block: bool, of_grid: bool) -> None:
    head = f"const int kThreads = 256;\nvoid host(int n) {{ {launch} }}\n__global__ void f() {{\n"
    head += "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    for text, same in (("threadIdx.x / 32 == 1", of_block), ("i / 32 == 1", of_grid)):
        file, where = condition(text, head)
        assert same_in_a_warp(file, file.functions[-1], *where) is same


def test_an_argument_of_a_device_function_may_differ() -> None:
    file, where = condition("n > 3", "__device__ void f(int n) {\n")
    (function,) = file.functions
    assert not same_in_a_warp(file, function, *where)


def test_statements_of_a_body() -> None:
    source = b"""void f(int a) {
  if (a) b(); else { c(); return; }
#pragma unroll
  for (int i = 0; i < 3; ++i) while (a) { d(); }
  do { e(); } while (a > 1);
  switch (a) { case 1: g(); break; default: h(); }
  auto l = [&] { if (a) b(); };
}
"""
    file = CudaFile("x.cu", source)
    (function,) = [one for one in file.functions if one.name.text == b"f"]
    body = statements(file, function)
    assert body is not None
    assert [one.keyword for one in body.parts] == [b"if", b"for", b"do", b"switch", b"auto"]
    branch, loop, _, _, _ = body.parts
    assert len(branch.parts) == 2
    assert branch.parts[1].leaves
    assert not branch.parts[0].leaves
    assert loop.parts[0].keyword == b"while"
