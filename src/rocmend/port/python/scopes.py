"""Scopes and bindings of a Python module: what a name can stand for at a place.

Flow is not followed: a name stands for whatever any binding in its scope makes it. Where bindings disagree, the name is
unknown; a rule that needs to be sure then stays silent.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

__all__ = ["Binding", "Function", "Scope", "Scopes"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Binding(NamedTuple):
    """One place that binds a name.

    Attributes:
        node: The statement or expression that binds it.
        imported: The dotted name that an import binds it to; relative imports keep their dots.
        value: The expression that is assigned, where the binding is a plain assignment.
        default: The default value of a parameter.
        parameter: Whether it is a parameter.
    """

    node: ast.AST
    imported: str | None = None
    value: ast.expr | None = None
    default: ast.expr | None = None
    parameter: bool = False

    @property
    def deletes(self) -> bool:
        """Whether it is a ``del``: a name that is read all the same is what another binding made it, or a builtin."""
        node = self.node
        return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del) and not hasattr(builtins, node.id)


class Scope:
    """A module, class, function, lambda or comprehension, with the names that it binds."""

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.global_names: set[str] = set()
        self.nonlocal_names: set[str] = set()
        self.stars: list[str] = []

    @property
    def module(self) -> Scope:
        """Return the outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def of_function(self) -> bool:
        """Whether names bound here are a function's locals."""
        return isinstance(self.node, Function)

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that a name is bound in, as seen from here, and its bindings; None where none binds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.global_names:
                scope = scope.module
            if name in scope.bindings and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope, scope.bindings[name]
            scope = scope.parent
        return None

    def bind(self, name: str, binding: Binding) -> None:
        """Record a binding where it takes effect: ``global`` and ``nonlocal`` send it outwards."""
        scope: Scope | None = self
        if name in self.global_names:
            scope = self.module
        elif name in self.nonlocal_names:
            scope = self.parent
            while scope is not None and scope.parent is not None and name not in scope.bindings:
                scope = scope.parent
        (scope or self.module).bindings.setdefault(name, []).append(binding)


class Scopes:
    """Walks a tree once: the parent and the scope of every node, nodes by type, and all bindings.

    What stands inside an f-string is left out, but for the scope of its names: its position is not known before
    Python 3.12.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        self.by_type: dict[type[ast.AST], list[ast.AST]] = {}
        self._late: list[tuple[Scope, str, Binding]] = []
        self._walk(tree)
        for scope, name, binding in self._late:
            scope.bind(name, binding)

    @cached_property
    def told_apart(self) -> frozenset[str]:
        """The expressions, as ``ast.dump`` has them, that the module compares with "hip" or "rocm"."""
        found = [node for node in self.by_type.get(ast.Compare, []) if isinstance(node, ast.Compare)]
        return frozenset(
            ast.dump(node.left)
            for node in found
            if any(isinstance(one, ast.Constant) and one.value in {"hip", "rocm"} for one in node.comparators)
        )

    def _walk(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while stack:
            node, scope = stack.pop()
            self.scope_of[node] = scope
            self.by_type.setdefault(type(node), []).append(node)
            if isinstance(node, ast.JoinedStr):
                self.scope_of.update(dict.fromkeys(ast.walk(node), scope))
                continue
            self._bindings(node, scope)
            children = list(self._children(node, scope))
            for child, _ in children:
                self.parents[child] = node
            stack.extend(reversed(children))

    def _children(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        if isinstance(node, Function):
            inner = Scope(node, scope)
            self._parameters(node, inner)
            body = set(node.body if isinstance(node.body, list) else [node.body])
            for child in ast.iter_child_nodes(node):
                yield child, inner if child in body else scope
        elif isinstance(node, ast.ClassDef):
            inner = Scope(node, scope)
            members = set(node.body)
            for child in ast.iter_child_nodes(node):
                yield child, inner if child in members else scope
        elif isinstance(node, _Comprehension):
            inner = Scope(node, scope)
            for child in ast.iter_child_nodes(node):
                yield child, inner
        elif isinstance(node, ast.comprehension):
            holder = self.parents[node]
            first = isinstance(holder, _Comprehension) and holder.generators[0] is node
            for child in ast.iter_child_nodes(node):
                yield child, (scope.parent or scope) if first and child is node.iter else scope
        else:
            for child in ast.iter_child_nodes(node):
                yield child, scope

    @staticmethod
    def _parameters(node: Function, scope: Scope) -> None:
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        pairs = [*zip(positional, [*defaults, *arguments.defaults], strict=True)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs += [(extra, None) for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        for argument, default in pairs:
            scope.bind(argument.arg, Binding(argument, default=default, parameter=True))

    def _bindings(self, node: ast.AST, scope: Scope) -> None:  # noqa: PLR0912, C901  the language has as many ways to bind
        match node:
            case ast.Import(names=names):
                for alias in names:
                    head = alias.name.split(".", 1)[0]
                    bound = Binding(node, imported=alias.name if alias.asname else head)
                    self._bind(scope, alias.asname or head, bound)
            case ast.ImportFrom(names=names):
                base = "." * node.level + (node.module or "")
                for alias in names:
                    if alias.name == "*":
                        scope.stars.append(base)
                        continue
                    dot = "" if base.endswith(".") else "."
                    self._bind(scope, alias.asname or alias.name, Binding(node, imported=f"{base}{dot}{alias.name}"))
            case ast.Global(names=names):
                scope.global_names.update(names)
            case ast.Nonlocal(names=names):
                scope.nonlocal_names.update(names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bind(scope, node.name, Binding(node))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._bind(scope, target.id, Binding(node, value=value))
            case ast.AnnAssign(target=ast.Name(id=name), value=annotated) if annotated is not None:
                self._bind(scope, name, Binding(node, value=annotated))
            case ast.NamedExpr(target=target, value=value):
                while isinstance(scope.node, _Comprehension) and scope.parent is not None:
                    scope = scope.parent
                self._bind(scope, target.id, Binding(node, value=value))
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                if not self._plain(node):
                    self._bind(scope, name, Binding(node))
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name) if name:
                self._bind(scope, name, Binding(node))
            case ast.MatchMapping(rest=name) if name:
                self._bind(scope, name, Binding(node))
            case _:
                pass

    def _plain(self, node: ast.Name) -> bool:
        """Whether a stored name is the whole target of an assignment, which binds it already with its value."""
        return isinstance(self.parents[node], ast.Assign | ast.AnnAssign | ast.NamedExpr)

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        self._late.append((scope, name, binding))
