"""What was compiled before: a small file per specialization, found again by what decides the code."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic
from rocmend.core.private import cache_folder
from rocmend.kernels.compiled.measure import FORMAT, Measured
from rocmend.kernels.compiled.spec import Spec


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What compiling a specialisation came to.

    Attributes:
        measured: Figures of the code; None where there is none.
        error: Why there is none.
    """

    measured: Measured | None = None
    error: str = ""


_MAX_BYTES = 16 << 20


class Cache:
    """Results in files below a folder.

    Args:
        folder: None for ``compiled`` in the user's cache folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or cache_folder("compiled")) / f"v{FORMAT}"

    def _path(self, spec: Spec) -> Path:
        key = spec.key
        return self.folder / key[:2] / f"{key[2:40]}.json"

    def find(self, spec: Spec) -> Result | None:
        """Return the kept result, or None; also where its file cannot be read."""
        try:
            return read_json(self._path(spec), Result, max_bytes=_MAX_BYTES)
        except (OSError, DataError):
            return None

    def keep(self, spec: Spec, result: Result) -> None:
        """Keep a result; a folder that cannot be written costs only time."""
        with contextlib.suppress(OSError):
            write_atomic(self._path(spec), msgspec.json.encode(result), private=True)
