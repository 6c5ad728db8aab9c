from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

NVCC_FLAGS = [
    "-O3",
    "-std=c++17",
    "--use_fast_math",
    "--expt-relaxed-constexpr",
    "-lineinfo",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "--threads=4",
]

setup(
    name="warp-attention",
    version="0.1.0",
    packages=find_packages(include=["warp_attention"]),
    ext_modules=[
        CUDAExtension(
            "warp_attention._C",
            ["csrc/binding.cpp", "csrc/rms_norm.cu", "csrc/keep_above.cu", "csrc/attention.cu"],
            extra_compile_args={"cxx": ["-O3", "-std=c++17"], "nvcc": NVCC_FLAGS},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
