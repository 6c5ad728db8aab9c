"""Which language a file is read as, by its name and, for C and C++, by what it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from rocmend.port.records import Language
from rocmend.port.rule import Rule, rules, text

__all__ = ["Kind", "kind", "languages", "named", "uses_cuda"]

_CUDA = (".cu", ".cuh", ".cu.h", ".cu.cc", ".cu.cpp")
_HOST = (".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".inc", ".ipp", ".tpp")
_PYTHON = (".py", ".pyw", ".ipynb")

_USES_CUDA = re.compile(
    rb"__global__|__device__|__shared__|__launch_bounds__|__CUDA|\bCUDA|USE_CUDA|\bWARP_SIZE|\bwarpSize\b"
    rb"|\b__(?:shfl|ballot|any|all|activemask|syncwarp|match_any|match_all|uni_sync|reduce_(?:add|min|max|and|or|xor)_sync)(?:_|\b)"
    rb"|%laneid|\b(?:threadIdx|blockIdx)\b|\btiled_partition\b|\bcoalesced_threads\b"
    rb"|\bcu(?:da|blas|dnn|fft|rand|sparse|solver|tensor)(?:[A-Z_.:/]|Lt)|\bnccl[A-Z]|\bcub(?:::|/)|\bthrust(?:::|/)"
    rb"|\bcooperative_groups|\bnvtx|\bkCUDA\b|\bcu[A-Z][a-z]+[A-Z]\w*\("
    rb"|#[ \t]*include[ \t]*(?:<(?:(?:builtin|device|driver|library|surface|texture|vector)_types|channel_descriptor"
    rb"|(?:crt/)?host_(?:defines|config)|math_constants|\w+_functions|sm_\d\d_\w+|mma|nppi?|optix|NvInfer|nccl)\.h(?:pp)?>"
    rb"|[<\"](?:cuComplex\.h|device_launch_parameters\.h|nv\w+|nccl\.h|cut(?:e|lass)/))"
)


class Kind(tuple[Language, ...]):
    """The languages whose rules read a file, the one it is written back as first; empty where none does."""

    __slots__ = ()


_OURS = re.compile(rb"//[^\n]*\bGenerated(?: by `rocmend port`|; written anew by each port)")
_OURS_WITHIN_BYTES = 2048


def uses_cuda(data: bytes) -> bool:
    """Tell whether a C or C++ source names anything of CUDA: host code that does not is no matter of a port."""
    return _USES_CUDA.search(data) is not None


def named(path: str, paths: Iterable[str]) -> bool:
    """Tell whether a path has one of these endings or names, in any case.

    Args:
        path: Relative, with forward slashes.
        paths: Each an ending of a path (``.yaml``, ``requirements.txt``) or a pattern with ``*`` and ``?`` for the
            file's name or, where it has a slash, for the end of the path (``.github/workflows/*.yml``). One that begins
            with a slash is a whole name.
    """
    return _pattern(tuple(paths)).search(path.lower()) is not None


@cache
def _pattern(paths: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for all: a project has many files, and rules name many endings."""
    parts = []
    for path in paths:
        want = path.lower()
        if want.startswith("/"):
            parts.append("(?:^|/)" + re.escape(want[1:]))
            continue
        if "*" not in want and "?" not in want:
            parts.append(re.escape(want))
            continue
        parts.append("(?:^|/)" + _glob(want))
    return re.compile(rf"(?:{'|'.join(parts)})\Z" if parts else r"(?!)", re.DOTALL)


def _glob(want: str) -> str:
    """Return a path's pattern as an expression in which a star never goes back: a person's may have any number."""
    any_sign = "." if "/" in want else "[^/]"
    first, *middle = (
        "".join(any_sign if sign == "?" else re.escape(sign) for sign in part) for part in want.split("*")
    )
    if not middle:
        return first
    last = middle.pop()
    return first + "".join(f"(?>{any_sign}*?{part})" for part in middle if part) + f"{any_sign}*{last}"


@cache
def _text_paths() -> tuple[str, ...]:
    return tuple(sorted({path for _, rule in text for path in rule.paths}))


def kind(path: str) -> Kind | None:
    """Return what a name says about a file's languages; None for C and C++, whose content decides."""
    low = path.lower()
    below = (Language.TEXT,) if named(path, _text_paths()) else ()
    if low.endswith(_PYTHON):
        return Kind((Language.PYTHON, *below))
    if low.endswith(_CUDA):
        return Kind((Language.CUDA, *below))
    if low.endswith(_HOST):
        return None
    return Kind(below)


def languages(path: str, data: bytes) -> Kind:
    """Return the languages whose rules read a file, the one it is written back as first; empty where none does."""
    by_name = kind(path)
    if by_name is not None and Language.CUDA not in by_name:
        return by_name
    if _OURS.search(data, 0, _OURS_WITHIN_BYTES):  # a header that a port gave the project
        return Kind()
    if by_name is not None:
        return by_name
    below = (Language.TEXT,) if named(path, _text_paths()) else ()
    return Kind((Language.CUDA, *below)) if uses_cuda(data) else Kind(below)


def wanted(language: Language, path: str, data: bytes) -> list[Rule]:
    """Return the rules of a language that can find something in a file: a file without their triggers is not parsed."""
    return [
        rule
        for rule in rules(language)
        if (language is not Language.TEXT or named(path, rule.paths))
        and (not rule.triggers or any(trigger in data for trigger in rule.triggers))
    ]
