"""Indexing, as the methods of ``array`` use it."""

from __future__ import annotations

from rocmend.mlx.ops.index_read import getitem
from rocmend.mlx.ops.index_write import ArrayAt, put, setitem

# ``ArrayAt`` is made public where it is defined
__all__: list[str] = []
_exported = (ArrayAt, getitem, put, setitem)
