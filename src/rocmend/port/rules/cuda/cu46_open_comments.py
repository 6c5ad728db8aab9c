"""A comment of an earlier port that is still open.

What it does:
  Finds the comments `ROCM CU16: …` that a port wrote before code that only ROCm compiles.

Why it matters:
  The code under it had to be ported by hand. It is not analysed again, since it is now ROCm code: only the comment
  shows that it is not done.

Use instead:
  Do what the comment says, then remove it.

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


@rule(
    "CU46",
    "Open comment of an earlier port",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"// ROCM ",),
    sources=("measured: `rocmend port` writes them",),
    valid=(
        "#ifdef USE_ROCM\n// ROCM CU16: ROCm has no mma.h.\n#endif\n#include <mma.h>\n",
        "// ROCM is what it is called.\nint x;\n",
    ),
    invalid=(Case("#ifdef USE_ROCM\n// ROCM CU43: a kernel is launched.\nk();\n#else\nk2();\n#endif\n", None),),
)
def open_comments(file: CudaFile) -> Iterator[Found]:
    """Yield the comments; one that stands alone is before shared code, where its rule speaks for itself."""
    for comment in file.comments:
        mark = _MARK.match(file.data, comment.start, comment.end)
        branch = file.branch_at(comment.start)
        if mark is None or branch is None or branch.nvidia is not False:
            continue
        if len(file.members(branch.group)) > 1:
            told = mark[2].decode("utf-8", "replace")
            yield Found(
                comment.start,
                comment.end,
                f"{mark[1].decode()} is still open: {told}",
                remedy="Do what the comment says, then remove it.",
            )
