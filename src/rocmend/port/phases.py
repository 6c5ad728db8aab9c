"""The phases of a port, which of them a project needs and why, and what is to be done in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from rocmend.core.units import count_text
from rocmend.port.records import Issue, Outcome
from rocmend.port.survey import Survey

__all__ = ["Estimate", "Phase", "estimate", "phase_of", "phases"]

_MOST_PATHS = 5


class Estimate(msgspec.Struct, frozen=True):
    """How much is to be done.

    Attributes:
        auto: Constructs that are rewritten.
        suggested: Constructs for which a rewrite is shown.
        manual: Constructs that are for a person.
        notes: Constructs that are worth knowing of.
    """

    auto: int = 0
    suggested: int = 0
    manual: int = 0
    notes: int = 0


class Phase(msgspec.Struct, frozen=True):
    """One phase.

    Attributes:
        number: From 0.
        title: What it is about.
        applies: Whether the project needs it.
        reason: Why, or why not.
        estimate: What was found that belongs to it.
        rules: The rules that found it.
        paths: Some of the files that it is about.
    """

    number: int
    title: str
    applies: bool
    reason: str
    estimate: Estimate
    rules: tuple[str, ...]
    paths: tuple[str, ...]


class _Verdict(NamedTuple):
    applies: bool
    reason: str


TITLES = (
    "Environment and dependencies",
    "ROCm detection and settings",
    "Source translation",
    "Wave size and architecture",
    "Build system",
    "Libraries",
    "torch.compile",
    "Graph capture",
    "Verification",
)

_DETECTION = 1

_BY_RULE = {
    **dict.fromkeys(("PY06", "PY07", "PY12", "PY20", "PY25", "PY27", "PY28", "PY30", "PY32", "PY35", "PY36"), 5),
    **dict.fromkeys(("CU16", "CU22", "CU24", "CU33"), 5),
    **dict.fromkeys(("PY01", "PY02", "PY03", "PY04", "PY05", "PY38", "PY39", "PY41", "DP06", "EV02"), 6),
    **dict.fromkeys(("PY17", "PY18"), 7),
    **dict.fromkeys(("PY26", "EV08", "PY40", "DP07", "BL02", "BL15"), 4),
    **dict.fromkeys(("PY19", "PY21", "PY22", "PY23", "PY24", "PY34", "PY37"), 3),
    **dict.fromkeys(("CU13", "CU19", "CU21", "CU25", "CU26"), 2),
    **dict.fromkeys(("CU15", "CU20"), 3),
}
_BY_BEGINNING = (("DP", 0), ("EV", 1), ("PY", 1), ("BL", 4), ("CU0", 3), ("CU1", 3), ("CU2", 3), ("CU3", 3), ("CU", 2))


def phase_of(rule: str) -> int:
    """Return the number of the phase that a rule belongs to."""
    known = _BY_RULE.get(rule)
    return known if known is not None else next((at for start, at in _BY_BEGINNING if rule.startswith(start)), 8)


def estimate(issues: Iterable[Issue]) -> Estimate:
    """Return how much issues are to do."""
    counted = Counter(issue.outcome for issue in issues)
    return Estimate(
        auto=counted[Outcome.AUTO],
        suggested=counted[Outcome.SUGGEST],
        manual=counted[Outcome.MANUAL],
        notes=counted[Outcome.NOTE],
    )


def phases(
    found: Survey, own_rocm: Sequence[str], issues: Sequence[Issue], cuda_packages: Sequence[str]
) -> tuple[Phase, ...]:
    """Return the phases of a project's port.

    Sources that nvcc compiles decide about phases 2 to 4: without any, there is nothing to translate, no wave size to
    get wrong outside of Triton, and no native build. What rules find counts where those decide otherwise.

    Args:
        found: What the project is made of.
        own_rocm: Files that are for ROCm, or tell it, already.
        issues: What rules found in it.
        cuda_packages: The packages among its dependencies that have no wheel for ROCm under that name.
    """
    by_phase: dict[int, list[Issue]] = {number: [] for number in range(len(TITLES))}
    for issue in issues:
        by_phase[phase_of(issue.rule)].append(issue)
    made = []
    for number, title in enumerate(TITLES):
        own = by_phase[number]
        verdict, paths = _VERDICTS[number](found, own, cuda_packages)
        if number == _DETECTION and own_rocm:
            count = count_text(len(own_rocm), "file is", "files are")
            verdict = _Verdict(True, f"{count} for ROCm already, or detect it; additions have to agree with that")
            paths = list(own_rocm)
        if own and not verdict.applies:
            verdict = _Verdict(True, f"{_many(own, 'construct')} of it found")
        shown = tuple(dict.fromkeys(paths or [issue.path for issue in own]))[:_MOST_PATHS]
        rules = tuple(sorted({issue.rule for issue in own}))
        made.append(Phase(number, title, verdict.applies, verdict.reason, estimate(own), rules, shown))
    return tuple(made)


_Decision = tuple[_Verdict, list[str]]


def _many(items: Sequence[object], singular: str) -> str:
    return f"{len(items)} {singular}{'' if len(items) == 1 else 's'}"


def _environment(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own
    words = "everything else depends on what is installed: a ROCm PyTorch must not be overwritten"
    if packages:
        shown = ", ".join(packages[:_MOST_PATHS]) + (" …" if len(packages) > _MOST_PATHS else "")
        words = f"it requires CUDA packages: {shown}"
    if found.uses("jax") and found.uses("torch"):
        words += "; of JAX and PyTorch, PyTorch's path is the one to port"
    return _Verdict(True, words), []


def _detection(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del found, own, packages
    return _Verdict(True, "every change is behind one flag, which has to be defined"), []


def _sources(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own, packages
    if found.cuda:
        others = len(found.cuda) - len(found.kernels)
        return _Verdict(
            True, _many(found.kernels, "CUDA source") + (f", and {others} other C++ that uses CUDA" if others else "")
        ), found.kernels
    return _Verdict(False, "it has no CUDA C++"), []


def _architecture(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del packages
    if found.kernels or found.cuda:
        return _Verdict(True, "kernels assume 32 lanes, but a wavefront has 32 (RDNA) or 64 (CDNA, GCN)"), []
    triton = found.uses("triton")
    if triton and own:
        return _Verdict(True, f"{_many(triton, 'file')} with Triton kernels, some of which assume NVIDIA's"), triton
    return _Verdict(False, "it has no CUDA C++" + ("; Triton kernels do not depend on lanes" if triton else "")), []


def _build(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own, packages
    extension = found.uses("extension")
    parts = [
        _many(files, name)
        for files, name in (
            (extension, "file with a PyTorch extension"),
            (found.cmake, "CMake file"),
            (found.make, "Makefile"),
        )
        if files
    ]
    if found.cuda and parts:
        return _Verdict(True, f"CUDA is built by {' and '.join(parts)}"), [*extension, *found.cmake, *found.make]
    if found.cuda:
        return _Verdict(True, "its CUDA sources have no known build"), []
    return _Verdict(False, "it builds no CUDA"), []


_LIBRARIES = ("flash-attn", "xformers", "transformer-engine", "apex", "tensorrt", "nvml", "cutlass", "nccl")


def _libraries(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own, packages
    used = [name for name in _LIBRARIES if found.by_trait.get(name)]
    if not used:
        return _Verdict(False, "it uses no known NVIDIA library"), []
    words = f"it uses {', '.join(used)}"
    if "cutlass" in used:
        words += "; CUTLASS has to be rewritten by hand, with composable_kernel or in Triton"
    if "flash-attn" in used:
        words += "; attention falls back from the vendor library to PyTorch's"
    return _Verdict(True, words), found.uses(*used)


def _compile(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own, packages
    files = found.uses("compile")
    if files:
        return _Verdict(True, f"{_many(files, 'file')} for torch.compile or Inductor"), files
    return _Verdict(False, "it compiles nothing with torch.compile"), []


def _graphs(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del own, packages
    files = found.uses("graphs")
    if files:
        words = f"{_many(files, 'file')} that capture graphs: HIP does not report illegal operations during capture"
        return _Verdict(True, words), files
    return _Verdict(False, "it captures no graphs; graphs pay off only if launches are the bottleneck"), []


def _verification(found: Survey, own: list[Issue], packages: Sequence[str]) -> _Decision:
    del found, own, packages
    return _Verdict(True, "rocmend port verify shows how far the port is proven"), []


_VERDICTS: tuple[Callable[[Survey, list[Issue], Sequence[str]], _Decision], ...] = (
    _environment,
    _detection,
    _sources,
    _architecture,
    _build,
    _libraries,
    _compile,
    _graphs,
    _verification,
)
