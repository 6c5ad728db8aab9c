"""rocmend's own headers of the HIP runtime: they compile to the instructions that they should."""

from __future__ import annotations

import cmath
import shutil
import subprocess
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipFailure, HipObject, Syntax, Toolchain, check_syntax, compile_hip
from rocmend.codeobject.hip.headers import STAND_INS

HEADERS = sorted(str(path.relative_to(STAND_INS)) for path in STAND_INS.rglob("*.h*"))


@pytest.mark.slow
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_makes_itself_known_on_both_sides(header: str, tools: Toolchain) -> None:
    made = check_syntax(f"#include <{header}>\n#include <{header}>\n".encode(), "gfx1100", toolchain=tools)
    assert isinstance(made, Syntax), made
    assert header in made.stand_ins
    assert made.diagnostics == ()


def assembly(body: str, tools: Toolchain, target: str = "gfx1100", headers: str = "fp16") -> str:
    source = f"""#include <hip/hip_runtime.h>
#include <hip/hip_{headers}.h>
{body}"""
    made = compile_hip(source.encode(), target, toolchain=tools)
    assert isinstance(made, HipObject), made
    return made.assembly


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "instruction"),
    [
        ("__hadd(a[0], a[1])", "v_add_f16"),
        ("__hfma(a[0], a[1], a[2])", "v_fma"),
        ("a[0] * a[1]", "v_mul_f16"),
        ("hsqrt(a[0])", "v_sqrt_f16"),
        ("hexp2(a[0])", "v_exp_f16"),
        ("__float2half(*f)", "v_cvt_f16_f32"),
        ("__hmax(a[0], a[1])", "v_max_f16"),
    ],
)
def test_half_precision_is_the_hardwares(expression: str, instruction: str, tools: Toolchain) -> None:
    body = f"__global__ void k(__half* a, const float* f) {{ a[threadIdx.x] = {expression}; }}"
    assert instruction in assembly(body, tools)


def test_pairs_of_halves_are_packed(tools: Toolchain) -> None:
    body = "__global__ void k(__half2* a) { a[0] = __hfma2(a[1], a[2], __hadd2(a[3], a[4])); }"
    text = assembly(body, tools)
    assert "v_pk_fma_f16" in text
    assert "v_pk_add_f16" in text


def test_without_operators_there_are_none(tools: Toolchain) -> None:
    source = (
        b"#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n__global__ void k(__half* a) { a[0] = a[1] + a[2]; }"
    )
    switches = {"__HIP_NO_HALF_OPERATORS__": "1", "__HIP_NO_HALF_CONVERSIONS__": "1"}
    made = compile_hip(source, "gfx942", defines=switches, toolchain=tools, cache=False)
    assert not isinstance(made, HipObject)
    assert made.stand_ins == ("hip/hip_fp16.h",)
    assert "invalid operands" in made.message


OWN = b"""#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
__device__ __hip_bfloat16 __float2bfloat16_rn(float x) { return __float2bfloat16(x); }
__device__ __hip_bfloat162 __float2bfloat162_rn(float x) { return __float22bfloat162_rn(float2{x, x}); }
__device__ __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return __float22bfloat162_rn(float2{x, y}); }
__device__ __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return __halves2bfloat162(x, y); }
__device__ __half __double2half(double x) { return __float2half(static_cast<float>(x)); }
__device__ __half2 __hmax2(__half2 x, __half2 y) { return __halves2half2(__hmax(x.x, y.x), __hmax(x.y, y.y)); }
__device__ __half2 __hmin2(__half2 x, __half2 y) { return __halves2half2(__hmin(x.x, y.x), __hmin(x.y, y.y)); }
__global__ void k(__hip_bfloat162* x) { x[0] = __floats2bfloat162_rn(1.0f, 2.0f); }
"""


def test_what_hip_lacks_is_lacking(tools: Toolchain) -> None:
    """Projects define these for ROCm: a stand-in that has them, too, refuses what compiles and takes what does not."""
    made = compile_hip(OWN, "gfx942", toolchain=tools, cache=False)
    assert isinstance(made, HipObject), made


ROUNDED = """
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
constexpr unsigned short of(float x) {
  const unsigned int bits = __builtin_bit_cast(unsigned int, x);
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
__global__ void k(unsigned short* x) {
  x[0] = __bfloat16_as_ushort(__float2bfloat16(1.00390625f));       // half-way: to even, down
  x[1] = __bfloat16_as_ushort(__float2bfloat16(1.01171875f));       // half-way: to even, up
  x[2] = __bfloat16_as_ushort(__float2bfloat16(1.00390637f));       // above half-way
  x[3] = __bfloat16_as_ushort(__float2bfloat16(3.4e38f));           // to infinity
  x[4] = __bfloat16_as_ushort(__double2bfloat16(1.00390625000001)); // once, not twice
  x[5] = __hisnan(__float2bfloat16(__builtin_nanf(""))) ? 1 : 0;
}
"""


def test_bfloat16_is_rounded_to_nearest_even_once(tools: Toolchain) -> None:
    made = compile_hip(ROUNDED.encode(), "gfx942", toolchain=tools, options=("-O3",))
    assert isinstance(made, HipObject), made
    # the compiler computes the constants: two 16-bit values lie in each word that is stored
    words = [int(word, 16) for word in _constants(made.assembly)]
    halves = {half for word in words for half in (word & 0xFFFF, word >> 16)}
    assert {0x3F80, 0x3F82, 0x3F81, 0x7F80} <= halves


def _constants(text: str) -> list[str]:
    import re

    return re.findall(r"0x([0-9a-f]{1,8})\b", text) + [
        f"{int(one):x}" for one in re.findall(r", (\d+)$", text, re.MULTILINE)
    ]


def test_a_tile_of_32_threads_sees_its_own_lanes_of_a_wavefront_of_64(tools: Toolchain) -> None:
    body = """
namespace cg = cooperative_groups;
__global__ void k(unsigned long long* x) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  x[threadIdx.x] = tile.ballot(x[threadIdx.x] & 1);
}
"""
    shift = "lshrrev_b64"  # the upper tile's ballot is moved down
    assert shift in assembly(body, tools, "gfx942", "cooperative_groups")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pair", "__half"])
def test_a_tile_exchanges_numbers_alone_as_hips_does(tools: Toolchain, kind: str) -> None:
    made = check_syntax(
        f"""#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_cooperative_groups.h>
struct pair {{ int a, b; }};
__global__ void k({kind}* x) {{
  x[0] = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()).shfl(x[0], 1);
}}
""".encode(),
        "gfx942",
        toolchain=tools,
    )
    assert not isinstance(made, Syntax)
    assert "numbers alone" in made.message


FUNCTIONS = (
    "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh",
)  # fmt: skip
VALUES = (0.7 - 1.3j, -2.1 + 0.4j, -0.2 - 3.0j, 1.5 + 0.1j)


def test_complex_functions_give_what_python_gives(tools: Toolchain, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    own = {f"{name}(z)": getattr(cmath, name) for name in FUNCTIONS}
    other = VALUES[1]
    own |= {
        "z * w": lambda z: z * other,
        "z / w": lambda z: z / other,
        "1 / z": lambda z: 1 / z,
        "z - 2": lambda z: z - 2,
        "pow(z, w)": lambda z: z**other,
        "pow(2.0, z)": lambda z: 2**z,
        "conj(z)": lambda z: z.conjugate(),
        "thrust::polar(abs(z), arg(z))": lambda z: z,
    }
    lines = [
        f'  {{ C z({z.real}, {z.imag}), r = {text}; std::printf("%.17g %.17g\\n", r.real(), r.imag()); }}'
        for z in VALUES
        for text in own
    ]
    source, program = tmp_path / "a.cpp", tmp_path / "a"
    head = "#include <thrust/complex.h>\n#include <cstdio>\nusing C = thrust::complex<double>;\n"
    source.write_text(f"{head}const C w({other.real}, {other.imag});\nint main() {{\n" + "\n".join(lines) + "\n}\n")
    hip = tools.flags[tools.flags.index("-idirafter") + 1]
    folders = ("-idirafter", hip, "-idirafter", str(STAND_INS))
    subprocess.run(
        [compiler, "-std=c++17", "-w", "-D__HIP_PLATFORM_AMD__", *folders, str(source), "-o", str(program)], check=True
    )
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    got = [complex(float(re), float(im)) for re, im in zip(said[::2], said[1::2], strict=True)]
    wanted = [function(z) for z in VALUES for function in own.values()]
    assert got == pytest.approx(wanted, rel=1e-13)


FP8 = """#include <hip/hip_runtime.h>
#include <hip/hip_fp8.h>
#include <cstdio>
int main() {
  for (int kind = 0; kind < 4; ++kind) {
    const auto format = static_cast<__hip_fp8_interpretation_t>(kind);
    for (int code = 0; code < 256; ++code) std::printf("%a ", rocmend_fp8::decoded(code, format));
    for (int n = 0; n < 65536; ++n) {
      const float x = __builtin_bit_cast(float, (unsigned)n << 16 | (n % 3 ? 0x8000u : 0u));
      std::printf("%d ", __hip_cvt_float_to_fp8(x, __HIP_NOSAT, format));
    }
  }
}
"""


def host_output(text: str, tools: Toolchain, folder: Path) -> list[str]:
    """Compile and run a program's host side, which calls nothing of HIP's runtime; return the words that it prints."""
    linker = shutil.which("g++")
    if linker is None:
        pytest.skip("g++ is not installed")
    source, made, program = (folder / name for name in ("a.hip", "a.o", "a"))
    source.write_text(text)
    host = ("--offload-arch=gfx1100", "--cuda-host-only", "-nogpulib", "-O1", "-w", "-idirafter", str(STAND_INS))
    command = [*tools.clang, "-x", "hip", *tools.flags, *host, "-c", str(source), "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([linker, str(made), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()


def test_8_bit_floats_are_torchs(tools: Toolchain, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    said = host_output(FP8, tools, tmp_path)
    for number, name in enumerate(("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")):
        dtype = getattr(torch, f"float8_{name}")
        part = said[number * (256 + 65536) :][: 256 + 65536]
        decoded = torch.tensor([float.fromhex(one) for one in part[:256]])
        codes = torch.arange(256, dtype=torch.uint8).view(dtype)
        assert torch.equal(decoded.nan_to_num(nan=1e9), codes.float().nan_to_num(nan=1e9))
        n = torch.arange(65536)
        values = ((n << 16) | torch.where(n % 3 != 0, 0x8000, 0)).to(torch.int32).view(torch.float32)
        encoded = torch.tensor([int(one) for one in part[256:]], dtype=torch.uint8).view(dtype).float()
        beyond = values.abs() > 464 if name == "e4m3fn" else torch.zeros_like(values, dtype=torch.bool)
        wanted = torch.where(beyond, torch.nan, values.to(dtype).float())  # torch saturates there
        assert torch.equal(encoded.nan_to_num(nan=1e9), wanted.nan_to_num(nan=1e9)), name


@pytest.mark.slow
def test_a_target_has_the_8_bit_format_that_its_instructions_take(tools: Toolchain) -> None:
    body = "__global__ void k(float* y, __hip_fp8_{}* x) {{ y[0] = float(x[1]); x[2] = __hip_fp8_{}(y[3]); }}"
    for name, target, there in (
        ("e4m3", "gfx1151", True),
        ("e4m3_fnuz", "gfx942", True),
        ("e4m3", "gfx942", False),
        ("e5m2", "gfx950", True),
    ):
        source = f"#include <hip/hip_runtime.h>\n#include <hip/hip_fp8.h>\n{body.format(name, name)}"
        made = compile_hip(source.encode(), target, toolchain=tools)
        assert isinstance(made, HipObject) is there, made


PHILOX = """#include <hip/hip_runtime.h>
#define QUALIFIERS __host__ __device__ inline
#include <hiprand/hiprand_kernel.h>
#include <cstdio>
int main() {
  hiprandStatePhilox4_32_10_t state, other;
  hiprand_init(0, 0, 0, &state);
  for (int n = 0; n < 4; ++n) std::printf("%08x ", hiprand(&state));
  hiprand_init(~0ull, ~0ull, 0, &other);
  other.counter[0] = other.counter[1] = ~0u;
  rocmend_random::block(other.counter, other.key, other.result);
  for (unsigned one : other.result) std::printf("%08x ", one);
  hiprand_init(42, 7, 0, &state);
  hiprand_init(42, 7, 5, &other);
  for (int n = 0; n < 5; ++n) hiprand(&state);
  std::printf("%d ", hiprand(&state) == hiprand(&other));
  double sum = 0, squares = 0, least = 1, most = 0;
  hiprandState_t xorwow;
  hiprand_init(1, 2, 3, &xorwow);
  for (int n = 0; n < 20000; ++n) {
    const float u = n % 2 ? hiprand_uniform(&xorwow) : hiprand_uniform(&state), x = hiprand_normal(&xorwow);
    sum += x, squares += x * x, least = u < least ? u : least, most = u > most ? u : most;
  }
  const bool spread = least > 0 && most <= 1 && most - least > 0.998;
  std::printf("%d", spread && sum * sum < 20000.0 * 9 && squares > 19000 && squares < 21000);
}
"""


def test_philox_gives_the_published_numbers(tools: Toolchain, tmp_path: Path) -> None:
    said = host_output(PHILOX, tools, tmp_path)
    assert said[:4] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert said[4:8] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    assert said[8:] == ["1", "1"]


def test_a_generators_state_stays_in_registers(tools: Toolchain) -> None:
    source = b"""#include <hip/hip_runtime.h>
#include <hiprand/hiprand_kernel.h>
__global__ void k(float* x, float p, unsigned long long seed) {
  hiprandStatePhilox4_32_10_t state;
  hiprand_init(seed, threadIdx.x, 4, &state);
  const float4 u = hiprand_uniform4(&state);
  x[threadIdx.x] *= (u.x < p) + (u.w < p) + hiprand_normal(&state);
}
"""
    made = compile_hip(source, "gfx1151", toolchain=tools)
    assert isinstance(made, HipObject), made
    assert [kernel.scratch_bytes for kernel in made.kernels] == [0]


def test_states_that_the_library_keeps_apart_are_not_one_type(tools: Toolchain) -> None:
    """With cuRAND they are; and device code's functions are not the host's."""
    head = "#include <hip/hip_runtime.h>\n#include <hiprand/hiprand_kernel.h>\n"
    apart = "__global__ void k(hiprandState* s) { hiprandStateXORWOW* x = s; x->weyl = 1; }\n"
    assert isinstance(compile_hip(f"{head}{apart}".encode(), "gfx1151", toolchain=tools), HipFailure)
    host = "void f() { hiprandState_t s; hiprand_init(1, 2, 3, &s); }\n"
    assert isinstance(check_syntax(f"{head}{host}".encode(), "gfx1151", toolchain=tools), HipFailure)


TUPLES = b"""#include <hip/hip_runtime.h>
#include <thrust/tuple.h>
__device__ thrust::tuple<int, float> both(int x) { return thrust::make_tuple(x, x * 0.5f); }
__global__ void k(float* out, int* keys) {
  int key;
  float value;
  thrust::tie(key, value) = both(threadIdx.x);
  thrust::tuple<int, float> kept, last = both(key + 1);
  kept = last;
  auto pair = thrust::make_pair(key, value);
  thrust::pair<int, float> other(3, 4.0f);
  other = pair;
  thrust::swap(pair, other);
  thrust::swap(key, thrust::get<0>(kept));
  out[threadIdx.x] = thrust::get<1>(kept) + other.second + (kept < last);
  keys[threadIdx.x] = key + pair.first;
}
"""


@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
def test_tuples_are_assigned_in_device_code(standard: str, tools: Toolchain) -> None:
    """The standard library's are not constexpr there before C++20."""
    made = compile_hip(TUPLES, "gfx1151", options=(standard,), toolchain=tools)
    assert isinstance(made, HipObject), made
