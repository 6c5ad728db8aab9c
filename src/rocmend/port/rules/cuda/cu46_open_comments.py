"""A comment of an earlier port that is still open.

What it does:
  Finds the comments `ROCM CU16: …` that a port wrote before code that only ROCm compiles.

Why it matters:
  The code under it had to be ported by hand. Rules may not see it any more, since its names are ROCm's now: only the
  comment shows that it is not done. Where a rule still reports it, or the port's own record does, it counts once.

Use instead:
  Do what the comment says, then remove it. Or write `// rocmend: ignore[CU16] reason` in its place.

Fix safety:
  Nothing is rewritten.

References:
  `rocmend port --explain` with the id in the comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_MARK = re.compile(rb"//\s*ROCM ([A-Z]{2}\d{2}): ([^\r\n]*)")
_NEXT = re.compile(rb"//   (?! )([^\r\n]*)")
"""A long comment goes on in lines that are indented further."""


def _whole(file: CudaFile, number: int, text: bytes) -> tuple[bytes, int]:
    """Return the text of a comment with the lines that it goes on in, and where it ends."""
    end = file.comments[number].end
    for other in file.comments[number + 1 :]:
        goes_on = _NEXT.match(file.data, other.start, other.end)
        if goes_on is None or file.data[end : other.start].strip():
            break
        text, end = text.rstrip() + b" " + goes_on[1], other.end
    return text.rstrip(), end


@rule(
    "CU46",
    "Open comment of an earlier port",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"// ROCM ",),
    sources=("measured: `rocmend port` writes them",),
    valid=("// ROCM is what it is called.\nint x;\n",),
    invalid=(
        Case(
            "#ifdef USE_ROCM\n// ROCM CU16: fragments of mma.h have another layout.\n#endif\n#include <mma.h>\n", None
        ),
        Case("#ifdef USE_ROCM\n// ROCM CU43: a kernel is launched.\nk();\n#else\nk2();\n#endif\n", None),
    ),
)
def open_comments(file: CudaFile) -> Iterator[Found]:
    """Yield the comments, also those of findings that their rule still reports: these are counted once."""
    for number, comment in enumerate(file.comments):
        mark = _MARK.match(file.data, comment.start, comment.end)
        branch = file.branch_at(comment.start)
        if mark is None or branch is None or branch.nvidia is not False:
            continue
        text, end = _whole(file, number, mark[2])
        told, name = text.decode("utf-8", "replace"), mark[1].decode()
        yield Found(
            comment.start,
            end,
            f"{name} is still open: {told}",
            remedy=f"Port the code, then remove it (`rocmend port --explain {name}` says how); or put "
            f"`// rocmend: ignore[{name}] reason` in its place.",
        )
