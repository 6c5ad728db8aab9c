"""The emulator as a person uses it: Triton kernels, HIP source, the command, a pytest plugin; and what it finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("rocm", reason="rocm-llvm-python is not installed")
pytest.importorskip("ziglang")

from rocmend.emulate import Check, compile_hip, launch
from rocmend.emulate.device import ALL_CHECKS, Order
from rocmend.emulate.faults import FaultKind

pytestmark = pytest.mark.slow

KERNELS = Path(__file__).with_name("triton_kernels.py")
REVERSED = """#include <hip/hip_runtime.h>
__global__ void reversed(const int* in, int* out) {
  __shared__ int held[64];
  held[threadIdx.x] = in[threadIdx.x];
  %s
  out[threadIdx.x] = held[63 - threadIdx.x];
}
"""
VOTES = """#include <hip/hip_runtime.h>
__global__ void votes(const int* in, int* out) {
  unsigned long long yes = __ballot(in[threadIdx.x] > 0);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = __popcll(yes);
}
"""


def test_a_barrier_that_32_lanes_need_and_64_do_not() -> None:
    """The bug that testing with CUDA's warps finds, and testing on CDNA alone does not."""
    given = np.arange(64, dtype=np.int32)
    for target, barrier, right in (
        ("gfx942", "", True), ("gfx1100", "", False), ("gfx1100", "__syncthreads();", True),
    ):  # fmt: skip
        out = np.zeros(64, np.int32)
        run = launch(
            compile_hip(REVERSED % barrier, target), grid=(1,), block=(64,), args=[given, out], faults="return"
        )
        assert (not run.faults) is right
        if right:
            assert np.array_equal(out, given[::-1])
        else:
            assert FaultKind.LDS_RACE in {one.kind for one in run.faults}


def test_a_vote_of_64_lanes_where_32_were_meant() -> None:
    given, counts = np.ones(64, np.int32), {}
    for target in ("gfx1100", "gfx942"):
        out = np.zeros(2, np.int32)
        launch(compile_hip(VOTES, target), grid=(1,), block=(64,), args=[given, out])
        counts[target] = out.tolist()
    assert counts == {"gfx1100": [32, 32], "gfx942": [64, 64]}


@pytest.mark.parametrize("order", [Order.FORWARD, Order.REVERSE, Order.SHUFFLED])
def test_the_order_of_waves_does_not_matter_to_a_right_kernel(order: int) -> None:
    given, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    launch(
        compile_hip(REVERSED % "__syncthreads();", "gfx1100"), grid=(1,), block=(64,), args=[given, out], order=order
    )
    assert np.array_equal(out, given[::-1])


def test_checks_can_be_switched_off() -> None:
    given, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    code = compile_hip(REVERSED % "", "gfx1100")
    rest = ALL_CHECKS & ~(Check.RACES | Check.STORES | Check.UNWRITTEN)
    assert not launch(code, grid=(1,), block=(64,), args=[given, out], checks=rest).faults


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "k.hsaco").write_bytes(compile_hip(REVERSED % "__syncthreads();", "gfx1100"))
    command = [str(Path(sys.executable).with_name("rocmend")), "emulate", "k.hsaco", "--arg", "i32[64]=arange", "--arg"]
    done = subprocess.run([*command, "i32[64]", "--trace", "--json"], cwd=tmp_path, capture_output=True, check=False)
    data = json.loads(done.stdout)["data"]
    assert (done.returncode, data["target"], data["faults"]) == (0, "gfx1100", [])
    assert data["arrays"]["1: i32[64]"] == [63, 62, 61, 60, 59, 58, 57, 56]
    done = subprocess.run([*command, "i32[64]", "--without", "stores"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0
    assert data["trace"][-1]["instruction"] == "global_store_b32 v0, v1, s[2:3]"


def test_triton_kernels_through_the_plugin() -> None:
    pytest.importorskip("triton")
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "rocmend.emulate.pytest_plugin", "-p", "no:cacheprovider"]
    targets = "gfx1151,gfx1201,gfx942,gfx950,gfx906"
    done = subprocess.run(
        [*command, "-o", "addopts=", "-W", "ignore::UserWarning", "--noconftest", "--amd-targets", targets, KERNELS],
        env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "10 passed" in done.stdout, done.stdout[-3000:]
