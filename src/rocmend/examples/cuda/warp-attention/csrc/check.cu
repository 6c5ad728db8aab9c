// Compares every kernel with plain loops on the CPU; leaves with 1 where one is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels.h"

namespace {

void must(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

class Buffer {
  public:
    explicit Buffer(const std::vector<float> &values) : size_(values.size() * sizeof(float)) {
        must(cudaMalloc(&data_, size_), "cudaMalloc");
        must(cudaMemcpy(data_, values.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    float *data() const { return data_; }
    std::vector<float> values() const {
        std::vector<float> held(size_ / sizeof(float));
        must(cudaMemcpy(held.data(), data_, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
        return held;
    }

  private:
    float *data_ = nullptr;
    size_t size_;
};

std::vector<float> numbers(size_t n, unsigned seed) {
    std::vector<float> made(n);
    for (float &one : made) {
        seed = seed * 1664525u + 1013904223u;
        one = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
    }
    return made;
}

bool close(const char *name, const std::vector<float> &got, const std::vector<float> &wanted) {
    double worst = got.size() == wanted.size() ? 0.0 : INFINITY;
    for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
        const double off = std::fabs(got[i] - wanted[i]) / (1e-4 + 1e-4 * std::fabs(wanted[i]));
        worst = std::isnan(off) ? INFINITY : std::max(worst, off);
    }
    std::printf("%s %s: %.3f of what is allowed\n", worst <= 1.0 ? "ok   " : "WRONG", name, worst);
    return worst <= 1.0;
}

bool check_rms_norm(int rows, int columns) {
    const auto x = numbers(static_cast<size_t>(rows) * columns, 1);
    const auto weight = numbers(columns, 2);
    std::vector<float> wanted(x.size());
    for (int r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (int c = 0; c < columns; ++c) {
            sum += static_cast<double>(x[r * columns + c]) * x[r * columns + c];
        }
        for (int c = 0; c < columns; ++c) {
            wanted[r * columns + c] = static_cast<float>(x[r * columns + c] * weight[c] / std::sqrt(sum / columns + 1e-6));
        }
    }
    Buffer dx(x), dweight(weight), dy(std::vector<float>(x.size(), NAN));
    must(rms_norm(dx.data(), dweight.data(), dy.data(), rows, columns, 1e-6f, nullptr), "rms_norm");
    return close("rms_norm", dy.values(), wanted);
}

bool check_keep_above(int n) {
    const auto x = numbers(n, 3);
    std::vector<float> wanted;
    for (const float one : x) {
        if (one > 0.25f) {
            wanted.push_back(one);
        }
    }
    Buffer dx(x), dout(std::vector<float>(n, NAN)), dcount({0.0f});
    int *count = reinterpret_cast<int *>(dcount.data());
    must(keep_above(dx.data(), 0.25f, dout.data(), count, n, nullptr), "keep_above");
    int found = 0;
    must(cudaMemcpy(&found, count, sizeof(found), cudaMemcpyDeviceToHost), "cudaMemcpy");
    auto got = dout.values();
    got.resize(std::min(std::max(found, 0), n));
    std::sort(got.begin(), got.end());
    std::sort(wanted.begin(), wanted.end());
    return close("keep_above", got, wanted);
}

bool check_attention(int heads, int queries, int keys, int dim, bool causal) {
    const auto q = numbers(static_cast<size_t>(heads) * queries * dim, 4);
    const auto k = numbers(static_cast<size_t>(heads) * keys * dim, 5);
    const auto v = numbers(static_cast<size_t>(heads) * keys * dim, 6);
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    std::vector<float> wanted(q.size(), 0.0f);
    for (int h = 0; h < heads; ++h) {
        for (int i = 0; i < queries; ++i) {
            const int seen = causal ? std::min(keys, std::max(0, i + keys - queries + 1)) : keys;
            std::vector<double> weight(seen);
            double largest = -INFINITY, total = 0.0;
            for (int j = 0; j < seen; ++j) {
                double dot = 0.0;
                for (int d = 0; d < dim; ++d) {
                    dot += static_cast<double>(q[(h * queries + i) * dim + d]) * k[(h * keys + j) * dim + d];
                }
                weight[j] = dot * scale;
                largest = std::max(largest, weight[j]);
            }
            for (double &one : weight) {
                one = std::exp(one - largest);
                total += one;
            }
            for (int d = 0; d < dim && seen > 0; ++d) {
                double sum = 0.0;
                for (int j = 0; j < seen; ++j) {
                    sum += weight[j] * v[(h * keys + j) * dim + d];
                }
                wanted[(h * queries + i) * dim + d] = static_cast<float>(sum / total);
            }
        }
    }
    Buffer dq(q), dk(k), dv(v), dout(std::vector<float>(q.size(), NAN));
    must(attention(dq.data(), dk.data(), dv.data(), dout.data(), heads, queries, keys, dim, scale, causal, nullptr),
         "attention");
    return close(causal ? "attention, causal" : "attention", dout.values(), wanted);
}

}  // namespace

int main() {
    bool right = true;
    for (const int columns : {1, 31, 64, 1000, 4096}) {
        right &= check_rms_norm(7, columns);
    }
    for (const int n : {1, 32, 33, 63, 65, 1000000}) {
        right &= check_keep_above(n);
    }
    for (const bool causal : {false, true}) {
        right &= check_attention(3, 1, 1, 64, causal);
        right &= check_attention(2, 65, 130, 64, causal);
        right &= check_attention(2, 33, 200, 128, causal);
        right &= check_attention(1, 70, 20, 128, causal);
    }
    return right ? 0 : 1;
}
