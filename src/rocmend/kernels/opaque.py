"""Functions that ``torch.compile`` does not trace: the graph breaks before such a function and continues after it.

Torch's own decorator imports its compiler, which takes a second, whether or not a program ever compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])
_frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)  # noqa: SLF001  as torch's decorator does


def opaque(function: Function) -> Function:
    """Mark a function so that torch's compiler traces neither it nor the functions that it calls."""
    marked: Any = function
    marked._torchdynamo_disable = True  # noqa: SLF001  how torch's own decorator marks them
    marked._torchdynamo_disable_msg = "rocmend launches kernels"  # noqa: SLF001
    strategy = getattr(_frames, "_FrameExecStrategy", None)
    action = getattr(_frames, "_FrameAction", None)
    if strategy is not None and action is not None:  # from torch 2.7 on; before, the functions that it calls are traced
        _frames.set_code_exec_strategy(marked.__code__, strategy(action.SKIP, action.SKIP))  # type: ignore[union-attr]
    return function
