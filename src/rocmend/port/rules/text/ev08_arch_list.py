"""`TORCH_CUDA_ARCH_LIST` in the environment.

## What it does

Finds scripts, images and settings that set `TORCH_CUDA_ARCH_LIST`.

## Why it matters

A ROCm build of PyTorch does not read it. It compiles extensions for `PYTORCH_ROCM_ARCH`, or else for all targets of
the PyTorch build, which takes long; in an image build no GPU can be detected.

## Use instead

`PYTORCH_ROCM_ARCH`, with the targets of the GPUs that the image is for: `docker build --build-arg
PYTORCH_ROCM_ARCH=gfx942`.

## Fix safety

Safe in scripts, where the variable is left unset. In images it is a suggestion, as the targets have to be named.

## References

- <https://docs.pytorch.org/docs/stable/cpp_extension.html>
- `torch.utils.cpp_extension._get_rocm_arch_flags`, torch 2.13
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.settings import Setting
from rocmend.port.build.variables import KINDS, dropped
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "EV08",
    "TORCH_CUDA_ARCH_LIST is set",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"TORCH_CUDA_ARCH_LIST",),
    paths=paths(*KINDS),
    sources=("torch.utils.cpp_extension._get_rocm_arch_flags, torch 2.13",),
    valid=("# export TORCH_CUDA_ARCH_LIST=8.0\nexport PYTORCH_ROCM_ARCH=gfx942\n",),
    invalid=(
        Case(
            'export TORCH_CUDA_ARCH_LIST="8.0;9.0"\npip install -e .\n',
            'if [ -n "${USE_ROCM:-}" ]; then\n  unset TORCH_CUDA_ARCH_LIST\nelse\n'
            '  export TORCH_CUDA_ARCH_LIST="8.0;9.0"\nfi\npip install -e .\n',
            "build.sh",
        ),
        Case(
            "FROM a\nENV TORCH_CUDA_ARCH_LIST='8.0+PTX'\n",
            "FROM a\nARG PYTORCH_ROCM_ARCH\nENV PYTORCH_ROCM_ARCH=${PYTORCH_ROCM_ARCH}\n",
            "Dockerfile",
        ),
        Case("FROM a\nARG TORCH_CUDA_ARCH_LIST=8.0\n", "FROM a\nARG PYTORCH_ROCM_ARCH\n", "Dockerfile"),
        Case("env:\n  TORCH_CUDA_ARCH_LIST: 8.0\n", None, ".github/workflows/a.yml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets the variable."""
    for setting in file.settings:
        if setting.name == "TORCH_CUDA_ARCH_LIST" and not setting.settled:
            yield rewrite(
                file,
                (setting.name_start, setting.end),
                "A ROCm build of PyTorch reads PYTORCH_ROCM_ARCH instead.",
                _edits(file, setting),
                remedy="Set PYTORCH_ROCM_ARCH where no GPU is present, as in an image build.",
                otherwise=Outcome.NOTE,
            )


def _edits(file: TextFile, setting: Setting) -> tuple[Edit, ...]:
    keyword = file.text[setting.whole[0] : setting.whole[0] + 3].upper()
    if file.kind is Kind.DOCKERFILE and setting.sole and keyword in {"ENV", "ARG"}:
        argument = "ARG PYTORCH_ROCM_ARCH"
        variable = f"{file.lines.newline}ENV PYTORCH_ROCM_ARCH=${{PYTORCH_ROCM_ARCH}}"
        return (Edit(*setting.whole, (argument + (variable if keyword == "ENV" else "")).encode()),)
    return dropped(file, setting, "a ROCm build of PyTorch reads PYTORCH_ROCM_ARCH instead")
