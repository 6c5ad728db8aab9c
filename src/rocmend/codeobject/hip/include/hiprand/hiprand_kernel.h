// Random numbers in device code, where hipRAND is not installed: its generators Philox and XORWOW. Philox's bits are the
// published ones (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011); XORWOW is Marsaglia's, with
// subsequences that are not the library's, and so are its numbers.
#ifndef ROCMEND_HIPRAND_KERNEL_H
#define ROCMEND_HIPRAND_KERNEL_H

#warning rocmend stand-in: hiprand/hiprand_kernel.h

#include <hip/hip_runtime.h>
#include <hiprand/hiprand.h>

#ifndef QUALIFIERS
#define QUALIFIERS __forceinline__ __device__
#endif

namespace rocmend_random {
struct Xorwow {
  unsigned word[5];
  unsigned weyl;
};
}  // namespace rocmend_random

// Each is a type of its own, as the library's are: unlike with cuRAND, hiprandState is not hiprandStateXORWOW.
struct hiprandStatePhilox4_32_10 {
  unsigned counter[4];
  unsigned key[2];
  unsigned result[4];
  unsigned used;
};
struct hiprandStateXORWOW : rocmend_random::Xorwow {};
struct hiprandState : rocmend_random::Xorwow {};
using hiprandStatePhilox4_32_10_t = hiprandStatePhilox4_32_10;
using hiprandStateXORWOW_t = hiprandStateXORWOW;
using hiprandState_t = hiprandState;

namespace rocmend_random {
QUALIFIERS void block(const unsigned (&counter)[4], const unsigned (&key)[2], unsigned (&out)[4]) {
  unsigned a = counter[0], b = counter[1], c = counter[2], d = counter[3], k = key[0], l = key[1];
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
    const unsigned next_a = static_cast<unsigned>(q >> 32) ^ b ^ k, next_c = static_cast<unsigned>(p >> 32) ^ d ^ l;
    b = static_cast<unsigned>(q);
    d = static_cast<unsigned>(p);
    a = next_a;
    c = next_c;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}
// Add to 64 bits of a counter from this word on, with a carry into those above.
QUALIFIERS void add(unsigned (&counter)[4], int from, unsigned long long n) {
  for (int at = from; at < 4; ++at) {
    const unsigned long long sum = counter[at] + (n & 0xffffffffull);
    counter[at] = static_cast<unsigned>(sum);
    n = (n >> 32) + (sum >> 32);
  }
}
QUALIFIERS unsigned mixed(unsigned long long& x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  unsigned long long y = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  y = (y ^ (y >> 27)) * 0x94D049BB133111EBull;
  return static_cast<unsigned>((y ^ (y >> 31)) >> 32);
}
// In (0, 1].
QUALIFIERS float uniform(unsigned x) { return static_cast<float>(x) * 0x1p-32f + 0x1p-33f; }
QUALIFIERS double uniform(unsigned x, unsigned y) {
  return static_cast<double>((static_cast<unsigned long long>(x) << 21) ^ (y >> 11)) * 0x1p-53 + 0x1p-54;
}
QUALIFIERS float2 normal(unsigned x, unsigned y) {
  const float length = ::sqrtf(-2.0f * ::logf(uniform(x))), angle = 6.28318530717958648f * uniform(y);
  return float2{length * ::cosf(angle), length * ::sinf(angle)};
}
QUALIFIERS double2 normal(double x, double y) {
  const double length = ::sqrt(-2.0 * ::log(x)), angle = 6.28318530717958648 * y;
  return double2{length * ::cos(angle), length * ::sin(angle)};
}
}  // namespace rocmend_random

// Philox.
QUALIFIERS void skipahead(unsigned long long n, hiprandStatePhilox4_32_10_t* state) {
  n += state->used;
  rocmend_random::add(state->counter, 0, n / 4);
  state->used = static_cast<unsigned>(n % 4);
  rocmend_random::block(state->counter, state->key, state->result);
}
QUALIFIERS void skipahead_sequence(unsigned long long n, hiprandStatePhilox4_32_10_t* state) {
  rocmend_random::add(state->counter, 2, n);
  rocmend_random::block(state->counter, state->key, state->result);
}
QUALIFIERS void hiprand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             hiprandStatePhilox4_32_10_t* state) {
  *state = hiprandStatePhilox4_32_10_t{};
  state->key[0] = static_cast<unsigned>(seed);
  state->key[1] = static_cast<unsigned>(seed >> 32);
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}
QUALIFIERS unsigned hiprand(hiprandStatePhilox4_32_10_t* state) {
  // no index that the compiler does not know: the state stays in registers
  const unsigned n = state->used;
  const unsigned x = n == 0 ? state->result[0] : n == 1 ? state->result[1] : n == 2 ? state->result[2] : state->result[3];
  if (++state->used == 4) {
    state->used = 0;
    rocmend_random::add(state->counter, 0, 1);
    rocmend_random::block(state->counter, state->key, state->result);
  }
  return x;
}
QUALIFIERS uint4 hiprand4(hiprandStatePhilox4_32_10_t* state) {
  unsigned x[4];
  for (unsigned& one : x) one = hiprand(state);
  return uint4{x[0], x[1], x[2], x[3]};
}
QUALIFIERS float4 hiprand_uniform4(hiprandStatePhilox4_32_10_t* state) {
  const uint4 x = hiprand4(state);
  return float4{rocmend_random::uniform(x.x), rocmend_random::uniform(x.y), rocmend_random::uniform(x.z),
                rocmend_random::uniform(x.w)};
}
QUALIFIERS float4 hiprand_normal4(hiprandStatePhilox4_32_10_t* state) {
  const uint4 x = hiprand4(state);
  const float2 a = rocmend_random::normal(x.x, x.y), b = rocmend_random::normal(x.z, x.w);
  return float4{a.x, a.y, b.x, b.y};
}
QUALIFIERS double2 hiprand_uniform2_double(hiprandStatePhilox4_32_10_t* state) {
  const uint4 x = hiprand4(state);
  return double2{rocmend_random::uniform(x.x, x.y), rocmend_random::uniform(x.z, x.w)};
}

// XORWOW.
QUALIFIERS unsigned hiprand(rocmend_random::Xorwow* state) {
  unsigned x = state->word[0] ^ (state->word[0] >> 2);
  for (int at = 0; at < 4; ++at) state->word[at] = state->word[at + 1];
  state->word[4] = (state->word[4] ^ (state->word[4] << 4)) ^ (x ^ (x << 1));
  return (state->weyl += 362437u) + state->word[4];
}
QUALIFIERS void skipahead(unsigned long long n, rocmend_random::Xorwow* state) {
  while (n-- > 0) hiprand(state);
}
QUALIFIERS void hiprand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             rocmend_random::Xorwow* state) {
  unsigned long long x = seed ^ (subsequence * 0xD1342543DE82EF95ull);
  for (unsigned& one : state->word) one = rocmend_random::mixed(x);
  state->weyl = rocmend_random::mixed(x);
  skipahead(offset, state);
}

// Of any generator.
template <typename State>
QUALIFIERS float hiprand_uniform(State* state) {
  return rocmend_random::uniform(hiprand(state));
}
template <typename State>
QUALIFIERS double hiprand_uniform_double(State* state) {
  const unsigned x = hiprand(state), y = hiprand(state);
  return rocmend_random::uniform(x, y);
}
template <typename State>
QUALIFIERS float2 hiprand_normal2(State* state) {
  const unsigned x = hiprand(state), y = hiprand(state);
  return rocmend_random::normal(x, y);
}
template <typename State>
QUALIFIERS double2 hiprand_normal2_double(State* state) {
  const double x = hiprand_uniform_double(state), y = hiprand_uniform_double(state);
  return rocmend_random::normal(x, y);
}
template <typename State>
QUALIFIERS float hiprand_normal(State* state) {
  return hiprand_normal2(state).x;
}
template <typename State>
QUALIFIERS double hiprand_normal_double(State* state) {
  return hiprand_normal2_double(state).x;
}
template <typename State>
QUALIFIERS float hiprand_log_normal(State* state, float mean, float deviation) {
  return ::expf(mean + deviation * hiprand_normal(state));
}

#endif
