"""Level 2: nothing that only CUDA has is left on the ROCm side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from rocmend.core.units import count_text
from rocmend.port.analyse import analyse
from rocmend.port.build.beside import settled
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.names import hip_names, no_counterpart
from rocmend.port.nesting import NestingError
from rocmend.port.records import Analysis, Issue, Language
from rocmend.port.records import Outcome as Rewrite
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded

__all__ = ["run"]

_OF_CUDA = re.compile(
    rb"(?:cuda[A-Z]\w*|CUDA_R_\w+|CUDA_C_\w+|cu(?:blas|dnn|fft|rand|sparse|solver)[A-Z]\w*|curand_\w+|cudnn_frontend"
    rb"|CU(?:BLAS|BLASLT|DNN|FFT|RAND|SPARSE|SOLVER)_\w+|CU_[A-Z]\w*|cu(?:Ctx|Device|Event|Func|Init|Launch|Link|Mem"
    rb"|Module|Occupancy|Stream|Tex)\w*|nvrtc[A-Z]\w*|NVRTC_\w+|nvtx[A-Z]\w*|nvml[A-Z]\w*|cudaError|__nv_\w+)\Z"
)


def run(job: Job) -> Level:
    """Run the rules again, and look at the names that the ROCm side uses."""
    sources = job.sources
    analysis = analyse(job.root, targets=job.targets, cache=job.cache)
    evidence = list(_rules(job, analysis))
    unread = {file.path for file in analysis.files if file.skipped}  # what a reader gave up on is not tried here again
    files: dict[str, CudaFile] = {}
    for path in sorted(sources.keys() - unread):
        file = CudaFile(path, sources[path])
        try:
            file.functions, file.branches  # noqa: B018  worked out now, and kept
        except NestingError as error:  # a source that no rule reads, for ROCm alone
            evidence.append(Evidence(path, Outcome.UNKNOWN, f"it could not be read: {error}"))
        else:
            files[path] = file
    defined = _defined(files.values())
    for done, path in enumerate(files):
        job.tell("static", done, len(files))
        evidence += _names(path, files, defined)
    job.tell("static", len(files), len(files))
    looked = sum(analysis.looked_at.values())
    broken = [one for one in evidence if one.outcome is Outcome.BROKEN]
    places = sum("rule" in one.data for one in broken)
    parts = [
        f"{count_text(places, 'place')} still to be ported" if places else "",
        f"{count_text(len(broken) - places, 'CUDA-only name')} left" if len(broken) > places else "",
    ]
    unknown = sum(one.outcome is Outcome.UNKNOWN for one in evidence)
    rest = ", ".join(filter(None, parts)) or "no CUDA-only construct left"
    return concluded(
        evidence,
        f"{count_text(looked, 'file')} read: {rest}" + (f", {unknown} could not be checked." if unknown else "."),
    )


# -- the rules again ---------------------------------------------------------------------------------------------------


def _rules(job: Job, analysis: Analysis) -> Iterator[Evidence]:
    root = job.root
    for file in analysis.files:
        if file.unread:
            yield Evidence(file.path, Outcome.UNKNOWN, f"it could not be read: {file.skipped}")
        done = settled(root, file.path, file.issues)
        copied = file.language is Language.CUDA and _has_copy(job, file.path)
        for one in file.issues:
            if one.outcome is Rewrite.NOTE or one in done or (copied and one.outcome is not Rewrite.MANUAL):
                continue  # what is rewritten is so in the copy, and not in the original
            yield _issue(one)


def _has_copy(job: Job, path: str) -> bool:
    """Tell whether the ROCm side of a source is a file of its own, beside the original."""
    copy = PurePosixPath(job.beside) / path
    return bool(job.beside) and any(str(one) in job.sources for one in (copy, copy.with_suffix(".hip")))


def _issue(issue: Issue) -> Evidence:
    what = _sentence(f"{issue.rule}: {issue.message}")
    data = {"rule": issue.rule}
    if issue.outcome is Rewrite.SUGGEST:
        detail = f"{what} A rewrite is suggested: `rocmend port --diff --suggestions` shows it."
        return Evidence(issue.path, Outcome.NOTE, detail, issue.line, data=data)
    rest = _sentence(issue.remedy) if issue.outcome is Rewrite.MANUAL else "`rocmend port --apply` rewrites it."
    return Evidence(issue.path, Outcome.BROKEN, " ".join(filter(None, (what, rest))), issue.line, data=data)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?:" else f"{text}."


# -- names -------------------------------------------------------------------------------------------------------------


def _defined(files: Iterable[CudaFile]) -> frozenset[bytes]:
    """Return the names that the project itself defines: by macros (the compatibility header's too) and functions."""
    found: set[bytes] = set()
    for file in files:
        found.update(file.macros)
        found.update(function.name.text for function in file.functions)
    return frozenset(found)


def _declared(name: bytes, file: CudaFile, at: int, files: Iterable[CudaFile]) -> bool:
    """Tell whether a name is a variable of the project: ``cudaStatus``, ``cublas_handle`` in a header of its own."""
    if file.declaration_of(name, at) is not None:
        return True
    return any(one.declaration_of(name, len(one.data)) is not None for one in files if name in one.data)


def _names(path: str, files: Mapping[str, CudaFile], defined: frozenset[bytes]) -> Iterator[Evidence]:
    """Yield the names of CUDA's interfaces that the ROCm side of a file uses and nothing translates, each once."""
    known, nothing = hip_names(), no_counterpart()
    file = files[path]
    told: set[bytes] = set()
    for token in file.tokens:
        text = token.text
        if token.kind != Kind.NAME or text in told or text in defined or text in known:
            continue
        if not (text in nothing or _OF_CUDA.match(text)) or not file.on_rocm(token.start):
            continue
        told.add(text)
        if text not in nothing and _declared(text, file, token.end, files.values()):
            continue
        name = text.decode("ascii", "replace")
        if text in nothing:
            detail = f"{name} is CUDA-only and has no HIP equivalent: guard it, or write a ROCm version"
            yield Evidence(path, Outcome.BROKEN, detail, file.line_of(token.start))
        else:
            detail = f"{name} looks like a CUDA name with no known HIP equivalent: check whether HIP has one"
            yield Evidence(path, Outcome.UNKNOWN, detail, file.line_of(token.start))
