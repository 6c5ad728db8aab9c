"""Saving and loading arrays: ``.npy``, ``.npz``, ``.safetensors`` and ``.gguf``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream
from rocmend.mlx.array import array
from rocmend.mlx.io import gguf, npy, output, safetensors
from rocmend.mlx.io.source import Source

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from rocmend.mlx.device import Device, DeviceType, Stream

__all__ = ["load", "save", "save_gguf", "save_safetensors", "savez", "savez_compressed"]

_FORMATS = ("npy", "npz", "safetensors", "gguf")


def save(file: BinaryIO | str | Path, arr: array) -> None:
    """Write an array to a file in numpy's ``.npy`` format; computes it.

    Args:
        file: path, to which ``.npy`` is added if it does not end in it, or a file object opened for writing.
        arr: any shape and type; bfloat16 is written as ``<V2``, which numpy reads as two bytes an element.

    Raises:
        TypeError: ``arr`` is no array.
        RuntimeError: the file cannot be written.
    """
    if not isinstance(arr, array):
        raise TypeError(f"[save] expected an array, got {type(arr).__name__}.")
    with output.opened(file, ".npy", "save") as out:
        npy.write_npy(out, arr)


def savez(file: BinaryIO | str | Path, *args: array, **kwargs: array) -> None:
    """Write arrays to an uncompressed ``.npz`` file; computes them.

    Args:
        file: path, to which ``.npz`` is added if it does not end in it, or a file object opened for writing.
        args: arrays that are named ``arr_0``, ``arr_1`` and so on.
        kwargs: arrays by name.

    Raises:
        ValueError: a name is given twice.
        RuntimeError: the file cannot be written, or something given is no array.
    """
    _save_npz("savez", file, args, kwargs, compressed=False)


def savez_compressed(file: BinaryIO | str | Path, *args: array, **kwargs: array) -> None:
    """Write arrays to a compressed ``.npz`` file; otherwise as ``savez``."""
    _save_npz("savez_compressed", file, args, kwargs, compressed=True)


def _save_npz(op: str, file: Any, args: tuple[array, ...], named: dict[str, array], *, compressed: bool) -> None:
    arrays = dict(named)
    for at, x in enumerate(args):
        if f"arr_{at}" in arrays:
            raise ValueError(f"[{op}] Cannot use un-named variables and keyword arr_{at}")
        arrays[f"arr_{at}"] = x
    _checked(op, arrays)
    with output.opened(file, ".npz", op) as out:
        npy.write_npz(out, arrays, compressed=compressed)


def load(
    file: BinaryIO | str | Path,
    /,
    format: str | None = None,
    return_metadata: bool = False,
    *,
    stream: Stream | Device | DeviceType | None = None,
) -> array | dict[str, array] | tuple[dict[str, array], dict[str, Any]]:
    """Load what a file holds.

    Files are mapped into memory: an array is read when it is computed, and on the CPU it lies in the map itself where
    the file has it aligned. Quantized tensors of GGUF come in three, ``NAME.weight``, ``NAME.scales`` and
    ``NAME.biases``, in groups of 32; those of formats with no counterpart in float16.

    Args:
        file: path, or a file object opened for reading (not for GGUF).
        format: ``npy``, ``npz``, ``safetensors`` or ``gguf``; by the name's extension if None.
        return_metadata: give the file's metadata too (safetensors and GGUF).
        stream: where the arrays are to be.

    Returns:
        The array of a ``.npy`` file; else arrays by name; with ``return_metadata`` a pair of these and the metadata.

    Raises:
        ValueError: the format is not known, or has no metadata.
        RuntimeError: the file cannot be read, or is not what its format asks for.
    """
    if not isinstance(file, str | os.PathLike) and not hasattr(file, "read"):
        raise ValueError("[load] Input must be a file-like object opened in binary mode, or string")
    format = format if format is not None else _format_of(file)
    if format not in _FORMATS:
        raise ValueError(f"[load] Unknown file format {format}")
    if return_metadata and format in ("npy", "npz"):
        raise ValueError(f"[load] metadata not supported for format {format}")
    where = as_stream(stream)
    if format == "npz":
        return npy.read_npz(file, where)
    if format == "npy":
        return npy.read_npy(Source(file, "load"), where)
    found: tuple[dict[str, array], dict[str, Any]]
    if format == "safetensors":
        found = safetensors.read_safetensors(Source(file, "load_safetensors"), where)
    else:
        if not isinstance(file, str | os.PathLike):
            raise ValueError("[load_gguf] Input must be a string")
        if not os.path.exists(file):  # noqa: PTH110  a path of any kind
            raise ValueError(f"[load_gguf] Failed to open {os.fspath(file)}")
        found = gguf.read_gguf(Source(file, "load_gguf"), where)
    return found if return_metadata else found[0]


def _format_of(file: Any) -> str:
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else file.name
    _, dot, extension = str(name).rpartition(".")
    if not dot:
        raise ValueError("[load] Could not infer file format from extension")
    return extension


def save_safetensors(
    file: BinaryIO | str | Path, arrays: dict[str, array], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays to a file in the ``.safetensors`` format; computes them.

    Args:
        file: path, to which ``.safetensors`` is added if it does not end in it, or a file object opened for writing.
        arrays: arrays by name.
        metadata: strings by name.

    Raises:
        ValueError: the metadata holds something else than strings.
        RuntimeError: the file cannot be written, or something given is no array.
    """
    texts = metadata or {}
    if not all(isinstance(item, str) for pair in texts.items() for item in pair):
        raise ValueError("[save_safetensors] Metadata must be a dictionary with string keys and values")
    _checked("save_safetensors", arrays)
    with output.opened(file, ".safetensors", "save_safetensors") as out:
        safetensors.write_safetensors(out, arrays, texts)


def save_gguf(
    file: BinaryIO | str | Path, arrays: dict[str, array], metadata: dict[str, array | str | list[str]] | None = None
) -> None:
    """Write arrays to a file in the ``.gguf`` format; computes them.

    Args:
        file: path, to which ``.gguf`` is added if it does not end in it.
        arrays: arrays by name, float16, float32, int8, int16 or int32.
        metadata: numbers, strings and lists of them by name; numbers as arrays of at most one axis.

    Raises:
        ValueError: ``file`` is no path, or metadata of a type that the format does not have.
        RuntimeError: the file cannot be written, or an array is of a type that the format does not have.
    """
    if not isinstance(file, str | os.PathLike):
        raise ValueError("[save_gguf] Input must be a string")  # noqa: TRY004  MLX's type
    _checked("save_gguf", arrays)
    parts = gguf.encoded(arrays, metadata or {})
    with output.opened(file, ".gguf", "save_gguf") as out:
        for part in parts:
            out.write(part)


def _checked(op: str, arrays: dict[str, Any]) -> None:
    for name, x in arrays.items():
        if not isinstance(name, str) or not isinstance(x, array):
            raise RuntimeError(f"[{op}] expected arrays by name, got {type(x).__name__} for {name!r}.")  # noqa: TRY004  MLX's type
