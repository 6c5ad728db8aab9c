"""Whether PyTorch's build compiles all CUDA of a project: only then are names that it translates left alone."""

from __future__ import annotations

import pytest

from rocmend.port.classify import languages
from rocmend.port.torch_build import compiles_all_cuda
from rocmend.port.traits import traits

IMPORT = "from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CppExtension\n"
CUDA = IMPORT + 'setup(ext_modules=[CUDAExtension("e", ["k.cu"], extra_compile_args={"nvcc": ["-O3"]})])\n'
CHOSEN = IMPORT + 'extension = CUDAExtension if torch.cuda.is_available() else CppExtension\nsetup(extension("e", s))\n'
PLAIN = IMPORT + 'setup(ext_modules=[CppExtension("e", ["a.cpp"], extra_objects=["k.o"])])\n'
KERNEL = "#include <cub/cub.cuh>\n__global__ void k() { typedef cub::BlockReduce<int, 64> Reduce; }\n"


def _compiled(**files: str) -> bool:
    seen = []
    for name, text in files.items():
        path = name.replace("__", "/").replace("_dot_", ".")
        data = text.encode()
        seen.append((path, traits(languages(path, data)[0], data)))
    return compiles_all_cuda(seen)


@pytest.mark.parametrize(
    "setup", [CUDA, CHOSEN, 'import torch.utils.cpp_extension as c\nc.load_inline("e", cuda_sources=s)\n']
)
def test_an_extension_of_torch_alone(setup: str) -> None:
    assert _compiled(setup_dot_py=setup, k_dot_cu=KERNEL)
    assert _compiled(setup_dot_py=setup, k_dot_cu=KERNEL, ci_dot_sh="pip install nvidia-cuda-nvcc\nnvcc\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build_dot_sh", "nvcc -c src/k.cu -o k.o\n"),
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
