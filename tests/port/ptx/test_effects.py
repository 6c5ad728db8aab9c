"""Translations that touch memory or other lanes, run by fibers with 32 and with 64 lanes a wave."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipObject, NoToolchainError, compile_hip, find_toolchain
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.write import ported
from rocmend.port.records import Outcome
from rocmend.port.rules.cuda.cu13_inline_ptx import inline_ptx

HERE = Path(__file__).parent
SUPPORT = HERE.parents[2] / "src" / "rocmend" / "port" / "support"
SHIM = HERE.parent / "wave" / "shim" / "rocm"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

HEAD = b'#include <hip/hip_runtime.h>\n#include "ptx.h"\n'


def run(source: bytes, folder: Path, lanes: int = 64) -> list[int]:
    """Port a program, build it and return the whole numbers that it prints."""
    data = HEAD + source
    issues = inline_ptx.issues(CudaFile("effects.cu", data))
    assert issues
    assert [issue.message for issue in issues if issue.outcome is not Outcome.AUTO] == []
    file = folder / "effects.cpp"
    file.write_bytes(ported(data, issues))
    options = ["-std=c++17", "-O1", "-w", f"-DWAVE={lanes}", "-DUSE_ROCM", f"-I{SHIM}", f"-I{SUPPORT}"]
    subprocess.run(["g++", *options, str(file), "-o", str(folder / "effects")], check=True)
    output = subprocess.run([str(folder / "effects")], check=True, capture_output=True, text=True, timeout=60).stdout
    return [int(word) for word in output.split()]


MEMORY = rb"""
#define SHOW(x) std::printf("%lld\n", (long long)(x))
__device__ void loads(int* words, signed char* bytes, float* numbers) {
  unsigned u; int i; unsigned short h; float f; int v[4]; unsigned long long l;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.b32 %0, [%1];" : "=r"(u) : "l"(words + 1)); SHOW(u);
  asm volatile("ld.global.s8 %0, [%1+1];" : "=r"(i) : "l"(bytes)); SHOW(i);
  asm volatile("ld.global.u8 %0, [%1 + 1];" : "=h"(h) : "l"(bytes)); SHOW(h);
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(f) : "l"(numbers)); SHOW(f * 2);
  asm volatile("ld.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(words));
  SHOW(v[0] + 10 * v[1] + 100 * v[2] + 1000 * v[3]);
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(l) : "l"(words)); SHOW(l);
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(u) : "l"(words) : "memory"); SHOW(u);
  asm volatile("ld.acquire.sys.global.v2.b32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(words + 2));
  SHOW(v[0] * v[1]);
  asm volatile("st.global.cs.u8 [%0+2], %1;" :: "l"(bytes), "r"(0x1f7)); SHOW(bytes[2]);
  asm volatile("st.release.gpu.global.v2.f32 [%0], {%1, %2};" :: "l"(numbers), "f"(2.5f), "f"(4.0f));
  SHOW(numbers[0] * numbers[1]);
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.u32 [%1], %2; }" :: "r"(0), "l"(words), "r"(99));
  SHOW(words[0]);
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.u32 [%1], %2; }" :: "r"(1), "l"(words), "r"(99));
  SHOW(words[0]);
}
__device__ void atomics(unsigned* at, unsigned long long* wide, float* number) {
  unsigned u; unsigned long long l; float f;
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(at), "r"(5) : "memory"); SHOW(*at);
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(u) : "l"(at), "r"(7)); SHOW(u); SHOW(*at);
  asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;" : "=r"(u) : "l"(at), "r"(17), "r"(3));
  SHOW(u); SHOW(*at);
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(u) : "l"(at), "r"(17), "r"(4)); SHOW(u); SHOW(*at);
  asm volatile("atom.global.exch.b64 %0, [%1], %2;" : "=l"(l) : "l"(wide), "l"(1ull << 40)); SHOW(l); SHOW(*wide);
  asm volatile("atom.global.min.s32 %0, [%1], %2;" : "=r"(u) : "l"(at), "r"(-2)); SHOW(u); SHOW((int)*at);
  asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(u) : "l"(at), "r"(2)); SHOW((int)*at);
  asm volatile("atom.inc.u32 %0, [%1], %2;" : "=r"(u) : "l"(at), "r"(9)); SHOW(*at);
  asm volatile("atom.add.f32 %0, [%1], %2;" : "=f"(f) : "l"(number), "f"(1.5f)); SHOW(*number * 2);
}
__device__ void copies(const char* from, char* lds) {
  unsigned to = (unsigned)__cvta_generic_to_shared(lds);
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" :: "r"(to), "l"(from), "n"(16));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to + 16), "l"(from), "r"(6));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" :: "n"(0));
  int sum = 0; for (int i = 0; i < 32; ++i) sum += (i + 1) * lds[i]; SHOW(sum);
  unsigned word;
  asm volatile("ld.shared.b32 %0, [%1+4];" : "=r"(word) : "r"(to)); SHOW(word == *(const unsigned*)(from + 4));
  asm volatile("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(word) : "l"(lds));
  SHOW(word == to);
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" :: "r"(to), "r"(3), "r"(4));
  SHOW(((int*)lds)[0] * 10 + ((int*)lds)[1]);
}
int main() {
  int words[4] = {1, 2, 3, 4}; signed char bytes[4] = {1, -2, 3, 4}; float numbers[2] = {0.5f, 8.0f};
  simt::launch(1, {1, 1, 1}, [&] {
    loads(words, bytes, numbers);
    unsigned at = 5; unsigned long long wide = 77; float number = 3; atomics(&at, &wide, &number);
    char from[16]; for (int i = 0; i < 16; ++i) from[i] = i + 1; copies(from, low_memory());
  });
  fences = 0;
  asm volatile("membar.cta;"); asm volatile("membar.gl;" ::: "memory"); asm volatile("fence.acq_rel.sys;");
  SHOW(fences);
}
"""


def test_memory(tmp_path: Path) -> None:
    got = run(MEMORY, tmp_path)
    loads = [2, -2, 254, 1, 4321, 2 << 32 | 1, 1, 12, -9, 10, 1, 99]
    atomics = [10, 10, 17, 17, 3, 3, 3, 77, 1 << 40, 3, -2, -2, 0, 9]
    copied = sum((i + 1) * (i + 1) for i in range(16)) + sum((i + 17) * (i + 1) for i in range(6))
    assert got == [*loads, *atomics, copied, 1, 1, 34, 1 + 100 + 10000]


KERNEL = rb"""
__global__ void all(int* words, signed char* bytes, float* numbers, unsigned long long* wide) {
  __shared__ __attribute__((aligned(16))) char lds[64];
  loads(words, bytes, numbers);
  atomics((unsigned*)words, wide, numbers);
  copies((const char*)bytes, lds);
  asm volatile("membar.cta;");
  asm volatile("fence.acq_rel.gpu;");
  unsigned shared;
  asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(shared) : "l"(lds));
  asm volatile("nanosleep.u32 %0;" :: "r"(200));
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  words[0] = shared + now;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_memory_compiles_for_amd_gpus(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    show = b"#define SHOW(x) (*sink += (long long)(x))"
    device = MEMORY[: MEMORY.index(b"int main()")].replace(MEMORY.split(b"\n")[1], show)
    data = HEAD + b"__device__ long long* sink;\n" + device + KERNEL
    issues = inline_ptx.issues(CudaFile("effects.cu", data))
    assert all(issue.outcome is Outcome.AUTO for issue in issues)
    made = compile_hip(ported(data, issues), target, defines={"USE_ROCM": ""}, include_dirs=[SUPPORT])
    assert isinstance(made, HipObject), made


LANES = rb"""
__global__ void f(unsigned* out) {
  unsigned lane, below, seen, value = threadIdx.x * 3 + 1, moved, inside, sum;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(seen) : "r"(lane));
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(moved), "=r"(inside) : "r"(value));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(sum) : "r"(value), "r"(1));
  unsigned all;
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(all) : "r"(lane));
  unsigned t;
  asm("mov.u32 %0, %%tid.x;" : "=r"(t));
  asm volatile("bar.sync 0;");
  unsigned* row = out + threadIdx.x * 8;
  row[0] = lane; row[1] = below; row[2] = seen; row[3] = moved; row[4] = inside; row[5] = sum; row[6] = all; row[7] = t;
}
int main() {
  std::vector<unsigned> out(96 * 8);
  simt::launch(1, {96, 1, 1}, [&] { f(out.data()); });
  for (unsigned word : out) std::printf("%u\n", word);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [32, 64])
def test_lanes_keep_to_32(lanes: int, tmp_path: Path) -> None:
    got = run(LANES, tmp_path, lanes)
    for thread in range(96):
        lane = thread % 32
        value = 3 * thread + 1
        moved = value - 9 if lane >= 3 else value
        partner = 3 * (thread ^ 1) + 1
        row = [lane, (1 << lane) - 1, 0xFFFFFFFF & ~((1 << 21) - 1), moved, int(lane >= 3), partner, 496, thread]
        assert got[8 * thread : 8 * thread + 8] == row


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};", "m16n8k16 (f32, f16, f16, f32)"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%0];", "matrix fragments of shape m8n8"),
        ("cp.async.bulk.shared::cluster.global.mbarrier [%0], [%0];", "tensor memory accelerator"),
        ("bar.sync 1, 64;", "part of a block"),
        ("mov.u32 %0, %%smid;", "no counterpart"),
        ("addc.u32 %0, %0, %0;", "from another statement"),
        ("LOOP: add.u32 %0, %0, 1;", "labels"),
        ("add.rz.f32 %0, %0, %0;", "not in the table"),
        ("add.u64 %0, %0, %0;", "size differs"),
        ("ld.global.u32 %0, [%0];", "32 bits"),
        (".shared .b32 x;", "declares"),
        ("add.u32 %0, %9, 1;", "is not a register"),
        ("setp.lt.b32 p, %0, %0;", "not in the table"),
    ],
)
def test_what_is_for_a_person(text: str, said: str) -> None:
    data = f'__device__ void f(unsigned a) {{\n  asm volatile("{text}" : "+r"(a));\n}}\n'.encode()
    (issue,) = inline_ptx.issues(CudaFile("x.cu", data))
    assert issue.outcome is Outcome.MANUAL
    assert issue.remedy
    assert said in issue.message


def test_assembly_of_a_cpu_is_left_alone() -> None:
    data = b'static long ticks() {\n  long t;\n  asm volatile("rdtsc" : "=A"(t));\n  return t;\n}\n'
    assert inline_ptx.issues(CudaFile("x.cu", data)) == []


def test_macros_in_the_text() -> None:
    data = (
        b"#if NEW\n"
        b'#define HINT(n) ".L2::" #n "B"\n'
        b"#else\n"
        b"#define HINT(n)\n"
        b"#endif\n"
        b"__device__ void f(unsigned s, const void* g) {\n"
        b'  asm volatile("cp.async.cg.shared.global" HINT(128) " [%0], [%1], %2;" :: "r"(s), "l"(g), "n"(16));\n'
        b"}\n"
    )
    (issue,) = inline_ptx.issues(CudaFile("x.cu", data))
    assert issue.outcome is Outcome.AUTO
    assert b"copy_to_shared<(16)>" in issue.edits[0].text


DOTS = rb"""
int main() {
  asm volatile("membar.cta;");
  char4 a = {1, -2, 127, -128}, b = {5, 6, -128, -128};
  uchar4 c = {255, 2, 3, 4}, d = {255, 0, 1, 200};
  short2 e = {-300, 32767};
  std::printf("%d %u %d %d\n", hip_ptx::dp4a(a, b, 1), hip_ptx::dp4a(c, d, 7u), hip_ptx::dp2a_lo(e, a, 2), hip_ptx::dp2a_hi(e, a, 2));
  std::printf("%d\n", hip_ptx::dp4a(0x7f7f7f7f, int(0x80808080), 100));
}
"""  # noqa: E501  one call a line


def test_products_of_bytes(tmp_path: Path) -> None:
    assert run(DOTS, tmp_path) == [
        5 - 12 - 127 * 128 + 128 * 128 + 1,
        255 * 255 + 3 + 800 + 7,
        -300 - 2 * 32767 + 2,
        -300 * 127 - 128 * 32767 + 2,
        -4 * 127 * 128 + 100,
    ]
