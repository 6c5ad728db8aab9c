"""Which environment variables are kept, and which are never read."""

from __future__ import annotations

import re

from rocmend.core.secrets import is_secret_variable

PREFIXES = (
    # the runtime and its libraries
    *("HSA_", "HIP_", "HIPBLASLT_", "HIPCC_", "ROCM_", "ROCR_", "ROCBLAS_", "ROCFFT_", "ROCPROFILER_", "ROCTRACER_"),
    *("AMD_", "AMDGPU_", "GPU_", "TENSILE_", "MIOPEN_", "MIGRAPHX_", "RCCL_", "NCCL_", "COMGR_", "AOTRITON_"),
    # frameworks
    *("PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_", "XLA_", "JAX_", "ORT_", "CUPY_"),
    *("TF_CPP_", "TF_ROCM", "TF_XLA_", "TF_GPU_", "TF_FORCE_GPU"),  # TF_ alone would take in Terraform's
    *("FLASH_ATTENTION_", "AITER_", "VLLM_", "SGLANG_", "MLX_", "BNB_", "BITSANDBYTES_", "XFORMERS_", "CUDA_"),
    # llama.cpp and the programs around it
    *("GGML_", "LLAMA_", "OLLAMA_"),
    # Vulkan
    *("VK_", "RADV_", "MESA_", "AMDVLK_", "DISABLE_LAYER_", "DRI_"),
    # threads
    *("OMP_", "KMP_", "MKL_"),
    "ROCMEND_",
)
"""Beginnings of the names of variables that become facts."""

NAMES = frozenset(
    {
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH", "DEVICE_LIB_PATH"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONNOUSERSITE", "WSL_DISTRO_NAME"),
        *("HF_HUB_ENABLE_HF_TRANSFER", "USE_ROCM", "DISPLAY", "WAYLAND_DISPLAY", "NVIDIA_VISIBLE_DEVICES"),
    }
)
"""Whole names of variables that become facts."""

SEARCH_NAMES = frozenset(
    {
        *("PATH", "HOME", "PYTHONUSERBASE", "PYENV_VERSION"),
        *("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"),
    }
)
"""Variables that say where to look: collectors read them and a capture keeps them, and they do not become facts."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,150}\Z")


def is_fact(name: str) -> bool:
    """Whether a variable becomes a fact: it configures what this project diagnoses, and it is no secret."""
    return (
        _NAME.match(name) is not None and not is_secret_variable(name) and (name.startswith(PREFIXES) or name in NAMES)
    )


def is_kept(name: str) -> bool:
    """Whether a capture keeps a variable."""
    return is_fact(name) or name in SEARCH_NAMES
