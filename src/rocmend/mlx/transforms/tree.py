"""Trees: lists, tuples and dictionaries of arrays and of anything else, as MLX takes them.

A list is read and written through its indices and a dictionary through its items, so that an object that only behaves
like one (the state of the random generator, which is another one in each thread) works where one is expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["arrays_of", "fill", "flatten", "map_arrays", "prefix", "rebuild", "restore"]


def flatten(tree: Any, op: str | None = None) -> list[array]:
    """Return the arrays of a tree, in order.

    Args:
        tree: any value.
        op: whose argument it is, where only arrays are allowed in it; None: other leaves are passed over.

    Raises:
        ValueError: ``op`` is given and a leaf is no array.
    """
    if type(tree) is array:
        return [tree]
    found: list[array] = []
    _flatten(tree, op, found)
    return found


def _flatten(tree: Any, op: str | None, found: list[array]) -> None:
    if isinstance(tree, array):
        found.append(tree)
    elif isinstance(tree, list):
        for i in range(len(tree)):
            _flatten(tree[i], op, found)
    elif isinstance(tree, tuple):
        for one in tree:
            _flatten(one, op, found)
    elif isinstance(tree, dict):
        for one in tree.values():
            _flatten(one, op, found)
    elif op is not None:
        raise ValueError(
            f"[{op}] The argument should contain only arrays, but there is a value of type {type(tree).__name__} in it."
        )


def arrays_of(trees: Sequence[Any]) -> list[array]:
    """Return the arrays of several trees; what is no array is passed over."""
    found: list[array] = []
    for tree in trees:
        if type(tree) is array:
            found.append(tree)
        else:
            _flatten(tree, None, found)
    return found


def _like(tree: Any, items: list[Any]) -> Any:
    """Return a tuple of the type of ``tree``: a named tuple takes its items one by one."""
    kind = type(tree)
    if kind is tuple:
        return tuple(items)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def map_arrays(function: Callable[[array], Any], tree: Any) -> Any:
    """Return a new tree of the same structure with each array replaced; other leaves stay."""
    if isinstance(tree, array):
        return function(tree)
    if isinstance(tree, list):
        return [map_arrays(function, tree[i]) for i in range(len(tree))]
    if isinstance(tree, tuple):
        return _like(tree, [map_arrays(function, one) for one in tree])
    if isinstance(tree, dict):
        return {key: map_arrays(function, one) for key, one in tree.items()}
    return tree


def rebuild(tree: Any, values: Iterator[Any]) -> Any:
    """Return a new tree of the same structure whose arrays are the next of ``values``."""
    return map_arrays(lambda _: next(values), tree)


def fill(tree: Any, replace: Callable[[array], Any]) -> Any:
    """Replace the arrays of a tree in place; tuples, which cannot be written to, are made anew.

    Returns:
        The tree that stands for ``tree``: itself unless it is a tuple or an array.
    """
    if isinstance(tree, array):
        return replace(tree)
    if isinstance(tree, list):
        for i in range(len(tree)):
            old = tree[i]
            new = fill(old, replace)
            if new is not old:
                tree[i] = new
        return tree
    if isinstance(tree, tuple):
        items = [fill(one, replace) for one in tree]
        if all(new is old for new, old in zip(items, tree, strict=True)):
            return tree
        return _like(tree, items)
    if isinstance(tree, dict):
        for key, old in tree.items():
            new = fill(old, replace)
            if new is not old:
                tree[key] = new
        return tree
    return tree


def restore(tree: Any, traced: list[array], nodes: list[Any], originals: list[array]) -> Any:
    """Put the arrays back that ``fill`` replaced; a place that was written to since keeps what was written.

    Args:
        tree: was filled with ``traced``.
        traced: handles that stood for the arrays while a function was traced.
        nodes: what they stood for then: a handle with another node was written to.
        originals: the arrays from before.
    """
    back = {id(handle): (node, old) for handle, node, old in zip(traced, nodes, originals, strict=True)}

    def original(handle: array) -> array:
        node, old = back.get(id(handle), (None, handle))
        return old if handle._n is node else handle

    return fill(tree, original)


def prefix(tree: Any, axes: Any, leaf: Callable[[array, Any], None]) -> None:
    """Visit the arrays of a tree with what a prefix tree says of each.

    Args:
        tree: of arrays.
        axes: a tree of the same structure whose leaves may stand for whole subtrees.
        leaf: called with each array and its value.

    Raises:
        ValueError: ``axes`` is no prefix of ``tree``, or ``tree`` holds something else than arrays.
    """
    if isinstance(tree, array):
        leaf(tree, axes)
        return
    kind = next((kind for kind in (list, tuple, dict) if isinstance(tree, kind)), None)
    if kind is None:
        raise ValueError(
            f"[vmap] The arguments should contain only arrays, but there is a value of type {type(tree).__name__}."
        )
    keys = list(tree) if kind is dict else range(len(tree))
    if not isinstance(axes, list | tuple | dict):
        for key in keys:
            prefix(tree[key], axes, leaf)
        return
    if not isinstance(axes, kind) or len(axes) != len(tree) or (kind is dict and any(key not in axes for key in keys)):
        raise ValueError(
            "[vmap] The tree of axes is not a valid prefix of the tree of arrays: they differ in structure."
        )
    for key in keys:
        prefix(tree[key], axes[key], leaf)
