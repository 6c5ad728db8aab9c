"""Triton's own cache: libraries that it compiled and loads again, so it must be a folder that only we can write to."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from rocmend.core.files import make_private
from rocmend.core.places import expanded
from rocmend.core.private import cache_folder, untrusted

log = logging.getLogger("rocmend.kernels")

VARIABLE = "TRITON_CACHE_DIR"


def use_trusted_cache() -> None:
    """Have Triton, in this process and those that it starts, use another cache where others can write to its own."""
    try:
        folder = _folder()
        if os.environ.get(VARIABLE):  # it may lie in a shared folder such as /tmp: made before anybody else does
            make_private(folder)
        problem = untrusted(folder)
    except (OSError, RuntimeError):
        return  # there is none; what that means is Triton's to say
    if problem:
        other = cache_folder("code", "triton-cache")
        os.environ[VARIABLE] = str(other)
        log.warning(
            "[%s] Triton's cache %s is not used: %s. Another user could have put code there that would run as you. "
            "%s is used instead.",
            VARIABLE,
            folder,
            problem,
            other,
        )


def _folder() -> Path:
    """Source: https://github.com/triton-lang/triton, python/triton/knobs.py, ``cache_knobs``."""
    named = os.environ.get(VARIABLE)
    if named:
        return expanded(named, VARIABLE).absolute()
    return (
        expanded(os.environ.get("TRITON_HOME") or "~", VARIABLE, f"Set {VARIABLE} to a folder.") / ".triton" / "cache"
    )
