"""Sources that are made to keep a reader busy: four times as much takes about four times as long, or is not read."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rocmend.port.look import Look, Task, look
from rocmend.port.rule import rules

KERNEL = "__global__ void k(int a) { __syncwarp(); }\n"
SMALL, LARGE = 10_000, 40_000
MOST = 6
"""Times as long for four times as much; a quadratic reader takes 16 times as long."""
LEAST_S = 0.05
"""Less than this is not told from noise."""
DEEP = " are nested more than 256 deep"

Builder = Callable[[int], str]


def repeated(unit: str, head: str = "", tail: str = "") -> Builder:
    return lambda size: head + unit * (size // len(unit)) + tail


def both(opening: str, closing: str) -> Builder:
    return lambda size: "".join(one * (size // (len(opening) + len(closing))) for one in (opening, closing))


def numbered(line: str, head: str = "", tail: str = "") -> Builder:
    return lambda size: head + "".join(line.replace("#", str(at)) for at in range(size // len(line))) + tail


CUDA: dict[str, Builder] = {
    "braces": repeated("{"),
    "parentheses": both("(", ")"),
    "conditionals": repeated("#if A\n"),
    "conditionals in pairs": both("#if A\n", "#endif\n"),
    "launches": repeated("<<<"),
    "open launches": repeated("k<<<1,"),
    "commas": repeated("a,"),
    "declarations": repeated("a=1, ", "int ", "b;"),
    "globals": repeated("__shared__ int a[1024];\n"),
    "one name": repeated("int i = 0; f(i);\n"),
    "macro's parameters": repeated("a,", "#undef A\n#define A(", "b) a\n"),
    "quotes": repeated("\\'"),
    "else and a body": repeated("#else\n{}\n", "#if A\n", "#endif\n"),
    "conditions of versions": repeated("#elif CUDA_VERSION >= 12000\n", "#if A\n", "#endif\n"),
    "architectures": repeated("#if __CUDA_ARCH__ >= 800\nint a;\n#endif\n"),
    "shuffles": repeated("a=__shfl_sync(0xffffffff, a, 1);", "__global__ void k(int a){", "}"),
    "barriers": repeated("if(threadIdx.x<a) return; __syncthreads();", "__global__ void k(int a){", "}"),
    "constants of constants": numbered("constexpr int a## = a# + a# + a# + a# + a# + a# + a# + a#;\n"),
}
PYTHON: dict[str, Builder] = {
    "statements": numbered("a# = 1\n"),
    "statements on one line": repeated("a;"),
    "gates": repeated("import pynvml\npynvml.nvmlInit()\n"),
    "unpacked": repeated("torch.compile(f, **o)\n", "o = {'mode': 'max-autotune'}\n"),
    "one variable": repeated("torch.compile(f, mode=m)\nm = 'max-autotune'\n"),
    "a body": repeated(" a = 1\n", "class A:\n"),
}
TEXT: dict[tuple[str, str], Builder] = {
    ("CMakeLists.txt", "variables"): repeated("${", "set(A ", ")"),
    ("CMakeLists.txt", "conditionals"): repeated("if(A)\n"),
    ("CMakeLists.txt", "packages"): repeated("find_package(CUDAToolkit REQUIRED)\n"),
    ("Makefile", "conditionals"): repeated("ifdef A\n"),
    ("a.sh", "packages"): repeated("torch==2.0 ", "pip install ", "\n"),
    ("a.sh", "packages of conda"): repeated("pytorch=2.0 ", "conda install ", "\n"),
    ("a.sh", "indexes"): repeated("export PIP_INDEX_URL=https://a/whl/rocm6\npip install torch\n"),
    ("a.sh", "if"): repeated("if "),
    ("a.sh", "conditionals"): repeated("if a; then\n"),
    ("a.sh", "redirections"): repeated(">"),
    ("a.sh", "sudo"): repeated("sudo "),
    ("a.json", "lists"): repeated("["),
}
FAMILIES = {
    **{f"CUDA, {name}": ("a.cu", KERNEL, built) for name, built in CUDA.items()},
    **{f"Python, {name}": ("a.py", "import torch, pynvml\n", built) for name, built in PYTHON.items()},
    **{f"{path}, {name}": (path, "", built) for (path, name), built in TEXT.items()},
}
NOT_READ = {
    "CUDA, braces": "brackets",
    "CUDA, parentheses": "brackets",
    "CUDA, conditionals": "conditionals",
    "CUDA, conditionals in pairs": "conditionals",
    "CMakeLists.txt, conditionals": "conditions",
    "Makefile, conditionals": "conditionals",
    "a.sh, if": "conditionals",
    "a.sh, conditionals": "conditionals",
    "a.json, lists": "lists and objects",
}


@cache
def triggers() -> str:
    """What makes all rules look at a file."""
    return " ".join(trigger.decode() for rule in rules() for trigger in rule.triggers)


def read(root: Path, family: str, size: int) -> tuple[float, Look]:
    """Look at a file of a family, and say how many seconds of a processor that took."""
    path, head, built = FAMILIES[family]
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    words = triggers()
    mark = "//" if path == "a.cu" else "#"
    place.write_text(f"{mark} {words}\n{head}{built(size)}" if path != "a.json" else f"{built(size)}\n{words}")
    gc.freeze()  # what other tests hold is not gone through at each collection
    try:
        start = time.process_time()
        seen = look(root, Task(path, 0, (0, 0, 0)), 1 << 20)
        return time.process_time() - start, seen
    finally:
        gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load the rules before anything is measured."""
    for family in ("CUDA, commas", "Python, statements", "Makefile, conditionals"):
        read(tmp_path_factory.mktemp("loaded"), family, 100)


@pytest.mark.parametrize("family", FAMILIES)
def test_time_grows_with_the_file(tmp_path: Path, family: str) -> None:
    small, _ = read(tmp_path, family, SMALL)
    large, seen = read(tmp_path, family, LARGE)
    if large > MOST * max(small, LEAST_S):  # once more, alone: the second measurement may have met a collection
        small, _ = read(tmp_path, family, SMALL)
        large, seen = read(tmp_path, family, LARGE)
    assert large <= MOST * max(small, LEAST_S)
    reason = seen.report.skipped if seen.report else ""
    assert reason == (NOT_READ[family] + DEEP if family in NOT_READ else "")


def test_what_compilers_take_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(KERNEL + both("{", "}")(2 * 256))
    seen = look(tmp_path, Task("a.cu", 0, (0, 0, 0)), 1 << 20)
    assert seen.report is not None
    assert not seen.report.skipped
