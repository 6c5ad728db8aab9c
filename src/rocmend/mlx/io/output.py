"""Where arrays are written to."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.evaluate import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocmend.mlx.array import array

__all__ = ["bytes_of", "opened"]


@contextlib.contextmanager
def opened(file: Any, extension: str, op: str) -> Iterator[Any]:
    """Open what a function was asked to write to.

    A file is written beside the one it replaces and takes its place at the end: arrays that were loaded from the old
    one, and lie in it, stay what they were.

    Args:
        file: a path, to which ``extension`` is added if it does not end in it, or a file object opened for writing.
        extension: ``.npy`` and so on.
        op: name of the function that writes, for errors.

    Raises:
        RuntimeError: the file cannot be written.
        ValueError: ``file`` is neither.
    """
    if not isinstance(file, str | os.PathLike):
        if not hasattr(file, "write"):
            raise ValueError(f"[{op}] Input must be a file-like object opened in binary mode, or string")
        yield file
        return
    name = os.fspath(file)
    path = Path(name if name.endswith(extension) else name + extension)
    path = Path(os.path.realpath(path))
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # a pipe, a device
            with path.open("wb") as out:
                yield out
            return
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with beside.open("xb") as out:
                yield out
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise RuntimeError(f"[{op}] Failed to write {path}: {error.strerror}.") from error


def bytes_of(x: array) -> memoryview:
    """Return an array's elements as bytes, little-endian, the last axis varying fastest; computes it."""
    tensor = value(x._n).detach().resolve_conj().resolve_neg().contiguous().cpu()
    if not tensor.numel():
        return memoryview(b"")
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
