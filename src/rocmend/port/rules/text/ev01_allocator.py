"""`max_split_size_mb` together with expandable segments in the environment.

## What it does

Finds allocator settings (`PYTORCH_CUDA_ALLOC_CONF`, `PYTORCH_HIP_ALLOC_CONF`, `PYTORCH_ALLOC_CONF`) in scripts, images
and settings that combine `expandable_segments:True` with `max_split_size_mb`.

## Why it matters

With expandable segments, a split limit prevents reuse of freed blocks: reserved memory grew by 16 GB, and on gfx1201
a live tensor was read back as zeros.

## Use instead

`expandable_segments:True` alone.

## Fix safety

Safe: the limit is a hint against fragmentation, which expandable segments make unnecessary.

## References

- <https://github.com/pytorch/pytorch/issues/123548>
- <https://github.com/ROCm/ROCm/issues/6603>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import paths
from rocmend.port.build.variables import KINDS
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}
_LIMIT = re.compile(
    r"max_split_size_mb[ ]*:[ ]*[0-9]+[ ]*(?:,[ ]*)?|,[ ]*max_split_size_mb[ ]*:[ ]*[0-9]+(?=[\"'\s]|$)"
)
_LAST = re.compile(r",[ ]*max_split_size_mb[ ]*:[ ]*[0-9]+[ ]*(?=[\"'\s]|$)")
_EXPANDABLE = re.compile(r"expandable_segments[ ]*:[ ]*True", re.IGNORECASE)


@rule(
    "EV01",
    "max_split_size_mb with expandable segments",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"max_split_size_mb",),
    paths=paths(*KINDS),
    sources=("https://github.com/pytorch/pytorch/issues/123548", "https://github.com/ROCm/ROCm/issues/6603"),
    valid=(
        "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128\n",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False,max_split_size_mb:128\n",
    ),
    invalid=(
        Case(
            'export PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128,expandable_segments:True"\n',
            'if [ -n "${USE_ROCM:-}" ]; then\n'
            '  export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"\nelse\n'
            '  export PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128,expandable_segments:True"\n'
            "fi\n",
            "run.sh",
        ),
        Case(
            "FROM a\nENV PYTORCH_ALLOC_CONF=expandable_segments:True,max_split_size_mb:64 B=1\n",
            "FROM a\nENV PYTORCH_ALLOC_CONF=expandable_segments:True B=1\n",
            "Dockerfile",
        ),
        Case('env:\n  PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:64"\n', None, "job.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield allocator settings that hold both."""
    for setting in file.settings:
        written = file.text[setting.start : setting.end]
        if setting.name not in _NAMES or setting.settled or not _EXPANDABLE.search(written):
            continue
        match = _LAST.search(written) or _LIMIT.search(written)
        if match is None:
            continue
        edit = Edit(setting.start + match.start(), setting.start + match.end(), b"")
        yield rewrite(
            file,
            (setting.name_start, setting.end),
            f"{setting.name} limits block splitting in expandable segments.",
            (edit,),
            remedy="Omit max_split_size_mb on ROCm.",
        )
