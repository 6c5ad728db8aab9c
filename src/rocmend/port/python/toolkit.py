"""Tests of availability that look for a part of CUDA: nvcc, nvidia-smi, CUDA_HOME, libcudart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rocmend.port.python.callers import for_cuda

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["Flag", "Predicate", "Probe", "Tested", "decides", "flag_of", "predicate_of", "probes", "tested"]

_RUN = ("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput")
_FINDS = ("shutil.which", "distutils.spawn.find_executable")
_STARTS = (*(f"subprocess.{name}" for name in _RUN), "os.system", "os.popen", *_FINDS)
_LOADS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.util.find_library", "ctypes.WinDLL")
_FOLDERS = ("torch.utils.cpp_extension.CUDA_HOME", "torch.utils.cpp_extension._find_cuda_home")
_READS = ("os.environ.get", "os.getenv", "os.environ.pop")
_VARIABLES = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"}
_PROGRAM = re.compile(r"(?:^|[\s/])(nvcc|nvidia-smi)(?:\.exe)?(?=$|\s)")
_LIBRARY = re.compile(r"(?:lib)?(cudart|cuda|nvcuda|nvidia-ml)(?:[._\d-].*)?")
_ANSWERS = ("builtins.bool", "os.path.is", "os.path.exists", "torch.cuda.is_available")
_ROCM = re.compile(r"rocm|hip(?!p)|\bamd", re.IGNORECASE)


class Probe(NamedTuple):
    """An expression that looks for a part of CUDA.

    Attributes:
        node: The expression, or a name that is bound to nothing else.
        part: What it looks for.
        compiler: Whether that is what extensions are built with, and not the GPU.
        known: Whether it is a boolean or a number by itself: its value is of no other use.
        origin: What the name is bound to; the expression itself where it is no name.
    """

    node: ast.expr
    part: str
    compiler: bool
    known: bool
    origin: ast.expr


class Tested(NamedTuple):
    """A test of availability.

    Attributes:
        node: The largest expression that says nothing but that.
        available: Its value where the part of CUDA is there.
        used: Whether the file also uses what was found: a folder, a path of a program.
    """

    node: ast.expr
    available: bool
    used: bool


class Predicate(NamedTuple):
    """A function that answers whether CUDA is available.

    Attributes:
        node: The function.
        first: Its first statement that is no docstring and no import.
    """

    node: ast.FunctionDef
    first: ast.stmt


class Flag(NamedTuple):
    """A ``try`` that sets a name to True or False.

    Attributes:
        node: The statement.
        name: The name.
        alone: Whether it does nothing else.
    """

    node: ast.Try
    name: str
    alone: bool


def probes(file: PythonFile) -> Iterator[Probe]:
    """Yield the expressions that look for a part of CUDA and are evaluated on ROCm."""
    found: list[Probe] = []
    for call in file.calls(*_STARTS, *_LOADS, *_READS, _FOLDERS[1]):
        part = _looked_for(file, call.name, call.args[0] if call.args else None)
        if part:
            known = call.name.startswith(("subprocess.call", "os.system"))
            found.append(Probe(call.node, part, part in {"nvcc", "CUDA_HOME"}, known, call.node))
    for test in file.of(ast.Compare):
        match test:
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()], comparators=[where]):
                if name in _VARIABLES and file.qualified(where) == "os.environ":
                    found.append(Probe(test, "CUDA_HOME", compiler=True, known=True, origin=test))
            case _:
                pass
    folders = file.references(_FOLDERS[0])
    found += [Probe(node, "CUDA_HOME", compiler=True, known=False, origin=node) for node in folders]
    by_value = {id(probe.node): probe for probe in found}
    for used in file.of(ast.Name):
        bound = file.scope(used).lookup(used.id) if isinstance(used.ctx, ast.Load) else None
        if bound and len(bound[1]) == 1 and (probe := by_value.get(id(bound[1][0].value))):
            found.append(probe._replace(node=used))
    yield from (probe for probe in found if not for_cuda(file, probe.node))


def decides(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a call that looks for a part of CUDA decides whether CUDA is available."""
    return any(
        probe.origin is node and (predicate_of(file, probe.node) or flag_of(file, probe.node) or tested(file, probe))
        for probe in probes(file)
    )


def _looked_for(file: PythonFile, called: str, what: ast.expr | None) -> str:
    """Return the part of CUDA that a call looks for; empty where it looks for something else."""
    if called == _FOLDERS[1]:
        return "CUDA_HOME"
    if isinstance(what, ast.List | ast.Tuple):
        what = what.elts[0] if what.elts else None
    texts = [text for text in file.values(what)[0] if isinstance(text, str)] if what is not None else []
    for text in texts:
        if called in _READS:
            return "CUDA_HOME" if text in _VARIABLES else ""
        if called in _LOADS:
            return f"lib{found[1]}" if (found := _LIBRARY.fullmatch(text)) else ""
        if found := _PROGRAM.search(text):
            return found[1]
    return ""


def _function(file: PythonFile, node: ast.AST) -> ast.AST | None:
    at = file.parent(node)
    while at is not None and not isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        at = file.parent(at)
    return at


def predicate_of(file: PythonFile, node: ast.AST) -> Predicate | None:
    """Return the function around a node, if all that it returns is true or false."""
    around = _function(file, node)
    if not isinstance(around, ast.FunctionDef) or _ROCM.search(file.source(around)):
        return None
    returned = [one.value for one in ast.walk(around) if isinstance(one, ast.Return) and _function(file, one) is around]
    if not returned or not all(value is not None and _is_boolean(file, value) for value in returned):
        return None
    work = (one for one in around.body if not isinstance(one, ast.Import | ast.ImportFrom) and not _is_text(one))
    first = next(work, None)
    return Predicate(around, first) if first is not None else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_boolean(file: PythonFile, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, bool)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=parts):
            return all(_is_boolean(file, part) for part in parts)
        case ast.Call(func=func):
            return (file.qualified(func) or "").startswith(_ANSWERS)
        case _:
            return False


def flag_of(file: PythonFile, node: ast.AST) -> Flag | None:
    """Return the ``try`` around a node that sets one name to True if all went well and to False otherwise."""
    at = file.parent(file.statement(node))
    if not isinstance(at, ast.Try) or file.statement(node) not in at.body or not at.handlers or at.finalbody:
        return None
    well = {_assigned(one, value=True) for one in [*at.body, *at.orelse]}
    ill = [{_assigned(one, value=False) for one in handler.body} for handler in at.handlers]
    names = {name for name in well if name and all(name in handler for handler in ill)}
    if len(names) != 1:
        return None
    (name,) = names
    others = [one for one in [*at.body, *at.orelse] if _assigned(one, value=True) != name]
    alone = others == [file.statement(node)] and all(len(handler.body) == 1 for handler in at.handlers)
    return Flag(at, name, alone)


def _assigned(node: ast.stmt, *, value: bool) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=bool(known))) if known is value:
            return name
        case _:
            return ""


def tested(file: PythonFile, probe: Probe) -> Tested | None:
    """Return the test of availability that a probe is part of; None where its value is used, or guards its own use."""
    node, available, known = _answer(file, probe)
    whole: ast.AST = node
    while isinstance(above := file.parent(whole), ast.BoolOp):
        whole = above
    decides_here = isinstance(above, ast.If | ast.IfExp | ast.While | ast.Assert) and above.test is whole
    if not decides_here and not (known and isinstance(above, ast.Assign | ast.AnnAssign | ast.keyword)):
        return None
    if _for_rocm(file, above if isinstance(above, ast.If) else whole):
        return None
    if probe.known:
        return Tested(node, available, used=False)
    said = ast.dump(probe.node)
    if any(ast.dump(inner) == said for one in _protected(above, whole, node, available) for inner in ast.walk(one)):
        return None
    same = (one for kind in (ast.Name, ast.Attribute) for one in file.of(kind) if ast.dump(one) == said)
    asks = ast.Compare | ast.BoolOp | ast.If
    used = any(_is_read(one) and one is not probe.node and not isinstance(file.parent(one), asks) for one in same)
    return Tested(node, available, used)


def _is_read(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)


def _protected(above: ast.AST | None, whole: ast.AST, node: ast.AST, available: bool) -> list[ast.AST]:
    """Return what is evaluated only where a part of CUDA is there: a branch, and the rest of the test."""
    found: list[ast.AST] = [one for one in whole.values if one is not node] if isinstance(whole, ast.BoolOp) else []
    if isinstance(above, ast.If):
        found += above.body if available else above.orelse
    elif isinstance(above, ast.IfExp):
        found.append(above.body if available else above.orelse)
    return found


def _answer(file: PythonFile, probe: Probe) -> tuple[ast.expr, bool, bool]:
    """Return the largest expression that is only an answer, its value where CUDA is there, and whether it is one."""
    node, available, known = probe.node, True, probe.known
    if known and isinstance(node, ast.Call):
        available = False  # an exit status: 0 is success
    if isinstance(node, ast.Compare):
        available = isinstance(node.ops[0], ast.In)
    while True:
        match parent := file.parent(node):
            case ast.Compare(ops=[op], comparators=[ast.Constant(value=None | 0)]):
                if not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
                    return node, available, known
                available = isinstance(op, ast.IsNot | ast.NotEq) is available
            case ast.UnaryOp(op=ast.Not()):
                available = not available
            case ast.Call(func=ast.Name(id="bool"), args=[_]):
                pass
            case ast.Attribute(attr="returncode"):
                available = False
            case _:
                return node, available, known
        node, known = parent, True


def _for_rocm(file: PythonFile, node: ast.AST) -> bool:
    """Whether a test, or one that it is an alternative to, is about ROCm too."""
    at: ast.AST | None = node
    while isinstance(at, ast.If):
        if _ROCM.search(file.source(at.test)):
            return True
        if len(at.orelse) == 1 and isinstance(at.orelse[0], ast.If) and _ROCM.search(file.source(at.orelse[0].test)):
            return True
        above = file.parent(at)
        at = above if isinstance(above, ast.If) and at in above.orelse else None
    if isinstance(node, ast.If):
        return False
    return isinstance(node, ast.expr) and _ROCM.search(file.source(node)) is not None
