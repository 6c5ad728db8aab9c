"""A worker: records, compiles and emulates for the command that started it, with the Triton that it was given.

Reads requests from standard input and answers each with a line of JSON. A crash of the compiler takes this process and
nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec


def _record(request: dict[str, Any]) -> Any:
    from rocmend.kernels.compiled.record import record_op

    return record_op(request["op"], request["targets"], hidden=request.get("hidden", False))


def _compile(request: dict[str, Any]) -> Any:
    from rocmend.kernels.compiled.build import compile_spec
    from rocmend.kernels.compiled.measure import measure
    from rocmend.kernels.compiled.spec import Spec

    compiled = compile_spec(msgspec.convert(request["spec"], Spec))
    return compiled if request.get("whole") else measure(compiled)


def _estimate(request: dict[str, Any]) -> Any:
    from rocmend.kernels.model.trial import estimate_configuration

    return estimate_configuration(request)


def _emulate(request: dict[str, Any]) -> Any:
    from rocmend.kernels.suite.emulate import emulate_case

    return emulate_case(request)


_TASKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "record": _record,
    "compile": _compile,
    "estimate": _estimate,
    "emulate": _emulate,
}


def answer(line: bytes) -> bytes:
    """Carry out one request and return the answer as JSON."""
    request = json.loads(line)
    try:
        return msgspec.json.encode({"ok": _TASKS[request["do"]](request)})
    except Exception as error:  # noqa: BLE001  whatever the compiler raises is the answer
        # a kernel that was edited meanwhile, or is being edited
        passing = isinstance(error, ImportError | SyntaxError) or type(error).__name__ == "SourceChangedError"
        return msgspec.json.encode({"error": words(error), "passing": passing})


def words(error: BaseException) -> str:
    """Format an error and its root cause: the outermost says where it is, the innermost why."""
    text = f"{type(error).__name__}: {str(error).strip() or 'no message'}"
    inner: BaseException | None = error
    while inner is not None and (inner.__cause__ or inner.__context__) is not None:
        inner = inner.__cause__ or inner.__context__
    return text if inner is error else f"{text}\n{type(inner).__name__}: {str(inner).strip()}"


def main() -> None:
    """Answer requests until standard input ends. What a library prints goes to standard error."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        out.write(answer(line) + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
