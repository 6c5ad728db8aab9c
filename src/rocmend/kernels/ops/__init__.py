"""The ops: one folder each, in the folder of its family."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def folders() -> dict[str, Path]:
    """Find the folder of each op.

    Returns:
        Op name to folder: ``rms_norm`` to ``…/ops/rowwise/rms_norm``.
    """
    return {path.parent.name: path.parent for path in sorted(Path(__file__).parent.glob("*/*/__init__.py"))}
