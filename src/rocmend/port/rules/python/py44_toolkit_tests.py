"""A part of CUDA taken as the test for a GPU or a compiler.

## What it does

Finds tests of availability that look for nvcc, `nvidia-smi`, `CUDA_HOME` or `libcudart`: functions that answer True or
False, conditions, and a `try` that sets a flag.

## Why it matters

None of these exists with a ROCm build of PyTorch, so the answer is "no GPU": extensions are not built, tests are
skipped, and programs run on the CPU or stop, although `torch.cuda.is_available()` is True and hipcc is there. No error
says so.

## Use instead

`torch.utils.cpp_extension.ROCM_HOME is not None` for the compiler, `torch.cuda.is_available()` for the GPU. Both have
the right value on ROCm.

## Fix safety

A suggestion: the test becomes true on ROCm, so what depends on it runs there for the first time. Where the file goes on
to use the CUDA folder or program that it found, nothing is rewritten. A test that only guards the use of what it found
(`if CUDA_HOME: paths.append(CUDA_HOME + "/include")`), or that names ROCm too, is not reported.

## References

- `torch.utils.cpp_extension`, torch 2.13
- <https://github.com/nerfstudio-project/nerfacc>, whose kernels are not built where there is no nvcc
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import block_gate, condition_gate, insertion
from rocmend.port.python.toolkit import Probe, flag_of, predicate_of, probes, tested
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_PARTS = ("nvcc", "nvidia-smi", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "cudart", "_find_cuda_home", "libcuda", "nvcuda")
_ABOUT = frozenset(["cuda", "nvcc", "nvidia", "gpu", "gpus", "toolkit", "compiler"])
_PRESENT = re.compile(
    r"is|has|have|any|a|the|checks?|test|can|availab(?:le|ility)|exists|found|installed|present|detected|there|smi|home|"
    r"system|enabled|support(?:ed)?"
)
"""Words of a name that says of a toolkit or a GPU that it is there and nothing else: no version, not the reverse."""
_COMPILER = "from torch.utils.cpp_extension import ROCM_HOME\n\nreturn ROCM_HOME is not None"
_GPU = "import torch\n\nreturn torch.cuda.is_available()"


@rule(
    "PY44",
    "a part of CUDA taken as the test for a GPU or a compiler",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=tuple(word.encode() for word in _PARTS),
    sources=("torch.utils.cpp_extension, torch 2.13", "https://github.com/nerfstudio-project/nerfacc"),
    valid=(
        "import os\nfrom torch.utils.cpp_extension import CUDA_HOME\n\nif CUDA_HOME:\n    os.listdir(CUDA_HOME)\n",
        (
            "from torch.utils.cpp_extension import CUDA_HOME, ROCM_HOME\n\n"
            "if CUDA_HOME is not None or ROCM_HOME:\n    build()\n"
        ),
        (
            "from torch.utils.cpp_extension import CUDA_HOME\n\nif is_rocm():\n    a()\n"
            "elif CUDA_HOME is not None:\n    b()\n"
        ),
        "import shutil\n\nprogram = shutil.which('nvcc')\n",
        "import os\n\nhome = os.environ.get('CUDA_HOME', '/usr/local/cuda')\n",
    ),
    invalid=(
        Case(
            "from subprocess import call\n\n\ndef cuda_toolkit_available():\n    try:\n        call(['nvcc'])\n"
            "        return True\n    except FileNotFoundError:\n        return False\n",
            "from subprocess import call\n\nfrom package._rocm import is_rocm\n\n\ndef cuda_toolkit_available():\n"
            "    if is_rocm:\n        from torch.utils.cpp_extension import ROCM_HOME\n\n"
            "        return ROCM_HOME is not None\n    try:\n        call(['nvcc'])\n"
            "        return True\n    except FileNotFoundError:\n        return False\n",
        ),
        Case(
            'import shutil\n\n\ndef has_gpu():\n    """Look."""\n    return shutil.which("nvidia-smi") is not None\n',
            'import shutil\n\nfrom package._rocm import is_rocm\n\n\ndef has_gpu():\n    """Look."""\n    if is_rocm:\n'
            "        import torch\n\n        return torch.cuda.is_available()\n"
            '    return shutil.which("nvidia-smi") is not None\n',
        ),
        Case(
            "import torch\nfrom torch.utils.cpp_extension import CUDA_HOME\n\n"
            "if torch.cuda.is_available() and CUDA_HOME is not None:\n    build()\n",
            "import torch\nfrom torch.utils.cpp_extension import CUDA_HOME\n\nfrom package._rocm import is_rocm\n\n"
            "if torch.cuda.is_available() and (is_rocm or CUDA_HOME is not None):\n    build()\n",
        ),
        Case(
            "import os\n\nhome = os.environ.get('CUDA_HOME')\nif not home:\n    raise RuntimeError('no CUDA')\n",
            "import os\n\nfrom package._rocm import is_rocm\n\nhome = os.environ.get('CUDA_HOME')\n"
            "if not is_rocm and not home:\n    raise RuntimeError('no CUDA')\n",
        ),
        Case(
            "import ctypes\n\ntry:\n    ctypes.CDLL('libcudart.so')\n    HAS_CUDA = True\n"
            "except OSError:\n    HAS_CUDA = False\n",
            "import ctypes\n\nfrom package._rocm import is_rocm\n\nif is_rocm:\n    HAS_CUDA = True\nelse:\n    try:\n"
            "        ctypes.CDLL('libcudart.so')\n        HAS_CUDA = True\n    except OSError:\n"
            "        HAS_CUDA = False\n",
        ),
        Case(
            "import os\nfrom torch.utils.cpp_extension import CUDA_HOME\n\nif CUDA_HOME is None:\n"
            "    raise OSError('none')\n"
            "print(os.listdir(CUDA_HOME))\n",
            None,
        ),
        Case(
            "import os\n\nif os.system('nvidia-smi') != 0:\n    on_cpu()\n",
            "import os\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm and os.system('nvidia-smi') != 0:\n    on_cpu()\n",
        ),
    ),
)
def toolkit_tests(file: PythonFile) -> Iterable[Found]:
    """Find the tests; a function that has several of them is one finding."""
    seen: set[int] = set()
    for probe in probes(file):
        place, edits = _rewrite(file, probe)
        if place is None or id(place) in seen:
            continue
        seen.add(id(place))
        yield gated(
            file,
            place,
            edits,
            message=f"{probe.part} decides here whether CUDA is available. On ROCm it is missing, so the answer is no.",
            remedy="On ROCm, test torch.utils.cpp_extension.ROCM_HOME."
            if probe.compiler
            else "On ROCm, test torch.cuda.is_available().",
        )


def _rewrite(file: PythonFile, probe: Probe) -> tuple[ast.AST | None, tuple[Edit, ...]]:
    """Return the test that a probe is part of, and its rewrite; nothing for both where it is part of none."""
    if predicate := predicate_of(file, probe.node):
        edits = insertion(file, predicate.first, _COMPILER if probe.compiler else _GPU)
        return predicate.first, edits if _says_presence(predicate.node.name) else ()
    if flag := flag_of(file, probe.node):
        return flag.node, block_gate(file, flag.node, flag.node, f"{flag.name} = True") if flag.alone else ()
    if test := tested(file, probe):
        return test.node, () if test.used else condition_gate(file, test.node, rocm=test.available)
    return None, ()


def _says_presence(name: str) -> bool:
    words = {word for word in name.lower().split("_") if word}
    return bool(words & _ABOUT) and all(_PRESENT.fullmatch(word) for word in words - _ABOUT)
