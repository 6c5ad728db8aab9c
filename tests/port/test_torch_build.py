"""Whether PyTorch's build compiles all CUDA of a project: only then are names that it translates left alone."""

from __future__ import annotations

import pytest

from rocmend.port.classify import languages
from rocmend.port.records import Language
from rocmend.port.torch_build import built_by_torch
from rocmend.port.traits import traits

IMPORT = "from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CppExtension\n"
CUDA = IMPORT + 'setup(ext_modules=[CUDAExtension("e", ["k.cu"], extra_compile_args={"nvcc": ["-O3"]})])\n'
CHOSEN = (
    IMPORT
    + """extension = CUDAExtension if torch.cuda.is_available() else CppExtension
setup(ext_modules=[extension("e", [os.path.join(here, "k.cu")])])
"""
)
PLAIN = IMPORT + 'setup(ext_modules=[CppExtension("e", ["a.cpp"], extra_objects=["k.o"])])\n'
KERNEL = "#include <cub/cub.cuh>\n__global__ void k() { typedef cub::BlockReduce<int, 64> Reduce; }\n"


def _built(files: dict[str, str]) -> frozenset[str]:
    data = {path: text.encode() for path, text in files.items()}
    kinds = {path: kind[0] for path, each in data.items() if (kind := languages(path, each))}
    seen = [(path, traits(kind, data[path])) for path, kind in kinds.items()]
    cuda = [path for path, kind in kinds.items() if kind is Language.CUDA]
    return built_by_torch(seen, cuda, lambda path: data.get(path, b""))


def _compiled(**files: str) -> bool:
    return "k.cu" in _built({name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()})


@pytest.mark.parametrize(
    "setup",
    [
        CUDA,
        CHOSEN,
        'import torch\ntorch.utils.cpp_extension.load("e", ["k.cu"])\n',
        'import torch.utils.cpp_extension as c\nc.load_inline("e", "", open("k.cu").read())\n',
        IMPORT + 'from glob import glob\nsetup(ext_modules=[CUDAExtension("e", glob("*.cu"))])\n',
    ],
)
def test_an_extension_of_torch_alone(setup: str) -> None:
    assert _compiled(setup_dot_py=setup, k_dot_cu=KERNEL)
    assert _compiled(setup_dot_py=setup, k_dot_cu=KERNEL, ci_dot_sh="pip install nvidia-cuda-nvcc\nnvcc\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build_dot_sh", "nvcc -c src/k.cu -o k.o\n"),
        ("BUILD_dot_bazel", 'cuda_library(name = "k", srcs = ["k.cu"])\n'),
        ("src__meson_dot_build", "shared_library('k', 'k.cu')\n"),
        ("src__Makefile", "k.o: k.cu\n\t$(NVCC) -c $<\n"),
        ("CMakeLists_dot_txt", "find_package(Torch)\nset(CMAKE_CUDA_STANDARD 17)\ncuda_add_library(k k.cu)\n"),
        ("jit_dot_py", 'import os\nos.system("nvcc -shared k.cu")\n'),
        ("call_dot_py", 'import subprocess\nsubprocess.run(["nvcc", "-c", "k.cu"])\n'),
        ("raw_dot_py", 'import cupy\ncupy.RawModule(code=open("k.cu").read())\n'),
        ("other_dot_cu", "#include <cub/cub.cuh>\nusing namespace cub;\n"),
        ("alias_dot_cu", "#include <cub/cub.cuh>\nnamespace c = cub;\n"),
    ],
)
def test_another_build_beside_it_or_names_that_it_does_not_translate(name: str, text: str) -> None:
    assert not _compiled(setup_dot_py=CUDA, k_dot_cu=KERNEL, **{name: text})


def test_an_import_and_an_extension_of_cpp_compile_no_cuda() -> None:
    assert not _compiled(setup_dot_py=PLAIN, k_dot_cu=KERNEL)
    assert not _compiled(setup_dot_py=IMPORT, k_dot_cu=KERNEL)


def test_only_what_an_extension_lists_and_includes() -> None:
    files = {
        "setup.py": CUDA,
        "k.cu": '#include "deep/both.cuh"\n' + KERNEL,
        "inc/deep/both.cuh": "__device__ int f();\n",
        "other/k.cu": KERNEL,
        "apart.cu": KERNEL,
        "apart.cuh": "__device__ int g();\n",
    }
    assert _built(files) == {"k.cu", "inc/deep/both.cuh"}
