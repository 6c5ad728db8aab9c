"""The words that entries may use where free text is refused."""

from __future__ import annotations

WORKLOADS = ("pytorch", "llama.cpp", "mlx", "training", "vision", "vllm", "inference")
"""What a person can say the machine is for."""

RUN_AS = {
    **dict.fromkeys(("comfyui", "stable-diffusion", "automatic1111", "forge", "invokeai", "sdnext"), "pytorch"),
    **dict.fromkeys(("transformers", "diffusers", "whisper", "torch"), "pytorch"),
    **dict.fromkeys(("ollama", "lmstudio", "lm-studio", "koboldcpp", "llama-cpp", "llamacpp"), "llama.cpp"),
    **dict.fromkeys(("axolotl", "unsloth", "fine-tuning", "finetuning"), "training"),
    **dict.fromkeys(("yolo", "ultralytics"), "vision"),
}
"""Programs and tasks that people name, and the workload that serves each."""

BRING_THEIR_OWN = ("ollama", "lmstudio", "lm-studio", "koboldcpp")
"""Of these, the ones that bring their own GPU code: nothing has to be chosen for them."""

TOPICS = {
    "compile-time": "How long first runs and compilations take",
    "inductor": "torch.compile and its settings",
    "attention": "Flash attention and AOTriton",
    "gfx1151": "Strix Halo (Ryzen AI Max) and what is particular to it",
    "hardware": "GPUs and APUs: what each target is and can do",
    "kernel": "Linux, the amdgpu driver, firmware and kernel parameters",
    "release": "ROCm releases and what each supports",
    "rocm": "ROCm as it is installed: versions, paths, packages",
    "hipblaslt": "hipBLASLt and the choice between BLAS libraries",
    "porting": "Porting CUDA projects",
    "driver": "The amdgpu driver and its parameters",
    "firmware": "GPU firmware",
    "memory": "VRAM, GTT and how much a model may take",
    "access": "Device files, groups, containers and WSL",
    "rdna1": "RDNA1 and RDNA2 cards: what runs, and what was said about them",
    "correctness": "Where results were wrong, and how to check them",
    "packages": "Packages: which are real, which match, which libraries are left out",
    "issues": "Issues of other projects that people name, and where they stand",
    "runtime": "Errors of the ROCm runtime and of programs that die",
    "override": "Passing a GPU off as another target",
    "pytorch": "PyTorch on ROCm: builds, settings, known issues",
    "llama-cpp": "llama.cpp: back ends, builds, settings",
    "mlx": "MLX on AMD",
    "libraries": "Other libraries: Triton, JAX, CuPy, vLLM, bitsandbytes, MIOpen, hipBLASLt",
    "environment": "Environment variables",
    "install": "Where to install from",
    "vulkan": "Vulkan drivers",
    "measurements": "Figures, measured or reported",
    "containers": "Containers and Kubernetes",
    "numerics": "Precision, tolerances and data types",
    "tools": "Other tools: what they do and do not do",
    "triton": "Triton and other compilers for AMD targets",
    "practice": "How to work: what to do before and after a change",
}
"""The folders of kb/entries, and what each holds."""

TABLES = frozenset({"release", "library", "pytorch-source"})
"""The compatibility tables."""

CELL_STATES = frozenset({"full", "preview", "partial", "experimental", "override", "none", "unknown"})
"""What a cell of such a table can say."""
