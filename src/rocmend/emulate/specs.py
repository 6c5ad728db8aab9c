"""Arguments of a kernel as they are written on a command line: ``f32[1024]=random``, ``i32=5``, ``null``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from rocmend.core.errors import UsageError

__all__ = ["FORMS", "argument_of"]

FORMS = "f32[1024]=random, i32[16,16]=arange, f16[64]=0, f32[64]=FILE.npy, u8[256] (unwritten), i32=5, f32=0.5, null"
"""The forms of an argument, for help and messages."""

_TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
_SPEC = re.compile(r"([fiu]\d+)(?:\[([\d, ]+)])?(?:=(.+))?")
_MAX_BYTES = 1 << 32


def argument_of(text: str, number: int) -> Any:
    """Return an argument: an array, a NumPy number, or None.

    Args:
        text: What was written.
        number: Which argument it is, from 0: the seed of random values.

    Raises:
        UsageError: It is not one of the forms, or the file cannot be read.
    """
    if text == "null":
        return None
    found = _SPEC.fullmatch(text)
    if found is None or found[1] not in _TYPES or (found[2] is None and found[3] is None):
        raise UsageError("--arg", f"{text!r} is no argument of a kernel.", next_step=f"Forms: {FORMS}.")
    kind = _TYPES[found[1]]
    try:
        if found[2] is None:
            number_type: Any = kind
            return number_type(float(found[3]) if found[1][0] == "f" else int(found[3], 0))
        shape = tuple(int(one) for one in found[2].split(","))
        return _array(shape, np.dtype(kind), found[3], number)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError("--arg", f"{text!r}: {error}.", next_step=f"Forms: {FORMS}.") from error


def _array(shape: tuple[int, ...], kind: np.dtype[Any], values: str | None, number: int) -> Any:
    count = int(np.prod(shape, dtype=object))
    if count * kind.itemsize > _MAX_BYTES:
        raise ValueError(f"{count * kind.itemsize} bytes are too many")
    if values is None:
        return np.full(shape, 0, kind)
    if values == "random":
        drawn = np.random.default_rng(number).standard_normal(shape) * (1 if kind.kind == "f" else 50)
        return (drawn if kind.kind != "u" else abs(drawn)).astype(kind)
    if values == "arange":
        return np.arange(count).astype(kind).reshape(shape)
    if values.endswith(".npy"):
        read = np.load(Path(values), allow_pickle=False)
        if read.size != count:
            raise ValueError(f"the file has {read.size} elements, not {count}")
        return np.ascontiguousarray(read.astype(kind).reshape(shape))
    return np.full(shape, float(values) if kind.kind == "f" else int(values, 0), kind)
