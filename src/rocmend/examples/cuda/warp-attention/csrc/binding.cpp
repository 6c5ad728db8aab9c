#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

#include "kernels.h"

namespace {

void must(cudaError_t error, const char *what) { TORCH_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error)); }

torch::Tensor checked(const torch::Tensor &tensor, const char *name) {
    TORCH_CHECK(tensor.is_cuda(), name, " must be on the GPU");
    TORCH_CHECK(tensor.scalar_type() == torch::kFloat32, name, " must be float32");
    return tensor.contiguous();
}

torch::Tensor rms_norm_forward(const torch::Tensor &x, const torch::Tensor &weight, double epsilon) {
    const auto rows = checked(x, "x");
    const auto scale = checked(weight, "weight");
    TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1), "weight must fit x's last dimension");
    const c10::cuda::CUDAGuard guard(x.device());
    auto y = torch::empty_like(rows);
    const int64_t columns = x.size(-1);
    must(rms_norm(rows.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
                  static_cast<int>(columns ? x.numel() / columns : 0), static_cast<int>(columns),
                  static_cast<float>(epsilon), c10::cuda::getCurrentCUDAStream()),
         "rms_norm");
    return y;
}

torch::Tensor keep_above_forward(const torch::Tensor &x, double threshold) {
    const auto values = checked(x, "x").flatten();
    const c10::cuda::CUDAGuard guard(x.device());
    auto out = torch::empty_like(values);
    auto count = torch::zeros({1}, values.options().dtype(torch::kInt32));
    must(keep_above(values.data_ptr<float>(), static_cast<float>(threshold), out.data_ptr<float>(), count.data_ptr<int>(),
                    static_cast<int>(values.numel()), c10::cuda::getCurrentCUDAStream()),
         "keep_above");
    return out.narrow(0, 0, count.item<int>());
}

torch::Tensor attention_forward(const torch::Tensor &q, const torch::Tensor &k, const torch::Tensor &v, double scale,
                                bool causal) {
    const auto queries = checked(q, "q"), keys = checked(k, "k"), values = checked(v, "v");
    TORCH_CHECK(q.dim() == 3 && k.sizes() == v.sizes(), "q, k and v must be [heads, tokens, dim], k and v alike");
    TORCH_CHECK(q.size(0) == k.size(0) && q.size(2) == k.size(2), "q and k must have the same heads and dimensions");
    const c10::cuda::CUDAGuard guard(q.device());
    auto out = torch::empty_like(queries);
    must(attention(queries.data_ptr<float>(), keys.data_ptr<float>(), values.data_ptr<float>(), out.data_ptr<float>(),
                   static_cast<int>(q.size(0)), static_cast<int>(q.size(1)), static_cast<int>(k.size(1)),
                   static_cast<int>(q.size(2)), static_cast<float>(scale), causal, c10::cuda::getCurrentCUDAStream()),
         "attention");
    return out;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("rms_norm", &rms_norm_forward);
    module.def("keep_above", &keep_above_forward);
    module.def("attention", &attention_forward);
}
