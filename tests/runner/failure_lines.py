# ruff: noqa: E501  lines stand as programs print them
"""Lines as programs print them: those that say a run failed, and those that only sound so.

Of each failing line: what it makes of a run that ended with status 1, and where it was seen or where the program that
prints it has it. Addresses, paths and times are shortened.
"""

from __future__ import annotations

from rocmend.core.verdict import Verdict

CRASH, OOM, RESET, NONE, INFRA = Verdict.CRASH, Verdict.OOM, Verdict.GPU_RESET, Verdict.UNSUPPORTED, Verdict.INFRA

_GH = "https://github.com/"
_ROCM = f"{_GH}ROCm/legacy-rocm-build/issues/"
_LLAMA = f"{_GH}ggml-org/llama.cpp/issues/"
_GGML = f"{_GH}ggml-org/llama.cpp/blob/master/ggml/src/"
_GTEST = "https://google.github.io/googletest/advanced.html"
_CTEST = "https://cmake.org/cmake/help/latest/manual/ctest.1.html"
_PYTEST = "https://docs.pytest.org/en/stable/how-to/output.html"
_UNITTEST = "https://docs.python.org/3/library/unittest.html"
_BASH = "https://www.gnu.org/software/bash/manual/html_node/Exit-Status.html"
_VLLM = f"{_GH}vllm-project/vllm/issues/"

FAILING: tuple[tuple[str, Verdict, str], ...] = (
    # no kernels for the target
    (
        "rocBLAS error: Cannot read /opt/rocm-6.4.1/lib/llvm/bin/../../../lib/rocblas/library/TensileLibrary.dat: No such file or directory for GPU arch : gfx1036",
        NONE,
        f"{_LLAMA}14421",
    ),
    (
        r"rocBLAS error: Cannot read C:\Program Files\AMD\ROCm\6.1\bin\/rocblas/library/TensileLibrary.dat: No such file or directory for GPU arch : gfx1103",
        NONE,
        f"{_GH}brknsoul/ROCmLibs/issues/4",
    ),
    (
        r"rocBLAS error: Could not load C:\Program Files\AMD\ROCm\6.1\bin\/rocblas/library/TensileLibrary_lazy_gfx1103.dat",
        NONE,
        f"{_GH}likelovewant/ROCmLibs-for-gfx1103-AMD780M-APU/issues/12",
    ),
    (
        "rocBLAS error: Could not initialize Tensile library",
        NONE,
        f"{_GH}likelovewant/ROCmLibs-for-gfx1103-AMD780M-APU/issues/12",
    ),
    ("rocBLAS error: Could not initialize Tensile host:", NONE, f"{_GH}githubcto/FramePack-ZLUDA/issues/4"),
    (
        "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1201",
        NONE,
        f"{_GH}ROCm/AMDMIGraphX/pull/3517",
    ),
    (
        "rocBLAS error: Cannot read /opt/rocm-5.4.0/lib/rocblas/library/TensileLibrary.dat: Illegal seek",
        NONE,
        f"{_GH}ROCm/Tensile/issues/1936",
    ),
    ("RuntimeError: HIP error: invalid device function", NONE, f"{_GH}etched-ai/open-oasis/issues/27"),
    ("torch.AcceleratorError: HIP error: invalid device function", NONE, f"{_GH}pytorch/pytorch/issues/164346"),
    ("[rank0]: RuntimeError: HIP error: invalid device function", NONE, f"{_VLLM}17170"),
    (
        "ERROR 05-15 18:58:58 [engine.py:448] RuntimeError: HIP error: invalid device function",
        NONE,
        f"{_GH}nlzy/vllm-gfx906/issues/6",
    ),
    ("CUDA error: invalid device function", NONE, f"{_LLAMA}8504"),
    ("ROCm error: invalid device function", NONE, f"{_LLAMA}14370"),
    ("CUDA error 98 at ggml-cuda.cu:6246: invalid device function", NONE, f"{_LLAMA}3320"),
    ('"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"', NONE, f"{_ROCM}2536"),
    (
        'C++ exception with description "scan failed on 2nd step: hipErrorInvalidDeviceFunction: invalid device function" thrown in SetUp().',
        NONE,
        f"{_GH}llnl/smith/issues/1586",
    ),
    (
        "  what():  /data/driver/MLOpen/src/hipoc/hipoc_program.cpp:163: Failed creating module from file /tmp/miopen-interim-hsaco/file hipErrorSharedObjectInitFailed",
        NONE,
        f"{_GH}ROCm/MIOpen/issues/1690",
    ),
    (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        NONE,
        "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",
    ),
    # memory
    (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.31 GiB. GPU 0 has a total capacity of 128.00 GiB of which 780.24 MiB is free.",
        OOM,
        f"{_GH}kyuz0/amd-strix-halo-image-video-toolboxes/issues/3",
    ),
    (
        "HIP out of memory. Tried to allocate 432.00 MiB. GPU 0 has a total capacity of 15.92 GiB of which 7.12 GiB is free.",
        OOM,
        f"{_GH}Comfy-Org/ComfyUI/issues/9529",
    ),
    (
        "FAILED [0.0005s] test/test_autograd.py::TestX::test_y - torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB.",
        OOM,
        f"{_GH}ROCm/TheRock/issues/2118",
    ),
    ("ROCm error: out of memory", OOM, f"{_GGML}ggml-cuda/ggml-cuda.cu"),
    (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory",
        OOM,
        f"{_GGML}ggml-cuda/ggml-cuda.cu",
    ),
    ("alloc_tensor_range: failed to allocate ROCm0 buffer of size 4294967296", OOM, f"{_GGML}ggml-alloc.c"),
    ("ggml_vulkan: Device memory allocation of size 1073741824 failed.", OOM, f"{_GGML}ggml-vulkan/ggml-vulkan.cpp"),
    ("ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", OOM, f"{_GGML}ggml-vulkan/ggml-vulkan.cpp"),
    (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64",
        OOM,
        f"{_GH}numpy/numpy/blob/main/numpy/_core/_exceptions.py",
    ),
    ("MemoryError", OOM, "https://docs.python.org/3/library/exceptions.html#MemoryError"),
    (
        "terminate called after throwing an instance of 'std::bad_alloc'",
        OOM,
        "https://en.cppreference.com/w/cpp/memory/new/bad_alloc",
    ),
    ("OSError: [Errno 12] Cannot allocate memory", OOM, "https://man7.org/linux/man-pages/man3/errno.3.html"),
    ("bash: fork: Cannot allocate memory", OOM, "https://man7.org/linux/man-pages/man2/fork.2.html"),
    ("virtual memory exhausted: Cannot allocate memory", OOM, "https://gcc.gnu.org/wiki/FAQ"),
    # resets and faults
    ("HW Exception by GPU node-1 (Agent handle: 0x55d5c0) reason :GPU Hang", RESET, f"{_GH}ROCm/ROCm/issues/4021"),
    (
        "radv/amdgpu: The CS has been cancelled because the context is lost. This context is innocent.",
        RESET,
        f"{_LLAMA}21724",
    ),
    (
        "radv/amdgpu: The CS has been cancelled because the context is lost. This context is guilty of a soft recovery.",
        RESET,
        f"{_LLAMA}21724",
    ),
    (
        "Memory access fault by GPU node-1 (Agent handle: 0x55f8b54eec30) on address 0x7f2a53193000. Reason: Page not present or supervisor privilege.",
        CRASH,
        f"{_ROCM}5051",
    ),
    (
        "[aln_core] cuda_inexact_match_caller..Memory access fault by GPU node-4 (Agent handle: 0x10451e0) on address (nil). Reason: Page not present or supervisor privilege.",
        CRASH,
        f"{_ROCM}1339",
    ),
    (
        ":0:rocdevice.cpp            :2660: 556940992572 us: 32834: [tid:0x7f9e41945700] Device::callbackQueue aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: 0x29",
        CRASH,
        f"{_GH}parthenon-hpc-lab/parthenon/issues/1101",
    ),
    (
        "rocdevice.cpp Callback: Queue 0x7fc220400000 aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: 0x29",
        CRASH,
        f"{_GH}ggml-org/whisper.cpp/issues/3576",
    ),
    (
        ":0:rocdevice.cpp            :2614: 102457364470 us: 6856 : [tid:0x7fe7bb747700] Device::callbackQueue aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: Agent attempted to access an inaccessible address. code: 0x2b",
        CRASH,
        f"{_GH}doktor83/SRBMiner-Multi/issues/206",
    ),
    (
        ":0:rocdevice.cpp            :2303: 768423197593 us: Device::callbackQueue aborting with status: 0x100f",
        CRASH,
        f"{_ROCM}1393",
    ),
    ("terminate called after throwing an instance of 'vk::DeviceLostError'", CRASH, f"{_LLAMA}13248"),
    ("  what():  vk::Queue::submit: ErrorDeviceLost", CRASH, f"{_LLAMA}13248"),
    ("llama_model_load: error loading model: vk::Queue::submit: ErrorDeviceLost", CRASH, f"{_LLAMA}17334"),
    # errors of a call
    ("ggml_cuda_compute_forward: RMS_NORM failed", CRASH, f"{_LLAMA}8504"),
    ("ggml_cuda_compute_forward: MUL_MAT failed", CRASH, f"{_LLAMA}16795"),
    ('GGML_ASSERT: ggml/src/ggml-cuda.cu:101: !"CUDA error"', CRASH, f"{_LLAMA}8504"),
    ("/src/ggml-cuda.cu:72: ROCm error", CRASH, f"{_GGML}ggml-cuda/ggml-cuda.cu"),
    ("ROCm error: unspecified launch failure", CRASH, f"{_GGML}ggml-cuda/ggml-cuda.cu"),
    (
        "RuntimeError: HIP error: an illegal memory access was encountered",
        CRASH,
        f"{_GH}pytorch/pytorch/blob/main/c10/cuda/CUDAException.cpp",
    ),
    (
        "RuntimeError: CUDA error: device-side assert triggered",
        CRASH,
        f"{_GH}pytorch/pytorch/blob/main/c10/cuda/CUDAException.cpp",
    ),
    (
        "MIOpen Error: D:/jam/TheRock/ml-libs/MIOpen/src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution",
        CRASH,
        f"{_GH}ROCm/TheRock/issues/749",
    ),
    ("RuntimeError: miopenStatusUnknownError", CRASH, f"{_GH}ROCm/TheRock/issues/1229"),
    (
        "error: hipErrorLaunchFailure (719)",
        CRASH,
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html",
    ),
    # ended
    ("Segmentation fault (core dumped)", CRASH, _BASH),
    ("./run.sh: line 12: 40312 Aborted                 (core dumped) ./main -m model.gguf", CRASH, _BASH),
    ("Illegal instruction (core dumped)", CRASH, _BASH),
    ("Bus error", CRASH, _BASH),
    ("terminate called without an active exception", CRASH, "https://en.cppreference.com/w/cpp/error/terminate"),
    ("Fatal Python error: Segmentation fault", CRASH, "https://docs.python.org/3/library/faulthandler.html"),
    ("/src/ggml.c:9: GGML_ASSERT(ne == 1) failed", CRASH, f"{_GGML}ggml.c"),
    ("main: error: unable to load model", CRASH, f"{_GH}ggml-org/llama.cpp/blob/master/common/common.cpp"),
    (
        "llama_model_load_from_file_impl: failed to load model",
        CRASH,
        f"{_GH}ggml-org/llama.cpp/blob/master/src/llama.cpp",
    ),
    ("RuntimeError: Engine core initialization failed. See root cause above.", CRASH, f"{_VLLM}19596"),
    ("(EngineCore_0 pid=210) ERROR 08-10 12:00:00 [core.py:700] EngineCore failed to start.", CRASH, f"{_VLLM}19596"),
    # the program's own words
    ("FAILED tests/test_ops.py::test_add - AssertionError", CRASH, _PYTEST),
    ("FAILED (failures=2, errors=1)", CRASH, _UNITTEST),
    ("[  FAILED  ] 2 tests, listed below:", CRASH, _GTEST),
    ("[  FAILED  ] Gemm.Fp16 (12 ms)", CRASH, _GTEST),
    ("92% tests passed, 1 tests failed out of 12", CRASH, _CTEST),
    (" 3/12 Test  #3: conv .............................***Failed    0.41 sec", CRASH, _CTEST),
    ("error: command '/usr/bin/hipcc' failed with exit code 1", CRASH, f"{_GH}pypa/setuptools"),
    ("FAILED: CMakeFiles/a.dir/b.cpp.o", CRASH, "https://ninja-build.org/manual.html"),
    # nothing to run
    ("bash: line 1: nonesuch: command not found", INFRA, _BASH),
    (
        "python: error while loading shared libraries: libamdhip64.so.6: cannot open shared object file: No such file or directory",
        INFRA,
        "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    ),
)

BENIGN = (
    # tests' names and summaries
    "checking CUDA error handling ... ok",
    "test_hip_error_string (tests.test_hip.TestErrors.test_hip_error_string) ... ok",
    "tests/test_oom.py::test_out_of_memory_is_caught PASSED                   [ 50%]",
    "tests/test_cuda.py::test_cudaErrorInvalidValue PASSED [ 3%]",
    "tests/test_a.py::test_known_bug XFAIL (HIP error: invalid device function)",
    "FAILED: 0, PASSED: 12",
    "FAILED 0",
    "FAILED: none",
    "FAILED TESTS: 0",
    "Failed: 0",
    "0 failed, 12 passed",
    "============ 12 passed, 3 skipped, 0 failed in 3.21s ============",
    "======================== 250 passed, 2 xfailed in 41.7s ========================",
    "[==========] 12 tests from 3 test suites ran. (41 ms total)",
    "[  PASSED  ] 12 tests.",
    "[       OK ] Errors.HipErrorOutOfMemory (0 ms)",
    "[ RUN      ] Errors.CUDA error is reported",
    "  YOU HAVE 2 DISABLED TESTS",
    "100% tests passed, 0 tests failed out of 12",
    " 3/12 Test  #3: cuda_error_handling ..............   Passed    0.41 sec",
    "Tests:       0 failed, 12 passed, 12 total",
    "✓ reports a CUDA error: invalid device function (3 ms)",
    "PASS src/errors.test.js",
    "ok 12 - terminate called after throwing an instance of 'x' is expected",
    "test hip::tests::hipErrorOutOfMemory_is_mapped ... ok",
    "checks that Segmentation fault is reported ... ok",
    "GGML_ASSERT(x) failed is printed by death tests: expected",
    "Ran 12 tests in 0.003s (errors=0, failures=0)",
    "FAILED (failures=0, errors=0)",
    # progress and metrics
    "epoch 1: loss error rate 0.0031",
    "error: 0.0012",
    "CUDA error: 0.0012 (max abs difference to the CPU)",
    "HIP error: 0",
    "max error 1.2e-07, mean error 3.1e-09",
    "step 10/100 loss=2.31 errors=0",
    "0 errors, 0 warnings",
    "errors=0",
    "finished without error",
    "no CUDA error",
    "No HIP error was found.",
    "all kernels ran with no CUDA errors",
    "word error rate: 4.2 %",
    "Aborted requests: 0",
    "Aborted transfers 0, completed 12",
    "retries after failed with exit status: 0",
    "requests failed: 0",
    # documentation, help and plans
    "hipErrorNotReady is normal while polling",
    "hipEventQuery: Returned hipErrorNotReady : ",
    "error hipErrorNotReady: the event has not been reached yet",
    "hipErrorPeerAccessAlreadyEnabled: ignored",
    "If you see HIP error: invalid device function, set HSA_OVERRIDE_GFX_VERSION.",
    "A run that prints CUDA error is counted as failed.",
    "  --retries N   how often a step that failed with exit code 137 is run again",
    "VK_ERROR_DEVICE_LOST means that the driver gave the device up.",
    "HSA_STATUS_ERROR values are listed in hsa.h",
    "rocBLAS error codes are documented in rocblas.h",
    "looking for TensileLibrary.dat in /opt/rocm/lib/rocblas/library",
    "loaded /opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat",
    "Memory access fault by GPU is what a stray pointer causes",
    "terminate called is what libstdc++ prints first",
    "FAILED login attempts are logged to /var/log/auth.log",
    # warnings that programs go on after
    "UserWarning: CUDA initialization: Unexpected error from hipGetDeviceCount()",
    "MIOpen(HIP): Warning [IsEnoughWorkspace] [EvaluateInvokers] Solver <GemmFwdRest>, workspace required: 64, provided ptr: 0 size: 0",
    "MIOpen(HIP): Error [ai_heuristics.hpp:62] Unable to load file: gfx908_metadata.tn.model",
    "UserWarning: Attempting to use hipBLASLt on an unsupported architecture! Overriding blas backend to hipblas",
    "MIOpen(HIP): Warning [FindWinogradSolutions] /MIOpen/src/sqlite_db.cpp:108: open memvfs: unable to open database file",
    "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    "For debugging consider passing AMD_SERIALIZE_KERNEL=3",
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB (batch size is halved)",
    "Traceback (most recent call last):",
    "Direct firmware load failed with error -2",
    "WARNING: cudaErrorNotReady was returned 3 times",
    "ggml_cuda_compute_forward: MUL_MAT done",
    "EngineDeadError is raised when the engine stops",
    "the reference failed to load model weights twice, then succeeded",
)
