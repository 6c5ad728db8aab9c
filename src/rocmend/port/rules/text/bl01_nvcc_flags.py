"""nvcc-only options.

## What it does

Finds options such as `--expt-relaxed-constexpr`, `-gencode`, `--use_fast_math`, `-Xptxas`, `-Xcompiler`, `--threads`,
`-lineinfo` and `-arch=sm_80` in CMake files, Makefiles and scripts.

## Why it matters

hipcc is clang. It rejects most of them, and misreads some: `-lineinfo` links a library `ineinfo`,
`-use_fast_math` is `-u se_fast_math`.

## Use instead

clang's equivalent, or nothing where it is clang's default. `--use_fast_math` becomes the three options that it
implies; `-ffast-math` would also assume that there are no infinities, which attention masks use. In Makefiles the
GPUs are those of the machine, or `ROCM_ARCH`; in CMake, CMake selects them.

## Fix safety

Safe: each option has one meaning. Options that change the kind of output (`-ptx`, `-cubin`, `-dlink`) have to be
ported by hand.

## References

- <https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/>
- <https://clang.llvm.org/docs/ClangCommandLineReference.html>
- Measured with clang 22
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.flags import Translation, translated
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.lines_of_flags import Flags, flags
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_ARCHITECTURE = {Kind.MAKE: "--offload-arch=$(or $(ROCM_ARCH),native)", Kind.CMAKE: ""}


@rule(
    "BL01",
    "nvcc-only options",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"nvcc", b"NVCC", b"CUDA", b"-X", b"-arch", b"code", b"fast_math", b"--expt", b"lambda", b"lineinfo"),
    paths=paths(Kind.CMAKE, Kind.MAKE, Kind.SHELL, Kind.DOCKERFILE),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/",
        "https://clang.llvm.org/docs/ClangCommandLineReference.html",
        "measured: clang 22",
    ),
    valid=(
        'set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -O3 -Wall")\n# --use_fast_math\nset(FLAGS -arch arm64)\n',
        'message("--expt-relaxed-constexpr")\nset(A -Werror)\n',
    ),
    invalid=(
        Case(
            "NVCCFLAGS = -O3 -arch=sm_80 --use_fast_math -Xcompiler -fPIC,-Wall -lineinfo --threads 4\n",
            "ifdef USE_ROCM\nNVCCFLAGS = -O3 --offload-arch=$(or $(ROCM_ARCH),native) -fgpu-approx-transcendentals "
            "-fgpu-flush-denormals-to-zero -fno-hip-fp32-correctly-rounded-divide-sqrt -fPIC -Wall -gline-tables-only\n"
            "else\nNVCCFLAGS = -O3 -arch=sm_80 --use_fast_math -Xcompiler -fPIC,-Wall -lineinfo --threads 4\nendif\n",
            "Makefile",
        ),
        Case(
            "CFLAGS := -std=c++17 -Xcompiler -Wall -arch=$(ARCH) \\\n  -I.\n",
            "ifdef USE_ROCM\nCFLAGS := -std=c++17 -Wall --offload-arch=$(or $(ROCM_ARCH),native) \\\n  -I.\nelse\n"
            "CFLAGS := -std=c++17 -Xcompiler -Wall -arch=$(ARCH) \\\n  -I.\nendif\n",
            "Makefile",
        ),
        Case(
            "CFLAGS = -O3 \\\n  -Xptxas -v\nall:\n",
            "ifdef USE_ROCM\nCFLAGS = -O3\nelse\nCFLAGS = -O3 \\\n  -Xptxas -v\nendif\nall:\n",
            "Makefile",
        ),
        Case(
            "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda -Xcompiler=-Wall>)\n",
            "if(USE_ROCM)\n"
            "  target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>: -Wall>)\nelse()\n"
            "  target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda -Xcompiler=-Wall>)\n"
            "endif()\n",
            "CMakeLists.txt",
        ),
        Case(
            'set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -gencode arch=compute_80,code=sm_80")\n',
            "if(NOT USE_ROCM)\n"
            '  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -gencode arch=compute_80,code=sm_80")\n'
            "endif()\n",
            "CMakeLists.txt",
        ),
        Case(
            'set(CMAKE_CUDA_FLAGS "-O3 -gencode=arch=compute_80,code=\\\\\\"sm_80,compute_80\\\\\\" \\\n'
            '  -lineinfo")\n',
            'if(USE_ROCM)\nset(CMAKE_CUDA_FLAGS "-O3 \\\n  -gline-tables-only")\nelse()\n'
            'set(CMAKE_CUDA_FLAGS "-O3 -gencode=arch=compute_80,code=\\\\\\"sm_80,compute_80\\\\\\" \\\n'
            '  -lineinfo")\nendif()\n',
            "CMakeLists.txt",
        ),
        Case("a.ptx: a.cu\n\tnvcc -ptx a.cu -o a.ptx\n", None, "Makefile"),
        Case("F += $(foreach sm,$(SMS),-gencode arch=compute_$(sm),code=sm_$(sm))\n", None, "Makefile"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield statements that hold such options."""
    for one in flags(file):
        known = translated([word.text for word in one.words], architecture=_ARCHITECTURE.get(file.kind or Kind.ENV, ""))
        manual = [other.manual for other in known if other.manual]
        if one.hidden:
            manual.append("nvcc options are inside a make function.")
        if not known and not manual:
            continue
        edits = () if manual else _edits(file, one, known)
        place = (one.words[known[0].first].start, one.words[known[-1].first].end) if known else (one.start, one.end)
        yield rewrite(
            file,
            place,
            "hipcc does not know these options." if not manual else manual[0],
            edits,
            remedy="Pass hipcc's options if USE_ROCM is set.",
        )


def _edits(file: TextFile, one: Flags, known: list[Translation]) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for other in known:
        start = one.words[other.first].start
        end = one.words[min(other.first + other.words, len(one.words)) - 1].end
        if not other.rocm:
            start = _before(file, start, one.start)
        edits.append(Edit(start, end, other.rocm.encode()))
    return tuple(edits)


def _before(file: TextFile, at: int, first: int) -> int:
    """Return where the blanks, or the semicolon, before an option that is left out begin."""
    while at > first and file.text[at - 1] in " \t":
        at -= 1
    return at - 1 if file.text[at - 1] == ";" else at
