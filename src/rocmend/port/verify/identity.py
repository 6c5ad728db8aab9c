"""Level 1: without ROCm, every file of the port is the original, and the way back leads to the original bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from rocmend.core.beneath import Beneath
from rocmend.port.classify import languages
from rocmend.port.git import apply_patch
from rocmend.port.languages import identity_broken
from rocmend.port.packages import Reaches
from rocmend.port.records import Language
from rocmend.port.state import INVERSE, MAX_TOTAL_BYTES
from rocmend.port.verify.job import Job, Part
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run

__all__ = ["run"]

_HOW = {
    Language.CUDA: "without USE_ROCM it is byte-identical to the original",
    Language.PYTHON: "with is_rocm folded to False its syntax tree is identical to the original's",
    Language.TEXT: "without its ROCm part it is byte-identical to the original",
}


def run(job: Job) -> Level:
    """Prove every file that the port changed, then the inverse patch that it keeps."""
    if not job.generations:
        return not_run("no port was applied: there is no original to compare with")
    parts = job.parts
    evidence = []
    reaches = Reaches(job.root)
    for done, part in enumerate(parts):
        job.tell("identity", done, len(parts))
        evidence.append(_file(part, reaches))
    evidence += _inverse(job)
    job.tell("identity", len(parts), len(parts))
    changed = sum(part.before is not None for part in parts)
    broken = sum(one.outcome is Outcome.BROKEN for one in evidence)
    summary = f"{changed} changed and {len(parts) - changed} added files"
    return concluded(evidence, f"{summary}: {broken or 'none'} differ{'s' if broken == 1 else ''} for NVIDIA.")


def _file(part: Part, reaches: Reaches) -> Evidence:
    since = "edited since the port; " if part.edited else ""
    if part.after is None:
        if part.before is None:
            return Evidence(part.path, Outcome.NOTE, "added by the port, but missing now")
        return Evidence(part.path, Outcome.BROKEN, "changed by the port, but missing now")
    if part.before is None:
        return Evidence(part.path, Outcome.NOTE, f"{since}added by the port: there is no original to compare with")
    kinds = languages(part.path, part.before) or languages(part.path, part.after)
    language = kinds[0] if kinds else Language.TEXT
    reach = reaches.of(part.path, part.before).module if language is Language.PYTHON else ""
    reason = identity_broken(language, part.path, part.before, part.after, reach)
    if reason is None:
        return Evidence(part.path, Outcome.HOLDS, since + _HOW[language])
    return Evidence(
        part.path, Outcome.BROKEN, f"{since}{reason}. Put the change behind a ROCm guard, or run `rocmend port undo`."
    )


def _inverse(job: Job) -> Iterator[Evidence]:
    """Apply the inverse patches to a copy and compare it with the originals."""
    edited = [part.path for part in job.parts if part.edited]
    if edited:
        detail = f"{edited[0]} was edited after the port, so the inverse patch was not checked"
        yield Evidence("inverse.patch", Outcome.NOTE, detail)
        return
    if shutil.which("git") is None:
        yield Evidence(
            "inverse.patch", Outcome.UNKNOWN, "git is not installed, and is needed to apply the patch: install git"
        )
        return
    folder = job.scratch()
    copy = Beneath(folder)
    for part in job.parts:
        if part.after is not None:
            copy.put(part.path, part.after)
    for generation in reversed(job.generations):
        try:
            data = job.tree.read(f"{generation.folder}/{INVERSE}", MAX_TOTAL_BYTES)
        except FileNotFoundError:
            yield Evidence(f"{generation.name}/{INVERSE}", Outcome.BROKEN, "the patch is missing")
            return
        if not data:
            continue
        patch = job.scratch() / INVERSE
        patch.write_bytes(data)
        said = apply_patch(folder, patch)
        if not said.ok:
            detail = f"git cannot apply it: {said.stderr.strip()[-300:] or said.ending}"
            yield Evidence(f"{generation.name}/{INVERSE}", Outcome.BROKEN, detail)
            return
    wrong = [part.path for part in job.parts if not _is(folder / part.path, part.before)]
    if wrong:
        yield Evidence(wrong[0], Outcome.BROKEN, "the inverse patch does not restore the original bytes")
    else:
        yield Evidence("inverse.patch", Outcome.HOLDS, "applied to a copy, it restores every file byte for byte")


def _is(path: Path, data: bytes | None) -> bool:
    return not path.exists() if data is None else path.is_file() and path.read_bytes() == data
