"""A graph as text in the DOT language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms.trace import COMPILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["drawn", "letters"]


def _title(node: Node) -> str:
    if node.op is COMPILED:
        # a body is known by what it does, as far as that can be read
        names = [one.op.name for one in node.attrs.nodes if one.inputs and one.op is not ITEM]
        return "Compiled" + "".join(names[:16])
    return node.op.name  # type: ignore[union-attr]


def drawn(outputs: Sequence[Node], names: dict[int, str]) -> str:
    """Return a picture of the operations that outputs wait for: rectangles for operations, names for values.

    Args:
        outputs: nodes with one value each.
        names: of some nodes, by their ids.
    """
    given = dict(names)
    taken = set(given.values())
    wanted = {id(node) for node in outputs}
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.inputs)]

    def name(node: Node) -> str:
        if id(node) not in given:
            number = len(given)
            while (text := letters(number)) in taken:
                number += 1
            given[id(node)] = text
            taken.add(text)
        return given[id(node)].replace('"', '\\"')

    lines = ["digraph {"]
    for node in order:
        if node.op is None or (not node.inputs and node.data is not None):
            lines.append(f'{{ rank=source; "{name(node)}"; }}')
        elif node.op is ITEM:
            lines.append(_value(name(node), sink=id(node) in wanted))
            lines.append(f'{id(node.inputs[0])} -> "{name(node)}"')
        else:
            lines.append(f'{{ {id(node)} [label ="{_title(node)}", shape=rectangle]; }}')
            lines += [f'"{name(child)}" -> {id(node)}' for child in node.inputs]
            if node.shape is not None:
                lines.append(_value(name(node), sink=id(node) in wanted))
                lines.append(f'{id(node)} -> "{name(node)}"')
    return "\n".join([*lines, "}", ""])


def _value(name: str, *, sink: bool) -> str:
    return f'{{ {"rank=sink; " if sink else ""}"{name}"; }}'


def letters(number: int) -> str:
    """Return a name: A, B, and so on to Z, then BA, BB."""
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = chr(ord("A") + digit) + text
        if not number:
            return text
