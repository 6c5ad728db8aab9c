"""Edits that gate an expression or statements for ROCm and leave the original text in the other branch."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import lru_cache
from typing import TYPE_CHECKING

from rocmend.port.python.compiled import in_compiled
from rocmend.port.records import Edit

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = [
    "FLAG",
    "asserted",
    "block_gate",
    "condition_gate",
    "expression_gate",
    "guards",
    "insertion",
    "statement_gate",
    "unit_of_indentation",
]

FLAG = "is_rocm"
"""The flag's name in edits; ``write.ported`` puts the file's own in its place."""

_BARE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Dict, ast.List, ast.Tuple, ast.arguments)
_REFUSED = (ast.Starred, ast.Yield, ast.YieldFrom, ast.GeneratorExp, ast.NamedExpr, ast.Slice)


def expression_gate(file: PythonFile, node: ast.expr, rocm: str, *, when: str = "") -> tuple[Edit, ...]:
    """Return edits that make ``node`` into ``ROCM if is_rocm else NODE``; empty where that cannot be done.

    Args:
        file: The file.
        node: The expression that CUDA keeps.
        rocm: What stands there on ROCm: an expression that needs no parentheses.
        when: A further condition, for a suggestion (``mode == "x"``).
    """
    if isinstance(node, _REFUSED) or isinstance(file.parent(node), ast.pattern) or in_compiled(file, node):
        return ()
    start, end = file.span(node)
    test = f"{FLAG} and {when}" if when else FLAG
    head, tail = f"{rocm} if {test} else ", ""
    if isinstance(node, ast.Tuple) and not file.data[start:end].startswith(b"("):
        head, tail = head + "(", ")"
    if not _alone(file, node):
        head, tail = "(" + head, tail + ")"
    edits = (Edit(start, start, head.encode()),)
    return (*edits, Edit(end, end, tail.encode())) if tail else edits


def _alone(file: PythonFile, node: ast.expr) -> bool:
    """Whether a conditional expression may stand where ``node`` stands without parentheses of its own."""
    start, end = file.span(node)
    before, after = file.data[:start].rstrip(), file.data[end:].lstrip()
    if before.endswith(b"(") and after.startswith(b")"):
        return True
    parent = file.parent(node)
    if isinstance(parent, ast.Call):
        return node in parent.args
    if isinstance(parent, ast.keyword | ast.Dict):
        return parent.arg is not None if isinstance(parent, ast.keyword) else node in parent.values
    if isinstance(parent, ast.Tuple):
        return file.data[slice(*file.span(parent))].startswith(b"(")
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        return parent.value is node
    return isinstance(parent, _BARE)


def condition_gate(file: PythonFile, node: ast.expr, *, rocm: bool) -> tuple[Edit, ...]:
    """Return edits that make a condition True or False on ROCm: ``is_rocm or NODE``, ``not is_rocm and NODE``."""
    fits = isinstance(node, ast.Compare | ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.BoolOp)
    if not (fits or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))) or in_compiled(file, node):
        return ()
    start, end = file.span(node)
    head, tail = (f"{FLAG} or ", "") if rocm else (f"not {FLAG} and ", "")
    if isinstance(node, ast.BoolOp):
        head, tail = head + "(", ")"
    if not (_alone(file, node) or _whole_test(file, node)):
        head, tail = "(" + head, tail + ")"
    edits = (Edit(start, start, head.encode()),)
    return (*edits, Edit(end, end, tail.encode())) if tail else edits


def _whole_test(file: PythonFile, node: ast.expr) -> bool:
    parent = file.parent(node)
    return isinstance(parent, ast.If | ast.While | ast.Assert) and parent.test is node and "\n" not in file.source(node)


def guards(file: PythonFile, node: ast.expr) -> bool:
    """Whether a value only decides whether something is done: it is the test of an ``if``, or a part of it.

    Only where what is left without it is right whatever the value means: there is no ``else``, and what is done is not
    to leave the function with an answer. Not under ``not``, and not in an assertion.
    """
    child: ast.AST = node
    while isinstance(parent := file.parent(child), ast.BoolOp):
        child = parent
    if not isinstance(parent, ast.If) or parent.test is not child or parent.orelse or _is_elif(file, parent):
        return False
    return not isinstance(parent.body[-1], ast.Return | ast.Continue | ast.Break)


def asserted(file: PythonFile, node: ast.expr) -> bool:
    """Whether an assertion is about this value."""
    parent = file.parent(node)
    return isinstance(parent, ast.Assert) and parent.test is node


def statement_gate(file: PythonFile, node: ast.stmt, rocm: str | None) -> tuple[Edit, ...]:
    """Return edits that keep one simple statement for CUDA; see ``block_gate``."""
    return block_gate(file, node, node, rocm)


def block_gate(file: PythonFile, first: ast.stmt, last: ast.stmt, rocm: str | None) -> tuple[Edit, ...]:
    """Return edits that keep statements of one block for CUDA; empty where they do not have lines of their own.

    Args:
        file: The file.
        first: The first statement.
        last: The last statement, of the same block.
        rocm: The statements for ROCm, one a line; None where nothing is done there (``if not is_rocm:``).
    """
    data = file.data
    start, end = file.span(first)[0], file.span(last)[1]
    head = data.rfind(b"\n", 0, start) + 1
    indent = data[head:start].removeprefix(b"\xef\xbb\xbf")
    ending = re.match(rb"[ \t]*(?:#[^\r\n]*)?(?=[\r\n]|\Z)", data[end:])
    decorated = bool(getattr(first, "decorator_list", None))
    if indent.strip(b" \t") or ending is None or decorated or _is_elif(file, first) or in_compiled(file, first):
        return ()
    unit = unit_of_indentation(file)
    here = indent.decode("ascii")
    if rocm is None:
        text = f"if not {FLAG}:\n{here}{unit}"
    else:
        inner = "\n".join(f"{here}{unit}{line}" if line else "" for line in rocm.splitlines())
        text = f"if {FLAG}:\n{inner}\n{here}else:\n{here}{unit}"
    edits = [Edit(start, start, text.encode())]
    at = start
    inside = _inside_strings(data[head:end].decode(file.encoding))
    if inside is None:
        return ()
    for number, line in enumerate(data[head:end].splitlines(keepends=True)):
        at = head if not number else at
        if number and number not in inside and line.strip():
            edits.append(Edit(at, at, unit.encode()))
        at += len(line)
    return tuple(edits)


def insertion(file: PythonFile, before: ast.stmt, rocm: str) -> tuple[Edit, ...]:
    """Return the edit that puts statements for ROCm alone before another; empty where that has no line of its own."""
    start = file.span(before)[0]
    head = file.data.rfind(b"\n", 0, start) + 1
    indent = file.data[head:start].removeprefix(b"\xef\xbb\xbf")
    if indent.strip(b" \t") or getattr(before, "decorator_list", None) or _is_elif(file, before):
        return ()
    here = indent.decode("ascii")
    unit = unit_of_indentation(file)
    inner = "\n".join(f"{here}{unit}{line}" if line else "" for line in rocm.splitlines())
    return (Edit(start, start, f"if {FLAG}:\n{inner}\n{here}".encode()),)


def _is_elif(file: PythonFile, node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and file.data.startswith(b"elif", file.span(node)[0])


def _inside_strings(text: str) -> set[int] | None:
    """Return the lines of a piece of source, from 0, that begin inside a string; None where it has no tokens."""
    lines: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(
            io.StringIO("if 1:\n" + text + "\n").readline
            if text[:1] in " \t"
            else io.StringIO("\n" + text + "\n").readline
        ):
            name = tokenize.tok_name[token.type]
            if name in {"FSTRING_START", "TSTRING_START"}:
                opened.append(token.start[0])
            elif name in {"FSTRING_END", "TSTRING_END"}:
                lines.update(range(opened.pop() + 1, token.end[0] + 1))
            elif name == "STRING":
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError):
        return None
    return {line - 2 for line in lines}


@lru_cache(maxsize=2)
def unit_of_indentation(file: PythonFile) -> str:
    """Return what one level of indentation is in the file: of its first indented block."""
    for node in ast.walk(file.module):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and body[0].lineno > node.lineno:
            start = file.span(node)[0]
            inner = file.span(body[0])[0]
            outer = file.data[file.data.rfind(b"\n", 0, start) + 1 : start]
            own = file.data[file.data.rfind(b"\n", 0, inner) + 1 : inner]
            unit = own.removeprefix(outer)
            if unit and not unit.strip(b" \t") and own.startswith(outer) and not outer.strip(b" \t"):
                return unit.decode("ascii")
    return "    "
