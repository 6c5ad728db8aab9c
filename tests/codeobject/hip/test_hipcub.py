"""rocmend's own hipCUB: what its primitives compute, on a simulated wavefront of 32 and of 64 lanes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipFailure, HipObject, Toolchain, compile_hip
from rocmend.codeobject.hip.headers import STAND_INS

SIMULATOR = Path(__file__).parents[2] / "port/wave/shim/rocm"

HEAD = """
#include <algorithm>
#include <hip/hip_runtime.h>
using hipError_t = int;
inline int moved(int value, int at, int width) {
  const simt::View& view = simt::meet("shuffle", simt::bits(value));
  const int own = static_cast<int>(simt::lane());
  const bool inside = at >= 0 && at / width == own / width && (view.active >> at & 1u);
  return inside ? simt::value_of<int>(view.value[at]) : value;
}
inline int __shfl_down(int value, int n, int width = WAVE) { return moved(value, simt::lane() + n, width); }
inline int __shfl_up(int value, int n, int width = WAVE) {
  const int own = static_cast<int>(simt::lane());
  return moved(value, own % width < n ? -1 : own - n, width);
}
#include <hipcub/hipcub.hpp>

// x -> a x + b: composition is associative and not commutative
struct Affine {
  long long a, b;
  bool operator==(const Affine& o) const { return a == o.a && b == o.b; }
};
struct Compose {
  Affine operator()(Affine x, Affine y) const { return {x.a * y.a % 1009, (x.b * y.a + y.b) % 1009}; }
};
Affine given(int n) { return {n * 7 % 11 + 1, n * 13 % 17}; }
void check(bool holds, const char* what) {
  if (!holds) {
    std::printf("%s: wrong\\n", what);
    std::exit(1);
  }
}

template <int Threads>
void block() {
  using Reduce = hipcub::BlockReduce<Affine, Threads>;
  using Scan = hipcub::BlockScan<Affine, Threads>;
  static typename Reduce::TempStorage reduce;
  static typename Scan::TempStorage scan;
  static std::vector<Affine> sums(Threads + 1);
  sums[0] = {1, 0};
  for (int n = 0; n < Threads; ++n) sums[n + 1] = Compose()(sums[n], given(n));
  for (int valid : {1, 5, 32, 33, Threads})
    if (valid <= Threads)
      simt::launch(1, {Threads, 1, 1}, [&] {
        const Affine all = Reduce(reduce).Reduce(given(threadIdx.x), Compose(), valid);
        if (threadIdx.x == 0) check(all == sums[valid], "BlockReduce");
      });
  simt::launch(1, {Threads, 1, 1}, [&] {
    const int n = threadIdx.x;
    Affine out, total;
    Scan(scan).InclusiveScan(given(n), out, Compose(), total);
    check(out == sums[n + 1], "BlockScan inclusive");
    check(total == sums[Threads], "BlockScan total");
    __syncthreads();
    Scan(scan).ExclusiveScan(given(n), out, Affine{1, 0}, Compose());
    check(out == sums[n], "BlockScan exclusive");
    __syncthreads();
    auto prefix = [](Affine) { return Affine{3, 4}; };
    Scan(scan).ExclusiveScan(given(n), out, Compose(), prefix);
    check(out == (n == 0 ? Affine{3, 4} : Compose()(Affine{3, 4}, sums[n])), "BlockScan after a prefix");
    __syncthreads();
    Scan(scan).InclusiveScan(given(n), out, Compose(), prefix);
    check(out == Compose()(Affine{3, 4}, sums[n + 1]), "BlockScan inclusive after a prefix");
  });
  using Ints = hipcub::BlockScan<int, Threads>;
  static typename Ints::TempStorage ints;
  simt::launch(1, {Threads, 1, 1}, [&] {
    const int n = threadIdx.x;
    int values[3] = {3 * n, 3 * n + 1, 3 * n + 2}, out[3], total;
    Ints(ints).ExclusiveSum(values, out, total);
    for (int at = 0; at < 3; ++at)
      check(out[at] == (3 * n + at) * (3 * n + at - 1) / 2, "BlockScan of items, exclusive");
    check(total == 3 * Threads * (3 * Threads - 1) / 2, "BlockScan of items, total");
    __syncthreads();
    Ints(ints).InclusiveSum(values, values, total);
    for (int at = 0; at < 3; ++at)
      check(values[at] == (3 * n + at) * (3 * n + at + 1) / 2, "BlockScan of items, inclusive in place");
    check(total == 3 * Threads * (3 * Threads - 1) / 2, "BlockScan of items, inclusive, total");
  });
  simt::launch(1, {Threads, 1, 1}, [&] {
    const int n = threadIdx.x;
    Affine values[2] = {given(n), {2, 1}}, out[2];
    auto prefix = [](Affine) { return Affine{3, 4}; };
    static typename Scan::TempStorage one, other;
    Scan(one).InclusiveScan(values, out, Compose(), prefix);
    const Affine last = out[1];
    Scan(other).ExclusiveScan(values, out, Compose(), prefix);
    check(last == Compose()(out[1], values[1]) && out[1] == Compose()(out[0], values[0]), "BlockScan after a prefix");
    if (n == 0) check(out[0] == Affine{3, 4}, "BlockScan after a prefix, first");
  });
}

template <int Threads, int Items, hipcub::BlockLoadAlgorithm In, hipcub::BlockStoreAlgorithm Out>
void moved() {
  using Load = hipcub::BlockLoad<int, Threads, Items, In>;
  using Store = hipcub::BlockStore<int, Threads, Items, Out>;
  static typename Load::TempStorage load;
  static typename Store::TempStorage store;
  static std::vector<int> from(Threads * Items), to(Threads * Items);
  for (int valid : {Threads * Items, Threads * Items / 2 + 1, 1}) {
    for (int n = 0; n < Threads * Items; ++n) from[n] = n, to[n] = -1;
    simt::launch(1, {Threads, 1, 1}, [&] {
      int values[Items];
      Load(load).Load(from.data(), values, valid, -2);
      for (int at = 0; at < Items; ++at) {
        const int own = In == hipcub::BLOCK_LOAD_STRIPED ? threadIdx.x + at * Threads : threadIdx.x * Items + at;
        check(values[at] == (own < valid ? own : -2), "BlockLoad");
      }
      Store(store).Store(to.data(), values, valid);
    });
    for (int n = 0; n < Threads * Items; ++n) check(to[n] == (n < valid ? n : -1), "BlockStore");
  }
}

template <typename Key, int Threads, int Items>
void sorted(std::vector<Key> from, int begin, int end) {
  using Sort = hipcub::BlockRadixSort<Key, Threads, Items, int>;
  using U = typename hipcub::rocmend::Bits<sizeof(Key)>::type;
  static typename Sort::TempStorage storage;
  static std::vector<std::pair<Key, int>> made(Threads * Items);
  for (bool down : {false, true}) {
    simt::launch(1, {Threads, 1, 1}, [&] {
      Key keys[Items];
      int values[Items];
      for (int at = 0; at < Items; ++at) {
        values[at] = threadIdx.x * Items + at;
        keys[at] = from[values[at]];
      }
      if (down)
        Sort(storage).SortDescendingBlockedToStriped(keys, values, begin, end);
      else
        Sort(storage).Sort(keys, values, begin, end);
      for (int at = 0; at < Items; ++at)
        made[down ? at * Threads + threadIdx.x : threadIdx.x * Items + at] = {keys[at], values[at]};
    });
    std::vector<std::pair<Key, int>> wanted(Threads * Items);
    for (int n = 0; n < Threads * Items; ++n) wanted[n] = {from[n], n};
    const bool whole = begin == 0 && end == static_cast<int>(sizeof(Key)) * 8;
    const U mask = (U(1) << (end - begin)) - 1;
    const auto part = [&](Key key) { return static_cast<U>(static_cast<U>(key) >> begin) & mask; };
    std::stable_sort(wanted.begin(), wanted.end(), [&](const auto& a, const auto& b) {
      const auto &x = down ? b : a, &y = down ? a : b;
      return whole ? x.first < y.first : part(x.first) < part(y.first);
    });
    check(made == wanted, "BlockRadixSort");
  }
}

template <int Threads, int Items>
void exchanged() {
  using Exchange = hipcub::BlockExchange<int, Threads, Items>;
  static typename Exchange::TempStorage one, two, three;
  simt::launch(1, {Threads, 1, 1}, [&] {
    const int n = threadIdx.x;
    int values[Items], ranks[Items], out[Items];
    for (int at = 0; at < Items; ++at) values[at] = n * Items + at;
    Exchange(one).BlockedToStriped(values, out);
    for (int at = 0; at < Items; ++at) check(out[at] == at * Threads + n, "BlockExchange to striped");
    Exchange(two).StripedToBlocked(out);
    for (int at = 0; at < Items; ++at) check(out[at] == n * Items + at, "BlockExchange to blocked");
    for (int at = 0; at < Items; ++at) ranks[at] = Threads * Items - 1 - values[at];
    Exchange(three).ScatterToBlocked(values, ranks);
    for (int at = 0; at < Items; ++at) check(values[at] == ranks[at], "BlockExchange scattered");
  });
}

template <int Threads>
void warp() {
  simt::launch(1, {128, 1, 1}, [&] {
    const int n = threadIdx.x, own = n % WAVE, first = n - own % Threads;
    const bool whole = own / Threads < WAVE / Threads;  // the rest of a wavefront is no logical warp
    typename hipcub::WarpReduce<double, Threads>::TempStorage reduce;
    typename hipcub::WarpScan<int, Threads>::TempStorage scan;
    const double sum = hipcub::WarpReduce<double, Threads>(reduce).Sum(n + 0.5);
    if (n == first && whole) check(sum == Threads * (first + (Threads - 1) / 2.0 + 0.5), "WarpReduce");
    const double least = hipcub::WarpReduce<double, Threads>(reduce).Reduce(-n, hipcub::Min(), Threads - 1);
    if (n == first && whole) check(least == -(first + Threads - 2), "WarpReduce of some");
    int out, total;
    hipcub::WarpScan<int, Threads>(scan).ExclusiveSum(1, out, total);
    check(!whole || (out == n - first && total == Threads), "WarpScan");
  });
}

int main() {
  block<32>();
  block<64>();
  block<100>();
  block<256>();
  moved<64, 4, hipcub::BLOCK_LOAD_WARP_TRANSPOSE, hipcub::BLOCK_STORE_WARP_TRANSPOSE>();
  moved<100, 3, hipcub::BLOCK_LOAD_TRANSPOSE, hipcub::BLOCK_STORE_TRANSPOSE>();
  moved<32, 8, hipcub::BLOCK_LOAD_VECTORIZE, hipcub::BLOCK_STORE_DIRECT>();
  moved<32, 8, hipcub::BLOCK_LOAD_STRIPED, hipcub::BLOCK_STORE_STRIPED>();
  std::vector<int> ints(64 * 3);
  std::vector<float> floats(40 * 2);
  std::vector<unsigned char> bytes(128);
  unsigned x = 1;
  for (int& one : ints) one = static_cast<int>((x = x * 1664525u + 1013904223u) >> 8) % 50 - 25;
  for (float& one : floats) one = (static_cast<int>((x = x * 1664525u + 1013904223u) >> 8) % 40 - 20) * 0.25f;
  for (unsigned char& one : bytes) one = (x = x * 1664525u + 1013904223u) >> 24;
  floats[7] = -0.0f;
  sorted<int, 64, 3>(ints, 0, 32);
  sorted<float, 40, 2>(floats, 0, 32);
  sorted<unsigned char, 128, 1>(bytes, 2, 6);
  exchanged<64, 4>();
  exchanged<100, 3>();
  warp<8>();
  warp<12>();
  warp<24>();
  warp<32>();
  warp<HIPCUB_DEVICE_WARP_THREADS>();
  std::printf("all");
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("lanes", [32, 64])
def test_primitives_of_a_warp_and_a_block_compute_what_they_should(lanes: int, tmp_path: Path) -> None:
    source, program = tmp_path / "a.cpp", tmp_path / "a"
    source.write_text(HEAD)
    wide = ["-D__GFX9__"] if lanes == 64 else []
    folders = [f"-I{SIMULATOR}", "-idirafter", str(STAND_INS)]
    command = ["g++", "-std=c++17", "-O0", "-w", f"-DWAVE={lanes}", *wide, *folders, str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "all", done.stdout + done.stderr


KERNEL = b"""#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hipcub/hipcub.hpp>
template <typename T> __global__ void k(T* x, int n) {
  using R = hipcub::BlockReduce<T, 256>;
  using S = hipcub::BlockScan<int, 256>;
  using L = hipcub::BlockLoad<T, 256, 4, hipcub::BLOCK_LOAD_WARP_TRANSPOSE>;
  __shared__ union { typename R::TempStorage r; typename S::TempStorage s; typename L::TempStorage l;
    typename hipcub::BlockRadixSort<T, 256, 4>::TempStorage sort;
    typename hipcub::BlockExchange<T, 256, 4>::TempStorage exchange; } storage;
  T values[4];
  L(storage.l).Load(x, values, n, T(0));
  int before, total;
  S(storage.s).ExclusiveSum(n, before, total);
  __syncthreads();
  const T sum = R(storage.r).Reduce(values, hipcub::Max());
  __syncthreads();
  hipcub::BlockRadixSort<T, 256, 4>(storage.sort).SortDescending(values);
  __syncthreads();
  hipcub::BlockExchange<T, 256, 4>(storage.exchange).BlockedToWarpStriped(values);
  if (threadIdx.x == 0) x[before + total] = sum;
  x[threadIdx.x] = values[3];
}
template __global__ void k<float>(float*, int);
template __global__ void k<double>(double*, int);
template __global__ void k<__half>(__half*, int);
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1151", "gfx942"])
def test_kernels_that_use_them_compile(target: str, tools: Toolchain) -> None:
    made = compile_hip(KERNEL, target, toolchain=tools)
    assert isinstance(made, HipObject), made
    assert "hipcub/hipcub.hpp" in made.stand_ins
    assert len(made.kernels) == 3


TIMESLICED = b"""#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
__global__ void k(const float* from, float* to) {
  using Load = hipcub::BlockLoad<float, 1024, 17, hipcub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED>;
  __shared__ typename Load::TempStorage storage;
  float values[17];
  Load(storage).Load(from, values);
  to[threadIdx.x] = values[16];
}
"""


def test_lds_that_a_block_does_not_have_is_an_error(tools: Toolchain) -> None:
    """CUB needs LDS for one warp at a time here, hipCUB for all of them: 68 KiB."""
    made = compile_hip(TIMESLICED, "gfx942", toolchain=tools)
    assert isinstance(made, HipFailure), made
    assert "69632" in made.message


WARP = b"""#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
__global__ void k(float* x) {
  using Warp = hipcub::%s<float, %d>;
  __shared__ typename Warp::TempStorage storage;
  float value = x[threadIdx.x];
  %s
  x[threadIdx.x] = value;
}
"""


@pytest.mark.parametrize(
    ("name", "call"),
    [("WarpReduce", b"Warp(storage).Sum(value);"), ("WarpScan", b"Warp(storage).InclusiveSum(value, value);")],
)
def test_a_logical_warp_is_no_wider_than_the_wavefront(name: str, call: bytes, tools: Toolchain) -> None:
    """The library refuses it, traps or computes nothing, by its version."""
    narrow = compile_hip(WARP % (name.encode(), 64, call), "gfx1100", toolchain=tools)
    assert isinstance(narrow, HipFailure), narrow
    assert "at most as many threads as the wavefront" in narrow.message
    assert isinstance(compile_hip(WARP % (name.encode(), 64, call), "gfx942", toolchain=tools), HipObject)


def test_a_logical_warp_of_another_size_takes_lds(tools: Toolchain) -> None:
    made = compile_hip(
        WARP % (b"WarpScan", 24, b"Warp(storage).InclusiveSum(value, value);"), "gfx1100", toolchain=tools
    )
    assert isinstance(made, HipObject), made
    assert made.kernels[0].lds_bytes == 24 * 4
