"""CUDA that Bazel or Meson builds.

## What it does

Finds Bazel and Meson files that compile CUDA: `cuda_library`, sources that end in `.cu`, the language `cuda`.

## Why it matters

Nothing of these builds is rewritten, and what they define for the compiler is not read: the build for ROCm is missing,
and `port verify` leaves sources *undecided* that ask for macros.

## Use instead

A target beside it that compiles the same sources with hipcc and `-DUSE_ROCM`: a rule of `rules_hip` or a `genrule` in
Bazel, a `custom_target` in Meson.

## Fix safety

Nothing is rewritten.

## References

- <https://mesonbuild.com/Cuda-module.html>
- <https://github.com/bazel-contrib/rules_cuda>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_BUILDS = re.compile(
    r"^[^#\n]*?(?P<what>\bcuda_(?:library|binary|test|objects)\b|\.cu['\"]|['\"](?:unstable-)?cuda['\"])", re.MULTILINE
)


@rule(
    "BL18",
    "CUDA built by Bazel or Meson",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"cu",),
    paths=paths(Kind.BAZEL, Kind.MESON),
    sources=("https://mesonbuild.com/Cuda-module.html", "https://github.com/bazel-contrib/rules_cuda"),
    valid=("cc_library(name = 'a', srcs = ['a.cc'])\n# cuda_library\n", "executable('a', 'a.cpp')\n"),
    invalid=(
        Case('cuda_library(\n    name = "k",\n    srcs = ["k.cu"],\n)\n', None, "src/BUILD.bazel"),
        Case("project('a', 'cpp', 'cuda')\nexecutable('a', 'a.cu')\n", None, "meson.build"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield the first place that compiles CUDA."""
    found = _BUILDS.search(file.text) if file.kind in {Kind.BAZEL, Kind.MESON} else None
    if found is not None:
        yield Found(
            *found.span("what"),
            f"{'Bazel' if file.kind is Kind.BAZEL else 'Meson'} builds CUDA here: nothing of it is rewritten, and its "
            "macros are not read.",
            remedy="Add a target that compiles the sources with hipcc and -DUSE_ROCM.",
        )
