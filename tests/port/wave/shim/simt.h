// A block of threads on a CPU: each thread is a fiber, and the lanes of a wave meet at operations across lanes.
//
// Lanes of a wave that stand at the same operation on the same path of branches take part in it together, inner branches
// first, as hardware with an execution mask runs them. `Branch` marks a branch that lanes of a wave may take apart.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

#ifndef WAVE
#error "WAVE is the number of lanes of a wave"
#endif

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

struct View {
  uint64_t active = 0;
  uint64_t value[64] = {};
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  unsigned thread = 0;
  dim3 index;
  std::vector<int> path;
  std::string waits_for;
  uint64_t value = 0;
  View view;
  bool ended = false;
};

inline ucontext_t scheduler;
inline Fiber* current = nullptr;
inline std::function<void()> body;

inline void enter() {
  body();
  current->ended = true;
}

inline unsigned lane() { return current->thread % WAVE; }

inline const View& meet(const char* operation, uint64_t value) {
  current->waits_for = operation;
  current->value = value;
  swapcontext(&current->context, &scheduler);
  return current->view;
}

template <typename T>
uint64_t bits(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <typename T>
T value_of(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

inline void resume(Fiber& fiber) {
  current = &fiber;
  threadIdx = fiber.index;
  fiber.waits_for.clear();
  swapcontext(&scheduler, &fiber.context);
}

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "simt: %s\n", why);
  std::exit(3);
}

// Let the lanes of one wave go as far as the next barrier of the block.
inline void run_wave(std::vector<Fiber*>& wave) {
  for (;;) {
    std::vector<Fiber*> waiting;
    for (Fiber* fiber : wave)
      if (!fiber->ended && fiber->waits_for != "barrier") waiting.push_back(fiber);
    if (waiting.empty()) return;
    const std::vector<int>* path = &waiting[0]->path;
    for (Fiber* fiber : waiting)
      if (fiber->path.size() > path->size() || (fiber->path.size() == path->size() && fiber->path < *path)) path = &fiber->path;
    std::vector<int> chosen = *path;
    std::vector<Fiber*> group;
    View view;
    for (Fiber* fiber : waiting) {
      if (fiber->path != chosen) continue;
      if (!group.empty() && group[0]->waits_for != fiber->waits_for) fail("lanes on one path stand at different operations");
      group.push_back(fiber);
      view.active |= uint64_t{1} << (fiber->thread % WAVE);
      view.value[fiber->thread % WAVE] = fiber->value;
    }
    for (Fiber* fiber : group) fiber->view = view;
    for (Fiber* fiber : group) resume(*fiber);
  }
}

inline void run_block(dim3 shape) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (unsigned z = 0; z < shape.z; ++z)
    for (unsigned y = 0; y < shape.y; ++y)
      for (unsigned x = 0; x < shape.x; ++x) {
        auto fiber = std::make_unique<Fiber>();
        fiber->thread = static_cast<unsigned>(fibers.size());
        fiber->index = {x, y, z};
        fiber->stack = std::make_unique<char[]>(65536);
        fiber->waits_for = "start";
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.get();
        fiber->context.uc_stack.ss_size = 65536;
        fiber->context.uc_link = &scheduler;
        makecontext(&fiber->context, enter, 0);
        fibers.push_back(std::move(fiber));
      }
  for (;;) {
    bool alive = false;
    for (size_t first = 0; first < fibers.size(); first += WAVE) {
      std::vector<Fiber*> wave;
      for (size_t i = first; i < fibers.size() && i < first + WAVE; ++i) wave.push_back(fibers[i].get());
      run_wave(wave);
    }
    for (auto& fiber : fibers)
      if (!fiber->ended) {
        alive = true;
        fiber->waits_for = "released";
      }
    if (!alive) return;
  }
}

template <typename Kernel>
void launch(unsigned blocks, dim3 shape, Kernel kernel) {
  body = kernel;
  blockDim = shape;
  gridDim = {blocks, 1, 1};
  for (unsigned i = 0; i < blocks; ++i) {
    blockIdx = {i, 0, 0};
    run_block(shape);
  }
}

struct Branch {
  explicit Branch(int id) { current->path.push_back(id); }
  ~Branch() { current->path.pop_back(); }
};

}  // namespace simt

// A branch that lanes of a wave may take apart: `if (…) DIVERGED(1) { … }`.
#define DIVERGED(ID) if (simt::Branch branch_{ID}; true)

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __shared__ static
#define __launch_bounds__(...)

inline void __syncthreads() { simt::meet("barrier", 0); }
template <typename T>
T atomicAdd(T* at, T value) {
  T old = *at;
  *at += value;
  return old;
}
