"""Functions in files, and graphs as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rocmend.mlx.array import array
from rocmend.mlx.transforms import dot, exported, tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["FunctionExporter", "export_function", "export_to_dot", "exporter", "import_function"]


def export_function(
    file_or_callback: str | Callable[..., Any],
    fun: Callable[..., Any],
    *args: Any,
    shapeless: bool = False,
    metadata: str | None = None,
    **kwargs: Any,
) -> None:
    """Record one call of a function and write what was recorded to a file, or tell a callback of it.

    The file's format is our own; MLX itself cannot read it.

    Args:
        file_or_callback: path of the file, or a function that is called with a dictionary for each part.
        fun: takes arrays, returns an array or a list or tuple of arrays.
        args: positional arrays, or one tuple of them and one dictionary of keyword arrays.
        shapeless: the function can be called with other shapes of the same numbers of axes.
        metadata: kept beside the function in the file.
        kwargs: keyword arrays.

    Raises:
        ValueError: an argument or an output is no array, or ``metadata`` is given with a callback.
        NotImplementedError: an operation of the function cannot be written to a file.
    """
    if callable(file_or_callback):
        if metadata is not None:
            raise ValueError(
                "[export_function] The metadata argument is only supported when exporting to a file, not when using a "
                "callback."
            )
        exported.tell(file_or_callback, fun, args, kwargs)
        return
    exported.export_to(str(file_or_callback), fun, args, kwargs, shapeless=shapeless, metadata=metadata)


class FunctionExporter:
    """Records calls of one function and writes them to one file when it is closed. Made by ``exporter``."""

    def __init__(self, inner: exported.Exporter) -> None:
        self._inner = inner

    def close(self) -> None:
        """Write the file."""
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._inner.close()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Record one call."""
        self._inner.add(args, kwargs)


def exporter(
    file: str, fun: Callable[..., Any], *, shapeless: bool = False, metadata: str | None = None
) -> FunctionExporter:
    """Return what records calls of a function with different arguments and writes them to one file.

    Args:
        file: path of the file.
        fun: see ``export_function``.
        shapeless: see ``export_function``.
        metadata: see ``export_function``.
    """
    return FunctionExporter(exported.Exporter(file, fun, shapeless=shapeless, metadata=metadata))


def import_function(file: str, return_metadata: bool = False) -> Any:
    """Return the function in a file that ``export_function`` or ``exporter`` wrote.

    Args:
        file: path of the file.
        return_metadata: also return the text that was kept beside the function.

    Returns:
        A function of arrays, given one by one or as one tuple and one dictionary, which returns a tuple of arrays; with
        ``return_metadata`` a pair of it and a string.

    Raises:
        RuntimeError: there is no such file, or it is no exported function. Files of MLX itself cannot be read.
    """
    found = exported.Imported(file)

    def imported(*args: Any, **kwargs: Any) -> tuple[array, ...]:
        return found.call(args, kwargs)

    return (imported, found.metadata) if return_metadata else imported


def export_to_dot(file: Any, *args: Any, **kwargs: Any) -> None:
    """Write the graph that arrays are computed from in the DOT language.

    Args:
        file: path, or an object with ``write``.
        args: arrays and trees of arrays.
        kwargs: arrays by the names that they get in the picture.
    """
    names = {id(x._n): name for name, x in kwargs.items() if isinstance(x, array)}
    text = dot.drawn([x._n for x in tree.arrays_of([args, kwargs])], names)
    if hasattr(file, "write"):
        file.write(text)
    else:
        Path(file).write_text(text, encoding="utf-8")
