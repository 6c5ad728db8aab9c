// Kernels as projects write them that are right on wavefronts of 32 and of 64 lanes as they are: nothing is to be said.
//// softmax_rows
template <int Threads>
__global__ void softmax(const float* __restrict__ in, float* __restrict__ out, int columns) {
  __shared__ float shared[Threads];
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  float most = -INFINITY;
  for (int at = threadIdx.x; at < columns; at += Threads) most = fmaxf(most, row[at]);
  shared[threadIdx.x] = most;
  __syncthreads();
  for (int step = Threads / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  most = shared[0];
  __syncthreads();
  float sum = 0;
  for (int at = threadIdx.x; at < columns; at += Threads) sum += __expf(row[at] - most);
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int step = Threads / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  const float scale = 1.0f / shared[0];
  for (int at = threadIdx.x; at < columns; at += Threads) out[blockIdx.x * columns + at] = __expf(row[at] - most) * scale;
}
//// layer_norm
__global__ void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int n, float epsilon) {
  extern __shared__ float shared[];
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float v = in[blockIdx.x * n + i];
    sum += v;
    squares += v * v;
  }
  shared[threadIdx.x] = sum;
  shared[threadIdx.x + blockDim.x] = squares;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      shared[threadIdx.x] += shared[threadIdx.x + step];
      shared[threadIdx.x + blockDim.x] += shared[threadIdx.x + blockDim.x + step];
    }
    __syncthreads();
  }
  const float mean = shared[0] / n;
  const float scale = rsqrtf(shared[blockDim.x] / n - mean * mean + epsilon);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[blockIdx.x * n + i] = (in[blockIdx.x * n + i] - mean) * scale * gamma[i] + beta[i];
}
void run(const float* in, const float* gamma, const float* beta, float* out, int rows, int n) {
  layer_norm<<<rows, 256, 2 * 256 * sizeof(float)>>>(in, gamma, beta, out, n, 1e-5f);
}
//// scan_of_a_block
__global__ void scan(const int* in, int* out, int* sums, int n) {
  __shared__ int buffer[2][512];
  int from = 0, i = blockIdx.x * 512 + threadIdx.x;
  buffer[0][threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < 512; step *= 2) {
    int to = 1 - from;
    buffer[to][threadIdx.x] = buffer[from][threadIdx.x] + (threadIdx.x >= step ? buffer[from][threadIdx.x - step] : 0);
    from = to;
    __syncthreads();
  }
  if (i < n) out[i] = buffer[from][threadIdx.x];
  if (threadIdx.x == 511) sums[blockIdx.x] = buffer[from][511];
}
//// scan_of_blelloch
__global__ void scan(float* data, int n) {
  extern __shared__ float temp[];
  int thread = threadIdx.x, offset = 1;
  temp[2 * thread] = data[2 * thread];
  temp[2 * thread + 1] = data[2 * thread + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thread < d) {
      int a = offset * (2 * thread + 1) - 1, b = offset * (2 * thread + 2) - 1;
      temp[b] += temp[a];
    }
    offset *= 2;
  }
  if (thread == 0) temp[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thread < d) {
      int a = offset * (2 * thread + 1) - 1, b = offset * (2 * thread + 2) - 1;
      float t = temp[a];
      temp[a] = temp[b];
      temp[b] += t;
    }
  }
  __syncthreads();
  data[2 * thread] = temp[2 * thread];
  data[2 * thread + 1] = temp[2 * thread + 1];
}
//// histogram
__global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int at = threadIdx.x; at < 256; at += blockDim.x) bins[at] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int at = threadIdx.x; at < 256; at += blockDim.x) atomicAdd(&out[at], bins[at]);
}
//// gemm_tile
#define TILE 16
__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[TILE][TILE], right[TILE][TILE + 1];
  int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; at += TILE) {
    left[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : 0;
    right[threadIdx.y][threadIdx.x] = column < n && at + threadIdx.y < k ? b[(at + threadIdx.y) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
void run(const float* a, const float* b, float* c, int m, int n, int k) {
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  gemm<<<grid, block>>>(a, b, c, m, n, k);
}
//// gemm_of_registers
template <int BM, int BN, int BK>
__global__ void __launch_bounds__(256) gemm(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[BK][BM], right[BK][BN];
  float sums[8][8] = {};
  const int row = threadIdx.x / (BN / 8) * 8, column = threadIdx.x % (BN / 8) * 8;
  for (int at = 0; at < k; at += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += 256) left[i % BK][i / BK] = a[(blockIdx.y * BM + i / BK) * k + at + i % BK];
    for (int i = threadIdx.x; i < BK * BN; i += 256) right[i / BN][i % BN] = b[(at + i / BN) * n + blockIdx.x * BN + i % BN];
    __syncthreads();
    for (int i = 0; i < BK; ++i)
      for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 8; ++x) sums[y][x] += left[i][row + y] * right[i][column + x];
    __syncthreads();
  }
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) c[(blockIdx.y * BM + row + y) * n + blockIdx.x * BN + column + x] = sums[y][x];
}
void run(const float* a, const float* b, float* c, int n, int k) {
  gemm<128, 128, 8><<<dim3(n / 128, n / 128), 256>>>(a, b, c, n, k);
}
//// transpose
__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
void run(const float* in, float* out, int w, int h) { transpose<<<dim3(w / 32, h / 32), dim3(32, 8)>>>(in, out, w, h); }
//// bitonic_sort
__global__ void sort(unsigned* keys) {
  __shared__ unsigned s[1024];
  s[threadIdx.x] = keys[blockIdx.x * 1024 + threadIdx.x];
  for (unsigned size = 2; size <= 1024; size <<= 1) {
    for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      unsigned other = threadIdx.x ^ stride;
      if (other > threadIdx.x) {
        bool up = (threadIdx.x & size) == 0;
        unsigned a = s[threadIdx.x], b = s[other];
        if ((a > b) == up) {
          s[threadIdx.x] = b;
          s[other] = a;
        }
      }
    }
  }
  __syncthreads();
  keys[blockIdx.x * 1024 + threadIdx.x] = s[threadIdx.x];
}
//// bfs_level
__global__ void bfs(const int* rows, const int* columns, int* level, int depth, bool* more, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || level[v] != depth) return;
  for (int edge = rows[v]; edge < rows[v + 1]; ++edge) {
    int other = columns[edge];
    if (level[other] == -1) {
      level[other] = depth + 1;
      *more = true;
    }
  }
}
//// bfs_queue
__global__ void bfs(const int* rows, const int* columns, int* level, const int* queue, int count, int* next, int* size) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    int v = queue[i];
    for (int edge = rows[v]; edge < rows[v + 1]; ++edge) {
      int other = columns[edge];
      if (atomicCAS(&level[other], -1, level[v] + 1) == -1) next[atomicAdd(size, 1)] = other;
    }
  }
}
//// radix_count
__global__ void count(const unsigned* keys, unsigned* counts, int n, int shift) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&local[(keys[i] >> shift) & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}
//// radix_split
__global__ void split(const unsigned* in, unsigned* out, int bit) {
  __shared__ int zeros[256];
  unsigned key = in[threadIdx.x];
  int zero = !((key >> bit) & 1);
  zeros[threadIdx.x] = zero;
  __syncthreads();
  for (int step = 1; step < 256; step <<= 1) {
    int below = threadIdx.x >= step ? zeros[threadIdx.x - step] : 0;
    __syncthreads();
    zeros[threadIdx.x] += below;
    __syncthreads();
  }
  int total = zeros[255], rank = zeros[threadIdx.x];
  out[zero ? rank - 1 : total + threadIdx.x - rank] = key;
}
//// spmv_of_threads
__global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0;
    for (int at = rows[row]; at < rows[row + 1]; ++at) sum += values[at] * __ldg(&x[columns[at]]);
    y[row] = sum;
  }
}
//// stencil_of_a_plane
__global__ void stencil(const float* in, float* out, int nx, int ny) {
  __shared__ float s[18][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  s[threadIdx.y + 1][threadIdx.x + 1] = in[y * nx + x];
  if (threadIdx.x == 0) s[threadIdx.y + 1][0] = x > 0 ? in[y * nx + x - 1] : 0;
  if (threadIdx.x == 31) s[threadIdx.y + 1][33] = x + 1 < nx ? in[y * nx + x + 1] : 0;
  if (threadIdx.y == 0) s[0][threadIdx.x + 1] = y > 0 ? in[(y - 1) * nx + x] : 0;
  if (threadIdx.y == 15) s[17][threadIdx.x + 1] = y + 1 < ny ? in[(y + 1) * nx + x] : 0;
  __syncthreads();
  const int i = threadIdx.y + 1, j = threadIdx.x + 1;
  out[y * nx + x] = 0.25f * (s[i - 1][j] + s[i + 1][j] + s[i][j - 1] + s[i][j + 1]);
}
//// reduce_of_a_grid
__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float s[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) sum += in[i];
  s[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
//// reduce_last_block
__device__ unsigned finished = 0;
__global__ void reduce(const float* in, volatile float* partial, float* out, int n) {
  __shared__ float s[128];
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 128 * gridDim.x) sum += in[i];
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < gridDim.x; ++i) total += partial[i];
    *out = total;
    finished = 0;
  }
}
//// embedding
template <typename T>
__global__ void embedding(const int64_t* ids, const T* table, T* out, int width) {
  const T* row = table + ids[blockIdx.x] * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) out[blockIdx.x * width + i] = row[i];
}
//// rotary
__global__ void rotary(float* q, const float* cosine, const float* sine, int heads, int size) {
  float* head = q + (blockIdx.x * heads + blockIdx.y) * size;
  for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
    float x = head[i], y = head[i + size / 2], c = cosine[blockIdx.x * size / 2 + i], s = sine[blockIdx.x * size / 2 + i];
    head[i] = x * c - y * s;
    head[i + size / 2] = x * s + y * c;
  }
}
//// gelu
__global__ void gelu(const float4* in, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = in[i];
  v.x = 0.5f * v.x * (1.0f + tanhf(0.79788456f * (v.x + 0.044715f * v.x * v.x * v.x)));
  v.y = 0.5f * v.y * (1.0f + erff(v.y * 0.70710678f));
  out[i] = v;
}
//// dequantize
__global__ void dequantize(const uint8_t* in, const float* scales, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float scale = scales[i / 32];
  uint8_t byte = in[i];
  out[2 * i] = scale * static_cast<int>((byte & 15) - 8);
  out[2 * i + 1] = scale * static_cast<int>((byte >> 4) - 8);
}
//// hash_table
__device__ unsigned hashed(unsigned key) {
  key ^= key >> 16;
  key *= 0x85ebca6b;
  return key ^ key >> 13;
}
__global__ void insert(unsigned* table, const unsigned* keys, int n, unsigned mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned at = hashed(keys[i]) & mask;
  while (true) {
    unsigned before = atomicCAS(&table[at], 0xffffffff, keys[i]);
    if (before == 0xffffffff || before == keys[i]) return;
    at = (at + 1) & mask;
  }
}
//// nbody
__global__ void forces(const float4* bodies, float4* out, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = bodies[i];
  float3 sum = make_float3(0, 0, 0);
  for (int at = 0; at < n; at += blockDim.x) {
    tile[threadIdx.x] = bodies[at + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < blockDim.x; ++j) {
      float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-9f);
      float f = tile[j].w * inverse * inverse * inverse;
      sum.x += f * dx;
      sum.y += f * dy;
      sum.z += f * dz;
    }
    __syncthreads();
  }
  out[i] = make_float4(sum.x, sum.y, sum.z, 0);
}
//// binary_search
__global__ void search(const int* sorted, const int* keys, int* found, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (sorted[middle] < keys[i]) low = middle + 1;
    else high = middle;
  }
  found[i] = low;
}
//// pointer_chase
__global__ void roots(int* parent, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = parent[i];
  while (at != parent[at]) at = parent[at];
  parent[i] = at;
}
//// float_max
__device__ float atomic_max(float* at, float v) {
  int* bits = reinterpret_cast<int*>(at);
  int old = *bits;
  while (__int_as_float(old) < v) {
    int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(v));
    if (assumed == old) break;
  }
  return __int_as_float(old);
}
//// monte_carlo
__device__ unsigned next(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}
__global__ void pi(unsigned long long* inside, int tries) {
  unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 1, count = 0;
  for (int i = 0; i < tries; ++i) {
    float x = next(state) * 2.3283064e-10f, y = next(state) * 2.3283064e-10f;
    count += x * x + y * y < 1.0f;
  }
  atomicAdd(inside, static_cast<unsigned long long>(count));
}
//// two_barriers_by_the_grid
__global__ void k(float* a, const float* b, int n, bool twice) {
  __shared__ float s[256];
  for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
    s[threadIdx.x] = b[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    if (blockIdx.x % 2 == 0) {
      a[blockIdx.x * 256 + threadIdx.x] += s[255 - threadIdx.x];
      __syncthreads();
    } else {
      a[blockIdx.x * 256 + threadIdx.x] -= s[255 - threadIdx.x];
      __syncthreads();
    }
  }
}
//// warps_of_roles
__global__ void k(const float* in, float* out, int n) {
  __shared__ float buffer[2][256];
  const bool loads = threadIdx.x >= 256;
  for (int at = 0; at < n; at += 256) {
    if (loads) buffer[at / 256 % 2][threadIdx.x - 256] = in[at + threadIdx.x - 256];
    __syncthreads();
    if (!loads) out[at + threadIdx.x] = 2 * buffer[at / 256 % 2][threadIdx.x];
    __syncthreads();
  }
}
void run(const float* in, float* out, int n) { k<<<1, 512>>>(in, out, n); }
//// occupancy
__global__ void fill(float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 1;
}
void run(float* out, int n) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  fill<<<4 * p.multiProcessorCount, p.maxThreadsPerBlock / 4>>>(out, n);
}
