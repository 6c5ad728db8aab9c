"""Compare ``mlx.core``'s names and signatures with the stubs (``.pyi``) of the installed ``mlx`` package.

``python -m rocmend.mlx.programs.surface`` prints what is missing or different.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Difference", "Parameter", "Stub", "compare", "read_stubs", "stub_folder"]

_TYPING = frozenset({"P", "R", "DLPackCompatible", "scalar", "list_or_scalar", "StreamOrDevice"})
"""Names that only annotations of the stubs use; the compiled module does not have them either."""

_UNKNOWN = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a stub."""

    name: str
    kind: inspect._ParameterKind
    optional: bool
    default: Any = _UNKNOWN  # _UNKNOWN: no default, or one that is no literal

    def __str__(self) -> str:
        return f"{self.name}={self.default!r}" if self.optional and self.default is not _UNKNOWN else self.name


@dataclass(frozen=True)
class Stub:
    """A public name: ``signatures`` is empty for what is not called, and has one item for each overload."""

    name: str  # "fast.rope", "array.sum", "float32"
    signatures: tuple[tuple[Parameter, ...], ...] = ()


@dataclass(frozen=True)
class Difference:
    """Where ours is not as the stub says."""

    name: str
    what: str  # "missing", or what differs in the signature


def stub_folder() -> Path:
    """Return the folder of the stubs.

    Raises:
        FileNotFoundError: no ``mlx`` with stubs is installed.
    """
    for entry in sys.path:
        folder = Path(entry) / "mlx" / "core"
        if (folder / "__init__.pyi").is_file():
            return folder
    raise FileNotFoundError("[surface] no mlx package with mlx/core/__init__.pyi is installed. `pip install mlx`.")


def read_stubs(folder: Path) -> dict[str, Stub]:
    """Return every public name of the stubs, methods of classes included."""
    found: dict[str, list[tuple[Parameter, ...]]] = {}
    for path in sorted(folder.glob("*.pyi")):
        prefix = "" if path.stem == "__init__" else f"{path.stem}."
        for name, signature in _names(ast.parse(path.read_text(encoding="utf-8")).body, prefix):
            signatures = found.setdefault(name, [])
            if signature is not None:
                signatures.append(signature)
        if prefix:
            found[path.stem] = []
    return {name: Stub(name, tuple(signatures)) for name, signatures in sorted(found.items())}


def _names(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, tuple[Parameter, ...] | None]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            if node.name == "__getattr__":  # says that a module has names that are made when they are asked for
                continue
            attribute = any(
                isinstance(item, ast.Attribute) or (isinstance(item, ast.Name) and item.id == "property")
                for item in node.decorator_list
            )
            yield prefix + node.name, None if attribute else _parameters(node.args)
        elif isinstance(node, ast.ClassDef) and node.name not in _TYPING and not node.name.startswith("_"):
            yield prefix + node.name, None
            yield from _names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id not in _TYPING:
            yield prefix + node.target.id, None
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id not in _TYPING:
                    yield prefix + target.id, None


def _parameters(args: ast.arguments) -> tuple[Parameter, ...]:
    kinds = inspect.Parameter
    places: list[tuple[str, inspect._ParameterKind]] = [(arg.arg, kinds.POSITIONAL_ONLY) for arg in args.posonlyargs]
    places += [(arg.arg, kinds.POSITIONAL_OR_KEYWORD) for arg in args.args]
    without = len(places) - len(args.defaults)
    found = [
        Parameter(name, kind, at >= without, _literal(args.defaults[at - without]) if at >= without else _UNKNOWN)
        for at, (name, kind) in enumerate(places)
    ]
    if args.vararg:
        found.append(Parameter(args.vararg.arg, kinds.VAR_POSITIONAL, optional=True))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        value = _UNKNOWN if default is None else _literal(default)
        found.append(Parameter(arg.arg, kinds.KEYWORD_ONLY, default is not None, value))
    if args.kwarg:
        found.append(Parameter(args.kwarg.arg, kinds.VAR_KEYWORD, optional=True))
    return tuple(found)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _UNKNOWN


def compare(core: ModuleType, stubs: dict[str, Stub]) -> list[Difference]:
    """Return what is missing in ``core`` or cannot be called as the stubs say."""
    differences: list[Difference] = []
    for stub in stubs.values():
        try:
            ours = _find(core, stub.name)
        except AttributeError:
            owner = stub.name.rpartition(".")[0]
            if not any(difference.name == owner for difference in differences):  # a missing class is told once
                differences.append(Difference(stub.name, "missing"))
            continue
        if len(stub.signatures) == 1 and not stub.name.endswith("__"):  # operators are not called by name
            what = _signature_difference(ours, stub.signatures[0])
            if what:
                differences.append(Difference(stub.name, what))
    return differences


def _find(core: ModuleType, name: str) -> Any:
    found: Any = core
    for part in name.split("."):
        if inspect.isclass(found) and part.startswith("__") and part not in ("__eq__", "__hash__"):
            # object has a __reduce_ex__ and more: what a class inherits from it is not its own
            own = next((base.__dict__[part] for base in found.__mro__[:-1] if part in base.__dict__), _UNKNOWN)
            if own is _UNKNOWN:
                raise AttributeError(name)
            found = own
        else:
            found = getattr(found, part)
    return found


def _signature_difference(ours: Any, theirs: tuple[Parameter, ...]) -> str:
    """Return in which way ``ours`` cannot be called as ``theirs`` can; empty if it can."""
    if not callable(ours):
        return "is no function"
    try:
        have = list(inspect.signature(ours).parameters.values())
    except (ValueError, TypeError):
        return ""  # a function of the interpreter (a slot): nothing to read
    by_name = {item.name: item for item in have}
    any_position = any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in have)
    any_keyword = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in have)
    placed = [item for item in have if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    for at, want in enumerate(theirs):
        if want.kind is want.kind.VAR_POSITIONAL:
            if not any_position:
                return f"takes no *{want.name}"
            continue
        if want.kind is want.kind.VAR_KEYWORD:
            if not any_keyword:
                return f"takes no **{want.name}"
            continue
        if want.kind is want.kind.KEYWORD_ONLY:
            found = by_name.get(want.name)
        else:
            found = placed[at] if at < len(placed) else None
            if found is None and any_position:
                continue
        if found is None:
            if any_keyword and want.kind is want.kind.KEYWORD_ONLY:
                continue
            return f"has no parameter {want.name}"
        problem = _parameter_difference(found, want)
        if problem:
            return problem
    names = {want.name for want in theirs}
    extra = [
        item.name
        for at, item in enumerate(have)
        if item.name not in names
        and item.default is item.empty
        and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        and not (item.kind is item.POSITIONAL_ONLY and at < len(theirs))
        and not (at < len(theirs) and theirs[at].kind is item.POSITIONAL_ONLY)
    ]
    return f"needs {', '.join(extra)}, which MLX has not" if extra else ""


def _parameter_difference(found: inspect.Parameter, want: Parameter) -> str:
    if want.name == "self":
        return ""
    if want.kind is not want.kind.POSITIONAL_ONLY:
        if found.name != want.name:
            return f"has {found.name} in the place of {want.name}"
        if found.kind is found.POSITIONAL_ONLY:
            return f"takes {want.name} by position only"
        if want.kind is want.kind.POSITIONAL_OR_KEYWORD and found.kind is found.KEYWORD_ONLY:
            return f"takes {want.name} by keyword only"
    if want.optional and found.default is found.empty:
        return f"needs {want.name}, which is optional"
    if want.optional and want.default is not _UNKNOWN and not _same(found.default, want.default):
        return f"has {want.name}={found.default!r}, not {want.default!r}"
    return ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return list(a) == list(b)
    return a is b or (a == b and isinstance(a, int | float) == isinstance(b, int | float)) or str(a) == str(b)


def main() -> int:
    """Print what is missing or different; 1 if there is something."""
    from rocmend.mlx.activation import activate
    from rocmend.mlx.programs.left_out import DIFFERENT, LEFT_OUT

    activate()
    import mlx.core as mx

    stubs = read_stubs(stub_folder())
    left = [
        difference
        for difference in compare(mx, stubs)
        if difference.name not in (LEFT_OUT if difference.what == "missing" else DIFFERENT)
    ]
    for difference in left:
        sys.stdout.write(f"{difference.name}: {difference.what}\n")
    sys.stdout.write(f"{len(stubs)} names, {len(left)} missing or different without a reason\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
