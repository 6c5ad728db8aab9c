// The launchers: pointers to device memory, sizes, a stream. None of them waits.
#pragma once

#include <cuda_runtime.h>

// y[r, c] = x[r, c] * weight[c] / sqrt(mean(x[r, :]^2) + epsilon)
cudaError_t rms_norm(const float *x, const float *weight, float *y, int rows, int columns, float epsilon,
                     cudaStream_t stream);

// Writes the values above a threshold to the front of out, in any order, and their number to count, which must be 0.
cudaError_t keep_above(const float *x, float threshold, float *out, int *count, int n, cudaStream_t stream);

// out = softmax(q k^T * scale) v for q [heads, queries, dim] and k, v [heads, keys, dim]; dim is 64 or 128.
// With causal, query i sees the keys up to i + keys - queries.
cudaError_t attention(const float *q, const float *k, const float *v, float *out, int heads, int queries, int keys,
                      int dim, float scale, bool causal, cudaStream_t stream);
