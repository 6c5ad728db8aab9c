"""Record the launches that an op's representative cases make for a target that is not there. Needs torch and triton."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import torch
import triton

from rocmend.core.errors import RocmendError
from rocmend.kernels import executor, registry, select
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.names import hidden_records, name_of, record_name
from rocmend.kernels.compiled.source import source_hash
from rocmend.kernels.compiled.spec import Spec, encode, function_path, named_functions
from rocmend.kernels.executor import Launch, Recorder
from rocmend.kernels.op import Op, resolve
from rocmend.kernels.suite.case import Case, Maker
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import forced, observed

META = torch.device("meta")


class Problem(msgspec.Struct, frozen=True):
    """A case that gave no launches for a target.

    Attributes:
        op: The op.
        case: The case.
        target: The target.
        reason: Why.
        meant: The op says itself that its kernels do not support the target: no fault.
    """

    op: str
    case: str
    target: str
    reason: str
    meant: bool = False


class Recording(msgspec.Struct, frozen=True):
    """What recording an op gave.

    Attributes:
        specs: What is to be compiled, each once a target.
        problems: Cases without launches.
        used: Names of the tuning records that a case looked up, on a target or in the interpreter.
    """

    specs: tuple[Spec, ...]
    problems: tuple[Problem, ...]
    used: tuple[str, ...]


def compiled_cases(op: Op) -> list[Case]:
    """Return an op's cases whose launches are compiled for every target."""
    return [case for case in resolve(op.cases)() if case.compiled] + list(resolve(op.formats)() if op.formats else ())


def record(op: Op, case: Case, target: Target) -> list[Launch]:
    """Return the launches that a case makes on a target, with tensors that have a shape and no data.

    Raises:
        UnsupportedError: The op has no Triton kernel that supports the case on the target.
    """
    function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
    recorder = Recorder(target)
    call = case.make(Maker(META, 0))
    with executor.using(recorder), select.prefer(*case.preferences):
        function(*call.args, **call.kwargs)
    return recorder.launches


def record_op(op_name: str, target_names: Sequence[str], *, hidden: bool = False) -> Recording:
    """Record all representative cases of an op for targets.

    Args:
        op_name: The op.
        target_names: The targets.
        hidden: Also go through the records that a record of a more specific target hides.
    """
    op = registry.get(op_name)
    specs: dict[str, Spec] = {}
    problems: list[Problem] = []
    used: dict[str, None] = {}
    cases = compiled_cases(op)
    for target in map(targets.by_name, target_names):
        for case in cases:
            try:
                for spec in _specs(op, case, target, used, hidden=hidden):
                    specs.setdefault(spec.key, spec)
            except select.UnsupportedError as error:
                problems.append(Problem(op.name, case.name, target.name, error.message, meant=True))
            except Exception as error:  # noqa: BLE001  an op that fails in any way is what is to be reported
                problems.append(Problem(op.name, case.name, target.name, _words(error)))
    used.update(dict.fromkeys(_interpreted(op)))
    return Recording(tuple(specs.values()), tuple(problems), tuple(used))


def _interpreted(op: Op) -> Iterator[str]:
    """Yield the names of the records that the suite's cases look up in the interpreter."""
    with observed() as asked:
        for case in resolve(op.cases)():
            if case.size != "large":
                with contextlib.suppress(Exception):  # a case that needs numbers looks up what the others do
                    record(op, case, targets.CPU)
    yield from map(record_name, asked)


def _words(error: Exception) -> str:
    if isinstance(error, RocmendError):
        return str(error)
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" ({at.tb_frame.f_globals.get('__name__', '?')}:{at.tb_lineno})" if at else ""
    return f"{type(error).__name__}: {error}{place}"


def _specs(op: Op, case: Case, target: Target, used: dict[str, None], *, hidden: bool) -> Iterator[Spec]:
    with observed() as asked:
        launches = record(op, case, target)
    names = {id(look_up.config): record_name(look_up) for look_up in asked}
    used.update(dict.fromkeys(names.values()))
    for launch in launches:
        yield specialise(launch, target, op.name, case.name, names.get(id(launch.config), "host code"))
    if not hidden:
        return
    for look_up in dict.fromkeys(asked):
        for other in hidden_records(look_up, target, triton.__version__):
            with forced(look_up.op, look_up.kernel, other.config):
                launches = record(op, case, target)
            for launch in launches:
                if launch.config is other.config:
                    yield specialise(launch, target, op.name, case.name, name_of(look_up.op, other))


def gpu_target(target: Target) -> Any:
    """Return Triton's name for a target."""
    from triton.backends.compiler import GPUTarget

    if target.vendor == "nvidia":
        return GPUTarget("cuda", target.generation, 32)
    return GPUTarget("hip", target.name, target.wave_size)


def specialise(launch: Launch, target: Target, op: str = "", case: str = "", record_used: str = "") -> Spec:
    """Return the specialization that Triton compiles for a launch: with its options, and its own code for arguments."""
    from triton.compiler.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    backend = make_backend(gpu_target(target))
    kernel = launch.kernel
    options = launch.config.options(target.vendor)
    binder: Callable[..., Any] = create_function_from_signature(kernel.signature, kernel.params, backend)
    given = {**launch.constants, **options}
    bound, specialisation, _ = binder(*launch.args, **given)
    # what Triton's own launch calls
    packed = kernel._pack_args(backend, given, bound, specialisation, options)  # noqa: SLF001  it has no public name
    _, signature, constants, attributes = packed
    encoded = {tuple(path): encode(value) for path, value in constants.items()}
    return Spec(
        op=op,
        case=case,
        kernel=function_path(kernel),
        source=source_hash(kernel, *named_functions(encoded.values())),
        record=record_used,
        config=launch.config.items(),
        signature={name: _listed(kind) for name, kind in signature.items()},
        constants=tuple(encoded.items()),
        attributes=tuple((tuple(path), value) for path, value in attributes.items() if value),
        options=options,
        target=target.name,
        wave_size=target.wave_size,
        triton=triton.__version__,
    )


def _listed(kind: Any) -> Any:
    return [_listed(part) for part in kind] if isinstance(kind, tuple) else kind
