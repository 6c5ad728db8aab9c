"""What HIP has only with a few lines of help: pieces of the compatibility header, each taken where its name is used."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CALLED", "MARKS", "ON_DEVICE", "ON_HOST", "SHIMS", "Shim"]


class Shim(NamedTuple):
    """A piece of the compatibility header.

    Attributes:
        text: Its lines.
        replaces: Names that need no ``#define`` then.
        headers: HIP headers that it needs.
        where: A HIP header without which it has no place; empty: it has one everywhere.
    """

    text: str
    replaces: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    where: str = ""


def _kernel_call(name: str, hip: str, before: str, after: str, passed: str) -> Shim:
    """Return a template that takes a kernel where HIP takes ``const void *``."""
    first = f"{before}, " if before else ""
    return Shim(
        f"#ifdef __cplusplus\n"
        f"template <typename Kernel> static inline hipError_t {name}({first}Kernel kernel{after}) {{\n"
        f"  return {hip}({passed.replace('kernel', 'reinterpret_cast<const void *>(kernel)')});\n}}\n"
        f"#else\n#define {name} {hip}\n#endif",
        (name,),
    )


def _hinted_load(name: str) -> Shim:
    """Return a load whose hint is about speed alone."""
    return Shim(
        f"#ifdef __HIPCC__ // a cache hint: the value is the same\n"
        f"template <typename T> __device__ __forceinline__ T cuda_to_hip{name}(const T *address) {{\n"
        f"  return *address;\n}}\n"
        f"#define {name}(address) cuda_to_hip{name}(address)\n#endif"
    )


def _hinted_store(name: str) -> Shim:
    """Return a store whose hint is about speed alone."""
    return Shim(
        f"#ifdef __HIPCC__ // a cache hint: what is stored is the same\n"
        f"template <typename T> __device__ __forceinline__ void cuda_to_hip{name}(T *address, T value) {{\n"
        f"  *address = value;\n}}\n"
        f"#define {name}(address, value) cuda_to_hip{name}(address, value)\n#endif"
    )


def _coherent(name: str, scope: str, *, store: bool) -> Shim:
    """Return a load or store that other workgroups' accesses meet, as CUDA's operator says: not one of a private cache.

    A plain load may come from a cache of the CU, or be taken out of a loop that waits for another workgroup.
    """
    own, order = f"cuda_to_hip{name}", f"__ATOMIC_RELAXED, {scope}"
    word = (
        f"template <unsigned Bytes> struct {own}_word {{ using type = unsigned char; }};\n"
        f"template <> struct {own}_word<4> {{ using type = unsigned int; }};\n"
        f"template <> struct {own}_word<2> {{ using type = unsigned short; }};\n"
    )
    choice = f"  using Word = typename {own}_word<sizeof(T) % 4 == 0 ? 4 : sizeof(T) % 2 == 0 ? 2 : 1>::type;\n"
    places = "  constexpr unsigned words = sizeof(T) / sizeof(Word);\n  Word word[words];\n"
    if store:
        body = (
            f"template <typename T> __device__ inline void {own}(T *address, T value) {{\n{choice}{places}"
            f"  __builtin_memcpy(word, static_cast<const void *>(&value), sizeof(T));\n"
            f"  Word *to = reinterpret_cast<Word *>(address);\n"
            f"  for (unsigned i = 0; i < words; ++i) __hip_atomic_store(to + i, word[i], {order});\n}}\n"
            f"#define {name}(address, value) {own}(address, value)\n"
        )
    else:
        body = (
            f"template <typename T> __device__ inline T {own}(const T *address) {{\n{choice}{places}"
            f"  const Word *from = reinterpret_cast<const Word *>(address);\n"
            f"  for (unsigned i = 0; i < words; ++i) word[i] = __hip_atomic_load(from + i, {order});\n"
            f"  T value;\n  __builtin_memcpy(static_cast<void *>(&value), word, sizeof(T));\n  return value;\n}}\n"
            f"#define {name}(address) {own}(address)\n"
        )
    return Shim(f"#ifdef __HIPCC__ // bypasses the caches of one CU\n{word}{body}#endif")


def _device(name: str, parameters: str, body: str, headers: tuple[str, ...] = ()) -> Shim:
    """Return a macro for the HIP compiler."""
    return Shim(f"#ifdef __HIPCC__\n#define {name}({parameters}) {body}\n#endif", (name,), headers)


def _read(name: str, hip: str) -> Shim:
    """Return the mark of a CUDA header that was read: sources ask for it to know what they may use."""
    return Shim(
        f"#ifndef {name} // {hip} stands for the header that has this mark\n#define {name}\n#endif", (), (), hip
    )


MARKS = {
    "__DRIVER_TYPES_H__": "hip/hip_runtime.h",
    "__CUDA_RUNTIME_H__": "hip/hip_runtime.h",
    "__CUDA_RUNTIME_API_H__": "hip/hip_runtime.h",
    "__VECTOR_TYPES_H__": "hip/hip_runtime.h",
    "__HOST_DEFINES_H__": "hip/hip_runtime.h",
    "__cuda_cuda_h__": "hip/hip_runtime.h",
    "__cuda_cuda_H__": "hip/hip_runtime.h",
    "CUBLAS_API_H_": "hipblas/hipblas.h",
    "CUBLAS_V2_H_": "hipblas/hipblas.h",
    "_CUFFT_H_": "hipfft/hipfft.h",
    "CUSPARSEAPI": "hipsparse/hipsparse.h",
    "CUSPARSE_H_": "hipsparse/hipsparse.h",
    "CUSOLVER_COMMON_H_": "hipsolver/hipsolver.h",
    "CUSOLVERDN_H_": "hipsolver/hipsolver.h",
    "CURAND_H_": "hiprand/hiprand.h",
}
"""What CUDA's headers define to be read once, and the HIP header that stands for each."""
_GENERIC = "(const __attribute__((address_space(0))) void *)(address)"
_BF16 = ("hip/hip_bf16.h",)
_GRAPH = """
#ifdef __cplusplus
static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags = 0) {
  return hipGraphInstantiateWithFlags(exec, graph, flags);
}
static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node, char *log,
                                              size_t size) {
  return hipGraphInstantiate(exec, graph, node, log, size);
}
#else
#define cudaGraphInstantiate hipGraphInstantiate
#endif
"""
_ATOMIC_ADD = """
#ifdef __HIPCC__ // atomicAdd of types that older HIP has none for: a compare-and-swap of the 32 bits that hold them
template <typename T> __device__ inline T cuda_to_hip_atomicAdd(T *address, T value) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "of 16 or 32 bits");
  const unsigned long long place = reinterpret_cast<unsigned long long>(address);
  unsigned int *word = reinterpret_cast<unsigned int *>(place & ~3ull);
  const unsigned int shift = sizeof(T) == 2 ? 8u * static_cast<unsigned int>(place & 2ull) : 0u;
  unsigned int old = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (true) {
    const unsigned int part = old >> shift;
    T before;
    __builtin_memcpy(static_cast<void *>(&before), &part, sizeof(T));
    const T sum = before + value;
    unsigned int bits = 0;
    __builtin_memcpy(&bits, static_cast<const void *>(&sum), sizeof(T));
    const unsigned int mask = sizeof(T) == 2 ? 0xffffu << shift : 0xffffffffu;
    const unsigned int wanted = (old & ~mask) | (bits << shift);
    if (__hip_atomic_compare_exchange_strong(word, &old, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __HIP_MEMORY_SCOPE_AGENT)) {
      return before;
    }
  }
}
#endif
"""

_CUB_DEBUG_EXIT = """
#include <cstdio>
#include <cstdlib>
#define CubDebugExit(call)                                                                        \\
  do {                                                                                            \\
    const hipError_t cub_error = (call);                                                          \\
    if (cub_error != hipSuccess) {                                                                \\
      std::fprintf(stderr, "%s:%d: %s\\n", __FILE__, __LINE__, hipGetErrorString(cub_error));      \\
      std::exit(1);                                                                               \\
    }                                                                                             \\
  } while (0)
"""

_RTC_COMPILE = """
#ifdef __cplusplus // CUDA takes options that nobody may change
static inline hiprtcResult nvrtcCompileProgram(hiprtcProgram program, int count, const char *const *options) {
  return hiprtcCompileProgram(program, count, const_cast<const char **>(options));
}
#else
#define nvrtcCompileProgram hiprtcCompileProgram
#endif
"""
_RTC_CREATE = """
#ifdef __cplusplus // CUDA takes headers that nobody may change
static inline hiprtcResult nvrtcCreateProgram(hiprtcProgram *program, const char *source, const char *name, int count,
                                              const char *const *headers, const char *const *names) {
  return hiprtcCreateProgram(program, source, name, count, const_cast<const char **>(headers),
                             const_cast<const char **>(names));
}
#else
#define nvrtcCreateProgram hiprtcCreateProgram
#endif
"""


def _least(name: str, sign: str, type_: str) -> Shim:
    """Return a minimum or maximum of integers that CUDA has under a name of its own."""
    return Shim(
        f"#ifdef __HIPCC__\nstatic inline __host__ __device__ {type_} {name}({type_} a, {type_} b) {{\n"
        f"  return a {sign} b ? a : b;\n}}\n#endif"
    )


def _mixed(name: str, sign: str) -> Shim:
    """Return a minimum or maximum of a signed and an unsigned integer, which HIP makes floating point.

    What comes out there is no index, and another number where one is negative.
    """
    macro = f"CUDA_TO_HIP_{name.upper()}"
    lines = [
        "#ifdef __HIPCC__ // of a signed and an unsigned integer, as CUDA has it: unsigned",
        f"#define {macro}(U, A, B) \\",
        f"  static inline __host__ __device__ U ({name})(A a, B b) {{ return (U)a {sign} (U)b ? (U)a : (U)b; }}",
    ]
    for signed in ("int", "long", "long long"):
        unsigned = f"unsigned {signed}"
        lines += [f"{macro}({unsigned}, {unsigned}, {signed})", f"{macro}({unsigned}, {signed}, {unsigned})"]
    return Shim("\n".join([*lines, f"#undef {macro}", "#endif"]))


def _on_host(name: str, sign: str) -> Shim:
    """Return a minimum or maximum in host code, where HIP has that of ``int`` alone and makes ``int`` of the others."""
    lines = ["#if defined(__HIPCC__) && !__HIP_DEFINE_EXTENDED_HOST_MIN_MAX__ // HIP's host code has that of int alone"]
    lines += [
        f"static inline __host__ {same} ({name})({same} a, {same} b) {{ return a {sign} b ? a : b; }}"
        for same in ("unsigned int", "long", "unsigned long", "long long", "unsigned long long")
    ]
    lines.append(f"static inline __host__ float ({name})(float a, float b) {{ return __builtin_f{name}f(a, b); }}")
    lines += [
        f"static inline __host__ double ({name})({first} a, {second} b) {{ return __builtin_f{name}(a, b); }}"
        for first, second in (("double", "double"), ("float", "double"), ("double", "float"))
    ]
    return Shim("\n".join([*lines, "#endif"]))


def _on_device(name: str, told: str) -> Shim:
    """Return the words for an error in device code, which CUDA has there too: HIP's table is the host's."""
    return Shim(
        f"#ifdef __HIPCC__ // CUDA has it in device code too; the words are in a table of the host\n"
        f"static inline __device__ const char *{name}(hipError_t error) {{\n"
        f'  return error == hipSuccess ? "{told}" : "HIP error";\n}}\n#endif'
    )


ON_DEVICE = {
    b"cudaGetErrorString": b"cudaGetErrorString (device)",
    b"cudaGetErrorName": b"cudaGetErrorName (device)",
}
"""Shims that are needed where a name is called in device code."""
ON_HOST = {b"min": b"min (host)", b"max": b"max (host)"}
"""Shims that more is needed for where the name is called in code for the host."""
CALLED = frozenset((b"min", b"max", b"isfinite", b"isnan", b"isinf", b"signbit"))
"""Names of shims that say something only where they are called with no namespace: ``std::min`` is another."""
_MATH = Shim("#ifdef __cplusplus // nvcc gives host code these names\n#include <math.h>\n#endif")

SHIMS: dict[bytes, Shim] = {
    b"min": _mixed("min", "<"),
    b"max": _mixed("max", ">"),
    b"__grid_constant__": Shim("#define __grid_constant__ // arguments of kernels are constant in HIP as they are"),
    b"cudaGetErrorString (device)": _on_device("hipGetErrorString", "no error"),
    b"cudaGetErrorName (device)": _on_device("hipGetErrorName", "hipSuccess"),
    b"min (host)": _on_host("min", "<"),
    b"max (host)": _on_host("max", ">"),
    b"cudaFuncSetAttribute": _kernel_call(
        "cudaFuncSetAttribute",
        "hipFuncSetAttribute",
        "",
        ", hipFuncAttribute attribute, int value",
        "kernel, attribute, value",
    ),
    b"cudaFuncSetCacheConfig": _kernel_call(
        "cudaFuncSetCacheConfig", "hipFuncSetCacheConfig", "", ", hipFuncCache_t config", "kernel, config"
    ),
    b"cudaFuncSetSharedMemConfig": _kernel_call(
        "cudaFuncSetSharedMemConfig", "hipFuncSetSharedMemConfig", "", ", hipSharedMemConfig config", "kernel, config"
    ),
    b"cudaFuncGetAttributes": _kernel_call(
        "cudaFuncGetAttributes", "hipFuncGetAttributes", "hipFuncAttributes *attributes", "", "attributes, kernel"
    ),
    b"cudaLaunchKernel": _kernel_call(
        "cudaLaunchKernel",
        "hipLaunchKernel",
        "",
        ", dim3 grid, dim3 block, void **args, size_t shared_bytes = 0, hipStream_t stream = nullptr",
        "kernel, grid, block, args, shared_bytes, stream",
    ),
    b"cudaGraphInstantiate": Shim(_GRAPH, ("cudaGraphInstantiate",)),
    b"cuda_to_hip_atomicAdd": Shim(_ATOMIC_ADD, (), ("hip/hip_fp16.h", "hip/hip_bf16.h")),
    b"cudaEventCreate": Shim(
        "#ifdef __cplusplus // CUDA's C++ has it with flags too\n"
        "static inline hipError_t hipEventCreate(hipEvent_t *event, unsigned int flags) {\n"
        "  return hipEventCreateWithFlags(event, flags);\n}\n#endif"
    ),
    b"cuCtxCreate": Shim(
        "#ifdef __cplusplus // CUDA 13 has four parameters; what the new one can ask for, HIP has not\n"
        "struct CUctxCreateParams {};\n"
        "static inline hipError_t hipCtxCreate(hipCtx_t *context, CUctxCreateParams *, unsigned int flags,\n"
        "                                      hipDevice_t device) {\n"
        "  return hipCtxCreate(context, flags, device);\n}\n#endif"
    ),
    b"nvrtcCompileProgram": Shim(_RTC_COMPILE, ("nvrtcCompileProgram",), ("hip/hiprtc.h",)),
    b"nvrtcCreateProgram": Shim(_RTC_CREATE, ("nvrtcCreateProgram",), ("hip/hiprtc.h",)),
    b"isfinite": _MATH,
    b"isnan": _MATH,
    b"isinf": _MATH,
    b"signbit": _MATH,
    b"umin": _least("umin", "<", "unsigned int"),
    b"umax": _least("umax", ">", "unsigned int"),
    b"llmin": _least("llmin", "<", "long long"),
    b"llmax": _least("llmax", ">", "long long"),
    b"ullmin": _least("ullmin", "<", "unsigned long long"),
    b"ullmax": _least("ullmax", ">", "unsigned long long"),
    b"CubDebugExit": Shim(_CUB_DEBUG_EXIT, ("CubDebugExit",)),
    b"__trap": _device("__trap", "", "__builtin_trap()"),
    b"__brkpt": _device("__brkpt", "", "__builtin_debugtrap()"),
    b"__isShared": _device("__isShared", "address", f"__builtin_amdgcn_is_shared({_GENERIC})"),
    b"__isLocal": _device("__isLocal", "address", f"__builtin_amdgcn_is_private({_GENERIC})"),
    **{name.encode(): _read(name, hip) for name, hip in MARKS.items()},
    **{  # HIP hides them; the device libraries set the mode of rounding around the operation
        f"__{name}_{mode}".encode(): _device(
            f"__{name}_{mode}", "...", f"__ocml_{operation}_{rounds}_{type_}(__VA_ARGS__)"
        )
        for name, operation, type_ in (
            *(("fadd", "add", "f32"), ("fsub", "sub", "f32"), ("fmul", "mul", "f32"), ("fmaf", "fma", "f32")),
            *(("dadd", "add", "f64"), ("dsub", "sub", "f64"), ("dmul", "mul", "f64"), ("fma", "fma", "f64")),
        )
        for mode, rounds in (("rd", "rtn"), ("ru", "rtp"), ("rz", "rtz"))
    },
    b"CUDART_CB": Shim("#define CUDART_CB", ("CUDART_CB",)),
    b"__float2bfloat16_rn": _device("__float2bfloat16_rn", "value", "__float2bfloat16(value)", _BF16),
    b"__float2bfloat162_rn": _device(
        "__float2bfloat162_rn", "value", "__bfloat162bfloat162(__float2bfloat16(value))", _BF16
    ),
    b"__floats2bfloat162_rn": _device(
        "__floats2bfloat162_rn",
        "one, other",
        "__halves2bfloat162(__float2bfloat16(one), __float2bfloat16(other))",
        _BF16,
    ),
    b"make_bfloat162": _device("make_bfloat162", "one, other", "__halves2bfloat162(one, other)", _BF16),
    **{
        f"__{source}2bfloat16_rn".encode(): _device(  # every value of 16 bits is a float
            f"__{source}2bfloat16_rn", "value", "__float2bfloat16(static_cast<float>(value))", _BF16
        )
        for source in ("short", "ushort")
    },
    **{
        f"__bfloat162{to}_{mode}".encode(): _device(
            f"__bfloat162{to}_{mode}", "value", f"__float2{to}_{mode}(__bfloat162float(value))", _BF16
        )
        for to in ("int", "uint", "ll", "ull")
        for mode in ("rd", "rn", "ru", "rz")
    },
    **{  # an atomic of the whole device is one of the block too
        f"atomic{name}_block".encode(): _device(f"atomic{name}_block", "...", f"atomic{name}(__VA_ARGS__)")
        for name in ("Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "CAS", "And", "Or", "Xor")
    },
    **{name.encode(): _hinted_load(name) for name in ("__ldca", "__ldcs", "__ldlu")},
    **{name.encode(): _hinted_store(name) for name in ("__stcs", "__stwb")},
    b"__ldcg": _coherent("__ldcg", "__HIP_MEMORY_SCOPE_AGENT", store=False),
    b"__ldcv": _coherent("__ldcv", "__HIP_MEMORY_SCOPE_SYSTEM", store=False),
    b"__stcg": _coherent("__stcg", "__HIP_MEMORY_SCOPE_AGENT", store=True),
    b"__stwt": _coherent("__stwt", "__HIP_MEMORY_SCOPE_SYSTEM", store=True),
}
