// Threads and blocks that wait for each other.
//// lock_by_cas
__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {  //! CU31 manual
  }
}
//// lock_by_exchange
__device__ void lock(int* mutex) {
  while (atomicExch(mutex, 1) == 1)  //! CU31 manual
    ;
}
//// lock_by_goto
__device__ void lock(int* mutex) {
again:
  if (atomicCAS(mutex, 0, 1) != 0) goto again;  //! CU31 manual
}
//// lock_by_goto_and_sleep
__device__ void lock(int* mutex) {
again:
  if (atomicExch(mutex, 1) != 0) {  //! CU31 manual
    __nanosleep(32);  //! CU17
    goto again;
  }
}
//// lock_by_do
__device__ void lock(unsigned* mutex) {
  unsigned old;
  do {  //! CU31 manual
    old = atomicCAS(mutex, 0u, 1u);
  } while (old != 0);
}
//// lock_by_endless_loop
__device__ void lock(int* mutex) {
  while (true) {  //! CU31 manual
    if (atomicCAS(mutex, 0, 1) == 0) break;
  }
}
//// lock_inside_the_loop
__device__ void add(int* mutex, int* sum) {
  bool done = false;
  while (!done) {
    if (atomicCAS(mutex, 0, 1) == 0) {
      *sum += 1;
      __threadfence();
      atomicExch(mutex, 0);
      done = true;
    }
  }
}
//// lock_of_a_warp_leader
__global__ void k(int* mutex, int* sum) {
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(mutex, 0, 1) != 0) {  //! CU31 manual
    }
    *sum += 1;
    atomicExch(mutex, 0);
  }
}
//// flag_in_memory
__global__ void k(volatile int* flags, int* out) {
  while (flags[blockIdx.x] == 0) {  //! CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// flag_of_another_block
__global__ void k(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    while (flags[blockIdx.x - 1] == 0) {  //! CU31 manual
    }
  }
  __syncthreads();
  out[threadIdx.x] = 1;
}
//// flag_with_resident_blocks
__global__ void k(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    while (flags[blockIdx.x - 1] == 0) {  //! CU31 note
    }
  }
  __syncthreads();
  out[threadIdx.x] = 1;
}
void run(void** arguments) { cudaLaunchCooperativeKernel((void*)k, 8, 64, arguments, 0, 0); }
//// flag_of_the_own_block
__global__ void k(int* out) {
  __shared__ volatile int ready;
  if (threadIdx.x == 0) {
    while (ready == 0) {  //! CU31 manual
    }
  } else {
    ready = 1;
  }
  out[threadIdx.x] = ready;
}
//// flag_by_ptx
__device__ void wait(unsigned* flag) {
  unsigned seen;
  do {  //! CU31 manual
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag));  //! CU13
  } while (seen == 0);
}
//// flag_by_a_load
__global__ void k(const int* flag, int* out) {
  while (__ldcg(flag) == 0) {  //! CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// grid_barrier
__device__ unsigned arrived;
__global__ void k(int* out) {
  out[blockIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < gridDim.x) {  //! CU31 manual
    }
  }
  __syncthreads();
}
//// last_block
__device__ unsigned arrived;
__global__ void k(const int* in, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) out[threadIdx.x] = in[threadIdx.x];
}
//// work_queue
__global__ void k(int* next, int n, int* out) {
  __shared__ int item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(next, 1);
    __syncthreads();
    if (item >= n) break;
    out[item * blockDim.x + threadIdx.x] = item;
    __syncthreads();
  }
}
//// host_polls
#include <thread>
void wait(volatile int* flag) {
  while (*flag == 0) std::this_thread::yield();
}
//// named_barrier
__global__ void k(int* out) {
  asm volatile("bar.sync 1, 64;");  //! CU13 manual
  out[threadIdx.x] = 1;
}
//// barrier_of_libcu
#include <cuda/barrier>  //! CU24 manual
__global__ void k(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;  //! CU24 manual, CU24 manual, CU34 manual
  out[threadIdx.x] = 1;
}
//// sleep
__global__ void k(int* out) {
  __nanosleep(100);  //! CU17
  out[threadIdx.x] = 1;
}
//// insertion_by_cas
__device__ int insert(unsigned* table, unsigned key, unsigned size) {
  unsigned at = key % size;
  while (true) {
    unsigned old = atomicCAS(&table[at], 0xffffffffu, key);
    if (old == 0xffffffffu || old == key) return at;
    at = (at + 1) % size;
  }
}
//// lock_with_a_counter
__device__ void lock(int* mutex) {
  for (int tries = 0;; ++tries) {  //! CU31 manual
    if (atomicCAS(mutex, 0, 1) == 0) break;
  }
}
//// lock_by_a_variable
__device__ void lock(int* mutex) {
  bool taken = false;
  while (!taken) {  //! CU31 manual
    taken = atomicCAS(mutex, 0, 1) == 0;
  }
}
//// lock_in_a_lambda
__global__ void k(int* mutex, int* sum) {
  auto lock = [&] {
    while (atomicExch(mutex, 1) != 0) {  //! CU31 manual
    }
  };
  lock();
  *sum += 1;
  atomicExch(mutex, 0);
}
//// lock_with_a_sleep
__device__ void lock(int* mutex) {
  while (true) {  //! CU31 manual
    if (!atomicExch(mutex, 1)) break;
    __nanosleep(20);  //! CU17
  }
}
//// ticket_lock
__device__ void lock(int* next, int* serving) {
  int mine = atomicAdd(next, 1);
  while (atomicAdd(serving, 0) != mine)  //! CU31 manual
    ;
}
//// flag_by_a_cast
__global__ void k(int* flag, int* out) {
  while (*(volatile int*)flag == 0)  //! CU31 manual
    ;
  out[threadIdx.x] = 1;
}
//// flag_by_a_builtin
__global__ void k(int* flag, int* out) {
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0)  //! CU31 manual
    ;
  out[threadIdx.x] = 1;
}
//// flag_by_a_device_variable
__device__ volatile int ready;
__global__ void k(int* out) {
  while (!ready) {  //! CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// flag_by_a_function
__device__ int seen(const volatile int* at) { return *at; }
__global__ void k(const int* flag, int* out) {
  while (seen(flag) == 0) {  //! CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// flag_with_work_between
__global__ void k(volatile int* flag, int* out) {
  int spins = 0;
  while (*flag == 0) {  //! CU31 manual
    ++spins;
  }
  out[threadIdx.x] = spins;
}
//// counted_loop
__global__ void k(const int* in, int* out) {
  int at = threadIdx.x, steps = 0;
  while (in[at] != 0) {
    at = in[at];
    ++steps;
  }
  out[threadIdx.x] = steps;
}
//// bounded_tries
__global__ void k(int* slots, int key) {
  for (int tries = 0; tries < 8; ++tries) {
    if (atomicCAS(&slots[(key + tries) & 255], -1, key) == -1) break;
  }
}
//// union_find
__device__ int root(int* parent, int v) {
  while (parent[v] != v) {
    parent[v] = parent[parent[v]];
    v = parent[v];
  }
  return v;
}
//// done_once
__global__ void k(int* out) {
  do {
    atomicAdd(out, 1);
  } while (false);
}
//// waits_for_a_shared_counter
__global__ void k(int* out) {
  __shared__ int arrived;
  if (threadIdx.x == 0) arrived = 0;
  __syncthreads();
  atomicAdd(&arrived, 1);
  while (atomicAdd(&arrived, 0) < blockDim.x) {  //! CU31 manual
  }
  out[threadIdx.x] = arrived;
}
//// waits_by_acquire
#include <cuda/atomic>  //! CU24 manual
__global__ void k(int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);  //! CU24 manual, CU24 manual
  while (ready.load(cuda::memory_order_acquire) == 0) {  //! CU24 manual, CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// chained_scan
struct Status {
  volatile int flag, value;
};
__global__ void k(Status* status, int* out) {
  __shared__ int before;
  if (threadIdx.x == 0) {
    int at = blockIdx.x - 1;
    while (at >= 0 && status[at].flag == 0) {  //! CU31 manual
    }
    before = at >= 0 ? status[at].value : 0;
    status[blockIdx.x].value = before + 1;
    __threadfence();
    status[blockIdx.x].flag = 1;
  }
  __syncthreads();
  out[blockIdx.x] = before;
}
//// lock_in_a_struct
struct Lock {
  int* mutex;
  __device__ void acquire() {
    while (atomicCAS(mutex, 0, 1) != 0) {  //! CU31 manual
    }
  }
  __device__ void release() { atomicExch(mutex, 0); }
};
//// uses_a_lock_of_another_file
#include "lock.h"
__global__ void k(Lock lock, int* sum) {
  while (!lock.try_acquire()) {  //! CU31 manual
  }
  *sum += 1;
  lock.release();
}
//// lock_per_row
__global__ void k(int* locks, float* rows, const int* index) {
  int row = index[threadIdx.x];
  bool leave = true;
  while (leave) {
    if (atomicExch(&locks[row], 1) == 0) {
      rows[row] += 1.0f;
      leave = false;
      atomicExch(&locks[row], 0);
    }
  }
}
//// lock_by_if_and_goto
__device__ void add(int* mutex, float* sum) {
retry:
  if (atomicCAS(mutex, 0, 1) == 0) {
    *sum += 1;
    __threadfence();
    atomicExch(mutex, 0);
  } else {
    goto retry;
  }
}
//// spins_until_a_value_moves
__global__ void k(int* at, int* out) {
  int seen = *at;
  while (atomicCAS(at, seen, seen + 1) != seen) seen = *at;
  out[threadIdx.x] = seen;
}
//// lock_released_after_the_loop
__device__ void add(int* mutex, int* sum) {
  bool leave = true;
  while (leave) {  //! CU31 manual
    if (atomicCAS(mutex, 0, 1) == 0) leave = false;
  }
  *sum += 1;
  atomicExch(mutex, 0);
}
//// lock_released_after_the_loop_by_break
__device__ void add(int* mutex, int* sum) {
  while (true) {  //! CU31 manual
    if (atomicExch(mutex, 1) == 0) {
      *sum += 1;
      break;
    }
  }
  atomicExch(mutex, 0);
}
//// lock_released_after_the_loop_by_a_variable
__device__ void add(int* locks, int row, int* sum) {
  bool done = false;
  do {  //! CU31 manual
    int old = atomicCAS(&locks[row], 0, 1);
    if (old == 0) {
      sum[row] += 1;
      done = true;
    }
  } while (!done);
  locks[row] = 0;
}
//// lock_released_in_the_loop_by_a_store
__device__ void add(volatile int* locks, int row, int* sum) {
  bool done = false;
  while (!done) {
    if (atomicCAS((int*)&locks[row], 0, 1) == 0) {
      sum[row] += 1;
      __threadfence();
      locks[row] = 0;
      done = true;
    }
  }
}
//// lock_released_in_the_loop_by_a_function
__device__ void unlock(int* mutex) { atomicExch(mutex, 0); }
__device__ void add(int* mutex, int* sum) {
  while (true) {
    if (atomicCAS(mutex, 0, 1) == 0) {
      *sum += 1;
      unlock(mutex);
      break;
    }
  }
}
//// slot_claimed_by_walking
__device__ int claim(int* slots, int at, int size) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&slots[at], 0, 1) == 0) done = true;
    else at = (at + 1) % size;
  }
  return at;
}
//// list_pushed_by_cas
__device__ void push(int* head, int* next, int me) {
  bool done = false;
  while (!done) {
    int seen = *head;
    next[me] = seen;
    if (atomicCAS(head, seen, me) == seen) done = true;
  }
}
//// tries_end
__device__ bool lock(int* mutex) {
  bool taken = false;
  for (int tries = 0; tries < 100 && !taken; ++tries) {
    if (atomicCAS(mutex, 0, 1) == 0) taken = true;
  }
  return taken;
}
//// lock_of_libcu
#include <cuda/atomic>  //! CU24 manual
__device__ void lock(cuda::atomic<int, cuda::thread_scope_device>& mutex) {  //! CU24 manual, CU24 manual
  while (mutex.exchange(1, cuda::memory_order_acquire) != 0) {  //! CU24 manual, CU31 manual
  }
}
//// lock_of_libcu_by_reference
#include <cuda/std/atomic>  //! CU24 manual
__device__ void lock(int* mutex) {
  cuda::std::atomic_ref<int> ref(*mutex);  //! CU24 manual
  int expected = 0;
  while (!ref.compare_exchange_weak(expected, 1)) {  //! CU31 manual
    expected = 0;
  }
}
//// sum_of_libcu
#include <cuda/std/atomic>  //! CU24 manual
__device__ void add(cuda::std::atomic<int>& sum) {  //! CU24 manual
  int seen = sum.load();
  while (!sum.compare_exchange_weak(seen, seen + 1)) {
  }
}
//// flag_of_libcu
#include <cuda/atomic>  //! CU24 manual
__device__ cuda::atomic<int, cuda::thread_scope_device> ready;  //! CU24 manual, CU24 manual
__global__ void k(int* out) {
  while (ready != 1) {  //! CU31 manual
  }
  out[threadIdx.x] = 1;
}
//// flag_of_libcu_that_waits
#include <cuda/atomic>  //! CU24 manual
__device__ cuda::atomic<int, cuda::thread_scope_device> ready;  //! CU24 manual, CU24 manual
__global__ void k(int* out) {
  ready.wait(0);  //! CU31 manual
  out[threadIdx.x] = 1;
}
//// semaphore_of_libcu
#include <cuda/semaphore>  //! CU24 manual
__device__ cuda::binary_semaphore<cuda::thread_scope_device> mutex(1);  //! CU24 manual, CU24 manual
__global__ void k(int* sum) {
  mutex.acquire();  //! CU31 manual
  *sum += 1;
  mutex.release();
}
//// semaphore_of_libcu_in_a_loop
#include <cuda/semaphore>  //! CU24 manual
__global__ void k(cuda::counting_semaphore<cuda::thread_scope_device>* free, int* sum) {  //! CU24 manual, CU24 manual
  while (!free->try_acquire()) {  //! CU31 manual
  }
  *sum += 1;
  free->release();
}
//// flag_with_a_clock
#include <cstdio>
__device__ int seen(const int* at) { return *(const volatile int*)at; }
__global__ void k(const int* flag, int* out) {
  long long start = clock64();
  while (true) {  //! CU31 manual
    int now = seen(flag);
    if (now == 1) break;
    if (clock64() - start > 1000000) {
      printf("timeout\n");
      __trap();
    }
  }
  out[threadIdx.x] = 1;
}
//// flag_with_a_clock_in_the_loop
#include <cstdio>
__global__ void k(volatile int* flag, int* out) {
  long long start = clock64();
  while (*flag == 0) {  //! CU31 manual
    if (clock64() - start > 1000000) {
      printf("block %d\n", blockIdx.x);
      out[0] = -1;
      return;
    }
  }
  out[threadIdx.x] = 1;
}
//// lock_with_a_clock
__device__ bool lock(int* mutex) {
  const long long start = clock64();
  do {  //! CU31 manual
    if (clock64() - start > 1000000) return false;
  } while (atomicCAS(mutex, 0, 1) != 0);
  return true;
}
//// delay_by_a_clock
__device__ void delay(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
}
//// delay_by_a_clock_and_break
__global__ void k(int* out) {
  long long start = clock64();
  for (;;) {
    if (clock64() - start > 1000) break;
    __nanosleep(100);  //! CU17
  }
  out[threadIdx.x] = 1;
}
//// grid_barrier_by_a_counter
__device__ int arrived = 0;
__device__ void everywhere(int goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (arrived != goal) {  //! CU31 manual
    }
  }
  __syncthreads();
}
//// grid_barrier_of_all_threads
__global__ void k(unsigned* arrived, unsigned threads) {
  atomicInc(arrived, threads);
  while (atomicAdd(arrived, 0u) % threads != 0) {  //! CU31 manual
  }
}
//// grid_barrier_by_a_generation
__device__ unsigned count, generation;
__device__ void everywhere() {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned own = atomicAdd(&generation, 0);
    if (atomicAdd(&count, 1) == gridDim.x - 1) {
      count = 0;
      atomicAdd(&generation, 1);
    } else {
      while (atomicAdd(&generation, 0) == own) {  //! CU31 manual
      }
    }
  }
  __syncthreads();
}
//// turn_of_a_block
__global__ void k(int* turn, int* out) {
  if (threadIdx.x == 0) {
    int spins = 0;
    while (atomicCAS(turn, blockIdx.x, blockIdx.x) != blockIdx.x) {  //! CU31 manual
      __nanosleep(40);  //! CU17
      ++spins;
    }
    *out += 1;
    atomicAdd(turn, 1);
  }
}
//// global_counter_that_is_worked_on
__device__ int left;
__global__ void k(int* out) {
  while (left > 0) {
    int mine = atomicSub(&left, 1);
    if (mine > 0) out[mine] = 1;
  }
}
