"""What the checks find, what they let pass, and what is refused: each a kernel in HIP."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("rocm", reason="rocm-llvm-python is not installed")
pytest.importorskip("ziglang")

from rocmend.core.errors import UsageError
from rocmend.emulate import UnmodelledError, compile_hip, launch
from rocmend.emulate.faults import FaultKind

pytestmark = pytest.mark.slow

HIP = "#include <hip/hip_runtime.h>\n"


def found(source: str, target: str, args: list[Any], grid: int = 1, block: int = 64, **more: Any) -> set[FaultKind]:
    run = launch(compile_hip(HIP + source, target), grid=grid, block=block, args=args, faults="return", **more)
    return {one.kind for one in run.faults}


def ints(count: int, value: int = 0) -> Any:
    return np.full(count, value, np.int32)


SUM = """__global__ void k(const float* x, float* out) {
  __shared__ float held[64];
  held[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int s = 32; s > 0; s >>= 1) { if (threadIdx.x < s) held[threadIdx.x] += held[threadIdx.x + s]; __syncthreads(); }
  if (threadIdx.x == 0) atomicAdd(out, held[0]);
}"""
FLAG = """__global__ void k(int* flag, int* data, int* out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 42;
    __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) {}
    out[0] = data[0];
  }
}"""


@pytest.mark.parametrize("target", ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
def test_atomics_are_no_races(target: str) -> None:
    """Where there is no such atomic, the loop around a compare and swap begins with a plain load."""
    out = np.zeros(1, np.float32)
    assert not found(SUM, target, [np.ones(192, np.float32), out], grid=3)
    assert out[0] == 192
    result = ints(1)
    assert not found(FLAG, target, [ints(1), ints(1), result], grid=2)
    assert result[0] == 42


def test_workgroups_that_meet_in_memory_are_a_race() -> None:
    source = "__global__ void k(int* a) { int i = blockIdx.x * 64 + threadIdx.x; a[i] = a[i] + a[i + 1]; }"
    assert found(source, "gfx1100", [ints(129, 1)], grid=2) == {FaultKind.GLOBAL_RACE}
    own = "__global__ void k(int* a) { int i = blockIdx.x * 64 + threadIdx.x; a[i] = a[i] + 1; }"
    assert not found(own, "gfx1100", [ints(129, 1)], grid=2)


@pytest.mark.parametrize(
    "expression", ["a[i] - b[i]", "a[i] ^ b[i]", "a[i] == 5", "a[i] == b[i]", "__int_as_float(a[i]) < 0.0f"]
)
def test_a_result_of_what_nothing_wrote_is_found(expression: str) -> None:
    source = f"__global__ void k(int* a, int* b, int* out) {{ int i = threadIdx.x; out[i] = {expression}; }}"
    args = [ints(64), ints(64), ints(64)]
    assert found(source, "gfx1100", args, unwritten={0, 1}) == {FaultKind.UNWRITTEN_STORE}
    assert not found(source, "gfx1100", args)


def test_an_accumulator_that_nothing_set_is_found() -> None:
    source = "__global__ void k(int* out) { atomicAdd(out, 1); }"
    assert found(source, "gfx942", [ints(1)], unwritten={0}) == {FaultKind.UNWRITTEN_STORE}
    shared = (
        """__global__ void k(int* out) { __shared__ int sum; atomicAdd(&sum, 1); __syncthreads(); out[0] = sum; }"""
    )
    assert FaultKind.UNWRITTEN_STORE in found(shared, "gfx942", [ints(1)])


def test_an_atomic_between_does_not_order_the_lds() -> None:
    source = """__global__ void k(int* n, int* out) {
      __shared__ int held[64];
      held[threadIdx.x] = threadIdx.x;
      if (threadIdx.x == 0) atomicAdd(n, 1);
      out[threadIdx.x] = held[63 - threadIdx.x];
    }"""
    assert FaultKind.LDS_RACE in found(source, "gfx1100", [ints(1), ints(64)], grid=2)


def test_loads_before_a_pointer() -> None:
    source = "__global__ void k(const int* p, int* out) { out[0] = p[-2]; }"
    held, out = np.arange(8, dtype=np.int32), ints(1)
    found(source, "gfx1100", [held[4:], out], block=1)
    assert out[0] == 2


def test_addresses_that_the_loader_fills_in() -> None:
    source = """__device__ int one() { return 1; } __device__ int two() { return 2; }
    __device__ int (*volatile table[2])() = {one, two}; __device__ int v = 5; __device__ int* volatile p = &v;
    __global__ void k(int* out) { out[0] = table[1]() + *p; }"""
    out = ints(1)
    assert not found(source, "gfx942", [out], block=1)
    assert out[0] == 7


@pytest.mark.parametrize("target", ["gfx906", "gfx942", "gfx1030", "gfx1100"])
def test_functions_that_call_themselves(target: str) -> None:
    source = """__attribute__((noinline)) __device__ int f(int n) { if (n < 1) return 0; volatile int a = n; return f(n - 1) + a; }
    __global__ void k(int* out) { out[threadIdx.x] = f(3 + threadIdx.x % 2); }"""
    out = ints(64)
    assert not found(source, target, [out])
    assert out[:2].tolist() == [6, 10]


def test_an_endless_kernel_ends_at_its_limit_and_by_an_interruption() -> None:
    source = "__global__ void k(int* p) { volatile int* q = p; while (*q == 0) {} }"
    assert found(source, "gfx1100", [ints(1)], block=32, budget=3_000_000) == {FaultKind.BUDGET}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            found(source, "gfx1100", [ints(1)], block=32)
    finally:
        signal.signal(signal.SIGALRM, before)
    used = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - used < 0.25, "it goes on in the background"


def test_what_needs_the_host_is_refused() -> None:
    with pytest.raises(UnmodelledError, match="printing"):
        found('__global__ void k(int* p) { printf("%d\\n", p[0]); }', "gfx1100", [ints(1)])


def test_what_cannot_be_launched_is_said() -> None:
    code = compile_hip(HIP + "__global__ void k(int* p) { p[0] = 1; }", "gfx1100")
    with pytest.raises(UsageError, match="too many workgroups"):
        launch(code, grid=2**32, block=1, args=[ints(1)])
    with pytest.raises(UsageError, match="no order of waves"):
        launch(code, grid=1, block=1, args=[ints(1)], order=7)
    kept = ints(1)
    kept.flags.writeable = False
    (fault,) = launch(code, grid=1, block=1, args=[kept], faults="return").faults
    assert fault.kind is FaultKind.READ_ONLY


@pytest.mark.parametrize("copied", [True, False])
def test_rdna3_wants_the_rows_of_a_matrix_in_both_halves_of_a_wave(copied: bool) -> None:
    row = "threadIdx.x % 16" if copied else "threadIdx.x"
    source = f"""typedef _Float16 half16 __attribute__((ext_vector_type(16))); typedef float float8 __attribute__((ext_vector_type(8)));
    __global__ void k(float* out) {{
      half16 a, b; for (int i = 0; i < 16; ++i) {{ a[i] = (_Float16)(int)({row}); b[i] = (_Float16)1; }}
      float8 c = {{}};
      c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
      out[threadIdx.x] = c[0];
    }}"""
    out = np.zeros(32, np.float32)
    assert found(source, "gfx1100", [out], block=32) == (set() if copied else {FaultKind.HAZARD})
    assert not copied or out.tolist() == [0.0] * 16 + [16.0] * 16
